#include "client/files/h5wall.h"

#include <math.h>
#include <stdlib.h>

#include "client/files/h5kit.h"

static const char *const names[QK_WALL_KINDS] = {"quark", "midpoint", "axial"};

/* Numbers of `rank` extents. */
static bool write_dataset(hid_t group, const char *name, int rank, const hsize_t *extent,
                          const double *data) {
  const hid_t space = H5Screate_simple(rank, extent, NULL);
  const hid_t set = space < 0 ? -1
                              : H5Dcreate2(group, name, H5T_IEEE_F64LE, space, H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT);
  const bool good =
      set >= 0 && H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
  if (set >= 0 && H5Dclose(set) < 0) return false;
  if (space >= 0) H5Sclose(space);
  return good;
}

static bool write_ratio(hid_t group, const qk_wall_t *wall) {
  const hsize_t extent = (hsize_t)wall->nt;
  double *ratio = malloc((size_t)wall->nt * sizeof *ratio);
  for (int t = 0; t < wall->nt && ratio; t++) ratio[t] = qk_wall_ratio(wall, t);
  const bool good = ratio && write_dataset(group, "residual_mass", 1, &extent, ratio);
  free(ratio);
  return good;
}

/* Attributes of the group. */
typedef struct said {
  int32_t t0, plateau[2];
  double residual_mass;
} said_t;

static const qk_h5attr_t attributes[] = {
    QK_H5ATTR(said_t, t0, QK_H5_INT, 1),
    QK_H5ATTR(said_t, plateau, QK_H5_INT, 2),
    QK_H5ATTR(said_t, residual_mass, QK_H5_REAL, 1),
};

/* The last two only where there is a plateau. */
static qk_status_t write_attributes(hid_t group, const char *where, const qk_wall_t *wall,
                                    qk_err_t *err) {
  qk_plateau_t p;
  said_t said = {.t0 = wall->t0, .residual_mass = NAN};
  const bool flat = qk_wall_has(wall, QK_WALL_MIDPOINT) && qk_wall_plateau(wall, &p);
  if (flat) said = (said_t){wall->t0, {p.first, p.last}, p.mean};
  return qk_h5attr_write(group, where, attributes, flat ? 3 : 1, &said, err);
}

qk_status_t qk_h5wall_write(hid_t root, const char *where, const qk_wall_t *wall, qk_err_t *err) {
  const hsize_t extent[2] = {(hsize_t)wall->nrhs, (hsize_t)wall->nt};
  qk_status_t status = QK_OK;
  if (!qk_wall_has(wall, QK_WALL_QUARK)) return QK_OK;
  const hid_t group = H5Gcreate2(root, "wall", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  bool good = group >= 0;
  for (int kind = 0; kind < QK_WALL_KINDS && good; kind++)
    if (qk_wall_has(wall, kind))
      good = write_dataset(group, names[kind], 2, extent, wall->sum[kind]);
  if (good && qk_wall_has(wall, QK_WALL_MIDPOINT)) good = write_ratio(group, wall);
  if (!good) status = qk_h5_fail(err, QK_IO_ERROR, where, "group wall cannot be written");
  if (good) status = write_attributes(group, where, wall, err);
  if (group >= 0) H5Gclose(group);
  return status;
}
