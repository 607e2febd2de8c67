/*
 * link_args.h: whether the descriptors of linkfield_ops.h fit each other, asked before anything is
 * launched, the same for all backends. QK_OK, or QK_BAD_ARGUMENT with field, value and limit in
 * last_error.
 */
#ifndef QK_CUDA_LINK_ARGS_H
#define QK_CUDA_LINK_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The field alone: has memory, halo 1 or 2, extents of the lattice and its halo. */
qk_status_t qk_args_linkfield(qk_ops_ctx_t *ctx, const char *call, const qk_lattice_t *lat,
                              const qk_linkfield_t *u);

qk_status_t qk_args_link_copy(qk_ops_ctx_t *ctx, const qk_link_copy_args_t *args);
qk_status_t qk_args_link_box(qk_ops_ctx_t *ctx, const qk_link_box_args_t *args);
qk_status_t qk_args_link_smear(qk_ops_ctx_t *ctx, const qk_link_smear_args_t *args);
qk_status_t qk_args_link_paths(qk_ops_ctx_t *ctx, const qk_link_paths_args_t *args);
qk_status_t qk_args_link_long(qk_ops_ctx_t *ctx, const qk_link_long_args_t *args);
qk_status_t qk_args_link_project(qk_ops_ctx_t *ctx, const qk_link_project_args_t *args);
qk_status_t qk_args_link_sums(qk_ops_ctx_t *ctx, const qk_link_sums_args_t *args);
qk_status_t qk_args_link_start(qk_ops_ctx_t *ctx, const qk_link_start_args_t *args);
qk_status_t qk_args_link_update(qk_ops_ctx_t *ctx, const qk_link_update_args_t *args);
qk_status_t qk_args_fix_relax(qk_ops_ctx_t *ctx, const qk_fix_relax_args_t *args);
qk_status_t qk_args_fix_sums(qk_ops_ctx_t *ctx, const qk_fix_sums_args_t *args);
qk_status_t qk_args_fix_rotate(qk_ops_ctx_t *ctx, const qk_fix_rotate_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
