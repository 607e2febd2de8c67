/*
 * ensemble.h: means of correlators and effective masses over configurations, with jackknife errors.
 *
 * The error of the mean c of n configurations is sqrt((n-1)/n sum_j (c_j - c)^2), where c_j is the
 * mean without configuration j. The effective mass is that of the mean correlator; its error
 * follows from the masses of the c_j in the same way. Configurations count as independent. Errors
 * are NaN if n = 1. A mass is NaN if the mean or one of the c_j has none.
 */
#ifndef QK_CLIENT_ENSEMBLE_H
#define QK_CLIENT_ENSEMBLE_H

#include <stdbool.h>

#include "client/analysis/correlator.h"

typedef struct qk_ensemble {
  int n, nt;
  double *c, *dc, *mass, *dmass; /* nt each; mass[t] from C(t) and C(t + 1) */
} qk_ensemble_t;

/* sample: [n][nt]. form: of the effective mass (correlator.h). Errors: QK_NO_MEMORY. */
qk_status_t qk_ensemble_compute(int n, int nt, const double *sample, qk_mass_form_t form,
                                qk_ensemble_t *ensemble, qk_err_t *err);
void qk_ensemble_fini(qk_ensemble_t *ensemble);

#endif
