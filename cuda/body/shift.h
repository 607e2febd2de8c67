/*
 * shift.h: one tile (CPU) or one lane of it (GPU) of the fields of shift_step (cuda/shift_ops.h).
 *
 * Parts of a row as in blas.h: those of all residuals stay in registers while the shifts pass by.
 */
#ifndef QK_BODY_SHIFT_H
#define QK_BODY_SHIFT_H

#include "cuda/body/blas.h"
#include "cuda/shift_ops.h"

namespace QK_NS {

/* Coefficients of one x or p. */
constexpr int shift_coefficients = 1 + QK_SHIFT_RESIDUALS;

template <class S> struct shift_fields {
  spinor<double> x[QK_SHIFTS_MAX];
  spinor<S> p[QK_SHIFTS_MAX], r[QK_SHIFT_RESIDUALS];
  int n, nr;
};

template <class S> shift_fields<S> shift_fields_of(const qk_shift_args_t &a) {
  shift_fields<S> f = {};
  f.n = a.n;
  f.nr = a.nr;
  for (int k = 0; k < a.n; k++) {
    f.x[k] = spinor_of<double>(a.x[k]);
    f.p[k] = spinor_of<S>(a.p[k]);
  }
  for (int i = 0; i < a.nr; i++) f.r[i] = spinor_of<S>(a.r[i]);
  return f;
}

/* Where coefficient i of x (p: 1) number k stands for a column. */
QK_ANY int64_t shift_at(int nr, int nrhs, int k, int p, int i, int rhs) {
  return 2 * (((int64_t)(2 * k + p) * (1 + nr) + i) * nrhs + rhs);
}

/* One part of x_k and p_k. c(p, i): coefficient i of x, or of p. What is added to x is summed in
 * the precision of p first. */
template <class S, int N, class C>
QK_HD void shift_part(const shift_fields<S> &f, int k, spot at, int part,
                      const lanes<real<S>> (*r)[part_size<S, N>], const C &c) {
  constexpr int P = part_size<S, N>, W = part_size<double, N>;
  lanes<double> x[P];
  lanes<real<S>> p[P], sum[P], next[P];
  QK_UNROLL
  for (int j = 0; j < P; j += W) load_part<double, N>(f.x[k].data, at, (part * P + j) / W, x + j);
  load_part<S, N>(f.p[k].data, at, part, p);
  const auto a = c(0, 0), b = c(1, 0);
  QK_UNROLL
  for (int j = 0; j < P; j++) {
    sum[j] = a * p[j];
    next[j] = b * p[j];
  }
  QK_UNROLL
  for (int i = 0; i < QK_SHIFT_RESIDUALS; i++) {
    if (i >= f.nr) continue;
    const auto u = c(0, i + 1), v = c(1, i + 1);
    QK_UNROLL
    for (int j = 0; j < P; j++) {
      sum[j] = sum[j] + u * r[i][j];
      next[j] = next[j] + v * r[i][j];
    }
  }
  QK_UNROLL
  for (int j = 0; j < P; j++) x[j] = x[j] + lanes_cast<lanes<double>>(sum[j]);
  QK_UNROLL
  for (int j = 0; j < P; j += W) store_part<double, N>(f.x[k].data, at, (part * P + j) / W, x + j);
  store_part<S, N>(f.p[k].data, at, part, next);
}

/* c(k, p, i): coefficient i of x or p number k, of these lanes. */
template <class S, int N, class C>
QK_HD void shift_tile(const shift_fields<S> &f, spot at, const C &c) {
  constexpr int P = part_size<S, N>;
  QK_UNROLL_PARTS
  for (int part = 0; part < N / P; part++) {
    lanes<real<S>> r[QK_SHIFT_RESIDUALS][P] = {};
    QK_UNROLL
    for (int i = 0; i < QK_SHIFT_RESIDUALS; i++)
      if (i < f.nr) load_part<S, N>(f.r[i].data, at, part, r[i]);
    for (int k = 0; k < f.n; k++)
      shift_part<S, N>(f, k, at, part, r, [&](int p, int i) { return c(k, p, i); });
  }
}

} // namespace QK_NS
#endif
