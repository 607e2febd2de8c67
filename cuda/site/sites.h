/*
 * sites.h: what one work item of a kernel with neighbours stands on, and how it fetches from there.
 *
 *   one_site     the lanes are RHS of one site (CPU), or one thread has one lane (GPU, both tile
 *                shapes). Links and diagonal terms are single numbers.
 *   eight_sites  CPU only: the lanes are eight consecutive sites of one RHS. Links and diagonal
 *                terms are lanes too, and neighbours are gathered.
 *   rhs_site     CPU only: one_site for eight RHS, with links kept from one site to the next.
 *
 * All offer: numbers<R> (links, diagonal terms), factors<R> (boundary phases), step() to a
 * neighbour, and loads from the neighbour or the own site. `base` is where the parity in question
 * starts, in sites: 0 for a field of one parity, and vcb for the odd sites of a full one. Spinors
 * are loaded unscaled, their scale given apart.
 */
#ifndef QK_SITE_SITES_H
#define QK_SITE_SITES_H

#include <type_traits>

#ifndef __CUDACC__
#include "cuda/site/clanes.h"
#endif
#include "cuda/site/diag.h"
#include "cuda/site/geom.h"
#include "cuda/site/spin.h"
#include "cuda/site/su3.h"

namespace QK_NS {

/* The scale of a spinor beside its reals: one per lane for half, the number 1 otherwise. */
template <class S> using scale_of = std::conditional_t<storage<S>::scaled, lanes<real<S>>, real<S>>;

template <int N, class S>
QK_HD void load_unscaled(const spinor<S> &f, spot at, lanes<real<S>> *r, scale_of<S> &scale) {
  load_lanes<S, N>(f.data, at, r);
  if constexpr (storage<S>::scaled)
    scale = load_scale(f.scale, at);
  else
    scale = 1;
}

/* Where a face of eight-site tiles starts, in sites, for the second parity of a full field. */
QK_ANY int padded(int sites) {
  return (sites + QK_TILE - 1) / QK_TILE * QK_TILE;
}

struct one_site {
  static constexpr bool keeps_links = false;
  template <class R> using numbers = R;
  template <class R> using factors = R;

  site_pos here;
  /* Lane `lane` of tile `tile` of site n is number n * stride + first of the field's lanes, counted
   * in the order of its tiles; stride is 1 where tiles are eight sites of one RHS. */
  uint32_t stride, first;

  static QK_HD one_site with_lane(const site_pos &here, int ntile, int tile, int lane) {
    if (ntile == 0) return {here, 1, 0};
    return {here, (uint32_t)ntile * QK_TILE, (uint32_t)(tile * QK_TILE + lane)};
  }

  QK_HD spot place(int site) const {
    const uint32_t n = (uint32_t)site * stride + first;
    return {n / QK_TILE, (int)(n % QK_TILE)};
  }

  template <int MU, int SIGN> QK_HD step_pos step(const qk_lattice_t &lat) const {
    return step_from<MU, SIGN>(lat, here.x, here.cb);
  }
  QK_HD step_pos itself() const { return {here.cb, false, false}; }
  static QK_HD bool all_ghost(const step_pos &to) { return to.ghost; }
  /* Some lanes, but not all. */
  static QK_HD bool some_ghost(const step_pos &) { return false; }
  /* Whether the hop takes part (geom.h). */
  template <int MU, int SIGN>
  QK_HD bool takes_part(const qk_lattice_t &lat, uint32_t hops, int block) const {
    return hop_takes_part<MU, SIGN>(lat, here.x, hops, block);
  }
  /* Leaves the others of a step out: nothing to do where there is one. */
  static QK_HD void leave_out(bool, step_pos &) {}
  template <class V> static QK_HD V masked(bool, const V &v) { return v; }
  /* -1 in the lanes of right-hand sides whose byte is set, 1 in the others (NULL: in all). */
  template <class R> QK_HD lanes<R> sign_of(const uint8_t *minus, int nrhs) const {
#ifdef __CUDACC__
    return minus && first < (uint32_t)nrhs && minus[first] ? (R)-1 : (R)1;
#else
    lanes<R> sign;
    for (int l = 0; l < QK_TILE; l++)
      sign[l] = minus && (int)first + l < nrhs && minus[first + l] ? (R)-1 : (R)1;
    return sign;
#endif
  }
  static QK_HD bool any_edge(const step_pos &to) {
    return to.edge;
  }
  /* v where the step crosses the global edge, otherwise 1 or 0 */
  template <class R> static QK_HD R at_edge(const step_pos &to, R v, R otherwise) {
    return to.edge ? v : otherwise;
  }

  template <class S>
  QK_HD void near_spinor(const spinor<S> &f, int base, const step_pos &to, lanes<real<S>> *r,
                         scale_of<S> &scale) const {
    load_unscaled<24>(f, place(base + to.cb), r, scale);
  }
  /* h of the neighbour, (1 + g gamma_mu) psi = (h, g B^+ h). */
  template <int MU, class S>
  QK_HD void near_projected(const spinor<S> &f, int base, const step_pos &to, real<S> g,
                            lanes<real<S>> *h, scale_of<S> &scale) const {
#ifdef __CUDACC__
    if constexpr (std::is_same_v<S, half>) {
      const spot at = place(base + to.cb);
      const uint4 *p = (const uint4 *)tile_at(f.data, at.tile, QK_TILE * 24) + at.lane;
      const uint4 v[3] = {__ldg(p), __ldg(p + QK_TILE), __ldg(p + 2 * QK_TILE)};
      scale = load_scale(f.scale, at);
      __half2 w[12];
      memcpy(w, v, sizeof w);
      project_words<MU>(w, g, h);
      return;
    }
#endif
    lanes<real<S>> psi[24];
    near_spinor<S>(f, base, to, psi, scale);
    project<MU>(psi, g, h);
  }
  template <class S>
  QK_HD void own_spinor(const spinor<S> &f, int base, lanes<real<S>> *r, scale_of<S> &scale) const {
    load_unscaled<24>(f, place(base + here.cb), r, scale);
  }
  template <class S>
  QK_HD void put_spinor(const spinor<S> &f, int base, const lanes<real<S>> *r) const {
    store_spinor<24>(f, place(base + here.cb), r);
  }
  template <class S, int N = 12>
  QK_HD void put_ghost(const spinor<S> &f, int slot, const lanes<real<S>> *h) const {
    store_spinor<N>(f, place(slot), h);
  }
  /* The N reals of a ghost face (12: a half-spinor), and the factor that replaces that of the local
   * neighbour. */
  template <class S, int N = 12>
  QK_HD void ghost_spinor(const spinor<S> &f, const qk_lattice_t &lat, int mu, bool second,
                          const step_pos &, lanes<real<S>> *h, scale_of<S> &scale) const {
    const int face = face_of(lat, here.x, mu) + (second ? padded(lat.face[mu]) : 0);
    load_unscaled<N>(f, place(face), h, scale);
  }
  template <class S, int REALS>
  QK_HD void link_at(const S *links, int reals, int mu, int site, real<S> *u) const {
#ifdef __CUDACC__
    load_link_one<S, REALS>(tile_at(links, site >> 3, 4 * QK_TILE * REALS) + mu * (QK_TILE * REALS),
                            site & 7, reals, u);
#else
    load_link_one<S>(links + ((int64_t)(site >> 3) * 4 + mu) * (QK_TILE * reals), site & 7, reals,
                     u);
#endif
  }
  template <class S, int REALS>
  QK_HD void own_link(const S *links, int reals, int base, int mu, real<S> *u) const {
    link_at<S, REALS>(links, reals, mu, base + here.cb, u);
  }
  template <class S, int REALS>
  QK_HD void near_link(const S *links, int reals, int base, int mu, const step_pos &to,
                       real<S> *u) const {
    link_at<S, REALS>(links, reals, mu, base + to.cb, u);
  }
  template <class S> QK_HD void own_diag(const S *diag, int base, int block, real<S> *m) const {
    const int site = base + here.cb;
#ifdef __CUDACC__
    const S *p = tile_at(diag, site >> 3, QK_TILE * QK_DIAG_SITE);
    load_lane<S, QK_DIAG_REALS, QK_LEAVE_FIRST>(p + block * (QK_TILE * QK_DIAG_REALS), site & 7, m);
#else
    const S *p = diag + ((int64_t)(site >> 3) * 2 + block) * (QK_TILE * QK_DIAG_REALS);
    QK_UNROLL
    for (int k = 0; k < QK_DIAG_REALS; k++) m[k] = widen(p[k * QK_TILE + (site & 7)]);
#endif
  }
};

#ifndef __CUDACC__

/* The links of a tile of sites, expanded:
 * the sites of a row come one after another and share them. */
template <class R> struct kept_links {
  const void *tile[8] = {}; /* whose, for each direction and sense */
  lanes<R> u[8][18];
};

/* one_site for eight RHS, links from those kept. */
template <class R> struct rhs_site : one_site {
  static constexpr bool keeps_links = true;

  kept_links<R> *kept;

  template <class S, int MU, int SIGN>
  QK_HD lane_at<R> kept_link(const S *links, int reals, int site) const {
    constexpr int slot = 2 * MU + (SIGN > 0);
    const S *tile = links + ((int64_t)(site >> 3) * 4 + MU) * (QK_TILE * reals);
    if (kept->tile[slot] != tile) {
      load_link_tile<S>(tile, reals, kept->u[slot]);
      kept->tile[slot] = tile;
    }
    return {(const R *)kept->u[slot] + (site & 7)};
  }
  /* Where the components of a spinor stand. */
  template <class S>
  QK_HD complex_rows_at<S> components(const spinor<S> &f, int site, scale_of<S> &scale) const {
    const spot at = place(site);
    if constexpr (storage<S>::scaled)
      scale = load_scale(f.scale, at);
    else
      scale = 1;
    return {f.data + at.tile * (QK_TILE * 24)};
  }
  template <class S>
  QK_HD complex_rows_at<S> own_components(const spinor<S> &f, int base, scale_of<S> &scale) const {
    return components(f, base + here.cb, scale);
  }
  template <class S>
  QK_HD void put_components(const spinor<S> &f, int base, const clanes<R> *z) const {
    const spot at = place(base + here.cb);
    if constexpr (storage<S>::scaled) {
      lanes<R> r[24];
      QK_UNROLL
      for (int c = 0; c < 12; c++) to_rows(z[c], r + 2 * c);
      store_spinor<24>(f, at, r);
    } else {
      S *p = f.data + at.tile * (QK_TILE * 24);
      QK_UNROLL
      for (int c = 0; c < 12; c++) store_complex_row(p + 2 * c * QK_TILE, z[c]);
    }
  }
  template <class S>
  QK_HD rows_at<S> near_rows(const spinor<S> &f, int base, const step_pos &to,
                             scale_of<S> &scale) const {
    const spot at = place(base + to.cb);
    if constexpr (storage<S>::scaled)
      scale = load_scale(f.scale, at);
    else
      scale = 1;
    return {f.data + at.tile * (QK_TILE * 24)};
  }
  /* Asks for the same neighbour of the site that comes next. */
  template <class S> QK_HD void fetch_next(const S *near) const {
    constexpr int words = QK_TILE * 24, line = 64 / (int)sizeof(S);
    const S *next = near + stride / QK_TILE * words;
    QK_UNROLL
    for (int k = 0; k < words; k += line) __builtin_prefetch(next + k);
  }
  template <class S> QK_HD lane_at<S> diag_at(const S *diag, int base, int block) const {
    const int site = base + here.cb;
    return {diag + ((int64_t)(site >> 3) * 2 + block) * (QK_TILE * QK_DIAG_REALS) + (site & 7)};
  }
};

struct eight_sites {
  static constexpr bool keeps_links = false;
  template <class R> using numbers = lanes<R>;
  template <class R> using factors = lanes<R>;

  struct steps {
    int cb[QK_TILE];
    uint8_t ghost, edge; /* a bit a lane */
    bool row;            /* the neighbours are one tile */
  };

  site_pos at[QK_TILE];
  uint8_t wanted; /* a bit a lane: whose results are stored */

  template <int MU, int SIGN> QK_PART steps step(const qk_lattice_t &lat) const {
    steps to = {};
    to.row = true;
    for (int l = 0; l < QK_TILE; l++) {
      const step_pos s = step_from<MU, SIGN>(lat, at[l].x, at[l].cb);
      to.cb[l] = s.cb;
      to.ghost = (uint8_t)(to.ghost | s.ghost << l);
      to.edge = (uint8_t)(to.edge | s.edge << l);
      to.row = to.row && s.cb == to.cb[0] + l;
    }
    to.row = to.row && to.cb[0] % QK_TILE == 0;
    to.ghost &= wanted; /* of the others the ghosts may not have arrived */
    return to;
  }
  QK_HD steps itself() const {
    steps to = {};
    for (int l = 0; l < QK_TILE; l++) to.cb[l] = at[l].cb;
    return to;
  }
  static QK_HD bool all_ghost(const steps &to) { return to.ghost == 0xff; }
  static QK_HD bool some_ghost(const steps &to) { return to.ghost != 0 && to.ghost != 0xff; }
  /* A bit a lane. */
  template <int MU, int SIGN>
  QK_HD uint8_t takes_part(const qk_lattice_t &lat, uint32_t hops, int block) const {
    if (hops == 0 && block == 0) return 0xff;
    uint8_t part = 0;
    for (int l = 0; l < QK_TILE; l++)
      part = (uint8_t)(part | hop_takes_part<MU, SIGN>(lat, at[l].x, hops, block) << l);
    return part;
  }
  static QK_HD void leave_out(uint8_t part, steps &to) { to.ghost &= part; }
  /* v in the lanes that take part, else 0. */
  template <class V> static QK_HD V masked(uint8_t part, V v) {
    if (part != 0xff)
      for (int l = 0; l < QK_TILE; l++)
        if (!(part >> l & 1)) v[l] = 0;
    return v;
  }
  /* The one right-hand side's, as one_site says. */
  template <class R> static QK_HD R sign_of(const uint8_t *minus, int) {
    return minus && minus[0] ? (R)-1 : (R)1;
  }
  static QK_HD float masked(uint8_t, float v) { return v; }
  static QK_HD double masked(uint8_t, double v) { return v; }
  static QK_HD bool any_edge(const steps &to) { return to.edge != 0; }
  template <class R> static QK_HD lanes<R> at_edge(const steps &to, R v, R otherwise) {
    lanes<R> f;
    for (int l = 0; l < QK_TILE; l++) f[l] = to.edge >> l & 1 ? v : otherwise;
    return f;
  }

  template <class S>
  QK_HD void near_spinor(const spinor<S> &f, int base, const steps &to, lanes<real<S>> *r,
                         scale_of<S> &scale) const {
    if (to.row) {
      load_unscaled<24>(f, {(base + to.cb[0]) / QK_TILE, 0}, r, scale);
      return;
    }
    if constexpr (!storage<S>::scaled) scale = 1;
    for (int l = 0; l < QK_TILE; l++) gather<24>(f, base + to.cb[l], l, r, scale);
  }
  template <int MU, class S>
  QK_HD void near_projected(const spinor<S> &f, int base, const steps &to, real<S> g,
                            lanes<real<S>> *h, scale_of<S> &scale) const {
    lanes<real<S>> psi[24];
    near_spinor<S>(f, base, to, psi, scale);
    project<MU>(psi, g, h);
  }
  template <class S>
  QK_HD void own_spinor(const spinor<S> &f, int base, lanes<real<S>> *r, scale_of<S> &scale) const {
    load_unscaled<24>(f, {(base + at[0].cb) / QK_TILE, 0}, r, scale);
  }
  template <class S>
  QK_HD void put_spinor(const spinor<S> &f, int base, const lanes<real<S>> *r) const {
    const int64_t tile = (base + at[0].cb) / QK_TILE;
    if (wanted == 0xff) {
      store_spinor<24>(f, {tile, 0}, r);
      return;
    }
    alignas(64) S words[24 * QK_TILE];
    alignas(32) float scale[QK_TILE];
    store_spinor<24>(spinor<S>{words, scale, 0}, {0, 0}, r);
    for (int l = 0; l < QK_TILE; l++) {
      if (!(wanted >> l & 1)) continue;
      for (int c = 0; c < 24; c++) f.data[(tile * 24 + c) * QK_TILE + l] = words[c * QK_TILE + l];
      if constexpr (storage<S>::scaled) f.scale[tile * QK_TILE + l] = scale[l];
    }
  }
  template <class S, int N = 12>
  QK_HD void put_ghost(const spinor<S> &f, int slot, const lanes<real<S>> *h) const {
    store_spinor<N>(f, {slot / QK_TILE, 0}, h);
  }
  template <class S, int N = 12>
  QK_HD void ghost_spinor(const spinor<S> &f, const qk_lattice_t &lat, int mu, bool second,
                          const steps &to, lanes<real<S>> *h, scale_of<S> &scale) const {
    if constexpr (!storage<S>::scaled) scale = 1;
    for (int l = 0; l < QK_TILE; l++) {
      if (!(to.ghost >> l & 1)) continue;
      const int face = face_of(lat, at[l].x, mu) + (second ? padded(lat.face[mu]) : 0);
      gather<N>(f, face, l, h, scale);
    }
  }
  template <class S, int REALS>
  QK_HD void own_link(const S *links, int reals, int base, int mu, lanes<real<S>> *u) const {
    const int64_t tile = (base + at[0].cb) / QK_TILE;
    load_link_tile<S>(links + (tile * 4 + mu) * (QK_TILE * reals), reals, u);
  }
  template <class S, int REALS>
  QK_PART void near_link(const S *links, int reals, int base, int mu, const steps &to,
                         lanes<real<S>> *u) const {
    if (to.row) {
      const int64_t tile = (base + to.cb[0]) / QK_TILE;
      load_link_tile<S>(links + (tile * 4 + mu) * (QK_TILE * reals), reals, u);
      return;
    }
    for (int l = 0; l < QK_TILE; l++) {
      const int site = base + to.cb[l];
      real<S> one[18];
      load_link_one<S>(links + ((int64_t)(site / QK_TILE) * 4 + mu) * (QK_TILE * reals),
                       site % QK_TILE, reals, one);
      for (int k = 0; k < 18; k++) u[k][l] = one[k];
    }
  }
  template <class S>
  QK_HD void own_diag(const S *diag, int base, int block, lanes<real<S>> *m) const {
    const int64_t tile = (base + at[0].cb) / QK_TILE;
    const S *p = diag + (tile * 2 + block) * (QK_TILE * QK_DIAG_REALS);
    for (int k = 0; k < QK_DIAG_REALS; k++) load_row(p + k * QK_TILE, m[k]);
  }

private:
  /* One site of an eight-site field into lane l. */
  template <int N, class S>
  static QK_PART void gather(const spinor<S> &f, int site, int l, lanes<real<S>> *r,
                             scale_of<S> &scale) {
    const S *p = f.data + (int64_t)(site / QK_TILE) * (QK_TILE * N) + site % QK_TILE;
    for (int c = 0; c < N; c++) r[c][l] = widen(p[c * QK_TILE]);
    if constexpr (storage<S>::scaled) scale[l] = f.scale[site];
  }
};

#endif

} // namespace QK_NS
#endif
