/* Field files of colour vectors: no axis of spins. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/client/analysis/h5_test_kit.h"

TestSuite(h5colour, .init = h5t_setup, .fini = h5t_teardown);

enum { REALS = H5T_REALS / 4 };

static const hsize_t colour_shape[6] = {2, 8, 6, 4, 2, 3};

static void fill(double *x, int64_t rhs) {
  static double usual[H5T_REALS];
  h5t_fill(usual, (int)rhs);
  memcpy(x, usual, REALS * sizeof *x);
}

static void write_colours(int bits, int64_t nrhs) {
  qk_h5meta_t meta = h5t_meta();
  meta.site_reals = 6;
  h5t_write_fields(&meta, bits, nrhs, REALS, fill);
}

Test(h5colour, colour_vectors_come_back) {
  for (int bits = 32; bits <= 64; bits += 32) {
    write_colours(bits, 3);
    qk_h5file_t *f = h5t_open();
    cr_expect(qk_h5file_nrhs(f) == 3 && qk_h5file_bits(f) == bits);
    cr_expect_eq(qk_h5file_meta(f)->site_reals, 6);
    cr_expect_arr_eq(qk_h5file_meta(f)->dims, h5t_dims, sizeof h5t_dims);
    h5t_expect_fields(f, bits, 3, REALS, fill);
    qk_h5file_close(f);
  }
}

/* The axes as h5py sees them, and one chunk a right-hand side. */
Test(h5colour, there_is_no_axis_of_spins) {
  const hsize_t want[6] = {1, 8, 6, 4, 2, 3};
  hsize_t extent[6], chunk[6];
  write_colours(64, 2);
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDONLY, H5P_DEFAULT),
              set = H5Dopen2(file, "field", H5P_DEFAULT), space = H5Dget_space(set),
              create = H5Dget_create_plist(set);
  cr_assert_eq(H5Sget_simple_extent_ndims(space), 6);
  cr_assert_eq(H5Sget_simple_extent_dims(space, extent, NULL), 6);
  cr_assert_eq(H5Pget_chunk(create, 6, chunk), 6);
  cr_expect_arr_eq(extent, colour_shape, sizeof extent);
  cr_expect_arr_eq(chunk, want, sizeof want);
  H5Pclose(create);
  H5Sclose(space);
  H5Dclose(set);
  H5Fclose(file);
}

/* Six dimensions are one right-hand side of spin and colour, unless the attribute says that they
 * are not. */
Test(h5colour, foreign_ones_say_that_they_are_colour_vectors) {
  const int six = 6;
  static float x[REALS];
  h5t_foreign("field", 6, h5t_shape + 1, H5T_IEEE_F64LE, "r", "i");
  qk_h5file_t *f = h5t_open();
  cr_expect(qk_h5file_meta(f)->site_reals == 24 && qk_h5file_nrhs(f) == 1);
  qk_h5file_close(f);
  h5t_foreign("sources", 6, colour_shape, H5T_IEEE_F64BE, "r", "i");
  h5t_refused(QK_BAD_FORMAT, "field ends in [2][3], expected [4 spins][3 colours]");
  h5t_foreign("sources", 6, colour_shape, H5T_IEEE_F64BE, "r", "i");
  h5t_set_numbers("site_reals", 1, &six);
  f = h5t_open();
  cr_expect(qk_h5file_meta(f)->site_reals == 6 && qk_h5file_nrhs(f) == 2);
  qk_h5file_close(f);
  h5t_foreign("sources", 5, colour_shape + 1, H5T_IEEE_F32LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &six);
  f = h5t_open();
  cr_expect(qk_h5file_meta(f)->site_reals == 6 && qk_h5file_nrhs(f) == 1, "one of them");
  cr_expect_eq(qk_h5file_rhs_bytes(f, 32), sizeof x);
  cr_expect_eq(qk_h5file_read(f, 0, 32, x, NULL), QK_OK);
  qk_h5file_close(f);
}

Test(h5colour, axes_and_site_reals_must_agree) {
  static const hsize_t four[6] = {2, 8, 6, 4, 2, 4};
  static const struct {
    int rank, site_reals;
    const hsize_t *shape;
    const char *words;
  } row[] = {
      {7, 6, h5t_shape, "7 dimensions and site_reals = 6, expected the 6 dimensions [rhs][t]"},
      {6, 6, four, "field ends in [4], expected [3 colours]"},
      {5, 24, colour_shape + 1, "5 dimensions and site_reals = 24, expected the 7 dimensions"}};
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
    h5t_foreign("field", row[i].rank, row[i].shape, H5T_IEEE_F64LE, "r", "i");
    h5t_set_numbers("site_reals", 1, &row[i].site_reals);
    h5t_refused(QK_BAD_FORMAT, row[i].words);
  }
}

Test(h5colour, has_no_fifth_dimension) {
  const int six = 6;
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  qk_h5meta_t meta = h5t_meta();
  meta.site_reals = 6;
  meta.slices = 4;
  cr_expect_eq(qk_h5file_create(h5t_path, &meta, 64, 1, &f, &err), QK_UNSUPPORTED);
  h5t_foreign("field", 6, colour_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &six);
  cr_expect_eq(qk_h5file_open_five(h5t_path, NULL, &f, &err), QK_UNSUPPORTED);
  cr_expect(!f && strstr(err.text, "site_reals = 6"), "%s", err.text);
}
