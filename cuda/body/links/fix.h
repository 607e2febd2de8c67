/*
 * fix.h: gauge fixing (cuda/linkfield_ops.h): relaxation of the transformation on one parity, and
 * the links transformed. Exact arithmetic: site/wide.h. Sites are numbered as in update.h, whose
 * colours are here the parities.
 */
#ifndef QK_BODY_FIX_H
#define QK_BODY_FIX_H

#include "cuda/body/links/update.h"

namespace QK_NS {
namespace {

inline update_plan plan_parity(const qk_lattice_t &lat, const qk_linkfield_t &u, int parity) {
  qk_link_update_args_t a = {};
  a.lat = lat;
  a.u = u;
  a.colour = parity;
  return plan_update(a);
}

/* The links U and the transformation g around a group of sites. */
struct fix_group {
  const update_plan &p;
  double *g;
  wide_site s;

  QK_HD fix_group(const update_plan &plan, double *data, int w) : p(plan), g(data) {
    for (int lane = 0; lane < QK_WIDE; lane++) place(p, w + lane, lane, s);
  }

  template <bool ADJOINT> QK_HD void load_g(int parity, wide_int n, wide_matrix &m) const {
    load_links<ADJOINT>(part_of(g, p.stride, 0, parity), p.stride, n, m);
  }

  /* sum += U_mu(x) g(x+mu)^+ + U_mu(x-mu)^+ g(x-mu)^+ */
  QK_HD void add_neighbours(int mu, wide_matrix &sum) const {
    wide_matrix link, there;
    const int other = s.parity ^ 1;
    load_links<false>(links_of(p, mu, s.parity), p.stride, s.n, link);
    load_g<true>(other, s.n + shifted(p, s.n, mu, 1), there);
    multiply<true>(sum, link, there);
    const wide_int backward = s.n + shifted(p, s.n, mu, -1);
    load_links<true>(links_of(p, mu, other), p.stride, backward, link);
    load_g<true>(other, backward, there);
    multiply<true>(sum, link, there);
  }
};

/* (1 - omega) + omega h, of length 1, where h = r^+ / |r| has the largest (h r)_0. The length is 0
 * for omega = 2 and r_0 = 0 alone. Identity where r = 0. */
QK_HD quaternion relaxed(const quaternion &r, double omega) {
  const wide k2 = norm2(r);
  const wide_mask some = k2 > splat(1e-200);
  const wide k = omega / wide_sqrt(k2);
  quaternion h = {{(1.0 - omega) + k * r.q[0], -(k * r.q[1]), -(k * r.q[2]), -(k * r.q[3])}};
  const wide scale = 1.0 / wide_sqrt(norm2(h));
  for (int i = 0; i < 4; i++) h.q[i] = some ? h.q[i] * scale : splat(i == 0 ? 1 : 0);
  return h;
}

template <int FIRST> struct fix_relaxer {
  static constexpr int blocks = 3; /* on a multiprocessor: what registers allow */
  update_plan p;
  double *g;
  int directions;
  double omega;

  QK_HD void group(int w) const {
    const fix_group at = {p, g, w};
    wide_matrix sum = {}, own, way;
#ifdef __CUDACC__
#pragma unroll(1)
#endif
    for (int mu = 0; mu < directions; mu++) at.add_neighbours(mu, sum);
    at.load_g<false>(at.s.parity, at.s.n, own);
    multiply<false>(way, own, sum);
    QK_UNROLL
    for (int i = 0; i < 3; i++) {
      const int subgroup = (FIRST + i) % 3;
      const int a = subgroup == 2 ? 1 : 0, b = subgroup == 0 ? 1 : 2;
      const quaternion h = relaxed(block_of(way, a, b), omega);
      rotate_rows(h, a, b, own);
      rotate_rows(h, a, b, way);
    }
    project(own);
    double *to = part_of(g, p.stride, 0, at.s.parity);
    for (int k = 0; k < 9; k++) store_wide(to + 2 * k * p.stride, at.s, own.e[k]);
  }
};

/* A site's four links, which no other group reads. */
struct fix_rotator {
  static constexpr int blocks = 3;
  update_plan p;
  double *g;

  QK_HD void group(int w) const {
    const fix_group at = {p, g, w};
    wide_matrix own, link, there, half;
    at.load_g<false>(at.s.parity, at.s.n, own);
    for (int mu = 0; mu < 4; mu++) {
      double *links = links_of(p, mu, at.s.parity);
      load_links<false>(links, p.stride, at.s.n, link);
      multiply<false>(half, own, link);
      at.load_g<true>(at.s.parity ^ 1, at.s.n + shifted(p, at.s.n, mu, 1), there);
      multiply<false>(link, half, there);
      for (int k = 0; k < 9; k++) store_wide(links + 2 * k * p.stride, at.s, link.e[k]);
    }
  }
};

} // namespace
} // namespace QK_NS
#endif
