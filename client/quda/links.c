/* What callers put into links: scales of directions, signs and phases by coordinate, undone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/say.h"
#include "base/threads.h"
#include "links.h"

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

/* ---- sums that do not depend on an order ---- */

/* Multiples of 2^-52, of which 2^64 numbers below 2^10 can be added. */
__extension__ typedef __int128 exact_t;

static const double RANGE = 1024;

static exact_t exact(double v) {
  return (exact_t)llrint(v * 0x1p52);
}
static double inexact(exact_t v) {
  return (double)v * 0x1p-52;
}

/* Determinants of the links of a direction on a slice across it. */
typedef struct slice {
  exact_t modulus, re, im; /* of |det|^(1/3) and det / |det| */
  uint64_t n, wild;        /* links; those that are NaN or beyond RANGE */
  double off;              /* the largest distance of a determinant from what is expected */
} slice_t;

/* The rows of a part in pieces, and what each finds on slices. */
typedef struct sweep {
  qk_quda_links_t *links;
  const qk_quda_given_t *given;
  size_t pieces, slices;
  slice_t *slice;           /* [piece][slice]: all of x, then of y, z, t */
  uint64_t *wide, *digest;  /* [piece]: numbers that 32 bits do not hold */
  double complex *expected; /* [slice]: the determinant */
  double complex *undo;     /* [slice]: what links are multiplied by */
} sweep_t;

static size_t begin_of(const sweep_t *s, size_t piece) {
  return piece * qk_quda_rows(&s->links->shape) / s->pieces;
}

static size_t slice_index(const qk_quda_links_t *links, int mu, int coordinate) {
  size_t index = (size_t)coordinate;
  for (int nu = 0; nu < mu; nu++) index += (size_t)links->dims[nu];
  return index;
}

static void sum_up(slice_t *s, double complex d) {
  const double size = cabs(d);
  s->n++;
  if (!(size < RANGE)) {
    s->wild++;
    return;
  }
  s->modulus += exact(cbrt(size));
  if (size > 0) s->re += exact(creal(d) / size), s->im += exact(cimag(d) / size);
}

/* Links of the caller to the part, and their determinants. */
static void read_site(const qk_quda_given_t *g, size_t brick, double *u) {
  const void *const *one = g->links;
  for (size_t mu = 0; mu < 4; mu++) {
    const void *from = g->milc ? g->links : one[mu];
    const size_t at = g->milc ? SITE * brick + LINK * mu : LINK * brick;
    const double *d = from;
    const float *f = from;
    for (size_t k = 0; k < LINK; k++) u[LINK * mu + k] = g->single ? f[at + k] : d[at + k];
  }
}

/* A site of the part. */
typedef struct site {
  size_t row;
  int x, at[4];   /* in the row; in the lattice */
  uint64_t index; /* in the lattice */
  double *u;
  slice_t *slice; /* of the piece */
} site_t;

typedef void (*site_fn)(const sweep_t *s, size_t piece, const site_t *site);

static void go_through(const sweep_t *s, size_t piece, site_fn fn) {
  const qk_quda_shape_t *shape = &s->links->shape;
  const size_t nx = (size_t)shape->local[0];
  site_t site = {.slice = s->slice + piece * s->slices};
  for (site.row = begin_of(s, piece); site.row < begin_of(s, piece + 1); site.row++) {
    site.index = qk_quda_row_begin(shape, site.row, site.at);
    site.u = s->links->u + site.row * nx * SITE;
    for (site.x = 0; site.x < (int)nx; site.x++) {
      fn(s, piece, &site);
      site.at[0]++, site.index++, site.u += SITE;
    }
  }
}

static void take_site(const sweep_t *s, size_t piece, const site_t *site) {
  const qk_quda_links_t *links = s->links;
  read_site(s->given, qk_quda_brick_index(&links->shape, site->row, site->x), site->u);
  for (int mu = 0; mu < 4; mu++)
    sum_up(&site->slice[slice_index(links, mu, site->at[mu])], determinant(site->u + mu * LINK));
  for (int k = 0; k < SITE; k++) s->wide[piece] += (double)(float)site->u[k] != site->u[k];
}

static void read_rows(void *arg, size_t piece) {
  go_through(arg, piece, take_site);
}

static void undo_link(double complex factor, bool single, double *u) {
  for (int k = 0; k < 9; k++) {
    double *z = u + 2 * k;
    if (cimag(factor) == 0) { /* exact for a sign; a zero has none then */
      z[0] = creal(factor) * z[0] + 0.0;
      z[1] = creal(factor) * z[1] + 0.0;
    } else {
      const double complex v = factor * (z[0] + I * z[1]);
      z[0] = creal(v), z[1] = cimag(v);
    }
    if (single) z[0] = (float)z[0], z[1] = (float)z[1]; /* they are sent as they were given */
  }
}

/* Whether determinants are what they should be; the links, undone; their digest. */
static void undo_site(const sweep_t *s, size_t piece, const site_t *site) {
  const qk_quda_links_t *links = s->links;
  for (int mu = 0; mu < 4; mu++) {
    const size_t k = slice_index(links, mu, site->at[mu]);
    double *u = site->u + mu * LINK;
    const double off = cabs(determinant(u) - s->expected[k]);
    slice_t *slice = &site->slice[k];
    slice->off = off <= slice->off ? slice->off : isnan(off) ? INFINITY : off;
    if (s->undo[k] != 1) undo_link(s->undo[k], links->single, u);
  }
  quark_gauge_digest(site->u, QUARK_F64, LINK, &site->index, 1, &s->digest[piece]);
}

static void undo_rows(void *arg, size_t piece) {
  go_through(arg, piece, undo_site);
}

/* All pieces and ranks, into the first piece. */
static void add_slices(const sweep_t *s) {
  enum { NUMBERS = 8 };
  slice_t *sum = s->slice;
  uint64_t *flat = qk_quda_alloc(s->slices * NUMBERS * sizeof *flat), *to = flat;
  double *off = qk_quda_alloc(s->slices * sizeof *off);
  for (size_t k = 0; k < s->slices; k++, to += NUMBERS) {
    for (size_t p = 1; p < s->pieces; p++) {
      const slice_t *one = &s->slice[p * s->slices + k];
      sum[k].modulus += one->modulus, sum[k].re += one->re, sum[k].im += one->im;
      sum[k].n += one->n, sum[k].wild += one->wild;
      sum[k].off = fmax(sum[k].off, one->off);
    }
    const exact_t of[3] = {sum[k].modulus, sum[k].re, sum[k].im};
    for (int i = 0; i < 3; i++) /* in halves, whose sums do not pass 64 bits */
      to[2 * i] = (uint64_t)of[i] & 0xffffffffU, to[2 * i + 1] = (uint64_t)(of[i] >> 32);
    to[6] = sum[k].n, to[7] = sum[k].wild;
    off[k] = sum[k].off;
  }
  qk_quda_sum_whole(flat, s->slices * NUMBERS);
  qk_quda_max(off, s->slices);
  to = flat;
  for (size_t k = 0; k < s->slices; k++, to += NUMBERS) {
    exact_t *const of[3] = {&sum[k].modulus, &sum[k].re, &sum[k].im};
    for (int i = 0; i < 3; i++)
      *of[i] = (exact_t)(int64_t)to[2 * i + 1] * ((exact_t)1 << 32) + (exact_t)to[2 * i];
    sum[k].n = to[6], sum[k].wild = to[7];
    sum[k].off = off[k];
  }
  free(flat);
  free(off);
}

/* ---- what was put in ---- */

/* The scale of a direction; what is near 1 or the anisotropy is meant to be it. */
static double scale_of(const sweep_t *s, int mu) {
  const qk_quda_links_t *links = s->links;
  const double anisotropy = s->given->anisotropy, meant[] = {1, 1 / anisotropy, anisotropy};
  exact_t sum = 0;
  uint64_t n = 0;
  for (int k = 0; k < links->dims[mu]; k++) {
    const slice_t *slice = &s->slice[slice_index(links, mu, k)];
    if (slice->wild) return NAN;
    sum += slice->modulus, n += slice->n;
  }
  const double scale = inexact(sum) / (double)n;
  for (int k = 0; k < 3; k++)
    if (fabs(scale - meant[k]) <= mean(links->single) * meant[k]) return meant[k];
  return scale;
}

static double complex phase_of(const slice_t *slice, bool single) {
  double complex d = inexact(slice->re) + I * inexact(slice->im);
  if (!(cabs(d) > 0)) return 1;
  d /= cabs(d);
  if (cabs(d - 1) <= mean(single)) return 1;
  if (cabs(d + 1) <= mean(single)) return -1;
  return cexp(I * carg(d) / 3); /* one of three; all of them make the same operator */
}

static bool judge_direction(sweep_t *s, int mu, bool *sign, char why[256]) {
  qk_quda_links_t *links = s->links;
  const double scale = scale_of(s, mu), cube = scale * scale * scale;
  double complex w = 1;
  if (!(scale > 0 && isfinite(scale))) {
    snprintf(why, 256, "links in direction %d: the mean of |det U|^(1/3) is %g", mu, scale);
    return false;
  }
  links->hop[mu] = scale;
  links->twist[mu] = qk_quda_alloc((size_t)links->dims[mu] * sizeof *links->twist[mu]);
  for (int k = 0; k < links->dims[mu]; k++) {
    const size_t i = slice_index(links, mu, k);
    const double complex z = phase_of(&s->slice[i], links->single);
    links->twist[mu][k] = w;
    w *= z;
    *sign = *sign || z == -1;
    s->expected[i] = cube * z * z * z;
    s->undo[i] = scale == 1 && (z == 1 || z == -1) ? z : conj(z) / scale;
    links->rounded = links->rounded || scale != 1 || (z != 1 && z != -1);
  }
  links->boundary[mu] = cabs(w - 1) < 1e-12 ? 1 : cabs(w + 1) < 1e-12 ? -1 : w / cabs(w);
  return true;
}

static bool judge_slices(const sweep_t *s, char why[256]) {
  const qk_quda_links_t *links = s->links;
  for (int mu = 0; mu < 4; mu++)
    for (int k = 0; k < links->dims[mu]; k++) {
      const size_t i = slice_index(links, mu, k);
      const double cube = links->hop[mu] * links->hop[mu] * links->hop[mu];
      if (s->slice[i].off <= each(links->single) * cube) continue;
      snprintf(
          why, 256,
          "links in direction %d, slice %d: det U is off by %.3g from %.6g%+.6gi, so that they "
          "are not SU(3) times a scale of the direction and a phase of the slice",
          mu, k, s->slice[i].off, creal(s->expected[i]), cimag(s->expected[i]));
      return false;
    }
  return true;
}

static void drop_trivial_twist(qk_quda_links_t *links) {
  bool turns = false;
  for (int mu = 0; mu < 4; mu++)
    for (int k = 0; k < links->dims[mu]; k++) turns = turns || links->twist[mu][k] != 1;
  for (int mu = 0; mu < 4 && !turns; mu++) {
    free(links->twist[mu]);
    links->twist[mu] = NULL;
  }
}

static bool take(sweep_t *s, char why[256]) {
  qk_quda_links_t *links = s->links;
  bool sign[4] = {false, false, false, false};
  qk_quda_parallel(read_rows, s, s->pieces);
  add_slices(s);
  uint64_t wide = 0;
  for (size_t p = 0; p < s->pieces; p++) wide += s->wide[p];
  qk_quda_sum_whole(&wide, 1);
  /* These are links of single precision, however they are given. */
  links->single = s->given->single || wide == 0;
  for (int mu = 0; mu < 4; mu++)
    if (!judge_direction(s, mu, &sign[mu], why)) return false;
  if (s->given->antiperiodic && !sign[3]) {
    snprintf(why, 256, "t_boundary is antiperiodic, but no time slice of the links has the sign");
    return false;
  }
  for (size_t k = 0; k < s->pieces * s->slices; k++) s->slice[k].off = 0;
  qk_quda_parallel(undo_rows, s, s->pieces);
  add_slices(s);
  if (!judge_slices(s, why)) return false;
  drop_trivial_twist(links);
  for (size_t p = 0; p < s->pieces; p++) links->digest += s->digest[p];
  qk_quda_sum_whole(&links->digest, 1);
  return true;
}

qk_quda_links_t *qk_quda_links_take(const qk_quda_shape_t *shape, const qk_quda_given_t *given,
                                    char why[256]) {
  qk_quda_links_t *links = qk_quda_alloc(sizeof *links);
  *links = (qk_quda_links_t){.shape = *shape};
  links->u = qk_quda_alloc(qk_quda_local_sites(shape, QK_QUDA_ALL) * SITE * sizeof *links->u);
  sweep_t s = {.links = links, .given = given, .pieces = 4 * qk_quda_threads()};
  if (s.pieces > qk_quda_rows(shape)) s.pieces = qk_quda_rows(shape);
  for (int mu = 0; mu < 4; mu++) {
    links->dims[mu] = shape->local[mu] * shape->grid[mu];
    s.slices += (size_t)links->dims[mu];
  }
  s.slice = qk_quda_alloc(s.pieces * s.slices * sizeof *s.slice);
  s.wide = qk_quda_alloc(2 * s.pieces * sizeof *s.wide);
  s.digest = s.wide + s.pieces;
  s.expected = qk_quda_alloc(2 * s.slices * sizeof *s.expected);
  s.undo = s.expected + s.slices;
  memset(s.slice, 0, s.pieces * s.slices * sizeof *s.slice);
  memset(s.wide, 0, 2 * s.pieces * sizeof *s.wide);
  const bool good = take(&s, why);
  free(s.slice);
  free(s.wide);
  free(s.expected);
  if (good) return links;
  qk_quda_links_free(links);
  return NULL;
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
  /* A scale that is not said is a mean of determinants, and carries their rounding. */
  const double most = a->single || b->single ? 4 * 0x1p-24 : 64 * 0x1p-53;
  const size_t n = qk_quda_local_sites(&a->shape, QK_QUDA_ALL) * SITE;
  uint64_t others = 0;
  for (size_t k = 0; k < n; k++) others += !(fabs(a->u[k] - b->u[k]) <= most);
  qk_quda_sum_whole(&others, 1);
  return others == 0;
}
