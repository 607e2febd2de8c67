#include "proto/shape.h"

#include <string.h>

qk_shape_t qk_shape_usual(void) {
  return (qk_shape_t){.site_reals = QK_SITE_REALS, .columns = QK_PROPAGATOR_COLUMNS};
}

bool qk_shape_is_usual(const qk_shape_t *shape) {
  return shape->site_reals == QK_SITE_REALS && shape->columns == QK_PROPAGATOR_COLUMNS;
}

bool qk_shape_same(const qk_shape_t *a, const qk_shape_t *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

const char *qk_shape_check(const qk_shape_t *shape) {
  uint64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    volume *= shape->dims[mu];
    if (volume < 1 || volume > INT32_MAX) return "impossible extents of the lattice";
  }
  if (shape->site_reals < 2 || shape->site_reals > QK_SITE_REALS_MAX || shape->site_reals % 2 != 0)
    return "impossible number of reals a site";
  if (shape->columns < 1 || shape->columns > shape->site_reals / 2)
    return "impossible number of columns";
  return NULL;
}

uint64_t qk_shape_sites(const qk_shape_t *shape) {
  uint64_t sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= shape->dims[mu];
  return sites;
}
