/*
 * action.h: fermion actions. An action is a table; M = T - 1/2 hop, T on one site (eo.h).
 *
 * Adding one: its row in proto/action/actions.c, a folder here with a file that defines
 * a qk_action_t, a line in the registry setup/actions.c (docs/howto-add-an-action.md has all
 * places). What differs between actions stands in this table; code elsewhere asks the table or the
 * operator, never the name.
 *
 * Links are those of gauge.h, in the ranks' parts. Mass and other dimensionful parameters are in
 * units of the lattice spacing, in the mass normalisation: T = 4 + m for plain Wilson fermions.
 */
#ifndef QK_ENGINE_ACTION_H
#define QK_ENGINE_ACTION_H

#include "daemon/base/progress.h"
#include "daemon/engine/action/eo.h"
#include "proto/action/operator_text.h"

struct qk_stored; /* eigen/stored.h */

/* What an operator is made for. */
typedef struct qk_action_params {
  qk_values_t values;       /* complete: qk_values_read */
  double phase[4][2];       /* boundary phases, complex, modulus 1 */
  bool want[QK_PRECS];      /* which precisions to hold */
  int link_reals[QK_PRECS]; /* by precision: 18, 12 or 8 */
  /* T of an action that is given one: in host memory, read by qk_action_create alone; the local
   * sites, x fastest, each as in daemon/base/links/clover_term.h. NULL: none. */
  const double *term;
  double term_scale; /* typical |T v| / |v|, on all ranks the same */
  /* Phases "upload", and "clover" or of colour vectors "links", at their beginnings; NULL: nobody
   * listens. */
  qk_progress_fn *progress;
  void *arg;
  /* Eigenvectors of the base, for an action that projects some; NULL: it makes them. */
  const struct qk_stored *stored;
} qk_action_params_t;

/* What an action makes its parts from; borrowed during the call. */
typedef struct qk_action_in {
  const qk_device_t *dev;
  const qk_action_params_t *params;
  const double *links; /* those of the configuration, in host memory */
  /* Links of the hop and of the clover term, on the device, in double with their halo: as they were
   * read, or smeared as the parameter "links" says (links.h). */
  qk_gauge_args_t gauge, clover;
} qk_action_in_t;

typedef struct qk_action {
  const char *name;          /* of its row in proto/action/actions.c */
  qk_adjoint_t adjoint;      /* what M^+ is */
  qk_chirality_t chirality;  /* what aggregates of multigrid keep apart */
  const char *const *method; /* solvers that it can be solved by, best first; NULL at the end */

  /* What ranges of single parameters do not say: mass against kappa, mu above epsilon. NULL: the
   * ranges suffice. Pure. QK_BAD_ARGUMENT names the parameter, its value and the limit. */
  qk_status_t (*check)(const qk_values_t *values, qk_err_t *err);

  /* Device memory of T and T^-1 on this rank; making: beside them, until they are made. Pure;
   * agrees to the byte with what `local` allocates. NULL: none, as they are numbers. */
  int64_t (*bytes)(const qk_ops_t *ops, const qk_lattice_t *lat, const qk_action_params_t *params,
                   bool making);

  /* T and T^-1 in all precisions that are wanted, into parts->t and parts->inverse; parts->scale
   * and parts->flops. What it has allocated is the caller's, also after an error. May fail on one
   * rank alone. QK_BAD_ARGUMENT: T is singular on some site; the text names the parameters. */
  qk_status_t (*local)(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err);

  /* The twist: T = H + i twist gamma_5 for flavour +1, minus it for -1 (operator.h). Pure. NULL: 0,
   * right-hand sides have no flavour. */
  double (*twist)(const qk_values_t *values);

  /* The operator on right-hand sides of several vectors, made of the one that the other functions
   * make: that is the base of the result (operator.h), which takes it, also after an error. May
   * fail on one rank alone; collective. Errors as for `local`. NULL: a right-hand side is one
   * vector. */
  qk_status_t (*compose)(const qk_action_params_t *params, qk_operator_t *base, qk_operator_t **op,
                         qk_err_t *err);

  bool squares; /* the operator has `squared` (operator.h) */

  /* Slices of a fifth dimension (geom.h: ls). Pure. NULL: there is none. */
  int (*slices)(const qk_values_t *values);

  /* Full fields of the user's problem, one right-hand side each, that `enter` of the operator takes
   * from the work fields of its base. Pure. NULL: none. */
  int (*entering)(const qk_values_t *values);

  /* T and T^-1 share no memory, and each is the inverse of the other to the bit (diag_invert): one
   * may be given back and made again (operator.h: keep_local, rest_double). */
  bool apart;

  /* Links of the hop, weights of directions, in place of those of the configuration with weight 1.
   * NULL: these. Ownership and errors as for `local`. */
  qk_status_t (*links)(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err);
  /* Device memory of the links of the hop on this rank; making: beside them, until they are made.
   * Pure; agrees to the byte with what `links` allocates. NULL: as qk_links_bytes says. */
  int64_t (*links_bytes)(const qk_ops_t *ops, const qk_lattice_t *lat,
                         const qk_action_params_t *params, bool making);
  bool from_host; /* `links` takes in->links, so nothing is uploaded; in->gauge has no memory */
  const qk_eo_stencil_t *stencil; /* NULL: the Wilson hop */
} qk_action_t;

/* The table's check. Pure. QK_BAD_ARGUMENT. */
qk_status_t qk_action_check(const qk_action_t *action, const qk_values_t *values, qk_err_t *err);
/* Of flavour +1; 0: both flavours are the same operator. Pure. */
double qk_action_twist(const qk_action_t *action, const qk_values_t *values);
/* 1 without a fifth dimension. */
int qk_action_slices(const qk_action_t *action, const qk_values_t *values);
/* Components of a site of fields of the hop: geom.ncomp. Pure. */
int qk_action_components(const qk_action_t *action);
/* Those that a neighbour needs of a site of a face. Pure. */
int qk_action_faces(const qk_action_t *action);
/* True if `method` (a solver's name) is one of those that the action can be solved by. */
bool qk_action_allows(const qk_action_t *action, const char *method);

/* Device memory of the operator on this rank: links and T of all precisions; making: what is there
 * beside them while they are made. Pure. Without the buffers of the halo. */
int64_t qk_action_bytes(const qk_action_t *action, const qk_ops_t *ops, const qk_lattice_t *lat,
                        const qk_action_params_t *params, bool making);

/* The operator of a configuration. links: as in gauge.h, host memory, read during the call only.
 * dev and work are borrowed by the result; dev->geom->ncomp fits the action. Collective. Errors,
 * after which nothing is left: QK_DEVICE_MEMORY, QK_BAD_ARGUMENT (phases, link_reals, components;
 * those of the table's functions). */
qk_status_t qk_action_create(const qk_action_t *action, const qk_device_t *dev, qk_work_t *work,
                             const double *links, const qk_action_params_t *params,
                             qk_operator_t **op, qk_err_t *err);

#endif
