#include "daemon/front/storage/brick.h"

#include "daemon/front/storage/holes.h"

void qk_brick_make(const uint32_t dims[4], const uint32_t grid[4], uint32_t part,
                   uint64_t site_bytes, uint32_t vectors, qk_brick_t *b) {
  const uint32_t whole[QK_BRICK_DIMS] = {dims[0], dims[1], dims[2], dims[3], vectors};
  uint32_t extent[QK_BRICK_DIMS] = {0, 0, 0, 0, vectors};
  uint64_t step = site_bytes;
  int first = 0;
  *b = (qk_brick_t){.run = site_bytes};
  for (int d = 0; d < QK_BRICK_DIMS; d++) {
    if (d < 4) {
      extent[d] = dims[d] / grid[d];
      b->origin += step * extent[d] * (part % grid[d]);
      part /= grid[d];
    }
    b->count[d] = extent[d];
    b->step[d] = step;
    step *= whole[d];
  }
  /* directions that are whole, and the first one that is not, go in one run */
  while (first < QK_BRICK_DIMS) {
    const int d = first++;
    b->run *= extent[d];
    b->count[d] = 1;
    if (extent[d] < whole[d]) break;
  }
  b->bytes = site_bytes;
  for (int d = 0; d < QK_BRICK_DIMS; d++) b->bytes *= extent[d];
}

uint64_t qk_brick_find(const qk_brick_t *b, uint64_t offset, uint64_t *at) {
  *at = offset;
  if (b->run == 0) return UINT64_MAX;
  uint64_t n = offset / b->run;
  const uint64_t within = offset % b->run;
  *at = b->origin + within;
  for (int d = 0; d < QK_BRICK_DIMS; d++) {
    *at += n % b->count[d] * b->step[d];
    n /= b->count[d];
  }
  return b->run - within;
}

qk_status_t qk_brick_write(const qk_brick_t *b, int segment, const void *data, size_t bytes,
                           uint64_t offset, qk_err_t *err) {
  const uint8_t *from = data;
  qk_status_t s = QK_OK;
  while (bytes > 0 && s == QK_OK) {
    uint64_t at;
    const uint64_t run = qk_brick_find(b, offset, &at);
    const size_t n = run < bytes ? run : bytes;
    s = qk_shm_write(segment, from, n, at, err);
    from += n;
    offset += n;
    bytes -= n;
  }
  return s;
}

qk_status_t qk_brick_zero(const qk_brick_t *b, int segment, uint64_t bytes, uint64_t offset,
                          bool dense, qk_err_t *err) {
  qk_hole_t known = {0};
  qk_status_t s = QK_OK;
  while (bytes > 0 && s == QK_OK) {
    uint64_t at;
    const uint64_t run = qk_brick_find(b, offset, &at), n = run < bytes ? run : bytes;
    s = dense ? qk_holes_fill(segment, at, n, err) : qk_holes_clear(segment, at, n, &known, err);
    offset += n;
    bytes -= n;
  }
  return s;
}
