/*
 * gamma.h: the 16 products of gamma matrices in the DeGrand-Rossi basis (gamma_basis.h).
 *
 * Number n = b0 + 2 b1 + 4 b2 + 8 b3 is gx^b0 gy^b1 gz^b2 gt^b3, so 0 is 1, 8 is gt, 15 is gamma5
 * (QDP++ manual, appendix on gamma matrices). Each has one element i^k a row. Pure functions.
 */
#ifndef QK_ENGINE_GAMMA_H
#define QK_ENGINE_GAMMA_H

enum { QK_GAMMAS = 16, QK_GAMMA5 = 15 };

/* Complex 4x4, row by row. */
void qk_gamma_matrix(int n, double matrix[4][4][2]);

#endif
