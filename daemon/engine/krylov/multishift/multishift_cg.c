/* CG on blocks of shifted systems, by columns: pieces of multishift.c and multishift_refine.c. */
#include <math.h>
#include <string.h>

#include "daemon/engine/krylov/multishift/multishift_impl.h"

static size_t columns_of(const qk_shift_cg_t *cg) {
  return (size_t)cg->width * (size_t)qk_geom_slices(cg->dev->geom);
}

/* Twice as much on the host: what is on the device, and what will be. */
static qk_status_t make_mask(qk_shift_cg_t *cg) {
  const qk_ops_t *ops = cg->dev->ops;
  void *device = NULL, *host = NULL;
  qk_status_t status = ops->alloc(cg->dev->ctx, columns_of(cg), &device);
  if (status != QK_OK) return status;
  cg->mask = device;
  status = ops->alloc_host(cg->dev->ctx, 2 * columns_of(cg), &host);
  if (status != QK_OK) return status;
  cg->mask_host = host;
  memset(cg->mask_host, 0, 2 * columns_of(cg));
  return ops->zero(cg->dev->ctx, cg->mask, columns_of(cg), 0);
}

qk_status_t qk_shift_cg_init(qk_shift_cg_t *cg, const qk_multishift_params_t *p, qk_prec_t prec,
                             int width, int fields) {
  qk_field_t **field[QK_SHIFT_RESIDUALS + 2] = {&cg->p, &cg->q};
  for (int i = 0; i < fields; i++) field[2 + i] = &cg->r[i];
  cg->dev = p->system.dev;
  cg->width = width;
  cg->fields = fields;
  for (int i = 0; i < fields + 2; i++) {
    const qk_status_t status = qk_field_create(cg->dev, prec, width, p->system.subset, field[i]);
    if (status) return status;
  }
  const qk_status_t status = qk_scalars_init(&cg->scalars, cg->dev, QK_SHIFT_SCALARS, width);
  return status == QK_OK ? make_mask(cg) : status;
}

void qk_shift_cg_fini(qk_shift_cg_t *cg) {
  if (!cg->dev) return;
  if (cg->mask_host) cg->dev->ops->free_host(cg->dev->ctx, cg->mask_host);
  if (cg->mask) cg->dev->ops->free(cg->dev->ctx, cg->mask);
  qk_scalars_fini(&cg->scalars);
  for (int i = cg->fields - 1; i >= 0; i--) qk_field_destroy(cg->r[i]);
  qk_field_destroy(cg->q);
  qk_field_destroy(cg->p);
  *cg = (qk_shift_cg_t){.dev = NULL};
}

/* ---- scalars --------------------------------------------------------------------------------- */

const double *qk_shift_put(qk_shift_cg_t *cg, int at, const double *value) {
  for (int j = 0; j < cg->width; j++) qk_scalars_set(&cg->scalars, at, j, value[j], 0);
  qk_scalars_store(&cg->scalars, at, 1);
  return qk_scalars_at(&cg->scalars, at);
}

/* Columns that are on, on the device. */
static const uint8_t *upload_mask(qk_shift_cg_t *cg) {
  const size_t n = columns_of(cg), slices = n / (size_t)cg->width;
  uint8_t *now = cg->mask_host, *next = cg->mask_host + n;
  for (int j = 0; j < cg->width; j++) memset(next + (size_t)j * slices, cg->on[j], slices);
  if (memcmp(now, next, n) != 0) {
    memcpy(now, next, n);
    qk_dev_copy(cg->dev, cg->mask, now, n, QK_COPY_TO_DEVICE);
    qk_dev_sync(cg->dev);
  }
  return cg->mask;
}

void qk_shift_norms(qk_shift_cg_t *cg, const qk_field_t *f, double *norm) {
  qk_scalars_reduce(&cg->scalars, QK_SHIFT_NORM, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}});
  qk_scalars_fetch(&cg->scalars, QK_SHIFT_NORM, 1);
  for (int j = 0; j < cg->width; j++)
    norm[j] = sqrt(qk_scalars_host(&cg->scalars, QK_SHIFT_NORM, j)[0]);
}

void qk_shift_scale(qk_shift_cg_t *cg, const qk_field_t *f, const double *value, bool invert) {
  double factor[QK_MAX_RHS];
  for (int j = 0; j < cg->width; j++) {
    const bool is = value[j] > 0 && isfinite(value[j]);
    factor[j] = !is ? 1 : invert ? 1 / value[j] : value[j];
  }
  const double *c = qk_shift_put(cg, QK_SHIFT_FACTOR, factor);
  qk_dev_blas(cg->dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {f->v}, .c = {c}});
}

bool qk_shift_any(const qk_shift_cg_t *cg) {
  return memchr(cg->on, 1, (size_t)cg->width) != NULL;
}

/* ---- iterations ------------------------------------------------------------------------------ */

const qk_field_t *qk_shift_residual(const qk_shift_cg_t *cg, int n, int i) {
  return cg->r[(cg->at + cg->fields - n + i) % cg->fields];
}

/* |r_i|^2 of the step that begins at `first`. */
static int norm_at(const qk_shift_cg_t *cg, int i) {
  return QK_SHIFT_RR + (cg->first + i) % (QK_SHIFT_RESIDUALS + 1);
}

void qk_shift_start(qk_shift_cg_t *cg) {
  cg->at = cg->first = 0;
  for (int i = 1; i < cg->fields; i++) /* columns that are never on are not NaN */
    qk_dev_blas(cg->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {cg->r[i]->v}});
  qk_scalars_reduce(&cg->scalars, QK_SHIFT_RR, 1, QK_BLAS_NORM2,
                    (qk_blas_args_t){.f = {cg->r[0]->v}});
  qk_scalars_fetch(&cg->scalars, QK_SHIFT_RR, 1);
  for (int j = 0; j < cg->width; j++) {
    cg->rr[0][j] = qk_scalars_host(&cg->scalars, QK_SHIFT_RR, j)[0];
    cg->on[j] = cg->on[j] && isfinite(cg->rr[0][j]) && cg->rr[0][j] > 0;
  }
}

/* Iteration i of a step but q. */
static void iterate(qk_shift_cg_t *cg, int i, const uint8_t *on) {
  qk_scalars_t *s = &cg->scalars;
  const qk_spinor_t p = cg->p->v, q = cg->q->v, r = cg->r[cg->at]->v;
  const double *pq = qk_scalars_at(s, QK_SHIFT_PQ + i), *now = qk_scalars_at(s, norm_at(cg, i)),
               *next = qk_scalars_at(s, norm_at(cg, i + 1));
  qk_scalars_reduce(s, QK_SHIFT_PQ + i, 1, QK_BLAS_CDOT, (qk_blas_args_t){.f = {p, q}, .mask = on});
  if (cg->fields == 1) {
    qk_scalars_reduce(s, norm_at(cg, i + 1), 1, QK_BLAS_CG_XR,
                      (qk_blas_args_t){.f = {cg->x->v, r, p, q}, .c = {now, pq}, .mask = on});
  } else {
    cg->at = (cg->at + 1) % cg->fields;
    qk_scalars_reduce(s, norm_at(cg, i + 1), 1, QK_BLAS_CG_R,
                      (qk_blas_args_t){.f = {cg->r[cg->at]->v, r, q}, .c = {now, pq}, .mask = on});
  }
  qk_dev_blas(cg->dev, QK_BLAS_CG_P,
              (qk_blas_args_t){.f = {p, cg->r[cg->at]->v}, .c = {next, now}, .mask = on});
}

void qk_shift_advance(qk_shift_cg_t *cg, int n, qk_shift_apply_fn apply, void *self) {
  qk_scalars_t *s = &cg->scalars;
  const uint8_t *on = upload_mask(cg);
  for (int i = 0; i < n; i++) {
    apply(self, cg->q, cg->p);
    iterate(cg, i, on);
  }
  qk_scalars_fetch(s, QK_SHIFT_PQ, QK_SHIFT_SCALARS - QK_SHIFT_PQ);
  for (int j = 0; j < cg->width; j++) {
    if (!cg->on[j]) continue;
    for (int i = 0; i <= n; i++) cg->rr[i][j] = qk_scalars_host(s, norm_at(cg, i), j)[0];
    for (int i = 0; i < n; i++) {
      const double alpha = cg->rr[i][j] / qk_scalars_host(s, QK_SHIFT_PQ + i, j)[0];
      cg->alpha[i][j] = isfinite(alpha) && alpha > 0 ? alpha : 0;
    }
  }
  cg->first = (cg->first + n) % (QK_SHIFT_RESIDUALS + 1);
}

void qk_shift_apply(qk_multishift_t *m, qk_field_t *out, const qk_field_t *in, double shift) {
  const qk_hermitian_system_t *a = &m->params.system;
  if (a->apply_shifted) {
    a->apply_shifted(a->self, out, in, shift);
    return;
  }
  a->apply(a->self, out, in);
  if (shift == 0) return;
  qk_scalars_fill(&m->cg.scalars, QK_SHIFT_SHIFT, shift);
  const double *c = qk_scalars_at(&m->cg.scalars, QK_SHIFT_SHIFT);
  qk_dev_blas(m->dev, QK_BLAS_AXPY, (qk_blas_args_t){.f = {out->v, in->v}, .c = {c}});
}
