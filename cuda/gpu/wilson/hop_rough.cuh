/*
 * gpu/wilson/hop_rough.cuh: the operator on blocks in half with sums in half, too: for smoothers
 * (cuda/ops.h: rough). One lane a thread.
 *
 * A pair of 16-bit floats is a complex number. The product of one that all lanes share, u, and one
 * of a lane, z, is
 *   u z = a + i b,  a = re(u) z,  b = im(u) z
 * with an instruction for a pair each, for which a half of u needs no instruction of its own. Only
 * a sum of three such products is turned by i, which exchanges the two of a pair.
 *
 * Neighbours have a scale each. What they add is in multiples of one `unit`, a power of two that is
 * 32 to 64 times the largest scale: sums of eight hops stay near 1, with room for the local term.
 * A neighbour with a scale of less than 2^-18 of the largest one loses digits below 2^-11 of the
 * result only.
 */
#ifndef QK_CUDA_GPU_HOP_ROUGH_CUH
#define QK_CUDA_GPU_HOP_ROUGH_CUH

#include "cuda/body/hop.h"

namespace QK_NS {

QK_HD __half2 swapped(__half2 z) {
  return __lowhigh2highlow(z);
}

/* Times swapped(z) it is i z. */
QK_HD __half2 plus_i() {
  return __floats2half2_rn(-1.0f, 1.0f);
}

QK_HD __half2 pair_of(float x) {
  return __float2half2_rn(x);
}

/* 32 to 64 |x|, a power of two, and its inverse; of the largest x less, so that both are finite. */
QK_HD float unit_above(float x, float &inverse) {
  constexpr int one = 1 << 23, inf = 255 * one;
  const int exponent = min((__float_as_int(x) & inf) + 6 * one, 253 * one);
  inverse = __int_as_float(254 * one - exponent);
  return __int_as_float(exponent);
}

/* h of (1 + g gamma_mu) w = (h, g B^+ h), g = G; 12 and 6 complex numbers. */
template <int MU, int G> QK_HD void project_pairs(const __half2 *w, __half2 *h) {
  using B = spin_block<MU>;
  QK_UNROLL
  for (int r = 0; r < 2; r++) {
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      const __half2 up = w[3 * r + c], low = w[6 + 3 * B::column(r) + c];
      const int power = r == 0 ? B::power(0) : B::power(1);
      const bool minus = (power >= 2) != (G < 0);
      if (power % 2 == 1)
        h[3 * r + c] = __hfma2(minus ? __hneg2(plus_i()) : plus_i(), swapped(low), up);
      else
        h[3 * r + c] = minus ? __hsub2(up, low) : __hadd2(up, low);
    }
  }
}

/* sum += i^P s r; si: i s, as a factor of a swapped r. */
template <int P> QK_HD void add_pair(__half2 &sum, __half2 s, __half2 si, __half2 r) {
  const __half2 f = P % 2 == 1 ? si : s;
  sum = __hfma2(P >= 2 ? __hneg2(f) : f, P % 2 == 1 ? swapped(r) : r, sum);
}

/* r = A v on one chiral block, six complex numbers; m: the stored words. */
QK_HD void diag_pairs(const __half2 *m, const __half2 *v, __half2 *r) {
  __half2 b[6];
  QK_UNROLL
  for (int i = 0; i < 6; i++) {
    r[i] = __hmul2(i % 2 == 0 ? __low2half2(m[i / 2]) : __high2half2(m[i / 2]), v[i]);
    b[i] = pair_of(0);
  }
  QK_UNROLL
  for (int j = 0; j < 5; j++) {
    QK_UNROLL
    for (int i = j + 1; i < 6; i++) {
      const __half2 z = m[below(i, j) / 2];
      r[i] = __hfma2(__low2half2(z), v[j], r[i]);
      b[i] = __hfma2(__high2half2(z), v[j], b[i]);
      r[j] = __hfma2(__low2half2(z), v[i], r[j]);
      b[j] = __hfma2(__hneg2(__high2half2(z)), v[i], b[j]);
    }
  }
  QK_UNROLL
  for (int i = 0; i < 6; i++) r[i] = __hfma2(plus_i(), swapped(b[i]), r[i]);
}

/* DRESSED as in body/hop.h; WIDE: out is in single. The call has a hop and no z, its local term
 * acts on the sum. */
template <bool DRESSED, bool WIDE> struct rough_body {
  const qk_hop_args_t &a;
  const hop_numbers<float> &num;
  const one_site &at;

  QK_HD int base(int parity) const { return parity == 1 ? a.lat.vcb : 0; }

  static QK_HD void load_pairs(const qk_spinor_t &f, spot from, __half2 *w) {
    const uint4 *p =
        (const uint4 *)tile_at((const half *)f.data, from.tile, QK_TILE * 24) + from.lane;
    const uint4 v[3] = {__ldg(p), __ldg(p + QK_TILE), __ldg(p + 2 * QK_TILE)};
    memcpy(w, v, sizeof v);
  }

  /* The nine complex numbers of a link. */
  QK_HD void load_link(int mu, int site, __half2 *u) const {
    const half *tile =
        tile_at((const half *)a.links.data, site >> 3, 4 * QK_TILE * 18) + mu * (QK_TILE * 18);
    const uint4 *p = (const uint4 *)tile + (site & 7);
    const uint4 v[2] = {__ldg(p), __ldg(p + QK_TILE)};
    const unsigned last = __ldg((const unsigned *)(tile + QK_TILE * 16) + (site & 7));
    memcpy(u, v, sizeof v);
    memcpy(u + 8, &last, sizeof last);
  }

  /* The 18 words of two reals of a chiral block of a site-diagonal field. */
  QK_HD void load_diag(const void *field, int block, __half2 *m) const {
    const int site = base(at.here.parity) + at.here.cb;
    const half *p = tile_at((const half *)field, site >> 3, QK_TILE * QK_DIAG_SITE) +
                    block * (QK_TILE * QK_DIAG_REALS);
    const uint4 *q = (const uint4 *)p + (site & 7);
    const uint4 v[4] = {__ldcs(q), __ldcs(q + QK_TILE), __ldcs(q + 2 * QK_TILE),
                        __ldcs(q + 3 * QK_TILE)};
    const uint2 last = __ldcs((const uint2 *)(p + QK_TILE * 32) + (site & 7));
    memcpy(m, v, sizeof v);
    memcpy(m + 16, &last, sizeof last);
  }

  /* The scale of a neighbour with the factors of the hop. */
  template <int MU> QK_HD float weight(const step_pos &to) const {
    float s = load_scale(a.in.scale, at.place(to.cb));
    if (to.edge) s *= num.phase[MU][0];
    if constexpr (DRESSED) s *= num.weight[MU];
    return s;
  }

  /* sum += s times what comes from the neighbour. */
  template <int MU, int SIGN>
  QK_HD void one_hop(const step_pos &to, __half2 s, __half2 *sum) const {
    using B = spin_block<MU>;
    constexpr int turn = SIGN > 0 ? 2 : 0; /* g = -SIGN = i^turn */
    constexpr int turn0 = (4 - B::power(0) + turn) % 4, turn1 = (4 - B::power(1) + turn) % 4;
    __half2 w[12], u[9], h[6];
    load_pairs(a.in, at.place(to.cb), w);
    load_link(MU, SIGN > 0 ? base(at.here.parity) + at.here.cb : base(1 - at.here.parity) + to.cb,
              u);
    project_pairs<MU, -SIGN>(w, h);
    const __half2 si = __hmul2(s, plus_i());
    QK_UNROLL
    for (int row = 0; row < 2; row++) {
      QK_UNROLL
      for (int i = 0; i < 3; i++) {
        __half2 re = pair_of(0), im = pair_of(0);
        QK_UNROLL
        for (int j = 0; j < 3; j++) {
          const __half2 z = u[SIGN > 0 ? 3 * i + j : 3 * j + i], v = h[3 * row + j];
          re = j == 0 ? __hmul2(__low2half2(z), v) : __hfma2(__low2half2(z), v, re);
          im = j == 0 ? __hmul2(__high2half2(z), v) : __hfma2(__high2half2(z), v, im);
        }
        const __half2 r = __hfma2(SIGN > 0 ? plus_i() : __hneg2(plus_i()), swapped(im), re);
        __half2 &low = sum[6 + 3 * B::column(row) + i];
        add_pair<0>(sum[3 * row + i], s, si, r);
        if (row == 0)
          add_pair<turn0>(low, s, si, r);
        else
          add_pair<turn1>(low, s, si, r);
      }
    }
  }

  /* sum, of all hops, in multiples of what is returned. */
  QK_HD float hops(__half2 *sum) const {
    const step_pos to[8] = {at.step<0, 1>(a.lat),  at.step<0, -1>(a.lat), at.step<1, 1>(a.lat),
                            at.step<1, -1>(a.lat), at.step<2, 1>(a.lat),  at.step<2, -1>(a.lat),
                            at.step<3, 1>(a.lat),  at.step<3, -1>(a.lat)};
    float s[8] = {weight<0>(to[0]), weight<0>(to[1]), weight<1>(to[2]), weight<1>(to[3]),
                  weight<2>(to[4]), weight<2>(to[5]), weight<3>(to[6]), weight<3>(to[7])};
    float top = 0, inverse;
    QK_UNROLL
    for (int k = 0; k < 8; k++) top = fmaxf(top, fabsf(s[k]));
    const float unit = unit_above(top, inverse);
    __half2 ratio[4]; /* of ahead and behind */
    QK_UNROLL
    for (int mu = 0; mu < 4; mu++)
      ratio[mu] = __floats2half2_rn(inverse * s[2 * mu], inverse * s[2 * mu + 1]);
    QK_UNROLL
    for (int k = 0; k < 12; k++) sum[k] = pair_of(0);
    one_hop<0, 1>(to[0], __low2half2(ratio[0]), sum);
    one_hop<0, -1>(to[1], __high2half2(ratio[0]), sum);
    one_hop<1, 1>(to[2], __low2half2(ratio[1]), sum);
    one_hop<1, -1>(to[3], __high2half2(ratio[1]), sum);
    one_hop<2, 1>(to[4], __low2half2(ratio[2]), sum);
    one_hop<2, -1>(to[5], __high2half2(ratio[2]), sum);
    one_hop<3, 1>(to[6], __low2half2(ratio[3]), sum);
    one_hop<3, -1>(to[7], __high2half2(ratio[3]), sum);
    return unit;
  }

  /* v = T v on one chiral block. */
  QK_HD void local(int block, __half2 *v) const {
    __half2 m[18], x[6];
    QK_UNROLL
    for (int i = 0; i < 6; i++) x[i] = v[i];
    if (DRESSED && a.diag.b != nullptr) {
      load_diag(a.diag.b, block, m);
      diag_pairs(m, v, x);
    }
    if (a.diag.data != nullptr) {
      load_diag(a.diag.data, block, m);
      diag_pairs(m, x, v);
    } else {
      QK_UNROLL
      for (int i = 0; i < 6; i++) v[i] = __hmul2(pair_of(num.diag), x[i]);
    }
    if (!DRESSED || !num.twisted) return;
    const float q = num.q[block][1] * at.sign_of<float>(a.minus, a.out.nrhs);
    QK_UNROLL
    for (int i = 0; i < 6; i++) {
      v[i] = __hfma2(pair_of(num.q[block][0]), x[i], v[i]);
      v[i] = __hfma2(__hmul2(pair_of(q), plus_i()), swapped(x[i]), v[i]);
    }
  }

  static QK_HD void add_words(const qk_spinor_t &f, spot from, float factor, __half2 *v) {
    __half2 w[12];
    load_pairs(f, from, w);
    const __half2 by = pair_of(factor);
    QK_UNROLL
    for (int k = 0; k < 12; k++) v[k] = __hfma2(by, w[k], v[k]);
  }

  /* v f + c_x x + c_y y, in multiples of what is returned. */
  QK_HD float add_fields(spot here, float f, __half2 *v) const {
    const float x = num.c_x != 0 ? num.c_x * load_scale(a.x.scale, here) : 0;
    const float y = num.c_y != 0 ? num.c_y * load_scale(a.y.scale, here) : 0;
    float inverse;
    const float unit = unit_above(fmaxf(fmaxf(fabsf(f), fabsf(x)), fabsf(y)), inverse);
    const __half2 by = pair_of(f * inverse);
    QK_UNROLL
    for (int k = 0; k < 12; k++) v[k] = __hmul2(by, v[k]);
    if (num.c_x != 0) add_words(a.x, here, x * inverse, v);
    if (num.c_y != 0) add_words(a.y, here, y * inverse, v);
    return unit;
  }

  /* out = unit v: words below 1 of the power of two above the largest. */
  QK_HD void put(spot here, const __half2 *v, float unit) const {
    constexpr float least = 1.17549435e-38f;
    __half2 top = __habs2(v[0]), w[12];
    QK_UNROLL
    for (int k = 1; k < 12; k++) top = __hmax2(top, __habs2(v[k]));
    const int largest = __half_as_ushort(__hmax(__low2half(top), __high2half(top)));
    const int exponent = max(29 - (largest >> 10), 1); /* of the factor, as its bits have it */
    const float scale = unit * __int_as_float((142 - exponent) << 23);
    const bool none = largest == 0 || fabsf(scale) < least;
    const int bits = none ? 0 : exponent << 10 | (unit < 0 ? 0x8000 : 0);
    const __half2 by = __half2half2(__ushort_as_half((unsigned short)bits));
    QK_UNROLL
    for (int k = 0; k < 12; k++) w[k] = __hmul2(by, v[k]);
    uint4 *p = (uint4 *)tile_at((half *)a.out.data, here.tile, QK_TILE * 24) + here.lane;
    QK_UNROLL
    for (int k = 0; k < 3; k++) {
      uint4 piece;
      memcpy(&piece, w + 4 * k, sizeof piece);
      p[k * QK_TILE] = piece;
    }
    store_scale(a.out.scale, here, none ? 0 : fabsf(scale));
  }

  /* r += c f */
  static QK_HD void add_wide(const qk_spinor_t &f, spot from, float c, float *r) {
    __half2 w[12];
    load_pairs(f, from, w);
    const float by = c * load_scale(f.scale, from);
    QK_UNROLL
    for (int k = 0; k < 12; k++) {
      r[2 * k] += by * __low2float(w[k]);
      r[2 * k + 1] += by * __high2float(w[k]);
    }
  }

  /* out = unit v + c_x x + c_y y, where x and y are not rounded. */
  QK_HD void put_wide(spot here, const __half2 *v, float unit) const {
    float r[24];
    QK_UNROLL
    for (int k = 0; k < 12; k++) {
      r[2 * k] = unit * __low2float(v[k]);
      r[2 * k + 1] = unit * __high2float(v[k]);
    }
    if (num.c_x != 0) add_wide(a.x, here, num.c_x, r);
    if (num.c_y != 0) add_wide(a.y, here, num.c_y, r);
    store_lanes<float, 24>((float *)a.out.data, here, r);
  }

  QK_HD void run() const {
    __half2 v[12];
    const spot here = at.place(at.here.cb);
    float unit = num.c_hop * hops(v);
    if (a.diag_on_sum && !DRESSED && a.diag.data == nullptr) {
      unit *= num.diag;
    } else if (a.diag_on_sum) {
      local(0, v);
      local(1, v + 6);
    }
    if constexpr (WIDE) {
      put_wide(here, v, unit);
    } else {
      if (num.c_x != 0 || num.c_y != 0) unit = add_fields(here, unit, v);
      put(here, v, unit);
    }
  }
};

} // namespace QK_NS
#endif
