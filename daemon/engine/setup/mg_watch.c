#include "daemon/engine/setup/mg_watch.h"

#include <math.h>

static const double WORN = 2, FINEST_TOL = 1e-13;

/* Mean over all, then over about the last QK_MG_WATCH_SPAN. */
static void add(double *mean, int64_t *n, double x) {
  if (*n < QK_MG_WATCH_SPAN) ++*n;
  *mean += (x - *mean) / (double)*n;
}

qk_mg_refresh_t qk_mg_watch_add(qk_mg_watch_t *watch, qk_status_t status, int64_t iterations,
                                double tol, double residual) {
  bool told = status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
  if (!told || iterations < 1 || tol < FINEST_TOL) return QK_MG_REFRESH_NONE;
  /* less than a digit is no rate but a failure, and counts as one digit */
  double digits = residual > 0 && residual < 0.1 ? -log10(residual) : 1;
  double figure = (double)iterations / digits;
  if (watch->in_first < QK_MG_WATCH_SPAN) {
    add(&watch->first, &watch->in_first, figure);
    return QK_MG_REFRESH_NONE;
  }
  add(&watch->lately, &watch->in_lately, figure);
  if (watch->in_lately < QK_MG_WATCH_SPAN || watch->lately <= WORN * watch->first)
    return QK_MG_REFRESH_NONE;
  if (watch->tried == QK_MG_REFRESH_NONE) return QK_MG_REFINE;
  if (watch->tried == QK_MG_REFINE) return QK_MG_REBUILD;
  *watch = (qk_mg_watch_t){.first = watch->lately, .in_first = QK_MG_WATCH_SPAN};
  return QK_MG_REFRESH_NONE;
}

void qk_mg_watch_refreshed(qk_mg_watch_t *watch, qk_mg_refresh_t refresh) {
  watch->tried = refresh;
  watch->lately = 0;
  watch->in_lately = 0;
}
