/* Steps of GCR and small least squares problems on the CPU. */
#include <math.h>

#include "cuda/body/krylov.h"

#include "cuda/args.h"
#include "cuda/cpu/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

/* Lanes of a tile: what the new direction loses of each earlier one, and the length of the step. */
template <class R> struct gcr_coefficients {
  cx<lanes<R>> minus[QK_GCR_MAX], a;

  gcr_coefficients(const block_shape &b, const qk_gcr_args_t &args, int tile) {
    const gcr_scalars s = {args.dots, args.norm2, args.mask, b.nrhs};
    for (int k = 0; k < args.n; k++) minus[k] = cx<lanes<R>>{};
    a = cx<lanes<R>>{};
    for (int l = 0; l < QK_TILE; l++) {
      const int rhs = b.rhs(tile, l);
      if (rhs >= b.nrhs || !s.live(rhs)) continue;
      double taken = 0;
      for (int k = 0; k < args.n; k++) {
        const dcx c = s.share(k, rhs);
        taken += s.taken(c, k, rhs);
        minus[k].re[l] = (R)-c.re;
        minus[k].im[l] = (R)-c.im;
      }
      const double left = gcr_scalars::rest(s.size(args.n, rhs), taken);
      const dcx c = s.length(args.n, rhs, left);
      a.re[l] = (R)c.re;
      a.im[l] = (R)c.im;
      s.keep(args.n, rhs, left);
    }
  }
};

template <class S> void run_gcr(const qk_gcr_args_t &args) {
  constexpr int N = sub_reals, parts = N / part_size<S, N>;
  const block_shape b = shape_of(args.r, N);
  const gcr_fields<S> f = gcr_fields_of<S>(args);
  for (int t = 0; t < b.ntile; t++) {
    const gcr_coefficients<S> c(b, args, t);
#pragma omp parallel for schedule(static) if (b.rows > 256)
    for (int64_t row = 0; row < b.rows; row++)
      for (int part = 0; part < parts; part++)
        gcr_part<S>(f, spot{b.index(row, t), 0}, part, c.minus, 1, c.a);
  }
}

} // namespace

qk_status_t gcr_step(qk_ops_ctx_t *ctx, const qk_gcr_args_t *a) {
  const qk_status_t status = qk_args_gcr(ctx, a);
  if (status != QK_OK) return status;
  if (a->r.prec == QK_DOUBLE)
    run_gcr<double>(*a);
  else
    run_gcr<float>(*a);
  return QK_OK;
}

qk_status_t gram_solve(qk_ops_ctx_t *ctx, const qk_gram_args_t *a) {
  const qk_status_t status = qk_args_gram(ctx, a);
  if (status != QK_OK) return status;
  for (int rhs = 0; rhs < a->nrhs; rhs++) gram_solve_one(*a, rhs);
  return QK_OK;
}

} // namespace QK_NS
