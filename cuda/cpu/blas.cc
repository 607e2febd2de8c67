/* Block BLAS and many-vector operations on the CPU: chunks of rows shared among the threads. */
#include "cuda/body/blas.h"

#include "cuda/args/args.h"
#include "cuda/cpu/reduce.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

/* Which lanes of a tile a mask lets through; lanes beyond nrhs follow the others. */
struct live_lanes {
  bool lane[QK_TILE], any = false, all = true;

  live_lanes(const block_shape &b, const uint8_t *mask, int tile) {
    for (int l = 0; l < QK_TILE; l++) {
      const int rhs = b.rhs(tile, l);
      lane[l] = mask == NULL || rhs >= b.nrhs || mask[rhs] != 0;
      if (rhs >= b.nrhs) continue;
      any = any || lane[l];
      all = all && lane[l];
    }
  }
};

/* What a tile held before, to give masked lanes their old bits back. */
template <class S, int N> struct saved_tile {
  S data[QK_TILE * N];
  float scale[QK_TILE];

  void save(const spinor<S> &f, int64_t tile) {
    memcpy(data, f.data + tile * (QK_TILE * N), sizeof data);
    if constexpr (storage<S>::scaled) memcpy(scale, f.scale + tile * QK_TILE, sizeof scale);
  }
  void restore(const spinor<S> &f, int64_t tile, const live_lanes &live) const {
    S *to = f.data + tile * (QK_TILE * N);
    for (int l = 0; l < QK_TILE; l++) {
      if (live.lane[l]) continue;
      for (int c = 0; c < N; c++) to[c * QK_TILE + l] = data[c * QK_TILE + l];
      if constexpr (storage<S>::scaled) f.scale[tile * QK_TILE + l] = scale[l];
    }
  }
};

template <class R> void set_lane(cx<lanes<R>> &k, int lane, const dcx &v) {
  k.re[lane] = (R)v.re;
  k.im[lane] = (R)v.im;
}

template <class Op, class R>
void coefficients(const block_shape &b, const qk_blas_args_t *a, int tile, cx<lanes<R>> *k) {
  for (int l = 0; l < QK_TILE; l++) {
    const int rhs = b.rhs(tile, l);
    dcx c[Op::nc > 0 ? Op::nc : 1], made[Op::nk > 0 ? Op::nk : 1];
    if (rhs >= b.nrhs) continue;
    for (int j = 0; j < Op::nc; j++) c[j] = {a->c[j][2 * rhs], a->c[j][2 * rhs + 1]};
    Op::prepare(c, made);
    for (int i = 0; i < Op::nk; i++) set_lane<R>(k[i], l, made[i]);
  }
}

template <class Op, class S, int N> void run(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  const block_shape b = shape_of(a->f[0], N);
  spinor<S> f[Op::nf];
  for (int i = 0; i < Op::nf; i++) f[i] = spinor_of<S>(a->f[i]);

  for_chunks<N>(b, [&](int t, int64_t chunk, int64_t first, int64_t last) {
    const live_lanes live(b, a->mask, t);
    cx<lanes<real<S>>> k[Op::nk > 0 ? Op::nk : 1] = {};
    sums<Op::nr> r = {};
    if (!live.any) return;
    coefficients<Op, real<S>>(b, a, t, k);
    for (int64_t row = first; row < last; row++) {
      const spot at = {b.index(row, t), 0};
      saved_tile<S, N> old[Op::nf];
      for (int i = 0; i < Op::nf; i++)
        if (!live.all && (Op::writes >> i & 1)) old[i].save(f[i], at.tile);
      blas_tile<Op, S, N>(f, at, k, r);
      for (int i = 0; i < Op::nf; i++)
        if (!live.all && (Op::writes >> i & 1)) old[i].restore(f[i], at.tile, live);
    }
    for (int i = 0; i < Op::nr; i++) keep(partial_of(ctx, t, chunk, i), r.v[i]);
  });
  for (int i = 0; i < Op::nr; i++)
    finish(ctx, b, chunks(b, N), i, a->mask, false, a->red + (int64_t)i * 2 * b.nrhs);
}

template <bool ADD, class To, class From, int N> void run_mixed(const qk_blas_args_t *a) {
  const block_shape b = shape_of(a->f[0], N);
  const spinor<To> to = spinor_of<To>(a->f[0]);
  const spinor<From> from = spinor_of<From>(a->f[1]);
  for_chunks<N>(b, [&](int t, int64_t, int64_t first, int64_t last) {
    const live_lanes live(b, a->mask, t);
    if (!live.any) return;
    for (int64_t row = first; row < last; row++) {
      const spot at = {b.index(row, t), 0};
      saved_tile<To, N> old;
      if (!live.all) old.save(to, at.tile);
      blas_mixed_tile<ADD, To, From, N>(to, from, at);
      if (!live.all) old.restore(to, at.tile, live);
    }
  });
}

template <class Op> void run_op(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  as_kind(a->f[0], [&](auto to) {
    using S = typename decltype(to)::S;
    constexpr int N = decltype(to)::N;
    if constexpr (!Op::mixed)
      run<Op, S, N>(ctx, a);
    else
      with_storage(a->f[1].prec,
                   [&](auto from) { run_mixed<Op::add, S, stored<decltype(from)>, N>(a); });
  });
}

/* Sums of f[k] y over a chunk, field by field, so that the tile of y stays in the nearest cache. */
template <class S, int N> void run_dot(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  const block_shape b = shape_of(a->y, N);
  const spinor<S> y = spinor_of<S>(a->y);
  for_chunks<N>(b, [&](int t, int64_t chunk, int64_t first, int64_t last) {
    sums<QK_MULTI_MAX> r;
    memset(&r, 0, sizeof r.v[0] * (size_t)a->n);
    for (int64_t row = first; row < last; row++) {
      const spot at = {b.index(row, t), 0};
      for (int k = 0; k < a->n; k++) dot_tile<S, N>(spinor_of<S>(a->f[k]), y, at, r.v[k]);
    }
    for (int k = 0; k < a->n; k++) keep(partial_of(ctx, t, chunk, k), r.v[k]);
  });
  for (int k = 0; k < a->n; k++)
    finish(ctx, b, chunks(b, N), k, a->mask == NULL ? NULL : a->mask + (int64_t)k * b.nrhs, true,
           a->red + (int64_t)k * 2 * b.nrhs);
}

/* What multi_axpy needs of a tile's lanes: sign * ratio(c, d) per field, and the masks. */
template <class R> struct multi_coefficients {
  cx<lanes<R>> k[QK_MULTI_MAX];
  lanes<R> on[QK_MULTI_MAX]; /* 1, or 0 where masked */
  bool any[QK_MULTI_MAX], all[QK_MULTI_MAX];
  lanes<R> old;    /* 0 where y is fresh, else 1 */
  bool fresh;      /* any */
  live_lanes live; /* a lane lives where any field does, or y is fresh */

  multi_coefficients(const block_shape &b, const qk_multi_args_t *a, int tile)
      : fresh(false), live(b, NULL, tile) {
    bool lane[QK_TILE] = {};
    for (int l = 0; l < QK_TILE; l++) {
      const int rhs = b.rhs(tile, l);
      lane[l] = a->fresh != NULL && rhs < b.nrhs && a->fresh[rhs] != 0;
      old[l] = !lane[l];
      fresh = fresh || lane[l];
    }
    for (int j = 0; j < a->n; j++) {
      const live_lanes now(b, a->mask == NULL ? NULL : a->mask + (int64_t)j * b.nrhs, tile);
      any[j] = now.any;
      all[j] = now.all;
      k[j] = cx<lanes<R>>{};
      for (int l = 0; l < QK_TILE; l++) {
        lane[l] = lane[l] || now.lane[l];
        on[j][l] = now.lane[l];
        const int rhs = b.rhs(tile, l);
        if (rhs >= b.nrhs || !now.lane[l]) continue;
        const int64_t at = 2 * ((int64_t)j * b.nrhs + rhs);
        dcx v = {a->c[at], a->c[at + 1]};
        if (a->d != NULL) v = ratio(v, dcx{a->d[at], a->d[at + 1]});
        set_lane<R>(k[j], l, dcx{a->sign * v.re, a->sign * v.im});
      }
    }
    live.any = live.all = a->n > 0 || fresh;
    for (int l = 0; l < QK_TILE; l++) live.all = live.all && (live.lane[l] = lane[l]);
  }
};

template <class S, class F, int N>
void axpy_tile(const qk_multi_args_t *a, const multi_coefficients<real<S>> &m, const spinor<S> &y,
               spot at) {
  using V = lanes<real<S>>;
  V v[N];
  load_spinor<N>(y, at, v);
  for (int c = 0; c < N && m.fresh; c++) v[c] = lanes_kept(m.old, v[c]);
  for (int j = 0; j < a->n; j++) {
    if (!m.any[j]) continue;
    V w[N];
    load_spinor<N>(spinor_of<F>(a->f[j]), at, w);
    for (int c = 0; c < N && !m.all[j]; c++) w[c] = lanes_kept(m.on[j], w[c]);
    add_times<N>(v, m.k[j], w);
  }
  store_spinor<N>(y, at, v);
}

/* y is stored as S, the fields as F. */
template <class S, class F, int N> void run_axpy(const qk_multi_args_t *a) {
  const block_shape b = shape_of(a->y, N);
  const spinor<S> y = spinor_of<S>(a->y);
  for_chunks<N>(b, [&](int t, int64_t, int64_t first, int64_t last) {
    const multi_coefficients<real<S>> m(b, a, t);
    for (int64_t row = first; row < last; row++) {
      const spot at = {b.index(row, t), 0};
      saved_tile<S, N> old;
      if (!m.live.all) old.save(y, at.tile);
      axpy_tile<S, F, N>(a, m, y, at);
      if (!m.live.all) old.restore(y, at.tile, m.live);
    }
  });
}

template <class S, int SUB> void run_ratios(qk_ops_ctx_t *ctx, const qk_site_ratios_args_t *a) {
  const block_shape b = shape_of(a->x, 2 * a->x.ncomp);
  const spinor<S> r = spinor_of<S>(a->r), x = spinor_of<S>(a->x);
  const int nsub = 2 * a->x.ncomp / SUB;
  constexpr int N = 24; /* the cut into chunks is that of Wilson spinors */
  for_chunks<N>(b, [&](int t, int64_t chunk, int64_t first, int64_t last) {
    cx<lanes<double>> sum = {};
    for (int64_t row = first; row < last; row++)
      add_ratios<S, SUB>(r, x, spot{b.index(row, t), 0}, nsub, sum);
    keep(partial_of(ctx, t, chunk, 0), sum);
  });
  finish(ctx, b, chunks(b, N), 0, NULL, false, a->red);
}

} // namespace

qk_status_t blas(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  qk_status_t status = qk_args_blas(ctx, a);
  if (status != QK_OK) return status;
  switch (a->op) {
#define X(name, fields, scalars, reductions, formula)                                              \
  case QK_BLAS_##name:                                                                             \
    run_op<op_##name>(ctx, a);                                                                     \
    break;
    QK_BLAS_TABLE(X)
#undef X
  case QK_BLAS_NONE:
  case QK_BLAS_COUNT:
    break;
  }
  return QK_OK;
}

qk_status_t multi_dot(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  qk_status_t status = qk_args_multi(ctx, a, 1);
  if (status != QK_OK) return status;
  as_kind(a->y, [&](auto k) { run_dot<typename decltype(k)::S, decltype(k)::N>(ctx, a); });
  return QK_OK;
}

qk_status_t multi_axpy(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  qk_status_t status = qk_args_multi(ctx, a, 0);
  if (status != QK_OK) return status;
  as_kind(a->y, [&](auto k) {
    using S = typename decltype(k)::S;
    constexpr int N = decltype(k)::N;
    with_storage(a->n > 0 ? a->f[0].prec : a->y.prec, [&](auto from) {
      using F = stored<decltype(from)>;
      constexpr bool narrow = storage<F>::scaled && std::is_same_v<real<F>, real<S>>;
      if constexpr (std::is_same_v<F, S> || narrow) run_axpy<S, F, N>(a);
    });
  });
  return QK_OK;
}

qk_status_t site_ratios(qk_ops_ctx_t *ctx, const qk_site_ratios_args_t *a) {
  const qk_status_t status = qk_args_site_ratios(ctx, a);
  if (status != QK_OK) return status;
  with_row_reals<float>(a->x, [=](auto n) {
    if (a->x.prec == QK_DOUBLE)
      run_ratios<double, n>(ctx, a);
    else
      run_ratios<float, n>(ctx, a);
  });
  return QK_OK;
}

} // namespace QK_NS
