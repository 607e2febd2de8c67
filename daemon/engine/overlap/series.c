#include "daemon/engine/overlap/series.h"

#include <math.h>

#include "daemon/base/mem.h"

static const double pi = 3.14159265358979323846;

double qk_series_order(double least, double greatest, double tol) {
  const double rate = 2 * atanh(sqrt(least / greatest));
  return 8 + log(4 / tol) / rate;
}

/* c_k = 2/n sum_j f(x_j) cos(k theta_j), theta_j = (j + 1/2) pi / n: table has the cosines of
 * multiples of pi / 2n. */
static double coefficient(const double *f, const double *table, int n, int k) {
  const long turn = 4L * n;
  double sum = 0;
  for (long j = 0; j < n; j++) sum += f[j] * table[k * (2 * j + 1) % turn];
  return (k == 0 ? 1.0 : 2.0) / n * sum;
}

/* A term of this coefficient is more than what an error of tol leaves room for. */
static bool matters(double c, double greatest, double tol) {
  return sqrt(greatest) * fabs(c) > 0.5 * tol;
}

qk_status_t qk_series_init(double least, double greatest, double tol, qk_series_t *series) {
  const double wanted = qk_series_order(least, greatest, tol);
  if (!(wanted <= QK_SERIES_ORDER_MAX)) return QK_TOO_LARGE;
  const int most = (int)wanted, n = 2 * most;
  double *f = qk_calloc((size_t)n, sizeof *f), *c = qk_calloc((size_t)most + 1, sizeof *c);
  double *table = qk_calloc((size_t)n * 4, sizeof *table);
  const bool all = f && c && table;
  int order = 1;
  for (int j = 0; all && j < 4 * n; j++) table[j] = cos(pi * j / (2 * n));
  for (int j = 0; all && j < n; j++)
    f[j] = 1 / sqrt(0.5 * (greatest + least) + 0.5 * (greatest - least) * table[2 * j + 1]);
  for (int k = 0; all && k <= most; k++) {
    c[k] = coefficient(f, table, n, k);
    if (matters(c[k], greatest, tol)) order = k;
  }
  qk_free(table);
  qk_free(f);
  if (!all) {
    qk_free(c);
    return QK_NO_MEMORY;
  }
  *series = (qk_series_t){.order = order, .least = least, .greatest = greatest, .c = c};
  return QK_OK;
}

int qk_series_terms(const qk_series_t *s, double tol) {
  int k = s->order;
  while (k > 0 && !matters(s->c[k], s->greatest, tol)) k--;
  return k;
}

void qk_series_fini(qk_series_t *series) {
  qk_free(series->c);
  *series = (qk_series_t){0};
}

double qk_series_value(const qk_series_t *s, double x) {
  const double y = (2 * x - s->greatest - s->least) / (s->greatest - s->least);
  double b1 = 0, b2 = 0;
  for (int k = s->order; k > 0; k--) {
    const double b = s->c[k] + 2 * y * b1 - b2;
    b2 = b1;
    b1 = b;
  }
  return s->c[0] + y * b1 - b2;
}
