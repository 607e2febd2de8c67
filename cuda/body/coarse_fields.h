/*
 * coarse_fields.h: chiralities, faces and parts of spinors of any number of components, one work
 * item (cuda/mg_ops.h: chiral, coarse_pack, part_put, part_get).
 */
#ifndef QK_BODY_COARSE_FIELDS_H
#define QK_BODY_COARSE_FIELDS_H

#include "cuda/body/blas.h"
#include "cuda/body/pack.h"

namespace QK_NS {

/* One tile of N reals (CPU), or one lane of it (GPU); N and its tiles as in blas.h. */
template <class S, int N> struct chiral_body {
  spinor<S> in, out;
  real<S> plus, minus;
  uint32_t ncomp, nsub;

  QK_HD void run(spot at) const {
    lanes<real<S>> r[N];
    const uint32_t first = nsub == 1 ? 0 : (uint32_t)at.tile % nsub * N;
    load_spinor<N>(in, at, r);
    QK_UNROLL
    for (int c = 0; c < N; c++) r[c] = (first + c < ncomp ? plus : minus) * r[c];
    store_spinor<N>(out, at, r);
  }
};

template <class S, int N> inline chiral_body<S, N> chiral_of(const qk_chiral_args_t &a) {
  return {spinor_of<S>(a.in), spinor_of<S>(a.out),  (real<S>)a.plus,
          (real<S>)a.minus,   (uint32_t)a.in.ncomp, (uint32_t)(2 * a.in.ncomp / N)};
}

/* Tiles of N reals of a field. */
inline int64_t tiles_of(const qk_spinor_t &f, int N) {
  const block_shape b = shape_of(f, N);
  return b.rows * b.ntile;
}

/* The site of the input field that slot w of a face holds, or -1 where the face is padding. */
QK_ANY int64_t coarse_pack_site(const qk_lattice_t &lat, qk_subset_t in_parity, int mu, int ahead,
                                int w) {
  int f;
  const int parity = pack_parity(lat, in_parity, mu, w, &f);
  if (f >= lat.face[mu]) return -1;
  const site_pos s = face_site(lat, parity, mu, ahead ? lat.l[mu] - 1 : 0, f);
  return s.cb + (in_parity == QK_FULL && parity == 1 ? lat.vcb : 0);
}

/* Where site n of a rank's full field stands in that of the whole lattice. */
QK_HD int64_t part_site(const qk_part_args_t &a, int n) {
  site_pos s = site_of(a.lat, n);
  for (int mu = 0; mu < 4; mu++) s.x[mu] += a.lat.offset[mu];
  return cb_of(a.whole, s.x) + (s.parity == 1 ? a.whole.vcb : 0);
}

} // namespace QK_NS
#endif
