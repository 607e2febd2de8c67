/*
 * complex.h: complex numbers over lanes<R> or R, and the division that never hurts: ratio(a, b) is
 * 0 where b is 0 or a/b is not finite (cuda/ops.h).
 */
#ifndef QK_BODY_COMPLEX_H
#define QK_BODY_COMPLEX_H

#include "cuda/site/lane.h"

namespace QK_NS {

template <class V> struct cx { V re, im; };

template <class V> QK_HD cx<V> operator+(const cx<V> &a, const cx<V> &b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V> QK_HD cx<V> operator-(const cx<V> &a, const cx<V> &b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V> QK_HD cx<V> operator*(const cx<V> &a, const cx<V> &b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

using dcx = cx<double>;

/* y += k w, N reals. */
template <int N, class V> QK_HD void add_times(V *y, const cx<V> &k, const V *w) {
  QK_UNROLL
  for (int c = 0; c < N; c += 2) {
    y[c] = y[c] + k.re * w[c] - k.im * w[c + 1];
    y[c + 1] = y[c + 1] + k.re * w[c + 1] + k.im * w[c];
  }
}

/* Scaled by the larger part of b, so that |b|^2 neither overflows nor vanishes. */
QK_HD dcx ratio(const dcx &a, const dcx &b) {
  const double re = b.re < 0 ? -b.re : b.re, im = b.im < 0 ? -b.im : b.im, top = re > im ? re : im;
  if (!(top > 0)) return {0, 0};
  const dcx u = {b.re / top, b.im / top};
  const double norm = u.re * u.re + u.im * u.im;
  const dcx q = {(a.re * u.re + a.im * u.im) / norm / top,
                 (a.im * u.re - a.re * u.im) / norm / top};
  return q.re - q.re == 0 && q.im - q.im == 0 ? q : dcx{0, 0};
}

} // namespace QK_NS
#endif
