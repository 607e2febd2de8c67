#include "daemon/engine/eigen/lanczos_basis.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/lanczos_rotate.h"

enum { B = QK_EIGEN_BLOCK, SCALARS = 4 };

/* A pivot of the Gram matrix this far below its diagonal element is rounding; so far below it that
 * what a column has of the basis by rounding grows with it. */
static const double dependent[] = {1e-20, 1e-9}, close_by[] = {1e-12, 1e-7};

/* Scalars of a pass: one for each column of what the operator takes. */
static size_t columns(const qk_lanczos_basis_t *k) {
  return (size_t)qk_flat_together(k->flat) * (size_t)k->flat->slices;
}

static qk_status_t create_wide(const qk_lanczos_basis_t *k, qk_field_t **block) {
  return qk_field_create(qk_flat_dev(k->flat), k->prec, B, k->system, block);
}

static qk_status_t create(const qk_lanczos_basis_t *k, qk_field_t **block) {
  if (!k->within) return create_wide(k, block);
  return qk_field_create(&k->within->dev, k->prec, B, QK_EVEN, block);
}

qk_status_t qk_lanczos_basis_init(qk_lanczos_basis_t *k, qk_operator_t *op, qk_work_t *work,
                                  const qk_lanczos_params_t *params) {
  const int nblock = params->space / B;
  *k = (qk_lanczos_basis_t){.op = op,
                            .work = work,
                            .dev = op->dev,
                            .prec = params->prec,
                            .kind = params->kind,
                            .restrict_noise = params->restrict_noise,
                            .within = params->within,
                            .seed = params->seed};
  k->system = k->kind == QK_LANCZOS_NORMAL ? op->system : QK_FULL;
  void *scalar = NULL, *mask = NULL;
  k->flat = qk_malloc(sizeof *k->flat);
  if (!k->flat) return QK_NO_MEMORY;
  qk_flat_init(k->flat, op->dev);
  k->nblock = nblock;
  qk_status_t status = qk_lanczos_rotate_reserve(k);
  if (status) return status;
  status = k->dev->ops->alloc(k->dev->ctx, SCALARS * columns(k) * 2 * sizeof(double), &scalar);
  if (status) return status;
  k->scalar = scalar;
  status = k->dev->ops->alloc(k->dev->ctx, B, &mask);
  k->mask = mask;
  if (!status && k->flat->slices > 1) status = create_wide(k, &k->spare);
  for (int i = 0; i < 2 && k->within && !status; i++) status = create_wide(k, &k->wide[i]);
  if (!status && k->within) status = create(k, &k->coefficients);
  for (int i = 0; i <= nblock && !status; i++) status = create(k, &k->v[i]);
  return status;
}

void qk_lanczos_basis_fini(qk_lanczos_basis_t *k) {
  for (int i = k->nblock; i >= 0; i--) qk_field_destroy(k->v[i]);
  qk_field_destroy(k->coefficients);
  for (int i = 1; i >= 0; i--) qk_field_destroy(k->wide[i]);
  qk_field_destroy(k->spare);
  if (k->mask) k->dev->ops->free(k->dev->ctx, k->mask);
  if (k->scalar) k->dev->ops->free(k->dev->ctx, k->scalar);
  if (k->pieces) k->dev->ops->free(k->dev->ctx, k->pieces);
  if (k->c) k->dev->ops->free(k->dev->ctx, k->c);
  qk_free(k->flat);
}

/* ---- calls of an iteration; the functions of lanczos_basis.h ask at their ends --------------- */

static void move(qk_lanczos_basis_t *k, void *to, const void *from, size_t bytes, qk_copy_t kind) {
  const qk_device_t *dev = k->dev;
  qk_dev_copy(dev, to, from, bytes, kind);
  qk_dev_sync(dev);
}

static void sum(qk_lanczos_basis_t *k, double *v, size_t n) {
  qk_comm_t *comm = k->dev->geom->comm;
  if (qk_dev_ok(k->dev) && qk_comm_size(comm) > 1)
    qk_dev_note(k->dev, qk_comm_sum(comm, v, (int)n));
}

static void blas(qk_lanczos_basis_t *k, qk_blas_op_t op, qk_blas_args_t args) {
  qk_dev_blas(k->dev, op, args);
}

/* Mhat, M, or the Laplacian. */
static void mhat(qk_lanczos_basis_t *k, qk_field_t *out, const qk_field_t *in, bool dagger) {
  const qk_operator_ops_t *ops = k->op->ops;
  if (!qk_dev_ok(k->dev)) return;
  qk_dev_note(k->dev, k->kind == QK_LANCZOS_NORMAL ? ops->apply_system(k->op, out, in, dagger, NULL)
                                                   : ops->apply(k->op, out, in, dagger, NULL, 0));
}

/* What the operator works on. */
static qk_field_t *take(qk_lanczos_basis_t *k, qk_subset_t subset) {
  return qk_work_take(k->work, k->prec, qk_flat_together(k->flat), subset);
}

/* A scalar of the first columns, on the device. */
static double *set_scalar(qk_lanczos_basis_t *k, int which, const double value[], int n) {
  double host[QK_COLUMNS_MAX][2], *at = k->scalar + which * (int)columns(k) * 2;
  for (int i = 0; i < n; i++) {
    host[i][0] = value[i];
    host[i][1] = 0;
  }
  move(k, at, host, (size_t)n * sizeof host[0], QK_COPY_TO_DEVICE);
  return at;
}

/* The same for all columns. */
static double *set_number(qk_lanczos_basis_t *k, int which, double value) {
  double all[QK_COLUMNS_MAX];
  const int n = (int)columns(k);
  for (int i = 0; i < n; i++) all[i] = value;
  return set_scalar(k, which, all, n);
}

typedef void pass_t(qk_lanczos_basis_t *k, const void *arg, qk_field_t *out, const qk_field_t *in);

/* A pass over fields of the operator, between flat blocks. */
static void through_wide(qk_lanczos_basis_t *k, pass_t *pass, const void *arg, qk_field_t *out,
                         const qk_field_t *in) {
  const int n = qk_flat_together(k->flat);
  if (k->flat->slices == 1) {
    pass(k, arg, out, in);
    return;
  }
  qk_field_t *from = take(k, k->system), *to = take(k, k->system);
  for (int first = 0; first < B; first += n) {
    qk_flat_unpack(k->flat, from, 0, in, first, n);
    pass(k, arg, to, from);
    qk_flat_pack(k->flat, out, first, to, 0, n);
  }
  qk_work_release(k->work, to);
  qk_work_release(k->work, from);
}

/* The same between blocks of the basis. */
static void through(qk_lanczos_basis_t *k, pass_t *pass, const void *arg, qk_field_t *out,
                    const qk_field_t *in) {
  if (!k->within) {
    through_wide(k, pass, arg, out, in);
    return;
  }
  qk_coherent_prolong(k->within, k->wide[0], in);
  through_wide(k, pass, arg, k->wide[1], k->wide[0]);
  qk_coherent_restrict(k->within, out, k->wide[1]);
}

/* ---- products with the basis ---------------------------------------------------------------- */

static void dots_of(qk_lanczos_basis_t *k, qk_field_t *const *v, int n, const qk_field_t *y,
                    double complex *c) {
  const qk_device_t *dev = k->dev;
  const size_t count = (size_t)n * B * B;
  for (int first = 0; first < n; first += QK_BASIS_BLOCKS) {
    qk_basis_args_t a = qk_lanczos_some_blocks(v, first, n);
    a.y = y->v;
    a.c = (double *)(k->c + (size_t)first * B * B);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_dot(dev->ctx, &a));
  }
  move(k, c, k->c, count * sizeof *c, QK_COPY_TO_HOST);
  sum(k, (double *)c, 2 * count);
}

qk_status_t qk_lanczos_basis_dots(qk_lanczos_basis_t *k, int nblock, const qk_field_t *y,
                                  double complex *c) {
  dots_of(k, k->v, nblock, y, c);
  return qk_dev_status(k->dev);
}

qk_status_t qk_lanczos_basis_project(qk_lanczos_basis_t *k, int nblock, qk_field_t *w,
                                     double complex *h) {
  size_t count = (size_t)nblock * B * B;
  if (nblock == 0) return QK_OK;
  double complex *c = qk_calloc(count, sizeof *c);
  if (!c) return QK_NO_MEMORY;
  for (int pass = 0; pass < 2; pass++) {
    dots_of(k, k->v, nblock, w, c);
    move(k, k->c, c, count * sizeof *c, QK_COPY_TO_DEVICE);
    qk_lanczos_add_blocks(k, k->v, nblock, w, -1);
    for (size_t i = 0; h && i < count; i++) h[i] += c[i];
  }
  qk_free(c);
  return qk_dev_status(k->dev);
}

/* ---- orthonormal blocks --------------------------------------------------------------------- */

/* Each vector of a right-hand side has numbers of its own. */
static void draw(qk_lanczos_basis_t *k, const qk_field_t *full) {
  const qk_device_t *dev = k->dev;
  for (int i = 0; i < qk_field_vectors(full); i++) {
    qk_noise_args_t a = {.lat = dev->geom->lat,
                         .field = qk_field_vector(full, i).v,
                         .rhs = -1,
                         .seed = k->seed + (uint64_t)k->randomised++};
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->noise(dev->ctx, &a));
  }
  if (k->restrict_noise) k->restrict_noise(k->op, full);
}

/* to = the sites of the system of `full`. */
static void take_system(qk_lanczos_basis_t *k, const qk_field_t *to, const qk_field_t *full,
                        const uint8_t *mask) {
  for (int i = 0; i < qk_field_vectors(full); i++) {
    const qk_field_t from = qk_field_vector(full, i);
    blas(k, QK_BLAS_COPY,
         (qk_blas_args_t){.f = {qk_field_vector(to, i).v, qk_field_parity(&from, k->system)},
                          .mask = mask});
  }
}

/* Of slices: by way of a spare block. */
static void draw_slices(qk_lanczos_basis_t *k, qk_field_t *w, const uint8_t *mask) {
  const int n = qk_flat_together(k->flat);
  qk_field_t *full = take(k, QK_FULL), *part = take(k, k->system);
  for (int first = 0; first < B; first += n) {
    draw(k, full);
    take_system(k, part, full, NULL);
    qk_flat_pack(k->flat, k->spare, first, part, 0, n);
  }
  qk_work_release(k->work, part);
  qk_work_release(k->work, full);
  blas(k, QK_BLAS_COPY, (qk_blas_args_t){.f = {w->v, k->spare->v}, .mask = mask});
}

/* Coefficients of noise. */
static void draw_coefficients(qk_lanczos_basis_t *k, qk_field_t *w, const uint8_t *mask) {
  qk_field_t *c = k->coefficients;
  if (k->flat->slices > 1) {
    draw_slices(k, k->wide[0], NULL);
  } else {
    qk_field_t *noise = take(k, QK_FULL);
    draw(k, noise);
    take_system(k, k->wide[0], noise, NULL);
    qk_work_release(k->work, noise);
  }
  qk_coherent_restrict(k->within, c, k->wide[0]);
  blas(k, QK_BLAS_COPY, (qk_blas_args_t){.f = {w->v, c->v}, .mask = mask});
}

qk_status_t qk_lanczos_basis_random(qk_lanczos_basis_t *k, qk_field_t *w, const uint8_t mask[8]) {
  if (mask) move(k, k->mask, mask, B, QK_COPY_TO_DEVICE);
  const uint8_t *some = mask ? k->mask : NULL;
  if (k->within) {
    draw_coefficients(k, w, some);
    return qk_dev_status(k->dev);
  }
  if (k->flat->slices > 1) {
    draw_slices(k, w, some);
    return qk_dev_status(k->dev);
  }
  qk_field_t *noise = take(k, QK_FULL);
  draw(k, noise);
  take_system(k, w, noise, some);
  qk_work_release(k->work, noise);
  return qk_dev_status(k->dev);
}

/* g = r^+ r with r upper triangular, both row by row. For columns that depend on earlier ones,
 * the row of r is zero except for a 1, and they are marked. least: the smallest pivot of the others
 * over its diagonal element. False: not finite. */
static bool cholesky(const double complex *g, double limit, double complex *r, uint8_t *lost,
                     double *least) {
  memset(r, 0, B * B * sizeof *r);
  *least = 1;
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
    if (!lost[j]) *least = fmin(*least, pivot / whole);
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

qk_status_t qk_lanczos_basis_normalise(qk_lanczos_basis_t *k, int nblock, qk_field_t *w,
                                       double complex r[64]) {
  enum { PASSES = 2, ATTEMPTS = 12 };
  double complex g[B * B], factor[B * B], inverse[B * B];
  double least;
  memset(r, 0, B * B * sizeof *r);
  for (int i = 0; i < B; i++) r[i * B + i] = 1;
  for (int clean = 0, attempt = 0; clean < PASSES; attempt++) {
    uint8_t lost[B] = {0};
    dots_of(k, &w, 1, w, g);
    qk_status_t status = qk_dev_status(k->dev);
    if (status) return status;
    if (attempt == ATTEMPTS || !cholesky(g, dependent[k->prec], factor, lost, &least))
      return QK_BREAKDOWN;
    invert(factor, inverse);
    gather(r, factor, lost);
    status = qk_lanczos_rotate_block(k, w, inverse);
    if (status) return status;
    clean++;
    if (!memchr(lost, 1, B) && least > close_by[k->prec]) continue;
    clean = 0;
    status = memchr(lost, 1, B) ? qk_lanczos_basis_random(k, w, lost) : QK_OK;
    if (status) return status;
    status = qk_lanczos_basis_project(k, nblock, w, NULL);
    if (status) return status;
  }
  return QK_OK;
}

/* ---- the operator --------------------------------------------------------------------------- */

static void apply(qk_lanczos_basis_t *k, const void *arg, qk_field_t *out, const qk_field_t *in) {
  (void)arg;
  if (k->kind == QK_LANCZOS_LAPLACIAN || qk_operator_is_positive(k->op)) {
    mhat(k, out, in, false);
    return;
  }
  qk_field_t *t = take(k, k->system);
  mhat(k, t, in, false);
  mhat(k, out, t, true);
  qk_work_release(k->work, t);
}

static void apply_once(qk_lanczos_basis_t *k, const void *arg, qk_field_t *out,
                       const qk_field_t *in) {
  (void)arg;
  mhat(k, out, in, false);
}

/* H = g5 M. */
static void apply_gamma5(qk_lanczos_basis_t *k, const void *arg, qk_field_t *out,
                         const qk_field_t *in) {
  (void)arg;
  mhat(k, out, in, false);
  const qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = out->v, .out = out->v};
  if (qk_dev_ok(k->dev)) qk_dev_note(k->dev, k->dev->ops->chiral(k->dev->ctx, &args));
}

static pass_t *image_of(const qk_lanczos_basis_t *k) {
  return k->kind == QK_LANCZOS_GAMMA5 ? apply_gamma5 : apply;
}

qk_status_t qk_lanczos_basis_image(qk_lanczos_basis_t *k, qk_field_t *out, const qk_field_t *in) {
  through(k, image_of(k), NULL, out, in);
  return qk_dev_status(k->dev);
}

qk_status_t qk_lanczos_basis_apply(qk_lanczos_basis_t *k, qk_field_t *out, const qk_field_t *in) {
  through(k, apply, NULL, out, in);
  return qk_dev_status(k->dev);
}

typedef struct filter {
  int order;
  double *at[SCALARS];
} filter_t;

/* t_0 = in, t_1 = (A - c)/e in, t_{i+1} = 2 (A - c)/e t_i - t_{i-1}, with c and e the centre and
 * half width of the interval. t_i is in f[i % 2]; f[order % 2] is out. */
static void filter(qk_lanczos_basis_t *k, const void *arg, qk_field_t *out, const qk_field_t *in) {
  const filter_t *p = arg;
  qk_field_t *other = take(k, k->system), *image = take(k, k->system), *f[2];
  f[p->order % 2] = out;
  f[1 - p->order % 2] = other;
  blas(k, QK_BLAS_COPY, (qk_blas_args_t){.f = {f[0]->v, in->v}});
  for (int i = 0; i < p->order; i++) {
    const qk_spinor_t now = f[i % 2]->v, next = f[1 - i % 2]->v;
    apply(k, NULL, image, f[i % 2]);
    blas(k, QK_BLAS_AXPY, (qk_blas_args_t){.f = {image->v, now}, .c = {p->at[0]}});
    blas(k, QK_BLAS_SCALE, (qk_blas_args_t){.f = {image->v}, .c = {p->at[i ? 2 : 1]}});
    if (i == 0)
      blas(k, QK_BLAS_COPY, (qk_blas_args_t){.f = {next, image->v}});
    else
      blas(k, QK_BLAS_XPAY, (qk_blas_args_t){.f = {next, image->v}, .c = {p->at[3]}});
  }
  qk_work_release(k->work, image);
  qk_work_release(k->work, other);
}

qk_status_t qk_lanczos_basis_filter(qk_lanczos_basis_t *k, double window, double top, int order,
                                    qk_field_t *out, const qk_field_t *in) {
  const double middle = (top + window) / 2, half = (top - window) / 2;
  const double value[SCALARS] = {-middle, 1 / half, 2 / half, -1};
  filter_t p = {.order = order};
  for (int i = 0; i < SCALARS; i++) p.at[i] = set_number(k, i, value[i]);
  through(k, filter, &p, out, in);
  return qk_dev_status(k->dev);
}

/* Re (v, w) of the columns; NORM2: |v|^2. */
static void reduce(qk_lanczos_basis_t *k, qk_blas_op_t op, const qk_field_t *v, const qk_field_t *w,
                   double result[B]) {
  double number[B][2] = {{0}};
  double *red = k->scalar + 2 * columns(k);
  blas(k, op, (qk_blas_args_t){.f = {v->v, w->v}, .red = red});
  move(k, number, red, sizeof number, QK_COPY_TO_HOST);
  sum(k, &number[0][0], 2 * B);
  for (int i = 0; i < B; i++) result[i] = number[i][0];
}

static void norms(qk_lanczos_basis_t *k, const qk_field_t *w, double result[B]) {
  reduce(k, QK_BLAS_NORM2, w, w, result);
}

qk_status_t qk_lanczos_basis_rayleigh(qk_lanczos_basis_t *k, const qk_field_t *v, double value[8]) {
  qk_field_t *t = k->spare ? k->spare : take(k, k->system);
  through(k, apply_once, NULL, t, v);
  if (k->kind == QK_LANCZOS_LAPLACIAN)
    reduce(k, QK_BLAS_CDOT, v, t, value);
  else
    norms(k, t, value);
  if (t != k->spare) qk_work_release(k->work, t);
  return qk_dev_status(k->dev);
}

qk_status_t qk_lanczos_basis_residual(qk_lanczos_basis_t *k, const qk_field_t *v, qk_field_t *w,
                                      const double value[8], double residual[8]) {
  double minus[B], norm2[B];
  for (int i = 0; i < B; i++) minus[i] = -value[i];
  const double *c = set_scalar(k, 0, minus, B);
  through(k, image_of(k), NULL, w, v);
  blas(k, QK_BLAS_AXPY, (qk_blas_args_t){.f = {w->v, v->v}, .c = {c}});
  norms(k, w, norm2);
  for (int i = 0; i < B; i++) residual[i] = sqrt(norm2[i]);
  return qk_dev_status(k->dev);
}
