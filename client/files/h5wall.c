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

/* ---- reading ---- */

/* A dataset [nrhs][nt], where it is there. */
static qk_status_t read_sums(hid_t group, const char *where, int kind, double *room,
                             qk_wall_t *wall, qk_err_t *err) {
  hsize_t extent[2] = {0, 0};
  hid_t set;
  if (H5Lexists(group, names[kind], H5P_DEFAULT) <= 0) return QK_OK;
  qk_status_t status = qk_h5_dataset(group, where, names[kind], &set, err);
  if (status != QK_OK) return status;
  const hid_t space = H5Dget_space(set);
  if (space >= 0 && H5Sget_simple_extent_ndims(space) == 2)
    H5Sget_simple_extent_dims(space, extent, NULL);
  if (extent[0] != (hsize_t)wall->nrhs || extent[1] != (hsize_t)wall->nt)
    status = qk_fail(err, QK_BAD_FORMAT, "%s: dataset wall/%s is [%llu][%llu], expected [%lld][%d]",
                     where, names[kind], (unsigned long long)extent[0],
                     (unsigned long long)extent[1], (long long)wall->nrhs, wall->nt);
  else if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, room) < 0)
    status = qk_h5_fail(err, QK_BAD_FORMAT, where, "dataset wall/%s cannot be read", names[kind]);
  for (int64_t k = 0; k < wall->nrhs && status == QK_OK; k++)
    if (!qk_wall_set(wall, k, kind, room + k * wall->nt))
      status = qk_fail(err, QK_NO_MEMORY, "%s: no memory for sums", where);
  if (space >= 0) H5Sclose(space);
  H5Dclose(set);
  return status;
}

qk_status_t qk_h5wall_read(hid_t at, const char *where, int64_t nrhs, int nt, qk_wall_t *wall,
                           qk_err_t *err) {
  said_t said = {.t0 = -1};
  hid_t group;
  qk_wall_init(wall, nrhs, nt, -1);
  if (H5Lexists(at, "wall", H5P_DEFAULT) <= 0) return QK_OK;
  qk_status_t status = qk_h5_group(at, where, "wall", &group, err);
  if (status != QK_OK) return status;
  double *room = malloc((size_t)nrhs * (size_t)nt * sizeof *room);
  if (!room) status = qk_fail(err, QK_NO_MEMORY, "%s: no memory for sums", where);
  if (status == QK_OK) status = qk_h5attr_read(group, where, attributes, 1, &said, err);
  for (int kind = 0; kind < QK_WALL_KINDS && status == QK_OK; kind++)
    status = read_sums(group, where, kind, room, wall, err);
  wall->t0 = said.t0 >= 0 && said.t0 < nt ? said.t0 : -1;
  free(room);
  H5Gclose(group);
  if (status != QK_OK) qk_wall_fini(wall);
  return status;
}
