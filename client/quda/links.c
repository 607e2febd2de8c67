/* What callers put into links: scales of directions, signs and phases by coordinate, undone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "links.h"
#include "say.h"

enum { LINK = 18, SITE = 72 };

/* How far determinants may be from what they should be: of each link, and of the mean of a
 * slice. */
static double each(bool single) {
  return single ? 1e-4 : 1e-7;
}
static double mean(bool single) {
  return single ? 2e-6 : 1e-9;
}

static double complex element(const double *u, int row, int column) {
  const double *z = u + 2 * (3 * row + column);
  return z[0] + I * z[1];
}

static double complex determinant(const double *u) {
  double complex d = 0;
  for (int k = 0; k < 3; k++) {
    const int a = (k + 1) % 3, b = (k + 2) % 3;
    d += element(u, 0, k) *
         (element(u, 1, a) * element(u, 2, b) - element(u, 1, b) * element(u, 2, a));
  }
  return d;
}

/* Calls visit for the links of a direction on a slice across it. */
typedef void (*visit_fn)(void *arg, double *u);
static void visit_slice(const qk_quda_links_t *links, int mu, int slice, visit_fn visit,
                        void *arg) {
  const int *d = links->dims;
  int from[4] = {0}, to[4] = {d[0], d[1], d[2], d[3]};
  from[mu] = slice, to[mu] = slice + 1;
  for (int t = from[3]; t < to[3]; t++)
    for (int z = from[2]; z < to[2]; z++)
      for (int y = from[1]; y < to[1]; y++)
        for (int x = from[0]; x < to[0]; x++) {
          const size_t n =
              (((size_t)t * (size_t)d[2] + (size_t)z) * (size_t)d[1] + (size_t)y) * (size_t)d[0] +
              (size_t)x;
          visit(arg, links->u + n * SITE + (size_t)mu * LINK);
        }
}

/* Determinants of a slice: sums, and extremes of the deviation from a value that is expected. */
typedef struct slice_sum {
  double modulus, off;
  double complex phase, expected;
  size_t n;
} slice_sum_t;

static void sum_up(void *arg, double *u) {
  slice_sum_t *s = arg;
  const double complex d = determinant(u);
  const double size = cabs(d), deviation = cabs(d - s->expected);
  s->modulus += cbrt(size);
  s->phase += size > 0 ? d / size : 0;
  s->off = deviation <= s->off ? s->off : deviation; /* NaN stays */
  s->n++;
}

static slice_sum_t sum_slice(const qk_quda_links_t *links, int mu, int slice,
                             double complex expected) {
  slice_sum_t s = {.expected = expected};
  visit_slice(links, mu, slice, sum_up, &s);
  return s;
}

typedef struct undoing {
  double complex factor;
} undoing_t;

static void undo_link(void *arg, double *u) {
  const undoing_t *o = arg;
  for (int k = 0; k < 9; k++) {
    double *z = u + 2 * k;
    if (cimag(o->factor) == 0) { /* exact for a sign; a zero has none then */
      z[0] = creal(o->factor) * z[0] + 0.0;
      z[1] = creal(o->factor) * z[1] + 0.0;
    } else {
      const double complex v = o->factor * (z[0] + I * z[1]);
      z[0] = creal(v), z[1] = cimag(v);
    }
  }
}

/* The scale of a direction; what is near 1 or the anisotropy is meant to be it. */
static double scale_of(const qk_quda_links_t *links, int mu, double anisotropy) {
  double sum = 0;
  size_t n = 0;
  for (int k = 0; k < links->dims[mu]; k++) {
    const slice_sum_t s = sum_slice(links, mu, k, 1);
    sum += s.modulus, n += s.n;
  }
  const double scale = sum / (double)n, meant[] = {1, 1 / anisotropy, anisotropy};
  for (int k = 0; k < 3; k++)
    if (fabs(scale - meant[k]) <= mean(links->single) * meant[k]) return meant[k];
  return scale;
}

static double complex phase_of(double complex d, bool single) {
  d /= cabs(d);
  if (cabs(d - 1) <= mean(single)) return 1;
  if (cabs(d + 1) <= mean(single)) return -1;
  return cexp(I * carg(d) / 3); /* one of three; all of them make the same operator */
}

static bool undo_direction(qk_quda_links_t *links, int mu, double anisotropy, bool *sign,
                           char why[256]) {
  const double scale = scale_of(links, mu, anisotropy);
  double complex w = 1;
  if (!(scale > 0 && isfinite(scale))) {
    snprintf(why, 256, "links in direction %d: the mean of |det U|^(1/3) is %g", mu, scale);
    return false;
  }
  links->hop[mu] = scale;
  links->twist[mu] = qk_quda_alloc((size_t)links->dims[mu] * sizeof *links->twist[mu]);
  for (int k = 0; k < links->dims[mu]; k++) {
    const slice_sum_t s = sum_slice(links, mu, k, 1);
    const double complex z = cabs(s.phase) > 0 ? phase_of(s.phase, links->single) : 1;
    const double cube = scale * scale * scale;
    const slice_sum_t seen = sum_slice(links, mu, k, cube * z * z * z);
    if (!(seen.off <= each(links->single) * cube)) {
      snprintf(
          why, 256,
          "links in direction %d, slice %d: det U is off by %.3g from %.6g%+.6gi, so that they "
          "are not SU(3) times a scale of the direction and a phase of the slice",
          mu, k, seen.off, creal(seen.expected), cimag(seen.expected));
      return false;
    }
    links->twist[mu][k] = w;
    w *= z;
    *sign = *sign || z == -1;
    if (scale == 1 && z == 1) continue;
    visit_slice(links, mu, k, undo_link,
                &(undoing_t){scale == 1 && z == -1 ? -1 : conj(z) / scale});
    links->rounded = links->rounded || scale != 1 || z != -1;
  }
  links->boundary[mu] = cabs(w - 1) < 1e-12 ? 1 : cabs(w + 1) < 1e-12 ? -1 : w / cabs(w);
  return true;
}

bool qk_quda_links_undo(qk_quda_links_t *links, double anisotropy, bool sign_expected,
                        char why[256]) {
  bool sign[4] = {false, false, false, false}, turns = false;
  size_t sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= (size_t)links->dims[mu];
  links->rounded = false;
  for (int mu = 0; mu < 4; mu++)
    if (!undo_direction(links, mu, anisotropy, &sign[mu], why)) return false;
  if (sign_expected && !sign[3]) {
    snprintf(why, 256, "t_boundary is antiperiodic, but no time slice of the links has the sign");
    return false;
  }
  for (int mu = 0; mu < 4; mu++)
    for (int k = 0; k < links->dims[mu]; k++) turns = turns || links->twist[mu][k] != 1;
  for (int mu = 0; mu < 4 && !turns; mu++) {
    free(links->twist[mu]);
    links->twist[mu] = NULL;
  }
  if (links->single && links->rounded) /* they are sent as they were given */
    for (size_t k = 0; k < sites * SITE; k++) links->u[k] = (float)links->u[k];
  links->digest = 0;
  quark_gauge_digest(links->u, QUARK_F64, LINK, NULL, sites, &links->digest);
  return true;
}

void qk_quda_links_free(qk_quda_links_t *links) {
  if (!links) return;
  for (int mu = 0; mu < 4; mu++) free(links->twist[mu]);
  free(links->u);
  free(links);
}

bool qk_quda_links_same(const qk_quda_links_t *a, const qk_quda_links_t *b) {
  if (memcmp(a->dims, b->dims, sizeof a->dims) != 0) return false;
  if (a->digest == b->digest) return true;
  if (!a->rounded && !b->rounded) return false;
  size_t n = SITE;
  for (int mu = 0; mu < 4; mu++) n *= (size_t)a->dims[mu];
  /* A scale that is not said is a mean of determinants, and carries their rounding. */
  const double most = a->single || b->single ? 4 * 0x1p-24 : 64 * 0x1p-53;
  for (size_t k = 0; k < n; k++)
    if (!(fabs(a->u[k] - b->u[k]) <= most)) return false;
  return true;
}
