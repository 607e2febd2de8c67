#include "daemon/engine/setup/actions.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"

/* The actions: a line here and one in the list. */
extern const qk_action_t qk_action_wilson;
extern const qk_action_t qk_action_wilson_clover;
extern const qk_action_t qk_action_anisotropic_clover;
extern const qk_action_t qk_action_twisted_clover;
extern const qk_action_t qk_action_exp_clover;
extern const qk_action_t qk_action_doublet;
extern const qk_action_t qk_action_foreign_clover;
extern const qk_action_t qk_action_moebius;
extern const qk_action_t qk_action_staggered;
extern const qk_action_t qk_action_asqtad;
extern const qk_action_t qk_action_hisq;
extern const qk_action_t qk_action_overlap;

static const qk_action_t *const actions[] = {
    &qk_action_wilson,         &qk_action_wilson_clover, &qk_action_anisotropic_clover,
    &qk_action_twisted_clover, &qk_action_exp_clover,    &qk_action_doublet,
    &qk_action_foreign_clover, &qk_action_moebius,       &qk_action_staggered,
    &qk_action_asqtad,         &qk_action_hisq,          &qk_action_overlap,
};

const qk_action_t *qk_action_of(const qk_values_t *values) {
  const char *name = qk_values_action(values)->name;
  for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
    if (strcmp(actions[i]->name, name) == 0) return actions[i];
  QK_ASSERT(!"an action of proto/action/actions.c that the registry lacks");
  return NULL;
}

qk_status_t qk_action_solver(const qk_values_t *values, const char *solver, qk_err_t *err) {
  const qk_action_t *action = qk_action_of(values);
  char list[128] = "auto";
  if (strcmp(solver, "auto") == 0 || qk_action_allows(action, solver)) return QK_OK;
  for (int i = 0; action->method[i]; i++) {
    const size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, ", %s", action->method[i]);
  }
  return qk_fail(err, QK_BAD_ARGUMENT, "solver = '%.32s': %s is solved by %s", solver, action->name,
                 list);
}

qk_status_t qk_action_geom(const qk_values_t *values, qk_comm_t *comm, const int dims[4],
                           qk_geom_t *geom, qk_err_t *err) {
  const qk_status_t status = qk_geom_init(geom, comm, dims, err);
  if (status == QK_OK) geom->ncomp = qk_action_components(qk_action_of(values));
  return status;
}

qk_status_t qk_operator_create(const qk_device_t *dev, qk_work_t *work, const double *links,
                               const qk_action_params_t *params, qk_operator_t **op,
                               qk_err_t *err) {
  return qk_action_create(qk_action_of(&params->values), dev, work, links, params, op, err);
}
