/*
 * gauge_args.h: checks of the arguments of cuda/gauge_ops.h, shared by the backends. They return
 * QK_OK, or QK_BAD_ARGUMENT with the reason in the context's error text.
 */
#ifndef QK_CUDA_GAUGE_ARGS_H
#define QK_CUDA_GAUGE_ARGS_H

#include "cuda/ctx.h"
#include "cuda/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

qk_status_t qk_args_plaquette(qk_ops_ctx_t *ctx, const qk_plaquette_args_t *args);
qk_status_t qk_args_unitarity(qk_ops_ctx_t *ctx, const qk_unitarity_args_t *args);
qk_status_t qk_args_links_set(qk_ops_ctx_t *ctx, const qk_links_set_args_t *args);
qk_status_t qk_args_links_convert(qk_ops_ctx_t *ctx, const qk_links_convert_args_t *args);
qk_status_t qk_args_clover_set(qk_ops_ctx_t *ctx, const qk_clover_set_args_t *args);
qk_status_t qk_args_diag_exp(qk_ops_ctx_t *ctx, const qk_diag_exp_args_t *args);
qk_status_t qk_args_diag_invert(qk_ops_ctx_t *ctx, const qk_diag_invert_args_t *args);
qk_status_t qk_args_diag_convert(qk_ops_ctx_t *ctx, const qk_diag_convert_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
