#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>

#include "client/files/h5file.h"
#include "tests/unit/client/analysis/h5_test_kit.h"

TestSuite(wall, .init = h5t_setup, .fini = h5t_teardown);

enum { NT = 8 };

/* Right-hand side k: |q|^2 = (k + 1) (t + 1), |mid|^2 = that times 1e-3 (t + 2); 1 has no current.
 */
static void fill(qk_wall_t *wall, int t0) {
  qk_wall_init(wall, 2, NT, t0);
  for (int k = 0; k < 2; k++) {
    double quark[NT], midpoint[NT];
    for (int t = 0; t < NT; t++) {
      quark[t] = (k + 1) * (t + 1);
      midpoint[t] = quark[t] * 1e-3 * (t + 2);
    }
    cr_assert(qk_wall_set(wall, k, QK_WALL_QUARK, quark));
    cr_assert(qk_wall_set(wall, k, QK_WALL_MIDPOINT, midpoint));
    if (k == 0) cr_assert(qk_wall_set(wall, k, QK_WALL_AXIAL, quark));
  }
}

Test(wall, residual_mass_is_a_ratio_of_sums_over_right_hand_sides) {
  qk_wall_t wall;
  fill(&wall, 3);
  for (int t = 0; t < NT; t++) {
    cr_expect_eq(qk_wall_total(&wall, QK_WALL_QUARK, t), 3 * (t + 1));
    cr_expect_eq(qk_wall_total(&wall, QK_WALL_AXIAL, t), t + 1, "of those that have it");
    cr_expect_float_eq(qk_wall_ratio(&wall, t), 1e-3 * (t + 2), 1e-15);
  }
  qk_wall_fini(&wall);
}

/* Distances 2 to 6 from t0 = 3: t = 5, 6, 7, 0, 1. */
Test(wall, plateau_is_the_mean_over_distances_from_a_quarter_to_three) {
  qk_wall_t wall;
  qk_plateau_t p;
  fill(&wall, 3);
  cr_assert(qk_wall_plateau(&wall, &p));
  cr_expect(p.first == 2 && p.last == 6);
  cr_expect_float_eq(p.mean, 1e-3 * (7 + 8 + 9 + 2 + 3) / 5, 1e-15);
  cr_expect_float_eq(p.least, 2e-3, 1e-15);
  cr_expect_float_eq(p.most, 9e-3, 1e-15);
  qk_wall_fini(&wall);
}

Test(wall, there_is_no_plateau_without_a_time_or_where_the_quark_is_zero) {
  const double zero[NT] = {0};
  qk_wall_t wall;
  qk_plateau_t p;
  fill(&wall, -1);
  cr_expect_not(qk_wall_plateau(&wall, &p));
  qk_wall_fini(&wall);
  qk_wall_init(&wall, 1, NT, 0);
  cr_expect_not(qk_wall_plateau(&wall, &p), "no sums at all");
  cr_assert(qk_wall_set(&wall, 0, QK_WALL_QUARK, zero));
  cr_assert(qk_wall_set(&wall, 0, QK_WALL_MIDPOINT, zero));
  cr_expect(isnan(qk_wall_ratio(&wall, 0)));
  cr_expect_not(qk_wall_plateau(&wall, &p));
  qk_wall_fini(&wall);
}

/* A dataset of the group, of n numbers. */
static void read_sums(hid_t file, const char *name, int n, double *out) {
  const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
  cr_assert_geq(set, 0, "%s", name);
  const hid_t space = H5Dget_space(set);
  cr_assert_eq(H5Sget_simple_extent_npoints(space), n, "%s", name);
  cr_assert_geq(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out), 0);
  H5Sclose(space);
  H5Dclose(set);
}

static void write_file(const qk_wall_t *wall) {
  double x[H5T_REALS];
  qk_err_t err = {0};
  qk_h5meta_t meta = h5t_meta();
  qk_h5file_t *f = NULL;
  cr_assert_eq(qk_h5file_create(h5t_path, &meta, 64, 2, &f, &err), QK_OK, "%s", err.text);
  h5t_fill(x, 0);
  for (int r = 0; r < 2; r++) cr_assert_eq(qk_h5file_write(f, r, x, &err), QK_OK);
  qk_h5file_set_wall(f, wall);
  cr_assert_eq(qk_h5file_commit(f, &err), QK_OK, "%s", err.text);
  qk_h5file_close(f);
}

Test(wall, files_have_them_as_a_group) {
  qk_wall_t wall;
  double v[2 * NT];
  fill(&wall, 3);
  write_file(&wall);
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDONLY, H5P_DEFAULT);
  read_sums(file, "wall/quark", 2 * NT, v);
  cr_expect(v[0] == 1 && v[NT + 1] == 4);
  read_sums(file, "wall/axial", 2 * NT, v);
  cr_expect(v[1] == 2 && isnan(v[NT]), "NaN of who has none");
  read_sums(file, "wall/residual_mass", NT, v);
  cr_expect_float_eq(v[4], 6e-3, 1e-15);
  H5Fclose(file);
  qk_h5file_t *f = h5t_open(); /* and what was there before is there */
  cr_expect_eq(qk_h5file_nrhs(f), 2);
  qk_h5file_close(f);
  qk_wall_fini(&wall);
}

Test(wall, files_without_sums_have_no_group) {
  qk_wall_t wall;
  qk_wall_init(&wall, 2, NT, 0);
  write_file(&wall);
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDONLY, H5P_DEFAULT);
  cr_expect_eq(H5Lexists(file, "wall", H5P_DEFAULT), 0);
  H5Fclose(file);
}
