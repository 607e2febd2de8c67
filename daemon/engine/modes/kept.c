#include "daemon/engine/modes/kept.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/modes/expand.h"

static size_t part_bytes(const qk_geom_t *geom, const qk_eigen_header_t *h, int block) {
  return (size_t)qk_eigen_part_floats(geom, h, block) * sizeof(float);
}

static int64_t bytes_of(const qk_geom_t *geom, const qk_eigen_header_t *h) {
  int64_t bytes = 0;
  for (int b = 0; b < h->nblock; b++) bytes += (int64_t)part_bytes(geom, h, b);
  return bytes;
}

static bool reserve(qk_kept_t *v, const qk_geom_t *geom, const qk_eigen_header_t *h) {
  v->number = qk_calloc((size_t)h->numbers, sizeof *v->number);
  if (v->number == NULL) return false;
  for (int b = 0; b < h->nblock; b++)
    if ((v->part[b] = qk_malloc(part_bytes(geom, h, b))) == NULL) return false;
  return true;
}

qk_status_t qk_kept_create(const qk_geom_t *geom, const qk_eigen_order_t *order,
                           const qk_eigen_header_t *h, qk_kept_t **kept, qk_err_t *err) {
  qk_kept_t *v = qk_calloc(1, sizeof *v);
  bool there = v != NULL;
  if (there) {
    v->h = *h;
    memcpy(v->name, order->name, sizeof v->name);
    memcpy(v->file, order->file, sizeof v->file);
    there = reserve(v, geom, h);
  }
  qk_status_t status = QK_OK;
  if (!there)
    status = qk_fail(err, QK_NO_MEMORY, "no host memory for %d eigenvectors: %.3g GB a rank",
                     h->problem.count, 1e-9 * (double)bytes_of(geom, h));
  status = qk_comm_agree(geom->comm, status, err);
  if (status == QK_OK)
    *kept = v;
  else
    qk_kept_destroy(v);
  return status;
}

void qk_kept_destroy(qk_kept_t *v) {
  if (!v) return;
  for (int b = 0; b < QK_EIGEN_FILE_BLOCKS; b++) qk_free(v->part[b]);
  qk_free(v->number);
  qk_free(v);
}

int64_t qk_kept_bytes(const qk_geom_t *geom, const qk_kept_t *v) {
  return bytes_of(geom, &v->h) * qk_comm_size(geom->comm);
}

bool qk_kept_is_of(const qk_kept_t *v, const qk_eigen_problem_t *b) {
  const qk_eigen_problem_t *a = &v->h.problem;
  return a->kind == b->kind && a->count == b->count && a->tol == b->tol && a->space == b->space &&
         a->order == b->order && a->restarts == b->restarts && strcmp(a->links, b->links) == 0 &&
         a->cut.n == b->cut.n && memcmp(a->cut.block, b->cut.block, sizeof a->cut.block) == 0;
}

static qk_status_t set(const qk_kept_t *v, const qk_kept_pick_t *pick, const qk_field_t *field) {
  enum { B = QK_EIGEN_BLOCK };
  const float *part = v->part[pick->n / B];
  qk_field_t sites = *field;
  if (qk_eigen_is_compressed(&v->h.problem)) return qk_expand(v, pick, field);
  if (qk_eigen_is_laplacian(&v->h.problem))
    return qk_eigen_part_slices(&v->h, part, pick->n % B, pick->t, pick->spin, field);
  if (!v->h.full) {
    qk_dev_blas(field->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {field->v}});
    sites.v = qk_field_parity(field, QK_EVEN);
  }
  return qk_eigen_part_column(&v->h, part, pick->vector, pick->n % B, &sites);
}

qk_status_t qk_kept_vector(const qk_kept_t *v, const qk_kept_pick_t *pick, const qk_field_t *field,
                           qk_err_t *err) {
  if (pick->n < 0 || pick->n >= v->h.problem.count)
    return qk_fail(err, QK_BAD_ARGUMENT, "vector = %d: %s has 0 to %d", pick->n, v->name,
                   v->h.problem.count - 1);
  if (pick->vector < 0 || pick->vector >= v->h.vectors)
    return qk_fail(err, QK_BAD_ARGUMENT, "slice = %d: vectors of %s have 0 to %d", pick->vector,
                   v->name, v->h.vectors - 1);
  const qk_status_t status = set(v, pick, field);
  if (status == QK_OK) return QK_OK;
  return qk_fail(err, status, "eigenvectors of %s: %s", v->name, qk_status_text(status));
}
