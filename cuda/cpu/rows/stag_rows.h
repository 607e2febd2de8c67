/*
 * stag_rows.h: the hop of stag.h for eight RHS of a site, on the CPU. The real and imaginary parts
 * of a component are one value (site/clanes.h), and the links are read where they stand.
 */
#ifndef QK_CUDA_CPU_ROWS_STAG_ROWS_H
#define QK_CUDA_CPU_ROWS_STAG_ROWS_H

#include "cuda/body/staggered/stag.h"
#include "cuda/site/clanes_times.h"

namespace QK_NS {

template <class S, bool LONG> struct stag_rows {
  using R = real<S>;
  using Z = clanes<R>;

  const qk_stag_args_t &a;
  const stag_numbers<R> &num;
  const stag_one &at;
  int parity; /* of the sites written */

  QK_HD int base(int p) const { return a.out_parity == QK_FULL && p == 1 ? a.lat.vcb : 0; }
  QK_HD int full_base(int p) const { return p == 1 ? a.lat.vcb : 0; }

  static QK_HD complex_rows_at<S> components(const spinor<S> &f, spot here, scale_of<S> &scale) {
    if constexpr (storage<S>::scaled)
      scale = load_scale(f.scale, here);
    else
      scale = 1;
    return {f.data + here.tile * (QK_TILE * colour_reals)};
  }

  template <int MU, int SIGN, int REACH> QK_PART void hop(Z *sum) const {
    if (a.hops != 0 && !(a.hops >> (2 * MU + (SIGN < 0)) & 1)) return;
    if (!stag_stays<MU, SIGN, REACH>(a.lat, at.here.x, a.block[MU])) return;
    constexpr int depth = LONG ? QK_STAG_REACH : 1;
    const int from = 1 - parity;
    const stag_step to = at.template reach<MU, SIGN, REACH>(a.lat);
    const stag_source<S> colours = {spinor_of<S>(a.in),
                                    ghosts_of<S>(a.ghost[MU][SIGN > 0], a.turns, 0), base(from),
                                    depth, a.out_parity == QK_FULL ? from * depth : 0};
    scale_of<S> scale;
    const auto psi = components(colours.of(to),
                                at.place(at.template site_of<MU, SIGN>(colours, a.lat, to)), scale);
    const auto factor = shared(-SIGN * num.c_hop * scale);
    const auto carry = [&](const auto &u) {
      const Z h[3] = {psi[0], psi[1], psi[2]};
      Z r[3];
      link_times_complex<(SIGN < 0)>(u, h, r);
      QK_UNROLL
      for (int c = 0; c < 3; c++) sum[c] = sum[c] + factor * r[c];
    };
    const qk_links_t &links = REACH > 1 ? a.links.naik : a.links.fat;
    if constexpr (SIGN > 0) {
      at.template with_own_link<MU, S>((const S *)links.data, full_base(parity), carry);
    } else {
      const void *behind = REACH > 1 ? a.links.behind_long[MU] : a.links.behind[MU];
      const stag_link_source<S> source = {(const S *)links.data, (const S *)behind, full_base(from),
                                          from * REACH};
      at.template with_link_behind<MU, REACH, S>(source, a.lat, to, carry);
    }
  }

  template <int MU> QK_HD void hops(Z *sum) const {
    hop<MU, 1, 1>(sum);
    hop<MU, -1, 1>(sum);
    if constexpr (LONG) {
      hop<MU, 1, QK_STAG_REACH>(sum);
      hop<MU, -1, QK_STAG_REACH>(sum);
    }
  }

  QK_PART void add_own(const qk_spinor_t &f, R c, Z *sum) const {
    scale_of<S> scale;
    const auto psi = components(spinor_of<S>(f), at.place(base(parity) + at.here.cb), scale);
    const auto k = shared(scale * c);
    QK_UNROLL
    for (int i = 0; i < 3; i++) sum[i] = sum[i] + k * psi[i];
  }

  /* rows = y + factor rows. */
  QK_PART void step(lanes<R> *rows) const {
    lanes<R> y[colour_reals], k;
    scale_of<S> scale;
    at.template own_colours<S>(spinor_of<S>(a.y), base(parity), y, scale);
    for (int l = 0; l < QK_TILE; l++) k[l] = (R)stag_factor(a, (int)at.first + l);
    QK_UNROLL
    for (int c = 0; c < colour_reals; c++) rows[c] = scale * y[c] + lanes_kept(k, k * rows[c]);
  }

  QK_HD void run() const {
    Z sum[QK_COLOUR_COMPONENTS];
    QK_UNROLL
    for (int i = 0; i < QK_COLOUR_COMPONENTS; i++) sum[i] = Z{};
    if (num.c_hop != 0) {
      hops<0>(sum);
      hops<1>(sum);
      hops<2>(sum);
      hops<3>(sum);
    }
    if (num.c_x != 0) add_own(a.x, num.c_x, sum);
    if (num.c_y != 0 && a.num == NULL) add_own(a.y, num.c_y, sum);
    lanes<R> rows[colour_reals];
    QK_UNROLL
    for (int c = 0; c < QK_COLOUR_COMPONENTS; c++) to_rows(sum[c], rows + 2 * c);
    if (a.num != NULL) step(rows);
    at.template put_colours<S>(spinor_of<S>(a.out), base(parity), rows);
  }
};

} // namespace QK_NS
#endif
