#include "client/analysis/ensemble.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/correlator.h"

static void add_square(int n, double value, double mean, double *sum) {
  const double d = value - mean;
  *sum += (n - 1.0) / n * d * d;
}

qk_status_t qk_ensemble_compute(int n, int nt, const double *sample, qk_mass_form_t form,
                                qk_ensemble_t *ensemble, qk_err_t *err) {
  const size_t slices = (size_t)nt;
  double *room = calloc(6 * slices, sizeof *room);
  if (!room) return qk_fail(err, QK_NO_MEMORY, "no memory for the means of %d time slices", nt);
  qk_ensemble_t e = {.n = n, .nt = nt, .c = room};
  e.dc = e.c + slices;
  e.mass = e.dc + slices;
  e.dmass = e.mass + slices;
  double *without = e.dmass + slices, *mass = without + slices;
  for (int j = 0; j < n; j++)
    for (int t = 0; t < nt; t++) e.c[t] += sample[(size_t)j * slices + (size_t)t] / n;
  qk_correlator_masses(e.c, nt, form, e.mass);
  for (int j = 0; j < n && n > 1; j++) {
    for (int t = 0; t < nt; t++)
      without[t] = (n * e.c[t] - sample[(size_t)j * slices + (size_t)t]) / (n - 1);
    qk_correlator_masses(without, nt, form, mass);
    for (int t = 0; t < nt; t++) {
      add_square(n, without[t], e.c[t], &e.dc[t]);
      add_square(n, mass[t], e.mass[t], &e.dmass[t]);
    }
  }
  for (int t = 0; t < nt; t++) {
    e.dc[t] = n > 1 ? sqrt(e.dc[t]) : NAN;
    e.dmass[t] = n > 1 ? sqrt(e.dmass[t]) : NAN;
  }
  *ensemble = e;
  return QK_OK;
}

void qk_ensemble_fini(qk_ensemble_t *ensemble) {
  free(ensemble->c);
  memset(ensemble, 0, sizeof *ensemble);
}
