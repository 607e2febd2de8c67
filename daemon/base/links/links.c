#include "daemon/base/links/links.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/base/links/su3.h"

static bool is_zero(const double *u) {
  for (int k = 0; k < 18; k++)
    if (u[k] != 0) return false;
  return true;
}

/* NaN and Inf are as far from SU(3) as can be; a maximum alone would lose a NaN. */
static double root_of(double most, double sum) {
  return isfinite(sum) ? sqrt(most) : INFINITY;
}

/* Largest element of |U^+ U - 1|, which is hermitian. */
static double deviation(const double *u) {
  double most = 0, sum = 0;
  for (int i = 0; i < 3; i++) {
    for (int j = i; j < 3; j++) {
      double re = i == j ? -1 : 0, im = 0;
      for (int k = 0; k < 3; k++) {
        const double *a = u + 2 * (3 * k + i), *b = u + 2 * (3 * k + j);
        re += a[0] * b[0] + a[1] * b[1];
        im += a[0] * b[1] - a[1] * b[0];
      }
      const double square = re * re + im * im;
      if (square > most) most = square;
      sum += square;
    }
  }
  return root_of(most, sum);
}

static double determinant_of(const double *u) {
  double det[2];
  qk_su3_det(u, det);
  const double square = (det[0] - 1) * (det[0] - 1) + det[1] * det[1];
  return root_of(square, square);
}

static void add_link(const double *u, uint64_t global, int mu, bool closing, qk_links_sum_t *s) {
  if (closing && is_zero(u)) {
    s->zeros++;
    return;
  }
  s->closing += closing;
  const double unitarity = deviation(u), determinant = determinant_of(u);
  if (unitarity > s->unitarity) s->unitarity = unitarity;
  if (determinant > s->determinant) s->determinant = determinant;
  s->trace += u[0] + u[8] + u[16];
  const double worst = unitarity > determinant ? unitarity : determinant;
  if (worst <= s->worst) return;
  s->worst = worst;
  s->site = global;
  s->mu = mu;
}

void qk_links_add(const double site[QK_LINKS_SITE], uint64_t global, bool last, qk_links_sum_t *s) {
  for (int mu = 0; mu < 4; mu++) add_link(site + 18 * mu, global, mu, last && mu == 3, s);
  s->digest += XXH3_64bits_withSeed(site, QK_LINKS_SITE * sizeof *site, (XXH64_hash_t)global);
}

void qk_links_join(qk_links_sum_t *s, const qk_links_sum_t *o) {
  s->unitarity = fmax(s->unitarity, o->unitarity);
  s->determinant = fmax(s->determinant, o->determinant);
  s->trace += o->trace;
  s->zeros += o->zeros;
  s->closing += o->closing;
  s->digest += o->digest;
  if (o->worst <= s->worst) return;
  s->worst = o->worst;
  s->site = o->site;
  s->mu = o->mu;
}

bool qk_links_are_open(const qk_links_sum_t *s) {
  return s->closing == 0;
}

bool qk_links_are_torn(const qk_links_sum_t *s) {
  return s->closing > 0 && s->zeros > 0;
}

double qk_links_limit(int bits) {
  return bits == 32 ? 1e-5 : 1e-9;
}

void qk_links_widen(const void *raw, int bits, int reals, double site[QK_LINKS_SITE]) {
  for (int mu = 0; mu < 4; mu++) {
    double *u = site + 18 * mu;
    if (bits == 64) {
      memcpy(u, (const double *)raw + mu * reals, (size_t)reals * sizeof *u);
    } else {
      const float *f = (const float *)raw + mu * reals;
      for (int k = 0; k < reals; k++) u[k] = f[k];
    }
    if (reals == 12) qk_su3_third_row(u);
  }
}
