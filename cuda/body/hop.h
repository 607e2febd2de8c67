/*
 * hop.h: the hopping term with its site-diagonal term and axpy, one work item (cuda/ops.h: hop).
 *
 * Flow per direction and sense: load the neighbour's spinor, project to a half-spinor, multiply by
 * the link, add both halves to the sum; the scale of a half-precision neighbour and a real boundary
 * phase are folded into that addition. Where the neighbour is on another rank, the half-spinor
 * comes from a ghost: from ahead it still needs the link,
 * from behind it has been multiplied already.
 *
 * SITES is one_site or eight_sites, S the storage type of all fields, REALS the stored reals of a
 * link (GPU; the CPU decides at run time and passes 0). Without GENERAL no ghost is read, all
 * phases are real and all hops take part: they are then one stretch of code without branches, and
 * the compiler can load ahead. Without DRESSED all weights are 1, T is A, and there is no y.
 */
#ifndef QK_BODY_HOP_H
#define QK_BODY_HOP_H

#include "cuda/ops.h"
#include "cuda/site/sites.h"
#include "cuda/site/spin.h"

namespace QK_NS {

/* The numbers of a call in the arithmetic type, converted once on the host. */
template <class R> struct hop_numbers {
  R phase[4][2];
  R c_hop, c_z, c_x, c_y, diag;
  R weight[4];
  R q[2][2]; /* of T, or of T^+ for dagger */
  bool twisted;
};

/* True if a call has weights, y, or a local term that is more than A: not for Wilson operators. */
inline bool is_dressed(const qk_hop_args_t &a) {
  bool dressed = a.diag.b != nullptr || a.c_y != 0;
  for (int mu = 0; mu < 4; mu++) dressed = dressed || (a.weight[mu] != 0 && a.weight[mu] != 1);
  for (int c = 0; c < 2; c++) dressed = dressed || a.diag.q[c][0] != 0 || a.diag.q[c][1] != 0;
  return dressed;
}

template <class R> inline hop_numbers<R> hop_numbers_of(const qk_hop_args_t &a) {
  hop_numbers<R> n;
  for (int mu = 0; mu < 4; mu++)
    for (int k = 0; k < 2; k++) n.phase[mu][k] = (R)a.phase[mu][k];
  n.c_hop = (R)a.c_hop;
  n.c_z = (R)a.c_z;
  n.c_x = (R)a.c_x;
  n.c_y = (R)a.c_y;
  n.diag = (R)a.diag.scalar;
  for (int mu = 0; mu < 4; mu++) n.weight[mu] = a.weight[mu] != 0 ? (R)a.weight[mu] : (R)1;
  n.twisted = false;
  for (int c = 0; c < 2; c++) {
    n.q[c][0] = (R)a.diag.q[c][0];
    n.q[c][1] = (R)(a.dagger ? -a.diag.q[c][1] : a.diag.q[c][1]);
    n.twisted = n.twisted || n.q[c][0] != 0 || n.q[c][1] != 0;
  }
  return n;
}

/* r = T v on one chiral block of N numbers. */
template <int N, bool DRESSED, class BODY, class V>
QK_HD void local_times(const BODY &body, int block, const V *v, V *r) {
  if constexpr (!DRESSED) {
    body.a_times(block, v, r);
  } else {
    V x[N];
    if (body.a.diag.b != nullptr) {
      body.field_times(body.a.diag.b, block, v, x);
    } else {
      QK_UNROLL
      for (int k = 0; k < N; k++) x[k] = v[k];
    }
    body.a_times(block, x, r);
    if (body.num.twisted) body.add_twist(block, x, r);
  }
}

/* What is done to the sum of the hops, N numbers. */
template <int N, bool DRESSED, class BODY, class V>
QK_HD void after_hops(const BODY &body, V *sum) {
  const qk_hop_args_t &a = body.a;
  const auto &num = body.num;
  if (num.c_hop != 0) {
    QK_UNROLL
    for (int i = 0; i < N; i++) sum[i] = num.c_hop * sum[i];
  }
  if (a.diag_on_sum) {
    if (num.c_z != 0) body.add_own(a.z, num.c_z, sum);
    body.diag_of_sum(sum);
  } else if (num.c_z != 0)
    body.add_diag_own(sum);
  if (num.c_x != 0) body.add_own(a.x, num.c_x, sum);
  if constexpr (DRESSED) {
    if (num.c_y != 0) body.add_own(a.y, num.c_y, sum);
  }
}

template <class SITES, class S, int REALS, bool GENERAL, bool DRESSED> struct hop_body {
  using R = real<S>;
  using L = lanes<R>;
  using U = typename SITES::template numbers<R>;

  const qk_hop_args_t &a;
  const hop_numbers<R> &num;
  const SITES &at;
  int parity; /* of the sites written */

  /* Where the sites of a parity start in spinors, and in links and diagonal terms. */
  QK_HD int base(int p) const { return a.out_parity == QK_FULL && p == 1 ? a.lat.vcb : 0; }
  QK_HD int full_base(int p) const { return p == 1 ? a.lat.vcb : 0; }

  /* h *= the phase on the lanes that cross the edge; SIGN < 0: its conjugate. */
  template <int MU, int SIGN, class TO> QK_HD void turn(const TO &to, L *h) const {
    const auto re = at.template at_edge<R>(to, num.phase[MU][0], (R)1);
    const auto im = at.template at_edge<R>(to, SIGN * num.phase[MU][1], (R)0);
    QK_UNROLL
    for (int k = 0; k < 12; k += 2) {
      const L x = h[k], y = h[k + 1];
      h[k] = re * x - im * y;
      h[k + 1] = re * y + im * x;
    }
  }

  /* f, times the weight of the direction. */
  template <int MU, class F> QK_HD F weighted(const F &f) const {
    if constexpr (DRESSED) return num.weight[MU] * f;
    return f;
  }

  template <int MU, int SIGN> QK_PART void one_hop(L *sum) const {
    auto to = at.template step<MU, SIGN>(a.lat);
    const auto part = at.template takes_part<MU, SIGN>(a.lat, a.hops, a.block[MU]);
    if constexpr (GENERAL) {
      if (!part) return;
      at.leave_out(part, to);
    }
    const int from = 1 - parity;
    const R g = a.dagger ? (R)SIGN : (R)-SIGN;
    L h[12], r[12];
    scale_of<S> scale;
    U u[18];
    const bool second = a.out_parity == QK_FULL && from == 1;
    const spinor<S> ghost = GENERAL ? ghosts_of<S>(a.ghost[MU][SIGN > 0], a.turns, 0) : spinor<S>{};
    const S *links = (const S *)a.links.data;
    if (GENERAL && at.all_ghost(to)) {
      at.template ghost_spinor<S>(ghost, a.lat, MU, second, to, SIGN > 0 ? h : r, scale);
    } else {
      at.template near_projected<MU, S>(spinor_of<S>(a.in), base(from), to, g, h, scale);
      if constexpr (SIGN < 0) {
        at.template near_link<S, REALS>(links, a.links.reals, full_base(from), MU, to, u);
        link_times<true>(u, h, r);
      }
      if (GENERAL && at.some_ghost(to))
        at.template ghost_spinor<S>(ghost, a.lat, MU, second, to, SIGN > 0 ? h : r, scale);
    }
    if constexpr (SIGN > 0) {
      at.template own_link<S, REALS>(links, a.links.reals, full_base(parity), MU, u);
      link_times<false>(u, h, r);
    }
    if constexpr (GENERAL) {
      QK_UNROLL
      for (int k = 0; k < 12; k++) r[k] = at.masked(part, r[k]);
      scale = at.masked(part, scale);
    }
    if (GENERAL && num.phase[MU][1] != 0) {
      if (at.any_edge(to)) turn<MU, SIGN>(to, r);
      const auto f = weighted<MU>(scale);
      expand<MU>(r, f, f * g, sum);
    } else {
      const auto f = weighted<MU>(scale * at.template at_edge<R>(to, num.phase[MU][0], (R)1));
      expand<MU>(r, f, f * g, sum);
    }
  }

  template <int MU> QK_HD void hops(L *sum) const {
    one_hop<MU, 1>(sum);
    one_hop<MU, -1>(sum);
  }

  /* r = field v on one chiral block */
  QK_HD void field_times(const void *field, int block, const L *v, L *r) const {
    U m[QK_DIAG_REALS];
    at.template own_diag<S>((const S *)field, full_base(parity), block, m);
    diag_times(m, v, r);
  }

  /* r = A v on one chiral block */
  QK_PART void a_times(int block, const L *v, L *r) const {
    if (a.diag.data == nullptr) {
      QK_UNROLL
      for (int k = 0; k < 12; k++) r[k] = num.diag * v[k];
    } else {
      field_times(a.diag.data, block, v, r);
    }
  }

  QK_HD void diag(int block, const L *v, L *r) const {
    local_times<12, DRESSED>(*this, block, v, r);
  }

  /* r += Q x */
  QK_HD void add_twist(int block, const L *x, L *r) const {
    const R re = num.q[block][0];
    const auto im = num.q[block][1] * at.template sign_of<R>(a.minus, a.out.nrhs);
    QK_UNROLL
    for (int k = 0; k < 12; k += 2) {
      r[k] = r[k] + re * x[k] - im * x[k + 1];
      r[k + 1] = r[k + 1] + re * x[k + 1] + im * x[k];
    }
  }

  QK_PART void add_own(const qk_spinor_t &f, R c, L *sum) const {
    L psi[24];
    scale_of<S> scale;
    at.template own_spinor<S>(spinor_of<S>(f), base(parity), psi, scale);
    const auto k = scale * c;
    QK_UNROLL
    for (int i = 0; i < 24; i++) sum[i] = sum[i] + k * psi[i];
  }

  /* sum += c_z T z */
  QK_HD void add_diag_own(L *sum) const {
    L psi[24], r[12];
    scale_of<S> scale;
    at.template own_spinor<S>(spinor_of<S>(a.z), base(parity), psi, scale);
    const auto k = scale * num.c_z;
    QK_UNROLL
    for (int block = 0; block < 2; block++) {
      diag(block, psi + 12 * block, r);
      QK_UNROLL
      for (int i = 0; i < 12; i++) sum[12 * block + i] = sum[12 * block + i] + k * r[i];
    }
  }

  QK_HD void diag_of_sum(L *sum) const {
    L r[12];
    QK_UNROLL
    for (int block = 0; block < 2; block++) {
      diag(block, sum + 12 * block, r);
      QK_UNROLL
      for (int i = 0; i < 12; i++) sum[12 * block + i] = r[i];
    }
  }

  QK_HD void run() const {
    L sum[24];
    QK_UNROLL
    for (int i = 0; i < 24; i++) sum[i] = L{};
    if (num.c_hop != 0) {
      hops<0>(sum);
      hops<1>(sum);
      hops<2>(sum);
      hops<3>(sum);
    }
    after_hops<24, DRESSED>(*this, sum);
    if (storage<S>::scaled && a.out.scale == nullptr)
      at.template put_spinor<R>(spinor_of<R>(a.out), base(parity), sum);
    else
      at.template put_spinor<S>(spinor_of<S>(a.out), base(parity), sum);
  }
};

} // namespace QK_NS
#endif
