/*
 * geom.h: from a work index to a site, and from a site to its neighbours.
 *
 * cb: index of a site among those of its parity (cuda/types.h). A walk visits the sites in blocks
 * of b[0] x b[1] x b[2] x b[3] lattice sites, x fastest inside a block and among blocks; of a full
 * field the even sites of a block come before its odd ones.
 * Blocks make neighbours meet in the caches. The sites that read no ghosts are a box, which a walk
 * can be over; those that do are the rim of it.
 */
#ifndef QK_SITE_GEOM_H
#define QK_SITE_GEOM_H

#include "cuda/site/access.h"

namespace QK_NS {

/* n / d for 0 <= n < 2^31 by a multiplication. */
struct divider {
  uint32_t d, mul, shift;
};

inline divider divider_by(int d) {
  divider v = {(uint32_t)d, 0, 31};
  while (((uint64_t)1 << (v.shift - 31)) < (uint64_t)d) v.shift++;
  v.mul = (uint32_t)((((uint64_t)1 << v.shift) + (uint64_t)d - 1) / (uint64_t)d);
  return v;
}

QK_ANY int divide(int n, const divider &v) {
  return (int)(((uint64_t)(uint32_t)n * v.mul) >> v.shift);
}

/* Returns n mod d and leaves n / d in n. */
QK_ANY int split_off(int &n, const divider &v) {
  int q = divide(n, v), r = n - q * (int)v.d;
  n = q;
  return r;
}

struct walk {
  int lo[4];        /* first site of the box in each direction: 0 or 1 */
  divider in[4];    /* block extents, the first one halved */
  divider among[4]; /* blocks per direction */
  divider parities; /* 1 or 2 */
  int first;        /* parity visited when there is one */
  int nwork;        /* sites visited */
  int backwards;    /* from the last site to the first */
};

/* The sites of a region as a box: from lo, of these extents. The boundary is none. */
struct site_box {
  int lo[4], extent[4];
};

inline site_box box_of(const qk_lattice_t &lat, qk_region_t region) {
  site_box b;
  for (int mu = 0; mu < 4; mu++) {
    b.lo[mu] = region == QK_REGION_INTERIOR && lat.split[mu];
    b.extent[mu] = lat.l[mu] - 2 * b.lo[mu];
  }
  return b;
}

/* block[mu] must divide the extent of the box, and block[0] be even. No work where the box has no
 * sites. */
inline walk walk_over(const site_box &box, qk_subset_t parity, const int block[4]) {
  walk w = {};
  for (int mu = 0; mu < 4; mu++)
    if (box.extent[mu] == 0) return w;
  w.parities = divider_by(parity == QK_FULL ? 2 : 1);
  w.first = parity == QK_ODD;
  w.nwork = (int)w.parities.d;
  for (int mu = 0; mu < 4; mu++) {
    w.lo[mu] = box.lo[mu];
    w.nwork *= mu == 0 ? box.extent[mu] / 2 : box.extent[mu];
    w.in[mu] = divider_by(mu == 0 ? block[mu] / 2 : block[mu]);
    w.among[mu] = divider_by(box.extent[mu] / block[mu]);
  }
  return w;
}

inline walk walk_over(const qk_lattice_t &lat, qk_subset_t parity, const int block[4]) {
  return walk_over(box_of(lat, QK_REGION_ALL), parity, block);
}

/* In blocks of whole rows, 4 x 4 x 4 of them in y, z, t if that can be: their neighbours fit into
 * a cache also if there are many RHS. Else up to 7: interiors have 14 or 30 slices, not 16 or 32.
 */
inline walk walk_in_rows(const site_box &box, qk_subset_t parity) {
  int block[4] = {box.extent[0], 4, 4, 4};
  for (int mu = 1; mu < 4; mu++)
    if (box.extent[mu] % 4 != 0)
      for (block[mu] = 7; box.extent[mu] % block[mu] != 0;) block[mu]--;
  return walk_over(box, parity, block);
}

inline walk walk_in_rows(const qk_lattice_t &lat, qk_subset_t parity) {
  return walk_in_rows(box_of(lat, QK_REGION_ALL), parity);
}

struct site_pos {
  int x[4];
  int parity;
  int cb;
};

QK_ANY int cb_of(const qk_lattice_t &lat, const int x[4]) {
  return ((x[3] * lat.l[2] + x[2]) * lat.l[1] + x[1]) * (lat.l[0] / 2) + x[0] / 2;
}

QK_ANY site_pos site_at(const qk_lattice_t &lat, const walk &w, int n) {
  site_pos s;
  if (w.backwards) n = w.nwork - 1 - n;
  for (int mu = 0; mu < 4; mu++) s.x[mu] = split_off(n, w.in[mu]);
  s.parity = w.first + split_off(n, w.parities);
  for (int mu = 0; mu < 4; mu++) {
    s.x[mu] += split_off(n, w.among[mu]) * (int)w.in[mu].d;
    if (mu > 0) s.x[mu] += w.lo[mu];
  }
  s.x[0] = 2 * s.x[0] + w.lo[0] + ((s.parity + w.lo[0] + s.x[1] + s.x[2] + s.x[3]) & 1);
  s.cb = cb_of(lat, s.x);
  return s;
}

/* Index on the face across direction mu: the cb rule with mu left out. */
QK_ANY int face_of(const qk_lattice_t &lat, const int x[4], int mu) {
  int n = 0;
  for (int nu = 3; nu >= 0; nu--)
    if (nu != mu) n = n * lat.l[nu] + x[nu];
  return n / 2;
}

/* The site of index f on the face x[mu] = at. */
QK_ANY site_pos face_site(const qk_lattice_t &lat, int parity, int mu, int at, int f) {
  site_pos s;
  int low = mu == 0 ? 1 : 0, n = 2 * f, odd = parity + at;
  s.x[mu] = at;
  for (int nu = 0; nu < 4; nu++)
    if (nu != mu) {
      s.x[nu] = n % lat.l[nu];
      n /= lat.l[nu];
      if (nu != low) odd += s.x[nu];
    }
  s.x[low] += odd & 1;
  s.parity = parity;
  s.cb = cb_of(lat, s.x);
  return s;
}

/* The sites that read ghosts, each once: those of both faces across t, of those across z that are
 * not among them, and so on. */
struct rim {
  divider extent[4][4]; /* of a face across the first index; one of the two low directions halved */
  divider sites[4];     /* of one parity on one face */
  divider parities;
  int end[4]; /* work items up to the faces across a direction, from t down to x */
  int first;  /* parity visited when there is one */
  int nwork;
};

/* Where a direction starts on the faces across mu: a later one without its own faces. */
QK_ANY int rim_low(const qk_lattice_t &lat, int mu, int nu) {
  return nu > mu && lat.split[nu];
}

inline rim rim_of(const qk_lattice_t &lat, qk_subset_t parity) {
  rim r = {};
  r.parities = divider_by(parity == QK_FULL ? 2 : 1);
  r.first = parity == QK_ODD;
  for (int mu = 3; mu >= 0; mu--) {
    int sites = 1;
    for (int nu = 0; nu < 4; nu++) {
      const int e = nu == mu ? 1 : lat.l[nu] - 2 * rim_low(lat, mu, nu), low = mu == 0 ? 1 : 0;
      sites *= nu == low ? e / 2 : e;
      r.extent[mu][nu] = divider_by(nu == low && e > 1 ? e / 2 : e > 0 ? e : 1);
    }
    r.sites[mu] = divider_by(sites > 0 ? sites : 1);
    if (lat.split[mu]) r.nwork += 2 * sites * (int)r.parities.d;
    r.end[mu] = r.nwork;
  }
  return r;
}

QK_ANY site_pos rim_site(const qk_lattice_t &lat, const rim &r, int n) {
  site_pos s;
  int mu = 3;
  while (mu > 0 && n >= r.end[mu]) mu--;
  int m = mu == 3 ? n : n - r.end[mu + 1];
  int on_face = split_off(m, r.sites[mu]);
  s.parity = r.first + split_off(m, r.parities);
  const int low = mu == 0 ? 1 : 0;
  for (int nu = 0; nu < 4; nu++)
    s.x[nu] = split_off(on_face, r.extent[mu][nu]) + (nu == low ? 0 : rim_low(lat, mu, nu));
  s.x[mu] = m ? lat.l[mu] - 1 : 0;
  const int lo = rim_low(lat, mu, low);
  int odd = s.parity + lo;
  for (int nu = 0; nu < 4; nu++)
    if (nu != low) odd += s.x[nu];
  s.x[low] = 2 * s.x[low] + lo + (odd & 1);
  s.cb = cb_of(lat, s.x);
  return s;
}

/* The sites of a region: a box, or the rim of one. */
struct region_sites {
  walk box;
  rim edge;
  bool on_rim;
  int nwork;
};

/* box: the walk over box_of the region. */
inline region_sites sites_of(const qk_lattice_t &lat, qk_region_t region, qk_subset_t parity,
                             const walk &box) {
  region_sites s = {box, {}, region == QK_REGION_BOUNDARY, box.nwork};
  if (!s.on_rim) return s;
  s.edge = rim_of(lat, parity);
  s.nwork = s.edge.nwork;
  return s;
}

QK_ANY site_pos site_at(const qk_lattice_t &lat, const region_sites &s, int n) {
  return s.on_rim ? rim_site(lat, s.edge, n) : site_at(lat, s.box, n);
}

/* Coordinates of site s of the full field: even sites, then odd ones. */
QK_HD site_pos site_of(const qk_lattice_t &lat, int s) {
  site_pos p;
  p.parity = s >= lat.vcb;
  p.cb = s - p.parity * lat.vcb;
  int n = 2 * p.cb;
  for (int mu = 0; mu < 4; mu++) {
    p.x[mu] = n % lat.l[mu];
    n /= lat.l[mu];
  }
  p.x[0] += (p.parity + p.x[1] + p.x[2] + p.x[3]) & 1;
  return p;
}

/* One step from a site: where it leads. cb wraps around,
 * so it is a site also where ghost is set. */
struct step_pos {
  int cb;
  bool ghost; /* the neighbour is on another rank */
  bool edge;  /* the step crosses the global edge */
};

template <int MU, int SIGN>
QK_HD step_pos step_from(const qk_lattice_t &lat, const int x[4], int cb) {
  const int l = lat.l[MU], last = SIGN > 0 ? l - 1 : 0;
  const bool wraps = x[MU] == last;
  step_pos s;
  if constexpr (MU == 0) {
    int to = wraps ? l - 1 - last : x[0] + SIGN;
    s.cb = cb - x[0] / 2 + to / 2;
  } else {
    int stride = lat.l[0] / 2;
    for (int nu = 1; nu < MU; nu++) stride *= lat.l[nu];
    s.cb = cb + (wraps ? -SIGN * (l - 1) : SIGN) * stride;
  }
  s.ghost = wraps && lat.split[MU];
  s.edge = wraps && (SIGN > 0 ? lat.at_hi[MU] : lat.at_lo[MU]);
  return s;
}

/* Whether the hop of a site from its neighbour takes part: bit 2*mu + (0: n+mu, 1: n-mu) of hops,
 * all where that is 0; and both sites in one block of `block` sites, where that is not 0. A block
 * that has a whole extent which is not split keeps the hop that wraps around. */
template <int MU, int SIGN>
QK_HD bool hop_takes_part(const qk_lattice_t &lat, const int x[4], uint32_t hops, int block) {
  if (hops != 0 && !(hops >> (2 * MU + (SIGN < 0)) & 1)) return false;
  if (block == 0 || (block == lat.l[MU] && !lat.split[MU])) return true;
  return (uint32_t)(SIGN > 0 ? x[MU] + 1 : x[MU]) % (uint32_t)block != 0;
}

QK_ANY bool reads_ghosts(const qk_lattice_t &lat, const int x[4]) {
  bool any = false;
  for (int mu = 0; mu < 4; mu++)
    any = any || (lat.split[mu] && (x[mu] == 0 || x[mu] == lat.l[mu] - 1));
  return any;
}

} // namespace QK_NS
#endif
