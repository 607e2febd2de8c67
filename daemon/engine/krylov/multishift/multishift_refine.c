/*
 * Corrections of the shifted solutions, several shifts as columns of one block:
 *
 *   r_k = b - (A + shift_k) x_k in double,  x_k += e_k,  (A + shift_k) e_k = r_k by CG
 *
 * Each column decides by its own numbers when it has had enough, and waits for the others.
 */
#include <math.h>
#include <string.h>

#include "daemon/engine/krylov/multishift/multishift_impl.h"

enum { STALLS = 3, AT_ONCE = 4 };

/* How far one correction goes: what rounding leaves of |r|. */
static const double fall_of[] = {[QK_DOUBLE] = 1e-8, [QK_SINGLE] = 1e-4, [QK_HALF] = 0};
_Static_assert(sizeof fall_of == QK_PRECS * sizeof *fall_of, "each precision has its limit");

/* ---- fields ---------------------------------------------------------------------------------- */

static void close_block(qk_shift_refine_t *f) {
  qk_field_destroy(f->cg.x);
  qk_shift_cg_fini(&f->cg);
}

static qk_status_t open_block(qk_multishift_t *m, int shifts) {
  qk_shift_refine_t *f = &m->refine;
  const qk_multishift_params_t *p = &m->params;
  const int width = shifts * p->nrhs;
  qk_status_t status = qk_shift_cg_init(&f->cg, p, p->inner, width, 1);
  if (status == QK_OK)
    status = qk_field_create(m->dev, p->inner, width, p->system.subset, &f->cg.x);
  status = qk_comm_agree(m->dev->geom->comm, status, NULL);
  if (status != QK_OK) close_block(f);
  return status;
}

/* A block of as many shifts as there is room for. */
static qk_status_t open_largest(qk_multishift_t *m) {
  qk_shift_refine_t *f = &m->refine;
  qk_status_t status = open_block(m, f->most);
  while (status == QK_DEVICE_MEMORY && f->most > 1) {
    f->most = (f->most + 1) / 2;
    status = open_block(m, f->most);
  }
  return status;
}

void qk_shift_refine_begin(qk_multishift_t *m) {
  const int slices = qk_geom_slices(m->dev->geom), room = QK_COLUMNS_MAX / slices;
  const int most = (room < QK_MAX_RHS ? room : QK_MAX_RHS) / m->params.nrhs;
  m->refine = (qk_shift_refine_t){.most = most < m->params.nshift ? most : m->params.nshift};
}

void qk_shift_refine_end(qk_multishift_t *m) {
  close_block(&m->refine);
  m->refine.correcting = false;
}

/* Columns of shift number k of the block to or from a field of nrhs columns. */
static void move(qk_multishift_t *m, int k, const qk_field_t *block, const qk_field_t *field,
                 bool in) {
  const qk_device_t *dev = m->dev;
  const int columns = field->v.nrhs;
  for (int v = 0; v < qk_field_vectors(field); v++) {
    const qk_field_t a = qk_field_vector(block, v), b = qk_field_vector(field, v);
    for (int j = 0; j < columns && qk_dev_ok(dev); j++) {
      const qk_rhs_copy_args_t args = {.to = in ? a.v : b.v,
                                       .from = in ? b.v : a.v,
                                       .to_rhs = in ? k * columns + j : j,
                                       .from_rhs = in ? j : k * columns + j};
      qk_dev_note(dev, dev->ops->rhs_copy(dev->ctx, &args));
    }
  }
}

/* ---- residuals ------------------------------------------------------------------------------- */

void qk_shift_add(qk_multishift_t *m, int k, const qk_field_t *e) {
  const qk_shift_refiner_t *refiner = &m->params.refiner;
  if (refiner->residual) {
    if (qk_dev_ok(m->dev)) refiner->add(refiner->self, k, e);
  } else {
    qk_dev_blas(m->dev, QK_BLAS_ADD, (qk_blas_args_t){.f = {m->to[k]->v, e->v}});
  }
}

/* r = b - (A + shift) x in double, or what there is in its place, and its norms. */
static void residual(qk_multishift_t *m, qk_field_t *r, int k, double *norm) {
  const qk_shift_refiner_t *refiner = &m->params.refiner;
  if (!refiner->residual) {
    qk_shift_apply(m, r, m->to[k], m->params.shift[k]);
    qk_dev_blas(m->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {r->v, m->b->v, r->v}});
  } else if (qk_dev_ok(m->dev)) {
    refiner->residual(refiner->self, k, r);
  }
  qk_shift_norms(&m->cg, r, norm);
}

/* What is told of column j of shift k, of residual norm. */
static void settle(qk_multishift_t *m, int k, int j, double norm, int64_t refined) {
  const double b = m->norm_b[j], relative = b > 0 ? norm / b : b == 0 ? 0 : NAN;
  m->result[k][j] = (qk_shifted_t){.status = !isfinite(b)           ? QK_NAN_INPUT
                                             : norm <= m->wanted[j] ? QK_OK
                                                                    : QK_NOT_CONVERGED,
                                   .residual = relative,
                                   .iterations = m->steps[k][j] + refined,
                                   .together = m->steps[m->base][j],
                                   .refined = refined};
}

/* Whether column c, of residual norm, is corrected once more; its target then. */
static bool goes_on(const qk_multishift_t *m, qk_shift_refine_t *f, int c, double norm) {
  const double wanted = m->wanted[c % m->params.nrhs];
  if (norm > 0.5 * f->best[c]) f->stalls[c]++;
  f->best[c] = fmin(f->best[c], norm);
  f->norm[c] = norm;
  f->target[c] = 0.9 * wanted / norm;
  return norm > wanted && f->stalls[c] < STALLS && isfinite(norm) && f->spent[c] < m->max_iter;
}

/* Residuals of all shifts of the block, and of those that go on the columns r, of norm 1. True
 * where there are some. */
static qk_status_t look(qk_multishift_t *m, bool *any) {
  qk_shift_refine_t *f = &m->refine;
  const int nrhs = m->params.nrhs;
  qk_work_t *work = m->params.system.work;
  qk_field_t *r = qk_work_take(work, QK_DOUBLE, nrhs, m->params.system.subset);
  bool on[QK_MAX_RHS] = {false};
  qk_status_t status = QK_OK;
  *any = false;
  for (int k = 0; k < f->n && status == QK_OK; k++) {
    double norm[QK_MAX_RHS] = {0};
    bool some = false;
    residual(m, r, f->first + k, norm);
    for (int j = 0; j < nrhs; j++) {
      const int c = k * nrhs + j;
      on[c] = goes_on(m, f, c, norm[j]);
      some |= on[c];
      settle(m, f->first + k, j, norm[j], f->spent[c]);
    }
    if (!some || !qk_dev_ok(m->dev)) continue;
    if (!f->cg.dev) status = open_largest(m);
    if (status == QK_OK && k >= f->most) { /* there was room for fewer: those first */
      f->n = f->most;
      break;
    }
    qk_shift_scale(&m->cg, r, norm, true);
    if (status == QK_OK) move(m, k, f->cg.r[0], r, true);
    *any = true;
  }
  qk_work_release(work, r);
  memcpy(f->cg.on, on, sizeof on);
  return status;
}

/* ---- corrections ----------------------------------------------------------------------------- */

/* What each column adds to the shift that is common to all. */
static void put_shifts(qk_multishift_t *m) {
  qk_shift_refine_t *f = &m->refine;
  double rest[QK_MAX_RHS] = {0};
  f->common = m->params.system.apply_shifted ? m->params.shift[f->first] : 0;
  f->differ = false;
  for (int c = 0; c < f->n * m->params.nrhs; c++) {
    rest[c] = m->params.shift[f->first + c / m->params.nrhs] - f->common;
    f->differ |= rest[c] != 0;
  }
  qk_shift_put(&f->cg, QK_SHIFT_SHIFT, rest);
}

static void begin_correction(qk_multishift_t *m) {
  qk_shift_cg_t *cg = &m->refine.cg;
  qk_dev_blas(m->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {cg->x->v}});
  qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {cg->p->v, cg->r[0]->v}});
  put_shifts(m);
  qk_shift_start(cg);
  m->refine.correcting = true;
}

/* q = (A + shift_k) p in the columns of shift k. */
static void apply_block(void *self, qk_field_t *q, const qk_field_t *p) {
  qk_multishift_t *m = self;
  const qk_shift_refine_t *f = &m->refine;
  const qk_hermitian_system_t *a = &m->params.system;
  if (a->apply_shifted)
    a->apply_shifted(a->self, q, p, f->common);
  else
    a->apply(a->self, q, p);
  if (f->differ)
    qk_dev_blas(
        m->dev, QK_BLAS_AXPY,
        (qk_blas_args_t){.f = {q->v, p->v}, .c = {qk_scalars_at(&f->cg.scalars, QK_SHIFT_SHIFT)}});
}

/* A step; how many iterations it had. */
static int iterate(qk_multishift_t *m) {
  qk_shift_refine_t *f = &m->refine;
  qk_shift_cg_t *cg = &f->cg;
  double least[QK_MAX_RHS];
  int64_t left = AT_ONCE;
  for (int c = 0; c < cg->width; c++) {
    least[c] = fmax(f->target[c], fall_of[m->params.inner]);
    if (cg->on[c] && m->max_iter - f->spent[c] < left) left = m->max_iter - f->spent[c];
  }
  const int n = (int)left;
  qk_shift_advance(cg, n, apply_block, m);
  for (int c = 0; c < cg->width; c++) {
    for (int i = 0; i < n && cg->on[c]; i++) {
      const double rr = cg->rr[i + 1][c];
      f->spent[c]++;
      cg->on[c] =
          cg->alpha[i][c] > 0 && isfinite(rr) && sqrt(rr) > least[c] && f->spent[c] < m->max_iter;
    }
  }
  m->cost.refined += n;
  return n;
}

/* x_k += |r_k| e_k. Columns without a correction get 0: their e is 0. */
static void end_correction(qk_multishift_t *m) {
  qk_shift_refine_t *f = &m->refine;
  const int nrhs = m->params.nrhs;
  qk_field_t *e = qk_work_take(m->params.system.work, QK_DOUBLE, nrhs, m->params.system.subset);
  for (int k = 0; k < f->n; k++) {
    move(m, k, f->cg.x, e, false);
    qk_shift_scale(&m->cg, e, f->norm + (size_t)k * (size_t)nrhs, false);
    qk_shift_add(m, f->first + k, e);
  }
  qk_work_release(m->params.system.work, e);
  f->correcting = false;
}

/* The next shifts, of which nothing is known yet. */
static void begin_block(qk_multishift_t *m) {
  qk_shift_refine_t *f = &m->refine;
  const int left = m->params.nshift - f->first;
  f->n = left < f->most ? left : f->most;
  for (int c = 0; c < QK_MAX_RHS; c++) {
    f->best[c] = INFINITY;
    f->stalls[c] = 0;
    f->spent[c] = 0;
  }
}

qk_status_t qk_shift_refine_step(qk_multishift_t *m, int iterations, bool *over) {
  qk_shift_refine_t *f = &m->refine;
  *over = false;
  for (int n = 0; n < iterations && qk_dev_ok(m->dev);) {
    if (f->correcting && qk_shift_any(&f->cg)) {
      n += iterate(m);
      continue;
    }
    if (f->correcting) end_correction(m);
    if (f->n == 0) begin_block(m);
    bool any = false;
    const qk_status_t status = look(m, &any);
    if (status != QK_OK) return status;
    if (any) {
      begin_correction(m);
      continue;
    }
    f->first += f->n;
    f->n = 0;
    if (f->first == m->params.nshift) {
      *over = true;
      break;
    }
  }
  return qk_dev_status(m->dev);
}
