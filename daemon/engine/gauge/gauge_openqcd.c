/*
 * gauge_openqcd.c: openQCD and DDalphaAMG files, which share their header.
 *
 * 24 bytes: int32 T and three extents, double plaquette (times 3); then 144 bytes a link, all
 * little endian, double precision. DDalphaAMG: extents T,Z,Y,X; site by site with x fastest; mu =
 * t,z,y,x. openQCD:    extents T,X,Y,Z; for every odd site (z fastest, then y, x, t) the eight
 * links at it: U_mu(n), U_mu(n-mu) for mu = t,x,y,z. Nothing in the header says which. The right
 * reading is the one whose links have the plaquette that the header states: we compare both on as
 * many sites as it takes to tell them apart, all of them on a small lattice. qk_gauge_judge later
 * verifies the plaquette of the whole lattice.
 */
#include "daemon/base/formats/bytes.h"
#include "daemon/engine/gauge/gauge_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/links/su3.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gauge_ahead.h"

enum {
  HEADER = QK_GAUGE_HEAD,
  LINK = 144,
  RECORD = 8 * LINK, /* an odd site of openQCD */
  EXTENT_MAX = 1 << 16,
  SAMPLE_MIN = 1 << 12,
  SAMPLE_MAX = 1 << 17,
};

static int64_t site_openqcd(const int dims[4], const int x[4]) {
  return (((int64_t)x[3] * dims[0] + x[0]) * dims[1] + x[1]) * dims[2] + x[2];
}

static int64_t site_xfastest(const int dims[4], const int x[4]) {
  return (((int64_t)x[3] * dims[2] + x[2]) * dims[1] + x[1]) * dims[0] + x[0];
}

/* mu = x,y,z,t as openQCD counts it: t,x,y,z */
static int openqcd_mu(int mu) {
  return mu == 3 ? 0 : mu + 1;
}

static int64_t link_offset(const qk_gauge_info_t *info, const int x[4], int mu) {
  if (info->layout.order == QK_GAUGE_SITES)
    return HEADER + site_xfastest(info->dims, x) * 4 * LINK + (3 - mu) * LINK;
  int odd[4] = {x[0], x[1], x[2], x[3]}, backward = (x[0] + x[1] + x[2] + x[3]) % 2 == 0;
  if (backward) odd[mu] = (odd[mu] + 1) % info->dims[mu];
  return HEADER + site_openqcd(info->dims, odd) / 2 * RECORD +
         (2 * openqcd_mu(mu) + backward) * LINK;
}

static qk_status_t read_link(const qk_gauge_file_t *file, const qk_gauge_info_t *info,
                             const int x[4], int mu, int ahead, double u[18], qk_err_t *err) {
  qk_gauge_info_t link = *info;
  int at[4] = {x[0], x[1], x[2], x[3]};
  uint8_t raw[LINK];
  if (ahead >= 0) at[ahead] = (at[ahead] + 1) % info->dims[ahead];
  qk_status_t status = qk_infile_read(&file->in, raw, LINK, link_offset(info, at, mu), err);
  if (status != QK_OK) return status;
  link.layout.t_first = false;
  qk_gauge_decode(&link, 1, raw, u);
  return QK_OK;
}

/* The average plaquette of one site, read from the file link by link. */
static qk_status_t site_plaquette(const qk_gauge_file_t *file, const qk_gauge_info_t *info,
                                  const int x[4], double *plaquette, qk_err_t *err) {
  double sum = 0;
  for (int mu = 0; mu < 4; mu++) {
    for (int nu = mu + 1; nu < 4; nu++) {
      double u[4][18], a[18], b[18];
      const struct { int mu, ahead; } link[4] = {{mu, -1}, {nu, mu}, {nu, -1}, {mu, nu}};
      for (int i = 0; i < 4; i++) {
        qk_status_t status = read_link(file, info, x, link[i].mu, link[i].ahead, u[i], err);
        if (status != QK_OK) return status;
      }
      qk_su3_mul(a, u[0], u[1]);
      qk_su3_mul(b, u[2], u[3]);
      sum += qk_su3_re_dot(a, b) / 18;
    }
  }
  *plaquette = sum;
  return QK_OK;
}

/* Mean plaquette over n sites spread over the lattice, and its standard error. */
static qk_status_t sample(const qk_gauge_file_t *file, const qk_gauge_info_t *info, int64_t volume,
                          int64_t n, double *mean, double *error, qk_err_t *err) {
  double sum = 0, sum2 = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t step = volume / n, site = i * step + (n < volume ? i * 7919 % step : 0);
    int x[4];
    double p;
    for (int mu = 0; mu < 4; mu++) {
      x[mu] = (int)(site % info->dims[mu]);
      site /= info->dims[mu];
    }
    qk_status_t status = site_plaquette(file, info, x, &p, err);
    if (status != QK_OK) return status;
    sum += p;
    sum2 += p * p;
  }
  *mean = sum / (double)n;
  *error = sqrt(fmax(0, sum2 / (double)n - *mean * *mean) / (double)n);
  return QK_OK;
}

/* reading[0] or reading[1]: whose plaquette is the header's? */
static qk_status_t choose(const qk_gauge_file_t *file, const qk_gauge_info_t reading[2],
                          int64_t volume, int *chosen, qk_err_t *err) {
  for (int64_t n = SAMPLE_MIN;; n *= 8) {
    double off[2], error[2];
    if (n > volume) n = volume;
    for (int i = 0; i < 2; i++) {
      double mean;
      qk_status_t status = sample(file, &reading[i], volume, n, &mean, &error[i], err);
      if (status != QK_OK) return status;
      off[i] = fabs(mean - reading[i].plaquette);
    }
    *chosen = off[1] < off[0];
    bool clear = fabs(off[0] - off[1]) > 8 * (error[0] + error[1]);
    if (clear || n == volume || n >= SAMPLE_MAX) return QK_OK;
  }
}

/* T and the other extents, as they stand in the header, and the plaquette (times 3). */
static void header(const uint8_t head[HEADER], int64_t n[4], double *plaquette) {
  uint64_t bits = qk_bytes_u64(head + 16, false);
  memcpy(plaquette, &bits, sizeof *plaquette);
  for (int i = 0; i < 4; i++) n[i] = (int32_t)qk_bytes_u32(head + 4 * i, false);
}

/* There is no magic number: extents and a plaquette that can be. */
bool qk_gauge_openqcd_is(const uint8_t head[QK_GAUGE_HEAD], int64_t bytes) {
  double plaquette;
  int64_t n[4];
  if (bytes < HEADER) return false;
  header(head, n, &plaquette);
  bool plausible = fabs(plaquette) <= 3.000001;
  for (int i = 0; i < 4; i++) plausible &= n[i] > 0 && n[i] <= EXTENT_MAX;
  return plausible;
}

qk_status_t qk_gauge_openqcd_probe(const qk_gauge_file_t *file, qk_gauge_info_t *info,
                                   qk_err_t *err) {
  uint8_t head[HEADER];
  double plaquette;
  int64_t n[4];
  qk_status_t read = qk_infile_read(&file->in, head, HEADER, 0, err);
  if (read != QK_OK) return read;
  if (!qk_gauge_openqcd_is(head, HEADER))
    return qk_fail(err, QK_BAD_FORMAT, "no header of openQCD or DDalphaAMG");
  header(head, n, &plaquette);
  info->bits = 64;
  info->has_plaquette = true;
  info->plaquette = plaquette / 3;
  info->layout.rows = 3;
  qk_gauge_info_t reading[2] = {*info, *info};
  snprintf(reading[0].format, sizeof info->format, "DDalphaAMG");
  snprintf(reading[1].format, sizeof info->format, "openQCD");
  reading[0].layout.order = QK_GAUGE_SITES;
  reading[0].layout.t_first = true;
  reading[1].layout.order = QK_GAUGE_OPENQCD;
  const int64_t dims[2][4] = {{n[3], n[2], n[1], n[0]}, {n[1], n[2], n[3], n[0]}};
  for (int i = 0; i < 2; i++) {
    qk_status_t status = qk_gauge_set_dims(dims[i], &reading[i], err);
    if (status != QK_OK) return status;
    status = qk_gauge_set_data(HEADER, file->in.size - HEADER, &reading[i], err);
    if (status != QK_OK) return status;
  }
  int chosen;
  qk_status_t status = choose(file, reading, n[0] * n[1] * n[2] * n[3], &chosen, err);
  if (status == QK_OK) *info = reading[chosen];
  return status;
}

/* The eight links of an odd site g (global), where they belong to this rank. */
static void scatter(const qk_lattice_t *lat, const int g[4], const double *links, double *out) {
  for (int mu = 0; mu < 4; mu++) {
    for (int back = 0; back < 2; back++) {
      int x[4], inside = 1;
      for (int nu = 0; nu < 4; nu++) {
        int at = g[nu] - (nu == mu ? back : 0);
        x[nu] = (at + lat->global[nu]) % lat->global[nu] - lat->offset[nu];
        inside &= x[nu] >= 0 && x[nu] < lat->l[nu];
      }
      if (!inside) continue;
      memcpy(out + 18 * (4 * site_xfastest(lat->l, x) + mu),
             links + 18 * (2 * openqcd_mu(mu) + back), 18 * sizeof *out);
    }
  }
}

/* What a rank reads: for each of its t and x the rows in z of all its y, a piece. Even sites on the
 * upper edge of a split direction have their links one site beyond it. */
typedef struct rows {
  const qk_gauge_file_t *file;
  const qk_gauge_info_t *info;
  const qk_lattice_t *lat;
} rows_t;

/* Odd sites that stand beside each other in the file, from the global site g on. */
typedef struct row {
  int g[4], n;
} row_t;

static int pieces_along(const rows_t *r, int mu) {
  return r->lat->l[mu] + r->lat->split[mu];
}

/* Row k of a piece: at y = k / 2 the local row, then its site beyond the edge, if that is odd. A
 * row beyond the edge wraps around. False: there is nothing to read. */
static bool row_at(const rows_t *r, int64_t piece, int k, row_t *row) {
  const qk_lattice_t *lat = r->lat;
  const int nx = pieces_along(r, 0), beyond = k % 2;
  const int x[4] = {(int)(piece % nx), k / 2, beyond ? lat->l[2] : 0, (int)(piece / nx)};
  if (beyond && !lat->split[2]) return false;
  if ((x[3] == lat->l[3]) + (x[0] == lat->l[0]) + (x[1] == lat->l[1]) > 1) return false;
  int parity = 0;
  for (int mu = 0; mu < 4; mu++) {
    row->g[mu] = (lat->offset[mu] + x[mu]) % r->info->dims[mu];
    parity += row->g[mu];
  }
  parity %= 2;
  row->n = beyond ? parity : lat->l[2] / 2;
  return row->n > 0;
}

static qk_status_t read_rows(const void *arg, int64_t piece, uint8_t *raw, qk_err_t *err) {
  const rows_t *r = arg;
  qk_status_t status = QK_OK;
  row_t row;
  for (int k = 0; k < 2 * pieces_along(r, 1) && status == QK_OK; k++) {
    if (!row_at(r, piece, k, &row)) continue;
    const int64_t at = HEADER + site_openqcd(r->info->dims, row.g) / 2 * RECORD;
    status = qk_infile_read(&r->file->in, raw, (int64_t)row.n * RECORD, at, err);
    raw += (int64_t)row.n * RECORD;
  }
  return status;
}

/* links: room for a piece in the order of the file; out: those of the rank. */
static void decode_rows(const rows_t *r, int64_t piece, const uint8_t *raw, double *links,
                        double *out) {
  int64_t sites = 0;
  row_t row;
  for (int k = 0; k < 2 * pieces_along(r, 1); k++)
    if (row_at(r, piece, k, &row)) sites += row.n;
  qk_gauge_decode(r->info, 8 * sites, raw, links);
  for (int k = 0; k < 2 * pieces_along(r, 1); k++) {
    if (!row_at(r, piece, k, &row)) continue;
    int *g = row.g;
    if ((g[0] + g[1] + g[2] + g[3]) % 2 == 0) g[2]++;
    for (int i = 0; i < row.n; i++, g[2] += 2, links += 8 * 18) scatter(r->lat, g, links, out);
  }
}

qk_status_t qk_gauge_openqcd_read(const qk_gauge_file_t *file, const qk_gauge_info_t *info,
                                  const qk_geom_t *geom, double *links,
                                  const qk_gauge_watch_t *watch, qk_err_t *err) {
  const qk_lattice_t *lat = &geom->lat;
  const rows_t r = {file, info, lat};
  const int nx = pieces_along(&r, 0);
  const int64_t pieces = (int64_t)pieces_along(&r, 3) * nx, total = geom->local_volume * 4 * LINK,
                sites = (int64_t)pieces_along(&r, 1) * (lat->l[2] / 2 + 1);
  qk_gauge_ahead_t *ahead = NULL;
  double *file_order = qk_malloc((size_t)sites * 8 * 18 * sizeof *file_order);
  qk_status_t status =
      file_order != NULL ? qk_gauge_ahead_begin(read_rows, &r, pieces, sites * RECORD, &ahead, err)
                         : qk_fail(err, QK_NO_MEMORY, "no memory for rows of %d sites", lat->l[2]);
  for (int64_t k = 0; k < pieces && status == QK_OK; k++) {
    const uint8_t *raw;
    status = qk_gauge_ahead_next(ahead, &raw, err);
    if (status != QK_OK) break;
    const double start = qk_clock_now();
    decode_rows(&r, k, raw, file_order, links);
    watch->times->decode += qk_clock_now() - start;
    if ((k + 1) % nx == 0 && k / nx < lat->l[3])
      qk_gauge_watch(watch, total / lat->l[3] * (k / nx + 1), total);
  }
  watch->times->read += qk_gauge_ahead_end(ahead);
  qk_free(file_order);
  return status;
}
