/* Bases that are cut into aggregates, on the CPU: a tile of the basis, or of what is made of it,
 * is a vector of eight lanes, the other factor of a product is broadcast. */
#include "cuda/body/coherent.h"

#include "cuda/args/coherent_args.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

enum { HALF = QK_COHERENT_HALF };

template <class V> struct pair { V re, im; };

template <class S> struct work {
  using R = real<S>;
  coherent_walk w;
  basis<S> v;
  pieces<R> y, c;
  int m; /* coefficients of a chirality */

  explicit work(const qk_coherent_args_t &a)
      : w(coherent_walk_of(a)), y(pieces_of<R>(a.y)), c(pieces_of<R>(a.c)), m(a.c.ncomp / 2) {
    v.ntile = 1;
    v.tiles = a.n;
    for (int i = 0; i < a.n; i++) v.block[i] = pieces_of<S>(a.v[i]);
  }

  /* Component k of tile t at a site of a field. */
  pair<lanes<R>> load(int t, int64_t site, int k) const {
    const S *p = v.block[t].data + v.block[t].word(site, 0, 0);
    pair<lanes<R>> z;
    load_row(p + 2 * k * QK_TILE, z.re);
    load_row(p + (2 * k + 1) * QK_TILE, z.im);
    if constexpr (storage<S>::scaled) {
      lanes<float> scale;
      load_row(v.block[t].scale + v.block[t].scale_at(site, 0), scale);
      z = {z.re * scale, z.im * scale};
    }
    return z;
  }

  /* Row of coefficient i of chirality s of aggregate X: eight columns, re, then im. */
  R *row(int X, int s, int i) const {
    return c.data + c.word(X, 0, 0) + 2 * (int64_t)(s * m + i) * QK_TILE;
  }

  /* What chirality s of one site adds to the products of tile t with column j. */
  pair<lanes<R>> product(int t, int64_t site, int s, int j) const {
    const R *q = y.data + y.word(site, 0, 0) + 2 * s * HALF * QK_TILE + j;
    pair<lanes<R>> p = {};
    for (int a = 0; a < HALF; a++, q += 2 * QK_TILE) {
      const pair<lanes<R>> z = load(t, site, s * HALF + a);
      p = {p.re + z.re * q[0] + z.im * q[QK_TILE], p.im + z.re * q[QK_TILE] - z.im * q[0]};
    }
    return p;
  }

  void gather(int X, int s, int t) const {
    pair<lanes<double>> sum[QK_TILE] = {};
    for (int k = 0; k < w.items(); k++) {
      const int64_t site = w.place(X, k);
      for (int j = 0; j < QK_TILE; j++) {
        const pair<lanes<R>> p = product(t, site, s, j);
        sum[j] = {sum[j].re + lanes_cast<lanes<double>>(p.re),
                  sum[j].im + lanes_cast<lanes<double>>(p.im)};
      }
    }
    for (int i = 0; i < QK_TILE; i++) {
      R *out = row(X, s, t * QK_TILE + i);
      for (int j = 0; j < QK_TILE; j++) {
        out[j] = (R)sum[j].re[i];
        out[QK_TILE + j] = (R)sum[j].im[i];
      }
    }
  }

  void spread(int X) const {
    for (int k = 0; k < w.items(); k++) {
      const int64_t site = w.place(X, k);
      R *out = y.data + y.word(site, 0, 0);
      for (int a = 0; a < 2 * HALF; a++) {
        lanes<R> re = {}, im = {};
        for (int t = 0; t < v.tiles; t++) {
          const pair<lanes<R>> z = load(t, site, a);
          const R *from = row(X, a / HALF, t * QK_TILE);
          for (int i = 0; i < QK_TILE; i++, from += 2 * QK_TILE) {
            lanes<R> q_re, q_im;
            load_row(from, q_re);
            load_row(from + QK_TILE, q_im);
            re = re + q_re * z.re[i] - q_im * z.im[i];
            im = im + q_re * z.im[i] + q_im * z.re[i];
          }
        }
        store_row(out + 2 * a * QK_TILE, re);
        store_row(out + (2 * a + 1) * QK_TILE, im);
      }
    }
  }
};

template <class S> void run_restrict(const qk_coherent_args_t *a) {
  const work<S> k(*a);
#pragma omp parallel for collapse(3) schedule(static)
  for (int X = 0; X < k.w.aggregates; X++)
    for (int s = 0; s < 2; s++)
      for (int t = 0; t < a->n; t++) k.gather(X, s, t);
}

template <class S> void run_prolong(const qk_coherent_args_t *a) {
  const work<S> k(*a);
#pragma omp parallel for schedule(static)
  for (int X = 0; X < k.w.aggregates; X++) k.spread(X);
}

} // namespace

qk_status_t coherent_restrict(qk_ops_ctx_t *ctx, const qk_coherent_args_t *a) {
  const qk_status_t status = qk_args_coherent(ctx, "coherent_restrict", a);
  if (status != QK_OK) return status;
  with_storage(a->v[0].prec, [=](auto s) { run_restrict<stored<decltype(s)>>(a); });
  return QK_OK;
}

qk_status_t coherent_prolong(qk_ops_ctx_t *ctx, const qk_coherent_args_t *a) {
  const qk_status_t status = qk_args_coherent(ctx, "coherent_prolong", a);
  if (status != QK_OK) return status;
  with_storage(a->v[0].prec, [=](auto s) { run_prolong<stored<decltype(s)>>(a); });
  return QK_OK;
}

} // namespace QK_NS
