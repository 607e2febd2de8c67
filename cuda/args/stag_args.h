/*
 * stag_args.h: whether the arguments of the staggered entries fit each other: QK_BAD_ARGUMENT, with
 * what does not fit in the context.
 */
#ifndef QK_CUDA_STAG_ARGS_H
#define QK_CUDA_STAG_ARGS_H

#include "cuda/ctx.h"
#include "cuda/stag_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

qk_status_t qk_args_stag(qk_ops_ctx_t *ctx, const qk_stag_args_t *args);
qk_status_t qk_args_stag_pack(qk_ops_ctx_t *ctx, const qk_stag_pack_args_t *args);
qk_status_t qk_args_stag_links(qk_ops_ctx_t *ctx, const qk_stag_links_args_t *args);
qk_status_t qk_args_stag_behind(qk_ops_ctx_t *ctx, const qk_stag_behind_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
