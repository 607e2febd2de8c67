/*
 * correlator.h: two-point functions from propagator files.
 *
 *   pion    C(t) = sum over x, spins, colours of |S(x, t0 + t; source)|^2, columns summed
 *           (gamma5-hermiticity turns the antiquark line into S^+). Noise sources: the mean over the
 *           sources divided by the number of sites of the source's time slice, whose expectation is
 *           the point source's C(t).
 *
 * t counts from the source's time slice t0, modulo T. Host only; one right-hand side in memory.
 */
#ifndef QK_CLIENT_CORRELATOR_H
#define QK_CLIENT_CORRELATOR_H

#include "client/analysis/h5file.h"

typedef struct qk_correlator {
  int nt, t0;
  char source[16];
  double *c;    /* [nt] */
  double *meff; /* [nt] of t and t + 1 by the cosh form; NaN where it has no solution */
  double *mlog; /* [nt] log C(t) / C(t + 1); NaN where the quotient is not positive */
} qk_correlator_t;

/* channel: "pion". Errors: QK_UNSUPPORTED (channel), QK_BAD_ARGUMENT (the file is no propagator
 * with one known time slice and converged columns), and those of h5file.h. */
qk_status_t qk_correlator_compute(qk_h5file_t *file, const char *channel, qk_correlator_t *corr,
                                  qk_err_t *err);
void qk_correlator_fini(qk_correlator_t *corr);

/* The mass m > 0 with c0 / c1 = cosh(m (t - T/2)) / cosh(m (t + 1 - T/2)); NaN where there is none.
 */
double qk_correlator_cosh_mass(double c0, double c1, int t, int nt);

/* mass[t] of t and t + 1 (of nt - 1 and 0), by the cosh form or as log C(t) / C(t + 1); NaN where there
 * is none. */
void qk_correlator_masses(const double *c, int nt, bool cosh, double *mass);

#endif
