/*
 * actions.h: the fermion actions by name, and their parameters: data, which the front, the engine
 * and the clients read. No other file lists them. operator_text.h reads texts against these rows.
 *
 * Names, keys and defaults never change once they are here, as checkpoints, journals and files of
 * solutions hold them (operator_text.h); a new parameter has a default with which the action is
 * what it was without it. The numbers of actions are for this process alone.
 */
#ifndef QK_PROTO_ACTIONS_H
#define QK_PROTO_ACTIONS_H

#include <stdbool.h>

#include "proto/action/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_param_type {
  QK_PARAM_REAL,
  QK_PARAM_INTEGER,
  QK_PARAM_REALS, /* numbers with commas between them */
  QK_PARAM_WORD   /* printable ASCII without blank, ';' and '=' */
} qk_param_type_t;

typedef struct qk_param {
  const char *key;
  qk_param_type_t type;
  double least, most;    /* of each number, both inclusive; of a WORD the length in bytes */
  bool above, below;     /* `least`, or `most`, itself is outside */
  int count;             /* REALS: how many numbers; 0: one or more */
  const char *otherwise; /* default as text; NULL: must be given */
  const char *unit;      /* NULL: it has none */
  const char *help;      /* lower case, no full stop */
  /* Of a WORD, what its length does not say: false with a sentence that names key and value. NULL:
   * nothing. */
  bool (*fits)(const char *word, char why[QK_WHY]);
} qk_param_t;

typedef struct qk_action_row {
  const char *name;
  const char *help, *reference; /* one line each */
  const qk_param_t *param;      /* ends with a row without key */
  bool has_kappa;               /* kappa = 1 / (2 (4 + mass)) may stand for mass */
  bool has_flavours;            /* two of opposite sign in one setup: a request may say which */
  bool has_term;                /* T is a field that the user has sent, which `clover` names */
  bool is_dense;                /* M connects all sites: there are no parities and no parts of M */
  bool has_slices; /* M has a fifth dimension, sources and solutions have four (docs/physics.md) */
  bool has_masses; /* a request may be for several values of `mass` (operator.h: masses) ... */
  double least_of_masses; /* ... of at least this modulus, below 1; 0: those of `mass` itself */
  bool colour; /* fields have colour alone: 6 reals a site on the wire, 3 columns a propagator */
  int vectors; /* fields of spin and colour in a right-hand side: 2 of a doublet; 0 says 1 */
} qk_action_row_t;

static inline int qk_action_vectors(const qk_action_row_t *row) {
  return row->vectors > 1 ? row->vectors : 1;
}

/* Rows that are named in code: what csw alone stands for. */
typedef enum qk_action_id { QK_ACTION_WILSON, QK_ACTION_WILSON_CLOVER } qk_action_id_t;

extern const qk_action_row_t qk_action_rows[]; /* ends with a row without name */

#ifdef __cplusplus
}
#endif
#endif
