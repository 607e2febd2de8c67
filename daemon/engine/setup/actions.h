/*
 * actions.h: the registry of fermion actions: each row of proto/action/actions.c with its table.
 */
#ifndef QK_ENGINE_ACTIONS_H
#define QK_ENGINE_ACTIONS_H

#include "daemon/engine/action/action.h"

/* The action whose values these are. */
const qk_action_t *qk_action_of(const qk_values_t *values);

/* True, or QK_BAD_ARGUMENT with the solvers that the action can be solved by. solver: a word of
 * qk_choice_solvers, "auto" too. */
qk_status_t qk_action_solver(const qk_values_t *values, const char *solver, qk_err_t *err);

/* qk_geom_init, with the components that fields of this action have. */
qk_status_t qk_action_geom(const qk_values_t *values, qk_comm_t *comm, const int dims[4],
                           qk_geom_t *geom, qk_err_t *err);

/* The operator of these parameters: qk_action_create of qk_action_of. */
qk_status_t qk_operator_create(const qk_device_t *dev, qk_work_t *work, const double *links,
                               const qk_action_params_t *params, qk_operator_t **op, qk_err_t *err);

#endif
