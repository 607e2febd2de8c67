#include "daemon/engine/lattice/scalars.h"

#include <string.h>

#include "daemon/engine/lattice/peers.h"

static size_t bytes_of(const qk_scalars_t *s, int n) {
  return (size_t)n * (size_t)(s->nrhs * s->slices) * 2 * sizeof(double);
}

static qk_status_t move(qk_scalars_t *s, int k, int n, qk_copy_t kind) {
  double *host = qk_scalars_host(s, k, 0), *device = qk_scalars_at(s, k);
  bool out = kind == QK_COPY_TO_HOST;
  qk_status_t status = s->dev->ops->copy(s->dev->ctx, out ? host : device, out ? device : host,
                                         bytes_of(s, n), kind, 0);
  return status ? status : s->dev->ops->queue_sync(s->dev->ctx, 0);
}

qk_status_t qk_scalars_init(qk_scalars_t *s, const qk_device_t *dev, int n, int nrhs) {
  void *device = NULL, *host = NULL;
  *s = (qk_scalars_t){.dev = dev, .n = n, .nrhs = nrhs, .slices = qk_geom_slices(dev->geom)};
  qk_status_t status = dev->ops->alloc(dev->ctx, bytes_of(s, n), &device);
  if (status) return status;
  s->device = device;
  status = dev->ops->alloc_host(dev->ctx, bytes_of(s, n), &host);
  if (status) return status;
  s->host = host;
  memset(host, 0, bytes_of(s, n));
  return move(s, 0, n, QK_COPY_TO_DEVICE);
}

void qk_scalars_fini(qk_scalars_t *s) {
  if (s->host) s->dev->ops->free_host(s->dev->ctx, s->host);
  if (s->device) s->dev->ops->free(s->dev->ctx, s->device);
  s->device = s->host = NULL;
}

void qk_scalars_fetch(qk_scalars_t *s, int k, int n) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, move(s, k, n, QK_COPY_TO_HOST));
}

void qk_scalars_store(qk_scalars_t *s, int k, int n) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, move(s, k, n, QK_COPY_TO_DEVICE));
}

void qk_scalars_set(qk_scalars_t *s, int k, int rhs, double re, double im) {
  double *to = qk_scalars_host(s, k, rhs);
  for (int i = 0; i < s->slices; i++) {
    to[2 * i] = re;
    to[2 * i + 1] = im;
  }
}

void qk_scalars_fill(qk_scalars_t *s, int k, double value) {
  for (int i = 0; i < s->nrhs; i++) qk_scalars_set(s, k, i, value, 0);
  qk_scalars_store(s, k, 1);
}

void qk_scalars_fold(const qk_scalars_t *s, double *red, int n, int columns) {
  const qk_fifth_sum_args_t args = {.ls = s->slices, .n = n, .columns = columns, .red = red};
  if (s->slices > 1 && qk_dev_ok(s->dev))
    qk_dev_note(s->dev, s->dev->ops->fifth_sum(s->dev->ctx, &args));
}

void qk_scalars_total(qk_scalars_t *s, int k, int n) {
  qk_comm_t *comm = s->dev->geom->comm;
  qk_scalars_fetch(s, k, n);
  if (qk_dev_ok(s->dev) && qk_comm_size(comm) > 1)
    qk_dev_note(s->dev, qk_comm_sum(comm, qk_scalars_host(s, k, 0), 2 * n * s->nrhs * s->slices));
}

void qk_scalars_sum(qk_scalars_t *s, int k, int n) {
  qk_dev_sum(s->dev, qk_scalars_at(s, k), qk_scalars_host(s, k, 0),
             bytes_of(s, n) / sizeof(double));
}

void qk_scalars_reduce(qk_scalars_t *s, int k, int n, qk_blas_op_t op, qk_blas_args_t args) {
  args.red = qk_scalars_at(s, k);
  qk_dev_blas(s->dev, op, args);
  qk_scalars_fold(s, args.red, n, s->nrhs * s->slices);
  qk_scalars_sum(s, k, n);
}
