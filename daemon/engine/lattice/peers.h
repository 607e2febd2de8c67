/*
 * peers.h: the ranks that share memory with this one, on one host, and what goes between them
 * without the host (cuda/peer_ops.h): halos (halo.h) write into that memory, and sums of numbers on
 * the device are made there.
 *
 * Whether ranks can share memory is tried once, when the engine starts; the log says what was found
 * and why. Where they cannot, messages go through MPI: from device memory, if the MPI can read it,
 * else staged in host memory.
 *
 * Memory that is given back is kept, and freed by destroy: it must be closed everywhere before.
 * Errors: QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_NO_MEMORY, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_PEERS_H
#define QK_ENGINE_PEERS_H

#include "daemon/engine/lattice/device.h"

/* Shared memory, the same number of bytes on each rank. */
typedef struct qk_peer_memory {
  struct qk_peer_memory *next;
  size_t bytes;
  bool taken;
  void *own;
  void *of[]; /* of each rank; NULL: not a peer */
} qk_peer_memory_t;

/* Tries the ranks of this host; sets dev->peers, which stays NULL if there is nothing to exchange
 * or nobody to share with. QK_TRANSPORT=staged leaves all to MPI; with QK_TRANSPORT=peer, ranks of
 * one host that cannot share memory are an error (QK_UNSUPPORTED); auto is the default.
 * Collective. Errors besides: QK_BAD_ARGUMENT for other words. */
qk_status_t qk_peers_create(qk_device_t *dev, qk_err_t *err);
/* NULL-safe; frees all memory. Collective. Copies of the device must be gone. */
void qk_peers_destroy(qk_device_t *dev);

/* Whether the rank shares memory with this one. */
bool qk_peers_has(const qk_peers_t *peers, int rank);
/* Whether no exchange and no sum goes through the host: what a graph needs. */
bool qk_dev_alone(const qk_device_t *dev);

/* Zeroed memory of at least so many bytes on each rank, or some that was given back. Collective. */
qk_status_t qk_peers_take(const qk_device_t *dev, size_t bytes, qk_peer_memory_t **memory);
void qk_peers_give_back(qk_peer_memory_t *memory); /* NULL-safe; not collective */

/* Memory of exchanges: two halves that take turns (qk_turns_t), `flip` bytes each, and behind them
 * QK_PEER_FLAGS flags, then the number of exchanges. All have it in this order, because memory that
 * was given back goes on at the number of its last exchange. */
static inline size_t qk_peers_exchange_bytes(int64_t flip) {
  return 2 * (size_t)flip + (QK_PEER_FLAGS + 1) * QK_PEER_LINE;
}
static inline uint32_t *qk_peers_flag(void *memory, int64_t flip, int i) {
  return (uint32_t *)((char *)memory + 2 * flip + i * QK_PEER_LINE);
}
static inline uint32_t *qk_peers_epoch(void *memory, int64_t flip) {
  return qk_peers_flag(memory, flip, QK_PEER_FLAGS);
}

/* How long one rank waits for another, in seconds: QK_PEER_LIMIT, or 60. */
double qk_peers_limit(const qk_peers_t *peers);

/* Sums n doubles in device memory over the ranks, on queue 0; same bits on each. Without peers
 * that can, through `host`, n doubles of alloc_host, and MPI. Notes failures. Collective. */
void qk_dev_sum(const qk_device_t *dev, double *device, double *host, size_t n);

#endif
