/*
 * autocorr.h: mean and error of a Markov chain with autocorrelation: the Gamma method of U. Wolff,
 * Comput. Phys. Commun. 156 (2004) 143, hep-lat/0306017, for one replica and a primary observable;
 * S = 1.5. tau_int is 1/2 without autocorrelation. Pure.
 */
#ifndef QK_GAUGE_TOOL_AUTOCORR_H
#define QK_GAUGE_TOOL_AUTOCORR_H

#include <stdint.h>

typedef struct qk_autocorr {
  double mean, error;
  double tau, tau_error; /* integrated autocorrelation time, in steps of the chain */
  int64_t window;        /* to which the autocorrelation function was summed */
} qk_autocorr_t;

/* n >= 1. Error and tau are NaN if they cannot be estimated: fewer than 4 numbers, or a sum of
 * the autocorrelation function that is not positive. If all numbers are equal, the error is 0
 * and tau 1/2. Time: n times window. */
qk_autocorr_t qk_autocorr_estimate(const double *x, int64_t n);

#endif
