/*
 * pack.h: the spinors that a neighbouring rank reads as ghosts (cuda/ops.h: pack), one work item.
 * A work item stands on the sites of a face; SITES, S and REALS as in hop.h. N: reals of a ghost,
 * 12 of a half-spinor or 24 of a whole one.
 */
#ifndef QK_BODY_PACK_H
#define QK_BODY_PACK_H

#include "cuda/ops.h"
#include "cuda/site/sites.h"
#include "cuda/site/spin.h"

namespace QK_NS {

/* Work items of one face: the sites of each parity, padded to whole tiles. */
QK_ANY int pack_sites(const qk_lattice_t &lat, qk_subset_t in_parity, int mu) {
  return padded(lat.face[mu]) * (in_parity == QK_FULL ? 2 : 1);
}

/* Where work item w of the face belongs: the parity, and the index on the face. */
QK_ANY int pack_parity(const qk_lattice_t &lat, qk_subset_t in_parity, int mu, int w, int *f) {
  const int n = padded(lat.face[mu]), second = w >= n;
  *f = w - second * n;
  return in_parity == QK_FULL ? second : in_parity == QK_ODD;
}

template <class SITES, class S, int REALS, int N> struct pack_body {
  using R = real<S>;
  using L = lanes<R>;
  using U = typename SITES::template numbers<R>;

  const qk_pack_args_t &a;
  const SITES &at;
  int parity;
  int slot; /* the ghost site written; of its tile, where the work item holds eight sites */

  template <int MU> QK_PART void run(int ahead) const {
    const auto own = at.itself();
    const R s = (R)(a.dagger ? -1 : 1);
    L psi[24], h[N];
    scale_of<S> scale;
    at.template near_spinor<S>(
        spinor_of<S>(a.in), a.in_parity == QK_FULL && parity == 1 ? a.lat.vcb : 0, own, psi, scale);
    if constexpr (N == 12)
      project<MU>(psi, ahead ? s : -s, h);
    else
      memcpy(h, psi, sizeof psi);
    QK_UNROLL
    for (int k = 0; k < N; k++) h[k] = scale * h[k];
    if (ahead) {
      U u[18];
      L r[N];
      at.template near_link<S, REALS>((const S *)a.links.data, a.links.reals,
                                      parity == 1 ? a.lat.vcb : 0, MU, own, u);
      QK_UNROLL
      for (int k = 0; k < N; k += 12) link_times<true>(u, h + k, r + k);
      at.template put_ghost<S, N>(ghosts_of<S>(a.to[MU][1], a.turns, 1), slot, r);
    } else {
      at.template put_ghost<S, N>(ghosts_of<S>(a.to[MU][0], a.turns, 1), slot, h);
    }
  }

  QK_HD void run(int mu, int ahead) const {
    switch (mu) {
    case 0:
      run<0>(ahead);
      break;
    case 1:
      run<1>(ahead);
      break;
    case 2:
      run<2>(ahead);
      break;
    default:
      run<3>(ahead);
      break;
    }
  }
};

} // namespace QK_NS
#endif
