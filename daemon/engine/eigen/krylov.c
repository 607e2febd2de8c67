#include "daemon/engine/eigen/krylov.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { B = QK_EIGEN_BLOCK, SCALARS = 4 };

/* A pivot of the Gram matrix this far below its diagonal element is rounding. */
static const double dependent[] = {1e-20, 1e-9};

qk_status_t qk_krylov_init(qk_krylov_t *k, qk_operator_t *op, qk_work_t *work, qk_prec_t prec,
                           int nblock, uint64_t seed) {
  *k = (qk_krylov_t){.op = op, .work = work, .dev = op->dev, .prec = prec, .seed = seed};
  void *c = NULL, *scalar = NULL, *mask = NULL;
  size_t n = (size_t)nblock * B;
  qk_status_t status = k->dev->ops->alloc(k->dev->ctx, n * n * sizeof *k->c, &c);
  k->c = c;
  if (!status) status = k->dev->ops->alloc(k->dev->ctx, SCALARS * B * 2 * sizeof(double), &scalar);
  k->scalar = scalar;
  if (!status) status = k->dev->ops->alloc(k->dev->ctx, B, &mask);
  k->mask = mask;
  k->nblock = nblock;
  for (int i = 0; i <= nblock && !status; i++)
    status = qk_field_create(k->dev, prec, B, QK_EVEN, &k->v[i]);
  return status;
}

void qk_krylov_fini(qk_krylov_t *k) {
  for (int i = k->nblock; i >= 0; i--) qk_field_destroy(k->v[i]);
  if (k->mask) k->dev->ops->free(k->dev->ctx, k->mask);
  if (k->scalar) k->dev->ops->free(k->dev->ctx, k->scalar);
  if (k->c) k->dev->ops->free(k->dev->ctx, k->c);
}

static qk_status_t move(qk_krylov_t *k, void *to, const void *from, size_t bytes, qk_copy_t kind) {
  qk_status_t status = k->dev->ops->copy(k->dev->ctx, to, from, bytes, kind, 0);
  return status ? status : k->dev->ops->queue_sync(k->dev->ctx, 0);
}

static qk_status_t blas(qk_krylov_t *k, qk_blas_op_t op, const qk_blas_args_t *args) {
  return k->dev->ops->blas(k->dev->ctx, op, args);
}

/* The same scalar for all columns, on the device. */
static qk_status_t set_scalar(qk_krylov_t *k, int which, const double value[B]) {
  double host[B][2];
  for (int i = 0; i < B; i++) {
    host[i][0] = value[i];
    host[i][1] = 0;
  }
  return move(k, k->scalar + which * B * 2, host, sizeof host, QK_COPY_TO_DEVICE);
}

/* ---- products with the basis ------------------------------------------------------------------------- */

static qk_status_t dots_of(qk_krylov_t *k, qk_field_t *const *v, int n, const qk_field_t *y,
                           double complex *c) {
  qk_basis_args_t a = {.n = n, .y = y->v, .c = (double *)k->c};
  size_t count = (size_t)n * B * B;
  for (int i = 0; i < n; i++) a.v[i] = v[i]->v;
  qk_status_t status = k->dev->ops->basis_dot(k->dev->ctx, &a);
  if (!status) status = move(k, c, k->c, count * sizeof *c, QK_COPY_TO_HOST);
  if (!status && qk_comm_size(k->dev->geom->comm) > 1)
    status = qk_comm_sum(k->dev->geom->comm, (double *)c, (int)(2 * count));
  return status;
}

qk_status_t qk_krylov_dots(qk_krylov_t *k, int nblock, const qk_field_t *y, double complex *c) {
  return dots_of(k, k->v, nblock, y, c);
}

static qk_status_t rotate_of(qk_krylov_t *k, qk_field_t *const *v, int n, int columns,
                             const double complex *q, int ldq) {
  qk_basis_args_t a = {.n = n, .columns = columns, .c = (double *)k->c};
  int rows = n * B;
  for (int i = 0; i < n; i++) a.v[i] = v[i]->v;
  double complex *c = qk_malloc((size_t)rows * (size_t)columns * sizeof *c);
  if (!c) return QK_NO_MEMORY;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) c[i * columns + j] = q[(size_t)j * (size_t)ldq + (size_t)i];
  qk_status_t status =
      move(k, k->c, c, (size_t)rows * (size_t)columns * sizeof *c, QK_COPY_TO_DEVICE);
  qk_free(c);
  return status ? status : k->dev->ops->basis_rotate(k->dev->ctx, &a);
}

qk_status_t qk_krylov_rotate(qk_krylov_t *k, int nblock, int columns, const double complex *q,
                             int ldq) {
  return rotate_of(k, k->v, nblock, columns, q, ldq);
}

qk_status_t qk_krylov_project(qk_krylov_t *k, int nblock, qk_field_t *w, double complex *h) {
  size_t count = (size_t)nblock * B * B;
  if (nblock == 0) return QK_OK;
  qk_basis_args_t a = {.n = nblock, .y = w->v, .sign = -1, .c = (double *)k->c};
  for (int i = 0; i < nblock; i++) a.v[i] = k->v[i]->v;
  double complex *c = qk_malloc(count * sizeof *c);
  if (!c) return QK_NO_MEMORY;
  qk_status_t status = QK_OK;
  for (int pass = 0; pass < 2 && !status; pass++) {
    status = qk_krylov_dots(k, nblock, w, c);
    if (!status) status = move(k, k->c, c, count * sizeof *c, QK_COPY_TO_DEVICE);
    if (!status) status = k->dev->ops->basis_axpy(k->dev->ctx, &a);
    for (size_t i = 0; h && i < count; i++) h[i] += c[i];
  }
  qk_free(c);
  return status;
}

/* ---- orthonormal blocks --------------------------------------------------------------------------------- */

qk_status_t qk_krylov_random(qk_krylov_t *k, qk_field_t *w, const uint8_t mask[8]) {
  qk_field_t *noise;
  qk_status_t status = qk_work_reserve(k->work, k->prec, B, QK_FULL, &noise);
  if (status) return status;
  qk_noise_args_t a = {.lat = k->dev->geom->lat,
                       .field = noise->v,
                       .rhs = -1,
                       .seed = k->seed + (uint64_t)k->randomised++};
  status = k->dev->ops->noise(k->dev->ctx, &a);
  if (!status && mask) status = move(k, k->mask, mask, B, QK_COPY_TO_DEVICE);
  if (!status) {
    qk_blas_args_t copy = {.f = {w->v, qk_field_parity(noise, QK_EVEN)},
                           .mask = mask ? k->mask : NULL};
    status = blas(k, QK_BLAS_COPY, &copy);
  }
  qk_work_release(k->work, noise);
  return status;
}

/* g = r^+ r with r upper triangular, both row by row. Columns that depend on those before them have a row of r
 * that is zero but for a 1, and are marked. False: not finite. */
static bool cholesky(const double complex *g, double limit, double complex *r, uint8_t *lost) {
  memset(r, 0, B * B * sizeof *r);
  for (int j = 0; j < B; j++) {
    double pivot = creal(g[j * B + j]), whole = pivot;
    if (!isfinite(pivot)) return false;
    for (int i = 0; i < j; i++) {
      double complex sum = g[i * B + j];
      for (int l = 0; l < i; l++) sum -= conj(r[l * B + i]) * r[l * B + j];
      r[i * B + j] = lost[i] ? 0 : sum / r[i * B + i];
      pivot -= creal(r[i * B + j] * conj(r[i * B + j]));
    }
    lost[j] = !(pivot > limit * whole);
    r[j * B + j] = lost[j] ? 1 : sqrt(pivot);
  }
  return true;
}

/* The inverse of an upper triangular matrix, column by column. */
static void invert(const double complex *r, double complex *inverse) {
  memset(inverse, 0, B * B * sizeof *inverse);
  for (int j = 0; j < B; j++) {
    inverse[j * B + j] = 1 / r[j * B + j];
    for (int i = j - 1; i >= 0; i--) {
      double complex sum = 0;
      for (int l = i + 1; l <= j; l++) sum += r[i * B + l] * inverse[j * B + l];
      inverse[j * B + i] = -sum / r[i * B + i];
    }
  }
}

/* total = r total, without the rows of lost columns. */
static void gather(double complex *total, const double complex *r, const uint8_t *lost) {
  double complex before[B * B];
  memcpy(before, total, sizeof before);
  for (int i = 0; i < B; i++)
    for (int j = 0; j < B; j++) {
      double complex sum = 0;
      for (int l = 0; l < B; l++) sum += r[i * B + l] * before[l * B + j];
      total[i * B + j] = lost[i] ? 0 : sum;
    }
}

qk_status_t qk_krylov_normalise(qk_krylov_t *k, int nblock, qk_field_t *w, double complex r[64]) {
  enum { PASSES = 2, ATTEMPTS = 12 };
  double complex g[B * B], factor[B * B], inverse[B * B];
  memset(r, 0, B * B * sizeof *r);
  for (int i = 0; i < B; i++) r[i * B + i] = 1;
  for (int clean = 0, attempt = 0; clean < PASSES; attempt++) {
    uint8_t lost[B] = {0};
    qk_status_t status = dots_of(k, &w, 1, w, g);
    if (status) return status;
    if (attempt == ATTEMPTS || !cholesky(g, dependent[k->prec], factor, lost)) return QK_BREAKDOWN;
    invert(factor, inverse);
    gather(r, factor, lost);
    status = rotate_of(k, &w, 1, B, inverse, B);
    if (status) return status;
    clean++;
    if (!memchr(lost, 1, B)) continue;
    clean = 0;
    status = qk_krylov_random(k, w, lost);
    if (!status) status = qk_krylov_project(k, nblock, w, NULL);
    if (status) return status;
  }
  return QK_OK;
}

/* ---- the operator ----------------------------------------------------------------------------------------- */

qk_status_t qk_krylov_apply(qk_krylov_t *k, qk_field_t *out, const qk_field_t *in) {
  qk_field_t *t;
  qk_status_t status = qk_work_reserve(k->work, k->prec, B, QK_EVEN, &t);
  if (status) return status;
  status = k->op->ops->apply_eo(k->op, t, in, false, NULL);
  if (!status) status = k->op->ops->apply_eo(k->op, out, t, true, NULL);
  qk_work_release(k->work, t);
  return status;
}

/* t_0 = in, t_1 = (A - c)/e in, t_{i+1} = 2 (A - c)/e t_i - t_{i-1}, with c, e the middle and the half width of the
 * interval. t_i stands in f[i % 2], f[order % 2] being out. */
qk_status_t qk_krylov_filter(qk_krylov_t *k, double window, double top, int order, qk_field_t *out,
                             const qk_field_t *in) {
  const double middle = (top + window) / 2, half = (top - window) / 2;
  const double value[SCALARS] = {-middle, 1 / half, 2 / half, -1};
  double *at[SCALARS];
  qk_field_t *other, *image = NULL, *f[2];
  for (int i = 0; i < SCALARS; i++) {
    double all[B];
    for (int l = 0; l < B; l++) all[l] = value[i];
    at[i] = k->scalar + i * B * 2;
    qk_status_t status = set_scalar(k, i, all);
    if (status) return status;
  }
  qk_status_t status = qk_work_reserve(k->work, k->prec, B, QK_EVEN, &other);
  if (status) return status;
  status = qk_work_reserve(k->work, k->prec, B, QK_EVEN, &image);
  f[order % 2] = out;
  f[1 - order % 2] = other;
  if (!status) status = blas(k, QK_BLAS_COPY, &(qk_blas_args_t){.f = {f[0]->v, in->v}});
  for (int i = 0; i < order && !status; i++) {
    qk_field_t *now = f[i % 2], *next = f[1 - i % 2];
    status = qk_krylov_apply(k, image, now);
    if (!status)
      status = blas(k, QK_BLAS_AXPY, &(qk_blas_args_t){.f = {image->v, now->v}, .c = {at[0]}});
    if (!status)
      status = blas(k, QK_BLAS_SCALE, &(qk_blas_args_t){.f = {image->v}, .c = {at[i ? 2 : 1]}});
    if (!status && i == 0)
      status = blas(k, QK_BLAS_COPY, &(qk_blas_args_t){.f = {next->v, image->v}});
    if (!status && i > 0)
      status = blas(k, QK_BLAS_XPAY, &(qk_blas_args_t){.f = {next->v, image->v}, .c = {at[3]}});
  }
  qk_work_release(k->work, image);
  qk_work_release(k->work, other);
  return status;
}

/* |w|^2 of the columns. */
static qk_status_t norms(qk_krylov_t *k, const qk_field_t *w, double result[B]) {
  double norm2[B][2];
  double *red = k->scalar + 2 * B;
  qk_status_t status = blas(k, QK_BLAS_NORM2, &(qk_blas_args_t){.f = {w->v}, .red = red});
  if (!status) status = move(k, norm2, red, sizeof norm2, QK_COPY_TO_HOST);
  if (!status && qk_comm_size(k->dev->geom->comm) > 1)
    status = qk_comm_sum(k->dev->geom->comm, &norm2[0][0], 2 * B);
  for (int i = 0; i < B && !status; i++) result[i] = norm2[i][0];
  return status;
}

qk_status_t qk_krylov_rayleigh(qk_krylov_t *k, const qk_field_t *v, double value[8]) {
  qk_field_t *t;
  qk_status_t status = qk_work_reserve(k->work, k->prec, B, QK_EVEN, &t);
  if (status) return status;
  status = k->op->ops->apply_eo(k->op, t, v, false, NULL);
  if (!status) status = norms(k, t, value);
  qk_work_release(k->work, t);
  return status;
}

qk_status_t qk_krylov_residual(qk_krylov_t *k, const qk_field_t *v, qk_field_t *w,
                               const double value[8], double residual[8]) {
  double minus[B], norm2[B];
  for (int i = 0; i < B; i++) minus[i] = -value[i];
  qk_status_t status = set_scalar(k, 0, minus);
  if (!status) status = qk_krylov_apply(k, w, v);
  if (!status)
    status = blas(k, QK_BLAS_AXPY, &(qk_blas_args_t){.f = {w->v, v->v}, .c = {k->scalar}});
  if (!status) status = norms(k, w, norm2);
  for (int i = 0; i < B && !status; i++) residual[i] = sqrt(norm2[i]);
  return status;
}
