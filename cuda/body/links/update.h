/*
 * update.h: one update of the links U_mu of one colour (qk_link_update_args_t): pseudo-heatbath or
 * overrelaxation; and the starts. Exact arithmetic: site/wide.h.
 *
 * The links of a colour are numbered so that neighbouring numbers are neighbours in memory where
 * the colour allows, and an aligned group of four has one parity. A number is cut into digits, the
 * fastest first: directions in `order`, one of which is solved for by the colour, so its digit
 * counts every second or fourth site.
 */
#ifndef QK_BODY_UPDATE_H
#define QK_BODY_UPDATE_H

#include "cuda/linkfield_ops.h"
#include "cuda/site/linkfield.h"
#include "cuda/site/wide_su3.h"

namespace QK_NS {
namespace {

/* A Kennedy-Pendleton trial is accepted with a probability near 1 for large alpha, 0.5 for
 * alpha = 1 and about alpha^(3/2) below. A link that has failed this often keeps its value: 4 in
 * 10^6 of those with alpha = 0.2. How often depends on the staple alone,
 * so the weight stays invariant. */
enum { QK_TRIALS = 128 };

/* Second word of the counters: direction, what for, which call, trial. */
enum { QK_DRAW_START = 3 }; /* in the place of the subgroup */
QK_ANY uint32_t draw_word(int mu, int use, int block, int trial) {
  return (uint32_t)(mu | use << 2 | block << 4 | trial << 8);
}
/* Top bit of the last word: apart from the noise of sources. */
QK_ANY uint32_t sweep_word(int64_t sweep) {
  return (uint32_t)(sweep >> 32) | 0x80000000u;
}

/* What is known of a launch before it starts; indices k of arrays [4] count the digits. */
struct update_plan {
  qk_link_update_args_t a;
  int64_t stride; /* complex numbers from one element of a link to the next */
  int nwork;
  int colours;
  int solved;   /* the digit that the colour decides */
  int halved;   /* 1: digit 0 counts pairs of sites; which of the two is decided last */
  divider n[4]; /* digits */
  struct {
    int l, pad, step, weight, offset; /* extents, halo, in extended sites; in the colour's sum */
    uint32_t global;                  /* step among global sites */
  } k[4];
  divider step[4], extent[4]; /* per direction: of the extended lattice */
};

inline update_plan plan_update(const qk_link_update_args_t &a) {
  const bool rectangles = a.c1 != 0;
  update_plan p = {};
  p.a = a;
  p.stride = link_stride(a.u);
  p.colours = rectangles ? 4 : 2;
  p.halved = rectangles && a.mu == 0;
  p.solved = p.halved;
  int order[4] = {0, 1, 2, 3};
  if (rectangles && !p.halved) { /* mu last */
    for (int i = a.mu; i < 3; i++) order[i] = i + 1;
    order[3] = a.mu;
  }
  int step[4], global[4];
  step[0] = global[0] = 1;
  for (int mu = 1; mu < 4; mu++) {
    step[mu] = step[mu - 1] * a.u.e[mu - 1];
    global[mu] = global[mu - 1] * a.lat.global[mu - 1];
  }
  p.nwork = p.halved ? 2 : 1;
  for (int k = 0; k < 4; k++) {
    const int mu = order[k], l = a.lat.l[mu];
    const int count = k == p.solved ? (l + p.colours - 1) / p.colours : k == 0 ? l / 2 : l;
    p.k[k].l = l;
    p.k[k].pad = a.u.halo * a.lat.split[mu];
    p.k[k].step = step[mu];
    p.k[k].weight = rectangles && mu == a.mu ? 2 : 1;
    p.k[k].offset = a.lat.offset[mu];
    p.k[k].global = (uint32_t)global[mu];
    p.n[k] = divider_by(count);
    p.nwork *= count;
    p.step[mu] = divider_by(step[mu]);
    p.extent[mu] = divider_by(a.u.e[mu]);
  }
  return p;
}

/* The sites of a group. */
struct wide_site {
  wide_int n; /* in the extended lattice, lexicographic */
  int parity; /* of all lanes that are valid */
  uint32_t global[QK_WIDE];
  bool valid[QK_WIDE];
};

QK_HD void place(const update_plan &p, int w, int lane, wide_site &s) {
  int digit[4], sum = p.a.colour, n = 0, parity = 0;
  uint32_t global = 0;
  QK_UNROLL
  for (int k = 0; k < 4; k++) digit[k] = split_off(w, p.n[k]);
  if (p.halved) digit[0] = 2 * digit[0] + w;
  QK_UNROLL
  for (int k = 0; k < 4; k++)
    if (k != p.solved) sum -= p.k[k].weight * (digit[k] + p.k[k].offset);
  s.valid[lane] = true;
  QK_UNROLL
  for (int k = 0; k < 4; k++) {
    if (k == p.solved) {
      digit[k] = p.colours * digit[k] + ((sum - p.k[k].offset) & (p.colours - 1));
      s.valid[lane] = digit[k] < p.k[k].l;
      if (!s.valid[lane]) digit[k] = 0; /* computed in vain */
    }
    n += (digit[k] + p.k[k].pad) * p.k[k].step;
    global += (uint32_t)(digit[k] + p.k[k].offset) * p.k[k].global;
    parity += digit[k];
  }
  set_lane(s.n, lane, n);
  s.global[lane] = global;
  if (s.valid[lane]) s.parity = parity & 1;
}

/* ---- loads and stores of whole groups ---- */

#ifdef __CUDACC__

QK_HD void load_wide(const double *p, wide_int i, wide_complex &z) {
  load_complex(p + 2 * (int64_t)i, z.re, z.im);
}
QK_HD void store_wide(double *p, const wide_site &s, const wide_complex &z) {
  if (s.valid[0]) store_complex(p + 2 * (int64_t)(s.n >> 1), z.re, z.im);
}

#else

typedef double complex_pair __attribute__((vector_size(16)));

QK_HD complex_pair pair_at(const double *p, int32_t i) {
  complex_pair z;
  memcpy(&z, p + 2 * (int64_t)i, sizeof z);
  return z;
}
QK_HD void load_wide(const double *p, wide_int i, wide_complex &z) {
  const complex_pair a = pair_at(p, i[0]), b = pair_at(p, i[1]);
  const complex_pair c = pair_at(p, i[2]), d = pair_at(p, i[3]);
  const wide ac = __builtin_shufflevector(a, c, 0, 1, 2, 3);
  const wide bd = __builtin_shufflevector(b, d, 0, 1, 2, 3);
  z.re = __builtin_shufflevector(ac, bd, 0, 4, 2, 6);
  z.im = __builtin_shufflevector(ac, bd, 1, 5, 3, 7);
}
QK_HD void store_wide(double *p, const wide_site &s, const wide_complex &z) {
  for (int l = 0; l < QK_WIDE; l++)
    if (s.valid[l]) store_complex(p + 2 * (int64_t)(s.n[l] >> 1), z.re[l], z.im[l]);
}

#endif

/* Of the links of direction mu, in data as those of a qk_linkfield_t. */
QK_HD double *part_of(double *data, int64_t stride, int mu, int parity) {
  return data + 2 * ((mu * 2 + parity) * 9 * stride);
}
QK_HD double *links_of(const update_plan &p, int mu, int parity) {
  return part_of(p.a.u.data, p.stride, mu, parity);
}

/* The links at the even or odd sites n; ADJOINT: their adjoints. */
template <bool ADJOINT>
QK_PART void load_links(const double *links, int64_t stride, wide_int n, wide_matrix &m) {
  const wide_int i = n >> 1;
  QK_UNROLL
  for (int k = 0; k < 9; k++) {
    wide_complex &z = m.e[ADJOINT ? 3 * (k % 3) + k / 3 : k];
    load_wide(links + 2 * k * stride, i, z);
    if (ADJOINT) z.im = -z.im;
  }
}

/* ---- staples ---- */

/* From n by `by` sites along the direction, around the lattice where it is not split. */
QK_HD wide_int shifted(const update_plan &p, wide_int n, int mu, int by) {
  const int e = (int)p.extent[mu].d, step = (int)p.step[mu].d;
  wide_int to;
  for (int l = 0; l < QK_WIDE; l++) {
#ifdef __CUDACC__
    const int at = n;
#else
    const int at = n[l];
#endif
    int rest = divide(at, p.step[mu]);
    const int x = split_off(rest, p.extent[mu]);
    int y = x + by;
    y += y < 0 ? e : 0;
    y -= y >= e ? e : 0;
    set_lane(to, l, (y - x) * step);
  }
  return to;
}

/* The plane of mu and nu at a group of sites: ways to sites up to two steps away. */
struct plane {
  const update_plan &p;
  const wide_site &s;
  int nu;
  wide_int along_mu[5], along_nu[5]; /* [2 + steps] */

  template <int REACH> QK_HD void reach() {
    QK_UNROLL
    for (int by = -REACH; by <= REACH; by++) {
      along_mu[2 + by] = shifted(p, s.n, p.a.mu, by);
      along_nu[2 + by] = shifted(p, s.n, nu, by);
    }
  }

  /* The transporter from the site (x, y) steps along (mu, nu) to its neighbour ahead (SIGN = 1) or
   * behind (-1) in direction mu, or nu. */
  template <int SIGN> QK_HD void mu_step(int x, int y, wide_matrix &m) const {
    if (SIGN < 0) x--;
    load_links<(SIGN < 0)>(links_of(p, p.a.mu, (s.parity + x + y) & 1), p.stride,
                           s.n + along_mu[2 + x] + along_nu[2 + y], m);
  }
  template <int SIGN> QK_HD void nu_step(int x, int y, wide_matrix &m) const {
    if (SIGN < 0) y--;
    load_links<(SIGN < 0)>(links_of(p, nu, (s.parity + x + y) & 1), p.stride,
                           s.n + along_mu[2 + x] + along_nu[2 + y], m);
  }

  /* Adds the staple on one side: the way from x + mu to x by (S nu), -mu, (-S nu). */
  template <int S> QK_HD void add_staple(wide_matrix &sum) const {
    wide_matrix out, over, back, t;
    nu_step<S>(1, 0, out);
    mu_step<-1>(1, S, over);
    multiply<false>(t, out, over);
    nu_step<-S>(0, S, back);
    multiply<true>(sum, t, back);
  }

  /* The same, c0 times, and c1 times the three ways around two plaquettes, in each of which one of
   * the three steps is replaced by a detour of three. */
  template <int S> QK_HD void add_improved(double c0, double c1, wide_matrix &sum) const {
    wide_matrix a, b, t, detour,
        way; /* few, so that they stay in registers: links are read again */
    /* for the first step: +mu, S nu, -mu */
    mu_step<1>(1, 0, a);
    nu_step<S>(2, 0, b);
    multiply<false>(t, a, b);
    mu_step<-1>(2, S, a);
    multiply<false>(detour, t, a);
    nu_step<S>(1, 0, a);
    combine(detour, c0, a, c1, detour);
    mu_step<-1>(1, S, a);
    multiply<false>(way, detour, a);
    /* for the second: S nu, -mu, -S nu */
    nu_step<S>(1, S, a);
    mu_step<-1>(1, 2 * S, b);
    multiply<false>(t, a, b);
    nu_step<-S>(0, 2 * S, a);
    multiply<false>(detour, t, a);
    nu_step<S>(1, 0, a);
    scale(a, c1);
    multiply<true>(way, a, detour);
    nu_step<-S>(0, S, b);
    multiply<true>(sum, way, b);
    /* for the third: -mu, -S nu, +mu */
    mu_step<-1>(1, S, b);
    multiply<false>(way, a, b);
    mu_step<-1>(0, S, a);
    nu_step<-S>(-1, S, b);
    multiply<false>(t, a, b);
    mu_step<1>(-1, 0, a);
    multiply<false>(detour, t, a);
    multiply<true>(sum, way, detour);
  }
};

/* ---- updates of SU(2) subgroups ---- */

/* Weight exp(alpha a0) sqrt(1 - a0^2): a0 = 1 - delta. Lanes of `done` are left alone. */
QK_HD void kennedy_pendleton(const update_plan &p, const wide_site &s, int subgroup, wide alpha,
                             wide_mask &done, wide &delta) {
  const uint32_t low = (uint32_t)p.a.sweep, high = sweep_word(p.a.sweep);
  delta = splat(0);
  for (int trial = 0; trial < QK_TRIALS && any(!done); trial++) {
    wide_random r, t;
    draw(s.global, draw_word(p.a.mu, subgroup, 0, trial), low, high, p.a.seed, r);
    draw(s.global, draw_word(p.a.mu, subgroup, 1, trial), low, high, p.a.seed, t);
    const wide cos2 = (1.0 + sin_pi(t.u[0] - 0.5)) * 0.5;
    const wide x = (minus_log(r.u[0]) + minus_log(r.u[1]) * cos2) / alpha;
    const wide_mask good = (t.u[1] * t.u[1] <= 1.0 - 0.5 * x) & !done;
    delta = good ? x : delta;
    done = done | good;
  }
}

/* a0 = 1 - delta and a direction from the uniform distribution on the sphere. */
QK_HD quaternion on_sphere(const update_plan &p, const wide_site &s, int subgroup, wide delta) {
  wide_random r;
  draw(s.global, draw_word(p.a.mu, subgroup, 2, 0), (uint32_t)p.a.sweep, sweep_word(p.a.sweep),
       p.a.seed, r);
  const wide radius = wide_sqrt(delta * (2.0 - delta)), z = 2.0 * r.u[0] - 1.0;
  const wide rho = radius * wide_sqrt(1.0 - z * z), sine = sin_pi(r.u[1] - 0.5);
  const wide cosine = wide_sqrt(1.0 - sine * sine);
  const wide x = double_from(r.spare & 1) > splat(0.5) ? cosine : -cosine;
  return {{1.0 - delta, rho * x, rho * sine, radius * z}};
}

/* g for which (g r) = h: heatbath, h drawn; overrelaxation, h = r^+.
 * Identity where there is none. */
template <bool HEATBATH>
QK_HD quaternion draw_rotation(const update_plan &p, const wide_site &s, int subgroup,
                               const quaternion &r) {
  const wide k2 = norm2(r);
  const wide_mask some = k2 > splat(1e-200);
  const wide_mask none = !some;
  quaternion g;
  if (HEATBATH) {
    const wide k = wide_sqrt(k2);
    wide delta;
    wide_mask done = none;
    kennedy_pendleton(p, s, subgroup, p.a.beta / 3 * k, done, delta);
    const quaternion h = on_sphere(p, s, subgroup, delta);
    const wide one_k = 1.0 / k;
    g = times_adjoint(h, {{r.q[0] * one_k, r.q[1] * one_k, r.q[2] * one_k, r.q[3] * one_k}});
    const wide_mask accepted = (done & some) != 0;
    for (int i = 0; i < 4; i++) g.q[i] = accepted ? g.q[i] : splat(i == 0 ? 1 : 0);
  } else {
    const wide f = -2.0 * r.q[0] / k2;
    g = {{-1.0 - f * r.q[0], f * r.q[1], f * r.q[2], f * r.q[3]}};
    for (int i = 0; i < 4; i++) g.q[i] = some ? g.q[i] : splat(i == 0 ? 1 : 0);
  }
  return g;
}

template <bool HEATBATH, bool RECTANGLES> struct link_updater {
  static constexpr int blocks = RECTANGLES ? 2 : 3; /* on a multiprocessor: what registers allow */
  update_plan p;

  /* Links w .. w + QK_WIDE - 1. */
  QK_HD void group(int w) const {
    wide_site s;
    for (int lane = 0; lane < QK_WIDE; lane++) place(p, w + lane, lane, s);
    wide_matrix staples = {}, u, way;
#ifdef __CUDACC__
#pragma unroll(RECTANGLES ? 1 : 3)
#endif
    for (int i = 1; i < 4; i++) {
      plane q = {p, s, (p.a.mu + i) & 3, {}, {}};
      if (RECTANGLES) {
        q.reach<2>();
        q.add_improved<1>(1 - 8 * p.a.c1, p.a.c1, staples);
        q.add_improved<-1>(1 - 8 * p.a.c1, p.a.c1, staples);
      } else {
        q.reach<1>();
        q.add_staple<1>(staples);
        q.add_staple<-1>(staples);
      }
    }
    double *links = links_of(p, p.a.mu, s.parity);
    load_links<false>(links, p.stride, s.n, u);
    multiply<false>(way, u, staples);
    QK_UNROLL
    for (int subgroup = 0; subgroup < 3; subgroup++) {
      const int a = subgroup == 2 ? 1 : 0, b = subgroup == 0 ? 1 : 2;
      const quaternion g = draw_rotation<HEATBATH>(p, s, subgroup, block_of(way, a, b));
      rotate_rows(g, a, b, u);
      rotate_rows(g, a, b, way);
    }
    project(u);
    for (int k = 0; k < 9; k++) store_wide(links + 2 * k * p.stride, s, u.e[k]);
  }
};

/* ---- starts ---- */

/* Links of QK_WIDE sites: unit matrices, or Haar distributed: two rows of complex Gaussian
 * numbers made orthonormal, and the third from them. */
struct link_starter {
  static constexpr int blocks = 4;
  qk_link_start_args_t a;
  int64_t stride;

  QK_HD void place(int w, wide_site &s) const {
    for (int lane = 0; lane < QK_WIDE; lane++) {
      const site_pos at = site_of(a.lat, w + lane);
      uint32_t global = 0;
      for (int mu = 3; mu >= 0; mu--)
        global = global * (uint32_t)a.lat.global[mu] + (uint32_t)(at.x[mu] + a.lat.offset[mu]);
      set_lane(s.n, lane, (int32_t)(2 * local_spot(a.lat, a.u, at.x).i));
      s.global[lane] = global;
      s.valid[lane] = true;
      s.parity = at.parity;
    }
  }

  QK_HD void group(int w) const {
    wide_site s;
    place(w, s);
    for (int mu = 0; mu < a.directions; mu++) {
      wide_matrix m = {};
      for (int k = 0; k < 3; k++) m.e[4 * k].re = splat(1);
      for (int k = 0; a.hot && k < 6; k++) {
        wide_random r;
        draw(s.global, draw_word(mu, QK_DRAW_START, k, 0), 0, sweep_word(0), a.seed, r);
        const wide radius = wide_sqrt(minus_log(r.u[0])), sine = sin_pi(r.u[1] - 0.5);
        const wide cosine = radius * wide_sqrt(1.0 - sine * sine);
        m.e[k] = {double_from(r.spare & 1) > splat(0.5) ? cosine : -cosine, radius * sine};
      }
      if (a.hot) project(m);
      double *links = a.u.data + 2 * ((mu * 2 + s.parity) * 9 * stride);
      for (int k = 0; k < 9; k++) store_wide(links + 2 * k * stride, s, m.e[k]);
    }
  }
};

} // namespace
} // namespace QK_NS
#endif
