#include "daemon/engine/krylov/block_fields.h"

#include <string.h>

static size_t numbers(const qk_block_t *b) {
  return (size_t)b->width * (size_t)b->width;
}

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t make(const qk_device_t *dev, size_t bytes, void **device, void **host) {
  const qk_status_t status = dev->ops->alloc(dev->ctx, bytes, device);
  return status ? status : dev->ops->alloc_host(dev->ctx, bytes, host);
}

qk_status_t qk_block_init(qk_block_t *b, const qk_solver_t *s) {
  *b = (qk_block_t){.s = s,
                    .geom = *s->dev->geom,
                    .dev = *s->dev,
                    .width = (s->nslot + QK_TILE - 1) / QK_TILE * QK_TILE,
                    .slices = qk_geom_slices(s->dev->geom)};
  b->geom.ls = 0;
  b->dev.geom = &b->geom;
  const size_t matrix = numbers(b) * sizeof *b->product, columns = (size_t)b->width;
  const size_t bytes[] = {(size_t)b->slices * matrix, QK_BLOCK_PLACES * matrix, columns};
  void *device[3] = {NULL}, *host[3] = {NULL};
  qk_status_t status = QK_OK;
  for (int i = 0; i < 3 && !status; i++) status = make(s->dev, bytes[i], &device[i], &host[i]);
  b->product = device[0];
  b->product_host = host[0];
  b->factor = device[1];
  b->factor_host = host[1];
  b->mask = device[2];
  b->mask_host = host[2];
  return status;
}

void qk_block_fini(qk_block_t *b) {
  if (!b->s) return;
  const qk_device_t *dev = &b->dev;
  void *host[] = {b->mask_host, b->factor_host, b->product_host};
  void *device[] = {b->mask, b->factor, b->product};
  for (int i = 0; i < 3; i++) {
    if (host[i]) dev->ops->free_host(dev->ctx, host[i]);
    if (device[i]) dev->ops->free(dev->ctx, device[i]);
  }
}

qk_status_t qk_block_field_init(const qk_block_t *b, qk_prec_t prec, qk_block_field_t *f) {
  qk_status_t status = QK_OK;
  for (int k = 0; k < b->slices && !status; k++) {
    status = qk_field_create(&b->dev, prec, b->width, b->s->op->system, &f->own[k]);
    if (!status) f->v[k] = f->own[k]->v;
  }
  return status;
}

void qk_block_field_fini(qk_block_field_t *f) {
  for (int k = QK_LS_MAX - 1; k >= 0; k--) qk_field_destroy(f->own[k]);
}

void qk_block_field_of(const qk_block_t *b, const qk_field_t *system, qk_block_field_t *f) {
  *f = (qk_block_field_t){.v = {system->v}};
  f->v[0].nrhs = b->width;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void copy(const qk_block_t *b, void *to, const void *from, size_t bytes, qk_copy_t kind) {
  qk_dev_copy(&b->dev, to, from, bytes, kind);
}

/* On the device until the next call. */
static const uint8_t *upload(qk_block_t *b, const uint8_t *mask) {
  qk_dev_sync(&b->dev);
  memset(b->mask_host, 0, (size_t)b->width);
  memcpy(b->mask_host, mask, (size_t)b->s->nslot);
  copy(b, b->mask, b->mask_host, (size_t)b->width, QK_COPY_TO_DEVICE);
  return b->mask;
}

static bool all(const qk_block_t *b, const uint8_t *mask) {
  return memchr(mask, 0, (size_t)b->s->nslot) == NULL;
}

void qk_block_blas(qk_block_t *b, qk_blas_op_t op, const qk_block_field_t *f0,
                   const qk_block_field_t *f1, const uint8_t *mask) {
  const uint8_t *on = !mask || all(b, mask) ? NULL : upload(b, mask);
  for (int k = 0; k < b->slices; k++) {
    qk_blas_args_t args = {.f = {f0->v[k]}, .mask = on};
    if (f1) args.f[1] = f1->v[k];
    qk_dev_blas(&b->dev, op, args);
  }
}

/* Each slice of each slot of the mask. */
static void move(const qk_block_t *b, const qk_block_field_t *f, const qk_field_t *system,
                 bool into_block, const uint8_t *mask) {
  const int slices = b->slices;
  for (int i = 0; i < b->s->nslot * slices; i++) {
    const int slot = i / slices, k = i % slices;
    const qk_rhs_copy_args_t args = {.to = into_block ? f->v[k] : system->v,
                                     .from = into_block ? system->v : f->v[k],
                                     .to_rhs = into_block ? slot : i,
                                     .from_rhs = into_block ? i : slot};
    if (mask[slot] && qk_dev_ok(&b->dev))
      qk_dev_note(&b->dev, b->dev.ops->rhs_copy(b->dev.ctx, &args));
  }
}

void qk_block_import(qk_block_t *b, const qk_block_field_t *to, const qk_field_t *from,
                     const uint8_t *mask) {
  qk_block_field_t f;
  if (b->slices > 1) {
    move(b, to, from, true, mask);
    return;
  }
  qk_block_field_of(b, from, &f);
  qk_block_blas(b, QK_BLAS_COPY, to, &f, mask);
}

void qk_block_export(const qk_block_t *b, const qk_field_t *to, const qk_block_field_t *from,
                     const uint8_t *mask) {
  if (b->slices > 1) {
    move(b, from, to, false, mask);
    return;
  }
  qk_spinor_t v = from->v[0];
  v.nrhs = to->v.nrhs;
  qk_dev_blas(&b->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, v}});
}

/* ---- products and combinations --------------------------------------------------------------- */

void qk_block_ask(qk_block_t *b, const qk_block_field_t *v, const qk_block_field_t *y) {
  for (int k = 0; k < b->slices; k++) {
    double complex *to = b->product + (size_t)k * numbers(b);
    const qk_basis_args_t args = {.n = 1, .v = {v->v[k]}, .y = y->v[k], .c = (double *)to};
    if (qk_dev_ok(&b->dev)) qk_dev_note(&b->dev, b->dev.ops->basis_dot(b->dev.ctx, &args));
  }
}

void qk_block_fetch(qk_block_t *b, double complex *m) {
  const size_t n = numbers(b), bytes = (size_t)b->slices * n * sizeof *m;
  qk_comm_t *comm = b->geom.comm;
  copy(b, b->product_host, b->product, bytes, QK_COPY_TO_HOST);
  qk_dev_sync(&b->dev);
  memcpy(m, b->product_host, n * sizeof *m);
  for (int k = 1; k < b->slices; k++)
    for (size_t i = 0; i < n; i++) m[i] += b->product_host[(size_t)k * n + i];
  if (qk_dev_ok(&b->dev) && qk_comm_size(comm) > 1)
    qk_dev_note(&b->dev, qk_comm_sum(comm, (double *)m, (int)(2 * n)));
}

static double *place(qk_block_t *b, int at, const double complex *m) {
  const size_t n = numbers(b), offset = (size_t)at * n;
  memcpy(b->factor_host + offset, m, n * sizeof *m);
  copy(b, b->factor + offset, b->factor_host + offset, n * sizeof *m, QK_COPY_TO_DEVICE);
  return (double *)(b->factor + offset);
}

void qk_block_add(qk_block_t *b, int at, const qk_block_field_t *y, double sign,
                  const qk_block_field_t *v, const double complex *m) {
  double *c = place(b, at, m);
  for (int k = 0; k < b->slices; k++) {
    const qk_basis_args_t args = {.n = 1, .v = {v->v[k]}, .y = y->v[k], .sign = sign, .c = c};
    if (qk_dev_ok(&b->dev)) qk_dev_note(&b->dev, b->dev.ops->basis_axpy(b->dev.ctx, &args));
  }
}

void qk_block_turn(qk_block_t *b, int at, const qk_block_field_t *v, const double complex *m) {
  double *c = place(b, at, m);
  for (int k = 0; k < b->slices; k++) {
    const qk_basis_args_t args = {.n = 1, .v = {v->v[k]}, .columns = b->width, .c = c};
    if (qk_dev_ok(&b->dev)) qk_dev_note(&b->dev, b->dev.ops->basis_rotate(b->dev.ctx, &args));
  }
}
