/*
 * coarse.h: where the elements of coarse matrices stand (qk_coarse_links_t).
 *
 * A site has ndir matrices of n x n complex numbers, 2 n^2 words each, one after the other; sites
 * follow each other, even ones first. Inside a matrix, element (r, c):
 *
 *   CPU    rows in groups of four: [r/4][c][re of 4 rows][im of 4 rows]; a single RHS takes four
 *          rows as a vector, a tile of RHS broadcasts single words
 *   GPU    n % 16 == 0: fragments of mma.m16n8k8, [r/16][c/8][thread 32][im][k half][row half]:
 *          thread 4g+q has rows g and g+8, columns 2q and 2q+1 of the piece (columns in the order
 *          in which one 16-byte load of a tile of eight RHS delivers two components of a RHS)
 *          else: [r][c][re, im]
 *   in eight bits (GPU; coarse_eight): two such pieces of columns in one of 16 bytes a thread,
 *          [r/16][c/16][thread 32][c/8 % 2][im][k half][row half], and behind the matrices of all
 *          sites the numbers that rows are multiples of, [site][dir][r]
 */
#ifndef QK_SITE_COARSE_H
#define QK_SITE_COARSE_H

#include "cuda/site/lane.h"

namespace QK_NS {

/* Word of the real (im 0) or imaginary part (im 1) of element (r, c) within its matrix. */
QK_ANY int64_t coarse_word(int n, int r, int c, int im) {
#ifdef __CUDACC__
  if (n % 16 != 0) return 2 * ((int64_t)r * n + c) + im;
  const int thread = r % 8 * 4 + c % 8 / 2, at = im * 4 + c % 2 * 2 + r % 16 / 8;
  return (((int64_t)(r / 16) * (n / 8) + c / 8) * 32 + thread) * 8 + at;
#else
  return ((int64_t)(r / 4) * n + c) * 8 + im * 4 + r % 4;
#endif
}

/* First word of the matrix of direction d at a site. */
QK_ANY int64_t coarse_matrix(int n, int ndir, int64_t site, int d) {
  return (site * ndir + d) * 2 * n * n;
}

/* A word of eight bits: a whole number + 128. */
struct coarse_byte {
  uint8_t w;
};
constexpr int byte_zero = 128, byte_most = 127;

QK_ANY int64_t coarse_byte_at(int n, int r, int c, int im) {
  const int thread = r % 8 * 4 + c % 8 / 2, at = im * 4 + c % 2 * 2 + r % 16 / 8;
  return (((int64_t)(r / 16) * (n / 16) + c / 16) * 32 + thread) * 16 + c / 8 % 2 * 8 + at;
}

/* What the rows of direction d at a site are multiples of. sites: of the lattice. */
QK_ANY int64_t coarse_unit_at(int n, int ndir, int64_t site, int d) {
  return (site * ndir + d) * n;
}
QK_ANY const float *coarse_units(const void *eight, int n, int ndir, int64_t sites) {
  return (const float *)((const char *)eight + coarse_matrix(n, ndir, sites, 0));
}

} // namespace QK_NS
#endif
