/*
 * gpu/krylov/dot_small.cuh: dot products of many fields on small lattices, in one launch: a block
 * of threads has all rows of one field and one tile. Coarsest grids make so many of them that the
 * launches of a second pass would count.
 */
#ifndef QK_CUDA_GPU_DOT_SMALL_CUH
#define QK_CUDA_GPU_DOT_SMALL_CUH

#include "cuda/gpu/ctx.cuh"
#include "cuda/ops.h"

namespace QK_NS {

/* Whether the fields of a call are small enough, and single. It depends on their shape alone. */
bool dot_small_fits(const qk_multi_args_t *a);
/* multi_dot of checked arguments that fit. */
qk_status_t dot_small(qk_ops_ctx_t *ctx, const qk_multi_args_t *a);

} // namespace QK_NS
#endif
