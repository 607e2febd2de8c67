/*
 * ensemble.h: means over configurations with jackknife errors, of correlators and effective masses.
 *
 * With c_j the mean without configuration j of n: error of C = sqrt((n-1)/n sum_j (c_j - c)^2), and
 * likewise that of the effective mass, whose value is that of the mean correlator. Configurations are
 * taken for independent. Numbers that do not exist are NaN: errors with n = 1, masses that the mean or
 * one of the c_j does not have.
 */
#ifndef QK_CLIENT_ENSEMBLE_H
#define QK_CLIENT_ENSEMBLE_H

#include <stdbool.h>

#include "daemon/base/err.h"

typedef struct qk_ensemble {
  int n, nt;
  double *c, *dc, *mass, *dmass; /* nt each; mass[t] of t and t + 1 */
} qk_ensemble_t;

/* sample: [n][nt]. cosh: the form of the effective mass (correlator.h). Errors: QK_NO_MEMORY. */
qk_status_t qk_ensemble_compute(int n, int nt, const double *sample, bool cosh,
                                qk_ensemble_t *ensemble, qk_err_t *err);
void qk_ensemble_fini(qk_ensemble_t *ensemble);

#endif
