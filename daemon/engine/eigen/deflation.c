#include "daemon/engine/eigen/deflation.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/peers.h"

enum { COLUMNS = QK_MAX_RHS, BLOCKS = QK_EIGEN_MAX / COLUMNS };

struct qk_deflation {
  qk_operator_t *op;
  qk_work_t *work;
  const qk_device_t *dev;
  qk_flat_t flat;    /* of the blocks, and ... */
  qk_work_t *packed; /* ... of fields of nrhs vectors beside them; NULL: those of `work` are flat */
  int n, nblock;
  qk_field_t *block[BLOCKS], *image[BLOCKS]; /* image[0] NULL: there are none */
  double value[QK_EIGEN_MAX], residual[QK_EIGEN_MAX];
  qk_compressed_t *compressed; /* in place of blocks */
  int nrhs;                    /* prepared */
  double *c,
      *c_host; /* [vectors][nrhs] complex, on the device, and pinned where ranks add them up */
};

int qk_deflation_columns(int n, int b) {
  int left = n - b * COLUMNS;
  if (left <= 0) return 0;
  return left >= COLUMNS ? COLUMNS : (left + QK_TILE - 1) / QK_TILE * QK_TILE;
}

int64_t qk_deflation_bytes(const qk_geom_t *geom, qk_subset_t system, qk_prec_t store, int n) {
  int64_t bytes = 0;
  for (int b = 0; qk_deflation_columns(n, b) > 0; b++)
    bytes += (int64_t)qk_field_bytes(geom, store, qk_deflation_columns(n, b), system);
  return bytes;
}

int qk_deflation_fit(const qk_geom_t *geom, qk_subset_t system, qk_prec_t store, int64_t bytes) {
  int n = 0;
  while (n < QK_EIGEN_MAX && qk_deflation_bytes(geom, system, store, n + QK_TILE) <= bytes)
    n += QK_TILE;
  return n;
}

bool qk_deflation_is_compressed(const qk_deflation_t *d) {
  return d->compressed != NULL;
}
int qk_deflation_count(const qk_deflation_t *d) {
  return d->n;
}
const double *qk_deflation_values(const qk_deflation_t *d) {
  return d->value;
}
const double *qk_deflation_residuals(const qk_deflation_t *d) {
  return d->residual;
}
int qk_deflation_blocks(const qk_deflation_t *d, qk_field_t *const **block) {
  *block = d->block;
  return d->nblock;
}

/* ---- life ------------------------------------------------------------------------------------ */

void qk_deflation_destroy(qk_deflation_t *d) {
  if (!d) return;
  if (d->c_host) d->dev->ops->free_host(d->dev->ctx, d->c_host);
  if (d->c) d->dev->ops->free(d->dev->ctx, d->c);
  qk_work_destroy(d->packed);
  qk_compressed_destroy(d->compressed);
  for (int b = d->nblock - 1; b >= 0; b--) {
    qk_field_destroy(d->image[b]);
    qk_field_destroy(d->block[b]);
  }
  qk_free(d);
}

/* Without vectors. */
static qk_status_t begin(qk_operator_t *op, qk_work_t *work, qk_deflation_t **deflation) {
  qk_deflation_t *d = *deflation = qk_calloc(1, sizeof *d);
  if (!d) return QK_NO_MEMORY;
  d->op = op;
  d->work = work;
  d->dev = op->dev;
  qk_flat_init(&d->flat, op->dev);
  return d->flat.slices > 1 ? qk_work_create(&d->flat.dev, &d->packed) : QK_OK;
}

static void set_values(qk_deflation_t *d, int n, const double *value, const double *residual) {
  d->n = n;
  memcpy(d->value, value, (size_t)n * sizeof *value);
  memcpy(d->residual, residual, (size_t)n * sizeof *residual);
}

qk_status_t qk_deflation_create_from(qk_operator_t *op, qk_work_t *work, int n, const double *value,
                                     const double *residual, qk_field_t **block,
                                     qk_deflation_t **deflation, qk_err_t *err) {
  qk_deflation_t *d;
  const qk_status_t status = begin(op, work, &d);
  if (status) {
    for (int b = 0; qk_deflation_columns(n, b) > 0; b++) qk_field_destroy(block[b]);
    qk_deflation_destroy(d);
    return qk_fail(err, status, "no memory for the deflation");
  }
  for (; qk_deflation_columns(n, d->nblock) > 0; d->nblock++)
    d->block[d->nblock] = block[d->nblock];
  set_values(d, n, value, residual);
  *deflation = d;
  return QK_OK;
}

/* A block of up to 64 columns: the vectors from `first` on, divided by the roots of their
 * eigenvalues. */
static qk_status_t gather(const qk_eigen_t *e, int first, int columns, double *c, qk_field_t *to) {
  const qk_device_t *dev = to->dev;
  const int rows = columns;
  const size_t count = (size_t)rows * (size_t)columns * 2;
  double *host = qk_calloc(count, sizeof *host);
  if (!host) return QK_NO_MEMORY;
  for (int i = 0; i < columns && first + i < e->n; i++)
    host[2 * (i * columns + i)] = 1 / sqrt(e->value[first + i]);
  qk_dev_copy(dev, c, host, count * sizeof *host, QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
  qk_free(host);
  qk_basis_args_t a = {.n = rows / QK_EIGEN_BLOCK, .y = to->v, .sign = 1, .c = c};
  for (int b = 0; b < a.n; b++) a.v[b] = e->block[first / QK_EIGEN_BLOCK + b]->v;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_axpy(dev->ctx, &a));
  return qk_dev_status(dev);
}

static qk_status_t convert(const qk_field_t *from, qk_prec_t store, qk_field_t **to) {
  const qk_device_t *dev = from->dev;
  qk_status_t status = qk_field_create(dev, store, from->v.nrhs, from->v.subset, to);
  if (status) return status;
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {(*to)->v, from->v}});
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

/* Like gather, in the precision `store`, on the device of d. */
static qk_status_t make_block(const qk_deflation_t *d, const qk_eigen_t *e, qk_prec_t store,
                              double *c, qk_field_t **block) {
  const qk_device_t *dev = qk_flat_dev(&d->flat);
  const qk_prec_t prec = e->block[0]->v.prec;
  const int columns = qk_deflation_columns(e->n, d->nblock);
  qk_field_t *wide = NULL;
  qk_status_t status = qk_field_create(dev, prec, columns, d->op->system, &wide);
  if (status) return status;
  status = gather(e, d->nblock * COLUMNS, columns, c, wide);
  if (!status && prec == store) {
    *block = wide;
    return QK_OK;
  }
  if (!status) status = convert(wide, store, block);
  qk_field_destroy(wide);
  return status;
}

static qk_status_t take_blocks(qk_deflation_t *d, const qk_eigen_t *e, qk_prec_t store) {
  void *c = NULL;
  const qk_device_t *dev = d->dev;
  qk_status_t status =
      dev->ops->alloc(dev->ctx, (size_t)COLUMNS * COLUMNS * 2 * sizeof(double), &c);
  while (qk_deflation_columns(e->n, d->nblock) > 0 && !status) {
    status = make_block(d, e, store, c, &d->block[d->nblock]);
    if (!status) d->nblock++;
  }
  if (c) dev->ops->free(dev->ctx, c);
  return status;
}

qk_status_t qk_deflation_create_of(qk_operator_t *op, qk_work_t *work, const qk_eigen_t *e,
                                   qk_prec_t store, qk_deflation_t **deflation, qk_err_t *err) {
  qk_deflation_t *d;
  const qk_status_t begun = begin(op, work, &d);
  qk_status_t status = begun ? begun : take_blocks(d, e, store);
  status = qk_comm_agree(op->dev->geom->comm, status, err);
  if (status) {
    qk_deflation_destroy(d);
    return status;
  }
  set_values(d, e->n, e->value, e->residual);
  *deflation = d;
  return QK_OK;
}

qk_status_t qk_deflation_create_compressed(qk_operator_t *op, qk_work_t *work, qk_compressed_t *set,
                                           qk_prec_t store, qk_deflation_t **deflation,
                                           qk_err_t *err) {
  qk_deflation_t *d = qk_calloc(1, sizeof *d);
  const qk_status_t there = qk_comm_agree(op->dev->geom->comm, d ? QK_OK : QK_NO_MEMORY, err);
  const qk_status_t status = there ? there : qk_compressed_prepare(set, store, err);
  if (status) {
    qk_free(d);
    qk_compressed_destroy(set);
    return status;
  }
  *d = (qk_deflation_t){.op = op, .work = work, .dev = op->dev, .compressed = set};
  qk_flat_init(&d->flat, op->dev);
  set_values(d, qk_compressed_count(set), qk_compressed_values(set), qk_compressed_residuals(set));
  *deflation = d;
  return QK_OK;
}

qk_status_t qk_deflation_create(qk_operator_t *op, qk_work_t *work,
                                const qk_lanczos_params_t *params, qk_prec_t store,
                                qk_progress_fn *progress, void *arg, qk_deflation_t **deflation,
                                qk_err_t *err) {
  qk_eigen_t *e = NULL;
  qk_err_t why = {0};
  if (store != QK_SINGLE && !(store == QK_HALF && (op->dev->geom->ncomp == 12 ||
                                                   op->dev->geom->ncomp == QK_COLOUR_COMPONENTS)))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "precision = %d of deflation vectors: 1, or 2 with 12 or %d components",
                   (int)store, QK_COLOUR_COMPONENTS);
  qk_lanczos_params_t p = *params;
  if (p.accept == 0) p.accept = fmax(p.tol, 5e-3);
  qk_status_t status = qk_lanczos(op, work, &p, progress, arg, &e, &why);
  if (status == QK_OK || (status == QK_NOT_CONVERGED && e->n > 0))
    status = qk_deflation_create_of(op, work, e, store, deflation, &why);
  qk_eigen_destroy(e);
  return status ? qk_fail(err, status, "%s", why.text) : QK_OK;
}

static qk_status_t create_images(qk_deflation_t *d) {
  const bool can = !d->packed && !d->compressed && !qk_operator_is_positive(d->op) &&
                   d->block[0]->v.prec == QK_SINGLE;
  qk_status_t status = can ? QK_OK : QK_BAD_ARGUMENT;
  for (int b = 0; b < d->nblock && !status; b++) {
    const qk_spinor_t *v = &d->block[b]->v;
    status = qk_field_create(d->dev, v->prec, v->nrhs, v->subset, &d->image[b]);
  }
  return status;
}

static qk_status_t make_images(qk_deflation_t *d) {
  qk_status_t status = QK_OK;
  for (int b = 0; b < d->nblock && !status; b++)
    status = d->op->ops->apply_system(d->op, d->image[b], d->block[b], false, NULL);
  if (status) return status;
  qk_dev_sync(d->dev);
  return qk_dev_status(d->dev);
}

qk_status_t qk_deflation_keep_images(qk_deflation_t *d) {
  qk_comm_t *comm = d->dev->geom->comm;
  const qk_status_t status = qk_comm_agree(comm, create_images(d), NULL);
  return status ? status : qk_comm_agree(comm, make_images(d), NULL);
}

/* ---- use ------------------------------------------------------------------------------------- */

/* Numbers of all vectors for each of nrhs columns. */
static size_t numbers(const qk_deflation_t *d, int nrhs) {
  const size_t vectors =
      (size_t)(d->nblock - 1) * COLUMNS + (size_t)d->block[d->nblock - 1]->v.nrhs;
  return vectors * (size_t)nrhs * 2;
}

/* Once, for blocks of any width: graphs of several cycles hold the address. */
static qk_status_t reserve_scalars(qk_deflation_t *d) {
  const size_t bytes = numbers(d, QK_MAX_RHS) * sizeof *d->c;
  void *c = d->c, *host = d->c_host;
  qk_status_t status = c ? QK_OK : d->dev->ops->alloc(d->dev->ctx, bytes, &c);
  d->c = c;
  if (!status && !host && qk_comm_size(d->dev->geom->comm) > 1)
    status = d->dev->ops->alloc_host(d->dev->ctx, bytes, &host);
  d->c_host = host;
  return status;
}

static qk_status_t reserve(qk_deflation_t *d, int nrhs, qk_field_t **x, qk_field_t **r) {
  qk_status_t status = d->compressed ? QK_OK : reserve_scalars(d);
  if (status) return status;
  status = qk_field_create(d->dev, QK_SINGLE, nrhs, d->op->system, r);
  return status ? status : qk_field_create(d->dev, QK_SINGLE, nrhs, d->op->system, x);
}

/* Once on zeros: all work fields are there then. */
static qk_status_t warm_up(qk_deflation_t *d, qk_field_t *x, const qk_field_t *r) {
  qk_dev_note(d->dev, qk_deflation_apply(d, x, r));
  qk_dev_sync(d->dev);
  return qk_dev_status(d->dev);
}

qk_status_t qk_deflation_prepare(qk_deflation_t *d, int nrhs) {
  qk_field_t *x = NULL, *r = NULL;
  if (nrhs < 1 || nrhs > QK_MAX_RHS) return QK_BAD_ARGUMENT;
  qk_status_t status = qk_comm_agree(d->dev->geom->comm, reserve(d, nrhs, &x, &r), NULL);
  if (!status) {
    if (nrhs > d->nrhs) d->nrhs = nrhs;
    status = warm_up(d, x, r);
  }
  qk_field_destroy(x);
  qk_field_destroy(r);
  return status;
}

/* Block b of v, beside y. */
static qk_basis_args_t block_args(const qk_deflation_t *d, qk_field_t *const *v, int b,
                                  const qk_field_t *y, double sign) {
  return (qk_basis_args_t){.n = 1,
                           .v = {v[b]->v},
                           .y = y->v,
                           .sign = sign,
                           .c = d->c + (size_t)b * COLUMNS * (size_t)y->v.nrhs * 2};
}

/* c becomes its sum over the ranks. */
static void sum(qk_deflation_t *d, int nrhs) {
  qk_dev_sum(d->dev, d->c, d->c_host, numbers(d, nrhs));
}

/* c = (v_i, y_j) over the ranks. */
static void coefficients(qk_deflation_t *d, qk_field_t *const *v, const qk_field_t *y) {
  const qk_device_t *dev = d->dev;
  for (int b = 0; b < d->nblock; b++) {
    qk_basis_args_t a = block_args(d, v, b, y, 1);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_dot(dev->ctx, &a));
  }
  sum(d, y->v.nrhs);
}

/* y += sign sum_i v_i c_i */
static void add(const qk_deflation_t *d, qk_field_t *const *v, const qk_field_t *y, double sign) {
  const qk_device_t *dev = d->dev;
  for (int b = 0; b < d->nblock; b++) {
    qk_basis_args_t a = block_args(d, v, b, y, sign);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_axpy(dev->ctx, &a));
  }
}

/* x = sum_i v_i (v_i, y). */
static void project(qk_deflation_t *d, qk_field_t *x, const qk_field_t *y) {
  qk_dev_blas(d->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x->v}});
  coefficients(d, d->block, y);
  add(d, d->block, x, 1);
}

qk_status_t qk_deflation_reduce(qk_deflation_t *d, qk_field_t *x, qk_field_t *r) {
  if (!d->image[0] || qk_field_nrhs(r) > d->nrhs || x->v.nrhs != r->v.nrhs ||
      x->v.prec != QK_SINGLE || r->v.prec != QK_SINGLE || x->v.subset != d->op->system ||
      r->v.subset != d->op->system || x == r)
    return QK_BAD_ARGUMENT;
  qk_dev_blas(d->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x->v}});
  coefficients(d, d->image, r);
  add(d, d->block, x, 1);
  add(d, d->image, r, -1);
  return qk_dev_status(d->dev);
}

/* x = what the vectors make of y, both of the operator, by way of flat fields. */
static void project_slices(qk_deflation_t *d, qk_field_t *x, const qk_field_t *y) {
  const int nrhs = qk_field_nrhs(y);
  qk_field_t *from = qk_work_take(d->packed, QK_SINGLE, nrhs, d->op->system);
  qk_field_t *to = qk_work_take(d->packed, QK_SINGLE, nrhs, d->op->system);
  qk_flat_pack(&d->flat, from, 0, y, 0, nrhs);
  project(d, to, from);
  qk_flat_unpack(&d->flat, x, 0, to, 0, nrhs);
  qk_work_release(d->packed, to);
  qk_work_release(d->packed, from);
}

/* Both in single. */
static void apply_single(qk_deflation_t *d, qk_field_t *x, const qk_field_t *r) {
  if (qk_operator_is_positive(d->op) && !d->packed && !d->compressed) {
    project(d, x, r); /* Mhat^-1 on its eigenvectors */
    return;
  }
  qk_field_t *y = qk_work_take(d->work, QK_SINGLE, qk_field_nrhs(x), d->op->system);
  if (qk_dev_ok(d->dev)) qk_dev_note(d->dev, d->op->ops->apply_system(d->op, y, r, true, NULL));
  if (d->compressed)
    qk_compressed_apply(d->compressed, x, y);
  else if (d->packed)
    project_slices(d, x, y);
  else
    project(d, x, y);
  qk_work_release(d->work, y);
}

qk_status_t qk_deflation_apply(qk_deflation_t *d, qk_field_t *x, const qk_field_t *r) {
  const int nrhs = qk_field_nrhs(r);
  if (nrhs > d->nrhs || x->v.nrhs != r->v.nrhs || x->v.prec != r->v.prec ||
      x->v.subset != d->op->system || r->v.subset != d->op->system || x == r)
    return QK_BAD_ARGUMENT;
  if (r->v.prec == QK_SINGLE) {
    apply_single(d, x, r);
  } else {
    qk_field_t *r1 = qk_work_take(d->work, QK_SINGLE, nrhs, d->op->system);
    qk_field_t *x1 = qk_work_take(d->work, QK_SINGLE, nrhs, d->op->system);
    qk_dev_blas(d->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {r1->v, r->v}});
    apply_single(d, x1, r1);
    qk_dev_blas(d->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {x->v, x1->v}});
    qk_work_release(d->work, x1);
    qk_work_release(d->work, r1);
  }
  return qk_dev_status(d->dev);
}
