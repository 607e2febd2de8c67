#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/analysis/corrfile.h"

static char dir[64], path[96], other[96], part[96];
enum { NT = 6, NMOM = 3 };

static void setup(void) {
  strcpy(dir, "/tmp/qk-corr-XXXXXX");
  cr_assert_not_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/a.h5", dir);
  snprintf(other, sizeof other, "%s/b.h5", dir);
  snprintf(part, sizeof part, "%s/whole.part", dir);
}

static void teardown(void) {
  unlink(path);
  unlink(other);
  cr_expect_eq(rmdir(dir), 0, "no other file should be left in the folder");
}

TestSuite(corrfile, .init = setup, .fini = teardown);

static qk_corrpiece_t example(const char *config, const char *label, double value) {
  qk_corrmeta_t m;
  qk_corrpiece_t piece;
  qk_err_t err = {0};
  qk_corrmeta_init(&m);
  snprintf(m.config, sizeof m.config, "%s", config);
  snprintf(m.label, sizeof m.label, "%s", label);
  strcpy(m.quark, "kappa=0.13");
  strcpy(m.channels, "pion nucleon g5-gxgt");
  strcpy(m.source, "point:1,2,3,4");
  const int32_t dims[4] = {2, 4, 6, NT}, origin[4] = {1, 2, 3, 4};
  memcpy(m.dims, dims, sizeof dims);
  memcpy(m.origin, origin, sizeof origin);
  m.kappa = 0.13;
  strcpy(m.action, "wilson;mass=-0.15");
  for (int i = 0; i < 8; i++) m.boundary[i] = i - 3.5;
  m.residual = 3e-11;
  m.iterations = 123;
  cr_assert_eq(qk_corrpiece_create(&m, NMOM, &piece, &err), QK_OK, "%s", err.text);
  cr_assert_eq(piece.n, 3);
  for (int p = 0; p < NMOM; p++)
    for (int j = 0; j < 3; j++) piece.momentum[p][j] = p - j;
  for (int i = 0; i < 3 * NMOM * NT; i++) piece.c[i] = value + i - I * sqrt(i);
  return piece;
}

static void write_example(const char *to, const char *config, const char *label, double value) {
  qk_corrpiece_t piece = example(config, label, value);
  qk_err_t err = {0};
  cr_assert_eq(qk_corrfile_write(to, &piece, &err), QK_OK, "%s", err.text);
  qk_corrpiece_fini(&piece);
}

/* The piece of the file in the groups that `meta` names. */
static void read_named(const qk_corrfile_t *file, const qk_corrmeta_t *meta,
                       qk_corrpiece_t *piece) {
  qk_err_t err = {0};
  for (int i = 0; i < qk_corrfile_count(file); i++) {
    cr_assert_eq(qk_corrfile_read(file, i, piece, &err), QK_OK, "%s", err.text);
    if (!strcmp(piece->meta.config, meta->config) && !strcmp(piece->meta.quark, meta->quark) &&
        !strcmp(piece->meta.label, meta->label))
      return;
    qk_corrpiece_fini(piece);
  }
  cr_assert_fail("no piece %s/%s/%s", meta->config, meta->quark, meta->label);
}

static void expect_piece(const char *from, const char *config, const char *label, double value) {
  qk_corrfile_t *file = NULL;
  qk_corrpiece_t piece, want = example(config, label, value);
  qk_err_t err = {0};
  cr_assert_eq(qk_corrfile_open(from, &file, &err), QK_OK, "%s", err.text);
  read_named(file, &want.meta, &piece);
  cr_expect(piece.n == want.n && piece.nmom == want.nmom);
  cr_expect_eq(memcmp(piece.channel, want.channel, sizeof *want.channel * 3), 0);
  cr_expect_eq(memcmp(piece.momentum, want.momentum, sizeof *want.momentum * NMOM), 0);
  cr_expect_eq(memcmp(piece.c, want.c, sizeof *want.c * 3 * NMOM * NT), 0);
  cr_expect_str_eq(piece.meta.source, want.meta.source);
  cr_expect_eq(strncmp(piece.meta.program, "quarkd ", 7), 0);
  cr_expect_str_eq(piece.meta.action, want.meta.action);
  cr_expect_eq(piece.meta.site_reals, 24);
  cr_expect(piece.meta.kappa == 0.13 && piece.meta.iterations == 123 && isnan(piece.meta.csw));
  cr_expect_eq(memcmp(piece.meta.boundary, want.meta.boundary, sizeof want.meta.boundary), 0);
  qk_corrpiece_fini(&piece);
  qk_corrpiece_fini(&want);
  qk_corrfile_close(file);
}

static int count(const char *from) {
  qk_corrfile_t *file = NULL;
  cr_assert_eq(qk_corrfile_open(from, &file, NULL), QK_OK);
  const int n = qk_corrfile_count(file);
  qk_corrfile_close(file);
  return n;
}

Test(corrfile, a_piece_reads_back_as_it_was) {
  write_example(path, "cfg.1", "point:1,2,3,4", 0.5);
  cr_expect(qk_corrfile_is(path));
  cr_expect_eq(count(path), 1);
  expect_piece(path, "cfg.1", "point:1,2,3,4", 0.5);
}

Test(corrfile, correlators_are_found_by_channel_and_momentum) {
  qk_corrpiece_t piece = example("c", "s", 0);
  const int32_t p[3] = {1, 0, -1}, none[3] = {9, 9, 9};
  cr_expect_eq(qk_corrpiece_find(&piece, "nucleon", p), piece.c + (1 * NMOM + 1) * NT);
  cr_expect_null(qk_corrpiece_find(&piece, "nucleon", none));
  cr_expect_null(qk_corrpiece_find(&piece, "rho", p));
  qk_corrpiece_fini(&piece);
}

Test(corrfile, a_file_of_several_pieces_appears_when_it_is_complete) {
  qk_corrpiece_t piece[2] = {example("cfg", "one", 1), example("cfg", "two", 2)};
  qk_corrwriter_t *writer = NULL;
  qk_err_t err = {0};
  strcpy(piece[1].meta.part, "sloppy");
  strcpy(piece[1].meta.seed, "18446744073709551615");
  for (int commit = 0; commit < 2; commit++) {
    cr_assert_eq(qk_corrwriter_create(path, &writer, &err), QK_OK, "%s", err.text);
    for (int i = 0; i < 2; i++)
      cr_assert_eq(qk_corrwriter_add(writer, &piece[i], &err), QK_OK, "%s", err.text);
    cr_expect_eq(qk_corrwriter_add(writer, &piece[0], &err), QK_IO_ERROR, "it is there");
    cr_expect_neq(access(path, F_OK), 0);
    if (commit)
      cr_assert_eq(qk_corrwriter_commit(writer, &err), QK_OK, "%s", err.text);
    else
      qk_corrwriter_destroy(writer);
  }
  cr_expect_eq(count(path), 2);
  expect_piece(path, "cfg", "one", 1);
  qk_corrfile_t *file;
  qk_corrpiece_t found;
  cr_assert_eq(qk_corrfile_open(path, &file, NULL), QK_OK);
  read_named(file, &piece[1].meta, &found);
  cr_expect_str_eq(found.meta.part, "sloppy");
  cr_expect_str_eq(found.meta.seed, "18446744073709551615");
  qk_corrpiece_fini(&found);
  qk_corrfile_close(file);
  for (int i = 0; i < 2; i++) qk_corrpiece_fini(&piece[i]);
}

Test(corrfile, merging_keeps_what_was_there_and_prefers_parts) {
  const char *const parts[] = {other};
  qk_err_t err = {0};
  write_example(other, "cfg.1", "s.t0", 1);
  cr_assert_eq(qk_corrfile_merge(path, part, 1, parts, &err), QK_OK, "%s", err.text);
  write_example(other, "cfg.2", "s.t0", 2);
  cr_assert_eq(qk_corrfile_merge(path, part, 1, parts, &err), QK_OK, "%s", err.text);
  write_example(other, "cfg.1", "s.t4", 3);
  cr_assert_eq(qk_corrfile_merge(path, part, 1, parts, &err), QK_OK, "%s", err.text);
  write_example(other, "cfg.1", "s.t0", 4);
  cr_assert_eq(qk_corrfile_merge(path, part, 1, parts, &err), QK_OK, "%s", err.text);
  cr_expect_eq(count(path), 3);
  expect_piece(path, "cfg.1", "s.t0", 4);
  expect_piece(path, "cfg.2", "s.t0", 2);
  expect_piece(path, "cfg.1", "s.t4", 3);
}

Test(corrfile, a_merge_that_fails_leaves_the_file_as_it_was) {
  const char *const parts[] = {other, "/no/such/file.h5"};
  qk_err_t err = {0};
  write_example(path, "cfg.1", "s", 1);
  write_example(other, "cfg.2", "s", 2);
  cr_expect_eq(qk_corrfile_merge(path, part, 2, parts, &err), QK_IO_ERROR);
  cr_expect_not_null(strstr(err.text, "/no/such/file.h5"));
  cr_expect_eq(count(path), 1);
  expect_piece(path, "cfg.1", "s", 1);
}

Test(corrfile, what_cannot_be_written_leaves_nothing) {
  qk_corrpiece_t piece = example("cfg", "a/b", 0);
  qk_err_t err = {0};
  cr_expect_eq(qk_corrfile_write(path, &piece, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "a/b"));
  strcpy(piece.meta.label, "ab");
  memset(&err, 0, sizeof err);
  cr_expect_eq(qk_corrfile_write("/no/such/folder/a.h5", &piece, &err), QK_IO_ERROR);
  cr_expect_not_null(strstr(err.text, "/no/such/folder/a.h5"), "%s", err.text);
  cr_expect_neq(access(path, F_OK), 0);
  qk_corrpiece_fini(&piece);
}

static void expect_refused(qk_status_t code, const char *word) {
  qk_corrfile_t *file = NULL;
  qk_corrpiece_t piece;
  qk_err_t err = {0};
  qk_status_t status = qk_corrfile_open(path, &file, &err);
  if (status == QK_OK) status = qk_corrfile_read(file, 0, &piece, &err);
  cr_expect_eq(status, code, "%s: %s", qk_status_name(status), err.text);
  cr_expect(strstr(err.text, word) && strstr(err.text, path), "\"%s\" has no \"%s\"", err.text,
            word);
  qk_corrfile_close(file);
}

static void set_site_reals(int n) {
  const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t group = H5Gopen2(f, "c/kappa=0.13/s", H5P_DEFAULT);
  const hid_t a = H5Aopen(group, "site_reals", H5P_DEFAULT);
  cr_assert_geq(H5Awrite(a, H5T_NATIVE_INT, &n), 0);
  H5Gclose(group);
  H5Aclose(a);
  H5Fclose(f);
}

Test(corrfile, pieces_of_other_fields_are_refused_and_those_that_do_not_say_are_not) {
  qk_corrfile_t *file = NULL;
  qk_corrpiece_t piece;
  const int six = 6, two = 48;
  write_example(path, "c", "s", 0);
  set_site_reals(two);
  expect_refused(QK_UNSUPPORTED, "attribute site_reals = 48");
  set_site_reals(six);
  cr_assert_eq(qk_corrfile_open(path, &file, NULL), QK_OK);
  cr_assert_eq(qk_corrfile_read(file, 0, &piece, NULL), QK_OK);
  cr_expect_eq(piece.meta.site_reals, 6, "colour alone");
  qk_corrpiece_fini(&piece);
  qk_corrfile_close(file);
  const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  cr_assert_geq(H5Adelete_by_name(f, "c/kappa=0.13/s", "site_reals", H5P_DEFAULT), 0);
  cr_assert_geq(H5Adelete_by_name(f, "c/kappa=0.13/s", "action", H5P_DEFAULT), 0);
  H5Fclose(f);
  cr_assert_eq(qk_corrfile_open(path, &file, NULL), QK_OK);
  cr_assert_eq(qk_corrfile_read(file, 0, &piece, NULL), QK_OK);
  cr_expect(!*piece.meta.action && piece.meta.site_reals == 24);
  qk_corrpiece_fini(&piece);
  qk_corrfile_close(file);
}

/* Removes or replaces an object of the example. */
static void damage(const char *remove, const char *attribute, int version) {
  write_example(path, "c", "s", 0);
  const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  cr_assert_geq(f, 0);
  if (remove) cr_assert_geq(H5Ldelete(f, remove, H5P_DEFAULT), 0);
  if (attribute) cr_assert_geq(H5Adelete_by_name(f, "c/kappa=0.13/s", attribute, H5P_DEFAULT), 0);
  if (version) {
    const hid_t a = H5Aopen(f, "format_version", H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_INT, &version);
    H5Aclose(a);
  }
  H5Fclose(f);
}

Test(corrfile, damaged_files_are_refused_with_the_object) {
  damage("c/kappa=0.13/s/nucleon", NULL, 0);
  expect_refused(QK_BAD_FORMAT, "no object \"nucleon\"");
  damage("c/kappa=0.13/s/momenta", NULL, 0);
  expect_refused(QK_BAD_ARGUMENT, "0 momenta");
  damage(NULL, "dims", 0);
  expect_refused(QK_BAD_ARGUMENT, "0 time slices");
  damage(NULL, "channels", 0);
  expect_refused(QK_BAD_ARGUMENT, "0 channels");
  damage(NULL, NULL, 9);
  expect_refused(QK_UNSUPPORTED, "format_version = 9");
  cr_expect(qk_corrfile_is(path), "of another version, but one of these");
  FILE *f = fopen(path, "w");
  fputs("no HDF5", f);
  fclose(f);
  expect_refused(QK_BAD_FORMAT, "HDF5");
  cr_expect_not(qk_corrfile_is(path));
}
