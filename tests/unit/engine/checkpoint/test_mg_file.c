/* Checkpoints of multigrid: what comes back, and what is refused. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/fault.h"
#include "daemon/engine/checkpoint/mg_header.h"
#include "daemon/engine/eigen/deflation.h"
#include "tests/support/rig.h"

/* A small hierarchy of three levels, and a folder for its file. */
typedef struct fixture {
  qk_rig_t rig;
  qk_mg_params_t params;
  qk_mg_identity_t identity;
  qk_mg_t *mg;
  char folder[64], path[96], temp[104];
} fixture_t;

static void open_fixture(fixture_t *f, qk_prec_t prolongator) {
  qk_err_t err = {0};
  *f = (fixture_t){0};
  rig_open(&f->rig, NULL, "builtin:weak:4x8x8x8:3", NULL);
  rig_operator(&f->rig, 0.05, 1, -1);
  f->params = (qk_mg_params_t){.nlevel = 3, .deflate = 4};
  for (int l = 0; l < 2; l++) {
    qk_mg_level_params_t *p = &f->params.level[l];
    for (int mu = 0; mu < 4; mu++) p->block[mu] = l == 1 && mu == 0 ? 1 : 2;
    p->nvec = l == 0 ? 4 : 6;
    p->ntest = l == 0 ? 8 : 6;
    p->setup_iterations = 8;
    p->setup_passes = -1;
    p->prolongator = prolongator;
    p->setup_prec = QK_SINGLE; /* on every backend */
  }
  f->identity = (qk_mg_identity_t){.gauge_digest = f->rig.check.digest,
                                   .operator_text = "wilson-clover;mass=0.05;csw=1",
                                   .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}}};
  rig_must(qk_mg_create(f->rig.op, f->rig.work, &f->params, NULL, NULL, &f->mg, &err), "multigrid",
           &err);
  snprintf(f->folder, sizeof f->folder, "/tmp/qk_mg_file_XXXXXX");
  cr_assert_not_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof f->path, "%s/setup.mg", f->folder);
  snprintf(f->temp, sizeof f->temp, "%s.tmp", f->path);
}

static void close_fixture(fixture_t *f) {
  qk_mg_destroy(f->mg);
  unlink(f->path);
  cr_expect(access(f->temp, F_OK) != 0, "%s is left behind", f->temp);
  unlink(f->temp);
  cr_expect_eq(rmdir(f->folder), 0, "%s holds something else", f->folder);
  rig_close(&f->rig);
}

static qk_status_t save(fixture_t *f, qk_err_t *err) {
  qk_mg_save_t *s = NULL;
  bool ended = false;
  qk_status_t status = qk_mg_save_begin(f->mg, f->path, &f->identity, &s, err);
  if (status != QK_OK) return status;
  status = qk_mg_save_poll(&s, true, &ended, err);
  cr_expect(ended);
  cr_expect_null(s);
  return status;
}

static qk_status_t load(fixture_t *f, qk_mg_t **mg, qk_err_t *err) {
  return qk_mg_load(f->rig.op, f->rig.work, f->path, &f->identity, &f->params, NULL, NULL, mg, err);
}

static void expect_refused(fixture_t *f, qk_status_t expected, const char *words) {
  qk_mg_t *mg = NULL;
  qk_err_t err = {0};
  qk_status_t status = load(f, &mg, &err);
  cr_expect_eq(status, expected, "%s: %s: %s", words, qk_status_name(status), err.text);
  cr_expect(strstr(err.text, words) != NULL, "\"%s\" in \"%s\"", words, err.text);
  qk_mg_destroy(mg);
}

/* The file in memory; malloc'd. */
static uint8_t *slurp(const char *path, size_t *bytes) {
  FILE *in = fopen(path, "rb");
  cr_assert_not_null(in);
  fseek(in, 0, SEEK_END);
  *bytes = (size_t)ftell(in);
  rewind(in);
  uint8_t *data = malloc(*bytes);
  cr_assert_eq(fread(data, 1, *bytes, in), *bytes);
  fclose(in);
  return data;
}

static void spill(const char *path, const uint8_t *data, size_t bytes) {
  FILE *out = fopen(path, "wb");
  cr_assert_not_null(out);
  cr_assert_eq(fwrite(data, 1, bytes, out), bytes);
  fclose(out);
}

/* ---- round trip ------------------------------------------------------------------------------ */

/* A field in plain order; malloc'd. */
static float *plain(const qk_field_t *v, size_t *n) {
  const qk_device_t *dev = v->dev;
  void *device = NULL;
  *n = (size_t)v->v.nsites * (size_t)v->v.nrhs * (size_t)v->v.ncomp * 2;
  float *out = malloc(*n * sizeof *out);
  rig_must(dev->ops->alloc(dev->ctx, *n * sizeof *out, &device), "alloc", NULL);
  const qk_sites_args_t get = {dev->geom->lat, v->v, QK_SINGLE, device, 0, v->v.nsites};
  rig_must(dev->ops->sites_get(dev->ctx, &get), "sites_get", NULL);
  rig_must(dev->ops->copy(dev->ctx, out, device, *n * sizeof *out, QK_COPY_TO_HOST, 0), "copy",
           NULL);
  rig_must(dev->ops->queue_sync(dev->ctx, 0), "sync", NULL);
  dev->ops->free(dev->ctx, device);
  return out;
}

static float *null_vectors(const qk_mg_t *mg, int l, size_t *n) {
  qk_field_t *v;
  rig_must(qk_field_create(&mg->level[l].dev, QK_SINGLE, mg->params.level[l].nvec, QK_FULL, &v),
           "field", NULL);
  qk_prolongator_vectors(mg->level[l].down, 0, v);
  rig_must(qk_dev_status(v->dev), "vectors", NULL);
  float *out = plain(v, n);
  qk_field_destroy(v);
  return out;
}

static void expect_close(float *a, float *b, size_t n, double tol, const char *what) {
  double off = 0, norm = 0;
  for (size_t i = 0; i < n; i++) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  cr_expect(norm > 0 && sqrt(off / norm) <= tol, "%s differ by %g", what, sqrt(off / norm));
  free(a);
  free(b);
}

static void expect_same(const qk_mg_t *a, const qk_mg_t *b, double tol) {
  qk_field_t *const *va, *const *vb;
  size_t n;
  for (int l = 0; l + 1 < a->nlevel; l++) {
    float *x = null_vectors(a, l, &n), *y = null_vectors(b, l, &n);
    expect_close(x, y, n, tol, "null vectors");
    x = plain(a->level[l].null, &n);
    y = plain(b->level[l].null, &n);
    expect_close(x, y, n, 0, "null vectors in terms of the prolongator");
  }
  cr_assert(a->deflation && b->deflation);
  cr_assert_eq(qk_deflation_count(a->deflation), qk_deflation_count(b->deflation));
  cr_assert_eq(qk_deflation_blocks(a->deflation, &va), qk_deflation_blocks(b->deflation, &vb));
  for (int i = 0; i < qk_deflation_count(a->deflation); i++) {
    cr_expect_eq(qk_deflation_values(a->deflation)[i], qk_deflation_values(b->deflation)[i]);
    cr_expect_eq(qk_deflation_residuals(a->deflation)[i], qk_deflation_residuals(b->deflation)[i]);
  }
  float *x = plain(va[0], &n), *y = plain(vb[0], &n);
  expect_close(x, y, n, 0, "deflation vectors");
}

static void round_trip(qk_prec_t prolongator, int64_t number, double tol) {
  fixture_t f;
  qk_err_t err = {0};
  qk_mg_t *mg = NULL;
  struct stat st;
  open_fixture(&f, prolongator);
  rig_must(save(&f, &err), "save", &err);
  const int64_t vectors = (2048 * 12 * 4 + 128 * 8 * 6) * number;
  const int64_t others =
      (128 * 8 * 8 + 16 * 12 * 6 + 8 * 12 * 8) * 8; /* 8 null vectors of level 0 */
  cr_assert_eq(stat(f.path, &st), 0);
  cr_expect_eq(st.st_size, QK_MG_HEADER_BYTES + vectors + others);
  rig_must(load(&f, &mg, &err), "load", &err);
  cr_expect(mg->restored);
  cr_expect_eq(mg->params.deflate, 4);
  expect_same(mg, f.mg, tol);
  rig_must(qk_mg_check(mg, NULL, NULL, &err), "check", &err);
  rig_must(qk_mg_refine(mg, NULL, NULL, &err), "refine", &err);
  rig_must(qk_mg_check(mg, NULL, NULL, &err), "check", &err);
  qk_mg_destroy(mg);
  close_fixture(&f);
}

Test(mg_file, brings_back_what_was_saved) {
  round_trip(QK_SINGLE, 8, 1e-6);
}
Test(mg_file, brings_back_what_was_saved_in_16_bits) {
  round_trip(QK_HALF, 4, 3e-4);
}

Test(mg_file, is_written_while_other_work_goes_on) {
  fixture_t f;
  qk_mg_save_t *s;
  qk_err_t err = {0};
  bool ended = false;
  open_fixture(&f, QK_SINGLE);
  rig_must(qk_mg_save_begin(f.mg, f.path, &f.identity, &s, &err), "save", &err);
  qk_mg_destroy(f.mg); /* the copies are enough */
  f.mg = NULL;
  while (!ended) rig_must(qk_mg_save_poll(&s, false, &ended, &err), "poll", &err);
  qk_mg_t *mg = NULL;
  rig_must(load(&f, &mg, &err), "load", &err);
  qk_mg_destroy(mg);
  close_fixture(&f);
}

/* ---- what is refused ------------------------------------------------------------------------- */

Test(mg_file, of_something_else_is_refused_with_the_figure) {
  fixture_t f;
  qk_err_t err = {0};
  open_fixture(&f, QK_SINGLE);
  expect_refused(&f, QK_NOT_FOUND, "there is no checkpoint");
  rig_must(save(&f, &err), "save", &err);
  const qk_mg_identity_t id = f.identity;
  const qk_mg_params_t params = f.params;
  const uint64_t digest = qk_mg_identity_digest(&id);
#define WITH(change, words)                                                                        \
  do {                                                                                             \
    change;                                                                                        \
    expect_refused(&f, QK_NOT_FOUND, words);                                                       \
    cr_expect(memcmp(&f.identity, &id, sizeof id) == 0 ||                                          \
              qk_mg_identity_digest(&f.identity) != digest);                                       \
    f.identity = id;                                                                               \
    f.params = params;                                                                             \
  } while (0)
  WITH(f.identity.gauge_digest++, "another gauge field");
#define OPERATOR(text) snprintf(f.identity.operator_text, sizeof f.identity.operator_text, text)
  WITH(OPERATOR("wilson-clover;mass=0.05;csw=1.5"),
       "of the operator wilson-clover;mass=0.05;csw=1, not wilson-clover;mass=0.05;csw=1.5");
  WITH(f.identity.phase[3][0] = 1, "boundary phase -1+0i in t");
  WITH(f.identity.phase[0][1] = 1e-9, "boundary phase 1+0i in x");
  WITH(OPERATOR("wilson;mass=0.05"), "csw=1, not wilson;mass=0.05");
#undef OPERATOR
  WITH(f.identity.seed = 5, "of seed 0, not 5");
  WITH(f.params.level[0].setup_prec = QK_HALF, "in single precision on level 0, not in half");
  WITH(f.params.nlevel = 2, "3 levels, not 2");
  WITH(f.params.level[0].block[2] = 4; f.params.level[1].block[2] = 1, "blocks 2x2x2x2 on level 0");
  WITH(f.params.level[1].nvec = 4, "6 vectors on level 1, not 4");
  WITH(f.params.level[0].ntest = 10, "8 test vectors on level 0, not 10");
  WITH(f.params.level[0].setup_iterations = 9, "8 iterations");
  WITH(f.params.level[0].setup_passes = 1, "-1 passes");
  WITH(f.params.level[1].setup_tol = 7e-4, "setup of level 1");
  WITH(f.params.deflate = 3, "4 deflated vectors, not 3");
#undef WITH
  close_fixture(&f);
}

Test(mg_file, with_any_byte_of_the_header_changed_is_refused) {
  fixture_t f;
  qk_err_t err = {0};
  size_t bytes;
  qk_mg_header_t h;
  open_fixture(&f, QK_SINGLE);
  rig_must(save(&f, &err), "save", &err);
  uint8_t *data = slurp(f.path, &bytes);
  cr_assert_eq(qk_mg_header_decode(data, &h, &err), QK_OK);
  for (int i = 0; i < QK_MG_HEADER_BYTES; i++)
    for (int bit = 0; bit < 8; bit += 7) {
      data[i] ^= (uint8_t)(1 << bit);
      const qk_status_t status = qk_mg_header_decode(data, &h, NULL);
      const qk_status_t expected = i < 8    ? QK_BAD_FORMAT
                                   : i < 12 ? QK_UNSUPPORTED
                                            : QK_BAD_CHECKSUM;
      cr_expect_eq(status, expected, "byte %d: %s", i, qk_status_name(status));
      data[i] ^= (uint8_t)(1 << bit);
    }
  data[8] = 1;
  spill(f.path, data, bytes);
  expect_refused(&f, QK_UNSUPPORTED, "version 1: this build reads 3");
  free(data);
  close_fixture(&f);
}

Test(mg_file, damaged_or_cut_is_refused) {
  fixture_t f;
  qk_err_t err = {0};
  size_t bytes;
  open_fixture(&f, QK_HALF);
  rig_must(save(&f, &err), "save", &err);
  uint8_t *data = slurp(f.path, &bytes), *more = calloc(bytes + 1, 1);
  for (size_t at = QK_MG_HEADER_BYTES; at < bytes; at += at + 20000 < bytes ? 20000 : 977) {
    data[at] ^= 0x10;
    spill(f.path, data, bytes);
    expect_refused(&f, QK_BAD_CHECKSUM, "checksum of section");
    data[at] ^= 0x10;
  }
  const size_t lengths[] = {0, 1, QK_MG_HEADER_BYTES - 1, QK_MG_HEADER_BYTES, bytes / 2, bytes - 1};
  for (int i = 0; i < 6; i++) {
    spill(f.path, data, lengths[i]);
    expect_refused(&f, QK_TRUNCATED, "bytes");
  }
  memcpy(more, data, bytes);
  spill(f.path, more, bytes + 1);
  expect_refused(&f, QK_BAD_FORMAT, "but the header says");
  memset(more, 'x', bytes);
  spill(f.path, more, bytes);
  expect_refused(&f, QK_BAD_FORMAT, "not a checkpoint");
  /* two sites of equal size that change places */
  uint8_t site[12 * 4 * 4], *a = data + QK_MG_HEADER_BYTES, *b = a + 5 * sizeof site;
  memcpy(site, a, sizeof site);
  memcpy(a, b, sizeof site);
  memcpy(b, site, sizeof site);
  spill(f.path, data, bytes);
  expect_refused(&f, QK_BAD_CHECKSUM, "checksum of section 0");
  cr_expect_eq(unlink(f.path), 0);
  cr_expect_eq(mkdir(f.path, 0777), 0);
  expect_refused(&f, QK_BAD_FORMAT, "not a regular file");
  cr_expect_eq(rmdir(f.path), 0);
  free(more);
  free(data);
  close_fixture(&f);
}

/* A header whose checksum is right but whose figures are not. */
Test(mg_file, with_an_absurd_header_is_refused) {
  fixture_t f;
  qk_mg_header_t good, h;
  uint8_t bytes[QK_MG_HEADER_BYTES];
  open_fixture(&f, QK_SINGLE);
  qk_mg_header_fill(&good, f.mg, &f.identity);
  qk_mg_header_encode(&good, bytes);
  cr_assert_eq(qk_mg_header_decode(bytes, &h, NULL), QK_OK);
  cr_expect_eq(memcmp(&h, &good, sizeof h), 0);
#define WITH(change)                                                                               \
  do {                                                                                             \
    h = good;                                                                                      \
    change;                                                                                        \
    qk_mg_header_encode(&h, bytes);                                                                \
    cr_expect_eq(qk_mg_header_decode(bytes, &h, NULL), QK_BAD_FORMAT, #change);                    \
  } while (0)
  WITH(h.file_bytes++);
  WITH(h.dims[0] = 7);
  WITH(h.dims[3] = 1 << 30);
  WITH(h.dims[1] = 0);
  WITH(h.nlevel = 1);
  WITH(h.nlevel = 6);
  WITH(h.nlevel = 4);
  WITH(h.deflate = 257);
  WITH(h.deflate = -1);
  WITH(h.deflate_wanted = 3);
  WITH(h.level[0].block[0] = 0);
  WITH(h.level[0].block[0] = 3);
  WITH(h.level[1].nvec = 66);
  WITH(h.level[1].nvec = 5);
  WITH(h.level[0].ntest = 3);
  WITH(h.level[0].nnull = 3);
  WITH(h.level[0].nnull = 66);
  WITH(h.level[0].nnull = 10);
  WITH(h.nsection = 13);
  WITH(h.nsection = 2);
  WITH(h.section[0].kind = QK_MG_SECTION_DEFLATION);
  WITH(h.section[1].level = 0);
  WITH(h.section[3].level = 1);
  WITH(h.section[3].kind = QK_MG_SECTION_VECTORS);
  WITH(h.section[0].prec = QK_DOUBLE);
  WITH(h.section[2].prec = QK_HALF);
  WITH(h.section[4].prec = QK_HALF);
  WITH(h.section[1].columns = 8);
  WITH(h.section[1].ncomp = 12);
  WITH(h.section[1].sites *= 2);
  WITH(h.section[1].offset += 8);
  WITH(h.section[2].bytes = INT64_MAX);
  WITH(h.value[3] = 0);
  WITH(h.value[0] = NAN);
  WITH(memset(h.identity.operator_text, 'a', sizeof h.identity.operator_text));
  WITH(h.identity.operator_text[0] = '\0');
  WITH(h.identity.operator_text[6] = '_');
  WITH(memcpy(h.identity.operator_text, "wilson-clover;csw=1;mass=0.05", 29));
#undef WITH
  close_fixture(&f);
}

Test(mg_file, with_text_after_its_end_is_refused) {
  enum { OPERATOR = 104, LAST = QK_MG_HEADER_BYTES - 8 };
  fixture_t f;
  qk_mg_header_t h;
  uint8_t bytes[QK_MG_HEADER_BYTES];
  open_fixture(&f, QK_SINGLE);
  qk_mg_header_fill(&h, f.mg, &f.identity);
  qk_mg_header_encode(&h, bytes);
  bytes[OPERATOR + QK_OPERATOR_TEXT - 1] = 'a';
  const uint64_t sum = XXH3_64bits(bytes, LAST);
  for (int i = 0; i < 8; i++) bytes[LAST + i] = (uint8_t)(sum >> (8 * i));
  cr_expect_eq(qk_mg_header_decode(bytes, &h, NULL), QK_BAD_FORMAT);
  close_fixture(&f);
}

Test(mg_file, with_an_absurd_past_is_refused) {
  fixture_t f;
  qk_mg_header_t good, h;
  uint8_t bytes[QK_MG_HEADER_BYTES];
  open_fixture(&f, QK_SINGLE);
  qk_mg_header_fill(&good, f.mg, &f.identity);
  cr_expect(good.fresh_residual > 0 && good.fresh_convergence > 0 && good.origin[0] == '\0');
#define WITH(change)                                                                               \
  do {                                                                                             \
    h = good;                                                                                      \
    change;                                                                                        \
    qk_mg_header_encode(&h, bytes);                                                                \
    cr_expect_eq(qk_mg_header_decode(bytes, &h, NULL), QK_BAD_FORMAT, #change);                    \
  } while (0)
  WITH(h.fresh_residual = -1);
  WITH(h.fresh_residual = INFINITY);
  WITH(h.fresh_convergence = NAN);
  WITH(h.origin[0] = '\n');
  WITH(h.origin[0] = '\x7f');
#undef WITH
  close_fixture(&f);
}

/* ---- trouble while writing ------------------------------------------------------------------- */

Test(mg_file, that_cannot_be_written_leaves_the_old_one) {
  fixture_t f;
  qk_err_t err = {0};
  size_t before, after;
  char faults[32];
  open_fixture(&f, QK_SINGLE);
  rig_must(save(&f, &err), "save", &err);
  uint8_t *old = slurp(f.path, &before);
  f.identity.seed = 7; /* what is written now has another header */
  qk_status_t status = QK_INTERNAL;
  for (int n = 1; status != QK_OK && n < 100; n++) {
    err = (qk_err_t){0};
    snprintf(faults, sizeof faults, "write:%d", n);
    cr_assert_eq(qk_fault_set(faults), 0);
    status = save(&f, &err);
    cr_assert_eq(qk_fault_set(NULL), 0);
    if (status == QK_OK) break;
    cr_expect_eq(status, QK_IO_ERROR, "%s: %s", faults, qk_status_name(status));
    cr_expect(strstr(err.text, "No space left") != NULL, "%s", err.text);
    uint8_t *now = slurp(f.path, &after);
    cr_expect(after == before && memcmp(old, now, before) == 0, "%s: the old file is gone", faults);
    cr_expect(access(f.temp, F_OK) != 0, "%s: %s stays", faults, f.temp);
    free(now);
  }
  cr_expect_eq(status, QK_OK);
  free(old);
  close_fixture(&f);
}

Test(mg_file, that_cannot_be_read_says_so) {
  fixture_t f;
  qk_err_t err = {0};
  char faults[32];
  open_fixture(&f, QK_SINGLE);
  rig_must(save(&f, &err), "save", &err);
  qk_status_t status = QK_INTERNAL;
  for (int n = 1; status != QK_OK && n < 100; n++) {
    qk_mg_t *mg = NULL;
    snprintf(faults, sizeof faults, "read:%d", n);
    cr_assert_eq(qk_fault_set(faults), 0);
    status = load(&f, &mg, NULL);
    cr_assert_eq(qk_fault_set(NULL), 0);
    cr_expect(status == QK_OK || status == QK_IO_ERROR, "%s: %s", faults, qk_status_name(status));
    qk_mg_destroy(mg);
  }
  cr_expect_eq(status, QK_OK);
  close_fixture(&f);
}

Test(mg_file, takes_over_what_a_dead_process_has_left) {
  fixture_t f;
  qk_err_t err = {0};
  qk_mg_t *mg = NULL;
  open_fixture(&f, QK_SINGLE);
  uint8_t *junk = malloc(1 << 22);
  memset(junk, 'j', 1 << 22);
  spill(f.temp, junk, 1 << 22);
  free(junk);
  rig_must(save(&f, &err), "save", &err);
  rig_must(load(&f, &mg, &err), "load", &err);
  qk_mg_destroy(mg);
  close_fixture(&f);
}

/* Under the name that it has at first: a link to another file of this user, by name or by
 * number. */
Test(mg_file, is_not_written_where_others_have_put_something) {
  fixture_t f;
  char other[128], there[8] = "";
  open_fixture(&f, QK_SINGLE);
  snprintf(other, sizeof other, "%s/other", f.folder);
  for (int k = 0; k < 3; k++) {
    qk_err_t err = {0};
    spill(other, (const uint8_t *)"secret", 7);
    if (k == 2)
      cr_assert_eq(mkfifo(f.temp, 0600), 0);
    else
      cr_assert_eq(k ? symlink(other, f.temp) : link(other, f.temp), 0);
    cr_expect_eq(save(&f, &err), k ? QK_IO_ERROR : QK_DENIED, "%s", err.text);
    FILE *in = fopen(other, "rb");
    cr_assert(in != NULL && fread(there, 1, 7, in) == 7);
    fclose(in);
    cr_expect_str_eq(there, "secret");
    cr_expect(access(f.path, F_OK) != 0);
    unlink(f.temp);
  }
  unlink(other);
  close_fixture(&f);
}

Test(mg_file, is_not_written_by_two_at_once) {
  fixture_t f;
  qk_err_t err = {0};
  open_fixture(&f, QK_SINGLE);
  int fd = open(f.temp, O_WRONLY | O_CREAT, 0666);
  cr_assert(fd >= 0 && flock(fd, LOCK_EX) == 0);
  cr_expect_eq(save(&f, &err), QK_BUSY);
  cr_expect(strstr(err.text, "another process") != NULL, "%s", err.text);
  cr_expect_eq(access(f.temp, F_OK), 0);
  close(fd);
  rig_must(save(&f, &err), "save", &err);
  strcpy(f.path, "/nowhere/setup.mg");
  err = (qk_err_t){0};
  cr_expect_eq(save(&f, &err), QK_IO_ERROR);
  snprintf(f.path, sizeof f.path, "%s/setup.mg", f.folder);
  close_fixture(&f);
}
