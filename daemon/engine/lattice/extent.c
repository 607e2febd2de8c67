#include "daemon/engine/lattice/extent.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/engine/lattice/scalars.h"

enum { PIECE_SITES = 4096 };

/* What the numbers so far are: the sum of squares is in units of the largest one. */
typedef struct tally {
  bool finite;
  double largest, squares;
  int64_t at; /* < 0: none */
} tally_t;

/* The number of the first real of local site n of a vector, which counts in wire order. */
static int64_t number_of(const qk_geom_t *geom, int64_t n) {
  const qk_lattice_t *lat = &geom->lat;
  int64_t site = 0, x[4];
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = lat->offset[mu] + n % lat->l[mu];
    n /= lat->l[mu];
  }
  for (int mu = 3; mu >= 0; mu--) site = site * lat->global[mu] + x[mu];
  return site * qk_geom_wire_reals(geom);
}

static void count_finite(tally_t *t, double size, int64_t at) {
  if (size > t->largest) {
    const double ratio = t->largest / size;
    t->squares = 1 + t->squares * ratio * ratio;
    t->largest = size;
    t->at = at;
  } else if (size > 0) {
    const double ratio = size / t->largest;
    t->squares += ratio * ratio;
    if (size == t->largest && at < t->at) t->at = at;
  }
}

/* Of vector k. */
static void count_sites(tally_t *t, const qk_geom_t *geom, int k, const double *v, int64_t first,
                        int64_t n) {
  const int reals = qk_geom_wire_reals(geom);
  for (int64_t i = 0; i < n; i++) {
    const int64_t number = k * geom->volume * reals + number_of(geom, first + i);
    for (int c = 0; c < reals; c++) {
      const double size = fabs(v[i * reals + c]);
      if (!isfinite(size)) {
        if (t->finite || number + c < t->at) t->at = number + c;
        t->finite = false;
      } else if (t->finite) {
        count_finite(t, size, number + c);
      }
    }
  }
}

static void count_column(const qk_device_t *dev, int k, const double *wire, double *host,
                         tally_t *t) {
  const int64_t volume = dev->geom->local_volume;
  const int reals = qk_geom_wire_reals(dev->geom);
  for (int64_t at = 0; at < volume; at += PIECE_SITES) {
    const int64_t n = volume - at < PIECE_SITES ? volume - at : PIECE_SITES;
    qk_dev_copy(dev, host, wire + at * reals, (size_t)(n * reals) * sizeof *wire, QK_COPY_TO_HOST);
    qk_dev_sync(dev);
    if (!qk_dev_ok(dev)) return;
    count_sites(t, dev->geom, k, host, at, n);
  }
}

/* Vector k by way of wire order, a piece at a time in pinned memory. */
static qk_status_t count_local(const qk_device_t *dev, int k, const qk_rhs_args_t *args,
                               tally_t *t) {
  void *host = NULL;
  const size_t bytes = (size_t)(PIECE_SITES * qk_geom_wire_reals(dev->geom)) * sizeof(double);
  qk_status_t status = dev->ops->alloc_host(dev->ctx, bytes, &host);
  if (status != QK_OK) return status;
  qk_dev_note(dev, dev->ops->rhs_export(dev->ctx, args));
  if (qk_dev_ok(dev)) count_column(dev, k, args->wire[0], host, t);
  dev->ops->free_host(dev->ctx, host);
  return qk_dev_status(dev);
}

/* All ranks know of all numbers. */
static qk_status_t agree(qk_comm_t *comm, tally_t *t) {
  double most[2] = {t->finite ? 0 : 1, t->largest}, at = -INFINITY;
  qk_status_t status = qk_comm_max(comm, most, 2);
  if (status != QK_OK) return status;
  const bool finite = most[0] == 0;
  if (t->at >= 0 && (finite ? t->largest == most[1] : !t->finite)) at = -(double)t->at;
  const double ratio = most[1] > 0 ? t->largest / most[1] : 0;
  t->squares *= ratio * ratio;
  t->finite = finite;
  t->largest = most[1];
  status = qk_comm_max(comm, &at, 1);
  if (status != QK_OK) return status;
  t->at = isfinite(at) ? (int64_t)-at : 0;
  return qk_comm_sum(comm, &t->squares, 1);
}

qk_status_t qk_extent_find(qk_work_t *work, const qk_field_t *field, const double matrix[4][4][2],
                           double factor, qk_extent_t *extent) {
  const qk_device_t *dev = field->dev;
  tally_t t = {.finite = true, .at = -1};
  qk_field_t *wire;
  qk_status_t status = qk_work_reserve(work, QK_DOUBLE, 1, QK_FULL, &wire);
  if (status != QK_OK) return status;
  for (int k = 0; k < qk_field_vectors(field) && status == QK_OK; k++) {
    qk_rhs_args_t args = {.lat = dev->geom->lat,
                          .field = qk_field_vector(field, k).v,
                          .n = 1,
                          .is_double = 1,
                          .wire = {wire->v.data},
                          .factor = factor};
    memcpy(args.basis, matrix, sizeof args.basis);
    status = count_local(dev, k, &args, &t);
  }
  qk_work_release(work, wire);
  if (status != QK_OK) return status;
  status = agree(dev->geom->comm, &t);
  if (status != QK_OK) return status;
  *extent =
      (qk_extent_t){.finite = t.finite, .largest = t.largest, .norm = sqrt(t.squares), .at = t.at};
  return QK_OK;
}

void qk_extent_place(const qk_geom_t *geom, const qk_extent_t *extent, char text[QK_EXTENT_PLACE]) {
  const int reals = qk_geom_wire_reals(geom);
  const int k = (int)(extent->at / (geom->volume * reals));
  int64_t site = extent->at / reals % geom->volume;
  const int component = (int)(extent->at % reals) / 2;
  char spin[24] = "";
  int x[4];
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(site % geom->global[mu]);
    site /= geom->global[mu];
  }
  if (geom->ncomp != QK_COLOUR_COMPONENTS) snprintf(spin, sizeof spin, " spin %d,", component / 3);
  snprintf(text, QK_EXTENT_PLACE, "x y z t = %d %d %d %d,%s colour %d%s", x[0], x[1], x[2], x[3],
           spin, component % 3,
           geom->inner <= 1 ? ""
           : k == 0         ? ", upper flavour"
                            : ", lower flavour");
}

/* ---- norms ----------------------------------------------------------------------------------- */

qk_status_t qk_norm2_find(const qk_field_t *field, double *norm2) {
  qk_scalars_t found = {0};
  qk_status_t status = qk_scalars_init(&found, field->dev, 1, 1);
  if (status == QK_OK) {
    qk_scalars_reduce(&found, 0, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {field->v}});
    qk_scalars_fetch(&found, 0, 1);
    status = qk_dev_status(field->dev);
    *norm2 = qk_scalars_host(&found, 0, 0)[0];
  }
  qk_scalars_fini(&found);
  return status;
}

qk_status_t qk_norm_of_source(qk_work_t *work, const qk_field_t *source, double *norm,
                              qk_err_t *verdict) {
  static const double one[4][4][2] = {{{1}}, {{0}, {1}}, {{0}, {0}, {1}}, {{0}, {0}, {0}, {1}}};
  double norm2 = 0;
  char place[QK_EXTENT_PLACE];
  qk_extent_t e;
  qk_status_t status = qk_norm2_find(source, &norm2);
  *norm = sqrt(norm2);
  if (status != QK_OK || (norm2 > 0x1p-900 && norm2 < 0x1p900)) return status;
  status = qk_extent_find(work, source, one, 1, &e);
  if (status != QK_OK) return status;
  *norm = e.finite ? e.largest * e.norm : 0;
  if (e.finite && isfinite(*norm)) return QK_OK;
  qk_extent_place(source->dev->geom, &e, place);
  if (e.finite)
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the source is too large: its norm is over %.3g, and %.3g stands at %s; scale it down",
            DBL_MAX, e.largest, place);
  else
    qk_fail(verdict, QK_NAN_INPUT, "the source is NaN or Inf at %s", place);
  return QK_OK;
}
