/* Shifts of multi-shift CG on the CPU: chunks of rows shared among the threads. */
#include "cuda/body/shift.h"

#include "cuda/args/args.h"
#include "cuda/cpu/reduce.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

/* Coefficients of the lanes of a tile. */
template <class R> struct shift_factors {
  lanes<R> c[QK_SHIFTS_MAX][2][shift_coefficients];

  shift_factors(const block_shape &b, const qk_shift_args_t *a, int tile) {
    for (int k = 0; k < a->n; k++)
      for (int p = 0; p < 2; p++)
        for (int i = 0; i <= a->nr; i++)
          for (int l = 0; l < QK_TILE; l++) {
            const int rhs = b.rhs(tile, l);
            c[k][p][i][l] = rhs < b.nrhs ? (R)a->c[shift_at(a->nr, b.nrhs, k, p, i, rhs)] : (R)0;
          }
  }
};

template <class S, int N> void run(const qk_shift_args_t *a) {
  const block_shape b = shape_of(a->x[0], N);
  const shift_fields<S> f = shift_fields_of<S>(*a);
  for_chunks<N>(b, [&](int t, int64_t, int64_t first, int64_t last) {
    const shift_factors<real<S>> m(b, a, t);
    for (int64_t row = first; row < last; row++)
      shift_tile<S, N>(f, {b.index(row, t), 0}, [&](int k, int p, int i) { return m.c[k][p][i]; });
  });
}

} // namespace

qk_status_t shift_step(qk_ops_ctx_t *ctx, const qk_shift_args_t *a) {
  const qk_status_t status = qk_args_shift(ctx, a);
  if (status != QK_OK) return status;
  with_row_reals<float>(a->x[0], [=](auto n) {
    if (a->p[0].prec == QK_DOUBLE)
      run<double, n>(a);
    else
      run<float, n>(a);
  });
  return QK_OK;
}

} // namespace QK_NS
