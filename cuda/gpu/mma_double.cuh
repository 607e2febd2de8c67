/*
 * mma_double.cuh: products of complex 8 x 4 by 4 x 8 matrices in double on the tensor cores, by the
 * threads of a warp. Thread 4g+q has element (g, q) of the left factor, (q, g) of the right one,
 * and (g, 2q) and (g, 2q+1) of the sum. One instruction of 16 x 8 x 8: real over imaginary parts of
 * the sum, out of real beside imaginary parts of the factors.
 */
#ifndef QK_CUDA_GPU_MMA_DOUBLE_CUH
#define QK_CUDA_GPU_MMA_DOUBLE_CUH

#include "cuda/body/complex.h"

namespace QK_NS {

/* re += r0 b0 + r1 b1, im += i0 b0 + i1 b1 */
QK_HD void mma_parts(double re[2], double im[2], double r0, double r1, double i0, double i1,
                     double b0, double b1) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+d"(re[0]), "+d"(re[1]), "+d"(im[0]), "+d"(im[1])
      : "d"(r0), "d"(i0), "d"(r1), "d"(i1), "d"(b0), "d"(b1));
#else
  const double a[4] = {r0, r1, i0, i1}, b[2] = {b0, b1};
  QK_UNROLL
  for (int k = 0; k < 4; k++) {
    double *c = k < 2 ? re : im;
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a[k]), "d"(b[k % 2]));
  }
#endif
}

/* re + i im += a b */
QK_HD void mma_complex(double re[2], double im[2], const dcx &a, const dcx &b) {
  mma_parts(re, im, a.re, -a.im, a.im, a.re, b.re, b.im);
}

/* re + i im += conj(a) b */
QK_HD void mma_conj(double re[2], double im[2], const dcx &a, const dcx &b) {
  mma_parts(re, im, a.re, a.im, -a.im, a.re, b.re, b.im);
}

} // namespace QK_NS
#endif
