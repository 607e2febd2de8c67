/*
 * series.h: a Chebyshev series of 1 / sqrt(x) on least <= x <= greatest, 0 < least.
 *
 *   p(x) = sum_k c_k T_k(y),  y = (2 x - greatest - least) / (greatest - least),  k = 0 .. order
 *
 * |1 - sqrt(x) p(x)| is at most tol there. 1/sqrt(x) is analytic but for x <= 0, so that c_k falls
 * as r^-k with r = (1 + s) / (1 - s), s = sqrt(least / greatest), and the relative error is about
 * sqrt(greatest) c_order / 2 over the whole interval. Below least p is bounded by p(0).
 *
 * Host memory; pure.
 */
#ifndef QK_ENGINE_OVERLAP_SERIES_H
#define QK_ENGINE_OVERLAP_SERIES_H

#include "daemon/base/err.h"

/* The largest order; what rounding leaves of tol. */
enum { QK_SERIES_ORDER_MAX = 12000 };
#define QK_SERIES_TOL_LEAST 1e-11

typedef struct qk_series {
  int order;
  double least, greatest;
  double *c; /* order + 1 */
} qk_series_t;

/* The order that will do, or a little more; it may be over the largest. */
double qk_series_order(double least, double greatest, double tol);

/* tol >= QK_SERIES_TOL_LEAST. To be given to fini. QK_TOO_LARGE: the order would be over the
 * largest; QK_NO_MEMORY. */
qk_status_t qk_series_init(double least, double greatest, double tol, qk_series_t *series);
void qk_series_fini(qk_series_t *series);

/* The order from which on the terms that are left make an error of tol at most, as far as the first
 * of them says: 0 .. order. tol >= 0. */
int qk_series_terms(const qk_series_t *series, double tol);

/* p(x) by Clenshaw's recursion. */
double qk_series_value(const qk_series_t *series, double x);

#endif
