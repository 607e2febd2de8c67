/*
 * gcr.h: the bodies of a step of GCR (qk_gcr_args_t) and of least squares in a
 * small space (qk_gram_args_t).
 *
 * Coefficients are made in double from the inner products of one RHS. The step reads and writes
 * each field once, without x only r is written.
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

/* Reals of a tile, and how many of them are worked on at a time: WHOLE: all, as half needs them for
 * its scale. */
template <class S> constexpr bool gcr_scaled = storage<S>::scaled;
template <bool WHOLE> constexpr int gcr_tile = WHOLE ? 24 : sub_reals;
template <class S, bool WHOLE>
constexpr int gcr_reals = WHOLE ? gcr_tile<WHOLE> : part_size<S, gcr_tile<WHOLE>>;

template <bool WHOLE, class S>
QK_HD void gcr_load(const spinor<S> &f, spot at, [[maybe_unused]] int part, lanes<real<S>> *r) {
  if constexpr (WHOLE)
    load_spinor<gcr_tile<WHOLE>>(f, at, r);
  else
    load_part<S, gcr_tile<WHOLE>>(f.data, at, part, r);
}
template <bool WHOLE, class S>
QK_HD void gcr_store(const spinor<S> &f, spot at, [[maybe_unused]] int part,
                     const lanes<real<S>> *r) {
  if constexpr (WHOLE)
    store_spinor<gcr_tile<WHOLE>>(f, at, r);
  else
    store_part<S, gcr_tile<WHOLE>>(f.data, at, part, r);
}

/* What a step adds to something for each field of a list: times `by` of the lanes, `stride` apart,
 * where that is not 0 (on), whether that is nowhere or not everywhere so. */
template <class R> struct gcr_amounts {
  const cx<lanes<R>> *by;
  const lanes<R> *on;
  const bool *none, *partly;
  int stride;
};

/* y += what is added of field k, f; lanes to which nothing is added do not look at it. */
template <bool WHOLE, class S>
QK_HD void gcr_add(lanes<real<S>> *y, const gcr_amounts<real<S>> &c, int k, const spinor<S> &f,
                   spot at, int part) {
  constexpr int P = gcr_reals<S, WHOLE>;
  const int i = k * c.stride;
  lanes<real<S>> t[P];
  gcr_load<WHOLE>(f, at, part, t);
#ifndef __CUDACC__ /* a thread has one lane, which c.none speaks of */
  if (c.partly[i]) {
    QK_UNROLL
    for (int j = 0; j < P; j++) t[j] = lanes_kept(c.on[i], t[j]);
  }
#endif
  add_times<P>(y, c.by[i], t);
}

/* With x and the z's; c: -c_k, and a. */
template <class S>
QK_HD void gcr_part(const gcr_fields<S> &f, spot at, int part, const gcr_amounts<real<S>> &c,
                    const cx<lanes<real<S>>> &a) {
  constexpr bool WHOLE = gcr_scaled<S>;
  constexpr int P = gcr_reals<S, WHOLE>;
  using V = lanes<real<S>>;
  V w[P], t[P], z[P];
  gcr_load<WHOLE>(f.w[f.n], at, part, w);
  gcr_load<WHOLE>(f.z[f.n], at, part, z);
#ifdef __CUDACC__
#pragma unroll 4
#endif
  for (int k = 0; k < f.n; k++) {
    if (c.none[k * c.stride]) continue;
    gcr_add<WHOLE>(w, c, k, f.w[k], at, part);
    gcr_add<WHOLE>(z, c, k, f.z[k], at, part);
  }
  gcr_store<WHOLE>(f.w[f.n], at, part, w);
  gcr_store<WHOLE>(f.z[f.n], at, part, z);
  QK_UNROLL
  for (int i = 0; i < P; i++) t[i] = V{};
  if (!f.x_zero) gcr_load<WHOLE>(f.x, at, part, t);
  add_times<P>(t, a, z);
  gcr_store<WHOLE>(f.x, at, part, t);
  gcr_load<WHOLE>(f.r, at, part, t);
  add_times<P>(t, cx<V>{-a.re, -a.im}, w);
  gcr_store<WHOLE>(f.r, at, part, t);
  if (f.next.data != nullptr) gcr_store<WHOLE>(f.next, at, part, t);
}

/* ---- a step without x --------------------------------------------------------------------------
 *
 * Orthogonal directions w'_k = w_k - sum_{i<k} s_ki w_i stand nowhere: only their coefficients are
 * known, and r takes one pass over fields that are read.
 *   (w'_k,w_n) = (w_k,w_n) - sum_{i<k} conj(s_ki) (w_i,w_n);  c_k = ratio of it and |w'_k|^2
 *   s_nk = c_k - sum_{k<j<n} c_j s_jk
 *   |w'_n|^2 and a as in a step with x;  r -= a w_n - sum_k a s_nk w_k
 * norm2[k] is the first of a record of k+1 scalars: |w'_k|^2, and d places on s_k(k-d). That of w_n
 * is written. norm2[n+1], where it is given and there is one: becomes |r|^2 afterwards, of this
 * rank. */

struct gcr_records : gcr_scalars {
  QK_HD static bool is_zero(const dcx &c) { return c.re == 0 && c.im == 0; }
  QK_HD double *place(int k, int i, int rhs) const {
    return norm2[k] + 2 * ((int64_t)(k - i) * nrhs + rhs);
  }
  /* s_ki */
  QK_HD dcx held(int k, int i, int rhs) const {
    const double *q = place(k, i, rhs);
    return {q[0], q[1]};
  }
  /* c_k. What belongs to another run has products that are 0, and perhaps a record of NaN. */
  QK_HD dcx share_of(int k, int rhs) const {
    if (!live(rhs)) return {0, 0};
    dcx p = dot(k, rhs);
    for (int i = 0; i < k; i++) {
      const dcx v = dot(i, rhs), s = held(k, i, rhs);
      if (!is_zero(v)) p = p - dcx{s.re, -s.im} * v;
    }
    return ratio(p, dcx{square(k, rhs), 0});
  }
  /* s_nk; c: c_0 .. of this RHS, `stride` apart. */
  QK_HD dcx made_of(int n, int k, int rhs, const dcx *c, int stride) const {
    dcx v = c[k * stride];
    for (int j = k + 1; j < n; j++) {
      const dcx s = held(j, k, rhs);
      if (!is_zero(c[j * stride])) v = v - c[j * stride] * s;
    }
    return v;
  }
  QK_HD void hold(int n, int k, int rhs, const dcx &s) const {
    if (!live(rhs)) return;
    double *q = place(n, k, rhs);
    q[0] = s.re;
    q[1] = s.im;
  }
};

template <class S, class NEXT> struct gcr_pass_fields {
  static constexpr bool whole = gcr_scaled<S> || gcr_scaled<NEXT>;
  spinor<S> w[QK_GCR_MAX], r;
  spinor<NEXT> next;
  int n;
};

template <class S, class NEXT> gcr_pass_fields<S, NEXT> gcr_pass_fields_of(const qk_gcr_args_t &a) {
  gcr_pass_fields<S, NEXT> f = {};
  for (int k = 0; k <= a.n; k++) f.w[k] = spinor_of<S>(a.w[k]);
  f.r = spinor_of<S>(a.r);
  f.next = spinor_of<NEXT>(a.next);
  f.n = a.n;
  return f;
}

inline double *gcr_norm_of(const qk_gcr_args_t &a) {
  return a.n + 1 < QK_GCR_MAX ? a.norm2[a.n + 1] : nullptr;
}

/* c: what r takes of w_0 .. w_n. */
template <class S, class NEXT>
QK_HD void gcr_pass_part(const gcr_pass_fields<S, NEXT> &f, spot at, int part,
                         const gcr_amounts<real<S>> &c, sums<1> &norm) {
  constexpr bool WHOLE = gcr_pass_fields<S, NEXT>::whole;
  constexpr int P = gcr_reals<S, WHOLE>;
  using V = lanes<real<S>>;
  V t[P];
  gcr_load<WHOLE>(f.r, at, part, t);
#ifdef __CUDACC__
#pragma unroll 2
#endif
  for (int k = 0; k <= f.n; k++)
    if (!c.none[k * c.stride]) gcr_add<WHOLE>(t, c, k, f.w[k], at, part);
  gcr_store<WHOLE>(f.r, at, part, t);
  if (f.next.data != nullptr) gcr_store<WHOLE>(f.next, at, part, t);
  QK_UNROLL
  for (int i = 0; i < P; i += 2) norm.norm2(0, cx<V>{t[i], t[i + 1]});
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
