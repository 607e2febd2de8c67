/*
 * one_block.cuh: entries for bases where the basis is one block in single precision of as many
 * columns as there are results: block CG. one_block.cu; all else is in vector_block.cu.
 */
#ifndef QK_GPU_ONE_BLOCK_CUH
#define QK_GPU_ONE_BLOCK_CUH

#include "cuda/body/vector_block.h"
#include "cuda/gpu/ctx.cuh"

namespace QK_NS {

/* Whether dot and axpy, or rotate, are for these arguments, which have been checked. */
bool one_block_pairs(const qk_basis_args_t *a);
bool one_block_rotates(const qk_basis_args_t *a);

qk_status_t one_block_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *a);
qk_status_t one_block_axpy(qk_ops_ctx_t *ctx, const qk_basis_args_t *a);
qk_status_t one_block_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *a);

} // namespace QK_NS
#endif
