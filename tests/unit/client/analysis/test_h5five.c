/* Field files of five dimensions: an axis of slices before t, and the attribute axes. */
#include <criterion/criterion.h>
#include <string.h>

#include "client/files/fieldfile.h"
#include "tests/unit/client/analysis/h5_test_kit.h"

TestSuite(h5five, .init = h5t_setup, .fini = h5t_teardown);

enum { LS = 3, REALS = LS * H5T_REALS };

static const hsize_t five_shape[8] = {2, LS, 8, 6, 4, 2, 4, 3};

static void fill(double *x, int64_t rhs) {
  for (int s = 0; s < LS; s++) h5t_fill(x + s * H5T_REALS, (int)rhs * LS + s);
}

static void write_five(int bits) {
  qk_h5meta_t meta = h5t_meta();
  meta.slices = LS;
  h5t_write_fields(&meta, bits, 2, REALS, fill);
}

static void add_axes(const char *text) {
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDWR, H5P_DEFAULT), type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, strlen(text));
  const hid_t space = H5Screate(H5S_SCALAR),
              attribute = H5Acreate2(file, "axes", type, space, H5P_DEFAULT, H5P_DEFAULT);
  cr_assert_geq(H5Awrite(attribute, type, text), 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
}

static void five_refused(qk_status_t code, const char *word) {
  qk_err_t err = {0};
  qk_fieldfile_t *f = NULL;
  cr_expect_eq(qk_fieldfile_open_five(h5t_path, NULL, &f, &err), code, "%s", err.text);
  cr_expect(!f && strstr(err.text, h5t_path) && strstr(err.text, word), "\"%s\" has no \"%s\"",
            err.text, word);
}

static int slices_of(int64_t nrhs) {
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  cr_assert_eq(qk_h5file_open_five(h5t_path, NULL, &f, &err), QK_OK, "%s", err.text);
  const int slices = qk_h5file_meta(f)->slices;
  cr_expect(qk_h5file_nrhs(f) == nrhs && qk_h5file_meta(f)->site_reals == 24);
  cr_expect_arr_eq(qk_h5file_meta(f)->dims, h5t_dims, sizeof h5t_dims);
  qk_h5file_close(f);
  return slices;
}

Test(h5five, fields_come_back_with_their_slices) {
  for (int bits = 32; bits <= 64; bits += 32) {
    qk_h5file_t *f = NULL;
    write_five(bits);
    cr_expect_eq(slices_of(2), LS);
    cr_assert_eq(qk_h5file_open_five(h5t_path, NULL, &f, NULL), QK_OK);
    h5t_expect_fields(f, bits, 2, REALS, fill);
    qk_h5file_close(f);
  }
}

Test(h5five, readers_of_four_dimensions_refuse_them_by_name) {
  write_five(64);
  h5t_refused(QK_UNSUPPORTED, "axes = \"rhs s t z y x spin colour\": its fields have five");
}

/* Two slices of them could be two flavours. */
Test(h5five, foreign_fields_are_what_the_reader_asks_for) {
  const hsize_t two[8] = {2, 2, 8, 6, 4, 2, 4, 3};
  h5t_foreign("b", 8, two, H5T_IEEE_F64LE, "r", "i");
  cr_expect_eq(slices_of(2), 2);
  qk_h5file_t *f = h5t_open();
  cr_expect(qk_h5file_meta(f)->site_reals == 48 && qk_h5file_meta(f)->slices == 0);
  qk_h5file_close(f);
  h5t_foreign("b", 7, five_shape + 1, H5T_IEEE_F32BE, "r", "i");
  five_refused(QK_BAD_FORMAT, "0 others with the 8 dimensions [rhs][s]");
  add_axes("rhs s t z y x spin colour");
  cr_expect_eq(slices_of(1), LS, "a single one, as the attribute says");
}

Test(h5five, what_they_are_not_is_refused) {
  const hsize_t many[8] = {1, 1025, 1, 1, 1, 1, 4, 3};
  const int two = 48;
  h5t_write(64, 2);
  five_refused(QK_BAD_FORMAT, "7 dimensions and site_reals = 24, expected the 8 dimensions [rhs]");
  h5t_foreign("field", 8, five_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &two);
  five_refused(QK_UNSUPPORTED, "site_reals = 48");
  h5t_foreign("field", 8, many, H5T_IEEE_F32LE, "r", "i");
  five_refused(QK_BAD_GEOMETRY, "1025 slices in s, must be 1 to 1024");
  h5t_foreign("field", 8, five_shape, H5T_IEEE_F64LE, "r", "i");
  add_axes("rhs t s");
  five_refused(QK_UNSUPPORTED, "axes = \"rhs t s\"");
  h5t_refused(QK_UNSUPPORTED, "axes = \"rhs t s\"");
  h5t_foreign("field", 8, five_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("axes", 1, &two);
  five_refused(QK_BAD_FORMAT, "axes");
}

Test(h5five, what_cannot_be_written_is_refused) {
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  qk_h5meta_t meta = h5t_meta();
  meta.slices = QK_H5FILE_MAX_SLICES + 1;
  cr_expect_eq(qk_h5file_create(h5t_path, &meta, 64, 1, &f, &err), QK_BAD_GEOMETRY);
  err = (qk_err_t){0};
  meta.slices = 2;
  cr_expect_eq(qk_field_format_check(QK_FIELD_SCIDAC, h5t_path, &meta, 12, &err), QK_UNSUPPORTED);
  cr_expect_not_null(strstr(err.text, "of five (--five-d); write --format=hdf5"), "%s", err.text);
  err = (qk_err_t){0};
  meta.site_reals = 48;
  cr_expect_eq(qk_h5file_create(h5t_path, &meta, 64, 1, &f, &err), QK_UNSUPPORTED);
  cr_expect(!f && strstr(err.text, "site_reals = 48"), "%s", err.text);
}
