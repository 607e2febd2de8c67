/*
 * mg_setup_args.h: like mg_args.h, for the calls that make a multigrid setup. Returns QK_OK, or
 * QK_BAD_ARGUMENT with field, value and limit in last_error. Pure but for that. Not collective.
 */
#ifndef QK_CUDA_MG_SETUP_ARGS_H
#define QK_CUDA_MG_SETUP_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

qk_status_t qk_args_orthonormalise(qk_ops_ctx_t *ctx, const qk_orthonormalise_args_t *args);
qk_status_t qk_args_principal(qk_ops_ctx_t *ctx, const qk_principal_args_t *args);
qk_status_t qk_args_galerkin(qk_ops_ctx_t *ctx, const qk_galerkin_args_t *args);
qk_status_t qk_args_coarse_close(qk_ops_ctx_t *ctx, const qk_coarse_close_args_t *args);
qk_status_t qk_args_coarse_face(qk_ops_ctx_t *ctx, const qk_coarse_face_args_t *args);
qk_status_t qk_args_coarse_invert(qk_ops_ctx_t *ctx, const qk_coarse_invert_args_t *args);
qk_status_t qk_args_coarse_times(qk_ops_ctx_t *ctx, const qk_coarse_times_args_t *args);
qk_status_t qk_args_coarse_eight(qk_ops_ctx_t *ctx, const qk_coarse_eight_args_t *args);
qk_status_t qk_args_coarse_copy(qk_ops_ctx_t *ctx, const qk_coarse_copy_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
