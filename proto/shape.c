#include "proto/shape.h"

#include <string.h>

qk_shape_t qk_shape_usual(void) {
  return (qk_shape_t){.site_reals = QK_SITE_REALS, .columns = QK_PROPAGATOR_COLUMNS};
}

qk_shape_t qk_shape_of(const qk_action_row_t *action) {
  const uint32_t vectors = (uint32_t)qk_action_vectors(action);
  if (action->colour)
    return (qk_shape_t){.site_reals = QK_COLOUR_REALS, .columns = QK_COLOUR_COLUMNS};
  return (qk_shape_t){.site_reals = vectors * QK_SITE_REALS,
                      .columns = vectors * QK_PROPAGATOR_COLUMNS};
}

static bool is_of(const qk_shape_t *shape, uint32_t vectors) {
  return shape->site_reals == vectors * QK_SITE_REALS &&
         shape->columns == vectors * QK_PROPAGATOR_COLUMNS;
}

bool qk_shape_is_usual(const qk_shape_t *shape) {
  return is_of(shape, 1);
}

bool qk_shape_is_colour(const qk_shape_t *shape) {
  return shape->site_reals == QK_COLOUR_REALS && shape->columns == QK_COLOUR_COLUMNS;
}

int qk_shape_vectors(const qk_shape_t *shape) {
  return is_of(shape, 2) ? 2 : 1;
}

bool qk_shape_same(const qk_shape_t *a, const qk_shape_t *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

_Static_assert(QK_SITE_REALS_MAX == 1152 && INT32_MAX == 2147483647, "texts below");

const char *qk_shape_check(const qk_shape_t *shape) {
  uint64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    volume *= shape->dims[mu];
    if (volume < 1 || volume > INT32_MAX) return "outside 1 .. 2147483647 sites";
  }
  if (shape->site_reals < 2 || shape->site_reals > QK_SITE_REALS_MAX || shape->site_reals % 2 != 0)
    return "reals a site outside 2 .. 1152, or odd";
  if (shape->columns < 1 || shape->columns > shape->site_reals / 2)
    return "columns outside 1 .. half the reals a site";
  return NULL;
}

uint64_t qk_shape_sites(const qk_shape_t *shape) {
  uint64_t sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= shape->dims[mu];
  return sites;
}
