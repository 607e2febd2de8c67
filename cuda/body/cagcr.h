/*
 * cagcr.h: what the backends share of small Krylov spaces (cuda/ops.h: space_dots, space_step).
 *
 * One pass over the fields has `most` of them at most:
 * the products of all pairs are kept in registers.
 */
#ifndef QK_BODY_CAGCR_H
#define QK_BODY_CAGCR_H

#include "cuda/body/blas.h"
#include "cuda/kernels.h"

namespace QK_NS {

constexpr int space_most = 5, space_pairs = space_most * (space_most + 1) / 2;

/* One row: x += sum_i y_i v_i and v_0 -= sum_i y_i v_{i+1} (not if `last`); v(j): field j. y:
 * coefficients of the lanes, `stride` apart. */
template <class S, int N, class FIELDS>
QK_HD void space_step_row(int n, bool x_zero, bool last, const spinor<S> &x, const FIELDS &v,
                          const cx<lanes<real<S>>> *y, int stride, spot at) {
  using V = lanes<real<S>>;
  V sum[N] = {}, rest[N], w[N];
  if (!x_zero) load_spinor<N>(x, at, sum);
  load_spinor<N>(v(0), at, rest);
  add_times<N>(sum, y[0], rest);
  for (int j = 1; j <= n - (last ? 1 : 0); j++) {
    const cx<V> before = y[(j - 1) * stride];
    load_spinor<N>(v(j), at, w);
    if (j < n) add_times<N>(sum, y[j * stride], w);
    if (!last) add_times<N>(rest, cx<V>{-before.re, -before.im}, w);
  }
  store_spinor<N>(x, at, sum);
  if (!last) store_spinor<N>(v(0), at, rest);
}

/* Products of v_j with all before it and itself. */
inline qk_status_t space_dots_with(qk_ops_ctx_t *ctx, const qk_space_args_t *a, int j) {
  qk_multi_args_t m = {};
  m.n = j + 1;
  m.y = a->v[j];
  m.red = a->dots + (int64_t)j * (j + 1) * a->v[0].nrhs;
  for (int i = 0; i <= j; i++) m.f[i] = a->v[i];
  return multi_dot(ctx, &m);
}

} // namespace QK_NS
#endif
