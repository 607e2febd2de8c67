#include "daemon/engine/checkpoint/eigen_part.h"

#include <string.h>

#include "daemon/base/mem.h"

enum { PIECE = 16 << 20, COLUMN = 24, SITE = 8 * COLUMN, COLOURS = 6, LAPLACIAN = 8 * COLOURS };

static int64_t local_sites(const qk_geom_t *geom, const qk_eigen_header_t *h) {
  return h->full ? geom->local_volume : geom->local_volume / 2;
}

int64_t qk_eigen_part_floats(const qk_geom_t *geom, const qk_eigen_header_t *h) {
  return (int64_t)h->planes * h->vectors * local_sites(geom, h) * qk_eigen_site_floats(h);
}

/* Sites [first, end) of a field of one vector in single, and plain floats in host memory. */
static qk_status_t move_some(const qk_field_t *f, int64_t first, int64_t end, void *room,
                             float *host, bool to_field) {
  const qk_device_t *dev = f->dev;
  const int64_t site = (int64_t)f->v.nrhs * COLUMN, most = PIECE / (site * (int64_t)sizeof(float));
  for (int64_t n = first; n < end && qk_dev_ok(dev); n += most) {
    const int64_t take = end - n < most ? end - n : most;
    const size_t bytes = (size_t)(take * site) * sizeof(float);
    const qk_sites_args_t args = {dev->geom->lat, f->v, QK_SINGLE, room, n, take};
    float *here = host + (n - first) * site;
    if (to_field) {
      qk_dev_copy(dev, room, here, bytes, QK_COPY_TO_DEVICE);
      if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->sites_set(dev->ctx, &args));
    } else {
      qk_dev_note(dev, dev->ops->sites_get(dev->ctx, &args));
      qk_dev_copy(dev, here, room, bytes, QK_COPY_TO_HOST);
    }
    qk_dev_sync(dev);
  }
  return qk_dev_status(dev);
}

static qk_status_t move(const qk_field_t *f, void *room, float *host, bool to_field) {
  return move_some(f, 0, f->v.nsites, room, host, to_field);
}

/* What a move needs: a piece of plain floats, and for double a field in single. */
typedef struct rooms {
  const qk_device_t *dev;
  void *plain;
  qk_geom_t geom; /* of one vector */
  qk_device_t one;
  qk_field_t *single;
} rooms_t;

static qk_status_t open_rooms(rooms_t *r, const qk_field_t *like) {
  *r = (rooms_t){.dev = like->dev, .geom = *like->dev->geom, .one = *like->dev};
  r->geom.inner = 1;
  r->geom.ls = 1;
  r->one.geom = &r->geom;
  void *memory = NULL;
  qk_status_t status = r->dev->ops->alloc(r->dev->ctx, PIECE, &memory);
  r->plain = memory;
  if (status || like->v.prec == QK_SINGLE) return status;
  return qk_field_create(&r->one, QK_SINGLE, like->v.nrhs, like->v.subset, &r->single);
}

static void close_rooms(rooms_t *r) {
  qk_field_destroy(r->single);
  if (r->plain) r->dev->ops->free(r->dev->ctx, r->plain);
}

static void blas(const rooms_t *r, qk_blas_op_t op, qk_blas_args_t args) {
  qk_dev_blas(r->dev, op, args);
}

/* The first plane is the field rounded to float, the second what is left of it. left: the field;
 * it is changed. */
static qk_status_t get_double(rooms_t *r, const qk_field_t *left, const qk_field_t *wide,
                              float *plane[2]) {
  const qk_field_t *single = r->single;
  blas(r, QK_BLAS_COPY, (qk_blas_args_t){.f = {single->v, left->v}});
  qk_status_t status = move(single, r->plain, plane[0], false);
  if (status) return status;
  blas(r, QK_BLAS_COPY, (qk_blas_args_t){.f = {wide->v, single->v}});
  blas(r, QK_BLAS_SUB, (qk_blas_args_t){.f = {wide->v, left->v, wide->v}});
  blas(r, QK_BLAS_COPY, (qk_blas_args_t){.f = {single->v, wide->v}});
  return move(single, r->plain, plane[1], false);
}

static qk_status_t set_double(rooms_t *r, const qk_field_t *field, float *const plane[2]) {
  const qk_field_t *single = r->single;
  qk_status_t status = move(single, r->plain, plane[0], true);
  if (status) return status;
  blas(r, QK_BLAS_COPY, (qk_blas_args_t){.f = {field->v, single->v}});
  status = move(single, r->plain, plane[1], true);
  if (status) return status;
  blas(r, QK_BLAS_ADD, (qk_blas_args_t){.f = {field->v, single->v}});
  qk_dev_sync(r->dev);
  return qk_dev_status(r->dev);
}

static qk_status_t fail_shape(const qk_eigen_header_t *h, const qk_field_t *f) {
  const bool fits =
      (h->planes == 1 && f->v.prec == QK_SINGLE) || (h->planes == 2 && f->v.prec == QK_DOUBLE);
  return fits && qk_field_vectors(f) == h->vectors && f->v.nrhs == 8 ? QK_OK : QK_BAD_ARGUMENT;
}

/* Both planes of vector k in a part. */
static void planes_of(const qk_eigen_header_t *h, const qk_geom_t *geom, float *part, int k,
                      float *plane[2]) {
  const int64_t one = local_sites(geom, h) * SITE;
  plane[0] = part + k * one;
  plane[1] = part + (h->vectors + k) * one;
}

static qk_status_t each_vector(const qk_eigen_header_t *h, const qk_field_t *block, float *part,
                               bool to_field) {
  rooms_t r;
  qk_field_t *wide = NULL;
  qk_status_t status = open_rooms(&r, block);
  if (!status && !to_field && h->planes == 2)
    status = qk_field_create(&r.one, QK_DOUBLE, 8, block->v.subset, &wide);
  for (int k = 0; k < h->vectors && !status; k++) {
    const qk_field_t vector = qk_field_vector(block, k);
    float *plane[2];
    planes_of(h, block->dev->geom, part, k, plane);
    status = h->planes == 1 ? move(&vector, r.plain, plane[0], to_field)
             : to_field     ? set_double(&r, &vector, plane)
                            : get_double(&r, &vector, wide, plane);
  }
  qk_field_destroy(wide);
  close_rooms(&r);
  return status;
}

qk_status_t qk_eigen_part_get(const qk_eigen_header_t *h, const qk_field_t *block, float *part) {
  const qk_status_t status = fail_shape(h, block);
  return qk_comm_agree(block->dev->geom->comm, status ? status : each_vector(h, block, part, false),
                       NULL);
}

qk_status_t qk_eigen_part_set(const qk_eigen_header_t *h, const float *part, qk_field_t *block) {
  const qk_status_t status = fail_shape(h, block);
  float *read = (float *)(uintptr_t)part;
  return qk_comm_agree(block->dev->geom->comm, status ? status : each_vector(h, block, read, true),
                       NULL);
}

/* One column of a plane, as a block of its own. */
static void pick(const float *plane, int64_t sites, int column, float *to) {
#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < sites; n++)
    memcpy(to + n * COLUMN, plane + n * SITE + column * COLUMN, COLUMN * sizeof *to);
}

/* The field takes both planes of one column. */
static qk_status_t set_planes(const qk_field_t *field, float *const own[2]) {
  rooms_t r;
  const qk_status_t opened = open_rooms(&r, field);
  const qk_status_t status = opened ? opened : set_double(&r, field, own);
  close_rooms(&r);
  return status;
}

static qk_status_t set_column(const qk_eigen_header_t *h, const float *part, int vector, int column,
                              const qk_field_t *field, float *picked) {
  const int64_t sites = local_sites(field->dev->geom, h);
  float *plane[2], *own[2] = {picked, picked + sites * COLUMN};
  planes_of(h, field->dev->geom, (float *)(uintptr_t)part, vector, plane);
  memset(picked, 0, 2 * (size_t)(sites * COLUMN) * sizeof *picked);
  for (int p = 0; p < h->planes; p++) pick(plane[p], sites, column, own[p]);
  return set_planes(field, own);
}

qk_status_t qk_eigen_part_column(const qk_eigen_header_t *h, const float *part, int vector,
                                 int column, const qk_field_t *field) {
  const qk_geom_t *geom = field->dev->geom;
  const bool fits = field->v.prec == QK_DOUBLE && field->v.nrhs == 1 && vector < h->vectors &&
                    column < 8 && (field->v.subset == QK_FULL) == h->full;
  float *picked = qk_malloc(2 * (size_t)(local_sites(geom, h) * COLUMN) * sizeof *picked);
  qk_status_t status = !fits     ? QK_BAD_ARGUMENT
                       : !picked ? QK_NO_MEMORY
                                 : set_column(h, part, vector, column, field, picked);
  qk_free(picked);
  return qk_comm_agree(geom->comm, status, NULL);
}

/* Sites [first, end) of a plane of a Laplacian, as spinors. */
static void pick_colours(const float *plane, int64_t first, int64_t end, int column, int spin,
                         float *to) {
#pragma omp parallel for schedule(static)
  for (int64_t n = first; n < end; n++)
    memcpy(to + (n - first) * COLUMN + spin * COLOURS, plane + n * LAPLACIAN + column * COLOURS,
           COLOURS * sizeof *to);
}

/* Nothing of the field but these sites is moved. picked: them, zeros. */
static qk_status_t set_sites(const qk_eigen_header_t *h, const float *part, int column, int spin,
                             int64_t first, int64_t end, const qk_field_t *field, float *picked) {
  rooms_t r;
  qk_status_t status = open_rooms(&r, field);
  blas(&r, QK_BLAS_ZERO, (qk_blas_args_t){.f = {field->v}});
  for (int p = 0; p < h->planes && !status; p++) {
    pick_colours(part + p * field->v.nsites * LAPLACIAN, first, end, column, spin, picked);
    blas(&r, QK_BLAS_ZERO, (qk_blas_args_t){.f = {r.single->v}});
    status = move_some(r.single, first, end, r.plain, picked, true);
    blas(&r, QK_BLAS_ADD, (qk_blas_args_t){.f = {field->v, r.single->v}});
    qk_dev_sync(r.dev);
  }
  status = status ? status : qk_dev_status(r.dev);
  close_rooms(&r);
  return status;
}

qk_status_t qk_eigen_part_slices(const qk_eigen_header_t *h, const float *part, int column, int t,
                                 int spin, const qk_field_t *field) {
  const qk_geom_t *geom = field->dev->geom;
  const int64_t slice = geom->local_volume / geom->lat.l[3];
  const int here = t - geom->lat.offset[3];
  const bool has = t < 0 || (here >= 0 && here < geom->lat.l[3]);
  const int64_t first = t < 0 || !has ? 0 : here * slice;
  const int64_t end = !has ? 0 : t < 0 ? geom->local_volume : first + slice;
  const bool fits = qk_eigen_is_laplacian(&h->problem) && field->v.prec == QK_DOUBLE &&
                    field->v.nrhs == 1 && field->v.subset == QK_FULL && column < 8 && spin < 4;
  float *picked = qk_calloc((size_t)((end - first) * COLUMN) + 1, sizeof *picked);
  qk_status_t status = !fits     ? QK_BAD_ARGUMENT
                       : !picked ? QK_NO_MEMORY
                                 : set_sites(h, part, column, spin, first, end, field, picked);
  qk_free(picked);
  return qk_comm_agree(geom->comm, status, NULL);
}
