#include "daemon/engine/hadron/local_mesons.h"

#include <complex.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/hadron/contract.h"

/* Sites of a time slice by the parities of x, y and z, counted from the origin: all signs in space
 * are those of these classes. */
enum { CLASSES = 8 };

struct qk_local_mesons {
  const qk_geom_t *geom;
  int nmom, origin[4];
  double complex *phase; /* as of qk_contract_phases */
  double complex *row;   /* [l[0]] */
  double complex *sum;   /* [nmom][global T][CLASSES] */
  size_t sums;
};

static size_t phase_count(const qk_lattice_t *lat) {
  return (size_t)lat->l[0] + (size_t)lat->l[1] + (size_t)lat->l[2];
}

void qk_local_mesons_destroy(qk_local_mesons_t *m) {
  if (m == NULL) return;
  qk_free(m->phase);
  qk_free(m->row);
  qk_free(m->sum);
  qk_free(m);
}

qk_status_t qk_local_mesons_create(const qk_geom_t *geom, int nmom, const int (*mom)[3],
                                   const int origin[4], qk_local_mesons_t **mesons) {
  qk_local_mesons_t *m = qk_calloc(1, sizeof *m);
  if (m == NULL) return QK_NO_MEMORY;
  m->geom = geom;
  m->nmom = nmom;
  memcpy(m->origin, origin, sizeof m->origin);
  m->sums = (size_t)nmom * (size_t)geom->global[3] * CLASSES;
  m->sum = qk_calloc(m->sums, sizeof *m->sum);
  m->row = qk_malloc((size_t)geom->lat.l[0] * sizeof *m->row);
  m->phase = qk_malloc((size_t)nmom * phase_count(&geom->lat) * sizeof *m->phase);
  if (m->sum == NULL || m->row == NULL || m->phase == NULL) {
    qk_local_mesons_destroy(m);
    return QK_NO_MEMORY;
  }
  qk_contract_phases(&geom->lat, nmom, mom, origin, (double *)m->phase);
  *mesons = m;
  return QK_OK;
}

static double complex number(qk_colour_part_t p, int64_t i) {
  const float *f = p.data;
  const double *d = p.data;
  return p.is_double ? d[2 * i] + I * d[2 * i + 1] : (double)f[2 * i] + I * (double)f[2 * i + 1];
}

/* m->row[x] = sum_c conj(b) a of the sites from `site` on. */
static void multiply(qk_local_mesons_t *m, qk_colour_part_t a, qk_colour_part_t b, int64_t site) {
  const int n = m->geom->lat.l[0];
  for (int x = 0; x < n; x++) {
    double complex sum = 0;
    for (int c = 0; c < 3; c++)
      sum += conj(number(b, 3 * (site + x) + c)) * number(a, 3 * (site + x) + c);
    m->row[x] = sum;
  }
}

/* The row at local y, z, t. */
static void add_row(qk_local_mesons_t *m, const int at[4]) {
  const qk_lattice_t *lat = &m->geom->lat;
  const int *l = lat->l, total = lat->global[3];
  int side[4];
  for (int mu = 0; mu < 4; mu++) side[mu] = (lat->offset[mu] + at[mu] + m->origin[mu]) & 1;
  const int t = (lat->offset[3] + at[3] - m->origin[3] + total) % total;
  for (int k = 0; k < m->nmom; k++) {
    const double complex *px = m->phase + (size_t)k * phase_count(lat);
    const double complex rest = px[l[0] + at[1]] * px[l[0] + l[1] + at[2]];
    double complex part[2] = {0};
    for (int x = 0; x < l[0]; x++) part[x & 1] += px[x] * m->row[x];
    double complex *to = m->sum + ((size_t)k * (size_t)total + (size_t)t) * CLASSES;
    for (int x = 0; x < 2; x++) to[(x ^ side[0]) + 2 * side[1] + 4 * side[2]] += rest * part[x];
  }
}

void qk_local_mesons_add(qk_local_mesons_t *m, qk_colour_part_t a, qk_colour_part_t b, int begin,
                         int end) {
  const int *l = m->geom->lat.l;
  int64_t site = (int64_t)begin * l[0] * l[1] * l[2];
  for (int t = begin; t < end; t++)
    for (int z = 0; z < l[2]; z++)
      for (int y = 0; y < l[1]; y++, site += l[0]) {
        multiply(m, a, b, site);
        add_row(m, (const int[4]){0, y, z, t});
      }
}

static int odd(int bits) {
  return __builtin_popcount((unsigned)bits) & 1;
}

/* The sum of the classes of a slice with the signs of the meson of spin n and taste m. */
static double complex close_slice(const double complex sum[CLASSES], int n, int m, int t) {
  const int factors = __builtin_popcount((unsigned)n), d = n ^ m;
  int flips = 0; /* directions in which phi alternates */
  for (int mu = 0; mu < 4; mu++)
    flips |= ((1 + factors - (n >> mu & 1) + odd(d & ((1 << mu) - 1))) & 1) << mu;
  double complex value = 0;
  for (int c = 0; c < CLASSES; c++) value += odd(c & flips) ? -sum[c] : sum[c];
  const int minus = (flips >> 3 & t & 1) + factors * (factors - 1) / 2;
  return minus % 2 ? -value : value;
}

qk_status_t qk_local_mesons_end(qk_local_mesons_t *m, int n, const int spin[], const int taste[],
                                double *out) {
  const qk_geom_t *geom = m->geom;
  const int times = geom->global[3];
  const qk_status_t status = qk_comm_sum(geom->comm, (double *)m->sum, (int)(2 * m->sums));
  if (status != QK_OK) return status;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < m->nmom; k++)
      for (int t = 0; t < times; t++, out += 2) {
        const double complex *sum = m->sum + ((size_t)k * (size_t)times + (size_t)t) * CLASSES;
        const double complex value = close_slice(sum, spin[i], taste[i], t);
        out[0] = creal(value);
        out[1] = cimag(value);
      }
  return QK_OK;
}
