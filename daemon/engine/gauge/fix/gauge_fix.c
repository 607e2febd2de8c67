#include "daemon/engine/gauge/fix/gauge_fix.h"

#include <math.h>

#include "daemon/base/mem.h"

enum { SUMS = 2 }; /* of a time slice: Re tr w, tr D D^+ */

static int directions_of(qk_fix_gauge_t gauge) {
  return gauge == QK_FIX_COULOMB ? 3 : 4;
}

double qk_fix_omega(const qk_geom_t *geom, qk_fix_gauge_t gauge) {
  const double volume = (double)geom->volume;
  const double l = gauge == QK_FIX_COULOMB ? cbrt(volume / geom->global[3]) : sqrt(sqrt(volume));
  return 2 / (1 + 0.42 / l);
}

qk_status_t qk_fix_start(qk_gaugefield_t *g, bool random, uint64_t seed) {
  const qk_device_t *dev = g->dev;
  const qk_link_start_args_t a = {
      .lat = dev->geom->lat, .u = g->v, .directions = 1, .hot = random, .seed = seed};
  qk_status_t status = dev->ops->link_start(dev->ctx, &a);
  return status == QK_OK ? qk_gaugefield_exchange(g, 1) : status;
}

/* From the sums of all slices. A theta that is no number stays one. */
static qk_fix_point_t judge(const double *sum, const qk_geom_t *geom, qk_fix_gauge_t gauge) {
  const int slices = geom->global[3], directions = directions_of(gauge);
  const double volume = (double)geom->volume, slice = volume / slices;
  double trace = 0, all = 0, worst = 0;
  for (int t = 0; t < slices; t++) {
    const double theta = sum[SUMS * t + 1] / (3 * slice);
    trace += sum[SUMS * t];
    all += sum[SUMS * t + 1];
    if (theta > worst || isnan(theta)) worst = theta;
  }
  /* each link is in the w of two sites */
  return (qk_fix_point_t){.functional = trace / (6 * directions * volume),
                          .theta = gauge == QK_FIX_COULOMB ? worst : all / (3 * volume)};
}

/* sum: [time slices][SUMS], work space. */
static qk_status_t look(const qk_gaugefield_t *u, const qk_gaugefield_t *g, qk_fix_gauge_t gauge,
                        double *sum, qk_fix_point_t *point) {
  const qk_device_t *dev = u->dev;
  const qk_geom_t *geom = dev->geom;
  const int slices = geom->global[3];
  for (int i = 0; i < SUMS * slices; i++) sum[i] = 0;
  const qk_fix_sums_args_t a = {.lat = geom->lat,
                                .u = u->v,
                                .g = g->v.data,
                                .directions = directions_of(gauge),
                                .sum = sum + (ptrdiff_t)SUMS * geom->lat.offset[3]};
  qk_status_t status = dev->ops->fix_sums(dev->ctx, &a);
  if (status != QK_OK) return status;
  status = qk_comm_sum(geom->comm, sum, SUMS * slices);
  if (status != QK_OK) return status;
  const int64_t iteration = point->iteration;
  *point = judge(sum, geom, gauge);
  point->iteration = iteration;
  return QK_OK;
}

/* Ranks agree. */
static qk_status_t alloc_sums(const qk_geom_t *geom, double **sum) {
  double *p = qk_malloc((size_t)geom->global[3] * SUMS * sizeof *p);
  qk_status_t status = qk_comm_agree(geom->comm, p == NULL ? QK_NO_MEMORY : QK_OK, NULL);
  if (status == QK_OK) {
    *sum = p;
  } else {
    qk_free(p);
  }
  return status;
}

qk_status_t qk_fix_measure(const qk_gaugefield_t *u, const qk_gaugefield_t *g, qk_fix_gauge_t gauge,
                           qk_fix_point_t *point) {
  double *sum = NULL;
  qk_fix_point_t found = {0};
  qk_status_t status = alloc_sums(u->dev->geom, &sum);
  if (status != QK_OK) return status;
  status = look(u, g, gauge, sum, &found);
  if (status == QK_OK) *point = found;
  qk_free(sum);
  return status;
}

static qk_status_t iterate(const qk_gaugefield_t *u, qk_gaugefield_t *g,
                           const qk_fix_params_t *params, int64_t iteration) {
  const qk_device_t *dev = u->dev;
  qk_fix_relax_args_t a = {.lat = dev->geom->lat,
                           .u = u->v,
                           .g = g->v.data,
                           .directions = directions_of(params->gauge),
                           .first = (int)(iteration % 3),
                           .omega = params->omega};
  for (a.parity = 0; a.parity < 2; a.parity++) {
    qk_status_t status = dev->ops->fix_relax(dev->ctx, &a);
    if (status != QK_OK) return status;
    status = qk_gaugefield_exchange(g, 1);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

static qk_status_t run(const qk_gaugefield_t *u, qk_gaugefield_t *g, const qk_fix_params_t *params,
                       qk_fix_watch_fn *watch, void *arg, double *sum, qk_fix_point_t *point) {
  bool stop = false;
  for (;;) {
    const bool last = point->iteration >= params->max_iterations;
    if (last || point->iteration % params->check_every == 0) {
      qk_status_t status = look(u, g, params->gauge, sum, point);
      if (status == QK_OK && watch != NULL) status = watch(arg, point, &stop);
      if (status != QK_OK) return status;
      if (last || stop || point->theta <= params->tol || !isfinite(point->theta)) return QK_OK;
    }
    qk_status_t status = iterate(u, g, params, point->iteration);
    if (status != QK_OK) return status;
    point->iteration++;
  }
}

qk_status_t qk_fix_run(const qk_gaugefield_t *u, qk_gaugefield_t *g, const qk_fix_params_t *params,
                       qk_fix_watch_fn *watch, void *arg, qk_fix_point_t *point) {
  double *sum = NULL;
  qk_fix_point_t found = {0};
  qk_status_t status = alloc_sums(u->dev->geom, &sum);
  if (status != QK_OK) return status;
  status = run(u, g, params, watch, arg, sum, &found);
  if (status == QK_OK) *point = found;
  qk_free(sum);
  return status;
}

qk_status_t qk_fix_apply(qk_gaugefield_t *u, const qk_gaugefield_t *g) {
  const qk_device_t *dev = u->dev;
  const qk_fix_rotate_args_t a = {.lat = dev->geom->lat, .u = u->v, .g = g->v.data};
  qk_status_t status = dev->ops->fix_rotate(dev->ctx, &a);
  return status == QK_OK ? qk_gaugefield_exchange(u, 15) : status;
}
