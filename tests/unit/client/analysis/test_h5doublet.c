/* Field files of doublets: an axis of two flavours before t. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/analysis/correlator.h"
#include "tests/unit/client/analysis/h5_test_kit.h"

TestSuite(h5doublet, .init = h5t_setup, .fini = h5t_teardown);

enum { SLICE = 16 * 16 * 16 * 24, SLICES = 88 }; /* 85 would fit a chunk of doubles */

static const hsize_t two_shape[8] = {2, 2, 8, 6, 4, 2, 4, 3};

/* Two right-hand sides of both flavours, and of the lower alone. */
static void write_doublet(int bits) {
  qk_err_t err = {0};
  qk_h5meta_t meta = h5t_meta();
  qk_h5file_t *f = NULL;
  meta.site_reals = 48;
  cr_assert_eq(qk_h5file_create(h5t_path, &meta, bits, 2, &f, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_h5file_rhs_bytes(f, bits), (size_t)2 * H5T_REALS * (size_t)bits / 8);
  static double x[2 * H5T_REALS];
  static float y[2 * H5T_REALS];
  for (int r = 1; r >= 0; r--) {
    h5t_fill(x, 2 * r);
    h5t_fill(x + H5T_REALS, 2 * r + 1);
    for (int i = 0; i < 2 * H5T_REALS; i++) y[i] = (float)x[i];
    cr_assert_eq(qk_h5file_write(f, r, bits == 64 ? (void *)x : (void *)y, &err), QK_OK, "%s",
                 err.text);
    qk_h5column_t c;
    qk_h5column_init(&c);
    cr_expect_eq(c.flavour, 0);
    c.flavour = -r;
    cr_assert_eq(qk_h5file_set_column(f, r, &c, &err), QK_OK);
  }
  cr_assert_eq(qk_h5file_commit(f, &err), QK_OK, "%s", err.text);
  qk_h5file_close(f);
}

Test(h5doublet, doublets_come_back_with_their_flavours) {
  for (int bits = 32; bits <= 64; bits += 32) {
    static double x[2 * H5T_REALS], want[H5T_REALS];
    write_doublet(bits);
    qk_h5file_t *f = h5t_open();
    cr_expect(qk_h5file_nrhs(f) == 2 && qk_h5file_bits(f) == bits);
    cr_expect_eq(qk_h5file_meta(f)->site_reals, 48);
    cr_expect_arr_eq(qk_h5file_meta(f)->dims, h5t_dims, sizeof h5t_dims);
    for (int r = 0; r < 2; r++) {
      qk_h5column_t c;
      cr_assert_eq(qk_h5file_read(f, r, 64, x, NULL), QK_OK);
      for (int k = 0; k < 2; k++) {
        h5t_fill(want, 2 * r + k);
        for (int i = 0; i < H5T_REALS; i++)
          cr_assert_eq(x[k * H5T_REALS + i], bits == 64 ? want[i] : (double)(float)want[i]);
      }
      cr_assert_eq(qk_h5file_column(f, r, &c, NULL), QK_OK);
      cr_expect_eq(c.flavour, -r);
    }
    qk_h5file_close(f);
  }
}

/* The axes as h5py sees them, and one chunk a flavour; usual files have no word of flavours. */
Test(h5doublet, the_axis_of_flavours_stands_before_t) {
  const hsize_t want[8] = {1, 1, 8, 6, 4, 2, 4, 3};
  hsize_t extent[8], chunk[8];
  write_doublet(64);
  for (int two = 1; two >= 0; two--) {
    const int rank = two ? 8 : 7;
    if (!two) {
      unlink(h5t_path);
      h5t_write(64, 2);
    }
    const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDONLY, H5P_DEFAULT),
                set = H5Dopen2(file, "field", H5P_DEFAULT), space = H5Dget_space(set),
                create = H5Dget_create_plist(set), columns = H5Dopen2(file, "columns", H5P_DEFAULT),
                type = H5Dget_type(columns);
    cr_assert_eq(H5Sget_simple_extent_dims(space, extent, NULL), rank);
    cr_assert_eq(H5Pget_chunk(create, 8, chunk), rank);
    cr_expect_arr_eq(extent, two ? two_shape : h5t_shape, (size_t)rank * sizeof *extent);
    if (two) cr_expect_arr_eq(chunk, want, sizeof want);
    cr_expect_eq(H5Tget_nmembers(type), two ? 14 : 13);
    cr_expect_eq(H5Tget_member_index(type, "flavour") >= 0, two);
    H5Tclose(type);
    H5Dclose(columns);
    H5Pclose(create);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
  }
}

Test(h5doublet, foreign_doublets_are_known_by_their_axes) {
  const int two = 48;
  h5t_foreign("field", 8, two_shape, H5T_IEEE_F64LE, "r", "i");
  qk_h5file_t *f = h5t_open();
  cr_expect(qk_h5file_meta(f)->site_reals == 48 && qk_h5file_nrhs(f) == 2);
  qk_h5file_close(f);
  h5t_foreign("sources", 7, two_shape + 1, H5T_IEEE_F32BE, "r", "i");
  f = h5t_open();
  cr_expect(qk_h5file_meta(f)->site_reals == 24 && qk_h5file_nrhs(f) == 2, "two of one flavour");
  qk_h5file_close(f);
  h5t_set_numbers("site_reals", 1, &two);
  f = h5t_open();
  cr_expect(qk_h5file_meta(f)->site_reals == 48 && qk_h5file_nrhs(f) == 1, "one of two");
  static float x[2 * H5T_REALS];
  cr_expect_eq(qk_h5file_rhs_bytes(f, 32), sizeof x);
  cr_expect_eq(qk_h5file_read(f, 0, 32, x, NULL), QK_OK);
  qk_h5file_close(f);
}

Test(h5doublet, axes_and_site_reals_must_agree) {
  const hsize_t three[8] = {2, 3, 8, 6, 4, 2, 4, 3};
  const int usual = 24, two = 48;
  h5t_foreign("field", 8, two_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &usual);
  h5t_refused(QK_BAD_FORMAT, "8 dimensions and site_reals = 24, expected the 7 dimensions [rhs]");
  h5t_foreign("sources", 8, two_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &usual);
  h5t_refused(QK_BAD_FORMAT, "0 others with the 7 dimensions");
  h5t_foreign("field", 7, three + 1, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &two);
  h5t_refused(QK_BAD_FORMAT, "field has 3 flavours");
  h5t_foreign("field", 6, h5t_shape + 1, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &two);
  h5t_refused(QK_BAD_FORMAT, "6 dimensions and site_reals = 48, expected the 8 dimensions");
  h5t_foreign("field", 8, three, H5T_IEEE_F64LE, "r", "i");
  h5t_refused(QK_BAD_FORMAT, "field has 3 flavours, expected 2 in the 8 dimensions [rhs][flavour]");
}

Test(h5doublet, other_site_reals_are_not_written) {
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  qk_h5meta_t meta = h5t_meta();
  meta.site_reals = 8;
  cr_expect_eq(qk_h5file_create(h5t_path, &meta, 64, 1, &f, &err), QK_UNSUPPORTED);
  cr_expect(!f && strstr(err.text, "site_reals = 8") && strstr(err.text, "48"), "%s", err.text);
}

/* Flavours of more than a chunk: 88 slices in two. */
Test(h5doublet, chunks_of_a_doublet_divide_the_extent_of_each_flavour) {
  const hsize_t want[8] = {1, 1, 44, 16, 16, 16, 4, 3};
  const size_t n = (size_t)2 * SLICES * SLICE;
  qk_err_t err = {0};
  qk_h5meta_t meta = h5t_meta();
  qk_h5file_t *f = NULL;
  hsize_t chunk[8];
  meta.dims[0] = meta.dims[1] = meta.dims[2] = 16;
  meta.dims[3] = SLICES;
  meta.site_reals = 48;
  double *x = malloc(n * sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (double)(i % 65521);
  cr_assert_eq(qk_h5file_create(h5t_path, &meta, 64, 2, &f, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_h5file_write(f, 1, x, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_h5file_commit(f, &err), QK_OK, "%s", err.text);
  qk_h5file_close(f);
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDONLY, H5P_DEFAULT),
              set = H5Dopen2(file, "field", H5P_DEFAULT), create = H5Dget_create_plist(set);
  cr_assert_eq(H5Pget_chunk(create, 8, chunk), 8);
  cr_expect_arr_eq(chunk, want, sizeof want);
  H5Pclose(create);
  H5Dclose(set);
  H5Fclose(file);
  f = h5t_open();
  for (int64_t rhs = 0; rhs < 2; rhs++) {
    memset(x, 0xff, n * sizeof *x);
    cr_assert_eq(qk_h5file_read(f, rhs, 64, x, NULL), QK_OK);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) wrong += x[i] != (rhs == 1 ? (double)(i % 65521) : 0);
    cr_expect_eq(wrong, 0u, "right-hand side %lld: %zu numbers", (long long)rhs, wrong);
  }
  qk_h5file_close(f);
  free(x);
}

Test(h5doublet, is_not_contracted) {
  qk_err_t err = {0};
  qk_correlator_t corr = {0};
  write_doublet(32);
  qk_fieldfile_t *f = NULL;
  cr_assert_eq(qk_fieldfile_open(h5t_path, NULL, &f, &err), QK_OK, "%s", err.text);
  cr_expect_eq(qk_correlator_compute(f, "pion", &corr, &err), QK_UNSUPPORTED);
  cr_expect(!corr.c && strstr(err.text, "two flavours of a doublet"), "%s", err.text);
  qk_fieldfile_close(f);
}
