#include "daemon/engine/multigrid/mg_setup.h"

#include <math.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/engine/lattice/scalars.h"
#include "daemon/engine/multigrid/cycle.h"
#include "daemon/engine/multigrid/nullspace.h"

static void report(const qk_mg_making_t *m, const char *phase, int level) {
  if (m->progress) m->progress(m->arg, phase, level, m->mg->nlevel - 1);
}

void qk_mg_norm2(const qk_field_t *f, double *norm2) {
  qk_scalars_t s;
  if (!qk_dev_ok(f->dev)) return;
  qk_dev_note(f->dev, qk_scalars_init(&s, f->dev, 1, f->v.nrhs));
  if (qk_dev_ok(f->dev)) {
    qk_dev_blas(f->dev, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}, .red = qk_scalars_at(&s, 0)});
    qk_scalars_total(&s, 0, 1);
    for (int i = 0; i < f->v.nrhs; i++) norm2[i] = qk_scalars_host(&s, 0, i)[0];
  }
  qk_scalars_fini(&s);
}

void qk_mg_drop_levels(qk_mg_t *mg, int l) {
  for (int k = mg->nlevel - 1; k > l; k--) {
    qk_mg_level_t *level = &mg->level[k];
    if (level->op) level->op->ops->destroy(level->op);
    level->op = NULL;
    qk_field_destroy(mg->level[k - 1].null);
    mg->level[k - 1].null = NULL;
    qk_prolongator_destroy(mg->level[k - 1].down);
    mg->level[k - 1].down = NULL;
    if (level->work) qk_work_trim(level->work);
  }
}

/* ---- vectors --------------------------------------------------------------------------------- */

static qk_status_t vectors_create(const qk_mg_t *mg, int l, qk_field_t **v, qk_err_t *err) {
  qk_field_t *f = NULL;
  const qk_device_t *dev = &mg->level[l].dev;
  qk_status_t status = qk_field_create(dev, QK_SINGLE, mg->params.level[l].nvec, QK_FULL, &f);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status) {
    qk_field_destroy(f);
    return qk_fail(err, status, "%d null vectors of level %d: %s", mg->params.level[l].nvec, l,
                   qk_status_text(status));
  }
  *v = f;
  return QK_OK;
}

qk_status_t qk_mg_relax(const qk_mg_making_t *m, int l, qk_field_t *v, qk_err_t *err) {
  const qk_mg_level_params_t *p = &m->mg->params.level[l];
  const qk_mg_level_t *level = &m->mg->level[l];
  const qk_relax_params_t relax = {.method = "bicgstab",
                                   .prec = p->setup_prec,
                                   .iterations = m->effort * p->setup_iterations,
                                   .tol = p->setup_tol,
                                   .seed = m->seed + 1000 * (uint64_t)l,
                                   .progress = m->progress,
                                   .arg = m->arg};
  double fall;
  qk_status_t status = qk_nullspace_random(&level->dev, relax.seed, v);
  if (status) return status;
  status = qk_nullspace_relax(level->op, level->work, &relax, v, &fall, err);
  qk_work_trim(level->work);
  if (!status) qk_debug("multigrid", "level %d: null vectors relaxed by %.2e", l, fall);
  return status;
}

/* Mean |M v| / |v| of the columns; w: like v, overwritten. */
static qk_status_t null_residual(const qk_mg_t *mg, int l, const qk_field_t *v, qk_field_t *w,
                                 double *mean) {
  double image[QK_MAX_RHS], norm[QK_MAX_RHS], sum = 0;
  qk_operator_apply(mg->level[l].op, w, v);
  qk_mg_norm2(w, image);
  qk_mg_norm2(v, norm);
  qk_status_t status = qk_dev_status(&mg->level[l].dev);
  qk_work_trim(mg->level[l].work);
  if (status) return status;
  for (int i = 0; i < v->v.nrhs; i++) sum += sqrt(image[i] / norm[i]);
  *mean = sum / v->v.nrhs;
  return QK_OK;
}

/* ---- from vectors downwards ------------------------------------------------------------------ */

static qk_status_t make_level(const qk_mg_making_t *m, int l, qk_err_t *err);

/* The prolongator from v, which becomes orthonormal; v as it was goes to raw. */
static qk_status_t orthonormalise(qk_mg_t *mg, int l, qk_field_t *v, qk_field_t *raw,
                                  qk_err_t *err) {
  const qk_mg_level_params_t *p = &mg->params.level[l];
  qk_mg_level_t *here = &mg->level[l];
  qk_status_t status = null_residual(mg, l, v, raw, &here->health.null_residual);
  if (status) return status;
  qk_dev_blas(&here->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {raw->v, v->v}});
  status = qk_dev_status(&here->dev);
  if (status) return status;
  return qk_prolongator_create(&here->dev, &mg->level[l + 1].dev, p->block, p->prolongator, v,
                               &here->down, err);
}

/* The vectors in terms of the prolongator. */
static qk_status_t project(qk_mg_t *mg, int l, const qk_field_t *raw) {
  qk_mg_level_t *here = &mg->level[l];
  qk_status_t status = qk_field_create(&mg->level[l + 1].dev, QK_SINGLE, mg->params.level[l].nvec,
                                       QK_FULL, &here->null);
  if (status) return status;
  qk_prolongator_restrict(here->down, here->null, raw);
  qk_dev_sync(&here->dev);
  return qk_dev_status(&here->dev);
}

/* Prolongator of level l, and v in terms of it. v is taken. */
static qk_status_t make_prolongator(qk_mg_t *mg, int l, qk_field_t *v, qk_err_t *err) {
  qk_field_t *raw = NULL;
  qk_status_t status = vectors_create(mg, l, &raw, err);
  if (!status) status = orthonormalise(mg, l, v, raw, err);
  qk_field_destroy(v);
  if (!status) status = project(mg, l, raw);
  qk_field_destroy(raw);
  return qk_comm_agree(mg->level[l].geom.comm, status, err);
}

/* v is taken. */
static qk_status_t make_below(const qk_mg_making_t *m, int l, qk_field_t *v, qk_err_t *err) {
  qk_mg_t *mg = m->mg;
  qk_mg_level_t *here = &mg->level[l], *next = &mg->level[l + 1];
  const qk_coarse_params_t coarse = {.store = mg->params.level[l + 1].store,
                                     .exact = l + 2 < mg->nlevel};
  const double start = qk_clock_now();
  qk_status_t status = make_prolongator(mg, l, v, err);
  if (status) return status;
  report(m, "coarse operator", l);
  status = qk_coarse_create(here->op, here->down, &next->dev, next->work, &coarse, &next->op, err);
  qk_work_trim(here->work);
  if (status) return status;
  here->setup_seconds += qk_clock_now() - start;
  return l + 2 < mg->nlevel ? make_level(m, l + 1, err) : QK_OK;
}

/* Level l and those below it as a hierarchy of their own; all of it borrowed. */
static qk_mg_t part_of(const qk_mg_t *mg, int l) {
  qk_mg_t part = {.params = mg->params, .nlevel = mg->nlevel - l};
  part.params.nlevel = part.nlevel;
  for (int k = 0; k < part.nlevel; k++) {
    part.level[k] = mg->level[k + l];
    part.params.level[k] = mg->params.level[k + l];
  }
  return part;
}

/* r = right-hand side of the system of M e = v, for the vectors v of level l. */
static qk_status_t prepare(qk_mg_t *mg, int l, qk_field_t **r, qk_err_t *err) {
  qk_mg_level_t *level = &mg->level[l];
  qk_operator_t *op = level->op;
  qk_field_t *v;
  qk_status_t status = vectors_create(mg, l, &v, err);
  if (status) return status;
  qk_prolongator_prolong(level->down, v, level->null, false);
  if (qk_dev_ok(&level->dev))
    qk_dev_note(&level->dev, qk_field_create(&level->dev, QK_SINGLE, v->v.nrhs, op->system, r));
  status = qk_comm_agree(level->geom.comm, qk_dev_status(&level->dev), err);
  if (!status) status = op->ops->prepare(op, *r, v);
  qk_field_destroy(v);
  qk_work_trim(level->work);
  return status;
}

/* r = cycle of the hierarchy from level l downwards on r. */
static qk_status_t apply_cycle(qk_mg_t *mg, int l, qk_field_t *r, qk_err_t *err) {
  qk_mg_t part = part_of(mg, l);
  qk_cycle_t *cycle = NULL;
  qk_status_t status = qk_cycle_create(&part, QK_SINGLE, r->v.nrhs, &cycle, err);
  if (!status) status = qk_cycle_apply(cycle, r, r, NULL);
  qk_cycle_destroy(cycle);
  for (int k = l; k < mg->nlevel; k++) qk_work_trim(mg->level[k].work);
  return status;
}

/* e from the solution r of the system. The vectors are computed again, because the cycle has used
 * their memory. */
static qk_status_t reconstruct(qk_mg_t *mg, int l, const qk_field_t *r, qk_field_t **e,
                               qk_err_t *err) {
  qk_mg_level_t *level = &mg->level[l];
  qk_operator_t *op = level->op;
  qk_field_t *v;
  qk_status_t status = vectors_create(mg, l, &v, err);
  if (status) return status;
  status = vectors_create(mg, l, e, err);
  if (!status) {
    qk_prolongator_prolong(level->down, v, level->null, false);
    if (qk_dev_ok(&level->dev)) qk_dev_note(&level->dev, op->ops->reconstruct(op, *e, r, v));
    qk_dev_sync(&level->dev);
    status = qk_dev_status(&level->dev);
  }
  qk_field_destroy(v);
  return status;
}

static qk_status_t solve(qk_mg_t *mg, int l, qk_field_t **r, qk_field_t **e, qk_err_t *err) {
  qk_status_t status = prepare(mg, l, r, err);
  if (status) return status;
  status = apply_cycle(mg, l, *r, err);
  return status ? status : reconstruct(mg, l, *r, e, err);
}

/* e = approximate solution of M e = v by multigrid, for the vectors v of level l. */
static qk_status_t improve(qk_mg_t *mg, int l, qk_field_t **e, qk_err_t *err) {
  qk_field_t *r = NULL, *out = NULL;
  qk_status_t status = solve(mg, l, &r, &out, err);
  qk_field_destroy(r);
  status = qk_comm_agree(mg->level[l].geom.comm, status, err);
  if (status)
    qk_field_destroy(out);
  else
    *e = out;
  return status;
}

qk_status_t qk_mg_refine_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_field_t *v;
  const double start = qk_clock_now();
  report(m, "refinement", l);
  qk_status_t status = improve(m->mg, l, &v, err);
  if (status) return status;
  m->mg->level[l].setup_seconds += qk_clock_now() - start;
  qk_mg_drop_levels(m->mg, l);
  return make_below(m, l, v, err);
}

/* The vectors of level l, and everything below it. */
static qk_status_t make_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_field_t *v;
  qk_status_t status;
  const double start = qk_clock_now();
  report(m, "null vectors", l);
  if (m->vectors) {
    v = m->vectors(m->vectors_arg, l, &m->mg->level[l].dev);
    status = qk_comm_agree(m->mg->level[l].geom.comm, v ? QK_OK : QK_IO_ERROR, err);
  } else {
    status = vectors_create(m->mg, l, &v, err);
    if (status) return status;
    status = qk_mg_relax(m, l, v, err);
  }
  if (status) {
    qk_field_destroy(v);
    return status;
  }
  m->mg->level[l].setup_seconds += qk_clock_now() - start;
  status = make_below(m, l, v, err);
  for (int pass = 0; !status && !m->vectors && pass < m->mg->params.level[l].setup_passes; pass++)
    status = qk_mg_refine_level(m, l, err);
  if (!status && l > 0) qk_coarse_drop_exact(m->mg->level[l].op);
  return status;
}

qk_status_t qk_mg_make_levels(const qk_mg_making_t *m, qk_err_t *err) {
  for (int l = 0; l < m->mg->nlevel; l++) m->mg->level[l].setup_seconds = 0;
  return make_level(m, 0, err);
}
