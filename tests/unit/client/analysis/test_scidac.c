/* Propagators in SciDAC files: against HDF5 to the last bit, damaged, and in little memory. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/files/fieldfile.h"
#include "client/files/scidac.h"
#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "tests/unit/client/analysis/h5_test_kit.h"

enum { COLUMNS = 12 };

static double numbers[COLUMNS][H5T_REALS];
static float singles[COLUMNS][H5T_REALS];

static void setup(void) {
  h5t_setup();
  for (int k = 0; k < COLUMNS; k++) {
    h5t_fill(numbers[k], k);
    for (int i = 0; i < H5T_REALS; i++) singles[k][i] = (float)numbers[k][i];
  }
}

TestSuite(scidac, .init = setup, .fini = h5t_teardown);

static qk_h5meta_t point_meta(void) {
  qk_h5meta_t m = h5t_meta();
  strcpy(m.source, "point:0,1,2,3");
  *m.smear = *m.links = *m.sequential = '\0';
  return m;
}

static qk_h5column_t column_of(int k) {
  qk_h5column_t c;
  qk_h5column_init(&c);
  c.status = k == 1 ? QK_NOT_CONVERGED : QK_OK;
  c.true_residual = 1e-11 / (k + 3);
  c.iterations = 100 + k;
  c.seconds = 0.1 * k;
  strcpy(c.source, "point");
  for (int mu = 0; mu < 4; mu++) c.site[mu] = mu;
  c.spin = k / 3;
  c.colour = k % 3;
  c.seed = UINT64_MAX - (uint64_t)k;
  for (int j = 0; j < 3; j++) c.momentum[j] = 0;
  c.every = 4;
  return c;
}

static qk_fieldfile_t *begin(qk_field_format_t format, int bits) {
  const qk_h5meta_t meta = point_meta();
  qk_err_t err = {0};
  qk_fieldfile_t *f = NULL;
  cr_assert_eq(qk_fieldfile_create(h5t_path, format, &meta, bits, COLUMNS, &f, &err), QK_OK, "%s",
               err.text);
  return f;
}

/* stays: of the even columns; the others are copied, and their memory is used again. */
static void fill(qk_fieldfile_t *f, int bits, bool stays) {
  qk_err_t err = {0};
  double room[H5T_REALS];
  for (int k = COLUMNS - 1; k >= 0; k--) {
    const void *data = bits == 32 ? (void *)singles[k] : (void *)numbers[k];
    const bool here = stays && k % 2 == 0;
    if (!here) data = memcpy(room, data, sizeof room * (size_t)bits / 64);
    cr_assert_eq(qk_fieldfile_write(f, k, data, here, &err), QK_OK, "%s", err.text);
    const qk_h5column_t c = column_of(k);
    cr_assert_eq(qk_fieldfile_set_column(f, k, &c, &err), QK_OK, "%s", err.text);
  }
}

static void write_file(qk_field_format_t format, int bits) {
  qk_err_t err = {0};
  unlink(h5t_path);
  qk_fieldfile_t *f = begin(format, bits);
  fill(f, bits, true);
  cr_assert_neq(access(h5t_path, F_OK), 0, "the file must not be there before commit");
  cr_assert_eq(qk_fieldfile_commit(f, &err), QK_OK, "%s", err.text);
  qk_fieldfile_close(f);
}

static qk_fieldfile_t *open_file(void) {
  qk_err_t err = {0};
  qk_fieldfile_t *f = NULL;
  cr_assert_eq(qk_fieldfile_open(h5t_path, NULL, &f, &err), QK_OK, "%s", err.text);
  return f;
}

static void expect_numbers(qk_fieldfile_t *f, int bits) {
  qk_err_t err = {0};
  double x[H5T_REALS];
  float y[H5T_REALS];
  for (int k = 0; k < COLUMNS; k++) {
    cr_assert_eq(qk_fieldfile_read(f, k, 64, x, &err), QK_OK, "%s", err.text);
    cr_assert_eq(qk_fieldfile_read(f, k, 32, y, &err), QK_OK, "%s", err.text);
    for (int i = 0; i < H5T_REALS; i++) {
      const double want = bits == 32 ? (double)singles[k][i] : numbers[k][i];
      cr_assert(memcmp(&want, &x[i], sizeof want) == 0 && y[i] == singles[k][i],
                "column %d, number %d", k, i);
    }
  }
}

static void expect_columns(qk_fieldfile_t *f) {
  const qk_h5meta_t want = point_meta(), *m = qk_fieldfile_meta(f);
  qk_err_t err = {0};
  cr_expect_str_eq(m->source, want.source);
  cr_expect_str_eq(m->gauge, want.gauge);
  cr_expect_str_eq(m->action, want.action);
  cr_expect_eq(m->kappa, want.kappa);
  cr_expect_eq(m->boundary[6], want.boundary[6]);
  for (int k = 0; k < COLUMNS; k++) {
    const qk_h5column_t c = column_of(k);
    qk_h5column_t d;
    cr_assert_eq(qk_fieldfile_column(f, k, &d, &err), QK_OK);
    cr_expect(c.status == d.status && c.true_residual == d.true_residual && c.seed == d.seed &&
              c.iterations == d.iterations && c.seconds == d.seconds && c.spin == d.spin &&
              c.colour == d.colour && c.every == d.every && c.gamma == d.gamma &&
              memcmp(c.site, d.site, sizeof c.site) == 0 && strcmp(c.source, d.source) == 0);
  }
}

Test(scidac, every_format_reads_back_what_was_written) {
  for (int format = QK_FIELD_HDF5; format <= QK_FIELD_USQCD; format++)
    for (int bits = 32; bits <= 64; bits += 32) {
      write_file((qk_field_format_t)format, bits);
      qk_fieldfile_t *f = open_file();
      cr_expect_eq(qk_fieldfile_nrhs(f), COLUMNS);
      cr_expect_eq(qk_fieldfile_bits(f), bits);
      cr_expect_eq(qk_fieldfile_rhs_bytes(f, bits), (size_t)H5T_REALS * (size_t)bits / 8);
      cr_expect(memcmp(qk_fieldfile_meta(f)->dims, h5t_dims, sizeof h5t_dims) == 0);
      expect_numbers(f, bits);
      expect_columns(f);
      qk_fieldfile_close(f);
    }
  cr_expect_eq(qk_mem_bytes(), 0);
}

Test(scidac, the_format_follows_the_name) {
  cr_expect_eq(qk_field_format_of("a.lime"), QK_FIELD_SCIDAC);
  cr_expect_eq(qk_field_format_of("a.b/c.scidac"), QK_FIELD_SCIDAC);
  cr_expect_eq(qk_field_format_of("lime"), QK_FIELD_HDF5);
  cr_expect_eq(qk_field_format_of("a.lime.h5"), QK_FIELD_HDF5);
}

Test(scidac, an_unfinished_file_vanishes) {
  qk_fieldfile_t *f = begin(QK_FIELD_SCIDAC, 64);
  fill(f, 64, false);
  qk_fieldfile_close(f); /* teardown finds an empty folder */
}

Test(scidac, a_missing_column_is_named) {
  qk_err_t err = {0};
  qk_fieldfile_t *f = begin(QK_FIELD_SCIDAC, 64);
  for (int k = 0; k < COLUMNS; k++)
    if (k != 7) cr_assert_eq(qk_fieldfile_write(f, k, numbers[k], true, &err), QK_OK);
  cr_expect_eq(qk_fieldfile_commit(f, &err), QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "column 7 (spin 2, colour 1)") != NULL, "%s", err.text);
  qk_fieldfile_close(f);
}

Test(scidac, the_disk_may_fail_at_every_write) {
  for (int n = 1;; n++) {
    char text[32];
    qk_err_t err = {0};
    snprintf(text, sizeof text, "write:%d", n);
    qk_fieldfile_t *f = begin(QK_FIELD_USQCD, 32);
    cr_assert_eq(qk_fault_set(text), 0);
    qk_status_t status = QK_OK;
    for (int k = 0; k < COLUMNS && status == QK_OK; k++) {
      const qk_h5column_t c = column_of(k);
      status = qk_fieldfile_write(f, k, singles[k], false, &err);
      qk_fieldfile_set_column(f, k, &c, NULL);
    }
    if (status == QK_OK) status = qk_fieldfile_commit(f, &err);
    qk_fault_set(NULL);
    qk_fieldfile_close(f);
    if (status == QK_OK) {
      cr_expect_gt(n, 12 + 13 * 4);
      break;
    }
    cr_assert_eq(status, QK_IO_ERROR);
    cr_assert(strstr(err.text, h5t_path) != NULL, "%s", err.text);
    cr_assert_neq(access(h5t_path, F_OK), 0);
  }
}

Test(scidac, what_it_cannot_hold_is_refused_with_what_can) {
  static const struct {
    bool usqcd;
    int64_t nrhs;
    int32_t site_reals, dims0;
    const char *basis, *source, *smear, *word;
    qk_status_t status;
  } cases[] = {
      {false, 24, 24, 2, "degrand-rossi", "point:0,0,0,0", "", "--format=hdf5", QK_UNSUPPORTED},
      {false, 12, 48, 2, "degrand-rossi", "point:0,0,0,0", "", "two flavours", QK_UNSUPPORTED},
      {false, 12, 6, 2, "degrand-rossi", "point:0,0,0,0", "", "colour alone", QK_UNSUPPORTED},
      {false, 12, 24, 2, "ukqcd", "point:0,0,0,0", "", "ukqcd", QK_UNSUPPORTED},
      {true, 12, 24, 2, "degrand-rossi", "z2:1", "", "z2:1", QK_UNSUPPORTED},
      {true, 12, 24, 2, "degrand-rossi", "wall:1", "gauss:0.2,3", "smearing", QK_UNSUPPORTED},
      {false, 12, 24, 0, "degrand-rossi", "wall:1", "", "dims = 0 x 4", QK_BAD_GEOMETRY},
      {false, 12, 24, 65537, "degrand-rossi", "wall:1", "", "65537", QK_BAD_GEOMETRY},
      {false, 12, 24, 65536, "degrand-rossi", "wall:1", "", "2147483647", QK_BAD_GEOMETRY},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_h5meta_t m = point_meta();
    qk_err_t err = {0};
    qk_scidac_out_t *f = NULL;
    m.site_reals = cases[i].site_reals;
    m.dims[0] = cases[i].dims0;
    if (m.dims[0] == 65536) m.dims[1] = 65536;
    strcpy(m.basis, cases[i].basis);
    strcpy(m.source, cases[i].source);
    strcpy(m.smear, cases[i].smear);
    cr_expect_eq(qk_scidac_create(h5t_path, cases[i].usqcd, &m, 64, cases[i].nrhs, &f, &err),
                 cases[i].status, "%zu: %s", i, err.text);
    cr_expect(strstr(err.text, cases[i].word) != NULL, "%zu: %s", i, err.text);
    cr_expect_null(f);
  }
}

/* ---- damage ---- */

static char *whole(size_t *bytes) {
  FILE *in = fopen(h5t_path, "rb");
  cr_assert_not_null(in);
  fseek(in, 0, SEEK_END);
  *bytes = (size_t)ftell(in);
  rewind(in);
  char *raw = malloc(*bytes);
  cr_assert_eq(fread(raw, 1, *bytes, in), *bytes);
  fclose(in);
  return raw;
}

static qk_status_t try_bytes(const char *raw, size_t bytes, qk_err_t *err) {
  FILE *out = fopen(h5t_path, "wb");
  cr_assert_eq(fwrite(raw, 1, bytes, out), bytes);
  fclose(out);
  *err = (qk_err_t){0};
  qk_scidac_in_t *f = NULL;
  const qk_status_t status = qk_scidac_open(h5t_path, &f, err);
  cr_assert(status == err->code && (status == QK_OK) == (f != NULL));
  if (status != QK_OK) cr_assert(strstr(err->text, h5t_path) != NULL, "%s", err->text);
  qk_scidac_close(f);
  cr_assert_eq(qk_mem_bytes(), 0);
  return status;
}

Test(scidac, a_flipped_bit_of_any_field_is_found) {
  size_t bytes;
  qk_err_t err;
  write_file(QK_FIELD_USQCD, 32);
  char *raw = whole(&bytes);
  for (size_t at = 0, n = 0; n < 13; n++) { /* the source and each column */
    const char *mark = memmem(raw + at, bytes - at, "scidac-binary-data", 18);
    cr_assert_not_null(mark);
    at = (size_t)(mark - raw) + 128 + 77;
    raw[at] ^= 1;
    cr_expect_eq(try_bytes(raw, bytes, &err), QK_BAD_CHECKSUM, "%s", err.text);
    raw[at] ^= 1;
  }
  cr_expect_eq(try_bytes(raw, bytes, &err), QK_OK, "%s", err.text);
  free(raw);
}

Test(scidac, a_file_cut_anywhere_is_refused) {
  size_t bytes;
  qk_err_t err;
  write_file(QK_FIELD_SCIDAC, 32);
  char *raw = whole(&bytes);
  for (size_t n = 0; n + 8 < bytes; n += n < 4096 || n + 600 > bytes ? 37 : 9973)
    cr_expect_neq(try_bytes(raw, n, &err), QK_OK, "%zu bytes", n);
  free(raw);
}

/* The length in the header of a record. */
static void set_length(char *raw, size_t bytes, const char *type, uint64_t length) {
  char *mark = memmem(raw, bytes, type, strlen(type));
  cr_assert_not_null(mark);
  for (int i = 0; i < 8; i++) mark[i - 8] = (char)(length >> (56 - 8 * i));
}

Test(scidac, hostile_lengths_allocate_nothing) {
  static const uint64_t lengths[] = {UINT64_MAX, 1ull << 63, (1ull << 63) - 1, 1ull << 40, 0, 7};
  static const char *const types[] = {"scidac-private-file-xml", "scidac-private-record-xml",
                                      "scidac-record-xml", "scidac-binary-data", "scidac-checksum"};
  size_t bytes;
  qk_err_t err;
  write_file(QK_FIELD_SCIDAC, 32);
  for (size_t t = 0; t < 5; t++)
    for (size_t i = 0; i < 6; i++) {
      write_file(QK_FIELD_SCIDAC, 32);
      char *raw = whole(&bytes);
      set_length(raw, bytes, types[t], lengths[i]);
      cr_expect_neq(try_bytes(raw, bytes, &err), QK_OK, "%s, %zu", types[t], i);
      free(raw);
    }
}

/* ---- memory ---- */

enum { BIG = 16, BIG_SITES = BIG * BIG * BIG * 32 };

/* A column of 25 MB that lies in a file, as a solution lies in the memory of the daemon. */
static void *map_column(void) {
  char name[] = "/tmp/qk-scidac-XXXXXX";
  const size_t bytes = (size_t)BIG_SITES * 24 * 8;
  const int fd = mkstemp(name);
  if (fd < 0 || unlink(name) != 0 || ftruncate(fd, (off_t)bytes) != 0) return NULL;
  void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return map == MAP_FAILED ? NULL : map;
}

static int write_big(void) {
  qk_h5meta_t meta = point_meta();
  const int32_t dims[4] = {BIG, BIG, BIG, 32};
  void *column = map_column();
  qk_scidac_out_t *f;
  qk_scidac_in_t *in;
  qk_err_t err = {0};
  memcpy(meta.dims, dims, sizeof dims);
  if (!column) return 10;
  if (qk_scidac_create(h5t_path, false, &meta, 64, COLUMNS, &f, &err) != QK_OK) return 1;
  for (int k = 0; k < COLUMNS; k++)
    if (qk_scidac_write(f, k, column, k % 2 == 0, &err) != QK_OK) return 2;
  if (qk_scidac_commit(f, &err) != QK_OK) return 3;
  qk_scidac_discard(f);
  return qk_scidac_open(h5t_path, &in, &err) == QK_OK ? 0 : 4;
}

Test(scidac, a_propagator_of_300_MB_is_written_and_read_in_24_MB) {
  const pid_t child = fork();
  if (child == 0) {
#ifndef __SANITIZE_ADDRESS__                          /* which has terabytes of its own */
    const struct rlimit limit = {24 << 20, 24 << 20}; /* of private memory; one column has 25 MB */
    if (setrlimit(RLIMIT_DATA, &limit) != 0) _exit(9);
#endif
    _exit(write_big());
  }
  int status;
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "ended with %d", WEXITSTATUS(status));
  struct stat st;
  cr_assert_eq(stat(h5t_path, &st), 0);
  cr_expect_gt(st.st_size, (off_t)BIG_SITES * 2304);
}
