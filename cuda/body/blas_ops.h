/*
 * blas_ops.h: the rows of QK_BLAS_TABLE (cuda/ops.h, which has the formulas) as functors, one
 * complex component at a time.
 *
 *   op_NAME   nf, nc, nr   fields, scalars and reductions, as in the table
 *             reads        bit i: field i is read;  writes: bit i: field i is written
 *             nk, prepare  coefficients made of the scalars, in double, once per RHS
 *             apply        f[i]: component of field i, in and out; k: coefficients; r: the sums
 *
 * A new operation is a row in the table and a functor here. COPY and ADD are "mixed": their fields
 * may differ in precision, and blas_mixed_tile of blas.h is their body.
 */
#ifndef QK_BODY_BLAS_OPS_H
#define QK_BODY_BLAS_OPS_H

#include "cuda/body/complex.h"

namespace QK_NS {

/* Sums of one lane (GPU) or of eight (CPU); in double whatever the fields' precision, but for those
 * of a few products (A float). */
template <int NR, class A = double> struct sums {
  cx<lanes<A>> v[NR > 0 ? NR : 1];

  template <class V> QK_HD void norm2(int i, const cx<V> &a) {
    const auto re = lanes_cast<lanes<A>>(a.re), im = lanes_cast<lanes<A>>(a.im);
    v[i].re = v[i].re + re * re + im * im;
  }
  /* (a, b) = sum conj(a) b */
  template <class V> QK_HD void dot(int i, const cx<V> &a, const cx<V> &b) {
    const auto ar = lanes_cast<lanes<A>>(a.re), ai = lanes_cast<lanes<A>>(a.im);
    const auto br = lanes_cast<lanes<A>>(b.re), bi = lanes_cast<lanes<A>>(b.im);
    v[i].re = v[i].re + ar * br + ai * bi;
    v[i].im = v[i].im + ar * bi - ai * br;
  }
  /* Sum i of `part`, whose numbers were words that `scale` belongs to. */
  template <class B, class F> QK_HD void add(int i, const sums<NR, B> &part, const F &scale) {
    v[i].re = v[i].re + scale * lanes_cast<lanes<A>>(part.v[i].re);
    v[i].im = v[i].im + scale * lanes_cast<lanes<A>>(part.v[i].im);
  }
};

template <int NF, int NC, int NR, unsigned READS, unsigned WRITES, int NK> struct op_shape {
  static constexpr bool mixed = false;
  static constexpr int nf = NF, nc = NC, nr = NR, nk = NK;
  static constexpr unsigned reads = READS, writes = WRITES;
};

#define QK_PREPARE QK_HD static void prepare(const dcx *c, dcx *k)
#define QK_APPLY                                                                                   \
  template <class Z, class R>                                                                      \
  QK_HD static void apply([[maybe_unused]] Z *f, [[maybe_unused]] const Z *k,                      \
                          [[maybe_unused]] R &r)

struct no_coefficients {
  QK_HD static void prepare(const dcx *, dcx *) {}
};

template <bool ADD> struct op_mixed { static constexpr bool mixed = true, add = ADD; };
struct op_COPY : op_mixed<false> {};
struct op_ADD : op_mixed<true> {};

struct op_ZERO : op_shape<1, 0, 0, 0, 1, 0>, no_coefficients {
  QK_APPLY { f[0] = Z{}; }
};

struct op_SUB : op_shape<3, 0, 0, 6, 1, 0>, no_coefficients {
  QK_APPLY { f[0] = f[1] - f[2]; }
};

struct op_SCALE : op_shape<1, 1, 0, 1, 1, 1> {
  QK_PREPARE { k[0] = c[0]; }
  QK_APPLY { f[0] = k[0] * f[0]; }
};

struct op_AXPY : op_shape<2, 1, 0, 3, 1, 1> {
  QK_PREPARE { k[0] = c[0]; }
  QK_APPLY { f[0] = f[0] + k[0] * f[1]; }
};

struct op_XPAY : op_shape<2, 1, 0, 3, 1, 1> {
  QK_PREPARE { k[0] = c[0]; }
  QK_APPLY { f[0] = f[1] + k[0] * f[0]; }
};

struct op_NORM2 : op_shape<1, 0, 1, 1, 0, 0>, no_coefficients {
  QK_APPLY { r.norm2(0, f[0]); }
};

struct op_CDOT : op_shape<2, 0, 1, 3, 0, 0>, no_coefficients {
  QK_APPLY { r.dot(0, f[0], f[1]); }
};

struct op_CDOT_NORM2 : op_shape<2, 0, 2, 3, 0, 0>, no_coefficients {
  QK_APPLY {
    r.dot(0, f[0], f[1]);
    r.norm2(1, f[0]);
  }
};

struct op_BICGSTAB_S : op_shape<2, 2, 1, 3, 1, 1> {
  QK_PREPARE { k[0] = ratio(c[0], c[1]); }
  QK_APPLY {
    f[0] = f[0] - k[0] * f[1];
    r.norm2(0, f[0]);
  }
};

struct op_BICGSTAB_XR : op_shape<5, 4, 2, 31, 3, 2> {
  QK_PREPARE {
    k[0] = ratio(c[0], c[1]);
    k[1] = ratio(c[2], c[3]);
  }
  QK_APPLY {
    f[0] = f[0] + k[0] * f[2] + k[1] * f[1];
    f[1] = f[1] - k[1] * f[3];
    r.dot(0, f[4], f[1]);
    r.norm2(1, f[1]);
  }
};

struct op_BICGSTAB_P : op_shape<3, 5, 0, 7, 1, 2> {
  QK_PREPARE {
    k[0] = ratio(c[0], c[1]) * ratio(c[1], c[2]) * ratio(c[4], c[3]);
    k[1] = ratio(c[3], c[4]);
  }
  QK_APPLY { f[0] = f[1] + k[0] * (f[0] - k[1] * f[2]); }
};

/* x += ratio(c0,c1) p, r -= ratio(c0,c1) q, |r|^2 */
struct update_xr : op_shape<4, 2, 1, 15, 3, 1> {
  QK_PREPARE { k[0] = ratio(c[0], c[1]); }
  QK_APPLY {
    f[0] = f[0] + k[0] * f[2];
    f[1] = f[1] - k[0] * f[3];
    r.norm2(0, f[1]);
  }
};
struct op_CG_XR : update_xr {};
struct op_GCR_XR : update_xr {};

struct op_MR_XR : op_shape<3, 3, 0, 7, 3, 1> {
  QK_PREPARE { k[0] = c[2] * ratio(c[0], c[1]); }
  QK_APPLY {
    f[0] = f[0] + k[0] * f[1];
    f[1] = f[1] - k[0] * f[2];
  }
};

struct op_CG_P : op_shape<2, 2, 0, 3, 1, 1> {
  QK_PREPARE { k[0] = ratio(c[0], c[1]); }
  QK_APPLY { f[0] = f[1] + k[0] * f[0]; }
};

struct op_CG_XP : op_shape<3, 3, 1, 7, 3, 2> {
  QK_PREPARE {
    k[0] = ratio(c[0], c[1]);
    k[1] = ratio(c[2], c[0]);
  }
  QK_APPLY {
    f[0] = f[0] + k[0] * f[1];
    f[1] = f[2] + k[1] * f[1];
    r.norm2(0, f[1]);
  }
};

struct op_CG_R : op_shape<3, 2, 1, 6, 1, 1> {
  QK_PREPARE { k[0] = ratio(c[0], c[1]); }
  QK_APPLY {
    f[0] = f[1] - k[0] * f[2];
    r.norm2(0, f[0]);
  }
};

#undef QK_PREPARE
#undef QK_APPLY

} // namespace QK_NS
#endif
