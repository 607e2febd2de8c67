#include "daemon/engine/multigrid/multigrid.h"

#include <math.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/multigrid/mg_setup.h"

enum { ATTEMPTS = 3 }; /* at a setup, each with twice the relaxation of the one before */

/* The least rate of convergence of an evolved setup over that of the last one from noise, which may
 * have been at a heavier mass: what falls short is relaxed, or, relaxed, made anew. */
static const double least_kept = 0.9, least_relaxed = 0.7;

static bool is_cut(const qk_geom_t *geom) {
  const int32_t *split = geom->lat.split;
  return split[0] || split[1] || split[2] || split[3];
}

qk_status_t qk_mg_lay_level(const qk_mg_params_t *params, int l, const qk_geom_t *fine,
                            qk_comm_t *self, qk_geom_t *coarse, qk_err_t *err) {
  const qk_mg_level_params_t *p = &params->level[l];
  const qk_status_t status = qk_geom_coarsen(fine, p->block, p->nvec, coarse, err);
  if (status) return status;
  if (l + 2 == params->nlevel && is_cut(coarse) && coarse->volume <= params->whole)
    qk_geom_whole(coarse, self, coarse);
  return QK_OK;
}

/* Lattices of the levels; no operators yet but that of level 0. */
static qk_status_t lay_out(qk_mg_t *mg, qk_operator_t *op, qk_work_t *work, qk_err_t *err) {
  mg->level[0].geom = *op->dev->geom;
  mg->level[0].dev = *op->dev;
  mg->level[0].work = work;
  mg->level[0].op = op;
  qk_status_t status = qk_comm_self_create(&mg->self, err);
  if (status) return status;
  for (int l = 1; l < mg->nlevel; l++) {
    qk_mg_level_t *level = &mg->level[l];
    status =
        qk_mg_lay_level(&mg->params, l - 1, &mg->level[l - 1].geom, mg->self, &level->geom, err);
    if (status) return status;
    level->dev = *op->dev;
    level->dev.geom = &level->geom;
    if (level->geom.whole) level->dev.peers = NULL;
    status = qk_work_create(&level->dev, &level->work);
    if (status) return status;
  }
  return QK_OK;
}

/* The eigenvectors of the coarsest level are those of Mhat^+ Mhat. */
qk_status_t qk_mg_params_for(const qk_operator_t *op, qk_mg_params_t *params, qk_err_t *err) {
  if (!op->schur.is || params->deflate < 0) return QK_OK;
  if (params->deflate > 0)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "mg-deflate = %d: multigrid of a doublet has no deflation, it must be none",
                   params->deflate);
  params->deflate = -1;
  return QK_OK;
}

static qk_status_t begin(qk_operator_t *op, qk_work_t *work, const qk_mg_params_t *params,
                         qk_mg_t **mg, qk_err_t *err) {
  qk_comm_t *comm = op->dev->geom->comm;
  qk_mg_params_t complete = *params;
  qk_status_t status = qk_mg_params_for(op, &complete, err);
  if (status == QK_OK)
    status = qk_mg_params_complete(op->dev->geom, op->dev->ops->tuning, &complete, err);
  qk_mg_t *m = status ? NULL : qk_calloc(1, sizeof *m);
  if (!status && !m) status = QK_NO_MEMORY;
  if (m) {
    m->params = complete;
    m->nlevel = complete.nlevel;
    status = lay_out(m, op, work, err);
  }
  status = qk_comm_agree(comm, status, err);
  if (status) {
    qk_mg_destroy(m);
    return qk_fail(err, status, "multigrid: %s", qk_status_text(status));
  }
  *mg = m;
  return QK_OK;
}

static bool is_first_rank(const qk_mg_t *mg) {
  return qk_comm_rank(mg->level[0].geom.comm) == 0;
}

/* The numbers of vectors that all ranks have computed become those of rank 0: LAPACK need not give
 * all of them the same bits. */
static qk_status_t share_block(const qk_mg_t *mg, const qk_field_t *f) {
  const qk_device_t *dev = f->dev;
  qk_comm_t *comm = mg->level[0].geom.comm;
  void *host = NULL;
  qk_status_t status = qk_comm_agree(comm, dev->ops->alloc_host(dev->ctx, f->bytes, &host), NULL);
  if (!status) {
    qk_dev_copy(dev, host, f->v.data, f->bytes, QK_COPY_TO_HOST);
    qk_dev_sync(dev);
    status = qk_comm_bcast(comm, host, f->bytes, 0);
    qk_dev_copy(dev, f->v.data, host, f->bytes, QK_COPY_TO_DEVICE);
    qk_dev_sync(dev);
    status = qk_comm_agree(comm, status ? status : qk_dev_status(dev), NULL);
  }
  if (host) dev->ops->free_host(dev->ctx, host);
  return status;
}

/* Of the last level, where every rank has it whole. QK_NOT_CONVERGED: ranks found different numbers
 * of vectors. */
static qk_status_t share_deflation(const qk_mg_t *mg, const qk_deflation_t *d) {
  qk_comm_t *comm = mg->level[0].geom.comm;
  qk_field_t *const *block;
  const int n = qk_deflation_count(d), blocks = qk_deflation_blocks(d, &block);
  int first = n;
  qk_status_t status = qk_comm_bcast(comm, &first, sizeof first, 0);
  if (status) return status;
  status = qk_comm_agree(comm, first == n ? QK_OK : QK_NOT_CONVERGED, NULL);
  for (int b = 0; b < blocks && !status; b++) status = share_block(mg, block[b]);
  return status;
}

/* Of the last level, the same on all ranks; *deflation is NULL after an error. */
static qk_status_t create_deflation(qk_mg_t *mg, qk_progress_fn *progress, void *arg,
                                    qk_deflation_t **deflation, qk_err_t *err) {
  qk_mg_level_t *last = &mg->level[mg->nlevel - 1];
  qk_comm_t *comm = mg->level[0].geom.comm;
  const qk_lanczos_params_t p = {
      .n = mg->params.deflate, .prec = QK_SINGLE, .seed = mg->params.seed};
  qk_deflation_t *d = NULL;
  qk_status_t status =
      qk_deflation_create(last->op, last->work, &p, QK_SINGLE, progress, arg, &d, err);
  status = qk_comm_agree(comm, status, err);
  if (!status && last->geom.whole) status = share_deflation(mg, d);
  status = status ? status : qk_comm_agree(comm, qk_deflation_keep_images(d), err);
  if (status) qk_deflation_destroy(d);
  *deflation = status ? NULL : d;
  return status;
}

/* Of the vectors of the last level's operator as it is now. NULL stays where they do not
 * converge. */
static qk_status_t deflate_as_it_is(qk_mg_t *mg, qk_progress_fn *progress, void *arg,
                                    qk_deflation_t **deflation, qk_err_t *err) {
  qk_err_t why = {0};
  const qk_status_t status = create_deflation(mg, progress, arg, deflation, &why);
  if (status == QK_NOT_CONVERGED) {
    if (is_first_rank(mg)) qk_warn("multigrid", "coarsest level not deflated: %s", why.text);
    return QK_OK;
  }
  return status ? qk_fail(err, status, "%s", why.text) : QK_OK;
}

static void drop_deflation(qk_mg_t *mg) {
  qk_deflation_destroy(mg->deflation_minus);
  qk_deflation_destroy(mg->deflation);
  mg->deflation = mg->deflation_minus = NULL;
}

static qk_status_t deflate_minus(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  const qk_operator_t *op = mg->level[0].op;
  const qk_device_t *dev = op->dev;
  void *minus = NULL;
  if (!mg->deflation || op->twist == 0) return QK_OK;
  qk_status_t status =
      qk_comm_agree(dev->geom->comm, qk_mg_all_minus(dev, QK_MAX_RHS, &minus), err);
  if (!status) {
    qk_flavours_set(op, minus);
    status = deflate_as_it_is(mg, progress, arg, &mg->deflation_minus, err);
    qk_flavours_set(op, NULL);
  }
  if (minus) dev->ops->free(dev->ctx, minus);
  /* with one flavour alone deflated, the other would have nothing to begin with */
  if (!mg->deflation_minus) drop_deflation(mg);
  return status;
}

qk_status_t qk_mg_deflate(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  if (mg->params.deflate <= 0) return QK_OK;
  qk_status_t status = deflate_as_it_is(mg, progress, arg, &mg->deflation, err);
  return status ? status : deflate_minus(mg, progress, arg, err);
}

static void drop(qk_mg_t *mg) {
  drop_deflation(mg);
  qk_mg_drop_levels(mg, 0);
  qk_work_trim(mg->level[0].work);
}

/* Where null vectors come in turns, memory is short: nothing of a making is in double. */
static qk_status_t rest(const qk_mg_t *mg, bool on) {
  qk_operator_t *op = mg->level[0].op;
  if (mg->params.together <= 0 || op->ops->rest_double == NULL) return QK_OK;
  return qk_comm_agree(op->dev->geom->comm, op->ops->rest_double(op, on), NULL);
}

typedef qk_status_t making_fn(const qk_mg_making_t *making, qk_err_t *err);

static qk_status_t refine_finest(const qk_mg_making_t *making, qk_err_t *err) {
  return qk_mg_refine_level(making, 0, err);
}

static qk_status_t make(const qk_mg_making_t *making, making_fn *how, qk_err_t *err) {
  qk_status_t status = rest(making->mg, true);
  if (status) return status;
  status = how(making, err);
  const qk_status_t woken = rest(making->mg, false);
  return status ? status : woken;
}

static qk_status_t attempt(qk_mg_t *mg, qk_progress_fn *progress, void *arg, int n, qk_err_t *err) {
  const qk_mg_making_t making = {.mg = mg,
                                 .progress = progress,
                                 .arg = arg,
                                 .seed = mg->params.seed + 1000003 * (uint64_t)n,
                                 .effort = 1 << n};
  qk_status_t status = make(&making, qk_mg_make_levels, err);
  if (status) return status;
  status = qk_mg_deflate(mg, progress, arg, err);
  return status ? status : qk_mg_check(mg, progress, arg, err);
}

/* It is the measure of those that evolve from it. */
static void is_fresh(qk_mg_t *mg) {
  mg->fresh_residual = mg->level[0].health.null_residual;
  mg->fresh_convergence = mg->convergence;
}

qk_status_t qk_mg_create(qk_operator_t *op, qk_work_t *work, const qk_mg_params_t *params,
                         qk_progress_fn *progress, void *arg, qk_mg_t **mg, qk_err_t *err) {
  qk_mg_t *m;
  qk_err_t why = {0};
  const double start = qk_clock_now();
  qk_status_t status = begin(op, work, params, &m, err);
  if (status) return status;
  for (int n = 0; n < ATTEMPTS; n++) {
    why = (qk_err_t){0};
    status = attempt(m, progress, arg, n, &why);
    m->attempts = n + 1;
    if (status != QK_BREAKDOWN) break;
    drop(m);
    if (is_first_rank(m))
      qk_warn("multigrid", "setup %d of %d is no good: %s", n + 1, ATTEMPTS, why.text);
  }
  m->setup_seconds = qk_clock_now() - start;
  if (status) {
    qk_mg_destroy(m);
    return qk_fail(err, status, "%s", why.text[0] ? why.text : qk_status_text(status));
  }
  is_fresh(m);
  *mg = m;
  return QK_OK;
}

qk_status_t qk_mg_create_from(qk_operator_t *op, qk_work_t *work, const qk_mg_params_t *params,
                              qk_mg_vectors_fn *vectors, void *arg, qk_mg_t **mg, qk_err_t *err) {
  qk_mg_t *m;
  const double start = qk_clock_now();
  qk_status_t status = begin(op, work, params, &m, err);
  if (status) return status;
  const qk_mg_making_t making = {.mg = m, .vectors = vectors, .vectors_arg = arg};
  status = make(&making, qk_mg_make_levels, err);
  if (status) {
    qk_mg_destroy(m);
    return status;
  }
  m->restored = true;
  m->setup_seconds = qk_clock_now() - start;
  *mg = m;
  return QK_OK;
}

/* ---- evolution ------------------------------------------------------------------------------- */

/* QK_BREAKDOWN if its rate of convergence is less than `least` of the one from noise. */
static qk_status_t compare(const qk_mg_t *mg, double least, qk_err_t *err) {
  const double was = mg->fresh_convergence;
  if (!(was > 0 && was < 1) || log(mg->convergence) <= least * log(was)) return QK_OK;
  return qk_fail(err, QK_BREAKDOWN,
                 "multigrid: an iteration leaves %.3g of the residual of a random source, %.3g "
                 "after the last setup from noise",
                 mg->convergence, was);
}

/* One attempt at it, from the start or on from what is kept. */
static qk_status_t evolve_by(const qk_mg_making_t *making, making_fn *how, qk_err_t *err) {
  qk_mg_t *mg = making->mg;
  qk_status_t status = make(making, how, err);
  if (status) return status;
  status = qk_mg_deflate(mg, making->progress, making->arg, err);
  if (status) return status;
  status = qk_mg_check_restored(mg, making->progress, making->arg, err);
  if (status) return status;
  return compare(mg, mg->evolved == QK_MG_KEPT ? least_kept : least_relaxed, err);
}

static qk_status_t evolve(const qk_mg_making_t *making, qk_err_t *err) {
  qk_mg_t *mg = making->mg;
  mg->attempts = 1;
  qk_status_t status = evolve_by(making, qk_mg_make_levels, err);
  if (status != QK_BREAKDOWN || mg->evolved != QK_MG_KEPT) return status;
  if (is_first_rank(mg))
    qk_info("multigrid", "null vectors are relaxed, as they are no good as they are: %s",
            err->text);
  *err = (qk_err_t){0};
  drop_deflation(mg);
  mg->attempts = 2;
  return evolve_by(making, qk_mg_resume, err);
}

qk_status_t qk_mg_evolve(qk_operator_t *op, qk_work_t *work, const qk_mg_params_t *params,
                         const qk_mg_start_t *start, qk_progress_fn *progress, void *arg,
                         qk_mg_t **mg, qk_err_t *err) {
  qk_mg_t *m;
  const double begun = qk_clock_now();
  qk_status_t status = begin(op, work, params, &m, err);
  if (status) return status;
  m->fresh_residual = start->residual;
  m->fresh_convergence = start->convergence;
  const qk_mg_making_t making = {.mg = m,
                                 .progress = progress,
                                 .arg = arg,
                                 .start = start,
                                 .seed = m->params.seed,
                                 .effort = 1};
  status = evolve(&making, err);
  m->setup_seconds = qk_clock_now() - begun;
  if (status) {
    qk_mg_destroy(m);
    qk_work_trim(work);
    return status;
  }
  *mg = m;
  return QK_OK;
}

void qk_mg_destroy(qk_mg_t *mg) {
  if (!mg) return;
  drop_deflation(mg);
  qk_mg_drop_levels(mg, 0);
  for (int l = 1; l < mg->nlevel; l++) qk_work_destroy(mg->level[l].work);
  qk_comm_destroy(mg->self);
  qk_free(mg);
}

qk_status_t qk_mg_refine(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  const qk_mg_making_t making = {
      .mg = mg, .progress = progress, .arg = arg, .seed = mg->params.seed, .effort = 1};
  const double start = qk_clock_now();
  drop_deflation(mg);
  qk_status_t status = make(&making, refine_finest, err);
  if (!status) status = qk_mg_deflate(mg, progress, arg, err);
  for (int l = 0; l < mg->nlevel; l++)
    if (mg->level[l].work) qk_work_trim(mg->level[l].work);
  mg->setup_seconds += qk_clock_now() - start;
  return status;
}

int64_t qk_mg_bytes(const qk_mg_t *mg) {
  const qk_mg_level_t *last = &mg->level[mg->nlevel - 1];
  const qk_deflation_t *const deflation[] = {mg->deflation, mg->deflation_minus};
  int64_t bytes = 0;
  for (int f = 0; f < 2; f++)
    if (deflation[f])
      bytes += 2 * qk_deflation_bytes(&last->geom, last->op->system, QK_SINGLE,
                                      qk_deflation_count(deflation[f]));
  for (int l = 0; l + 1 < mg->nlevel; l++) {
    const qk_mg_level_t *level = &mg->level[l];
    const qk_coarse_params_t p = {.store = mg->params.level[l + 1].store,
                                  .eight = mg->params.level[l + 1].smoother_bits == 8,
                                  .twist = level[1].op ? level[1].op->twist : 0};
    if (level->null) bytes += (int64_t)level->null->bytes;
    if (level->down) bytes += (int64_t)level->dev.ops->transfer_bytes(&level->down->t);
    if (level[1].op) bytes += qk_coarse_operator_bytes(&level[1].geom, &p);
  }
  return bytes;
}
