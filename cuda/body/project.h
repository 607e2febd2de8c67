/*
 * project.h: what the projection onto vectors of time slices (cuda/project_ops.h) has in common on
 * all backends: which sites a piece has, in which order, and how the sums of pieces are added.
 */
#ifndef QK_BODY_PROJECT_H
#define QK_BODY_PROJECT_H

#include "cuda/body/complex.h"
#include "cuda/ops.h"
#include "cuda/site/access.h"

namespace QK_NS {

/* Four sites of one parity, neighbours in the field, are a group; groups of both parities take
 * turns, so that vectors are read in order. A slice has a whole number of groups of each, as all
 * extents are even. */
constexpr int project_group = 4;

/* Complex numbers of one vector and slice: RHS x spins. */
constexpr int project_numbers = QK_PROJECT_RHS * 4;

QK_ANY int project_groups(const qk_lattice_t &lat) {
  return lat.vcb / lat.l[3] / project_group * 2;
}

/* Groups [first, last) of the slice are those of a piece. */
QK_ANY void project_piece(const qk_lattice_t &lat, int piece, int pieces, int &first, int &last) {
  const int64_t groups = project_groups(lat);
  first = (int)(groups * piece / pieces);
  last = (int)(groups * (piece + 1) / pieces);
}

/* Site q of a group of slice t: in the field, and among the sites of the slice in lexicographic
 * order. */
struct project_site {
  int64_t in_field;
  int in_slice;

  project_site() = default;
  QK_HD project_site(const qk_lattice_t &lat, int t, int group, int q) {
    const int half = lat.vcb / lat.l[3], odd = group & 1;
    const int k = (group >> 1) * project_group + q, row = 2 * k / lat.l[0];
    const int y = row % lat.l[1], z = row / lat.l[1];
    in_field = (int64_t)odd * lat.vcb + (int64_t)t * half + k;
    in_slice = 2 * k + ((odd + y + z + t) & 1);
  }
};

/* Real numbers of a block at a site. */
constexpr int project_block = QK_PROJECT_COLUMNS * 3 * 2;

/* The sum of a piece: work[t][piece][block][column][spin][RHS], complex. */
QK_ANY int64_t project_at(int t, int pieces, int piece, int nblock, int block) {
  return (((int64_t)t * pieces + piece) * nblock + block) *
         (QK_PROJECT_COLUMNS * project_numbers * 2);
}

/* Real number n of out: the sums of the pieces, in order. */
QK_HD void project_sum(const qk_project_args_t &a, int pieces, int64_t n) {
  const int columns = a.nblock * QK_PROJECT_COLUMNS, part = (int)(n % 2);
  const int64_t i = n / 2;
  const int m = (int)(i % columns), s = (int)(i / columns % 4);
  const int t = (int)(i / columns / 4 % a.nt), rhs = (int)(i / columns / 4 / a.nt);
  const int at = ((m % QK_PROJECT_COLUMNS * 4 + s) * QK_PROJECT_RHS + rhs) * 2 + part;
  double sum = 0;
  for (int p = 0; p < pieces; p++)
    sum += a.work[project_at(t, pieces, p, a.nblock, m / QK_PROJECT_COLUMNS) + at];
  a.out[n] = sum;
}

QK_ANY int64_t project_reals(const qk_project_args_t &a) {
  return (int64_t)a.nrhs * a.nt * 4 * a.nblock * QK_PROJECT_COLUMNS * 2;
}

} // namespace QK_NS
#endif
