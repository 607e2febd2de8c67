#include "daemon/engine/lattice/swap.h"

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/peers.h"

struct qk_swap {
  const qk_device_t *dev;
  qk_peer_memory_t *memory;
  char *at[2];       /* the memory of the neighbours */
  size_t slab, flip; /* bytes of a slab, and of the two in a half */
  uint32_t done;     /* exchanges, as the device counts them */
  qk_signal_args_t signal, await;
};

/* Of all ranks, both neighbours along mu. */
static qk_status_t all_share(const qk_device_t *dev, int mu, bool *all) {
  qk_comm_t *comm = dev->geom->comm;
  uint64_t others = 0;
  for (int d = 0; d < 2; d++)
    others += !qk_peers_has(dev->peers, qk_comm_neighbour(comm, mu, d ? +1 : -1));
  const qk_status_t status = qk_comm_sum_u64(comm, &others, 1);
  *all = others == 0;
  return status;
}

static qk_status_t place(qk_swap_t *s, int mu) {
  const qk_device_t *dev = s->dev;
  const int64_t flip = (int64_t)s->flip;
  qk_status_t status = qk_peers_take(dev, qk_peers_exchange_bytes(flip), &s->memory);
  if (status) return status;
  uint32_t *epoch = qk_peers_epoch(s->memory->own, flip);
  s->signal = s->await =
      (qk_signal_args_t){.epoch = epoch, .n = 2, .seconds = qk_peers_limit(dev->peers)};
  for (int d = 0; d < 2; d++) {
    s->at[d] = s->memory->of[qk_comm_neighbour(dev->geom->comm, mu, d ? +1 : -1)];
    s->signal.flag[d] = qk_peers_flag(s->at[d], flip, 1 - d);
    s->await.flag[d] = qk_peers_flag(s->memory->own, flip, d);
  }
  status = dev->ops->copy(dev->ctx, &s->done, epoch, sizeof s->done, QK_COPY_TO_HOST, 0);
  return status ? status : dev->ops->queue_sync(dev->ctx, 0);
}

qk_status_t qk_swap_create(const qk_device_t *dev, int mu, size_t bytes, qk_swap_t **swap) {
  bool all;
  *swap = NULL;
  qk_status_t status = all_share(dev, mu, &all);
  if (status || !all) return status;
  qk_swap_t *s = qk_calloc(1, sizeof *s);
  status = qk_comm_agree(dev->geom->comm, s ? QK_OK : QK_NO_MEMORY, NULL);
  if (!status) {
    s->dev = dev;
    s->slab = (bytes + 255) / 256 * 256;
    s->flip = 2 * s->slab;
    status = place(s, mu);
  }
  if (status) {
    qk_swap_destroy(s);
    return status;
  }
  *swap = s;
  return QK_OK;
}

void qk_swap_destroy(qk_swap_t *swap) {
  if (!swap) return;
  qk_peers_give_back(swap->memory);
  qk_free(swap);
}

static char *slab(const qk_swap_t *s, char *memory, uint32_t exchange, int d) {
  return memory + (exchange & 1) * s->flip + (size_t)d * s->slab;
}

void *qk_swap_to(const qk_swap_t *swap, int d) {
  return slab(swap, swap->at[d], swap->done + 1, 1 - d);
}

void *qk_swap_from(const qk_swap_t *swap, int d) {
  return slab(swap, swap->memory->own, swap->done, d);
}

void qk_swap_make(qk_swap_t *swap) {
  const qk_device_t *dev = swap->dev;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->signal(dev->ctx, &swap->signal));
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->await(dev->ctx, &swap->await));
  swap->done++;
}
