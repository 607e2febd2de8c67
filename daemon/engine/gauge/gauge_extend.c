/* gauge_extend.c: the local links with a halo one site wide where the lattice is split. */
#include <inttypes.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gauge_format.h"

enum { SITE_BYTES = QK_GAUGE_SITE_REALS * sizeof(double) };

/* A box lo <= x < hi of the extended lattice. */
typedef struct box {
  int lo[4], hi[4];
} box_t;

static int64_t box_sites(const box_t *b) {
  int64_t n = 1;
  for (int mu = 0; mu < 4; mu++) n *= b->hi[mu] - b->lo[mu];
  return n;
}

/* The box of ext to (pack) or from the dense buffer, row by row. */
static void copy_box(const box_t *b, const int e[4], double *ext, double *dense, bool pack) {
  size_t row = (size_t)(b->hi[0] - b->lo[0]) * SITE_BYTES;
  for (int t = b->lo[3]; t < b->hi[3]; t++) {
    for (int z = b->lo[2]; z < b->hi[2]; z++) {
      for (int y = b->lo[1]; y < b->hi[1]; y++) {
        int64_t at = (((int64_t)t * e[2] + z) * e[1] + y) * e[0] + b->lo[0];
        double *p = ext + at * QK_GAUGE_SITE_REALS;
        memcpy(pack ? dense : p, pack ? p : dense, row);
        dense += row / sizeof *dense;
      }
    }
  }
}

/* Fills both halos across mu. Directions below mu have theirs already, and pass them on: so edges
 * and corners arrive without messages of their own. */
static qk_status_t exchange(const qk_geom_t *geom, int mu, const int e[4], double *ext,
                            double *buffer) {
  const qk_lattice_t *lat = &geom->lat;
  box_t b;
  for (int nu = 0; nu < 4; nu++) {
    b.lo[nu] = nu < mu ? 0 : lat->split[nu];
    b.hi[nu] = nu < mu ? e[nu] : lat->split[nu] + lat->l[nu];
  }
  b.lo[mu] = 0, b.hi[mu] = 1;
  int64_t reals = box_sites(&b) * QK_GAUGE_SITE_REALS;
  /* send from the first and the last own layer; receive above and below */
  const int from[2] = {1, lat->l[mu]}, to[2] = {lat->l[mu] + 1, 0};
  qk_comm_msg_t msg[2];
  for (int i = 0; i < 2; i++) {
    double *send = buffer + 2 * i * reals;
    b.lo[mu] = from[i], b.hi[mu] = from[i] + 1;
    copy_box(&b, e, ext, send, true);
    msg[i] = (qk_comm_msg_t){.to = qk_comm_neighbour(geom->comm, mu, i == 0 ? -1 : +1),
                             .from = qk_comm_neighbour(geom->comm, mu, i == 0 ? +1 : -1),
                             .tag = 2 * mu + i,
                             .send = send,
                             .recv = send + reals,
                             .bytes = (size_t)reals * sizeof *send};
  }
  qk_status_t status = qk_comm_exchange(geom->comm, 2, msg);
  if (status != QK_OK) return status;
  for (int i = 0; i < 2; i++) {
    b.lo[mu] = to[i], b.hi[mu] = to[i] + 1;
    copy_box(&b, e, ext, msg[i].recv, false);
  }
  return QK_OK;
}

qk_status_t qk_gauge_extend(const qk_geom_t *geom, const double *links, double **ext, int e[4],
                            qk_err_t *err) {
  const qk_lattice_t *lat = &geom->lat;
  size_t sites = 1, face = 0;
  box_t own;
  for (int mu = 0; mu < 4; mu++) {
    e[mu] = lat->l[mu] + 2 * lat->split[mu];
    own.lo[mu] = lat->split[mu];
    own.hi[mu] = lat->split[mu] + lat->l[mu];
    sites *= (size_t)e[mu];
  }
  for (int mu = 0; mu < 4; mu++) {
    if (lat->split[mu] && sites / (size_t)e[mu] > face) face = sites / (size_t)e[mu];
  }
  double *all = qk_malloc(sites * SITE_BYTES);
  double *buffer = face == 0 ? NULL : qk_malloc(4 * face * SITE_BYTES);
  qk_err_t cause = {0};
  qk_status_t status = QK_OK;
  if (all == NULL || (face != 0 && buffer == NULL)) {
    status = qk_fail(&cause, QK_NO_MEMORY, "no memory for %zu bytes of links with their halo",
                     sites * SITE_BYTES);
  }
  status = qk_comm_agree(geom->comm, status, &cause);
  if (status != QK_OK) goto fail;
  copy_box(&own, e, all, (double *)links, false);
  for (int mu = 0; mu < 4 && status == QK_OK; mu++) {
    if (lat->split[mu]) status = exchange(geom, mu, e, all, buffer);
  }
  if (status != QK_OK) {
    qk_fail(&cause, status, "exchange of links: %s", qk_status_text(status));
    goto fail;
  }
  qk_free(buffer);
  *ext = all;
  return QK_OK;
fail:
  qk_free(buffer);
  qk_free(all);
  return qk_fail(err, status, "%s", cause.text);
}
