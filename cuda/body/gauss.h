/*
 * gauss.h: one step of Gaussian smearing (cuda/ops.h: gauss), one work item. SITES, S and REALS as
 * in hop.h; without GHOSTS none is read.
 */
#ifndef QK_BODY_GAUSS_H
#define QK_BODY_GAUSS_H

#include "cuda/ops.h"
#include "cuda/site/sites.h"

namespace QK_NS {

template <class SITES, class S, int REALS, bool GHOSTS> struct gauss_body {
  using R = real<S>;
  using L = lanes<R>;
  using U = typename SITES::template numbers<R>;

  const qk_gauss_args_t &a;
  const SITES &at;
  int parity; /* of the sites written */

  QK_HD int base(int p) const { return p == 1 ? a.lat.vcb : 0; }

  /* sum += scale * U psi, or U^+ psi, spin by spin. P: rows of lanes,
   * or where they stand in a field. */
  template <bool DAGGER, class LINK, class P>
  static QK_HD void add_carried(const LINK &u, const P &psi, const scale_of<S> &scale, L *sum) {
    QK_UNROLL
    for (int s = 0; s < 24; s += 6) {
      L h[6], r[6];
      QK_UNROLL
      for (int k = 0; k < 6; k++) h[k] = psi[s + k];
      link_times_row<DAGGER>(u, h, r);
      QK_UNROLL
      for (int k = 0; k < 6; k++) sum[s + k] = sum[s + k] + scale * r[k];
    }
  }

  static QK_HD void add(const L *psi, const scale_of<S> &scale, L *sum) {
    QK_UNROLL
    for (int k = 0; k < 24; k++) sum[k] = sum[k] + scale * psi[k];
  }

  /* From behind a ghost has been carried already; where only some lanes have one, the others are
   * put beside it first. */
  template <int MU, int SIGN> QK_PART void hop(L *sum) const {
    const auto to = at.template step<MU, SIGN>(a.lat);
    const int from = 1 - parity;
    const bool any_ghost = GHOSTS && (at.all_ghost(to) || at.some_ghost(to));
    L psi[24];
    scale_of<S> scale;
    U u[18];
    if (!(GHOSTS && at.all_ghost(to)))
      at.template near_spinor<S>(spinor_of<S>(a.in), base(from), to, psi, scale);
    if constexpr (SIGN > 0) {
      if (any_ghost)
        at.template ghost_spinor<S, 24>(ghosts_of<S>(a.ghost[MU][1], a.turns, 0), a.lat, MU,
                                        from == 1, to, psi, scale);
      at.template own_link<S, REALS>((const S *)a.links.data, a.links.reals, base(parity), MU, u);
      add_carried<false>(u, psi, scale, sum);
      return;
    }
    if (!any_ghost) {
      at.template near_link<S, REALS>((const S *)a.links.data, a.links.reals, base(from), MU, to,
                                      u);
      add_carried<true>(u, psi, scale, sum);
      return;
    }
    if (at.some_ghost(to)) {
      L carried[24];
      at.template near_link<S, REALS>((const S *)a.links.data, a.links.reals, base(from), MU, to,
                                      u);
      link_times<true>(u, psi, carried);
      link_times<true>(u, psi + 12, carried + 12);
      memcpy(psi, carried, sizeof psi);
    }
    at.template ghost_spinor<S, 24>(ghosts_of<S>(a.ghost[MU][0], a.turns, 0), a.lat, MU, from == 1,
                                    to, psi, scale);
    add(psi, scale, sum);
  }

#ifndef __CUDACC__
  /* Between sites of this rank, one spin after the other. */
  template <int MU, int SIGN> QK_PART void hop_by_rows(L *sum) const {
    const auto to = at.template step<MU, SIGN>(a.lat);
    if (to.ghost) return hop<MU, SIGN>(sum);
    const int site = SIGN > 0 ? base(parity) + at.here.cb : base(1 - parity) + to.cb;
    const auto u = at.template kept_link<S, MU, SIGN>((const S *)a.links.data, a.links.reals, site);
    scale_of<S> scale;
    const auto psi = at.near_rows(spinor_of<S>(a.in), base(1 - parity), to, scale);
    add_carried<(SIGN < 0)>(u, psi, scale, sum);
  }
#endif

  template <int MU> QK_HD void hops(L *sum) const {
#ifndef __CUDACC__
    if constexpr (SITES::keeps_links) {
      hop_by_rows<MU, 1>(sum);
      hop_by_rows<MU, -1>(sum);
      return;
    }
#endif
    hop<MU, 1>(sum);
    hop<MU, -1>(sum);
  }

  QK_HD void run() const {
    L sum[24], psi[24];
    scale_of<S> scale;
    QK_UNROLL
    for (int k = 0; k < 24; k++) sum[k] = L{};
    hops<0>(sum);
    hops<1>(sum);
    hops<2>(sum);
    at.template own_spinor<S>(spinor_of<S>(a.in), base(parity), psi, scale);
    const auto c_own = scale * (R)a.c_own;
    const R c_hop = (R)a.c_hop;
    QK_UNROLL
    for (int k = 0; k < 24; k++) sum[k] = c_hop * sum[k] + c_own * psi[k];
    at.template put_spinor<S>(spinor_of<S>(a.out), base(parity), sum);
  }
};

/* Time slice by time slice, in rows of x, at most 4 x 4 of them in y and z. */
inline region_sites gauss_sites(const qk_gauss_args_t &a) {
  const site_box box = box_of(a.lat, a.region);
  int block[4] = {box.extent[0], 4, 4, 1};
  for (int mu = 1; mu < 3; mu++)
    while (box.extent[mu] % block[mu] != 0) block[mu]--;
  return sites_of(a.lat, a.region, QK_FULL, walk_over(box, QK_FULL, block));
}

} // namespace QK_NS
#endif
