/*
 * vector_block_args.h: whether the descriptors of vector_block_ops.h fit each other, asked before
 * anything is launched, the same for all backends. QK_OK, or QK_BAD_ARGUMENT with field,
 * value and limit in last_error.
 */
#ifndef QK_CUDA_VECTOR_BLOCK_ARGS_H
#define QK_CUDA_VECTOR_BLOCK_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* basis_dot and basis_axpy, which `call` names; and basis_rotate. */
qk_status_t qk_args_basis(qk_ops_ctx_t *ctx, const char *call, const qk_basis_args_t *args);
qk_status_t qk_args_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *args);
qk_status_t qk_args_sites(qk_ops_ctx_t *ctx, const char *call, const qk_sites_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
