/*
 * peer.h: where flags and mailboxes of sums between ranks are (cuda/peer_ops.h), on any backend.
 */
#ifndef QK_BODY_PEER_H
#define QK_BODY_PEER_H

#include "cuda/ops.h"
#include "cuda/site/lane.h"

namespace QK_NS {

/* Whether a flag says `epoch` or a later one; numbers wrap around. */
QK_ANY bool has_arrived(uint32_t flag, uint32_t epoch) {
  return (int32_t)(flag - epoch) >= 0;
}

/* What rank `by` has sent to rank `to` for sum number `epoch`. */
QK_ANY double *sum_slot(const qk_peer_sum_args_t &a, int to, int by, uint32_t epoch) {
  const size_t half = (size_t)(epoch & 1) * (size_t)a.ranks;
  return a.box[to] + (half + (size_t)by) * (size_t)a.most;
}

/* Says that it is there. */
QK_ANY uint32_t *sum_flag(const qk_peer_sum_args_t &a, int to, int by) {
  return (uint32_t *)(a.flag[to] + by * QK_PEER_LINE);
}

} // namespace QK_NS
#endif
