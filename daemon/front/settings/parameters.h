/*
 * parameters.h: the parameters of the action that quarkd is started with. There are three ways to
 * give one: by a flag of its own (--mass, --kappa, --csw), by --set KEY=VALUE, and in the file as a
 * key of its own. Keys come from the rows of proto/action/actions.h. What the command line gives
 * replaces what the file gives for the same key; within one of the two a key is given once.
 */
#ifndef QK_FRONT_PARAMETERS_H
#define QK_FRONT_PARAMETERS_H

#include "daemon/base/config/config.h"
#include "proto/action/operator_text.h"

enum { QK_PARAMETER_KEYS = 64 }; /* different keys of all actions together */

/* As the configuration has them. */
typedef struct qk_parameters {
  double mass, kappa, csw; /* that have flags */
  qk_config_list_t set;
  const char *by_key[QK_PARAMETER_KEYS]; /* in the order in which the rows first name them */
} qk_parameters_t;

/* Adds a key of the file for each parameter that has no flag to the n rows; `at` is where the
 * qk_parameters_t stands in the values. There is room for QK_PARAMETER_KEYS of them. Returns how
 * many rows there are then. A parameter that has the key of another setting gets a row all the
 * same: qk_config_create refuses it. */
int qk_parameters_rows(qk_config_row_t *rows, int n, size_t at);

/* Action and parameters, checked. action NULL: as csw says (operator_text.h). Errors name the
 * place. QK_BAD_ARGUMENT; QK_BAD_FORMAT where it is the file that is wrong; QK_NO_MEMORY; *values
 * is unchanged then. */
qk_status_t qk_parameters_read(const qk_parameters_t *parameter, const char *action,
                               const qk_config_t *config, qk_values_t *values, qk_err_t *err);

#endif
