/* Steps of GCR and small least squares problems on the CPU. */
#include <math.h>

#include "cuda/body/gcr.h"

#include "cuda/args/args.h"
#include "cuda/cpu/ctx.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

/* Lanes of a tile: what the new direction loses of each earlier one, and the length of the step. */
template <class R> struct gcr_coefficients {
  cx<lanes<R>> minus[QK_GCR_MAX];
  lanes<R> on[QK_GCR_MAX];
  bool none[QK_GCR_MAX], partly[QK_GCR_MAX];
  gcr_amounts<R> amounts;

  gcr_coefficients(const block_shape &b, const qk_gcr_args_t &args, int tile) {
    const gcr_scalars s = gcr_scalars_of(args);
    amounts = {minus, on, none, partly, 1, cx<lanes<R>>{}};
    for (int k = 0; k < args.n; k++) {
      minus[k] = cx<lanes<R>>{};
      on[k] = lanes<R>{};
      none[k] = true;
      partly[k] = false;
    }
    for (int l = 0; l < QK_TILE; l++) {
      const int rhs = b.rhs(tile, l);
      if (rhs >= b.nrhs) continue;
      double taken = 0;
      for (int k = 0; k < args.n; k++) {
        const dcx c = s.share(k, rhs);
        const bool any = c.re != 0 || c.im != 0;
        taken += s.taken(c, k, rhs);
        minus[k].re[l] = (R)-c.re;
        minus[k].im[l] = (R)-c.im;
        on[k][l] = any;
        none[k] = none[k] && !any;
        partly[k] = partly[k] || !any;
      }
      const double left = s.left(args.n, rhs, taken);
      const dcx c = s.length(args.n, rhs, left);
      amounts.a.re[l] = (R)c.re;
      amounts.a.im[l] = (R)c.im;
      s.keep(args.n, rhs, left);
    }
  }
};

template <bool X, class S> void run_gcr(const qk_gcr_args_t &args) {
  constexpr int N = gcr_tile<S>, parts = N / gcr_reals<S>;
  const block_shape b = shape_of(args.r, N);
  const gcr_fields<S> f = gcr_fields_of<S>(args);
  for (int t = 0; t < b.ntile; t++) {
    const gcr_coefficients<real<S>> c(b, args, t);
#pragma omp parallel for schedule(static) if (b.rows > 256)
    for (int64_t row = 0; row < b.rows; row++)
      for (int part = 0; part < parts; part++)
        gcr_part<X, S>(f, spot{b.index(row, t), 0}, part, c.amounts);
  }
}

template <class S> void choose_gcr(const qk_gcr_args_t &a) {
  return a.x.data != NULL ? run_gcr<true, S>(a) : run_gcr<false, S>(a);
}

} // namespace

qk_status_t gcr_step(qk_ops_ctx_t *ctx, const qk_gcr_args_t *a) {
  const qk_status_t status = qk_args_gcr(ctx, a);
  if (status != QK_OK) return status;
  with_storage(a->r.prec, [=](auto s) { choose_gcr<stored<decltype(s)>>(*a); });
  return QK_OK;
}

qk_status_t gram_solve(qk_ops_ctx_t *ctx, const qk_gram_args_t *a) {
  const qk_status_t status = qk_args_gram(ctx, a);
  if (status != QK_OK) return status;
  for (int rhs = 0; rhs < a->nrhs; rhs++) gram_solve_one(*a, rhs);
  return QK_OK;
}

} // namespace QK_NS
