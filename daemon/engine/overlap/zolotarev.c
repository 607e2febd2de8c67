#include "daemon/engine/overlap/zolotarev.h"

#include <math.h>

enum { AGM_MAX = 12, POINTS = 64 /* for each pole */ };
static const double pi = 3.14159265358979323846;

/* tan^2 am(part K, k), which is sn^2 / cn^2, of 0 < part < 1; other = sqrt(1 - k^2). */
static double tangent2(double part, double other) {
  double a[AGM_MAX + 1] = {1}, c[AGM_MAX + 1] = {0};
  double b = other;
  int n = 0;
  for (; n < AGM_MAX && fabs(a[n] - b) > 1e-16 * a[n]; n++) {
    a[n + 1] = 0.5 * (a[n] + b);
    c[n + 1] = 0.5 * (a[n] - b);
    b = sqrt(a[n] * b);
  }
  double angle = ldexp(0.5 * pi * part, n);
  for (int i = n; i > 0; i--) angle = 0.5 * (angle + asin(c[i] / a[i] * sin(angle)));
  const double t = tan(angle);
  return t * t;
}

/* t prod (t^2 + zero) / prod (t^2 + pole), at t. */
static double product(const double *c, int n, double t) {
  double value = t / (t * t + c[1]);
  for (int l = 1; l < n; l++) value *= (t * t + c[2 * l]) / (t * t + c[2 * l + 1]);
  return value;
}

/* Of n poles. c: c_1 .. c_(2n-1). */
static void make(double least, double ratio, int n, qk_zolotarev_t *z) {
  double c[2 * QK_ZOLOTAREV_MAX] = {0}, low = INFINITY, high = 0;
  for (int l = 1; l < 2 * n; l++) c[l] = tangent2(l / (2.0 * n), 1 / ratio);
  for (int i = 0; i <= POINTS * n; i++) {
    const double value = product(c, n, exp(log(ratio) * i / (POINTS * n)));
    low = fmin(low, value);
    high = fmax(high, value);
  }
  const double d = 2 / (low + high);
  z->n = n;
  z->error = d * high - 1;
  for (int j = 0; j < n; j++) {
    const double pole = c[2 * j + 1];
    double r = d;
    for (int l = 0; l < n; l++) {
      if (l > 0) r *= c[2 * l] - pole;
      if (l != j) r /= c[2 * l + 1] - pole;
    }
    z->r[j] = r * least;
    z->q[j] = pole * least * least;
  }
}

qk_status_t qk_zolotarev_init(double least, double greatest, double tol, qk_zolotarev_t *z) {
  const double ratio = greatest / least;
  if (!(ratio > 1 && ratio <= QK_ZOLOTAREV_RATIO_MAX)) return QK_TOO_LARGE;
  for (int n = 1; n <= QK_ZOLOTAREV_MAX; n++) {
    make(least, ratio, n, z);
    if (z->error <= tol) return QK_OK;
  }
  return QK_TOO_LARGE;
}

int qk_zolotarev_most(double tol) {
  qk_zolotarev_t z;
  return qk_zolotarev_init(1, QK_ZOLOTAREV_RATIO_MAX, tol, &z) == QK_OK ? z.n : QK_ZOLOTAREV_MAX;
}

double qk_zolotarev_value(const qk_zolotarev_t *z, double x) {
  double sum = 0;
  for (int j = 0; j < z->n; j++) sum += z->r[j] / (x * x + z->q[j]);
  return x * sum;
}
