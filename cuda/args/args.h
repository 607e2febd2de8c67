/*
 * args.h: whether the descriptors of a call fit each other, asked before anything is launched, the
 * same for all backends. Each function returns QK_OK, or QK_BAD_ARGUMENT with field, value and
 * limit in last_error.
 */
#ifndef QK_CUDA_ARGS_H
#define QK_CUDA_ARGS_H

#include "cuda/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_ARGS_TEXT = 64 };

/* NULL if f is a field that block BLAS can work on; else what is wrong, perhaps in text. */
const char *qk_args_misfit(const qk_spinor_t *f, char text[QK_ARGS_TEXT]);

qk_status_t qk_args_blas(qk_ops_ctx_t *ctx, const qk_blas_args_t *args);
/* dot: the fields go to red; else they are added to y with coefficients c. */
qk_status_t qk_args_multi(qk_ops_ctx_t *ctx, const qk_multi_args_t *args, int dot);
qk_status_t qk_args_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t *args);
qk_status_t qk_args_gram(qk_ops_ctx_t *ctx, const qk_gram_args_t *args);
/* step: x and v are written; else dots are. */
qk_status_t qk_args_space(qk_ops_ctx_t *ctx, const qk_space_args_t *args, int step);
qk_status_t qk_args_shift(qk_ops_ctx_t *ctx, const qk_shift_args_t *args);
qk_status_t qk_args_site_ratios(qk_ops_ctx_t *ctx, const qk_site_ratios_args_t *args);
qk_status_t qk_args_rhs(qk_ops_ctx_t *ctx, const qk_rhs_args_t *args);
qk_status_t qk_args_rhs_copy(qk_ops_ctx_t *ctx, const qk_rhs_copy_args_t *args);
qk_status_t qk_args_source(qk_ops_ctx_t *ctx, const qk_source_args_t *args);
qk_status_t qk_args_noise(qk_ops_ctx_t *ctx, const qk_noise_args_t *args);
qk_status_t qk_args_contract(qk_ops_ctx_t *ctx, const qk_contract_args_t *args);

#ifdef __cplusplus
}
#endif
#endif
