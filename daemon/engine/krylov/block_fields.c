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
                    .width = (s->nslot + QK_TILE - 1) / QK_TILE * QK_TILE,
                    .slices = qk_geom_slices(s->dev->geom)};
  qk_flat_init(&b->flat, s->dev);
  const size_t matrix = numbers(b) * sizeof *b->product;
  const size_t bytes[] = {matrix, QK_BLOCK_PLACES * matrix, (size_t)b->width};
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
  const qk_device_t *dev = b->s->dev;
  void *host[] = {b->mask_host, b->factor_host, b->product_host};
  void *device[] = {b->mask, b->factor, b->product};
  for (int i = 0; i < 3; i++) {
    if (host[i]) dev->ops->free_host(dev->ctx, host[i]);
    if (device[i]) dev->ops->free(dev->ctx, device[i]);
  }
}

qk_status_t qk_block_field_init(const qk_block_t *b, qk_prec_t prec, qk_block_field_t *f) {
  const qk_device_t *dev = qk_flat_dev(&b->flat);
  const qk_status_t status = qk_field_create(dev, prec, b->width, b->s->op->system, &f->own);
  if (!status) f->v = f->own->v;
  return status;
}

void qk_block_field_fini(qk_block_field_t *f) {
  qk_field_destroy(f->own);
}

void qk_block_field_of(const qk_block_t *b, const qk_field_t *system, qk_block_field_t *f) {
  *f = (qk_block_field_t){.v = system->v};
  f->v.nrhs = b->width;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void copy(const qk_block_t *b, void *to, const void *from, size_t bytes, qk_copy_t kind) {
  qk_dev_copy(b->s->dev, to, from, bytes, kind);
}

/* On the device until the next call. */
static const uint8_t *upload(qk_block_t *b, const uint8_t *mask) {
  qk_dev_sync(b->s->dev);
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
  qk_blas_args_t args = {.f = {f0->v}};
  if (mask && !all(b, mask)) args.mask = upload(b, mask);
  if (f1) args.f[1] = f1->v;
  qk_dev_blas(b->s->dev, op, args);
}

void qk_block_import(qk_block_t *b, const qk_block_field_t *to, const qk_field_t *from,
                     const uint8_t *mask) {
  qk_block_field_t f;
  if (b->slices > 1) {
    for (int i = 0; i < b->s->nslot; i++)
      if (mask[i]) qk_flat_pack(&b->flat, to->own, i, from, i, 1);
  } else {
    qk_block_field_of(b, from, &f);
    qk_block_blas(b, QK_BLAS_COPY, to, &f, mask);
  }
}

void qk_block_export(const qk_block_t *b, const qk_field_t *to, const qk_block_field_t *from,
                     const uint8_t *mask) {
  if (b->slices > 1) {
    for (int i = 0; i < b->s->nslot; i++)
      if (mask[i]) qk_flat_unpack(&b->flat, to, i, from->own, i, 1);
  } else {
    qk_spinor_t v = from->v;
    v.nrhs = to->v.nrhs;
    qk_dev_blas(b->s->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, v}});
  }
}

/* ---- products and combinations --------------------------------------------------------------- */

void qk_block_ask(qk_block_t *b, const qk_block_field_t *v, const qk_block_field_t *y) {
  const qk_device_t *dev = b->s->dev;
  const qk_basis_args_t args = {.n = 1, .v = {v->v}, .y = y->v, .c = (double *)b->product};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_dot(dev->ctx, &args));
}

void qk_block_fetch(qk_block_t *b, double complex *m) {
  const size_t n = numbers(b);
  const qk_device_t *dev = b->s->dev;
  qk_comm_t *comm = dev->geom->comm;
  copy(b, b->product_host, b->product, n * sizeof *m, QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  memcpy(m, b->product_host, n * sizeof *m);
  if (qk_dev_ok(dev) && qk_comm_size(comm) > 1)
    qk_dev_note(dev, qk_comm_sum(comm, (double *)m, (int)(2 * n)));
}

static double *place(qk_block_t *b, int at, const double complex *m) {
  const size_t n = numbers(b), offset = (size_t)at * n;
  memcpy(b->factor_host + offset, m, n * sizeof *m);
  copy(b, b->factor + offset, b->factor_host + offset, n * sizeof *m, QK_COPY_TO_DEVICE);
  return (double *)(b->factor + offset);
}

void qk_block_add(qk_block_t *b, int at, const qk_block_field_t *y, double sign,
                  const qk_block_field_t *v, const double complex *m) {
  const qk_device_t *dev = b->s->dev;
  const qk_basis_args_t args = {.n = 1, .v = {v->v}, .y = y->v, .sign = sign, .c = place(b, at, m)};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_axpy(dev->ctx, &args));
}

void qk_block_turn(qk_block_t *b, int at, const qk_block_field_t *v, const double complex *m,
                   const qk_block_field_t *y) {
  const qk_device_t *dev = b->s->dev;
  qk_basis_args_t args = {.n = 1, .v = {v->v}, .columns = b->width, .c = place(b, at, m)};
  if (y) args.y = y->v;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->basis_rotate(dev->ctx, &args));
}
