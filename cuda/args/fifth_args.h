/*
 * fifth_args.h: whether the descriptors of a call of fifth_ops.h fit each other, as mg_args.h.
 */
#ifndef QK_CUDA_FIFTH_ARGS_H
#define QK_CUDA_FIFTH_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

qk_status_t qk_args_fifth_mix(qk_ops_ctx_t *ctx, const qk_fifth_mix_args_t *args);
qk_status_t qk_args_fifth_sum(qk_ops_ctx_t *ctx, const qk_fifth_sum_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
