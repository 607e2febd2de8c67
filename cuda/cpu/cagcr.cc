/* Small Krylov spaces on the CPU: inner products of all pairs, and a step along them. */
#include "cuda/body/cagcr.h"

#include "cuda/args/args.h"
#include "cuda/cpu/reduce.h"

namespace QK_NS {
namespace {

/* r[j*(j+1)/2 + i] += (v_i, v_j) of one tile, i <= j < nv. */
template <class S, int N>
void pairs_of_tile(const spinor<S> *v, int nv, spot at, sums<space_pairs> &r) {
  for (int j = 0, k = 0; j < nv; j++)
    for (int i = 0; i <= j; i++, k++) dot_tile<S, N>(v[i], v[j], at, r.v[k]);
}

template <class S, int N> void run_dots(qk_ops_ctx_t *ctx, const qk_space_args_t *a, int nv) {
  const block_shape b = shape_of(a->v[0], N);
  const int n = nv * (nv + 1) / 2;
  spinor<S> v[space_most];
  for (int j = 0; j < nv; j++) v[j] = spinor_of<S>(a->v[j]);
  for_chunks<N>(b, [&](int t, int64_t chunk, int64_t first, int64_t last) {
    sums<space_pairs> r = {};
    for (int64_t row = first; row < last; row++)
      pairs_of_tile<S, N>(v, nv, {b.index(row, t), 0}, r);
    for (int k = 0; k < n; k++) keep(partial_of(ctx, t, chunk, k), r.v[k]);
  });
  for (int k = 0; k < n; k++)
    finish(ctx, b, chunks(b, N), k, NULL, false, a->dots + (int64_t)k * 2 * b.nrhs);
}

template <class S, int N> void run_step(const qk_space_args_t *a) {
  const block_shape b = shape_of(a->x, N);
  const spinor<S> x = spinor_of<S>(a->x);
  const auto v = [&](int j) { return spinor_of<S>(a->v[j]); };
  for_chunks<N>(b, [&](int t, int64_t, int64_t first, int64_t last) {
    cx<lanes<real<S>>> y[QK_GRAM_MAX] = {};
    for (int l = 0; l < QK_TILE; l++) {
      const int rhs = b.rhs(t, l);
      for (int i = 0; rhs < b.nrhs && i < a->n; i++) {
        const double *c = a->y + 2 * ((int64_t)i * b.nrhs + rhs);
        y[i].re[l] = (real<S>)c[0];
        y[i].im[l] = (real<S>)c[1];
      }
    }
    for (int64_t row = first; row < last; row++)
      space_step_row<S, N>(a->n, a->x_zero != 0, a->last != 0, x, v, y, 1, {b.index(row, t), 0});
  });
}

} // namespace

qk_status_t space_dots(qk_ops_ctx_t *ctx, const qk_space_args_t *a) {
  qk_status_t status = qk_args_space(ctx, a, 0);
  if (status != QK_OK) return status;
  const int nv = a->n < space_most ? a->n + 1 : space_most;
  as_kind(a->v[0], [&](auto k) { run_dots<typename decltype(k)::S, decltype(k)::N>(ctx, a, nv); });
  for (int j = nv; status == QK_OK && j <= a->n; j++) status = space_dots_with(ctx, a, j);
  return status;
}

qk_status_t space_step(qk_ops_ctx_t *ctx, const qk_space_args_t *a) {
  const qk_status_t status = qk_args_space(ctx, a, 1);
  if (status != QK_OK) return status;
  as_kind(a->x, [&](auto k) { run_step<typename decltype(k)::S, decltype(k)::N>(a); });
  return QK_OK;
}

} // namespace QK_NS
