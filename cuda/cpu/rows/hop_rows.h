/*
 * hop_rows.h: the body of hop.h for eight RHS of a site of this rank, on the CPU: a row of the
 * half-spinor at a time from the load to the sum, with links that the sites of a row share. The
 * real and imaginary parts of a component are one value (site/clanes.h). What needs a ghost or a
 * complex phase is left to hop_body.
 */
#ifndef QK_CUDA_CPU_ROWS_HOP_ROWS_H
#define QK_CUDA_CPU_ROWS_HOP_ROWS_H

#include "cuda/body/hop.h"
#include "cuda/site/clanes_times.h"

namespace QK_NS {

/* a += f i^P z; t = turning(f), and turning(-f) for P = 3. */
template <int P, class Z, class F, class T>
QK_HD void add_power(Z &a, const F &f, const T &t, const Z &z) {
  if constexpr (P == 0)
    a = a + f * z;
  else if constexpr (P == 2)
    a = a - f * z;
  else
    a = add_turned(a, t, z);
}

/* All tiles of RHS of a site. What a hop needs of the lattice is looked up once a site. */
template <class S, bool DRESSED> struct hop_rows {
  using R = real<S>;
  using Z = clanes<R>;
  using general = hop_body<rhs_site<R>, S, 0, true, DRESSED>;

  enum way { LEFT_OUT, HERE, ELSEWHERE };
  struct near {
    way kind;
    int site;        /* of the neighbour, in the field */
    lane_at<R> link; /* its 18 reals */
    R phase;         /* and weight */
  };

  const qk_hop_args_t &a;
  const hop_numbers<R> &num;
  rhs_site<R> at;
  int parity; /* of the sites written */
  near to[8] = {};
  bool all_here = true;

  QK_HD int base(int p) const { return a.out_parity == QK_FULL && p == 1 ? a.lat.vcb : 0; }
  QK_HD int full_base(int p) const { return p == 1 ? a.lat.vcb : 0; }

  template <int MU, int SIGN> QK_HD void look() {
    near &n = to[2 * MU + (SIGN > 0)];
    const auto step = at.template step<MU, SIGN>(a.lat);
    n.kind = HERE;
    if (step.ghost || num.phase[MU][1] != 0)
      n.kind = ELSEWHERE;
    else if (!at.template takes_part<MU, SIGN>(a.lat, a.hops, a.block[MU]))
      n.kind = LEFT_OUT;
    all_here = all_here && n.kind == HERE;
    if (n.kind != HERE) return;
    const int from = 1 - parity;
    const int site = SIGN > 0 ? full_base(parity) + at.here.cb : full_base(from) + step.cb;
    n.link = at.template kept_link<S, MU, SIGN>((const S *)a.links.data, a.links.reals, site);
    n.site = base(from) + step.cb;
    n.phase = at.template at_edge<R>(step, num.phase[MU][0], (R)1);
  }
  template <int MU> QK_HD void look_both() {
    look<MU, 1>();
    look<MU, -1>();
  }
  QK_PART void look_around() {
    look_both<0>();
    look_both<1>();
    look_both<2>();
    look_both<3>();
  }

  template <int MU, int SIGN> QK_PART void hop_elsewhere(Z *sum) const {
    lanes<R> rows[24];
    for (int c = 0; c < 12; c++) to_rows(sum[c], rows + 2 * c);
    general{a, num, at, parity}.template one_hop<MU, SIGN>(rows);
    for (int c = 0; c < 12; c++) from_rows(rows + 2 * c, sum[c]);
  }

  /* sum += f (h, g B^+ h) for row r of h = U (upper + g B lower), or with U^+ (site/spin.h). */
  template <int MU, bool DAGGER, int r, class U, class P, class F>
  static QK_HD void carry_row(const U &u, const P &psi, R g, const F &f, const F &fg, Z *sum) {
    using B = spin_block<MU>;
    constexpr int up = B::power(r), down = (4 - up) % 4, low = 6 + 3 * B::column(r);
    Z h[3], carried[3];
    const auto turn = turning(up == 3 ? -g : g);
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      h[c] = psi[3 * r + c];
      add_power<up>(h[c], g, turn, psi[low + c]);
    }
    link_times_complex<DAGGER>(u, h, carried);
    const auto back = turning(down == 3 ? -fg : fg);
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      sum[3 * r + c] = sum[3 * r + c] + f * carried[c];
      add_power<down>(sum[low + c], fg, back, carried[c]);
    }
  }

  template <int MU, int SIGN> QK_HD void hop_here(Z *sum) const {
    const near &n = to[2 * MU + (SIGN > 0)];
    const R g = a.dagger ? (R)SIGN : (R)-SIGN;
    scale_of<S> scale;
    const auto psi = at.components(spinor_of<S>(a.in), n.site, scale);
    if constexpr (MU == 3 && SIGN > 0) at.fetch_next(psi.p);
    auto weight = scale * n.phase;
    if constexpr (DRESSED) weight = num.weight[MU] * weight;
    const auto f = shared(weight), fg = shared(weight * g);
    carry_row<MU, (SIGN < 0), 0>(n.link, psi, g, f, fg, sum);
    carry_row<MU, (SIGN < 0), 1>(n.link, psi, g, f, fg, sum);
  }
  template <int MU, int SIGN> QK_PART void hop_apart(Z *sum) const {
    const way kind = to[2 * MU + (SIGN > 0)].kind;
    if (kind == HERE)
      hop_here<MU, SIGN>(sum);
    else if (kind == ELSEWHERE)
      hop_elsewhere<MU, SIGN>(sum);
  }

  template <bool APART, int MU> QK_HD void hops(Z *sum) const {
    if constexpr (APART) {
      hop_apart<MU, 1>(sum);
      hop_apart<MU, -1>(sum);
    } else {
      hop_here<MU, 1>(sum);
      hop_here<MU, -1>(sum);
    }
  }
  template <bool APART> QK_HD void all_hops(Z *sum) const {
    hops<APART, 0>(sum);
    hops<APART, 1>(sum);
    hops<APART, 2>(sum);
    hops<APART, 3>(sum);
  }

  /* The sums of a site stay in registers from hop to hop where there are enough of them. */
  static constexpr bool sums_fit = !std::is_same_v<Z, clanes_split<R>>;

  QK_HD void field_times(const void *field, int block, const Z *v, Z *r) const {
    diag_times_complex(at.diag_at((const S *)field, full_base(parity), block), v, r);
  }

  /* r = A v on one chiral block */
  QK_PART void a_times(int block, const Z *v, Z *r) const {
    if (a.diag.data == nullptr) {
      QK_UNROLL
      for (int k = 0; k < 6; k++) r[k] = num.diag * v[k];
    } else {
      field_times(a.diag.data, block, v, r);
    }
  }

  QK_HD void diag(int block, const Z *v, Z *r) const {
    local_times<6, DRESSED>(*this, block, v, r);
  }

  /* r += Q x */
  QK_HD void add_twist(int block, const Z *x, Z *r) const {
    const R re = num.q[block][0];
    const auto im = num.q[block][1] * at.template sign_of<R>(a.minus, a.out.nrhs);
    const auto turn = turning(shared(im));
    QK_UNROLL
    for (int k = 0; k < 6; k++) r[k] = add_turned(r[k] + re * x[k], turn, x[k]);
  }

  QK_HD void own(const qk_spinor_t &f, Z *psi, scale_of<S> &scale) const {
    const auto rows = at.own_components(spinor_of<S>(f), base(parity), scale);
    QK_UNROLL
    for (int c = 0; c < 12; c++) psi[c] = rows[c];
  }

  QK_PART void add_own(const qk_spinor_t &f, R c, Z *sum) const {
    Z psi[12];
    scale_of<S> scale;
    own(f, psi, scale);
    const auto k = shared(scale * c);
    QK_UNROLL
    for (int i = 0; i < 12; i++) sum[i] = sum[i] + k * psi[i];
  }

  /* sum += c_z T z */
  QK_HD void add_diag_own(Z *sum) const {
    Z psi[12], r[6];
    scale_of<S> scale;
    own(a.z, psi, scale);
    const auto k = shared(scale * num.c_z);
    QK_UNROLL
    for (int block = 0; block < 2; block++) {
      diag(block, psi + 6 * block, r);
      QK_UNROLL
      for (int i = 0; i < 6; i++) sum[6 * block + i] = sum[6 * block + i] + k * r[i];
    }
  }

  QK_HD void diag_of_sum(Z *sum) const {
    Z r[6];
    QK_UNROLL
    for (int block = 0; block < 2; block++) {
      diag(block, sum + 6 * block, r);
      QK_UNROLL
      for (int i = 0; i < 6; i++) sum[6 * block + i] = r[i];
    }
  }

  QK_HD void run() {
    look_around();
    for (int tile = 0; tile < a.out.ntile; tile++) {
      at.first = (uint32_t)tile * QK_TILE;
      run_tile();
    }
  }

  QK_HD void run_tile() const {
    Z sum[12];
    QK_UNROLL
    for (int i = 0; i < 12; i++) sum[i] = Z{};
    if (num.c_hop != 0) {
      if (!sums_fit || !all_here)
        all_hops<true>(sum);
      else if constexpr (sums_fit)
        all_hops<false>(sum);
    }
    after_hops<12, DRESSED>(*this, sum);
    if (storage<S>::scaled && a.out.scale == nullptr)
      at.put_components(spinor_of<R>(a.out), base(parity), sum);
    else
      at.put_components(spinor_of<S>(a.out), base(parity), sum);
  }
};

} // namespace QK_NS
#endif
