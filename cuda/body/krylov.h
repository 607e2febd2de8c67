/*
 * krylov.h: the bodies of a step of GCR (qk_gcr_args_t) and of least squares in a small space (qk_gram_args_t).
 *
 * Coefficients are made in double from the inner products of one RHS. The step reads and writes each field once.
 */
#ifndef QK_BODY_KRYLOV_H
#define QK_BODY_KRYLOV_H

#include "cuda/body/blas.h"
#include "cuda/ops.h"

namespace QK_NS {

/* A new direction whose square falls below this share of its own by orthogonalisation is rounding noise. */
constexpr double gcr_noise = 1e-6;
/* Likewise in a Gram matrix. */
constexpr double gram_noise = 1e-12;

/* ---- a step of GCR ----------------------------------------------------------------------------------- */

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
  double *norm2;
  const uint8_t *mask;
  int nrhs;

  QK_HD bool live(int rhs) const { return mask == nullptr || mask[rhs] != 0; }

  QK_HD static dcx at(const double *p, int nrhs, int k, int rhs) {
    const double *q = p + 2 * ((int64_t)k * nrhs + rhs);
    return {q[0], q[1]};
  }
  /* What of direction k is taken from the new one. */
  QK_HD dcx share(int k, int rhs) const {
    return ratio(at(dots, nrhs, k, rhs), at(norm2, nrhs, k, rhs));
  }
  /* |w_n|^2 before: `size`; after, with what was taken of it: */
  QK_HD static double rest(double size, double taken) {
    const double left = size - taken;
    return left > gcr_noise * size ? left : 0;
  }
  QK_HD double taken(const dcx &share, int k, int rhs) const {
    return (share.re * share.re + share.im * share.im) * at(norm2, nrhs, k, rhs).re;
  }
  QK_HD double size(int n, int rhs) const { return at(dots, nrhs, n, rhs).re; }
  /* What of the direction is taken from r. */
  QK_HD dcx length(int n, int rhs, double left) const {
    const dcx rw = at(dots, nrhs, n + 1, rhs);
    return ratio(dcx{rw.re, -rw.im}, dcx{left, 0});
  }
  QK_HD void keep(int n, int rhs, double left) const {
    double *q = norm2 + 2 * ((int64_t)n * nrhs + rhs);
    q[0] = left;
    q[1] = 0;
  }
};

/* y += sign c f, part by part. */
template <class V> QK_HD void add_product(int n, V *y, const cx<V> &c, const V *f) {
  QK_UNROLL
  for (int i = 0; i < n; i += 2) {
    y[i] = y[i] + c.re * f[i] - c.im * f[i + 1];
    y[i + 1] = y[i + 1] + c.re * f[i + 1] + c.im * f[i];
  }
}

/* One part of a tile; minus: -share of the directions, stride apart; a: length. */
template <class S>
QK_HD void gcr_part(const gcr_fields<S> &f, spot at, int part, const cx<lanes<S>> *minus,
                    int stride, const cx<lanes<S>> &a) {
  constexpr int N = sub_reals, P = part_size<S, N>;
  using V = lanes<S>;
  V w[P], z[P], t[P];
  load_part<S, N>(f.w[f.n].data, at, part, w);
  load_part<S, N>(f.z[f.n].data, at, part, z);
  for (int k = 0; k < f.n; k++) {
    const cx<V> c = minus[k * stride];
    load_part<S, N>(f.w[k].data, at, part, t);
    add_product(P, w, c, t);
    load_part<S, N>(f.z[k].data, at, part, t);
    add_product(P, z, c, t);
  }
  store_part<S, N>(f.w[f.n].data, at, part, w);
  store_part<S, N>(f.z[f.n].data, at, part, z);
  V x[P] = {};
  if (!f.x_zero) load_part<S, N>(f.x.data, at, part, x);
  add_product(P, x, a, z);
  store_part<S, N>(f.x.data, at, part, x);
  load_part<S, N>(f.r.data, at, part, t);
  add_product(P, t, cx<V>{-a.re, -a.im}, w);
  store_part<S, N>(f.r.data, at, part, t);
  if (f.next.data != nullptr) store_part<S, N>(f.next.data, at, part, t);
}

/* ---- least squares ----------------------------------------------------------------------------------- */

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
