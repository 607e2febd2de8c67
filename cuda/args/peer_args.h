/*
 * peer_args.h: whether the descriptors of peer_ops.h are whole, asked before anything is launched,
 * the same for all backends. QK_OK, or QK_BAD_ARGUMENT with field, value and limit in last_error.
 */
#ifndef QK_CUDA_PEER_ARGS_H
#define QK_CUDA_PEER_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

qk_status_t qk_args_signal(qk_ops_ctx_t *ctx, const qk_signal_args_t *args);
qk_status_t qk_args_peer_sum(qk_ops_ctx_t *ctx, const qk_peer_sum_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
