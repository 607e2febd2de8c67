#include "tests/fuzz/session/session_field.h"

#include <string.h>

#include "daemon/front/job/bricks.h"

size_t field_grid(uint8_t how, uint32_t grid[4]) {
  static const uint32_t parts[4][4] = {{1, 1, 1, 2}, {2, 1, 1, 2}, {1, 2, 1, 1}, {1, 1, 1, 1}};
  memcpy(grid, parts[how % 4], sizeof parts[0]);
  if (how % 64 == 62) grid[2] = 0;
  if (how % 64 == 61) grid[1] = 3;
  return how % 64 == 63 ? 3 : 4;
}

void field_open_fill(uint8_t how, field_open_t *open) {
  Quark__FieldOpen *f = &open->f;
  const bool vectors = how == 255 || how % 32 / 2 == 5;
  *open = (field_open_t){.f = QUARK__FIELD_OPEN__INIT, .dims = {2, 2, 2, how % 16 == 15 ? 6 : 4}};
  f->kind = vectors    ? QUARK__FIELD_KIND__FIELD_VECTORS
            : how & 64 ? QUARK__FIELD_KIND__FIELD_CLOVER
                       : QUARK__FIELD_KIND__FIELD_GAUGE;
  f->n_dims = how == 254 ? 3 : 4;
  f->dims = open->dims;
  f->dtype = how & 1 ? QUARK__DTYPE__DTYPE_F64 : QUARK__DTYPE__DTYPE_F32;
  f->has_reals = how & 2;
  f->reals = how == 253 ? 17 : vectors ? 6 : how & 64 ? 72 : 12;
  f->has_count = vectors;
  f->count = how == 255 ? 5000 : vectors ? 1 + how / 64 : 0;
  f->has_digest = how & 4;
  f->digest = how & 8 ? 7 : 0;
  f->has_keep_ms = how & 16;
  f->keep_ms = how & 32 ? 2000 : 90000;
  if (how & 128 && how < 252) f->n_grid = field_grid(how % 16 / 4, open->grid);
  f->grid = open->grid;
  f->has_part = how & 32 && f->n_grid > 0;
}

/* A real number of the field, which is number `at` of what the client sends. Vector n has its n-th
 * number of the first part alone. */
static double real_of(const Quark__FieldOpen *field, const qk_job_t *job, uint64_t at) {
  if (field->kind != QUARK__FIELD_KIND__FIELD_VECTORS)
    return at % field->reals % 8 == 0; /* 0, 8 and 16 are the diagonal */
  const uint64_t size = job->dtype == QUARK__DTYPE__DTYPE_F64 ? 8 : 4;
  const uint64_t slices = field->dims[3] / (field->n_grid > 0 ? field->grid[3] : 1);
  const uint64_t vector = job->part_bytes / size / (slices * field->count);
  return at % vector == at / vector % field->count && job->part <= 0;
}

void field_fill(const qk_job_t *job, uint32_t rhs, uint64_t offset, uint8_t *to, size_t bytes) {
  const bool f64 = job->dtype == QUARK__DTYPE__DTYPE_F64;
  const Quark__FieldOpen *field =
      job->joined ? (job->whole ? job->whole->field : NULL) : job->field;
  const uint64_t real = f64 ? 8 : 4;
  memset(to, field ? 0 : (int)rhs, bytes);
  for (uint64_t at = (offset + real - 1) / real; field && (at + 1) * real <= offset + bytes; at++) {
    const double x = real_of(field, job, at);
    const float y = (float)x;
    memcpy(to + at * real - offset, f64 ? (const void *)&x : &y, real);
  }
}
