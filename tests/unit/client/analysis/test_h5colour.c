/* Field files of colour vectors: no axis of spins. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/client/analysis/h5_test_kit.h"

TestSuite(h5colour, .init = h5t_setup, .fini = h5t_teardown);

enum { REALS = H5T_REALS / 4 };

static const hsize_t colour_shape[6] = {2, 8, 6, 4, 2, 3};

static void write_colours(int bits, int64_t nrhs) {
  static double x[H5T_REALS];
  static float y[REALS];
  qk_err_t err = {0};
  qk_h5meta_t meta = h5t_meta();
  qk_h5file_t *f = NULL;
  meta.site_reals = 6;
  cr_assert_eq(qk_h5file_create(h5t_path, &meta, bits, nrhs, &f, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_h5file_rhs_bytes(f, bits), (size_t)REALS * (size_t)bits / 8);
  for (int64_t r = nrhs - 1; r >= 0; r--) {
    h5t_fill(x, (int)r);
    for (int i = 0; i < REALS; i++) y[i] = (float)x[i];
    cr_assert_eq(qk_h5file_write(f, r, bits == 64 ? (void *)x : (void *)y, &err), QK_OK, "%s",
                 err.text);
  }
  cr_assert_eq(qk_h5file_commit(f, &err), QK_OK, "%s", err.text);
  qk_h5file_close(f);
}

Test(h5colour, colour_vectors_come_back) {
  static double x[REALS], want[H5T_REALS];
  for (int bits = 32; bits <= 64; bits += 32) {
    write_colours(bits, 3);
    qk_h5file_t *f = h5t_open();
    cr_expect(qk_h5file_nrhs(f) == 3 && qk_h5file_bits(f) == bits);
    cr_expect_eq(qk_h5file_meta(f)->site_reals, 6);
    cr_expect_arr_eq(qk_h5file_meta(f)->dims, h5t_dims, sizeof h5t_dims);
    for (int r = 0; r < 3; r++) {
      h5t_fill(want, r);
      cr_assert_eq(qk_h5file_read(f, r, 64, x, NULL), QK_OK);
      for (int i = 0; i < REALS; i++)
        cr_assert_eq(x[i], bits == 64 ? want[i] : (double)(float)want[i]);
    }
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
  const hsize_t four[6] = {2, 8, 6, 4, 2, 4};
  const int six = 6, usual = 24;
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &six);
  h5t_refused(QK_BAD_FORMAT, "7 dimensions and site_reals = 6, expected the 6 dimensions [rhs][t]");
  h5t_foreign("field", 6, four, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &six);
  h5t_refused(QK_BAD_FORMAT, "field ends in [4], expected [3 colours]");
  h5t_foreign("field", 5, colour_shape + 1, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &usual);
  h5t_refused(QK_BAD_FORMAT, "5 dimensions and site_reals = 24, expected the 7 dimensions");
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
