#include "daemon/engine/gauge_tool/autocorr.h"

#include <float.h>
#include <math.h>

enum { LEAST = 4 };
static const double S = 1.5;

static double gamma_at(const double *x, int64_t n, double mean, int64_t t) {
  double sum = 0;
  for (int64_t i = 0; i + t < n; i++) sum += (x[i] - mean) * (x[i + t] - mean);
  return sum / (double)(n - t);
}

/* Whether the window is where the systematic error of cutting the sum off has fallen to the
 * statistical one: the sign of g(W). */
static int enough(double tau, int64_t window, int64_t n) {
  double w = (double)window;
  double decay = tau > 0.5 ? S / log((2 * tau + 1) / (2 * tau - 1)) : DBL_EPSILON;
  return exp(-w / decay) - decay / sqrt(w * (double)n) < 0;
}

qk_autocorr_t qk_autocorr_estimate(const double *x, int64_t n) {
  qk_autocorr_t a = {.error = NAN, .tau = NAN, .tau_error = NAN};
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  a.mean = sum / (double)n;
  if (n < LEAST) return a;
  double gamma0 = gamma_at(x, n, a.mean, 0), c = gamma0;
  if (!(gamma0 > 0)) {
    a.error = a.tau_error = 0;
    a.tau = 0.5;
    return a;
  }
  for (a.window = 1; a.window <= n / 2; a.window++) {
    c += 2 * gamma_at(x, n, a.mean, a.window);
    if (enough(c / (2 * gamma0), a.window, n)) break;
  }
  if (a.window > n / 2) a.window = n / 2;
  double w = (double)a.window, length = (double)n;
  double bias = c / length; /* of every Gamma, because the mean is that of the data */
  c += (2 * w + 1) * bias;
  if (!(c > 0)) return a;
  a.tau = c / (2 * (gamma0 + bias));
  a.error = sqrt(c / length);
  a.tau_error = a.tau * sqrt(fmax(4 * (w + 0.5 - a.tau) / length, 0));
  return a;
}
