/*
 * Null vectors in turns: some are made, become the next vectors of the prolongator, and are given
 * back. With as many at a time as there are it is one turn.
 */
#include "daemon/engine/multigrid/mg_vectors.h"

#include <math.h>

#include "daemon/base/log.h"
#include "daemon/engine/lattice/scalars.h"
#include "daemon/engine/multigrid/cycle.h"
#include "daemon/engine/multigrid/nullspace.h"

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

/* The vectors of a turn, of all. */
typedef struct turn {
  int first, n, all;
} turn_t;

static qk_status_t vectors_create(const qk_mg_t *mg, int l, int n, qk_field_t **v, qk_err_t *err) {
  qk_field_t *f = NULL;
  const qk_device_t *dev = &mg->level[l].dev;
  qk_status_t status = qk_field_create(dev, QK_SINGLE, n, QK_FULL, &f);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status) {
    qk_field_destroy(f);
    return qk_fail(err, status, "%d null vectors of level %d: %s", n, l, qk_status_text(status));
  }
  *v = f;
  return QK_OK;
}

/* ---- relaxed vectors ------------------------------------------------------------------------- */

static uint64_t seed_of(const qk_mg_making_t *m, int l, int first) {
  return m->seed + 1000 * (uint64_t)l + 10000019 * (uint64_t)first;
}

/* Relaxes the vectors from `first` on from what they are. keep: qk_relax_params_t. */
static qk_status_t relax(const qk_mg_making_t *m, int l, int first, bool keep, qk_field_t *v,
                         qk_err_t *err) {
  const qk_mg_level_params_t *p = &m->mg->params.level[l];
  const qk_mg_level_t *level = &m->mg->level[l];
  const int iterations =
      m->start ? qk_mg_resumed_iterations(p->setup_iterations) : m->effort * p->setup_iterations;
  const qk_relax_params_t params = {.method = "bicgstab",
                                    .prec = p->setup_prec,
                                    .iterations = iterations,
                                    .tol = p->setup_tol,
                                    .seed = seed_of(m, l, first),
                                    .keep = keep,
                                    .progress = m->progress,
                                    .arg = m->arg};
  double fall;
  qk_status_t status = qk_nullspace_relax(level->op, level->work, &params, v, &fall, err);
  qk_work_trim(level->work);
  if (!status)
    qk_debug("multigrid", "level %d: null vectors %d to %d relaxed by %.2e", l, first,
             first + v->v.nrhs - 1, fall);
  return status;
}

qk_status_t qk_mg_relax(const qk_mg_making_t *m, int l, int first, qk_field_t *v, qk_err_t *err) {
  const qk_status_t status = qk_nullspace_random(&m->mg->level[l].dev, seed_of(m, l, first), v);
  return status ? status : relax(m, l, first, false, v, err);
}

static qk_status_t relaxed(const qk_mg_making_t *m, int l, turn_t t, qk_field_t **vectors,
                           qk_err_t *err) {
  qk_status_t status = vectors_create(m->mg, l, t.n, vectors, err);
  return status ? status : qk_mg_relax(m, l, t.first, *vectors, err);
}

static qk_status_t given(const qk_mg_making_t *m, int l, turn_t t, qk_field_t **vectors,
                         qk_err_t *err) {
  const qk_device_t *dev = &m->mg->level[l].dev;
  *vectors = m->vectors(m->vectors_arg, l, t.first, t.n, dev);
  return qk_comm_agree(dev->geom->comm, *vectors ? QK_OK : QK_IO_ERROR, err);
}

/* ---- vectors improved by a cycle of the present hierarchy ------------------------------------ */

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

/* v = null vectors in terms of the prolongator of level l. */
static qk_status_t prolonged(qk_mg_t *mg, int l, const qk_field_t *null, qk_field_t **v,
                             qk_err_t *err) {
  qk_status_t status = vectors_create(mg, l, null->v.nrhs, v, err);
  if (status) return status;
  qk_prolongator_prolong(mg->level[l].down, *v, null, false);
  return QK_OK;
}

/* r = right-hand side of the system of M e = v, for vectors v of level l. */
static qk_status_t prepare(qk_mg_t *mg, int l, const qk_field_t *null, qk_field_t **r,
                           qk_err_t *err) {
  qk_mg_level_t *level = &mg->level[l];
  qk_operator_t *op = level->op;
  qk_field_t *v = NULL;
  qk_status_t status = prolonged(mg, l, null, &v, err);
  if (status) return status;
  if (qk_dev_ok(&level->dev))
    qk_dev_note(&level->dev, qk_field_create(&level->dev, QK_SINGLE, v->v.nrhs, op->system, r));
  status = qk_comm_agree(level->geom.comm, qk_dev_status(&level->dev), err);
  if (!status) status = op->ops->prepare(op, *r, v);
  qk_field_destroy(v);
  qk_work_trim(level->work);
  return status;
}

/* r = a copy of it in another precision; nothing where it has that one. */
static qk_status_t convert(qk_field_t **r, qk_prec_t prec, qk_err_t *err) {
  qk_field_t *from = *r, *to;
  const qk_device_t *dev = from->dev;
  if (from->v.prec == prec) return QK_OK;
  qk_status_t status = qk_field_create(dev, prec, from->v.nrhs, from->v.subset, &to);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status) return status;
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, from->v}});
  qk_dev_sync(dev);
  qk_field_destroy(from);
  *r = to;
  return qk_dev_status(dev);
}

/* r becomes the cycle of it, which has its precision. */
static qk_status_t run_cycle(qk_cycle_t *cycle, qk_field_t **r, qk_err_t *err) {
  qk_field_t *in = *r, *z = NULL;
  const qk_device_t *dev = in->dev;
  qk_status_t status = qk_field_create(dev, in->v.prec, in->v.nrhs, in->v.subset, &z);
  status = qk_comm_agree(dev->geom->comm, status, err);
  status = status ? status : qk_cycle_apply(cycle, z, in, NULL, NULL);
  if (status) {
    qk_field_destroy(z);
    return status;
  }
  *r = z;
  qk_dev_sync(dev);
  qk_field_destroy(in);
  return qk_dev_status(dev);
}

/* r = cycle of the hierarchy from level l downwards on r. */
static qk_status_t apply_cycle(qk_mg_t *mg, int l, qk_field_t **r, qk_err_t *err) {
  qk_mg_t part = part_of(mg, l);
  qk_cycle_t *cycle = NULL;
  qk_status_t status = convert(r, l == 0 ? mg->params.level[0].smoother_prec : QK_SINGLE, err);
  if (status) return status;
  status = qk_cycle_create(&part, (*r)->v.prec, (*r)->v.nrhs, &cycle, err);
  if (status == QK_OK) status = run_cycle(cycle, r, err);
  qk_cycle_destroy(cycle);
  for (int k = l; k < mg->nlevel; k++) qk_work_trim(mg->level[k].work);
  return status ? status : convert(r, QK_SINGLE, err);
}

/* e from the solution r of the system. The vectors are computed again, because the cycle has used
 * their memory. */
static qk_status_t reconstruct(qk_mg_t *mg, int l, const qk_field_t *null, const qk_field_t *r,
                               qk_field_t **e, qk_err_t *err) {
  qk_mg_level_t *level = &mg->level[l];
  qk_operator_t *op = level->op;
  qk_field_t *v = NULL;
  qk_status_t status = vectors_create(mg, l, null->v.nrhs, e, err);
  if (status) return status;
  status = prolonged(mg, l, null, &v, err);
  if (!status) {
    if (qk_dev_ok(&level->dev)) qk_dev_note(&level->dev, op->ops->reconstruct(op, *e, r, v));
    qk_dev_sync(&level->dev);
    status = qk_dev_status(&level->dev);
  }
  qk_field_destroy(v);
  return status;
}

/* r: of the caller. */
static qk_status_t solve_with(qk_mg_t *mg, int l, const qk_field_t *null, qk_field_t **r,
                              qk_field_t **e, qk_err_t *err) {
  qk_status_t status = prepare(mg, l, null, r, err);
  if (status) return status;
  status = apply_cycle(mg, l, r, err);
  return status ? status : reconstruct(mg, l, null, *r, e, err);
}

static qk_status_t solve(qk_mg_t *mg, int l, const qk_field_t *null, qk_field_t **e,
                         qk_err_t *err) {
  qk_field_t *r = NULL;
  const qk_status_t status = solve_with(mg, l, null, &r, e, err);
  qk_field_destroy(r);
  return qk_comm_agree(mg->level[l].geom.comm, status, err);
}

/* Columns of the null vectors of level l. */
static qk_status_t columns_of(const qk_mg_level_t *level, turn_t t, qk_field_t **null) {
  const qk_field_t *all = level->null;
  qk_status_t status = qk_field_create(all->dev, all->v.prec, t.n, QK_FULL, null);
  if (status) return status;
  for (int i = 0; i < t.n; i++) {
    const qk_rhs_copy_args_t args = {
        .to = (*null)->v, .from = all->v, .to_rhs = i, .from_rhs = t.first + i};
    if (qk_dev_ok(all->dev)) qk_dev_note(all->dev, all->dev->ops->rhs_copy(all->dev->ctx, &args));
  }
  return qk_dev_status(all->dev);
}

typedef qk_status_t from_null_fn(qk_mg_t *mg, int l, const qk_field_t *null, qk_field_t **v,
                                 qk_err_t *err);

/* What `make` makes of the null vectors of the turn. */
static qk_status_t from_null(qk_mg_t *mg, int l, turn_t t, from_null_fn *make, qk_field_t **v,
                             qk_err_t *err) {
  const qk_mg_level_t *level = &mg->level[l];
  qk_field_t *some = NULL;
  if (t.n == level->null->v.nrhs) return make(mg, l, level->null, v, err);
  qk_status_t status = qk_comm_agree(level->geom.comm, columns_of(level, t, &some), err);
  if (status == QK_OK) status = make(mg, l, some, v, err);
  qk_field_destroy(some);
  return status;
}

/* e = approximate solution of M e = v by multigrid, for the vectors v of the turn. */
static qk_status_t improved(const qk_mg_making_t *m, int l, turn_t t, qk_field_t **e,
                            qk_err_t *err) {
  return from_null(m->mg, l, t, solve, e, err);
}

/* The vectors of the turn, relaxed further. */
static qk_status_t resumed(const qk_mg_making_t *m, int l, turn_t t, qk_field_t **v,
                           qk_err_t *err) {
  const qk_status_t status = from_null(m->mg, l, t, prolonged, v, err);
  if (status) return status;
  if (t.n == t.all) qk_mg_drop_levels(m->mg, l);
  return relax(m, l, t.first, true, *v, err);
}

/* ---- the turns ------------------------------------------------------------------------------- */

static void drop(qk_mg_vectors_t *made) {
  qk_field_destroy(made->null);
  qk_prolongator_destroy(made->down);
  *made = (qk_mg_vectors_t){0};
}

/* n: columns that the vectors are made of. */
static qk_status_t reserve(qk_mg_t *mg, int l, int n, qk_mg_vectors_t *made, qk_err_t *err) {
  const qk_mg_level_params_t *p = &mg->params.level[l];
  qk_mg_level_t *here = &mg->level[l], *next = &mg->level[l + 1];
  qk_status_t status =
      qk_prolongator_reserve(&here->dev, &next->dev, p->block, p->prolongator, &made->down, err);
  if (status) return status;
  status = qk_field_create(&next->dev, QK_SINGLE, n, QK_FULL, &made->null);
  return qk_comm_agree(here->geom.comm, status, err);
}

/* Adds |M v| / |v| of the columns. */
static qk_status_t add_residuals(const qk_mg_t *mg, int l, const qk_field_t *v, double *sum,
                                 qk_err_t *err) {
  const qk_mg_level_t *level = &mg->level[l];
  double image[QK_MAX_RHS], norm[QK_MAX_RHS];
  qk_field_t *w = NULL;
  qk_status_t status = vectors_create(mg, l, v->v.nrhs, &w, err);
  if (status) return status;
  qk_operator_apply(level->op, w, v);
  qk_mg_norm2(w, image);
  qk_mg_norm2(v, norm);
  status = qk_dev_status(&level->dev);
  qk_work_trim(level->work);
  qk_field_destroy(w);
  for (int i = 0; !status && i < v->v.nrhs; i++) *sum += sqrt(image[i] / norm[i]);
  return qk_comm_agree(level->geom.comm, status, err);
}

/* Columns of unit length, so that none counts for more than another. */
static qk_status_t normalise(const qk_field_t *v) {
  const qk_device_t *dev = v->dev;
  double norm2[QK_MAX_RHS], factor[QK_MAX_RHS][2] = {{0}};
  const size_t bytes = (size_t)v->v.nrhs * sizeof factor[0];
  void *c = NULL;
  qk_mg_norm2(v, norm2);
  qk_status_t status = qk_dev_status(dev);
  for (int i = 0; !status && i < v->v.nrhs; i++)
    factor[i][0] = norm2[i] > 0 ? 1 / sqrt(norm2[i]) : 0;
  status = status ? status : dev->ops->alloc(dev->ctx, bytes, &c);
  if (status) return status;
  qk_dev_copy(dev, c, factor, bytes, QK_COPY_TO_DEVICE);
  qk_dev_blas(dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {v->v}, .c = {c}});
  qk_dev_sync(dev);
  dev->ops->free(dev->ctx, c);
  return qk_dev_status(dev);
}

static qk_status_t condense(const qk_mg_t *mg, int l, qk_field_t *v, qk_mg_vectors_t *made,
                            qk_err_t *err) {
  const qk_status_t status = qk_comm_agree(mg->level[l].geom.comm, normalise(v), err);
  return status ? status : qk_prolongator_condense(made->down, v, made->null, err);
}

static qk_status_t join(const qk_mg_making_t *m, int l, turn_t t, qk_field_t *v,
                        qk_mg_vectors_t *made, qk_err_t *err) {
  qk_status_t status = add_residuals(m->mg, l, v, &made->residual, err);
  if (status) return status;
  if (!made->down) status = reserve(m->mg, l, t.all, made, err);
  if (status) return status;
  return t.all > m->mg->params.level[l].nvec
             ? condense(m->mg, l, v, made, err)
             : qk_prolongator_join(made->down, t.first, v, made->null, err);
}

typedef qk_status_t source_fn(const qk_mg_making_t *m, int l, turn_t t, qk_field_t **v,
                              qk_err_t *err);

static qk_status_t take_turn(const qk_mg_making_t *m, int l, turn_t t, source_fn *source,
                             qk_mg_vectors_t *made, qk_err_t *err) {
  qk_field_t *v = NULL;
  const qk_status_t status = source(m, l, t, &v, err);
  const qk_status_t joined = status ? status : join(m, l, t, v, made, err);
  qk_field_destroy(v);
  return joined;
}

static qk_status_t take_turns(const qk_mg_making_t *m, int l, source_fn *source,
                              qk_mg_vectors_t *made, qk_err_t *err) {
  const qk_mg_level_params_t *p = &m->mg->params.level[l];
  const int n = source == relaxed ? p->ntest
                : source == given ? p->nvec
                                  : m->mg->level[l].null->v.nrhs;
  const int most = n > p->nvec ? n : qk_mg_together(m->mg, l);
  /* resumed vectors first give back memory, which the new prolongator then takes */
  qk_status_t status = source == resumed ? QK_OK : reserve(m->mg, l, n, made, err);
  for (int first = 0; !status && first < n; first += most) {
    const turn_t t = {first, n - first < most ? n - first : most, n};
    status = take_turn(m, l, t, source, made, err);
  }
  made->residual /= n;
  return status;
}

qk_status_t qk_mg_make_vectors(const qk_mg_making_t *m, int l, qk_mg_from_t from,
                               qk_mg_vectors_t *made, qk_err_t *err) {
  static source_fn *const sources[] = {[QK_MG_NOISE] = relaxed,
                                       [QK_MG_GIVEN] = given,
                                       [QK_MG_RESUMED] = resumed,
                                       [QK_MG_REFINED] = improved};
  *made = (qk_mg_vectors_t){0};
  const qk_status_t status = take_turns(m, l, sources[from], made, err);
  if (status) drop(made);
  return status;
}

qk_status_t qk_mg_null_residual(qk_mg_t *mg, int l, double *residual, qk_err_t *err) {
  const int n = mg->level[l].null->v.nrhs, most = qk_mg_together(mg, l);
  qk_status_t status = QK_OK;
  double sum = 0;
  for (int first = 0; !status && first < n; first += most) {
    const turn_t t = {first, n - first < most ? n - first : most, n};
    qk_field_t *v = NULL;
    status = from_null(mg, l, t, prolonged, &v, err);
    status = status ? status : add_residuals(mg, l, v, &sum, err);
    qk_field_destroy(v);
  }
  if (status) return status;
  *residual = sum / n;
  return QK_OK;
}
