#include "daemon/engine/eigen/chebyshev.h"

#include <math.h>

#include "daemon/base/mem.h"

enum { SCALARS = 4 };

struct qk_chebyshev {
  qk_operator_t *op;
  qk_work_t *work;
  qk_chebyshev_params_t p;
  double *scalar; /* device: [SCALARS][QK_COLUMNS_MAX] complex */
};

/* -centre, 1 / half width, twice that, -1. */
static qk_status_t set_scalars(qk_chebyshev_t *c) {
  const double middle = (c->p.top + c->p.window) / 2, half = (c->p.top - c->p.window) / 2;
  const double value[SCALARS] = {-middle, 1 / half, 2 / half, -1};
  const qk_device_t *dev = c->op->dev;
  double host[SCALARS][QK_COLUMNS_MAX][2];
  void *memory = NULL;
  const qk_status_t status = dev->ops->alloc(dev->ctx, sizeof host, &memory);
  if (status) return status;
  c->scalar = memory;
  for (int k = 0; k < SCALARS; k++)
    for (int i = 0; i < QK_COLUMNS_MAX; i++) {
      host[k][i][0] = value[k];
      host[k][i][1] = 0;
    }
  qk_dev_copy(dev, c->scalar, host, sizeof host, QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

qk_status_t qk_chebyshev_create(qk_operator_t *op, qk_work_t *work, const qk_chebyshev_params_t *p,
                                qk_chebyshev_t **chebyshev) {
  qk_chebyshev_t *c = qk_calloc(1, sizeof *c);
  if (!c) return QK_NO_MEMORY;
  c->op = op;
  c->work = work;
  c->p = *p;
  const qk_status_t status = set_scalars(c);
  if (status)
    qk_chebyshev_destroy(c);
  else
    *chebyshev = c;
  return status;
}

void qk_chebyshev_destroy(qk_chebyshev_t *c) {
  if (!c) return;
  if (c->scalar) c->op->dev->ops->free(c->op->dev->ctx, c->scalar);
  qk_free(c);
}

static void apply(const qk_chebyshev_t *c, qk_field_t *out, const qk_field_t *in, bool dagger) {
  const qk_device_t *dev = c->op->dev;
  if (qk_dev_ok(dev)) qk_dev_note(dev, c->op->ops->apply_system(c->op, out, in, dagger, NULL));
}

void qk_chebyshev_image(const qk_chebyshev_t *c, qk_field_t *out, const qk_field_t *in) {
  if (qk_operator_is_positive(c->op)) {
    apply(c, out, in, false);
    return;
  }
  qk_field_t *t = qk_work_take(c->work, in->v.prec, qk_field_nrhs(in), c->op->system);
  apply(c, t, in, false);
  apply(c, out, t, true);
  qk_work_release(c->work, t);
}

static double *scalar(const qk_chebyshev_t *c, int k) {
  return c->scalar + (size_t)k * QK_COLUMNS_MAX * 2;
}

/* t_0 = in, t_1 = (A - c)/e in, t_{i+1} = 2 (A - c)/e t_i - t_{i-1}; t_i is in f[i % 2], and
 * f[order % 2] is out. */
void qk_chebyshev_apply(const qk_chebyshev_t *c, qk_field_t *out, const qk_field_t *in) {
  const qk_device_t *dev = c->op->dev;
  const int nrhs = qk_field_nrhs(in), order = c->p.order;
  qk_field_t *other = qk_work_take(c->work, in->v.prec, nrhs, c->op->system);
  qk_field_t *image = qk_work_take(c->work, in->v.prec, nrhs, c->op->system), *f[2];
  f[order % 2] = out;
  f[1 - order % 2] = other;
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {f[0]->v, in->v}});
  for (int i = 0; i < order; i++) {
    const qk_spinor_t now = f[i % 2]->v, next = f[1 - i % 2]->v;
    qk_chebyshev_image(c, image, f[i % 2]);
    qk_dev_blas(dev, QK_BLAS_AXPY, (qk_blas_args_t){.f = {image->v, now}, .c = {scalar(c, 0)}});
    qk_dev_blas(dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {image->v}, .c = {scalar(c, i ? 2 : 1)}});
    if (i == 0)
      qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {next, image->v}});
    else
      qk_dev_blas(dev, QK_BLAS_XPAY, (qk_blas_args_t){.f = {next, image->v}, .c = {scalar(c, 3)}});
  }
  qk_work_release(c->work, image);
  qk_work_release(c->work, other);
}

/* T_n(-x) = cosh(n acosh x) for n even. */
double qk_chebyshev_inverse(const qk_chebyshev_params_t *p, double value) {
  if (!(value > 1)) return p->window;
  const double x = cosh(acosh(value) / p->order);
  return (p->top + p->window) / 2 - x * (p->top - p->window) / 2;
}
