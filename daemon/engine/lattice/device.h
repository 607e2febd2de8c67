/*
 * device.h: device and lattice of an engine, and what fails there.
 *
 * Calls of an iteration return nothing: the first failure is kept in the device, nothing is done
 * after it, neither kernels nor sums over the ranks, and the check point asks by qk_dev_status.
 * Numbers that are looked at before it are then those of before the failure. Other calls return a
 * status, which an iteration notes:
 *
 *   if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->multi_dot(dev->ctx, &args));
 *
 * Not thread-safe; not collective.
 */
#ifndef QK_ENGINE_DEVICE_H
#define QK_ENGINE_DEVICE_H

#include <stdbool.h>

#include "cuda/ops.h"
#include "daemon/engine/lattice/geom.h"

/* Ranks that share memory (peers.h). */
typedef struct qk_peers qk_peers_t;

/* Borrowed by all that stand on it. Copies with another geometry (levels of multigrid) share
 * `failed`. */
typedef struct qk_device {
  const qk_ops_t *ops;
  qk_ops_ctx_t *ctx;
  const qk_geom_t *geom;
  qk_peers_t *peers;   /* owned by the device it was created for; NULL: none */
  qk_status_t *failed; /* one an engine, in memory of alloc_host */
} qk_device_t;

/* Borrows all three until fini, which may follow whatever comes out. Errors: QK_DEVICE_MEMORY,
 * QK_DEVICE_ERROR. */
qk_status_t qk_device_init(qk_device_t *dev, const qk_ops_t *ops, qk_ops_ctx_t *ctx,
                           const qk_geom_t *geom);
void qk_device_fini(qk_device_t *dev);

/* Puts words to a status that came without, or with its general sentence alone: those of the device
 * where it has any (ctx may be NULL). Returns status. */
qk_status_t qk_device_explain(const qk_device_t *dev, qk_status_t status, qk_err_t *err);

/* Nothing has failed since the last check point. */
static inline bool qk_dev_ok(const qk_device_t *dev) {
  return *dev->failed == QK_OK;
}
/* Keeps the first that is not QK_OK. */
void qk_dev_note(const qk_device_t *dev, qk_status_t status);
/* The check point: returns what is kept, and clears it. */
qk_status_t qk_dev_status(const qk_device_t *dev);

/* On queue 0: a pass over blocks, a copy, a wait for all that has been asked for. */
void qk_dev_blas(const qk_device_t *dev, qk_blas_op_t op, qk_blas_args_t args);
void qk_dev_copy(const qk_device_t *dev, void *to, const void *from, size_t bytes, qk_copy_t kind);
void qk_dev_sync(const qk_device_t *dev);

#endif
