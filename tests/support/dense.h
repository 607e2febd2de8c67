/*
 * dense.h: the plain Wilson operator as an explicit matrix, written down from its definition and
 * from nothing of the engine, and Gaussian elimination. For lattices of a few sites.
 */
#ifndef QK_TESTS_DENSE_H
#define QK_TESTS_DENSE_H

#include <complex.h>

/* Row-major n x n, n = 12 * sites, indices in wire order; links as in gauge.h; phase_t: the factor
 * across the edge in t. The caller frees it. */
double complex *dense_wilson(const int dims[4], const double *links, double mass, double phase_t);

/* Solves m x = b in place: x enters as b; m is destroyed. */
void dense_solve(int n, double complex *m, double complex *x);

#endif
