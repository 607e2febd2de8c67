/*
 * gpu/mma.cuh: products of small complex matrices on the tensor cores: mma.m16n8k8 with tf32
 * factors and fp32 sums.
 *
 * Thread 4g+q of a warp holds of A (16 x 8) rows g, g+8 and columns q, q+4: a0 = (g, q),
 * a1 = (g+8, q), a2 = (g, q+4), a3 = (g+8, q+4); of B (8 x 8) rows q, q+4 of column g; of C
 * (16 x 8) columns 2q, 2q+1 of rows g (c0, c1) and g+8 (c2, c3). The order of the inner index is
 * free, so q, q+4 stand for elements 2q, 2q+1: neighbours in memory (PTX ISA,
 * "Matrix fragments for mma.m16n8k8").
 *
 * Matrices of 16-bit floats are exact in tf32; what they multiply is rounded to tf32 (11 bits), as
 * they were, or is the sum of two tf32 numbers: errors then as in fp32. Matrices of 32-bit floats
 * are sums of two as well, and of the four products the three largest are taken.
 */
#ifndef QK_CUDA_GPU_MMA_CUH
#define QK_CUDA_GPU_MMA_CUH

#include "cuda/site/access.h"

namespace QK_NS {

QK_HD uint32_t tf32(float x) {
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}

/* N numbers as factors: one tf32 number each (half), or two (float). */
template <class M, int N> struct factors;
template <int N> struct factors<half, N> {
  uint32_t hi[N];
  QK_HD void set(int i, float x) { hi[i] = tf32(x); }
  QK_HD void set(int i, half x) { hi[i] = __float_as_uint(__half2float(x)); }
  QK_HD factors minus() const {
    factors r;
    QK_UNROLL
    for (int i = 0; i < N; i++) r.hi[i] = hi[i] ^ 0x80000000u;
    return r;
  }
};
template <int N> struct factors<float, N> {
  uint32_t hi[N], lo[N];
  QK_HD void set(int i, float x) {
    hi[i] = tf32(x);
    lo[i] = tf32(x - __uint_as_float(hi[i]));
  }
  QK_HD factors minus() const {
    factors r;
    QK_UNROLL
    for (int i = 0; i < N; i++) {
      r.hi[i] = hi[i] ^ 0x80000000u;
      r.lo[i] = lo[i] ^ 0x80000000u;
    }
    return r;
  }
};

QK_HD void mma_words(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* c += a b */
QK_HD void mma(float (&c)[4], const factors<half, 4> &a, const factors<half, 2> &b) {
  mma_words(c, a.hi, b.hi);
}
QK_HD void mma(float (&c)[4], const factors<half, 4> &a, const factors<float, 2> &b) {
  mma_words(c, a.hi, b.lo);
  mma_words(c, a.hi, b.hi);
}
QK_HD void mma(float (&c)[4], const factors<float, 4> &a, const factors<float, 2> &b) {
  mma_words(c, a.lo, b.hi);
  mma_words(c, a.hi, b.lo);
  mma_words(c, a.hi, b.hi);
}

/* Eight matrix words of one thread, as loaded: read once, so not kept in L1. */
template <class M> struct eight_words {
  uint4 v[sizeof(M) / 2];

  QK_HD void load(const M *p) {
    QK_UNROLL
    for (int i = 0; i < (int)sizeof(M) / 2; i++) v[i] = load_past_l1((const uint4 *)p + i);
  }
  QK_HD void get(M (&w)[8]) const { memcpy(w, v, sizeof w); }
};

} // namespace QK_NS
#endif
