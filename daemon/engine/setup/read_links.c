#include "daemon/engine/setup/read_links.h"

#include <inttypes.h>
#include <math.h>

#include "daemon/base/log.h"
#include "daemon/engine/action/open.h"
#include "daemon/engine/gauge/fix/gauge_fix.h"

/* Plaquettes of the same links in another gauge differ by rounding. */
static const double PLAQUETTE_ROUNDING = 1e-11;
static const qk_fix_params_t FIX = {.max_iterations = 20000, .check_every = 20};

static bool on_root(const qk_device_t *dev) {
  return qk_comm_rank(dev->geom->comm) == 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What of the file and of the boundary does not matter. */
static void tell_open(const qk_device_t *dev, const qk_gauge_check_t *check) {
  const int last = dev->geom->global[3] - 1;
  if (!on_root(dev)) return;
  qk_info("setup",
          "open boundary: fields are 0 on t = 0 and t = %d, the phase of t has no effect; links "
          "from t = %d to t = 0 are %s",
          last, last, check->open_boundary ? "zero, as in the file" : "not used");
}

static qk_status_t read_and_judge(const qk_load_t *load, const qk_device_t *dev,
                                  const qk_gauge_info_t *info, qk_clocks_t *clocks,
                                  qk_progress_fn *progress, void *arg, double *links,
                                  qk_gauge_check_t *check, qk_err_t *err) {
  qk_status_t status =
      qk_gauge_read(load->gauge, info, dev->geom, links, check, progress, arg, err);
  if (status != QK_OK) return status;
  qk_clocks_beside(clocks, "file", check->times.read);
  qk_clocks_beside(clocks, "decode", check->times.decode);
  const char *fault = info->checksum_fault;
  if (info->has_checksum && !check->checksum_ok && on_root(dev))
    qk_warn("setup", "%s: its checksum is ignored: %s", load->gauge,
            fault[0] ? fault : "the links give another one");
  const bool open = qk_open_of(&load->values).is;
  status = qk_gauge_judge(info, check, open, err);
  if (status == QK_OK && open) tell_open(dev, check);
  return status;
}

/* ---- fixing ---------------------------------------------------------------------------------- */

typedef struct fixing {
  const qk_device_t *dev;
  qk_fix_params_t params;
  qk_gaugefield_t *u, *g;
  double first; /* theta before */
  qk_progress_fn *progress;
  void *arg;
} fixing_t;

/* The digits of theta that are won, of those that are wanted. */
static qk_status_t watch(void *arg, const qk_fix_point_t *point, bool *stop) {
  fixing_t *f = arg;
  if (point->iteration == 0) f->first = point->theta;
  const double won = log(f->first / point->theta), wanted = log(f->first / f->params.tol);
  const int64_t percent = won > 0 && wanted > 0 ? (int64_t)(100 * fmin(won / wanted, 1)) : 0;
  f->progress(f->arg, "fix", percent, 100);
  *stop = false;
  return QK_OK;
}

static qk_status_t iterate(fixing_t *f, double *links, qk_fix_point_t *point) {
  qk_status_t status = qk_gaugefield_create(f->dev, 1, &f->u);
  status = status ? status : qk_gaugefield_create_sites(f->dev, 1, &f->g);
  status = status ? status : qk_gaugefield_share(f->g);
  status = status ? status : qk_gaugefield_import(f->u, links);
  status = status ? status : qk_fix_start(f->g, false, 0);
  status = status ? status : qk_fix_run(f->u, f->g, &f->params, watch, f, point);
  if (status != QK_OK || !(point->theta <= f->params.tol)) return status;
  status = qk_fix_apply(f->u, f->g);
  return status ? status : qk_gaugefield_export(f->u, links);
}

static qk_status_t judge_gauge(const fixing_t *f, const char *name, const qk_fix_point_t *point,
                               qk_err_t *err) {
  if (point->theta <= f->params.tol) {
    if (on_root(f->dev))
      qk_info("setup", "%s gauge: theta %.3g, functional %.12f after %" PRId64 " iterations", name,
              point->theta, point->functional, point->iteration);
    return QK_OK;
  }
  return qk_fail(err, QK_NOT_CONVERGED,
                 "fix-gauge: theta = %.3g in %s gauge after %" PRId64 " iterations: above %g; ask "
                 "for less, or use a file of quark-gauge fix",
                 point->theta, name, point->iteration, f->params.tol);
}

/* The links in place of those that were read. */
static qk_status_t fix_gauge(const qk_load_t *load, const qk_device_t *dev,
                             qk_progress_fn *progress, void *arg, double *links,
                             qk_gauge_check_t *check, qk_err_t *err) {
  const char *name = load->fix.landau ? "Landau" : "Coulomb";
  const qk_gauge_check_t before = *check;
  qk_fix_point_t point = {0};
  fixing_t f = {.dev = dev, .params = FIX, .progress = progress, .arg = arg};
  f.params.gauge = load->fix.landau ? QK_FIX_LANDAU : QK_FIX_COULOMB;
  f.params.tol = load->fix.theta;
  f.params.omega = qk_fix_omega(dev->geom, f.params.gauge);
  if (qk_open_of(&load->values).is)
    return qk_fail(err, QK_UNSUPPORTED,
                   "fix-gauge: the gauge of links with an open boundary cannot be fixed");
  progress(arg, "fix", 0, 100);
  qk_status_t status = iterate(&f, links, &point);
  qk_gaugefield_destroy(f.g);
  qk_gaugefield_destroy(f.u);
  if (status != QK_OK) return qk_device_explain(dev, status, err);
  status = judge_gauge(&f, name, &point, err);
  if (status != QK_OK) return status;
  status = qk_gauge_measure(dev->geom, links, check, err);
  if (status != QK_OK) return status;
  check->checksum_ok = before.checksum_ok;
  check->times = before.times;
  if (fabs(check->plaquette - before.plaquette) < PLAQUETTE_ROUNDING) return QK_OK;
  return qk_fail(err, QK_INTERNAL, "fix-gauge: the plaquette became %.15g from %.15g",
                 check->plaquette, before.plaquette);
}

qk_status_t qk_read_links(const qk_load_t *load, const qk_device_t *dev,
                          const qk_gauge_info_t *info, qk_clocks_t *clocks,
                          qk_progress_fn *progress, void *arg, double *links,
                          qk_gauge_check_t *check, qk_err_t *err) {
  const qk_status_t status =
      read_and_judge(load, dev, info, clocks, progress, arg, links, check, err);
  if (status != QK_OK || !(load->fix.landau || load->fix.coulomb)) return status;
  return fix_gauge(load, dev, progress, arg, links, check, err);
}
