/*
 * coherent_args.h: whether the descriptors of coherent_ops.h fit each other, asked before anything
 * is launched, the same for all backends. QK_OK, or QK_BAD_ARGUMENT with field, value and limit in
 * last_error.
 */
#ifndef QK_CUDA_COHERENT_ARGS_H
#define QK_CUDA_COHERENT_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

qk_status_t qk_args_coherent(qk_ops_ctx_t *ctx, const char *call, const qk_coherent_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
