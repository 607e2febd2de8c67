#include "daemon/base/assert.h"
#include "daemon/engine/setup/plan.h"

static qk_status_t fit_params(const qk_plan_input_t *input, const qk_mg_params_t *given,
                              const qk_tuning_t *tuning, int64_t free, qk_mg_params_t *mg,
                              qk_plan_t *plan, qk_err_t *err) {
  *mg = *given;
  *err = (qk_err_t){0};
  const qk_status_t status = qk_mg_params_complete(input->geom, tuning, mg, err);
  return status ? status : qk_plan_fit(input, free, plan, err);
}

/* With all null vectors at a time, or else with no more of them than are kept, or else in turns. */
static qk_status_t fit_together(const qk_plan_input_t *input, const qk_mg_params_t *given,
                                const qk_tuning_t *tuning, int64_t free, qk_mg_params_t *mg,
                                qk_plan_t *plan, qk_err_t *err) {
  qk_mg_params_t p = *given;
  qk_status_t status = fit_params(input, &p, tuning, free, mg, plan, err);
  if (status == QK_DEVICE_MEMORY && given->level[0].ntest == 0 && p.together <= 0) {
    p.level[0].ntest = mg->level[0].nvec;
    status = fit_params(input, &p, tuning, free, mg, plan, err);
  }
  if (status == QK_DEVICE_MEMORY && given->together == 0 &&
      mg->level[0].ntest == mg->level[0].nvec) {
    p.together = QK_TILE;
    status = fit_params(input, &p, tuning, free, mg, plan, err);
  }
  return status;
}

qk_status_t qk_plan_fit_vectors(const qk_plan_input_t *input, const qk_mg_params_t *given,
                                const qk_tuning_t *tuning, int64_t free, qk_mg_params_t *mg,
                                qk_plan_t *plan, qk_err_t *err) {
  qk_mg_params_t p = *given;
  qk_err_t why = {0};
  QK_ASSERT(input->mg == mg);
  if (mg->deflate < 0) p.deflate = mg->deflate; /* what the operator leaves no choice of */
  qk_status_t status = fit_together(input, &p, tuning, free, mg, plan, &why);
  if (status == QK_DEVICE_MEMORY && given->level[0].nvec == 0 &&
      mg->level[0].nvec > QK_MG_VECTORS_FEW) {
    p.level[0].nvec = QK_MG_VECTORS_FEW;
    status = fit_together(input, &p, tuning, free, mg, plan, &why);
  }
  if (status != QK_OK) *err = why;
  return status;
}
