/*
 * stag_sites.h: what one work item of the staggered hop stands on, and how it fetches colour
 * vectors and links from one or three sites away, on this rank or beyond its edge.
 *
 *   stag_one    the lanes are RHS of one site (CPU), or one thread has one lane (GPU)
 *   stag_eight  CPU only: the lanes are eight consecutive sites of one RHS
 *
 * A neighbour beyond the edge differs by where its numbers stand and by nothing else: the address
 * is chosen, then the load is the same.
 */
#ifndef QK_SITE_STAG_SITES_H
#define QK_SITE_STAG_SITES_H

#include "cuda/site/sites.h"
#include "cuda/stag_ops.h"

namespace QK_NS {

constexpr int colour_reals = 2 * QK_COLOUR_COMPONENTS;

/* `reach` sites ahead or behind: cb of the site there, around the lattice; beyond: how many slices
 * behind the edge, counted from 1, and 0 on this rank. */
struct stag_step {
  int cb, beyond;
};

template <int MU, int SIGN, int REACH>
QK_HD stag_step stag_step_from(const qk_lattice_t &lat, const int x[4], int cb) {
  const int l = lat.l[MU];
  int to = x[MU] + SIGN * REACH;
  const int past = SIGN > 0 ? to - l + 1 : -to;
  if (past > 0) to -= SIGN * l;
  if (REACH > 1 && past > l) to -= SIGN * l;
  stag_step s;
  s.beyond = lat.split[MU] && past > 0 ? past : 0;
  if constexpr (MU == 0) {
    s.cb = cb - x[0] / 2 + to / 2;
  } else {
    int stride = lat.l[0] / 2;
    for (int nu = 1; nu < MU; nu++) stride *= lat.l[nu];
    s.cb = cb + (to - x[MU]) * stride;
  }
  return s;
}

/* Whether a hop stays in one block (geom.h: hop_takes_part). */
template <int MU, int SIGN, int REACH>
QK_HD bool stag_stays(const qk_lattice_t &lat, const int x[4], int block) {
  if (block == 0 || (block == lat.l[MU] && !lat.split[MU])) return true;
  const int to = x[MU] + SIGN * REACH;
  return to >= 0 && to < lat.l[MU] && x[MU] / block == to / block;
}

/* Which of `depth` slices that are stored of a neighbour, in the order of their coordinate. */
template <int SIGN> QK_HD int stag_slice(int depth, int beyond) {
  return SIGN > 0 ? beyond - 1 : depth - beyond;
}

/* Number of the site of a slice, among those of stored slices. */
QK_HD int stag_stored(const qk_lattice_t &lat, const int x[4], int mu, int slices) {
  return slices * padded(lat.face[mu]) + face_of(lat, x, mu);
}

/* Tiles of links: of all four directions, and of those beyond the edge, which have one. */
template <class S> QK_HD const S *link_tile(const S *links, int mu, int site) {
  return links + ((int64_t)(site / QK_TILE) * 4 + mu) * (QK_TILE * 18);
}
template <class S> QK_HD const S *behind_tile(const S *links, int site) {
  return links + (int64_t)(site / QK_TILE) * (QK_TILE * 18);
}

/* Colour vectors at a step: those of the field, of the parity that starts at `base`, and those of
 * `depth` slices of a neighbour, from slice `first` on. */
template <class S> struct stag_source {
  spinor<S> field, ghost;
  int base, depth, first;

  QK_HD spinor<S> of(const stag_step &to) const {
    const bool far = to.beyond > 0;
    return {far ? ghost.data : field.data, far ? ghost.scale : field.scale, field.ntile};
  }
};

/* Links at a step likewise; those of the neighbour are `reach` slices. */
template <class S> struct stag_link_source {
  const S *links, *behind;
  int base, first;
};

struct stag_one : one_site {
  template <class R> using weight = R;

  static QK_HD stag_one with_lane(const site_pos &here, int ntile, int tile, int lane) {
    stag_one at;
    (one_site &)at = one_site::with_lane(here, ntile, tile, lane);
    return at;
  }

  template <int MU, int SIGN, int REACH> QK_HD stag_step reach(const qk_lattice_t &lat) const {
    return stag_step_from<MU, SIGN, REACH>(lat, here.x, here.cb);
  }
  template <int MU, int SIGN, int REACH>
  QK_HD bool stays(const qk_lattice_t &lat, int block, stag_step &) const {
    return stag_stays<MU, SIGN, REACH>(lat, here.x, block);
  }
  static QK_HD bool none(bool stays) { return !stays; }
  template <class R> static QK_HD R weight_of(bool, R w) { return w; }

  /* Where the colour vector of a step stands in its field. */
  template <int MU, int SIGN, class S>
  QK_HD int site_of(const stag_source<S> &from, const qk_lattice_t &lat,
                    const stag_step &to) const {
    const int slice = from.first + stag_slice<SIGN>(from.depth, to.beyond);
    return to.beyond > 0 ? stag_stored(lat, here.x, MU, slice) : from.base + to.cb;
  }
  template <int MU, int SIGN, class S>
  QK_HD void colours(const stag_source<S> &from, const qk_lattice_t &lat, const stag_step &to,
                     lanes<real<S>> *r, scale_of<S> &scale) const {
    load_unscaled<colour_reals>(from.of(to), place(site_of<MU, SIGN>(from, lat, to)), r, scale);
  }
  template <class S>
  QK_HD void own_colours(const spinor<S> &f, int base, lanes<real<S>> *r,
                         scale_of<S> &scale) const {
    load_unscaled<colour_reals>(f, place(base + here.cb), r, scale);
  }
  template <class S>
  QK_HD void put_colours(const spinor<S> &f, int base, const lanes<real<S>> *r) const {
    store_spinor<colour_reals>(f, place(base + here.cb), r);
  }
  template <class S>
  QK_HD void put_stored(const spinor<S> &f, int site, const lanes<real<S>> *r) const {
    store_spinor<colour_reals>(f, place(site), r);
  }

#ifdef __CUDACC__
  /* The same of this lane, which is even, and of the next one, in one access. */
  template <int MU, int SIGN, class S>
  QK_HD void two_colours(const stag_source<S> &from, const qk_lattice_t &lat, const stag_step &to,
                         real<S> (*r)[colour_reals], scale_of<S> *scale) const {
    load_two(from.of(to), place(site_of<MU, SIGN>(from, lat, to)), r, scale);
  }
  template <class S>
  QK_HD void own_two_colours(const spinor<S> &f, int base, real<S> (*r)[colour_reals],
                             scale_of<S> *scale) const {
    load_two(f, place(base + here.cb), r, scale);
  }
  template <class S>
  QK_HD void put_two_colours(const spinor<S> &f, int base, const real<S> (*r)[colour_reals]) const {
    const spot at = place(base + here.cb);
    if constexpr (storage<S>::scaled) {
      store_spinor<colour_reals>(f, at, r[0]);
      store_spinor<colour_reals>(f, {at.tile, at.lane + 1}, r[1]);
    } else {
      store_two_lanes(f.data, at, r[0], r[1]);
    }
  }
  template <class S>
  static QK_HD void load_two(const spinor<S> &f, spot at, real<S> (*r)[colour_reals],
                             scale_of<S> *scale) {
    load_two_lanes(f.data, at, r[0], r[1]);
    QK_UNROLL
    for (int n = 0; n < 2; n++)
      if constexpr (storage<S>::scaled)
        scale[n] = load_scale(f.scale, {at.tile, at.lane + n});
      else
        scale[n] = 1;
  }
#endif

  /* body(u), u a link of a tile, or what stands for it. */
  template <class S, class F> static QK_HD void with_link(const S *tile, int lane, const F &body) {
#ifdef __CUDACC__
    real<S> u[18];
    load_lane<S, 18, QK_PAST_L1>(tile, lane, u);
    body(u);
#else
    body(lane_at<S>{tile + lane});
#endif
  }
  template <int MU, class S, class F>
  QK_HD void with_own_link(const S *links, int base, const F &body) const {
    const int site = base + here.cb;
    with_link(link_tile(links, MU, site), site % QK_TILE, body);
  }
  template <int MU, int REACH, class S, class F>
  QK_HD void with_link_behind(const stag_link_source<S> &from, const qk_lattice_t &lat,
                              const stag_step &to, const F &body) const {
    const bool far = to.beyond > 0;
    const int slice = from.first + stag_slice<-1>(REACH, to.beyond);
    const int site = far ? stag_stored(lat, here.x, MU, slice) : from.base + to.cb;
    with_link(far ? behind_tile(from.behind, site) : link_tile(from.links, MU, site),
              site % QK_TILE, body);
  }
};

#ifndef __CUDACC__

struct stag_eight {
  template <class R> using weight = lanes<R>;

  struct steps {
    stag_step lane[QK_TILE];
    bool row; /* the neighbours are one tile of the field */
  };

  site_pos at[QK_TILE];

  template <int MU, int SIGN, int REACH> QK_PART steps reach(const qk_lattice_t &lat) const {
    steps to;
    to.row = true;
    for (int l = 0; l < QK_TILE; l++) {
      to.lane[l] = stag_step_from<MU, SIGN, REACH>(lat, at[l].x, at[l].cb);
      to.row = to.row && to.lane[l].beyond == 0 && to.lane[l].cb == to.lane[0].cb + l;
    }
    to.row = to.row && to.lane[0].cb % QK_TILE == 0;
    return to;
  }
  /* A bit a lane; the others read what is on this rank. */
  template <int MU, int SIGN, int REACH>
  QK_HD uint8_t stays(const qk_lattice_t &lat, int block, steps &to) const {
    uint8_t stay = 0;
    for (int l = 0; l < QK_TILE; l++) {
      const bool stays = stag_stays<MU, SIGN, REACH>(lat, at[l].x, block);
      stay = (uint8_t)(stay | stays << l);
      if (!stays) to.lane[l].beyond = 0;
    }
    return stay;
  }
  static QK_HD bool none(uint8_t stay) { return stay == 0; }
  template <class R> static QK_HD lanes<R> weight_of(uint8_t stay, R w) {
    lanes<R> v;
    for (int l = 0; l < QK_TILE; l++) v[l] = stay >> l & 1 ? w : (R)0;
    return v;
  }

  template <int MU, int SIGN, class S>
  QK_HD void colours(const stag_source<S> &from, const qk_lattice_t &lat, const steps &to,
                     lanes<real<S>> *r, scale_of<S> &scale) const {
    if (to.row) {
      load_unscaled<colour_reals>(from.field, {(from.base + to.lane[0].cb) / QK_TILE, 0}, r, scale);
      return;
    }
    if constexpr (!storage<S>::scaled) scale = 1;
    for (int l = 0; l < QK_TILE; l++) {
      const bool far = to.lane[l].beyond > 0;
      const int slice = from.first + stag_slice<SIGN>(from.depth, to.lane[l].beyond);
      const int site = far ? stag_stored(lat, at[l].x, MU, slice) : from.base + to.lane[l].cb;
      take_lane(far ? from.ghost : from.field, site, l, r, scale);
    }
  }
  template <class S>
  QK_HD void own_colours(const spinor<S> &f, int base, lanes<real<S>> *r,
                         scale_of<S> &scale) const {
    load_unscaled<colour_reals>(f, {(base + at[0].cb) / QK_TILE, 0}, r, scale);
  }
  template <class S>
  QK_HD void put_colours(const spinor<S> &f, int base, const lanes<real<S>> *r) const {
    store_spinor<colour_reals>(f, {(base + at[0].cb) / QK_TILE, 0}, r);
  }
  template <class S>
  QK_HD void put_stored(const spinor<S> &f, int site, const lanes<real<S>> *r) const {
    store_spinor<colour_reals>(f, {site / QK_TILE, 0}, r);
  }

  template <int MU, class S, class F>
  QK_HD void with_own_link(const S *links, int base, const F &body) const {
    lanes<real<S>> u[18];
    load_rows(link_tile(links, MU, base + at[0].cb), u);
    body(u);
  }
  template <int MU, int REACH, class S, class F>
  QK_HD void with_link_behind(const stag_link_source<S> &from, const qk_lattice_t &lat,
                              const steps &to, const F &body) const {
    lanes<real<S>> u[18];
    if (to.row)
      load_rows(link_tile(from.links, MU, from.base + to.lane[0].cb), u);
    else
      for (int l = 0; l < QK_TILE; l++) {
        const bool far = to.lane[l].beyond > 0;
        const int slice = from.first + stag_slice<-1>(REACH, to.lane[l].beyond);
        const int site = far ? stag_stored(lat, at[l].x, MU, slice) : from.base + to.lane[l].cb;
        const S *p = far ? behind_tile(from.behind, site) : link_tile(from.links, MU, site);
        for (int k = 0; k < 18; k++) u[k][l] = widen(p[k * QK_TILE + site % QK_TILE]);
      }
    body(u);
  }

private:
  template <class S> static QK_HD void load_rows(const S *tile, lanes<real<S>> *u) {
    for (int k = 0; k < 18; k++) load_row(tile + k * QK_TILE, u[k]);
  }
  /* Of one site, with its scale, into lane l. */
  template <class S>
  static QK_HD void take_lane(const spinor<S> &f, int site, int l, lanes<real<S>> *r,
                              [[maybe_unused]] scale_of<S> &scale) {
    const int tile = site / QK_TILE, lane = site - tile * QK_TILE;
    const lane_at<S> from = {f.data + (int64_t)tile * (QK_TILE * colour_reals) + lane};
    if constexpr (storage<S>::scaled) scale[l] = f.scale[site];
    QK_UNROLL
    for (int c = 0; c < colour_reals; c++) r[c][l] = from[c];
  }
};

#endif

} // namespace QK_NS
#endif
