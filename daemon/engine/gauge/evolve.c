#include "daemon/engine/gauge/evolve.h"

qk_status_t qk_evolve_check(const qk_evolve_params_t *params, const int global[4], qk_err_t *err) {
  if (!(params->beta > 0 && params->beta <= 1000))
    return qk_fail(err, QK_BAD_ARGUMENT, "beta = %g: must be above 0 and at most 1000",
                   params->beta);
  if (!(params->c1 >= -2 && params->c1 <= 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "c1 = %g: must be between -2 and 0", params->c1);
  if (params->or_per_hb < 0 || params->or_per_hb > QK_EVOLVE_MAX_OR)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "overrelaxations per heatbath = %d: must be between 0 and %d", params->or_per_hb,
                   QK_EVOLVE_MAX_OR);
  for (int mu = 0; params->c1 != 0 && mu < 4; mu++)
    if (global[mu] % 4 != 0)
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "global extent %d in direction %c: must be a multiple of 4 with rectangles "
                     "(c1 = %g)",
                     global[mu], "xyzt"[mu], params -> c1);
  return QK_OK;
}

int qk_evolve_halo(const qk_evolve_params_t *params) {
  return params->c1 == 0 ? 1 : 2;
}

static qk_status_t start(qk_gaugefield_t *field, bool hot, uint64_t seed) {
  const qk_device_t *dev = field->dev;
  const qk_link_start_args_t a = {
      .lat = dev->geom->lat, .u = field->v, .directions = 4, .hot = hot, .seed = seed};
  qk_status_t status = dev->ops->link_start(dev->ctx, &a);
  return status == QK_OK ? qk_gaugefield_exchange(field, 15) : status;
}

qk_status_t qk_evolve_cold(qk_gaugefield_t *field) {
  return start(field, false, 0);
}

qk_status_t qk_evolve_hot(qk_gaugefield_t *field, uint64_t seed) {
  return start(field, true, seed);
}

/* All links once: direction by direction and colour by colour. */
static qk_status_t pass(qk_gaugefield_t *field, const qk_evolve_params_t *params, int64_t sweep,
                        bool heatbath) {
  const qk_device_t *dev = field->dev;
  const int colours = params->c1 == 0 ? 2 : 4;
  qk_link_update_args_t a = {.lat = dev->geom->lat,
                             .u = field->v,
                             .heatbath = heatbath,
                             .beta = params->beta,
                             .c1 = params->c1,
                             .seed = params->seed,
                             .sweep = sweep};
  for (a.mu = 0; a.mu < 4; a.mu++)
    for (a.colour = 0; a.colour < colours; a.colour++) {
      qk_status_t status = dev->ops->link_update(dev->ctx, &a);
      if (status != QK_OK) return status;
      status = qk_gaugefield_exchange(field, 1u << a.mu);
      if (status != QK_OK) return status;
    }
  return QK_OK;
}

qk_status_t qk_evolve_sweep(qk_gaugefield_t *field, const qk_evolve_params_t *params,
                            int64_t sweep) {
  qk_status_t status = pass(field, params, sweep, true);
  for (int i = 0; i < params->or_per_hb && status == QK_OK; i++)
    status = pass(field, params, sweep, false);
  return status;
}
