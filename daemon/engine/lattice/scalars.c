#include "daemon/engine/lattice/scalars.h"

#include <string.h>

static size_t bytes_of(const qk_scalars_t *s, int n) {
  return (size_t)n * (size_t)s->nrhs * 2 * sizeof(double);
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
  *s = (qk_scalars_t){.dev = dev, .n = n, .nrhs = nrhs};
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

qk_status_t qk_scalars_fill(qk_scalars_t *s, int k, double value) {
  for (int i = 0; i < s->nrhs; i++) {
    qk_scalars_host(s, k, i)[0] = value;
    qk_scalars_host(s, k, i)[1] = 0;
  }
  return move(s, k, 1, QK_COPY_TO_DEVICE);
}

qk_status_t qk_scalars_fetch(qk_scalars_t *s, int k, int n) {
  return move(s, k, n, QK_COPY_TO_HOST);
}

qk_status_t qk_scalars_store(qk_scalars_t *s, int k, int n) {
  return move(s, k, n, QK_COPY_TO_DEVICE);
}

qk_status_t qk_scalars_total(qk_scalars_t *s, int k, int n) {
  qk_comm_t *comm = s->dev->geom->comm;
  qk_status_t status = move(s, k, n, QK_COPY_TO_HOST);
  if (status || qk_comm_size(comm) == 1) return status;
  return qk_comm_sum(comm, qk_scalars_host(s, k, 0), 2 * n * s->nrhs);
}

qk_status_t qk_scalars_sum(qk_scalars_t *s, int k, int n) {
  qk_comm_t *comm = s->dev->geom->comm;
  if (qk_comm_size(comm) == 1) return QK_OK;
  qk_status_t status = qk_scalars_total(s, k, n);
  return status ? status : move(s, k, n, QK_COPY_TO_DEVICE);
}
