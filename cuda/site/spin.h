/*
 * spin.h: spin projection in the DeGrand-Rossi basis.
 *
 *   gamma_mu = [[0, B_mu], [B_mu^+, 0]],  B_x = [[0,i],[i,0]], B_y = [[0,-1],[1,0]],
 *   B_z = [[i,0],[0,-i]], B_t = 1;  gamma_5 = diag(1,1,-1,-1)
 *
 *   (1 + g gamma_mu) psi = (h, g B_mu^+ h)  with  h = upper + g B_mu lower,   g = +1 or -1
 *
 * Spinors are 24 reals [spin][colour][re,im], half-spinors the 12 of h. T is lanes<R>.
 */
#ifndef QK_SITE_SPIN_H
#define QK_SITE_SPIN_H

#include "cuda/site/access.h"

namespace QK_NS {

/* Row r of B has one element, i^power(r), in column column(r). B^+ has its conjugate,
 * transposed. */
template <int MU> struct spin_block {
  QK_ANY static constexpr int column(int r) { return MU < 2 ? 1 - r : r; }
  QK_ANY static constexpr int power(int r) {
    return MU == 0 ? 1 : MU == 1 ? (r == 0 ? 2 : 0) : MU == 2 ? (r == 0 ? 1 : 3) : 0;
  }
};

/* a += g i^P z */
template <int P, class T, class G> QK_HD void add_turned(T *a, G g, const T *z) {
  if constexpr (P == 0) {
    a[0] = a[0] + g * z[0];
    a[1] = a[1] + g * z[1];
  } else if constexpr (P == 1) {
    a[0] = a[0] - g * z[1];
    a[1] = a[1] + g * z[0];
  } else if constexpr (P == 2) {
    a[0] = a[0] - g * z[0];
    a[1] = a[1] - g * z[1];
  } else {
    a[0] = a[0] + g * z[1];
    a[1] = a[1] - g * z[0];
  }
}

template <int MU, class T, class G> QK_HD void project(const T psi[24], G g, T h[12]) {
  using B = spin_block<MU>;
  QK_UNROLL
  for (int k = 0; k < 12; k++) h[k] = psi[k];
  QK_UNROLL
  for (int c = 0; c < 3; c++) {
    add_turned<B::power(0)>(h + 2 * c, g, psi + 12 + 6 * B::column(0) + 2 * c);
    add_turned<B::power(1)>(h + 6 + 2 * c, g, psi + 12 + 6 * B::column(1) + 2 * c);
  }
}

/* sum += f (h, g B^+ h), fg = f*g */
template <int MU, class T, class F> QK_HD void expand(const T h[12], F f, F fg, T sum[24]) {
  using B = spin_block<MU>;
  QK_UNROLL
  for (int k = 0; k < 12; k++) sum[k] = sum[k] + f * h[k];
  QK_UNROLL
  for (int c = 0; c < 3; c++) {
    add_turned<(4 - B::power(0)) % 4>(sum + 12 + 6 * B::column(0) + 2 * c, fg, h + 2 * c);
    add_turned<(4 - B::power(1)) % 4>(sum + 12 + 6 * B::column(1) + 2 * c, fg, h + 6 + 2 * c);
  }
}

#ifdef __CUDACC__

/* h of project() out of the stored words of a lane, before they are widened: two components an
 * instruction. Each sum is rounded to 16 bits once, as the stored components were. */
template <int P> QK_HD __half2 add_turned(__half2 a, float g, __half2 z) {
  const __half2 k = __floats2half2_rn(P == 1 || P == 2 ? -g : g, P == 2 || P == 3 ? -g : g);
  return __hfma2(k, P % 2 == 1 ? __lowhigh2highlow(z) : z, a);
}

template <int MU> QK_HD void project_words(const __half2 w[12], float g, float h[12]) {
  using B = spin_block<MU>;
  QK_UNROLL
  for (int r = 0; r < 2; r++) {
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      const __half2 up = w[3 * r + c], low = w[6 + 3 * B::column(r) + c];
      const float2 v = __half22float2(r == 0 ? add_turned<B::power(0)>(up, g, low)
                                             : add_turned<B::power(1)>(up, g, low));
      h[6 * r + 2 * c] = v.x;
      h[6 * r + 2 * c + 1] = v.y;
    }
  }
}

#endif

} // namespace QK_NS
#endif
