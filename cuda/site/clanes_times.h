/*
 * clanes_times.h: what links and packed 6x6 matrices do to components of eight lanes (CPU). The
 * matrices are of one site, read where they stand.
 */
#ifndef QK_SITE_CLANES_TIMES_H
#define QK_SITE_CLANES_TIMES_H

#include "cuda/site/clanes.h"
#include "cuda/site/diag.h"

namespace QK_NS {

/* r = U h, or U^+ h, three components. */
template <bool DAGGER, class U, class Z>
QK_HD void link_times_complex(const U &u, const Z *h, Z *r) {
  QK_UNROLL
  for (int j = 0; j < 3; j++) {
    const Z ih = times_i(h[j]);
    QK_UNROLL
    for (int i = 0; i < 3; i++) {
      const int k = DAGGER ? 6 * j + 2 * i : 6 * i + 2 * j;
      const auto re = u[k], im = u[k + 1];
      const Z sum = j == 0 ? re * h[j] : r[i] + re * h[j];
      r[i] = DAGGER ? sum - im * ih : sum + im * ih;
    }
  }
}

/* r = m v, a packed hermitian 6x6 matrix (site/diag.h): r may be v. */
template <class U, class Z> QK_HD void diag_times_complex(const U &m, const Z *v, Z *r) {
  Z x[6], ix[6];
  QK_UNROLL
  for (int k = 0; k < 6; k++) x[k] = v[k];
  QK_UNROLL
  for (int k = 0; k < 6; k++) ix[k] = times_i(x[k]);
  QK_UNROLL
  for (int i = 0; i < 6; i++) {
    Z sum = m[i] * x[i];
    QK_UNROLL
    for (int j = 0; j < 6; j++) {
      if (j == i) continue;
      const int k = j < i ? below(i, j) : below(j, i);
      const auto a = m[k], b = m[k + 1];
      sum = sum + a * x[j];
      sum = j < i ? sum + b * ix[j] : sum - b * ix[j];
    }
    r[i] = sum;
  }
}

} // namespace QK_NS
#endif
