/* h5meta_members.c: what h5meta.h says that needs no HDF5. */
#include <math.h>
#include <string.h>

#include "client/files/h5meta.h"

void qk_h5meta_init(qk_h5meta_t *meta) {
  memset(meta, 0, sizeof *meta);
  meta->kappa = meta->mass = meta->csw = meta->plaquette = NAN;
  meta->tolerance = meta->tolerance_abs = meta->tolerance_hq = NAN;
  meta->site_reals = QK_H5_SITE_REALS;
  for (int i = 0; i < 8; i++) meta->boundary[i] = NAN;
}

void qk_h5column_init(qk_h5column_t *column) {
  memset(column, 0, sizeof *column);
  column->true_residual = column->hq_residual = column->seconds = NAN;
  column->spin = column->colour = column->gamma = -1;
  for (int mu = 0; mu < 4; mu++) column->site[mu] = -1;
}

#define REAL(name, count) QK_H5ATTR(qk_h5meta_t, name, QK_H5_REAL, count)
#define TEXT(name) QK_H5ATTR_TEXT(qk_h5meta_t, name)
static const qk_h5attr_t members[] = {
    QK_H5ATTR(qk_h5meta_t, dims, QK_H5_INT, 4),
    TEXT(kind),
    TEXT(basis),
    TEXT(normalisation),
    TEXT(action),
    QK_H5ATTR(qk_h5meta_t, site_reals, QK_H5_INT, 1),
    QK_H5ATTR(qk_h5meta_t, flavour, QK_H5_INT, 1),
    REAL(kappa, 1),
    REAL(mass, 1),
    REAL(csw, 1),
    REAL(boundary, 8),
    REAL(plaquette, 1),
    REAL(tolerance, 1),
    REAL(tolerance_abs, 1),
    REAL(tolerance_hq, 1),
    TEXT(source),
    TEXT(smear),
    TEXT(links),
    TEXT(sequential),
    TEXT(gauge),
    TEXT(digest),
    TEXT(program),
};
#undef REAL
#undef TEXT

const qk_h5attr_t *qk_h5meta_members(int *n) {
  *n = sizeof members / sizeof members[0];
  return members;
}

bool qk_h5column_status(const char *name, qk_status_t *status) {
#define X(NAME, number, retryable, text)                                                           \
  if (strcmp(name, #NAME) == 0) {                                                                  \
    *status = QK_##NAME;                                                                           \
    return true;                                                                                   \
  }
  QK_STATUS_TABLE(X)
#undef X
  return false;
}
