#include "cuda/args/peer_args.h"

#include <stddef.h>

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

qk_status_t qk_args_signal(qk_ops_ctx_t *ctx, const qk_signal_args_t *a) {
  if (a->n < 1 || a->n > QK_PEER_FLAGS) return BAD("signal: n = %d: 1 to %d", a->n, QK_PEER_FLAGS);
  if (a->epoch == NULL) return BAD("signal: epoch is missing");
  for (int i = 0; i < a->n; i++)
    if (a->flag[i] == NULL) return BAD("signal: flag[%d] is missing", i);
  return QK_OK;
}

qk_status_t qk_args_peer_sum(qk_ops_ctx_t *ctx, const qk_peer_sum_args_t *a) {
  if (a->ranks < 1 || a->ranks > QK_PEER_RANKS)
    return BAD("peer_sum: ranks = %d: 1 to %d", a->ranks, QK_PEER_RANKS);
  if (a->rank < 0 || a->rank >= a->ranks)
    return BAD("peer_sum: rank = %d: 0 to %d", a->rank, a->ranks - 1);
  if (a->n < 1 || a->n > a->most) return BAD("peer_sum: n = %d: 1 to %d", a->n, a->most);
  if (a->epoch == NULL || a->v == NULL) return BAD("peer_sum: epoch or v is missing");
  for (int r = 0; r < a->ranks; r++)
    if (a->box[r] == NULL || a->flag[r] == NULL)
      return BAD("peer_sum: box or flag %d is missing", r);
  return QK_OK;
}
