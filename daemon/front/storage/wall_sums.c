#include "daemon/front/storage/wall_sums.h"

#include <math.h>
#include <stdbool.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "proto/limits.h"

_Static_assert(QK_WALL_SUMS_BYTES > 3 * (8 * QK_WALL_TIMES_MAX + 16), "all sums and their headers");

static bool are_numbers(const double *v, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isfinite(v[i])) return false;
  return true;
}

static bool fits(const Quark__WallSums *m) {
  const size_t n = m->n_quark;
  return n >= 1 && n <= QK_WALL_TIMES_MAX && (m->n_midpoint == n || m->n_midpoint == 0) &&
         (m->n_axial == n || m->n_axial == 0) && are_numbers(m->quark, n) &&
         are_numbers(m->midpoint, m->n_midpoint) && are_numbers(m->axial, m->n_axial);
}

qk_wall_sums_t *qk_wall_sums_pack(const Quark__WallSums *m) {
  if (!m || !fits(m)) return NULL;
  const Quark__WallSums plain = {.base = PROTOBUF_C_MESSAGE_INIT(&quark__wall_sums__descriptor),
                                 .n_quark = m->n_quark,
                                 .quark = m->quark,
                                 .n_midpoint = m->n_midpoint,
                                 .midpoint = m->midpoint,
                                 .n_axial = m->n_axial,
                                 .axial = m->axial};
  const size_t bytes = quark__wall_sums__get_packed_size(&plain);
  QK_ASSERT(bytes <= QK_WALL_SUMS_BYTES);
  qk_wall_sums_t *sums = qk_malloc(sizeof *sums + bytes);
  if (!sums) return NULL;
  *sums = (qk_wall_sums_t){.holders = 1, .bytes = bytes};
  quark__wall_sums__pack(&plain, sums->packed);
  return sums;
}

qk_wall_sums_t *qk_wall_sums_read(const uint8_t *packed, size_t bytes) {
  if (bytes > QK_WALL_SUMS_BYTES) return NULL;
  Quark__WallSums *m = quark__wall_sums__unpack(NULL, bytes, packed);
  if (!m) return NULL;
  qk_wall_sums_t *sums = qk_wall_sums_pack(m);
  quark__wall_sums__free_unpacked(m, NULL);
  return sums;
}

qk_wall_sums_t *qk_wall_sums_hold(qk_wall_sums_t *sums) {
  if (sums) sums->holders++;
  return sums;
}

void qk_wall_sums_drop(qk_wall_sums_t **sums) {
  if (*sums && --(*sums)->holders == 0) qk_free(*sums);
  *sums = NULL;
}

Quark__WallSums *qk_wall_sums_unpack(const qk_wall_sums_t *sums) {
  return sums ? quark__wall_sums__unpack(NULL, sums->bytes, sums->packed) : NULL;
}
