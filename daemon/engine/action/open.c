#include "daemon/engine/action/open.h"

enum { EXTENT_LEAST = 4 }; /* two slices between the outer ones */

qk_open_t qk_open_of(const qk_values_t *values) {
  const double cf = qk_value(values, "open");
  return cf > 0 ? (qk_open_t){.is = 1, .edge = cf - 1} : (qk_open_t){0};
}

qk_status_t qk_open_fits(const qk_values_t *values, int link_reals, int extent_t, qk_err_t *err) {
  if (!qk_open_of(values).is) return QK_OK;
  if (link_reals == 8)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "link_reals = 8: must be 18 or 12 with an open boundary (open = %.15g), as 8 "
                   "reals cannot hold a link that is 0",
                   qk_value(values, "open"));
  if (extent_t != 0 && extent_t < EXTENT_LEAST)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "open = %.15g: the lattice has %d time slices, and an open boundary needs %d",
                   qk_value(values, "open"), extent_t, EXTENT_LEAST);
  return QK_OK;
}
