#include "daemon/engine/setup/deflate_file.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "proto/action/operator_text.h"
#include "proto/quark.pb-c.h"

enum { B = QK_EIGEN_BLOCK };

qk_status_t qk_deflate_file_count(const qk_geom_t *geom, const char *path, int *count,
                                  qk_coherent_cut_t *cut, qk_err_t *err) {
  qk_eigen_reader_t *r;
  qk_eigen_header_t h;
  const double *number;
  const qk_status_t status = qk_eigen_reader_open(geom, path, NULL, &r, &h, &number, err);
  if (status != QK_OK) return status;
  qk_eigen_reader_close(r);
  *count = h.problem.count;
  *cut = h.problem.cut;
  return QK_OK;
}

/* Of Mhat^+ Mhat in single, or of gamma_5 M in double. */
static qk_eigen_header_t describe(const qk_operator_t *op, const qk_mg_identity_t *identity,
                                  bool gamma5, int n) {
  const qk_geom_t *geom = op->dev->geom;
  const int inner = geom->inner > 1 ? geom->inner : 1;
  qk_eigen_header_t h = {.identity = *identity,
                         .problem = {.kind = gamma5 ? QUARK__EIGEN_KIND__EIGEN_GAMMA5
                                                    : QUARK__EIGEN_KIND__EIGEN_NORMAL,
                                     .count = n},
                         .complete = true,
                         .full = gamma5,
                         .colours = geom->ncomp == QK_COLOUR_COMPONENTS,
                         .vectors = inner * qk_geom_slices(geom),
                         .planes = gamma5 ? 2 : 1,
                         .nblock = (n + B - 1) / B,
                         .numbers = 2 * n};
  h.identity.seed = 0;
  memcpy(h.dims, geom->global, sizeof h.dims);
  return h;
}

/* Mhat' - 1 of another mass over that of the file's, whose vectors it has; 0: it has others. */
static double ratio_of(const qk_eigen_header_t *h, const qk_mg_identity_t *identity) {
  qk_values_t of_file, own;
  char why[QK_WHY];
  if (!qk_values_parse(&of_file, h->identity.operator_text, why) ||
      !qk_values_parse(&own, identity->operator_text, why) ||
      !qk_values_share_vectors(&of_file, &own))
    return 0;
  const double ratio = qk_value(&of_file, "mass") / qk_value(&own, "mass");
  return ratio * ratio;
}

/* Of another's file the operator counts, and not how its vectors were found; of colour vectors not
 * its mass. */
static qk_status_t match(const qk_eigen_header_t *h, const qk_eigen_header_t *wanted, bool own,
                         qk_err_t *err) {
  qk_eigen_header_t w = *wanted;
  const int n = wanted->problem.count;
  if (!own) {
    if (ratio_of(h, &w.identity) > 0)
      memcpy(w.identity.operator_text, h->identity.operator_text, sizeof w.identity.operator_text);
    w.problem = h->problem;
    w.problem.kind = wanted->problem.kind;
    if (!w.full) w.planes = h->planes;
  }
  const qk_status_t status = qk_eigen_header_match(h, &w, err);
  if (status != QK_OK) return status;
  if (!h->complete) return qk_fail(err, QK_NOT_FOUND, "its vectors are still being computed");
  if (h->problem.count >= n) return QK_OK;
  return qk_fail(err, QK_NOT_FOUND, "it has %d vectors, not %d", h->problem.count, n);
}

/* What one block goes through: host memory, and of a file in double, where it is to be in single, a
 * field. */
typedef struct passage {
  float *part;
  qk_field_t *wide;
} passage_t;

/* For any block of a file, to fields of that precision. */
static qk_status_t open_passage(const qk_flat_t *flat, const qk_geom_t *geom,
                                const qk_eigen_header_t *h, qk_prec_t prec, qk_subset_t system,
                                passage_t *p) {
  const int64_t first = qk_eigen_part_floats(geom, h, 0),
                last = qk_eigen_part_floats(geom, h, h->nblock - 1);
  *p = (passage_t){.part = qk_malloc((size_t)(first > last ? first : last) * sizeof(float))};
  if (p->part == NULL) return QK_NO_MEMORY;
  if (h->planes == 1 || prec == QK_DOUBLE) return QK_OK;
  return qk_field_create(qk_flat_dev(flat), QK_DOUBLE, B, system, &p->wide);
}

static void close_passage(passage_t *p) {
  qk_field_destroy(p->wide);
  qk_free(p->part);
}

static qk_status_t read_block(qk_eigen_reader_t *r, const qk_eigen_header_t *h, passage_t *p, int b,
                              qk_field_t *block, qk_err_t *err) {
  const qk_device_t *dev = block->dev;
  qk_status_t status = qk_eigen_reader_block(r, b, p->part, err);
  if (status != QK_OK) return status;
  status = qk_eigen_part_set(h, p->part, p->wide ? p->wide : block);
  if (status != QK_OK || p->wide == NULL) return status;
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {block->v, p->wide->v}});
  qk_dev_sync(dev);
  return qk_comm_agree(dev->geom->comm, qk_dev_status(dev), NULL);
}

static qk_status_t reserve(qk_operator_t *op, bool gamma5, int n, qk_eigen_t **eigen) {
  const qk_subset_t system = gamma5 ? QK_FULL : op->system;
  qk_eigen_t *e = *eigen = qk_calloc(1, sizeof *e);
  if (e == NULL || (e->flat = qk_malloc(sizeof *e->flat)) == NULL) return QK_NO_MEMORY;
  qk_flat_init(e->flat, op->dev);
  e->n = n;
  for (; e->nblock * B < n; e->nblock++) {
    const qk_status_t status = qk_field_create(qk_flat_dev(e->flat), gamma5 ? QK_DOUBLE : QK_SINGLE,
                                               B, system, &e->block[e->nblock]);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

static qk_status_t read_blocks(qk_operator_t *op, qk_eigen_reader_t *r, const qk_eigen_header_t *h,
                               const double *number, qk_eigen_t *e, qk_err_t *err) {
  const qk_spinor_t *v = &e->block[0]->v;
  passage_t p;
  qk_status_t status = open_passage(e->flat, op->dev->geom, h, v->prec, v->subset, &p);
  status = qk_comm_agree(op->dev->geom->comm, status, err);
  for (int b = 0; b < e->nblock && status == QK_OK; b++)
    status = read_block(r, h, &p, b, e->block[b], err);
  close_passage(&p);
  for (int i = 0; i < e->n; i++) {
    e->value[i] = number[2 * i];
    e->residual[i] = number[2 * i + 1];
  }
  return status;
}

/* To those of the operator's mass. */
static void shift_values(qk_eigen_t *e, double ratio) {
  for (int i = 0; i < e->n && ratio != 1; i++) {
    e->value[i] = 1 + ratio * (e->value[i] - 1);
    e->residual[i] *= ratio;
  }
}

/* Vectors of a file beyond those that are wanted stand in the last block, too: they count as
 * wanted. */
static int taken(const qk_eigen_header_t *h, int n) {
  const int whole = (n + B - 1) / B * B;
  return whole < h->problem.count ? whole : h->problem.count;
}

static qk_status_t read_file(qk_operator_t *op, const char *path, const qk_mg_identity_t *identity,
                             bool gamma5, int n, bool own, qk_eigen_t **eigen, qk_err_t *err) {
  qk_comm_t *comm = op->dev->geom->comm;
  const qk_eigen_header_t wanted = describe(op, identity, gamma5, n);
  qk_eigen_header_t h;
  const double *number;
  qk_eigen_reader_t *r = NULL;
  qk_eigen_t *e = NULL;
  qk_status_t status = qk_eigen_reader_open(op->dev->geom, path, NULL, &r, &h, &number, err);
  if (status != QK_OK) return status;
  status = match(&h, &wanted, own, err);
  if (status != QK_OK) goto end;
  status = qk_comm_agree(comm, reserve(op, gamma5, taken(&h, n), &e), err);
  if (status != QK_OK) goto end;
  status = read_blocks(op, r, &h, number, e, err);
  const double ratio = ratio_of(&h, identity);
  if (ratio > 0) shift_values(e, ratio);

end:
  qk_eigen_reader_close(r);
  if (status == QK_OK) {
    *eigen = e;
    return QK_OK;
  }
  qk_eigen_destroy(e);
  return qk_fail(err, status, "%s", qk_status_text(status));
}

qk_status_t qk_deflate_file_read(qk_operator_t *op, const char *path,
                                 const qk_mg_identity_t *identity, int n, bool own,
                                 qk_eigen_t **eigen, qk_err_t *err) {
  return read_file(op, path, identity, false, n, own, eigen, err);
}

qk_status_t qk_deflate_file_read_gamma5(qk_operator_t *op, const char *path,
                                        const qk_mg_identity_t *identity, int n, qk_eigen_t **eigen,
                                        qk_err_t *err) {
  return read_file(op, path, identity, true, n, false, eigen, err);
}

/* ---- compressed vectors ---------------------------------------------------------------------- */

static qk_status_t read_basis(qk_eigen_reader_t *r, const qk_eigen_header_t *h, passage_t *p,
                              qk_coherent_t *basis, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int b = 0; b < basis->nblock && status == QK_OK; b++)
    status = read_block(r, h, p, b, basis->v[b], err);
  return status;
}

static qk_status_t read_coefficients(qk_eigen_reader_t *r, const qk_eigen_header_t *h, passage_t *p,
                                     const double *number, qk_compressed_t *z, qk_err_t *err) {
  const int n = qk_compressed_count(z), first = h->problem.cut.n / B;
  double value[QK_EIGEN_MAX], residual[QK_EIGEN_MAX];
  for (int b = 0; b * B < n; b++) {
    qk_status_t status = qk_eigen_reader_block(r, first + b, p->part, err);
    if (status == QK_OK)
      status = qk_eigen_part_set_coefficients(h, p->part, qk_compressed_block(z, b));
    if (status != QK_OK) return status;
  }
  for (int i = 0; i < n; i++) {
    value[i] = number[2 * i];
    residual[i] = number[2 * i + 1];
  }
  qk_compressed_set_values(z, value, residual);
  return QK_OK;
}

/* Vectors of the last block beyond those that are wanted would be divided by roots that are not
 * theirs: they count as wanted. The set takes the basis. */
static qk_status_t make_set(qk_operator_t *op, qk_work_t *work, qk_eigen_reader_t *r,
                            const qk_eigen_header_t *h, const double *number, int n, passage_t *p,
                            qk_coherent_t **basis, qk_compressed_t **set, qk_err_t *err) {
  qk_status_t status = read_basis(r, h, p, *basis, err);
  if (status != QK_OK) return status;
  status = qk_compressed_create(op, work, *basis, &h->smoother, taken(h, n), set, err);
  if (status != QK_OK) return status;
  *basis = NULL;
  return read_coefficients(r, h, p, number, *set, err);
}

static qk_status_t open_basis(qk_operator_t *op, const qk_eigen_header_t *h, passage_t *p,
                              qk_coherent_t **basis) {
  const qk_status_t status =
      qk_coherent_create(op->dev, op->system, QK_SINGLE, &h->problem.cut, basis);
  return status ? status
                : open_passage(&(*basis)->flat, op->dev->geom, h, QK_SINGLE, op->system, p);
}

static qk_status_t read_set(qk_operator_t *op, qk_work_t *work, qk_eigen_reader_t *r,
                            const qk_eigen_header_t *h, const double *number, int n,
                            qk_compressed_t **set, qk_err_t *err) {
  qk_coherent_t *basis = NULL;
  passage_t p = {0};
  const qk_status_t opened = qk_comm_agree(op->dev->geom->comm, open_basis(op, h, &p, &basis), err);
  const qk_status_t status =
      opened ? opened : make_set(op, work, r, h, number, n, &p, &basis, set, err);
  close_passage(&p);
  qk_coherent_destroy(basis);
  return status;
}

qk_status_t qk_deflate_file_compressed(qk_operator_t *op, qk_work_t *work, const char *path,
                                       const qk_mg_identity_t *identity, int n,
                                       qk_compressed_t **set, qk_err_t *err) {
  const qk_eigen_header_t wanted = describe(op, identity, false, n);
  qk_eigen_header_t h;
  const double *number;
  qk_eigen_reader_t *r = NULL;
  qk_compressed_t *z = NULL;
  qk_status_t status = qk_eigen_reader_open(op->dev->geom, path, NULL, &r, &h, &number, err);
  if (status != QK_OK) return status;
  status = match(&h, &wanted, false, err);
  status = status ? status : read_set(op, work, r, &h, number, n, &z, err);
  qk_eigen_reader_close(r);
  if (status == QK_OK) {
    *set = z;
    return QK_OK;
  }
  qk_compressed_destroy(z);
  return qk_fail(err, status, "%s", qk_status_text(status));
}

/* ---- writing --------------------------------------------------------------------------------- */

static qk_status_t write_blocks(qk_operator_t *op, qk_eigen_writer_t *w, const qk_eigen_header_t *h,
                                const qk_eigen_t *e, qk_err_t *err) {
  passage_t p;
  qk_status_t status = open_passage(e->flat, op->dev->geom, h, QK_SINGLE, op->system, &p);
  status = qk_comm_agree(op->dev->geom->comm, status, err);
  for (int b = 0; b < e->nblock && status == QK_OK; b++) {
    status = qk_eigen_part_get(h, e->block[b], p.part);
    if (status != QK_OK) break;
    status = qk_eigen_writer_block(w, b, p.part, err);
  }
  close_passage(&p);
  return status;
}

qk_status_t qk_deflate_file_write(qk_operator_t *op, const char *path,
                                  const qk_mg_identity_t *identity, const qk_eigen_t *e,
                                  qk_err_t *err) {
  const qk_eigen_header_t h = describe(op, identity, false, e->n);
  double number[2 * QK_EIGEN_MAX];
  qk_eigen_writer_t *w;
  for (int i = 0; i < e->n; i++) {
    number[2 * i] = e->value[i];
    number[2 * i + 1] = e->residual[i];
  }
  qk_status_t status = qk_eigen_writer_open(op->dev->geom, path, &h, &w, err);
  if (status != QK_OK) return status;
  status = write_blocks(op, w, &h, e, err);
  if (status == QK_OK) return qk_eigen_writer_close(w, number, err);
  qk_eigen_writer_abandon(w);
  return status;
}
