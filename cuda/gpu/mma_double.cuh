/*
 * mma_double.cuh: products of 8 x 4 by 4 x 8 matrices in double on the tensor cores, by the threads of a
 * warp. Thread 4g+q has element (g, q) of the left factor, (q, g) of the right one, and (g, 2q) and
 * (g, 2q+1) of the sum.
 */
#ifndef QK_CUDA_GPU_MMA_DOUBLE_CUH
#define QK_CUDA_GPU_MMA_DOUBLE_CUH

#include "cuda/body/complex.h"

namespace QK_NS {

/* c += a b */
QK_HD void mma_real(double c[2], double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a), "d"(b));
}

/* re + i im += a b */
QK_HD void mma_complex(double re[2], double im[2], const dcx &a, const dcx &b) {
  mma_real(re, a.re, b.re);
  mma_real(re, -a.im, b.im);
  mma_real(im, a.re, b.im);
  mma_real(im, a.im, b.re);
}

/* re + i im += conj(a) b */
QK_HD void mma_conj(double re[2], double im[2], const dcx &a, const dcx &b) {
  mma_real(re, a.re, b.re);
  mma_real(re, a.im, b.im);
  mma_real(im, a.re, b.im);
  mma_real(im, -a.im, b.re);
}

} // namespace QK_NS
#endif
