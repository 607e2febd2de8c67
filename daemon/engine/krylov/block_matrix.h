/*
 * block_matrix.h: the small matrices of block methods: complex, n x n, row by row, n up to
 * QK_MAX_RHS. Pure; cost n^3.
 */
#ifndef QK_ENGINE_BLOCK_MATRIX_H
#define QK_ENGINE_BLOCK_MATRIX_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* g = r^+ r of a hermitian g >= 0, of which the upper triangle is read; r is upper triangular.
 * Column j is `weak` where what is left of it beside those before it, the square of r_jj, is not
 * above least[j]: its row of r is that of the unit matrix, so that a product with r^-1 leaves that
 * rest as it is. False: g is not finite. */
bool qk_block_cholesky(int n, const double complex *g, const double *least, double complex *r,
                       uint8_t *weak);

/* The inverse of an upper triangular matrix without zeros on its diagonal. */
void qk_block_invert(int n, const double complex *r, double complex *inverse);

/* out = a b, or a b^+. out is neither of them. */
void qk_block_times(int n, const double complex *a, const double complex *b, bool adjoint,
                    double complex *out);

/* The inverse of a hermitian g >= 0, on the columns that are not weak (as above); 0 on the others.
 * work: [2 n n]. False: not finite. */
bool qk_block_inverse(int n, const double complex *g, const double *least, double complex *inverse,
                      double complex *work);

#endif
