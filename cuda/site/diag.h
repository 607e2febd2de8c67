/*
 * diag.h: packed hermitian 6x6 matrices, two to a site (cuda/types.h): 6 diagonal reals, then the
 * 15 complex elements below the diagonal, column by column. In a field:
 * [tile of 8 sites][block][36].
 */
#ifndef QK_SITE_DIAG_H
#define QK_SITE_DIAG_H

#include "cuda/site/access.h"

namespace QK_NS {

enum { QK_DIAG_REALS = 36, QK_DIAG_SITE = 72 };

/* Word of the element in row i, column j < i: its real part; the imaginary one follows. */
QK_ANY constexpr int below(int i, int j) {
  return 6 + 2 * (j * 5 - j * (j - 1) / 2 + i - j - 1);
}

/* r = m v, six complex numbers. U: matrix elements of one site or of eight. */
template <class U, class T> QK_HD void diag_times(const U *m, const T *v, T *r) {
  QK_UNROLL
  for (int i = 0; i < 6; i++) {
    r[2 * i] = m[i] * v[2 * i];
    r[2 * i + 1] = m[i] * v[2 * i + 1];
  }
  QK_UNROLL
  for (int j = 0; j < 5; j++) {
    QK_UNROLL
    for (int i = j + 1; i < 6; i++) {
      const U re = m[below(i, j)], im = m[below(i, j) + 1];
      r[2 * i] = r[2 * i] + re * v[2 * j] - im * v[2 * j + 1];
      r[2 * i + 1] = r[2 * i + 1] + re * v[2 * j + 1] + im * v[2 * j];
      r[2 * j] = r[2 * j] + re * v[2 * i] + im * v[2 * i + 1];
      r[2 * j + 1] = r[2 * j + 1] + re * v[2 * i + 1] - im * v[2 * i];
    }
  }
}

} // namespace QK_NS
#endif
