/*
 * mg_args.h: whether the descriptors of a call of mg_ops.h fit each other, asked before anything is
 * launched, the same for all backends. Each function returns QK_OK, or QK_BAD_ARGUMENT with field,
 * value and limit in last_error. Pure but for that. Not collective.
 */
#ifndef QK_CUDA_MG_ARGS_H
#define QK_CUDA_MG_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of nvec, and of n = 2 * nvec. */
enum { QK_MG_NVEC_MAX = 64, QK_MG_N_MAX = 2 * QK_MG_NVEC_MAX };

qk_status_t qk_args_coarse(qk_ops_ctx_t *ctx, const qk_coarse_args_t *args);
qk_status_t qk_args_coarse_pack(qk_ops_ctx_t *ctx, const qk_coarse_pack_args_t *args);
qk_status_t qk_args_part(qk_ops_ctx_t *ctx, const qk_part_args_t *args);
qk_status_t qk_args_chiral(qk_ops_ctx_t *ctx, const qk_chiral_args_t *args);
qk_status_t qk_args_transfer(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args);
qk_status_t qk_args_transfer_copy(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
