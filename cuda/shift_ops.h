/*
 * shift_ops.h: arguments of the entry for multi-shift CG. Included by ops.h.
 *
 * Runs on queue 0. Not collective. Errors: those of ops.h.
 */
#ifndef QK_CUDA_SHIFT_OPS_H
#define QK_CUDA_SHIFT_OPS_H

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shifts of a call, and residuals that it takes. */
enum { QK_SHIFTS_MAX = 32, QK_SHIFT_RESIDUALS = 8 };

/* Solutions and directions of n shifts, brought up to date with nr residuals at once: for all k < n
 *   x_k += a_k0 p_k + sum_i a_k,i+1 r_i
 *   p_k  = b_k0 p_k + sum_i b_k,i+1 r_i      with p_k as it was, in both
 * Each x and p is read and written once, each r read once. x in double; p and r in one precision,
 * double or single; all of one shape, any ncomp; no field may be another one. Coefficients are
 * real. */
typedef struct qk_shift_args {
  int32_t n, nr; /* 1 .. QK_SHIFTS_MAX, 1 .. QK_SHIFT_RESIDUALS */
  qk_spinor_t x[QK_SHIFTS_MAX], p[QK_SHIFTS_MAX], r[QK_SHIFT_RESIDUALS];
  const double *c; /* [n][a, b][1 + nr][nrhs][2], of which the real parts count */
} qk_shift_args_t;

#ifdef __cplusplus
}
#endif
#endif
