/*
 * correlator.h: two-point functions from propagator files.
 *
 *   pion    C(t) = sum over x, spins, colours and columns of |S(x, t0 + t; source)|^2, as
 *   gamma5-hermiticity turns the antiquark line into S^+. Noise sources: the mean over the sources,
 *   divided by the number of sites of the time slice of the source. Its expectation value is the
 *   C(t) of a point source.
 *
 * t counts from the time slice t0 of the source, modulo T. One column at a time is in memory.
 */
#ifndef QK_CLIENT_CORRELATOR_H
#define QK_CLIENT_CORRELATOR_H

#include <stdbool.h>

#include "client/files/fieldfile.h"

typedef struct qk_correlator {
  int nt, t0;
  char source[16];
  double *c;    /* [nt] */
  double *meff; /* [nt] from C(t) and C(t + 1) by the cosh form; NaN if there is no solution */
  double *mlog; /* [nt] log C(t) / C(t + 1); NaN if the quotient is not positive */
} qk_correlator_t;

/* channel: "pion". Errors: QK_UNSUPPORTED (channel), QK_BAD_ARGUMENT (the file is not a propagator
 * with one known time slice and converged columns), and those of h5file.h. */
qk_status_t qk_correlator_compute(qk_fieldfile_t *file, const char *channel, qk_correlator_t *corr,
                                  qk_err_t *err);
void qk_correlator_fini(qk_correlator_t *corr);

/* The mass m > 0 with c0 / c1 = cosh(m (t - T/2)) / cosh(m (t + 1 - T/2)); NaN: there is none. */
double qk_correlator_cosh_mass(double c0, double c1, int t, int nt);

/* cosh: by that form, else log C(t) / C(t + 1). smooth: of (C(t-1) + 2 C(t) + C(t+1)) / 4 in place
 * of C(t), with which a state of mass m takes the factor (1 + cosh m) / 2, and a partner (-1)^t of
 * mass m' takes (1 - cosh m') / 2: it is suppressed, not taken out. */
typedef struct qk_mass_form {
  bool cosh, smooth;
} qk_mass_form_t;

/* The form for a channel; colour: of fields with colour alone, whose partners alternate. */
qk_mass_form_t qk_mass_form(const char *channel, bool colour);
/* "m_eff (cosh)", "m_eff (log)", "m_eff (smooth)" */
const char *qk_mass_form_name(qk_mass_form_t form);

/* mass[t] from C(t) and C(t + 1), the last one from C(nt - 1) and C(0); NaN: there is none. Smooth
 * ones of the log form need C(t - 1) to C(t + 2) without a step over the edge. */
void qk_correlator_masses(const double *c, int nt, qk_mass_form_t form, double *mass);

#endif
