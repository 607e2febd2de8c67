/*
 * geom.h: from a work index to a site, and from a site to its neighbours.
 *
 * cb: index of a site among those of its parity (cuda/types.h). A walk visits the sites in blocks
 * of b[0] x b[1] x b[2] x b[3] lattice sites, x fastest inside a block and among blocks; of a full
 * field the even sites of a block come before its odd ones.
 * Blocks make neighbours meet in the caches.
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
  divider in[4];    /* block extents, the first one halved */
  divider among[4]; /* blocks per direction */
  divider parities; /* 1 or 2 */
  int first;        /* parity visited when there is one */
  int nwork;        /* sites visited */
  int backwards;    /* from the last site to the first */
};

/* block[mu] must divide l[mu], and block[0] be even. */
inline walk walk_over(const qk_lattice_t &lat, qk_subset_t parity, const int block[4]) {
  walk w = {};
  for (int mu = 0; mu < 4; mu++) {
    w.in[mu] = divider_by(mu == 0 ? block[mu] / 2 : block[mu]);
    w.among[mu] = divider_by(lat.l[mu] / block[mu]);
  }
  w.parities = divider_by(parity == QK_FULL ? 2 : 1);
  w.first = parity == QK_ODD;
  w.nwork = lat.vcb * (int)w.parities.d;
  return w;
}

/* In blocks of whole rows, at most 4 x 4 x 4 of them in y, z, t: their neighbours fit into a cache
 * also where there are many RHS. */
inline walk walk_in_rows(const qk_lattice_t &lat, qk_subset_t parity) {
  int block[4] = {lat.l[0], 4, 4, 4};
  for (int mu = 1; mu < 4; mu++)
    while (lat.l[mu] % block[mu] != 0) block[mu]--;
  return walk_over(lat, parity, block);
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
  for (int mu = 0; mu < 4; mu++) s.x[mu] += split_off(n, w.among[mu]) * (int)w.in[mu].d;
  s.x[0] = 2 * s.x[0] + ((s.parity + s.x[1] + s.x[2] + s.x[3]) & 1);
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
