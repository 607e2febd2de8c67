#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/files/h5file.h"
#include "client/files/h5kit.h"
#include "client/files/publish.h"
#include "tests/unit/client/analysis/h5_test_kit.h"

TestSuite(h5file, .init = h5t_setup, .fini = h5t_teardown);

static int folders_synced, folder_errno;

/* In place of the library's: folders may fail. */
int fsync(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode)) return (int)syscall(SYS_fsync, fd);
  folders_synced++;
  errno = folder_errno;
  return folder_errno ? -1 : 0;
}

Test(h5file, doubles_come_back_bit_for_bit) {
  h5t_write(64, 3);
  qk_h5file_t *f = h5t_open();
  double x[H5T_REALS], want[H5T_REALS];
  cr_assert_eq(qk_h5file_nrhs(f), 3);
  cr_assert_eq(qk_h5file_bits(f), 64);
  for (int r = 0; r < 3; r++) {
    h5t_fill(want, r);
    cr_assert_eq(qk_h5file_read(f, r, 64, x, NULL), QK_OK);
    cr_expect_arr_eq(x, want, sizeof x);
  }
  qk_h5file_close(f);
}

Test(h5file, floats_are_stored_as_floats_and_read_as_either) {
  h5t_write(32, 2);
  qk_h5file_t *f = h5t_open();
  double x[H5T_REALS], want[H5T_REALS];
  float y[H5T_REALS];
  cr_assert_eq(qk_h5file_bits(f), 32);
  h5t_fill(want, 1);
  cr_assert_eq(qk_h5file_read(f, 1, 32, y, NULL), QK_OK);
  cr_assert_eq(qk_h5file_read(f, 1, 64, x, NULL), QK_OK);
  for (int i = 0; i < H5T_REALS; i++) {
    cr_assert_eq(y[i], (float)want[i]);
    cr_assert_eq(x[i], (double)y[i]);
  }
  qk_h5file_close(f);
}

Test(h5file, attributes_and_columns_come_back) {
  h5t_write(64, 2);
  qk_h5file_t *f = h5t_open();
  const qk_h5meta_t *m = qk_h5file_meta(f), want = h5t_meta();
  cr_expect_arr_eq(m->dims, want.dims, sizeof want.dims);
  cr_expect_str_eq(m->kind, want.kind);
  cr_expect_str_eq(m->basis, want.basis);
  cr_expect_str_eq(m->gauge, want.gauge);
  cr_expect_str_eq(m->smear, want.smear);
  cr_expect_str_eq(m->links, want.links);
  cr_expect_str_eq(m->sequential, want.sequential);
  cr_expect_eq(m->kappa, want.kappa);
  cr_expect_eq(m->csw, want.csw);
  cr_expect_str_eq(m->action, want.action);
  cr_expect_eq(m->site_reals, 24);
  cr_expect_eq(m->tolerance, want.tolerance);
  cr_expect(m->tolerance_hq == want.tolerance_hq && isnan(m->tolerance_abs));
  cr_expect_arr_eq(m->boundary, want.boundary, sizeof want.boundary);
  cr_expect(isnan(m->plaquette), "an unknown number stays unknown");
  cr_expect_eq(strncmp(m->program, "quarkd ", 7), 0);
  qk_h5column_t c;
  cr_assert_eq(qk_h5file_column(f, 1, &c, NULL), QK_OK);
  cr_expect_eq(c.status, QK_NOT_CONVERGED);
  cr_expect_eq(c.true_residual, 2e-11);
  cr_expect_eq(c.hq_residual, 2e-7);
  cr_expect_eq(c.iterations, 101);
  cr_expect_str_eq(c.source, "point");
  cr_expect_eq(c.site[3], 3);
  cr_expect_eq(c.colour, 1);
  cr_expect_eq(c.seed, UINT64_MAX - 1);
  cr_expect(c.momentum[0] == -1 && c.momentum[2] == 1 && c.every == 4 && c.gamma == 15);
  qk_h5file_close(f);
}

Test(h5file, closing_before_commit_leaves_the_old_file) {
  h5t_write(32, 1);
  struct stat before, after;
  cr_assert_eq(stat(h5t_path, &before), 0);
  qk_h5meta_t meta = h5t_meta();
  qk_h5file_t *f = NULL;
  cr_assert_eq(qk_h5file_create(h5t_path, &meta, 64, 2, &f, NULL), QK_OK);
  qk_h5file_close(f);
  cr_assert_eq(stat(h5t_path, &after), 0);
  cr_expect_eq(before.st_ino, after.st_ino);
}

Test(h5file, bad_arguments_are_refused_and_leave_nothing) {
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  qk_h5meta_t meta = h5t_meta();
  cr_expect_eq(qk_h5file_create(h5t_path, &meta, 16, 1, &f, NULL), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_h5file_create(h5t_path, &meta, 64, 0, &f, NULL), QK_TOO_LARGE);
  cr_expect_eq(qk_h5file_create("/no/such/folder/f.h5", &meta, 64, 1, &f, &err), QK_IO_ERROR);
  cr_expect_not_null(strstr(err.text, "/no/such/folder/f.h5"));
  meta.dims[2] = -4;
  cr_expect_eq(qk_h5file_create(h5t_path, &meta, 64, 1, &f, NULL), QK_BAD_GEOMETRY);
  cr_expect_null(f);
}

Test(h5file, right_hand_sides_outside_the_file_are_refused) {
  h5t_write(64, 2);
  qk_h5file_t *f = h5t_open();
  double x[H5T_REALS];
  cr_expect_eq(qk_h5file_read(f, 2, 64, x, NULL), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_h5file_read(f, -1, 64, x, NULL), QK_BAD_ARGUMENT);
  qk_h5file_close(f);
}

Test(h5file, one_foreign_dataset_without_attributes_is_enough) {
  h5t_foreign("sources", 7, h5t_shape, H5T_IEEE_F64BE, "r", "i");
  qk_h5file_t *f = h5t_open();
  cr_expect_arr_eq(qk_h5file_meta(f)->dims, h5t_dims, sizeof h5t_dims);
  cr_expect_eq(qk_h5file_nrhs(f), 2);
  qk_h5column_t c;
  cr_expect_eq(qk_h5file_column(f, 0, &c, NULL), QK_NOT_FOUND);
  double x[H5T_REALS];
  cr_expect_eq(qk_h5file_read(f, 1, 64, x, NULL), QK_OK);
  qk_h5file_close(f);
}

Test(h5file, columns_that_a_file_leaves_out_are_unknown) {
  h5t_write(64, 2);
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDWR, H5P_DEFAULT);
  const hsize_t extent = 2;
  const int iterations[2] = {7, 8};
  H5Ldelete(file, "columns", H5P_DEFAULT);
  const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof iterations[0]);
  H5Tinsert(type, "iterations", 0, H5T_NATIVE_INT);
  const hid_t space = H5Screate_simple(1, &extent, NULL);
  const hid_t set = H5Dcreate2(file, "columns", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  cr_assert_geq(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, iterations), 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
  qk_h5file_t *f = h5t_open();
  qk_h5column_t c;
  cr_assert_eq(qk_h5file_column(f, 1, &c, NULL), QK_OK);
  cr_expect(c.status == QK_OK && c.iterations == 8 && isnan(c.true_residual) && !*c.source);
  cr_expect(c.gamma == -1 && c.every == 0 && c.momentum[1] == 0 && c.site[0] == -1 && c.spin == -1);
  qk_h5file_close(f);
}

Test(h5file, six_dimensions_are_one_right_hand_side) {
  h5t_foreign("field", 6, h5t_shape + 1, H5T_IEEE_F32LE, "re", "im");
  qk_h5file_t *f = h5t_open();
  cr_expect_eq(qk_h5file_nrhs(f), 1);
  cr_expect_eq(qk_h5file_bits(f), 32);
  float x[H5T_REALS];
  cr_expect_eq(qk_h5file_read(f, 0, 32, x, NULL), QK_OK);
  qk_h5file_close(f);
}

Test(h5file, wrong_shapes_and_types_are_named) {
  const hsize_t five[5] = {8, 6, 4, 2, 12}, colours[7] = {1, 8, 6, 4, 2, 4, 4};
  h5t_foreign("field", 5, five, H5T_IEEE_F64LE, "r", "i");
  h5t_refused(QK_BAD_FORMAT, "5 dimensions");
  h5t_foreign("field", 7, colours, H5T_IEEE_F64LE, "r", "i");
  h5t_refused(QK_BAD_FORMAT, "[4][4]");
  h5t_foreign("field", 7, h5t_shape, H5T_STD_I32LE, "r", "i");
  h5t_refused(QK_BAD_FORMAT, "floats");
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "a", "b");
  h5t_refused(QK_BAD_FORMAT, "r and i");
  h5t_foreign("x", 5, five, H5T_IEEE_F64LE, "r", "i");
  h5t_refused(QK_BAD_FORMAT, "no dataset \"field\"");
}

/* ---- how fields lie in the file ---- */

enum { SLICE = 16 * 16 * 16 * 24, SLICES = 88 }; /* 85 would fit a chunk of doubles */

static double value(size_t i, int64_t rhs) {
  return (double)(i % 65521) + 0.5 * (double)rhs;
}

/* The second of three right-hand sides: one that was written twice, of which the first and third
 * were not. */
static void write_large(void) {
  qk_err_t err = {0};
  qk_h5meta_t meta = h5t_meta();
  meta.dims[0] = meta.dims[1] = meta.dims[2] = 16;
  meta.dims[3] = SLICES;
  qk_h5file_t *f = NULL;
  cr_assert_eq(qk_h5file_create(h5t_path, &meta, 64, 3, &f, &err), QK_OK, "%s", err.text);
  double *x = calloc((size_t)SLICES * SLICE, sizeof *x);
  cr_assert_eq(qk_h5file_write(f, 1, x, &err), QK_OK, "%s", err.text);
  for (size_t i = 0; i < (size_t)SLICES * SLICE; i++) x[i] = value(i, 1);
  cr_assert_eq(qk_h5file_write(f, 1, x, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_h5file_commit(f, &err), QK_OK, "%s", err.text);
  qk_h5file_close(f);
  free(x);
}

Test(h5file, chunks_divide_the_extent_in_t_and_hold_nothing_but_data) {
  write_large();
  const hsize_t want[7] = {1, 44, 16, 16, 16, 4, 3};
  hsize_t chunk[7], bytes = (hsize_t)SLICES * SLICE * sizeof(double);
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDONLY, H5P_DEFAULT),
              set = H5Dopen2(file, "field", H5P_DEFAULT), create = H5Dget_create_plist(set);
  cr_assert_eq(H5Pget_chunk(create, 7, chunk), 7);
  cr_expect_arr_eq(chunk, want, sizeof want);
  cr_expect_eq(H5Dget_storage_size(set), bytes, "what is not written should take no room");
  H5Pclose(create);
  H5Dclose(set);
  H5Fclose(file);
  struct stat st;
  cr_assert_eq(stat(h5t_path, &st), 0);
  cr_expect_gt((hsize_t)st.st_size, bytes);
  cr_expect_lt((hsize_t)st.st_size, bytes + (1 << 16), "%lld bytes", (long long)st.st_size);
  double *x = malloc(bytes);
  qk_h5file_t *f = h5t_open();
  for (int64_t rhs = 0; rhs < 3; rhs++) {
    memset(x, 0xff, bytes);
    cr_assert_eq(qk_h5file_read(f, rhs, 64, x, NULL), QK_OK);
    size_t wrong = 0;
    for (size_t i = 0; i < (size_t)SLICES * SLICE; i++)
      wrong += x[i] != (rhs == 1 ? value(i, 1) : 0);
    cr_expect_eq(wrong, 0u, "right-hand side %lld: %zu numbers", (long long)rhs, wrong);
  }
  qk_h5file_close(f);
  free(x);
}

/* As this program wrote them: chunks of three of eight slices, the last one used in part, with
 * h5t_fill values. */
Test(h5file, chunks_that_do_not_divide_the_extent_in_t_are_read) {
  const hsize_t chunk[7] = {1, 3, 6, 4, 2, 4, 3};
  static double x[2 * H5T_REALS], y[H5T_REALS];
  for (int r = 0; r < 2; r++) h5t_fill(x + (size_t)r * H5T_REALS, r);
  const hid_t file = H5Fcreate(h5t_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
              type = H5Tcreate(H5T_COMPOUND, 16), space = H5Screate_simple(7, h5t_shape, NULL),
              create = H5Pcreate(H5P_DATASET_CREATE);
  H5Tinsert(type, "r", 0, H5T_IEEE_F64LE);
  H5Tinsert(type, "i", 8, H5T_IEEE_F64LE);
  H5Pset_chunk(create, 7, chunk);
  const hid_t set = H5Dcreate2(file, "field", type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  cr_assert_geq(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, x), 0);
  H5Dclose(set);
  H5Pclose(create);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
  qk_h5file_t *f = h5t_open();
  for (int r = 0; r < 2; r++) {
    cr_assert_eq(qk_h5file_read(f, r, 64, y, NULL), QK_OK);
    cr_expect_arr_eq(y, x + (size_t)r * H5T_REALS, sizeof y);
  }
  qk_h5file_close(f);
}

Test(h5file, a_huge_declared_lattice_is_refused_before_allocating) {
  const hsize_t huge[7] = {1, 1 << 16, 1 << 16, 1 << 16, 1 << 16, 4, 3};
  const hid_t file = H5Fcreate(h5t_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t type = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(type, "r", 0, H5T_IEEE_F32LE);
  H5Tinsert(type, "i", 4, H5T_IEEE_F32LE);
  const hsize_t chunk[7] = {1, 1, 1, 1, 8, 4, 3};
  const hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(7, huge, NULL);
  H5Pset_chunk(create, 7, chunk);
  const hid_t set = H5Dcreate2(file, "field", type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  cr_assert_geq(set, 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(create);
  H5Tclose(type);
  H5Fclose(file);
  h5t_refused(QK_BAD_GEOMETRY, "sites");
}

Test(h5file, attributes_that_disagree_are_refused) {
  const int other[4] = {2, 4, 6, 10}, version = 9;
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("dims", 4, other);
  h5t_refused(QK_BAD_GEOMETRY, "dims[3] = 10");
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("dims", 3, other);
  h5t_refused(QK_BAD_FORMAT, "3 numbers");
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("basis", 1, &version);
  h5t_refused(QK_BAD_FORMAT, "basis");
}

Test(h5file, fields_with_other_numbers_at_a_site_are_refused_by_name) {
  const int eight = 8, usual = 24, two[2] = {24, 24};
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &eight);
  h5t_refused(QK_UNSUPPORTED, "attribute site_reals = 8: its fields have 8 real numbers");
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 2, two);
  h5t_refused(QK_BAD_FORMAT, "attribute site_reals has 2 numbers");
  h5t_foreign("field", 7, h5t_shape, H5T_IEEE_F64LE, "r", "i");
  h5t_set_numbers("site_reals", 1, &usual);
  qk_h5file_t *f = h5t_open();
  cr_expect_str_empty(qk_h5file_meta(f)->action, "files of others need not say it");
  qk_h5file_close(f);
}

Test(h5file, a_newer_version_is_refused) {
  h5t_write(32, 1);
  const hid_t file = H5Fopen(h5t_path, H5F_ACC_RDWR, H5P_DEFAULT);
  cr_assert_geq(H5Adelete(file, "format_version"), 0);
  H5Fclose(file);
  const int version = 2;
  h5t_set_numbers("format_version", 1, &version);
  h5t_refused(QK_UNSUPPORTED, "format_version = 2");
}

Test(h5file, truncation_at_any_length_is_an_error_not_a_crash) {
  h5t_write(32, 1);
  struct stat st;
  cr_assert_eq(stat(h5t_path, &st), 0);
  for (off_t n = st.st_size - 1; n >= 0; n = n * 2 / 3 - 1) {
    cr_assert_eq(truncate(h5t_path, n), 0);
    qk_err_t err = {0};
    qk_h5file_t *f = NULL;
    cr_expect_neq(qk_h5file_open(h5t_path, NULL, &f, &err), QK_OK, "%lld bytes", (long long)n);
    cr_expect_not_null(strstr(err.text, h5t_path));
  }
}

Test(h5file, a_missing_file_says_so) {
  h5t_write(32, 1);
  qk_err_t err = {0};
  qk_h5file_t *f = NULL;
  cr_expect_eq(qk_h5file_open("/no/such.h5", NULL, &f, &err), QK_IO_ERROR);
  cr_expect_not_null(strstr(err.text, "No such file"));
}

Test(h5file, a_file_is_complete_when_its_name_is_on_the_disk) {
  static const struct {
    int error;
    qk_status_t status;
  } cases[] = {{0, QK_OK}, {EINVAL, QK_OK}, {EIO, QK_IO_ERROR}};
  char part[sizeof h5t_path + 8];
  snprintf(part, sizeof part, "%s.part", h5t_path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_err_t err = {0};
    const int fd = open(part, O_CREAT | O_WRONLY, 0600);
    cr_assert(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
    folders_synced = 0;
    folder_errno = cases[i].error;
    cr_assert_eq(qk_publish(part, h5t_path, &err), cases[i].status, "%s", err.text);
    cr_assert_eq(folders_synced, 1);
    cr_assert(cases[i].status == QK_OK || strstr(err.text, "its folder cannot be brought"));
  }
}
