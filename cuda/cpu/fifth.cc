/* Fields with a fifth dimension on the CPU: slices mixed at each site, sums over them. */
#include "cuda/body/fifth.h"

#include <string.h>

#include "cuda/args/fifth_args.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int N = fifth_reals;

/* The columns of a site, one behind the other. */
template <class S> struct site_columns {
  real<S> v[QK_COLUMNS_MAX][N];

  void load(const spinor<S> &f, int64_t site) {
    lanes<real<S>> r[N];
    load_spinor<N>(f, fifth_spot(f, site, 0), r);
    if (f.ntile == 0) {
      for (int c = 0; c < N; c++) v[0][c] = r[c][site % QK_TILE];
      return;
    }
    for (int t = 0; t < f.ntile; t++) {
      if (t > 0) load_spinor<N>(f, fifth_spot(f, site, t * QK_TILE), r);
      for (int l = 0; l < QK_TILE; l++)
        for (int c = 0; c < N; c++) v[t * QK_TILE + l][c] = r[c][l];
    }
  }

  void store(const spinor<S> &f, int64_t site) const {
    if (f.ntile == 0) { /* other sites of the tile may be another thread's */
      if constexpr (!storage<S>::scaled)
        for (int c = 0; c < N; c++)
          f.data[site / QK_TILE * (QK_TILE * N) + c * QK_TILE + site % QK_TILE] = v[0][c];
      return;
    }
    for (int t = 0; t < f.ntile; t++) {
      lanes<real<S>> r[N];
      for (int l = 0; l < QK_TILE; l++)
        for (int c = 0; c < N; c++) r[c][l] = v[t * QK_TILE + l][c];
      store_spinor<N>(f, fifth_spot(f, site, t * QK_TILE), r);
    }
  }
};

template <class S> void mix_as(const qk_fifth_mix_args_t &a) {
  const fifth_matrix<real<S>> m = fifth_matrix_of<real<S>>(a);
  const spinor<S> in = spinor_of<S>(a.in), x = spinor_of<S>(a.x), out = spinor_of<S>(a.out);
  const int nrhs = a.in.nrhs / a.from;
  const real<S> c_x = (real<S>)a.c_x, c_in = (real<S>)a.c_in;
#pragma omp parallel for schedule(static)
  for (int64_t site = 0; site < a.in.nsites; site++) {
    site_columns<S> from, to;
    from.load(in, site);
    if (a.x.data)
      to.load(x, site);
    else
      memset(to.v, 0, sizeof to.v[0] * (size_t)(a.out.ntile > 0 ? a.out.ntile * QK_TILE : 1));
    for (int rhs = 0; rhs < nrhs; rhs++)
      for (int s = 0; s < a.to; s++) {
        real<S> *v = to.v[rhs * a.to + s], sum[N] = {};
        for (int r = 0; r < a.from; r++) m.add(s, r, from.v[rhs * a.from + r], sum);
        for (int c = 0; c < N; c++) v[c] = c_x * v[c] + c_in * sum[c];
      }
    to.store(out, site);
  }
}

} // namespace

qk_status_t fifth_mix(qk_ops_ctx_t *ctx, const qk_fifth_mix_args_t *a) {
  const qk_status_t status = qk_args_fifth_mix(ctx, a);
  if (status != QK_OK) return status;
  with_storage(a->in.prec, [=](auto s) { mix_as<stored<decltype(s)>>(*a); });
  return QK_OK;
}

qk_status_t fifth_sum(qk_ops_ctx_t *ctx, const qk_fifth_sum_args_t *a) {
  const qk_status_t status = qk_args_fifth_sum(ctx, a);
  if (status != QK_OK) return status;
  for (int64_t i = 0; i < (int64_t)a->n * a->columns; i += a->ls) {
    double *red = a->red + 2 * i, re = 0, im = 0;
    for (int s = 0; s < a->ls; s++) {
      re += red[2 * s];
      im += red[2 * s + 1];
    }
    for (int s = 0; s < a->ls; s++) {
      red[2 * s] = re;
      red[2 * s + 1] = im;
    }
  }
  return QK_OK;
}

} // namespace QK_NS
