#include "daemon/engine/checkpoint/eigen_part.h"

#include <string.h>

#include "daemon/base/mem.h"

enum { PIECE = 16 << 20, SPINOR = 24, COLOURS = 6, LAPLACIAN = 8 * COLOURS };

/* Floats of a right-hand side at a site. */
static int64_t column_of(const qk_field_t *f) {
  return 2 * (int64_t)f->v.ncomp;
}

static int64_t local_sites(const qk_geom_t *geom, const qk_eigen_header_t *h) {
  return h->full ? geom->local_volume : geom->local_volume / 2;
}

int64_t qk_eigen_part_floats(const qk_geom_t *geom, const qk_eigen_header_t *h, int block) {
  const int64_t sites = qk_eigen_is_coefficients(h, block)
                            ? qk_coherent_aggregates(geom, &h->problem.cut)
                            : h->vectors * local_sites(geom, h);
  return h->planes * sites * qk_eigen_site_floats(h, block);
}

/* Sites [first, end) of a field of one vector in single, and plain floats in host memory. */
static qk_status_t move_some(const qk_field_t *f, int64_t first, int64_t end, void *room,
                             float *host, bool to_field) {
  const qk_device_t *dev = f->dev;
  const int64_t site = f->v.nrhs * column_of(f), most = PIECE / (site * (int64_t)sizeof(float));
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
  return fits && qk_field_vectors(f) == h->vectors && f->v.nrhs == 8 &&
                 h->colours == (f->v.ncomp == QK_COLOUR_COMPONENTS)
             ? QK_OK
             : QK_BAD_ARGUMENT;
}

/* Both planes of vector k in a part. */
static void planes_of(const qk_eigen_header_t *h, const qk_geom_t *geom, float *part, int k,
                      float *plane[2]) {
  const int64_t one = local_sites(geom, h) * qk_eigen_site_floats(h, 0);
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

/* Planes of a field of coefficients, and what of them a part has: sites are filled up to a
 * multiple of eight in the field. */
typedef struct padded {
  float *plane[2];
  size_t floats; /* of a plane of the part */
} padded_t;

static qk_status_t padded_init(const qk_eigen_header_t *h, const qk_field_t *block, padded_t *p) {
  const size_t all = (size_t)block->v.nsites * QK_EIGEN_BLOCK * 2 * (size_t)block->v.ncomp;
  const qk_geom_t *geom = block->dev->geom;
  int64_t aggregates = 1;
  for (int mu = 0; mu < 4; mu++) aggregates *= geom->lat.l[mu] / h->problem.cut.block[mu];
  p->floats = (size_t)(aggregates * qk_eigen_site_floats(h, h->nblock - 1));
  for (int k = 0; k < 2; k++) p->plane[k] = qk_calloc(all, sizeof(float));
  return p->plane[0] && p->plane[1] ? QK_OK : QK_NO_MEMORY;
}

static void padded_fini(padded_t *p) {
  for (int k = 0; k < 2; k++) qk_free(p->plane[k]);
}

static bool coefficients_fit(const qk_eigen_header_t *h, const qk_field_t *f) {
  return qk_eigen_is_coefficients(h, h->nblock - 1) && f->v.ncomp == 2 * h->problem.cut.n &&
         f->v.nrhs == QK_EIGEN_BLOCK && f->v.subset == QK_EVEN;
}

qk_status_t qk_eigen_part_get_coefficients(const qk_eigen_header_t *h, const qk_field_t *block,
                                           float *part) {
  padded_t p = {{NULL, NULL}, 0};
  const bool fits =
      coefficients_fit(h, block) && block->v.prec == (h->planes == 2 ? QK_DOUBLE : QK_SINGLE);
  qk_status_t status = fits ? padded_init(h, block, &p) : QK_BAD_ARGUMENT;
  for (int k = 0; k < h->planes && !status; k++) {
    status = qk_coherent_get(block, k, p.plane[k]);
    memcpy(part + (size_t)k * p.floats, p.plane[k], p.floats * sizeof *part);
  }
  padded_fini(&p);
  return qk_comm_agree(block->dev->geom->comm, status, NULL);
}

qk_status_t qk_eigen_part_set_coefficients(const qk_eigen_header_t *h, const float *part,
                                           qk_field_t *block) {
  padded_t p = {{NULL, NULL}, 0};
  const int planes = block->v.prec == QK_DOUBLE ? h->planes : 1;
  const qk_status_t fits = coefficients_fit(h, block) ? padded_init(h, block, &p) : QK_BAD_ARGUMENT;
  for (int k = 0; k < h->planes && !fits; k++)
    memcpy(p.plane[k], part + (size_t)k * p.floats, p.floats * sizeof *part);
  const qk_status_t status = fits ? fits : qk_coherent_set(block, planes, p.plane);
  padded_fini(&p);
  return qk_comm_agree(block->dev->geom->comm, status, NULL);
}

/* One column of a plane, as a block of its own. */
static void pick(const float *plane, int64_t sites, int64_t floats, int column, float *to) {
#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < sites; n++)
    memcpy(to + n * floats, plane + (n * QK_EIGEN_BLOCK + column) * floats,
           (size_t)floats * sizeof *to);
}

/* The field takes both planes of one column. */
static qk_status_t set_planes(const qk_field_t *field, float *const own[2]) {
  rooms_t r;
  const qk_status_t opened = open_rooms(&r, field);
  const qk_status_t status = opened ? opened : set_double(&r, field, own);
  close_rooms(&r);
  return status;
}

qk_status_t qk_eigen_part_plain(const qk_field_t *field, float *const plane[2]) {
  const bool fits = field->v.prec == QK_DOUBLE && field->v.nrhs == 1 && field->v.inner <= 1;
  return qk_comm_agree(field->dev->geom->comm, fits ? set_planes(field, plane) : QK_BAD_ARGUMENT,
                       NULL);
}

static qk_status_t set_column(const qk_eigen_header_t *h, const float *part, int vector, int column,
                              const qk_field_t *field, float *picked) {
  const int64_t sites = local_sites(field->dev->geom, h), floats = column_of(field);
  float *plane[2], *own[2] = {picked, picked + sites * floats};
  planes_of(h, field->dev->geom, (float *)(uintptr_t)part, vector, plane);
  memset(picked, 0, 2 * (size_t)(sites * floats) * sizeof *picked);
  for (int p = 0; p < h->planes; p++) pick(plane[p], sites, floats, column, own[p]);
  return set_planes(field, own);
}

qk_status_t qk_eigen_part_column(const qk_eigen_header_t *h, const float *part, int vector,
                                 int column, const qk_field_t *field) {
  const qk_geom_t *geom = field->dev->geom;
  const bool fits = field->v.prec == QK_DOUBLE && field->v.nrhs == 1 && vector < h->vectors &&
                    column < 8 && (field->v.subset == QK_FULL) == h->full &&
                    h->colours == (field->v.ncomp == QK_COLOUR_COMPONENTS);
  float *picked = qk_malloc(2 * (size_t)(local_sites(geom, h) * column_of(field)) * sizeof *picked);
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
    memcpy(to + (n - first) * SPINOR + spin * COLOURS, plane + n * LAPLACIAN + column * COLOURS,
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
                    field->v.nrhs == 1 && field->v.subset == QK_FULL && column < 8 && spin < 4 &&
                    2 * field->v.ncomp == SPINOR;
  float *picked = qk_calloc((size_t)((end - first) * SPINOR) + 1, sizeof *picked);
  qk_status_t status = !fits     ? QK_BAD_ARGUMENT
                       : !picked ? QK_NO_MEMORY
                                 : set_sites(h, part, column, spin, first, end, field, picked);
  qk_free(picked);
  return qk_comm_agree(geom->comm, status, NULL);
}
