/*
 * operator_text.h: the parameters of an action as text and as numbers; phases of a boundary.
 *
 * Settings   are pairs of key and value, read against the rows of actions.h: each key once, each
 *            value in its range, none missing but those that have a default. `kappa` may stand for
 *            `mass` where the action has one; from there on the mass is what counts.
 * Operator   as text: "NAME;key=value;...", at most QK_OPERATOR_TEXT bytes with its end. There are
 *            two forms:
 *              QK_TEXT_CANONICAL  what digests, checkpoints and files of solutions hold: keys in
 *                                 the order of the rows, without those that have their default
 *              QK_TEXT_GIVEN      what people are shown: all that was given, with kappa where that
 *                                 was given
 *            Numbers are in the shortest decimal form that reads back as the same double.
 * Errors     Functions that check return false; `why` is then a sentence that names the key, the
 *            value and what would be accepted, in printable ASCII.
 * Pure, for any thread, all of them. Numbers are read and written as in the locale "C", which is
 * that of a process that has set no other.
 */
#ifndef QK_PROTO_OPERATOR_TEXT_H
#define QK_PROTO_OPERATOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/action/actions.h"
#include "proto/action/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  QK_VALUES_PARAMS = 16,                            /* parameters of an action */
  QK_VALUES_REALS = 120,                            /* its numbers together */
  QK_VALUES_WORDS = 4,                              /* its words */
  QK_REALS_MAX = 28,                                /* numbers of one parameter */
  QK_PARAM_NAME_MAX = 31,                           /* bytes of the name of an action */
  QK_PARAM_KEY_MAX = 31,                            /* and of a key */
  QK_REAL_BYTES = 25,                               /* a number with its comma */
  QK_PARAM_TEXT_MAX = QK_REALS_MAX * QK_REAL_BYTES, /* bytes of a value */
  QK_OPERATOR_TEXT = 4096
};

/* An action and its parameters. No pointers: ranks broadcast it as bytes. */
typedef struct qk_values {
  int32_t action; /* its row in qk_action_rows */
  int32_t nreal, nword;
  bool by_kappa; /* kappa was given for the mass */
  double kappa;
  struct {
    uint8_t state;    /* 0: it has no value; or one of QK_VALUE_* */
    int32_t first, n; /* of real, or of word */
  } at[QK_VALUES_PARAMS];
  double real[QK_VALUES_REALS];
  char word[QK_VALUES_WORDS][QK_PARAM_WORD_MAX + 1];
} qk_values_t;

enum { QK_VALUE_NONE, QK_VALUE_DEFAULT, QK_VALUE_GIVEN };

typedef struct qk_setting {
  const char *key, *value;
} qk_setting_t;

typedef enum qk_text_form { QK_TEXT_CANONICAL, QK_TEXT_GIVEN } qk_text_form_t;

/* The row of that name; NULL: there is none. */
const qk_action_row_t *qk_action_named(const char *name);

/* ---- reading ---- */

/* All parameters of an action, checked and complete. action NULL: wilson-clover, or wilson where
 * csw is not there or 0. *values is unchanged where it is false. */
bool qk_values_read(qk_values_t *values, const char *action, const qk_setting_t *setting, size_t n,
                    char why[QK_WHY]);
/* The same; *at is the setting that is refused, n where it is none of them. */
bool qk_values_read_at(qk_values_t *values, const char *action, const qk_setting_t *setting,
                       size_t n, size_t *at, char why[QK_WHY]);

/* The same in steps: an action without values; one value (QK_WHY says why not); defaults for what
 * was not given. */
bool qk_values_init(qk_values_t *values, const char *action, char why[QK_WHY]);
bool qk_values_set(qk_values_t *values, const char *key, const char *text, char why[QK_WHY]);
bool qk_values_complete(qk_values_t *values, char why[QK_WHY]);

/* A canonical text. One that is not canonical is refused. *values is unchanged then. */
bool qk_values_parse(qk_values_t *values, const char *text, char why[QK_WHY]);

/* "KEY=VALUE", split at the first '=' in place. */
bool qk_setting_split(char *text, qk_setting_t *setting, char why[QK_WHY]);

/* ---- values ---- */

const qk_action_row_t *qk_values_action(const qk_values_t *values);
/* Of a REAL or INTEGER; NaN: the action has no such parameter, or it has no value yet. */
double qk_value(const qk_values_t *values, const char *key);
/* Of any numbers; *n of them. NULL and 0 likewise. */
const double *qk_value_reals(const qk_values_t *values, const char *key, int *n);
/* NULL likewise. */
const char *qk_value_word(const qk_values_t *values, const char *key);
/* Whether an action may have this value of a parameter of one number; `why` says what it may be. */
bool qk_action_takes(const qk_action_row_t *row, const char *key, double value, char why[QK_WHY]);
/* The same of one of several masses that are solved together (has_masses). */
bool qk_action_takes_mass(const qk_action_row_t *row, double mass, char why[QK_WHY]);
/* True if mass and csw say all of it, as they did before actions had names. */
bool qk_values_are_plain(const qk_values_t *values);
/* Whether two operators on colour vectors differ in their mass at most: eigenvectors of Mhat = 1 -
 * D_eo D_oe / (4 m^2) are those of D_eo D_oe, the same for all masses. */
bool qk_values_share_vectors(const qk_values_t *a, const qk_values_t *b);
/* The Wilson operator whose eigenvectors of gamma_5 M the sign function of an action projects
 * (is_dense). False, and *kernel as it was: the action has no such operator. */
bool qk_values_kernel(const qk_values_t *values, qk_values_t *kernel);
/* As it was given, or that of the mass; 0: the action has none. */
double qk_values_kappa(const qk_values_t *values);

/* ---- writing ---- */

void qk_values_text(const qk_values_t *values, qk_text_form_t form, char text[QK_OPERATOR_TEXT]);
/* Cuts such a text at its separators and lists what is in it; borrowed from text. Returns how many
 * settings there are; -1: too many, or one without '='. */
int qk_operator_split(char *text, const char **action, qk_setting_t setting[QK_VALUES_PARAMS]);

/* ---- relations ---- */

/* kappa = 1 / (2 (4 + m)) */
double qk_mass_of_kappa(double kappa);
double qk_kappa_of_mass(double mass);

/* "x,y,z,t" of 1, -1, or A pi (the phase exp(i pi A)); or "periodic", or "antiperiodic" (in t).
 * Into (re, im) for each direction, unchanged where it is false. */
bool qk_boundary_parse(const char *text, double boundary[8], char why[QK_WHY]);

#ifdef __cplusplus
}
#endif
#endif
