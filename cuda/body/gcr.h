/*
 * gcr.h: the bodies of a step of GCR (qk_gcr_args_t) and of least squares in a
 * small space (qk_gram_args_t).
 *
 * Coefficients are made in double from the inner products of one RHS. The step reads and writes
 * each field once.
 */
#ifndef QK_BODY_GCR_H
#define QK_BODY_GCR_H

#include "cuda/body/blas.h"
#include "cuda/ops.h"

namespace QK_NS {

/* A new direction whose square falls below this share of its own by
 * orthogonalisation is rounding noise. */
constexpr double gcr_noise = 1e-6;
/* Likewise in a Gram matrix. */
constexpr double gram_noise = 1e-12;

/* ---- a step of GCR --------------------------------------------------------------------------- */

template <class S> struct gcr_fields {
  spinor<S> w[QK_GCR_MAX], z[QK_GCR_MAX], x, r, next;
  int n;
  bool x_zero;
};

template <class S> gcr_fields<S> gcr_fields_of(const qk_gcr_args_t &a) {
  gcr_fields<S> f = {};
  for (int k = 0; k <= a.n; k++) {
    f.w[k] = spinor_of<S>(a.w[k]);
    f.z[k] = spinor_of<S>(a.z[k]);
  }
  f.x = spinor_of<S>(a.x);
  f.r = spinor_of<S>(a.r);
  f.next = spinor_of<S>(a.next);
  f.n = a.n;
  f.x_zero = a.x_zero != 0;
  return f;
}

/* Inner products of a step and squares of its directions: scalar k of a RHS. */
struct gcr_scalars {
  const double *dots;
  double *norm2[QK_GCR_MAX];
  const uint8_t *mask;
  int nrhs;

  QK_HD bool live(int rhs) const { return mask == nullptr || mask[rhs] != 0; }

  QK_HD dcx dot(int k, int rhs) const {
    const double *q = dots + 2 * ((int64_t)k * nrhs + rhs);
    return {q[0], q[1]};
  }
  QK_HD double square(int k, int rhs) const { return norm2[k][2 * rhs]; }
  /* What of direction k is taken from the new one. */
  QK_HD dcx share(int k, int rhs) const {
    return live(rhs) ? ratio(dot(k, rhs), dcx{square(k, rhs), 0}) : dcx{0, 0};
  }
  QK_HD double taken(const dcx &share, int k, int rhs) const {
    return share.re == 0 && share.im == 0
               ? 0
               : (share.re * share.re + share.im * share.im) * square(k, rhs);
  }
  /* |w_n|^2 afterwards, with what was taken of it. */
  QK_HD double left(int n, int rhs, double taken) const {
    const double size = dot(n, rhs).re, rest = size - taken;
    return rest > gcr_noise * size ? rest : 0;
  }
  /* What of the direction is taken from r. */
  QK_HD dcx length(int n, int rhs, double left) const {
    const dcx rw = dot(n + 1, rhs);
    return live(rhs) ? ratio(dcx{rw.re, -rw.im}, dcx{left, 0}) : dcx{0, 0};
  }
  QK_HD void keep(int n, int rhs, double left) const {
    if (!live(rhs)) return;
    norm2[n][2 * rhs] = left;
    norm2[n][2 * rhs + 1] = 0;
  }
};

inline gcr_scalars gcr_scalars_of(const qk_gcr_args_t &a) {
  gcr_scalars s = {a.dots, {}, a.mask, a.r.nrhs};
  for (int k = 0; k <= a.n; k++) s.norm2[k] = a.norm2[k];
  return s;
}

/* Reals of a tile, and how many of them are worked on at a time: in half all, for the scale. */
template <class S> constexpr int gcr_tile = storage<S>::scaled ? 24 : sub_reals;
template <class S>
constexpr int gcr_reals = storage<S>::scaled ? gcr_tile<S> : part_size<S, gcr_tile<S>>;

template <class S>
QK_HD void gcr_load(const spinor<S> &f, spot at, [[maybe_unused]] int part, lanes<real<S>> *r) {
  if constexpr (storage<S>::scaled)
    load_spinor<gcr_tile<S>>(f, at, r);
  else
    load_part<S, gcr_tile<S>>(f.data, at, part, r);
}
template <class S>
QK_HD void gcr_store(const spinor<S> &f, spot at, [[maybe_unused]] int part,
                     const lanes<real<S>> *r) {
  if constexpr (storage<S>::scaled)
    store_spinor<gcr_tile<S>>(f, at, r);
  else
    store_part<S, gcr_tile<S>>(f.data, at, part, r);
}

/* Takes what it must of f from y; lanes of which nothing is taken do not look at f. */
template <class S>
QK_HD void gcr_take(lanes<real<S>> *y, const cx<lanes<real<S>>> &minus,
                    [[maybe_unused]] bool partly, [[maybe_unused]] const lanes<real<S>> &on,
                    const spinor<S> &f, spot at, int part) {
  constexpr int P = gcr_reals<S>;
  lanes<real<S>> t[P];
  gcr_load(f, at, part, t);
#ifndef __CUDACC__ /* a thread has one lane, which gcr_amounts.none speaks of */
  if (partly) {
    QK_UNROLL
    for (int i = 0; i < P; i++) t[i] = lanes_kept(on, t[i]);
  }
#endif
  add_times<P>(y, minus, t);
}

/* What a step takes: -c_k of the lanes, `stride` apart, where that is not 0 (on), whether that is
 * nowhere or not everywhere so; and a. */
template <class R> struct gcr_amounts {
  const cx<lanes<R>> *minus;
  const lanes<R> *on;
  const bool *none, *partly;
  int stride;
  cx<lanes<R>> a;
};

/* X: with x and the z's. */
template <bool X, class S>
QK_HD void gcr_part(const gcr_fields<S> &f, spot at, int part, const gcr_amounts<real<S>> &c) {
  constexpr int P = gcr_reals<S>;
  using V = lanes<real<S>>;
  V w[P], t[P];
  [[maybe_unused]] V z[P];
  gcr_load(f.w[f.n], at, part, w);
  if constexpr (X) gcr_load(f.z[f.n], at, part, z);
#ifdef __CUDACC__
#pragma unroll 4
#endif
  for (int k = 0; k < f.n; k++) {
    const int i = k * c.stride;
    if (c.none[i]) continue;
    gcr_take(w, c.minus[i], c.partly[i], c.on[i], f.w[k], at, part);
    if constexpr (X) gcr_take(z, c.minus[i], c.partly[i], c.on[i], f.z[k], at, part);
  }
  gcr_store(f.w[f.n], at, part, w);
  if constexpr (X) {
    gcr_store(f.z[f.n], at, part, z);
    QK_UNROLL
    for (int i = 0; i < P; i++) t[i] = V{};
    if (!f.x_zero) gcr_load(f.x, at, part, t);
    add_times<P>(t, c.a, z);
    gcr_store(f.x, at, part, t);
  }
  gcr_load(f.r, at, part, t);
  add_times<P>(t, cx<V>{-c.a.re, -c.a.im}, w);
  gcr_store(f.r, at, part, t);
  if (f.next.data != nullptr) gcr_store(f.next, at, part, t);
}

/* ---- least squares --------------------------------------------------------------------------- */

/* Solves for one RHS by Cholesky: G = L L^+, in place of the lower triangle. */
struct gram_solver {
  dcx l[QK_GRAM_MAX][QK_GRAM_MAX];
  bool kept[QK_GRAM_MAX];

  QK_HD static dcx inner(const qk_gram_args_t &a, int i, int j, int rhs) {
    const double *p = a.dots + 2 * ((int64_t)(j * (j + 1) / 2 + i) * a.nrhs + rhs);
    return {p[0], p[1]};
  }
  QK_HD static dcx conj(const dcx &c) { return {c.re, -c.im}; }

  QK_HD void factorise(const qk_gram_args_t &a, int rhs) {
    for (int i = 0; i < a.n; i++) {
      for (int j = 0; j <= i; j++) {
        dcx v = conj(inner(a, j + 1, i + 1, rhs)); /* (w_i, w_j) */
        for (int k = 0; k < j; k++)
          if (kept[k]) v = v - l[i][k] * conj(l[j][k]);
        if (j < i)
          l[i][j] = kept[j] ? dcx{v.re / l[j][j].re, v.im / l[j][j].re} : dcx{0, 0};
        else {
          kept[i] = v.re > gram_noise * inner(a, i + 1, i + 1, rhs).re && v.re - v.re == 0;
          l[i][i] = {kept[i] ? sqrt(v.re) : 0, 0};
        }
      }
    }
  }

  QK_HD void solve(const qk_gram_args_t &a, int rhs) {
    dcx y[QK_GRAM_MAX];
    for (int i = 0; i < a.n; i++) {
      dcx v = conj(inner(a, 0, i + 1, rhs));
      for (int k = 0; k < i; k++) v = v - l[i][k] * y[k];
      y[i] = kept[i] ? dcx{v.re / l[i][i].re, v.im / l[i][i].re} : dcx{0, 0};
    }
    for (int i = a.n - 1; i >= 0; i--) {
      dcx v = y[i];
      for (int k = i + 1; k < a.n; k++) v = v - conj(l[k][i]) * y[k];
      y[i] = kept[i] ? dcx{v.re / l[i][i].re, v.im / l[i][i].re} : dcx{0, 0};
    }
    bool finite = true;
    for (int i = 0; i < a.n; i++)
      finite = finite && y[i].re - y[i].re == 0 && y[i].im - y[i].im == 0;
    for (int i = 0; i < a.n; i++) {
      double *p = a.y + 2 * ((int64_t)i * a.nrhs + rhs);
      p[0] = finite ? y[i].re : 0;
      p[1] = finite ? y[i].im : 0;
    }
  }
};

QK_HD void gram_solve_one(const qk_gram_args_t &a, int rhs) {
  gram_solver s;
  s.factorise(a, rhs);
  s.solve(a, rhs);
}

} // namespace QK_NS
#endif
