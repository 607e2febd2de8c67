/*
 * fifth.h: mixing of the slices of a fifth dimension, at one site (cuda/fifth_ops.h: fifth_mix).
 */
#ifndef QK_BODY_FIFTH_H
#define QK_BODY_FIFTH_H

#include "cuda/fifth_ops.h"
#include "cuda/site/access.h"

namespace QK_NS {

constexpr int fifth_reals = 24; /* of a column: 12 of each chirality */

/* Columns of a right-hand side, and the matrix. */
template <class R> struct fifth_matrix {
  const R *m;
  int to, from, is_real;

  /* v += matrix[.][s][r] w, for a column w. */
  QK_HD void add(int s, int r, const R *w, R *v) const {
    QK_UNROLL
    for (int chirality = 0; chirality < 2; chirality++) {
      const int64_t at = ((int64_t)chirality * from + r) * to + s;
      const R *in = w + chirality * (fifth_reals / 2);
      R *out = v + chirality * (fifth_reals / 2);
      if (is_real) {
        const R re = m[at];
        QK_UNROLL
        for (int c = 0; c < fifth_reals / 2; c++) out[c] += re * in[c];
      } else {
        const R re = m[2 * at], im = m[2 * at + 1];
        QK_UNROLL
        for (int c = 0; c < fifth_reals / 2; c += 2) {
          out[c] += re * in[c] - im * in[c + 1];
          out[c + 1] += re * in[c + 1] + im * in[c];
        }
      }
    }
  }
};

template <class R> inline fifth_matrix<R> fifth_matrix_of(const qk_fifth_mix_args_t &a) {
  return {(const R *)a.matrix, a.to, a.from, a.is_real};
}

/* Where column i of a site stands. */
template <class S> QK_ANY spot fifth_spot(const spinor<S> &f, int64_t site, int i) {
  return f.ntile == 0 ? spot{site / QK_TILE, (int)(site % QK_TILE)}
                      : spot{site * f.ntile + i / QK_TILE, i % QK_TILE};
}

} // namespace QK_NS
#endif
