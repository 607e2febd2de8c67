/* Steps of GCR and small least squares problems on the CPU. */
#include <math.h>

#include "cuda/body/gcr.h"

#include "cuda/args/args.h"
#include "cuda/cpu/reduce.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

/* Amounts of the lanes of a tile, for up to QK_GCR_MAX fields. */
template <class R> struct amounts_of_tile {
  cx<lanes<R>> by[QK_GCR_MAX];
  lanes<R> on[QK_GCR_MAX];
  bool none[QK_GCR_MAX], partly[QK_GCR_MAX];

  explicit amounts_of_tile(int n) {
    for (int k = 0; k < n; k++) {
      by[k] = cx<lanes<R>>{};
      on[k] = lanes<R>{};
      none[k] = true;
      partly[k] = false;
    }
  }
  void set(int k, int lane, const dcx &c) {
    const bool any = c.re != 0 || c.im != 0;
    by[k].re[lane] = (R)c.re;
    by[k].im[lane] = (R)c.im;
    on[k][lane] = any;
    none[k] = none[k] && !any;
    partly[k] = partly[k] || !any;
  }
  gcr_amounts<R> all() const { return {by, on, none, partly, 1}; }
};

/* Lanes of a tile: what the new direction loses of each earlier one, and the length of the step. */
template <class R> struct gcr_coefficients {
  amounts_of_tile<R> minus;
  cx<lanes<R>> a;

  gcr_coefficients(const block_shape &b, const qk_gcr_args_t &args, int tile)
      : minus(args.n), a(cx<lanes<R>>{}) {
    const gcr_scalars s = gcr_scalars_of(args);
    for (int l = 0; l < QK_TILE; l++) {
      const int rhs = b.rhs(tile, l);
      if (rhs >= b.nrhs) continue;
      double taken = 0;
      for (int k = 0; k < args.n; k++) {
        const dcx c = s.share(k, rhs);
        taken += s.taken(c, k, rhs);
        minus.set(k, l, dcx{-c.re, -c.im});
      }
      const double left = s.left(args.n, rhs, taken);
      const dcx c = s.length(args.n, rhs, left);
      a.re[l] = (R)c.re;
      a.im[l] = (R)c.im;
      s.keep(args.n, rhs, left);
    }
  }
};

template <class S> void run_gcr(const qk_gcr_args_t &args) {
  constexpr int N = gcr_tile<gcr_scaled<S>>, parts = N / gcr_reals<S, gcr_scaled<S>>;
  const block_shape b = shape_of(args.r, N);
  const gcr_fields<S> f = gcr_fields_of<S>(args);
  for (int t = 0; t < b.ntile; t++) {
    const gcr_coefficients<real<S>> c(b, args, t);
#pragma omp parallel for schedule(static) if (b.rows > 256)
    for (int64_t row = 0; row < b.rows; row++)
      for (int part = 0; part < parts; part++)
        gcr_part<S>(f, spot{b.index(row, t), 0}, part, c.minus.all(), c.a);
  }
}

/* Of a RHS: what r takes of each direction; the record of the new one is written. */
void make_amounts(const gcr_records &s, int n, int rhs, bool write, dcx *to) {
  dcx c[QK_GCR_MAX];
  double taken = 0;
  for (int k = 0; k < n; k++) {
    c[k] = s.share_of(k, rhs);
    taken += s.taken(c[k], k, rhs);
  }
  const double left = s.left(n, rhs, taken);
  const dcx a = s.length(n, rhs, left);
  for (int k = 0; k < n; k++) {
    const dcx made = s.made_of(n, k, rhs, c, 1);
    to[k] = a * made;
    if (write) s.hold(n, k, rhs, made);
  }
  to[n] = {-a.re, -a.im};
  if (write) s.keep(n, rhs, left);
}

template <class S, class NEXT> void run_pass(qk_ops_ctx_t *ctx, const qk_gcr_args_t &args) {
  constexpr bool WHOLE = gcr_pass_fields<S, NEXT>::whole;
  constexpr int N = gcr_tile<WHOLE>, parts = N / gcr_reals<S, WHOLE>;
  const block_shape b = shape_of(args.r, N);
  const gcr_pass_fields<S, NEXT> f = gcr_pass_fields_of<S, NEXT>(args);
  const gcr_records s = {gcr_scalars_of(args)};
  double *red = gcr_norm_of(args);
  for_chunks<N>(b, [&](int t, int64_t chunk, int64_t first, int64_t last) {
    amounts_of_tile<real<S>> amounts(f.n + 1);
    sums<1> norm = {};
    for (int l = 0; l < QK_TILE; l++) {
      dcx by[QK_GCR_MAX];
      if (b.rhs(t, l) >= b.nrhs) continue;
      make_amounts(s, f.n, b.rhs(t, l), chunk == 0 && (l == 0 || !b.single_rhs), by);
      for (int k = 0; k <= f.n; k++) amounts.set(k, l, by[k]);
    }
    for (int64_t row = first; row < last; row++)
      for (int part = 0; part < parts; part++)
        gcr_pass_part(f, spot{b.index(row, t), 0}, part, amounts.all(), norm);
    keep(partial_of(ctx, t, chunk, 0), norm.v[0]);
  });
  if (red != NULL) finish(ctx, b, chunks(b, N), 0, args.mask, false, red);
}

template <class S> void choose_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t &a) {
  if (a.x.data != NULL) return run_gcr<S>(a);
  if constexpr (std::is_same_v<S, float>)
    if (a.next.data != NULL && qk_prec_scaled(a.next.prec)) return run_pass<S, half>(ctx, a);
  run_pass<S, S>(ctx, a);
}

} // namespace

qk_status_t gcr_step(qk_ops_ctx_t *ctx, const qk_gcr_args_t *a) {
  const qk_status_t status = qk_args_gcr(ctx, a);
  if (status != QK_OK) return status;
  with_storage(a->r.prec, [=](auto s) { choose_gcr<stored<decltype(s)>>(ctx, *a); });
  return QK_OK;
}

qk_status_t gram_solve(qk_ops_ctx_t *ctx, const qk_gram_args_t *a) {
  const qk_status_t status = qk_args_gram(ctx, a);
  if (status != QK_OK) return status;
  for (int rhs = 0; rhs < a->nrhs; rhs++) gram_solve_one(*a, rhs);
  return QK_OK;
}

} // namespace QK_NS
