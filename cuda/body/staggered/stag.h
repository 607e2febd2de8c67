/*
 * stag.h: the hop of colour vectors with its axpy, its halo and its links (cuda/stag_ops.h), one
 * work item each. SITES is stag_one or stag_eight (site/stag_sites.h), S the storage type. LONG:
 * there are links of three sites. But for STAG_MASKED all hops take part: they are then one stretch
 * of code without branches, and the compiler can load ahead.
 */
#ifndef QK_BODY_STAG_H
#define QK_BODY_STAG_H

#include "cuda/ops.h"
#include "cuda/site/stag_sites.h"

namespace QK_NS {

template <class R> struct stag_numbers { R c_hop, c_x, c_y; };

/* |out|^2 to red, by a pass of its own. */
inline qk_blas_args_t stag_norm2_of_out(const qk_stag_args_t &a) {
  qk_blas_args_t norm2 = {};
  norm2.op = QK_BLAS_NORM2;
  norm2.f[0] = a.out;
  norm2.mask = a.mask;
  norm2.red = a.red;
  return norm2;
}

/* What the sum of a column is multiplied by before it is added to y. */
QK_ANY double stag_factor(const qk_stag_args_t &a, int rhs) {
  if (rhs >= a.out.nrhs || (a.mask != NULL && a.mask[rhs] == 0)) return 0;
  const double den = a.den[2 * rhs], ratio = den != 0 ? a.num[2 * rhs] / den : 0;
  return ratio - ratio == 0 ? -ratio : 0;
}

/* y + k sum, where k is 0 whatever the sum is. */
template <class L, class K> QK_HD L stag_stepped(const L &y, K k, const L &sum) {
  return k == 0 ? y : y + k * sum;
}

enum stag_mode {
  STAG_WHOLE, /* no direction is split */
  STAG_SPLIT,
  STAG_MASKED /* hops are left out */
};

/* N: lanes of one site that share the links, at[0] to at[N-1]; PAIRS: by twos, an even one and the
 * next. */
template <class SITES, class S, bool LONG, stag_mode MODE, int N = 1, bool PAIRS = false>
struct stag_body {
  using R = real<S>;
  using L = lanes<R>;

  const qk_stag_args_t &a;
  const stag_numbers<R> &num;
  const SITES *at;
  int parity; /* of the sites written */

  /* Where the sites of a parity start in fields, and in links. */
  QK_HD int base(int p) const { return a.out_parity == QK_FULL && p == 1 ? a.lat.vcb : 0; }
  QK_HD int full_base(int p) const { return p == 1 ? a.lat.vcb : 0; }

  template <int MU, int SIGN, int REACH> QK_PART void hop(L (*sum)[colour_reals]) const {
    if (MODE == STAG_MASKED && a.hops != 0 && !(a.hops >> (2 * MU + (SIGN < 0)) & 1)) return;
    constexpr int depth = LONG ? QK_STAG_REACH : 1;
    const int from = 1 - parity;
    auto to = at->template reach<MU, SIGN, REACH>(a.lat);
    typename SITES::template weight<R> c = SITES::template weight_of<R>(0xff, -SIGN * num.c_hop);
    if (MODE == STAG_MASKED && a.block[MU] != 0) {
      const auto stay = at->template stays<MU, SIGN, REACH>(a.lat, a.block[MU], to);
      if (SITES::none(stay)) return;
      c = SITES::template weight_of<R>(stay, -SIGN * num.c_hop);
    }
    if constexpr (MODE == STAG_WHOLE) to = on_this_rank(to);
    const stag_source<S> colours = {
        spinor_of<S>(a.in),
        MODE == STAG_WHOLE ? spinor<S>{} : ghosts_of<S>(a.ghost[MU][SIGN > 0], a.turns, 0),
        base(from), depth, a.out_parity == QK_FULL ? from * depth : 0};
    L psi[N][colour_reals], r[N][6];
    scale_of<S> scale[N];
    QK_UNROLL
    for (int n = 0; n < N; n += PAIRS ? 2 : 1)
      if constexpr (PAIRS)
        at[n].template two_colours<MU, SIGN, S>(colours, a.lat, to, psi + n, scale + n);
      else
        at[n].template colours<MU, SIGN, S>(colours, a.lat, to, psi[n], scale[n]);
    const qk_links_t &links = REACH > 1 ? a.links.naik : a.links.fat;
    const auto times = [&](const auto &u) {
      QK_UNROLL
      for (int n = 0; n < N; n++) link_times_row<(SIGN < 0)>(u, psi[n], r[n]);
    };
    if constexpr (SIGN > 0) {
      at->template with_own_link<MU, S>((const S *)links.data, full_base(parity), times);
    } else {
      const void *behind = REACH > 1 ? a.links.behind_long[MU] : a.links.behind[MU];
      const stag_link_source<S> source = {(const S *)links.data, (const S *)behind, full_base(from),
                                          from * REACH};
      at->template with_link_behind<MU, REACH, S>(source, a.lat, to, times);
    }
    QK_UNROLL
    for (int n = 0; n < N; n++) {
      const auto factor = c * scale[n];
      QK_UNROLL
      for (int k = 0; k < 6; k++) sum[n][k] = sum[n][k] + factor * r[n][k];
    }
  }

  /* The compiler is told that nothing is beyond an edge. */
  static QK_HD stag_step on_this_rank(stag_step to) {
    to.beyond = 0;
    return to;
  }
  template <class T> static QK_HD T on_this_rank(const T &to) { return to; }

  template <int MU> QK_HD void hops(L (*sum)[colour_reals]) const {
    hop<MU, 1, 1>(sum);
    hop<MU, -1, 1>(sum);
    if constexpr (LONG) {
      hop<MU, 1, QK_STAG_REACH>(sum);
      hop<MU, -1, QK_STAG_REACH>(sum);
    }
  }

  QK_HD void load_own(const qk_spinor_t &f, L (*psi)[colour_reals], scale_of<S> *scale) const {
    QK_UNROLL
    for (int n = 0; n < N; n += PAIRS ? 2 : 1)
      if constexpr (PAIRS)
        at[n].template own_two_colours<S>(spinor_of<S>(f), base(parity), psi + n, scale + n);
      else
        at[n].template own_colours<S>(spinor_of<S>(f), base(parity), psi[n], scale[n]);
  }

  QK_PART void add_own(const qk_spinor_t &f, R c, L (*sum)[colour_reals]) const {
    L psi[N][colour_reals];
    scale_of<S> scale[N];
    load_own(f, psi, scale);
    QK_UNROLL
    for (int n = 0; n < N; n++) {
      const auto k = scale[n] * c;
      QK_UNROLL
      for (int i = 0; i < 6; i++) sum[n][i] = sum[n][i] + k * psi[n][i];
    }
  }

  /* sum = y + factor sum; rhs_of(n): the column of lane n. */
  template <class F> QK_PART void step(const F &rhs_of, L (*sum)[colour_reals]) const {
    L psi[N][colour_reals];
    scale_of<S> scale[N];
    load_own(a.y, psi, scale);
    QK_UNROLL
    for (int n = 0; n < N; n++) {
      const R k = (R)stag_factor(a, rhs_of(n));
      QK_UNROLL
      for (int i = 0; i < 6; i++) sum[n][i] = stag_stepped(scale[n] * psi[n][i], k, sum[n][i]);
    }
  }

  static QK_HD void clear(L *sum) {
    QK_UNROLL
    for (int i = 0; i < colour_reals; i++) sum[i] = L{};
  }

  /* found(sum): what will be stored, before it is rounded. */
  template <class F, class G> QK_HD void run(const F &rhs_of, const G &found) const {
    L sum[N][colour_reals];
    QK_UNROLL
    for (int n = 0; n < N; n++) clear(sum[n]);
    if (num.c_hop != 0) {
      hops<0>(sum);
      hops<1>(sum);
      hops<2>(sum);
      hops<3>(sum);
    }
    if (num.c_x != 0) add_own(a.x, num.c_x, sum);
    if (a.num != NULL)
      step(rhs_of, sum);
    else if (num.c_y != 0)
      add_own(a.y, num.c_y, sum);
    found(sum);
    QK_UNROLL
    for (int n = 0; n < N; n += PAIRS ? 2 : 1)
      if constexpr (PAIRS)
        at[n].template put_two_colours<S>(spinor_of<S>(a.out), base(parity), sum + n);
      else
        at[n].template put_colours<S>(spinor_of<S>(a.out), base(parity), sum[n]);
  }
};

inline stag_mode stag_mode_of(const qk_stag_args_t &a) {
  bool masked = a.hops != 0, split = false;
  for (int mu = 0; mu < 4; mu++) {
    masked = masked || a.block[mu] != 0;
    split = split || a.lat.split[mu];
  }
  return masked ? STAG_MASKED : split ? STAG_SPLIT : STAG_WHOLE;
}

template <class R> inline stag_numbers<R> stag_numbers_of(const qk_stag_args_t &a) {
  return {(R)a.c_hop, (R)a.c_x, (R)a.c_y};
}

/* ---- halo: the colour vectors of the outer slices, a work item a site of them ---- */

/* Work items of one face: slices of each parity, padded to whole tiles. */
QK_ANY int stag_pack_sites(const qk_stag_pack_args_t &a, int mu) {
  return padded(a.lat.face[mu]) * a.depth * (a.in_parity == QK_FULL ? 2 : 1);
}

/* The site of work item w, which is also where it goes; of padding the first one of its slice. */
QK_ANY site_pos stag_pack_site(const qk_stag_pack_args_t &a, int mu, int ahead, int w) {
  const int n = padded(a.lat.face[mu]), slices = w / n, f = w - slices * n;
  const int second = slices / a.depth, slice = slices - second * a.depth;
  const int x = ahead ? a.lat.l[mu] - a.depth + slice : slice;
  const int parity = a.in_parity == QK_FULL ? second : a.in_parity == QK_ODD;
  return face_site(a.lat, parity, mu, x, f < a.lat.face[mu] ? f : 0);
}

/* The words as they are. */
template <class S>
QK_HD void stag_copy(const spinor<S> &from, spot at, const spinor<S> &to, spot there) {
  lanes<real<S>> r[colour_reals];
  load_lanes<S, colour_reals>(from.data, at, r);
  store_lanes<S, colour_reals>(to.data, there, r);
  if constexpr (storage<S>::scaled) store_scale(to.scale, there, load_scale(from.scale, at));
}

/* Work item w, for the lanes of a tile of RHS (CPU) or one lane (GPU). */
template <class S>
QK_HD void stag_pack_lanes(const qk_stag_pack_args_t &a, int mu, int ahead, int w, int tile,
                           int lane) {
  const site_pos here = stag_pack_site(a, mu, ahead, w);
  const stag_one at = stag_one::with_lane(here, a.in.ntile, tile, lane);
  const int base = a.in_parity == QK_FULL && here.parity == 1 ? a.lat.vcb : 0;
  stag_copy(spinor_of<S>(a.in), at.place(base + here.cb), ghosts_of<S>(a.to[mu][ahead], a.turns, 1),
            at.place(w));
}

/* ---- links ---- */

/* eta_mu, times the boundary factor where the link leads across the edge; one site. */
template <class S> struct stag_links_site {
  qk_stag_links_args_t a;
  QK_HD void site(int s) const {
    const site_pos p = site_of(a.lat, s);
    int before = 0;
    for (int mu = 0; mu < 4; mu++) {
      const double sign = before & 1 ? -1 : 1;
      const bool edge = a.lat.at_hi[mu] && p.x[mu] + a.reach >= a.lat.l[mu];
      const double re = sign * (edge ? a.phase[mu][0] : 1), im = edge ? sign * a.phase[mu][1] : 0;
      const int64_t tile = ((int64_t)(s / QK_TILE) * 4 + mu) * (QK_TILE * 18);
      const double *from = (const double *)a.in.data + tile;
      S *to = (S *)a.out.data + tile;
      for (int k = 0; k < 18; k += 2) {
        const double x = from[inner<double, 18>(k, s % QK_TILE)];
        const double y = from[inner<double, 18>(k + 1, s % QK_TILE)];
        narrow((real<S>)(re * x - im * y), to[inner<S, 18>(k, s % QK_TILE)]);
        narrow((real<S>)(re * y + im * x), to[inner<S, 18>(k + 1, s % QK_TILE)]);
      }
      before += p.x[mu];
    }
  }
};

QK_ANY int stag_behind_sites(const qk_stag_behind_args_t &a) {
  return 2 * a.reach * padded(a.lat.face[a.mu]);
}

template <class S> struct stag_behind_site {
  qk_stag_behind_args_t a;
  QK_HD void site(int w) const {
    const int n = padded(a.lat.face[a.mu]), slices = w / n, f = w - slices * n;
    const int parity = slices / a.reach, slice = slices - parity * a.reach;
    const site_pos p = face_site(a.lat, parity, a.mu, a.lat.l[a.mu] - a.reach + slice,
                                 f < a.lat.face[a.mu] ? f : 0);
    const int site = (parity ? a.lat.vcb : 0) + p.cb;
    const S *from = link_tile((const S *)a.in.data, a.mu, site);
    S *to = (S *)a.out + (int64_t)(w / QK_TILE) * (QK_TILE * 18);
    for (int k = 0; k < 18; k++)
      to[inner<S, 18>(k, w % QK_TILE)] = from[inner<S, 18>(k, site % QK_TILE)];
  }
};

} // namespace QK_NS
#endif
