#include "daemon/engine/eigen/compressed.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/hermitian.h"
#include "daemon/engine/eigen/lanczos_basis.h"
#include "daemon/engine/eigen/lanczos_params.h"
#include "daemon/engine/eigen/lanczos_rotate.h"

enum { B = QK_EIGEN_BLOCK, SMOOTH_ORDER = 8 };
/* Of the top, what the polynomial leaves alone: it takes out a factor of 19 above that. */
static const double smooth_window = 0.05;

struct qk_compressed {
  qk_operator_t *op;
  qk_work_t *work;
  qk_coherent_t *basis;
  qk_chebyshev_params_t p;
  qk_chebyshev_t *smooth;
  qk_lanczos_basis_t k; /* its blocks are the coefficients */
  int n, nblock;
  double value[QK_EIGEN_MAX], residual[QK_EIGEN_MAX];
  enum { PROJECT, DENSE, ROTATE, MEASURE, DONE } stage;
  int block;             /* the next one */
  double complex *g, *h; /* column by column: (w_i, w_j) and (w_i, A w_j); h becomes the rotation */
  qk_hermitian_job_t *dense;
  int64_t unit;             /* of the rotation, the next one */
  double *red;              /* device: norms of columns */
  double *dots, *dots_host; /* device, host: of all vectors with eight columns */
};
typedef qk_compressed_t set_t;

qk_chebyshev_params_t qk_compressed_polynomial(double top) {
  return (qk_chebyshev_params_t){SMOOTH_ORDER, smooth_window * top, top};
}

int64_t qk_compressed_bytes(const qk_geom_t *geom, qk_subset_t system, qk_prec_t prec,
                            const qk_coherent_cut_t *cut, int n) {
  const qk_geom_t small = qk_coherent_geom(geom, cut);
  const int blocks = qk_lanczos_round_up(n) / B;
  const int more = qk_geom_slices(geom) > 1 ? 1 : 0;
  return (blocks + 2) * (int64_t)qk_field_bytes(&small, prec, B, QK_EVEN) +
         (2 + more) * (int64_t)qk_field_bytes(geom, prec, B, system) +
         qk_lanczos_rotate_room(&small, prec, blocks, QK_EVEN) +
         (int64_t)blocks * B * B * 2 * (int64_t)sizeof(double);
}

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t reserve(set_t *z, qk_prec_t prec) {
  const qk_device_t *dev = z->op->dev;
  const qk_lanczos_params_t p = {
      .n = z->n, .space = z->nblock * B, .prec = prec, .within = z->basis};
  const size_t numbers = (size_t)z->nblock * B * B * 2;
  void *red = NULL, *dots = NULL;
  qk_status_t status = qk_lanczos_basis_init(&z->k, z->op, z->work, &p);
  if (status) return status;
  status = qk_chebyshev_create(z->op, z->work, &z->p, &z->smooth);
  if (status) return status;
  status = dev->ops->alloc(dev->ctx, B * 2 * sizeof(double), &red);
  if (status) return status;
  z->red = red;
  status = dev->ops->alloc(dev->ctx, numbers * sizeof(double), &dots);
  if (status) return status;
  z->dots = dots;
  z->dots_host = qk_malloc(numbers * sizeof(double));
  return z->dots_host ? QK_OK : QK_NO_MEMORY;
}

qk_status_t qk_compressed_create(qk_operator_t *op, qk_work_t *work, qk_coherent_t *basis,
                                 const qk_chebyshev_params_t *p, int n,
                                 qk_compressed_t **compressed, qk_err_t *err) {
  set_t *z = qk_calloc(1, sizeof *z);
  qk_status_t status = z ? QK_OK : QK_NO_MEMORY;
  if (z) {
    *z = (set_t){.op = op, .work = work, .basis = basis, .p = *p, .n = n};
    z->nblock = qk_lanczos_round_up(n) / B;
    status = reserve(z, basis->v[0]->v.prec);
  }
  status = qk_comm_agree(op->dev->geom->comm, status, NULL);
  if (!status) {
    *compressed = z;
    return QK_OK;
  }
  if (z) z->basis = NULL;
  qk_compressed_destroy(z);
  return qk_fail(err, status, "%d compressed eigenvectors: %s", n, qk_status_text(status));
}

void qk_compressed_destroy(qk_compressed_t *z) {
  if (!z) return;
  const qk_device_t *dev = z->op->dev;
  qk_free(z->dots_host);
  if (z->dots) dev->ops->free(dev->ctx, z->dots);
  if (z->red) dev->ops->free(dev->ctx, z->red);
  qk_chebyshev_destroy(z->smooth);
  if (z->k.dev) qk_lanczos_basis_fini(&z->k);
  qk_hermitian_drop(z->dense);
  qk_free(z->h);
  qk_free(z->g);
  qk_coherent_destroy(z->basis);
  qk_free(z);
}

qk_hermitian_job_t *qk_compressed_take_dense(qk_compressed_t *z) {
  qk_hermitian_job_t *job = z->dense;
  z->dense = NULL;
  return job;
}

qk_field_t *qk_compressed_block(qk_compressed_t *z, int b) {
  return z->k.v[b];
}

void qk_compressed_set_values(qk_compressed_t *z, const double *value, const double *residual) {
  memcpy(z->value, value, (size_t)z->n * sizeof *value);
  memcpy(z->residual, residual, (size_t)z->n * sizeof *residual);
}

int qk_compressed_count(const qk_compressed_t *z) {
  return z->n;
}
const double *qk_compressed_values(const qk_compressed_t *z) {
  return z->value;
}
const double *qk_compressed_residuals(const qk_compressed_t *z) {
  return z->residual;
}
const qk_coherent_t *qk_compressed_basis(const qk_compressed_t *z) {
  return z->basis;
}
const qk_chebyshev_params_t *qk_compressed_smoother(const qk_compressed_t *z) {
  return &z->p;
}

/* ---- passes over vectors; calls of an iteration ---------------------------------------------- */

typedef void pass_t(const qk_chebyshev_t *c, qk_field_t *out, const qk_field_t *in);

/* Between flat blocks. */
static void through(const set_t *z, pass_t *pass, qk_field_t *out, const qk_field_t *in) {
  const qk_flat_t *flat = &z->basis->flat;
  const int n = qk_flat_together(flat);
  if (flat->slices == 1) {
    pass(z->smooth, out, in);
    return;
  }
  qk_field_t *from = qk_work_take(z->work, in->v.prec, n, z->op->system);
  qk_field_t *to = qk_work_take(z->work, in->v.prec, n, z->op->system);
  for (int first = 0; first < B; first += n) {
    qk_flat_unpack(flat, from, 0, in, first, n);
    pass(z->smooth, to, from);
    qk_flat_pack(flat, out, first, to, 0, n);
  }
  qk_work_release(z->work, to);
  qk_work_release(z->work, from);
}

/* w = the vectors of block b; other: work. */
static void expand(const set_t *z, int b, qk_field_t *w, qk_field_t *other) {
  qk_coherent_prolong(z->basis, other, z->k.v[b]);
  through(z, qk_chebyshev_apply, w, other);
}

/* ---- Ritz vectors ---------------------------------------------------------------------------- */

/* Columns of block b of a matrix: products of the coefficients with those of T y. */
static qk_status_t products(set_t *z, int b, qk_field_t *y, qk_field_t *other, double complex *m) {
  qk_lanczos_basis_t *k = &z->k;
  const size_t n = (size_t)z->nblock * B;
  double complex *c = qk_malloc(n * B * sizeof *c);
  if (!c) return QK_NO_MEMORY;
  through(z, qk_chebyshev_apply, other, y);
  qk_coherent_restrict(z->basis, k->coefficients, other);
  const qk_status_t status = qk_lanczos_basis_dots(k, z->nblock, k->coefficients, c);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < B; j++) m[((size_t)b * B + j) * n + i] = c[i * B + j];
  qk_free(c);
  return status;
}

static qk_status_t project_block(set_t *z, int b) {
  qk_field_t *w = z->k.wide[0], *other = z->k.wide[1];
  expand(z, b, w, other);
  qk_status_t status = products(z, b, w, other, z->g);
  if (status) return status;
  through(z, qk_chebyshev_image, other, w);
  return products(z, b, other, w, z->h);
}

/* The dense problem is solved. */
static qk_status_t begin_rotation(set_t *z) {
  const int ld = z->nblock * B;
  if (!(z->value[0] > 0)) return QK_BREAKDOWN;
  for (int j = 0; j < ld; j++) /* columns beyond n are zero */
    for (int i = j < z->n ? z->n : 0; i < ld; i++) z->h[(size_t)j * (size_t)ld + (size_t)i] = 0;
  z->unit = 0;
  z->stage = ROTATE;
  return QK_OK;
}

/* The generalised eigenproblem of g and h; where it is large by a thread, which takes g. */
static qk_status_t solve(set_t *z) {
  qk_comm_t *comm = z->op->dev->geom->comm;
  const int ld = z->nblock * B;
  const double least = z->k.prec == QK_DOUBLE ? 1e-12 : 1e-6;
  double complex *g = z->g;
  z->g = NULL;
  if (z->n > QK_HERMITIAN_LARGE) {
    z->stage = DENSE;
    return qk_hermitian_begin_pair(comm, z->n, z->h, ld, g, least, &z->dense);
  }
  const qk_status_t status = qk_hermitian_eigen_pair(comm, z->n, z->h, ld, g, least, z->value);
  qk_free(g);
  return status ? status : begin_rotation(z);
}

static qk_status_t await_dense(set_t *z) {
  bool over = false;
  const qk_status_t status = qk_hermitian_poll(z->op->dev->geom->comm, &z->dense, z->n, z->h,
                                               z->nblock * B, z->value, &over);
  return status || !over ? status : begin_rotation(z);
}

/* Coefficients become those of the vectors that were found. */
static qk_status_t rotate(set_t *z) {
  const int ld = z->nblock * B;
  bool over = false;
  const qk_status_t status =
      qk_lanczos_rotate_some(&z->k, z->nblock, ld, z->h, ld, &z->unit, &over);
  if (status || !over) return status;
  qk_free(z->h);
  z->h = NULL;
  z->block = 0;
  z->stage = MEASURE;
  return QK_OK;
}

/* |A w - l w| of the vectors of block b. */
static qk_status_t measure_block(set_t *z, int b) {
  const qk_device_t *dev = z->op->dev;
  qk_field_t *w = z->k.wide[0], *image = z->k.wide[1];
  double minus[B][2] = {{0}}, norm2[B][2];
  for (int i = 0; i < B && b * B + i < z->n; i++) minus[i][0] = -z->value[b * B + i];
  expand(z, b, w, image);
  through(z, qk_chebyshev_image, image, w);
  qk_dev_copy(dev, z->red, minus, sizeof minus, QK_COPY_TO_DEVICE);
  qk_dev_blas(dev, QK_BLAS_AXPY, (qk_blas_args_t){.f = {image->v, w->v}, .c = {z->red}});
  qk_dev_blas(dev, QK_BLAS_NORM2, (qk_blas_args_t){.f = {image->v}, .red = z->red});
  qk_dev_copy(dev, norm2, z->red, sizeof norm2, QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  qk_status_t status = qk_comm_agree(dev->geom->comm, qk_dev_status(dev), NULL);
  if (status) return status;
  status = qk_comm_sum(dev->geom->comm, &norm2[0][0], 2 * B);
  if (status) return status;
  for (int i = 0; i < B && b * B + i < z->n; i++) z->residual[b * B + i] = sqrt(norm2[i][0]);
  return QK_OK;
}

static qk_status_t reserve_matrices(set_t *z, qk_err_t *err) {
  const size_t n = (size_t)z->nblock * B;
  z->g = qk_calloc(n * n, sizeof *z->g);
  z->h = qk_calloc(n * n, sizeof *z->h);
  const qk_status_t status =
      z->g && z->h ? QK_OK
                   : qk_fail(err, QK_NO_MEMORY, "no memory for matrices of %zu rows: %zu bytes", n,
                             2 * n * n * sizeof *z->g);
  return qk_comm_agree(z->op->dev->geom->comm, status, err);
}

static qk_status_t project(set_t *z, qk_err_t *err) {
  qk_status_t status = z->g ? QK_OK : reserve_matrices(z, err);
  if (status) return status;
  status = qk_comm_agree(z->op->dev->geom->comm, project_block(z, z->block++), NULL);
  return status || z->block < z->nblock ? status : solve(z);
}

static qk_status_t measure(set_t *z) {
  const qk_status_t status = measure_block(z, z->block++);
  if (!status && z->block == z->nblock) z->stage = DONE;
  return status;
}

qk_status_t qk_compressed_step(qk_compressed_t *z, bool *over, qk_err_t *err) {
  qk_err_t why = {0};
  const qk_status_t status = z->stage == PROJECT   ? project(z, &why)
                             : z->stage == DENSE   ? await_dense(z)
                             : z->stage == ROTATE  ? rotate(z)
                             : z->stage == MEASURE ? measure(z)
                                                   : QK_OK;
  if (status)
    return qk_fail(err, status, "%d compressed eigenvectors: %s", z->n,
                   why.code == status ? why.text : qk_status_text(status));
  *over = z->stage == DONE;
  return QK_OK;
}

/* ---- use ------------------------------------------------------------------------------------- */

/* Column by column: a diagonal matrix. */
static qk_status_t divide_by_roots(set_t *z) {
  const qk_device_t *dev = z->op->dev;
  for (int b = 0; b < z->nblock; b++) {
    double factor[B][2] = {{0}};
    for (int i = 0; i < B && b * B + i < z->n; i++) factor[i][0] = 1 / sqrt(z->value[b * B + i]);
    qk_dev_copy(dev, z->red, factor, sizeof factor, QK_COPY_TO_DEVICE);
    qk_dev_blas(dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {z->k.v[b]->v}, .c = {z->red}});
    qk_dev_sync(dev);
  }
  return qk_dev_status(dev);
}

qk_status_t qk_compressed_prepare(qk_compressed_t *z, qk_prec_t store, qk_err_t *err) {
  const qk_status_t divided = z->k.prec == QK_SINGLE ? divide_by_roots(z) : QK_BAD_ARGUMENT;
  const qk_status_t made = divided ? divided : qk_coherent_convert(z->basis, store),
                    status = qk_comm_agree(z->op->dev->geom->comm, made, NULL);
  return status
             ? qk_fail(err, status, "%d compressed eigenvectors: %s", z->n, qk_status_text(status))
             : QK_OK;
}

static qk_basis_args_t some_blocks(const set_t *z, int first, const qk_field_t *y) {
  const int left = z->nblock - first;
  qk_basis_args_t a = {.n = left < QK_BASIS_BLOCKS ? left : QK_BASIS_BLOCKS, .y = y->v, .sign = 1};
  for (int i = 0; i < a.n; i++) a.v[i] = z->k.v[first + i]->v;
  a.c = z->dots + (size_t)first * B * B * 2;
  return a;
}

/* The sum of the products over the ranks. */
static void sum_dots(set_t *z) {
  const qk_device_t *dev = z->op->dev;
  const size_t count = (size_t)z->nblock * B * B * 2;
  if (qk_comm_size(dev->geom->comm) == 1) return;
  qk_dev_copy(dev, z->dots_host, z->dots, count * sizeof(double), QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_comm_sum(dev->geom->comm, z->dots_host, (int)count));
  qk_dev_copy(dev, z->dots, z->dots_host, count * sizeof(double), QK_COPY_TO_DEVICE);
}

/* g = sum_i c_i (c_i, g). */
static void among_coefficients(set_t *z, const qk_field_t *g) {
  const qk_device_t *dev = z->op->dev;
  for (int b = 0; b < z->nblock; b += QK_BASIS_BLOCKS) {
    const qk_basis_args_t a = some_blocks(z, b, g);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_dot(dev->ctx, &a));
  }
  sum_dots(z);
  qk_dev_blas(dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {g->v}});
  for (int b = 0; b < z->nblock; b += QK_BASIS_BLOCKS) {
    const qk_basis_args_t a = some_blocks(z, b, g);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_axpy(dev->ctx, &a));
  }
}

/* n right-hand sides between a field of the operator and a flat block, all vectors of each. */
static void move(const set_t *z, bool pack, const qk_field_t *to, int to_first,
                 const qk_field_t *from, int from_first, int n) {
  const qk_flat_t *flat = &z->basis->flat;
  const qk_device_t *dev = z->op->dev;
  if (flat->slices > 1) {
    (pack ? qk_flat_pack : qk_flat_unpack)(flat, to, to_first, from, from_first, n);
    return;
  }
  for (int k = 0; k < n * qk_field_vectors(from); k++) {
    const qk_field_t out = qk_field_vector(to, k / n), in = qk_field_vector(from, k / n);
    const qk_rhs_copy_args_t a = {
        .to = out.v, .from = in.v, .to_rhs = to_first + k % n, .from_rhs = from_first + k % n};
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->rhs_copy(dev->ctx, &a));
  }
}

void qk_compressed_apply(qk_compressed_t *z, qk_field_t *x, const qk_field_t *y) {
  const int nrhs = qk_field_nrhs(y);
  qk_field_t *t = qk_work_take(z->work, QK_SINGLE, nrhs, z->op->system), *wide = z->k.wide[0];
  qk_chebyshev_apply(z->smooth, t, y);
  for (int first = 0; first < nrhs; first += B) {
    const int n = nrhs - first < B ? nrhs - first : B;
    if (n < B) qk_dev_blas(z->op->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {wide->v}});
    move(z, true, wide, 0, t, first, n);
    qk_coherent_restrict(z->basis, z->k.coefficients, wide);
    among_coefficients(z, z->k.coefficients);
    qk_coherent_prolong(z->basis, wide, z->k.coefficients);
    move(z, false, t, first, wide, 0, n);
  }
  qk_chebyshev_apply(z->smooth, x, t);
  qk_work_release(z->work, t);
}
