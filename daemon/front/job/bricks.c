#include "daemon/front/job/bricks.h"

#include <string.h>
#include <sys/random.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

/* ---- the grid ------------------------------------------------------------------------------ */

/* 0: none, or none that can be. */
static uint64_t count_of(size_t n, const uint32_t *grid) {
  uint64_t count = n == 4;
  for (size_t mu = 0; mu < n && count <= QK_PARTS_MAX; mu++) count *= grid[mu];
  return count <= QK_PARTS_MAX ? count : 0;
}

static qk_status_t check_extent(int mu, uint32_t extent, uint32_t parts, bool parity,
                                qk_err_t *err) {
  if (extent % parts != 0)
    return qk_fail(err, QK_BAD_GEOMETRY, "grid: the extent of %c is %u, not a multiple of %u",
                   "xyzt"[mu], extent, parts);
  if (parity && extent / parts % 2 != 0)
    return qk_fail(err, QK_BAD_GEOMETRY,
                   "grid: a part has the extent %u in %c, which must be even with a parity",
                   extent / parts, "xyzt"[mu]);
  return QK_OK;
}

qk_status_t qk_bricks_check(size_t n, const uint32_t *grid, const uint32_t *part,
                            const uint32_t dims[4], bool parity, qk_err_t *err) {
  if (n == 0 && !part) return QK_OK;
  if (n == 0) return qk_fail(err, QK_BAD_ARGUMENT, "part = %u needs a grid", *part);
  if (n != 4) return qk_fail(err, QK_BAD_ARGUMENT, "grid of %zu numbers: 4 are needed", n);
  for (int mu = 0; mu < 4; mu++)
    if (grid[mu] == 0)
      return qk_fail(err, QK_BAD_ARGUMENT, "grid: the parts in %c are 0: must be 1 or more",
                     "xyzt"[mu]);
  const uint64_t count = count_of(n, grid);
  if (count == 0)
    return qk_fail(err, QK_TOO_LARGE, "grid = %u %u %u %u: the limit is %d parts", grid[0], grid[1],
                   grid[2], grid[3], QK_PARTS_MAX);
  if (part && *part >= count)
    return qk_fail(err, QK_BAD_ARGUMENT, "part = %u: the grid has 0 .. %llu", *part,
                   (unsigned long long)count - 1);
  qk_status_t status = QK_OK;
  for (int mu = 0; mu < 4 && status == QK_OK; mu++)
    status = check_extent(mu, dims[mu], grid[mu], parity, err);
  return status;
}

int64_t qk_bricks_overhead(size_t n, const uint32_t *grid) {
  const int64_t count = (int64_t)count_of(n, grid);
  const int64_t slot = sizeof(struct qk_brick_slot) + sizeof(qk_gate_t);
  return count > 0 ? (int64_t)sizeof(qk_bricks_t) + count * slot : 0;
}

bool qk_bricks_create(qk_job_t *job, const uint32_t *grid, const uint32_t *part) {
  const uint32_t count = (uint32_t)count_of(4, grid);
  qk_bricks_t *b = qk_calloc(1, sizeof *b + count * sizeof b->part[0]);
  if (!b) return false;
  job->bricks = b;
  memcpy(b->grid, grid, sizeof b->grid);
  b->count = count;
  b->own = job->part = part ? (int)*part : -1;
  for (uint32_t p = 0; p < count; p++)
    if (!(b->part[p].gate = qk_gate_create())) return false;
  if (getrandom(b->token, sizeof b->token, 0) != (ssize_t)sizeof b->token) return false;
  qk_bricks_find(job, part ? *part : 0, &job->brick);
  job->part_bytes = job->brick.bytes;
  return true;
}

void qk_bricks_destroy(qk_bricks_t *b) {
  if (!b) return;
  QK_ASSERT(b->joined == 0);
  for (uint32_t p = 0; p < b->count; p++) qk_gate_release(b->part[p].gate);
  qk_free(b);
}

void qk_bricks_drop(qk_job_t *job) {
  qk_bricks_destroy(job->bricks);
  job->bricks = NULL;
  job->brick = (qk_brick_t){0};
  job->part = -1;
  job->part_bytes = job->field_bytes;
  job->upload_until = 0;
}

void qk_bricks_find(const qk_job_t *whole, uint32_t part, qk_brick_t *brick) {
  uint32_t dims[4], grid[4];
  uint64_t sites = qk_shape_sites(&whole->shape);
  const uint32_t vectors = whole->field ? 1 : (uint32_t)qk_shape_vectors(&whole->shape);
  memcpy(dims, whole->shape.dims, sizeof dims);
  memcpy(grid, whole->bricks->grid, sizeof grid);
  if (whole->parity != QUARK__PARITY__PARITY_ALL) { /* each row has half its sites */
    dims[0] /= 2;
    sites /= 2;
  }
  if (whole->field && whole->field->kind == QUARK__FIELD_KIND__FIELD_VECTORS) {
    dims[3] *= whole->field->count; /* a part has all vectors of its time slices */
    sites *= whole->field->count;
  }
  qk_brick_make(dims, grid, part, whole->field_bytes / (sites * vectors), vectors, brick);
}

/* ---- solutions ------------------------------------------------------------------------------ */

void qk_bricks_stop(qk_rhs_t *rhs) {
  qk_link_remove(&rhs->send);
  if (qk_rhs_is_leaving(rhs) && rhs->sent == rhs->span_until) rhs->sent = rhs->span_from;
  qk_transfer_leave(rhs->leaving);
  rhs->leaving = NULL;
}

void qk_bricks_stop_sending(qk_rhs_t *whole) {
  const qk_bricks_t *b = whole->job->bricks;
  for (uint32_t p = 0; b && b->joined > 0 && p < b->count; p++)
    if (b->part[p].job) qk_bricks_stop(&b->part[p].job->rhs[whole->index]);
}

/* ---- the stream ---------------------------------------------------------------------------- */

void qk_bricks_arrived(qk_rhs_t *rhs) {
  qk_job_t *job = rhs->job, *whole = job->joined ? job->whole : job;
  if (!whole) return;
  if (job->joined && rhs->state == QK_RHS_UPLOADING) {
    rhs->state = QK_RHS_QUEUED;
    qk_marks_rhs(rhs);
  }
  struct qk_brick_slot *slot = &whole->bricks->part[job->part];
  if (slot->arrived >= rhs->index + 1) return;
  slot->arrived = rhs->index + 1;
  qk_marks_job(whole);
}

uint32_t qk_bricks_missing(const qk_rhs_t *whole) {
  const qk_bricks_t *b = whole->job->bricks;
  uint32_t n = 0;
  for (uint32_t p = 0; p < b->count; p++) n += b->part[p].arrived <= whole->index;
  return n;
}
