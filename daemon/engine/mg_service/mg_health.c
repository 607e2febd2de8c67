#include "daemon/engine/mg_service/mg_health.h"

#include <math.h>

static const double WORN = 2, FINEST_TOL = 1e-13;

/* Mean over all, then over about the last QK_MG_HEALTH_SPAN. */
static void add(double *mean, int64_t *n, double x) {
  if (*n < QK_MG_HEALTH_SPAN) ++*n;
  *mean += (x - *mean) / (double)*n;
}

qk_mg_refresh_t qk_mg_health_add(qk_mg_health_t *health, qk_status_t status, int64_t iterations,
                                 double tol, double residual) {
  bool told = status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
  if (!told || iterations < 1 || tol < FINEST_TOL) return QK_MG_REFRESH_NONE;
  /* less than a digit is no rate but a failure, and counts as one digit */
  double digits = residual > 0 && residual < 0.1 ? -log10(residual) : 1;
  double figure = (double)iterations / digits;
  if (health->in_first < QK_MG_HEALTH_SPAN) {
    add(&health->first, &health->in_first, figure);
    return QK_MG_REFRESH_NONE;
  }
  add(&health->lately, &health->in_lately, figure);
  if (health->in_lately < QK_MG_HEALTH_SPAN || health->lately <= WORN * health->first)
    return QK_MG_REFRESH_NONE;
  if (health->tried == QK_MG_REFRESH_NONE) return QK_MG_REFINE;
  if (health->tried == QK_MG_REFINE) return QK_MG_REBUILD;
  *health = (qk_mg_health_t){.first = health->lately, .in_first = QK_MG_HEALTH_SPAN};
  return QK_MG_REFRESH_NONE;
}

void qk_mg_health_refreshed(qk_mg_health_t *health, qk_mg_refresh_t refresh) {
  health->tried = refresh;
  health->lately = 0;
  health->in_lately = 0;
}
