#include "daemon/engine/hadron/local_nucleon.h"

#include <complex.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/hadron/contract.h"

enum { COLOURS = 3, MATRIX = COLOURS * COLOURS };

struct qk_local_nucleon {
  const qk_geom_t *geom;
  int nmom, origin[4];
  size_t corners;          /* of this rank: [t][z][y][x], every other one in x, y and z */
  double complex *phase;   /* as of qk_contract_phases */
  double complex *part[2]; /* of a, and b if it is another: [corner][column][colour] */
  double complex *sum;     /* [nmom][global T] */
};

static size_t phase_count(const qk_lattice_t *lat) {
  return (size_t)lat->l[0] + (size_t)lat->l[1] + (size_t)lat->l[2];
}

void qk_local_nucleon_destroy(qk_local_nucleon_t *n) {
  if (n == NULL) return;
  qk_free(n->phase);
  for (int i = 0; i < 2; i++) qk_free(n->part[i]);
  qk_free(n->sum);
  qk_free(n);
}

static bool reserve(qk_local_nucleon_t *n, bool two) {
  const qk_lattice_t *lat = &n->geom->lat;
  n->phase = qk_malloc((size_t)n->nmom * phase_count(lat) * sizeof *n->phase);
  n->sum = qk_calloc((size_t)n->nmom * (size_t)lat->global[3], sizeof *n->sum);
  for (int i = 0; i < (two ? 2 : 1); i++) {
    n->part[i] = qk_malloc(n->corners * MATRIX * sizeof *n->part[i]);
    if (n->part[i] == NULL) return false;
  }
  return n->phase != NULL && n->sum != NULL;
}

qk_status_t qk_local_nucleon_create(const qk_geom_t *geom, int nmom, const int (*mom)[3],
                                    const int origin[4], bool two, qk_local_nucleon_t **nucleon) {
  qk_local_nucleon_t *n = qk_calloc(1, sizeof *n);
  if (n == NULL) return QK_NO_MEMORY;
  n->geom = geom;
  n->nmom = nmom;
  n->corners = (size_t)geom->local_volume / 8; /* extents are even, of ranks as well */
  memcpy(n->origin, origin, sizeof n->origin);
  if (!reserve(n, two)) {
    qk_local_nucleon_destroy(n);
    return QK_NO_MEMORY;
  }
  qk_contract_phases(&geom->lat, nmom, mom, origin, (double *)n->phase);
  *nucleon = n;
  return QK_OK;
}

/* Where corners begin in direction mu, of this rank. */
static int first(const qk_local_nucleon_t *n, int mu) {
  return (n->geom->lat.offset[mu] + n->origin[mu]) & 1;
}

static double complex number(qk_colour_part_t p, int64_t i) {
  const float *f = p.data;
  const double *d = p.data;
  return p.is_double ? d[2 * i] + I * d[2 * i + 1] : (double)f[2 * i] + I * (double)f[2 * i + 1];
}

/* Local x, y, z, t of a corner. */
static void corner_at(const qk_local_nucleon_t *n, size_t corner, int x[4]) {
  const int *l = n->geom->lat.l;
  int rest = (int)corner;
  for (int mu = 0; mu < 3; mu++) {
    x[mu] = first(n, mu) + 2 * (rest % (l[mu] / 2));
    rest /= l[mu] / 2;
  }
  x[3] = rest;
}

static void take(const qk_local_nucleon_t *n, int column, qk_colour_part_t from,
                 double complex *to) {
  const int *l = n->geom->lat.l;
  for (size_t i = 0; i < n->corners; i++, to += MATRIX) {
    int x[4];
    corner_at(n, i, x);
    const int64_t site =
        x[0] + (int64_t)l[0] * (x[1] + (int64_t)l[1] * (x[2] + (int64_t)l[2] * x[3]));
    for (int c = 0; c < COLOURS; c++) to[COLOURS * column + c] = number(from, COLOURS * site + c);
  }
}

void qk_local_nucleon_add(qk_local_nucleon_t *n, int column, qk_colour_part_t a,
                          qk_colour_part_t b) {
  take(n, column, a, n->part[0]);
  if (n->part[1]) take(n, column, b, n->part[1]);
}

static double complex determinant(const double complex *r0, const double complex *r1,
                                  const double complex *r2) {
  return r0[0] * (r1[1] * r2[2] - r1[2] * r2[1]) + r0[1] * (r1[2] * r2[0] - r1[0] * r2[2]) +
         r0[2] * (r1[0] * r2[1] - r1[1] * r2[0]);
}

/* 1/6 e e a a b: b in the place of each column of a in turn. */
static double complex contract(const double complex *a, const double complex *b) {
  const double complex *a1 = a + COLOURS, *a2 = a + 2 * COLOURS;
  if (b == NULL) return determinant(a, a1, a2);
  return (determinant(b, a1, a2) + determinant(a, b + COLOURS, a2) +
          determinant(a, a1, b + 2 * COLOURS)) /
         3;
}

static void add_corner(qk_local_nucleon_t *n, size_t corner) {
  const qk_lattice_t *lat = &n->geom->lat;
  const int *l = lat->l, total = lat->global[3];
  const double complex *b = n->part[1] ? n->part[1] + corner * MATRIX : NULL;
  const double complex value = contract(n->part[0] + corner * MATRIX, b);
  int x[4];
  corner_at(n, corner, x);
  const int t = (lat->offset[3] + x[3] - n->origin[3] + total) % total;
  for (int k = 0; k < n->nmom; k++) {
    const double complex *p = n->phase + (size_t)k * phase_count(lat);
    n->sum[(size_t)k * (size_t)total + (size_t)t] +=
        p[x[0]] * p[l[0] + x[1]] * p[l[0] + l[1] + x[2]] * value;
  }
}

void qk_local_nucleon_sum(qk_local_nucleon_t *n, int begin, int end) {
  const size_t slice = n->corners / (size_t)n->geom->lat.l[3];
  for (size_t i = (size_t)begin * slice; i < (size_t)end * slice; i++) add_corner(n, i);
}

qk_status_t qk_local_nucleon_end(qk_local_nucleon_t *n, const double phase_t[2], double *out) {
  const int total = n->geom->global[3], numbers = n->nmom * total;
  const double complex edge = phase_t[0] + I * phase_t[1], one = edge == 0 ? 1 : edge;
  const int odd = (n->origin[0] + n->origin[1] + n->origin[2]) & 1;
  const qk_status_t status = qk_comm_sum(n->geom->comm, (double *)n->sum, 2 * numbers);
  if (status != QK_OK) return status;
  for (int i = 0; i < numbers; i++) {
    const int t = i % total;
    const double complex factor = t >= total - n->origin[3] ? one * one * one : 1;
    const double complex value = (odd & t ? -1 : 1) * factor * n->sum[i];
    out[2 * i] = creal(value);
    out[2 * i + 1] = cimag(value);
  }
  return QK_OK;
}
