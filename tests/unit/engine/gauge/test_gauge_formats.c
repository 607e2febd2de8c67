/* Every format, made byte by byte by tests/support/gauge_make.c, on lattices of unequal extents. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "tests/support/gauge_load.h"
#include "tests/support/gauge_make.h"

static char dir[64], path[96], path2[96];

static void setup(void) {
  strcpy(dir, "/tmp/qk-gauge-XXXXXX");
  cr_assert_not_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/in", dir);
  snprintf(path2, sizeof path2, "%s/out", dir);
}

static void teardown(void) {
  unlink(path);
  unlink(path2);
  cr_expect_eq(rmdir(dir), 0, "a file was left over");
}

TestSuite(gauge_formats, .init = setup, .fini = teardown);

static const int shapes[][4] = {{2, 4, 6, 8}, {8, 2, 2, 4}, {4, 8, 4, 2}, {2, 2, 2, 2}};
enum { SHAPES = 4 };

static int64_t reals_of(const int d[4]) {
  return (int64_t)d[0] * d[1] * d[2] * d[3] * 72;
}

/* Writes the file; *sums are those of the links. */
static void make_file(const gauge_make_t *m, const int d[4], const double *links) {
  double plaquette, trace;
  gauge_sums(d, links, &plaquette, &trace);
  gauge_bytes_t b = gauge_make(m, d, links, plaquette, trace);
  gauge_save(path, b.p, b.n);
  free(b.p);
}

/* What a reader should find: rounded to the stored precision; a third row, where it was left out,
 * is not bit for bit that of the maker. */
static void expect_links(const gauge_make_t *m, const double *want, const gauge_load_t *g) {
  int64_t differ = 0;
  double off = 0;
  for (int64_t i = 0; i < g->geom.volume * 72; i++) {
    double w = m->bits == 32 ? (float)want[i] : want[i];
    if (i % 18 >= 6 * m->rows) {
      off = fmax(off, fabs(w - g->links[i]));
    } else {
      differ += memcmp(&w, &g->links[i], sizeof w) != 0;
    }
  }
  cr_expect_eq(differ, 0, "%s: %ld differ", gauge_make_name(m), (long)differ);
  cr_expect_lt(off, m->bits == 32 ? 3e-7 : 1e-15, "%s: %g", gauge_make_name(m), off);
}

Test(gauge_formats, every_format_gives_the_links_that_were_stored) {
  for (int s = 0; s < SHAPES; s++) {
    double *links = gauge_random(shapes[s], 0.5, 7 + (unsigned)s), plaquette, trace;
    gauge_sums(shapes[s], links, &plaquette, &trace);
    for (int i = 0; i < gauge_makes_count; i++) {
      const gauge_make_t *m = &gauge_makes[i];
      gauge_load_t g;
      make_file(m, shapes[s], links);
      qk_status_t status = gauge_load(path, m->kind == MAKE_BARE ? shapes[s] : NULL, &g);
      cr_assert_eq(status, QK_OK, "%s: %s", gauge_make_name(m), g.err.text);
      cr_expect_arr_eq(g.info.dims, shapes[s], sizeof g.info.dims);
      cr_expect_eq(g.info.bits, m->bits);
      expect_links(m, links, &g);
      double limit = m->bits == 32 ? 1e-6 : 1e-13;
      cr_expect_float_eq(g.check.plaquette, plaquette, limit, "%s", gauge_make_name(m));
      cr_expect_float_eq(g.check.link_trace, trace, limit, "%s", gauge_make_name(m));
      cr_expect_eq(g.check.checksum_ok, g.info.has_checksum);
      bool has = m->kind != MAKE_BARE && m->kind != MAKE_OPENQCD && m->kind != MAKE_DDALPHAAMG;
      cr_expect_eq(g.info.has_checksum, has, "%s", gauge_make_name(m));
      gauge_unload(&g);
    }
    free(links);
  }
}

/* Both read the same bytes; only the plaquette tells. A disordered field has hardly any, and a
 * field near unity nearly the same in the wrong order. */
Test(gauge_formats, openqcd_and_ddalphaamg_are_told_apart) {
  static const int large[4] = {10, 8, 8, 10}, flat[4] = {8, 8, 8, 16};
  const int *dims[3] = {shapes[0], large, flat};
  const gauge_make_t makes[2] = {{MAKE_OPENQCD, 64, 3, false}, {MAKE_DDALPHAAMG, 64, 3, false}};
  const double spread[3] = {0.01, 0.3, 100};
  for (int k = 0; k < 14; k++) {
    const gauge_make_t *m = &makes[k % 2];
    const int *d = dims[k / 6];
    gauge_load_t g;
    double *links = gauge_random(d, spread[k / 2 % 3], (unsigned)k);
    make_file(m, d, links);
    cr_assert_eq(gauge_load(path, NULL, &g), QK_OK, "%s", g.err.text);
    cr_expect_str_eq(g.info.format, k % 2 ? "DDalphaAMG" : "openQCD");
    cr_expect_arr_eq(g.info.dims, d, sizeof g.info.dims);
    cr_expect_arr_eq(g.links, links, (size_t)reals_of(d) * sizeof *links);
    gauge_unload(&g);
    free(links);
  }
}

Test(gauge_formats, what_is_written_reads_back_bit_for_bit) {
  static const char *const formats[2] = {"ildg", "nersc"};
  for (int s = 0; s < SHAPES; s++) {
    double *links = gauge_random(shapes[s], 0.4, 3);
    const gauge_make_t bare = {MAKE_ILDG, 64, 3, true};
    gauge_load_t a, b, c;
    make_file(&bare, shapes[s], links);
    cr_assert_eq(gauge_load(path, NULL, &a), QK_OK);
    for (int k = 0; k < 4; k++) {
      qk_err_t err = {0};
      int bits = k / 2 ? 32 : 64;
      cr_assert_eq(qk_gauge_write(path2, formats[k % 2], bits, &a.geom, a.links, &err), QK_OK, "%s",
                   err.text);
      cr_assert_eq(gauge_load(path2, NULL, &b), QK_OK, "%s", b.err.text);
      cr_expect_eq(b.info.bits, bits);
      cr_expect(b.info.has_checksum && b.check.checksum_ok);
      const gauge_make_t as = {MAKE_ILDG, bits, 3, true};
      expect_links(&as, links, &b);
      cr_expect_eq(b.check.digest == a.check.digest, bits == 64);
      /* once rounded, nothing changes any more */
      cr_assert_eq(qk_gauge_write(path2, formats[(k + 1) % 2], bits, &b.geom, b.links, &err),
                   QK_OK);
      cr_assert_eq(gauge_load(path2, NULL, &c), QK_OK, "%s", c.err.text);
      cr_expect_eq(c.check.digest, b.check.digest);
      gauge_unload(&b);
      gauge_unload(&c);
    }
    gauge_unload(&a);
    free(links);
  }
}

Test(gauge_formats, a_written_file_is_one_that_others_would_write) {
  const int *d = shapes[0];
  double *links = gauge_random(d, 0.4, 3), plaquette, trace;
  gauge_load_t g;
  for (int i = 0; i < gauge_makes_count; i++) {
    const gauge_make_t *m = &gauge_makes[i];
    if (!m->big || m->rows == 2 || (m->kind != MAKE_ILDG && m->kind != MAKE_NERSC)) continue;
    make_file(m, d, links);
    gauge_sums(d, links, &plaquette, &trace);
    gauge_bytes_t want = gauge_make(m, d, links, plaquette, trace);
    cr_assert_eq(gauge_load(path, NULL, &g), QK_OK);
    cr_assert_eq(qk_gauge_write(path2, m->kind == MAKE_ILDG ? "ildg" : "nersc", m->bits, &g.geom,
                                g.links, NULL),
                 QK_OK);
    qk_gauge_info_t info;
    cr_assert_eq(qk_gauge_probe(path2, NULL, &info, NULL), QK_OK);
    cr_expect_eq(info.layout.stated[0], g.info.layout.stated[0]);
    cr_expect_eq(info.layout.stated[1], g.info.layout.stated[1]);
    size_t bytes = (size_t)info.data_bytes;
    cr_assert_eq(bytes, (size_t)reals_of(d) * (size_t)m->bits / 8);
    uint8_t *raw = malloc(bytes);
    FILE *f = fopen(path2, "rb");
    cr_assert_eq(fseek(f, (long)info.data_offset, SEEK_SET), 0);
    cr_assert_eq(fread(raw, 1, bytes, f), bytes);
    fclose(f);
    cr_expect_arr_eq(raw, want.p + want.links, bytes);
    free(raw);
    free(want.p);
    gauge_unload(&g);
  }
  free(links);
}

Test(gauge_formats, the_digest_is_the_documented_one) {
  gauge_load_t g;
  uint64_t digest = 0;
  cr_assert_eq(gauge_load("builtin:weak:2x4x2x6:11", NULL, &g), QK_OK, "%s", g.err.text);
  for (int64_t n = 0; n < g.geom.volume; n++)
    digest += XXH3_64bits_withSeed(g.links + 72 * n, 576, (XXH64_hash_t)n);
  cr_expect_eq(g.check.digest, digest);
  gauge_unload(&g);
}

Test(gauge_formats, builtin_fields_are_what_they_say) {
  gauge_load_t g, h;
  double plaquette, trace;
  cr_assert_eq(gauge_load("builtin:unit:2x4x6x2", NULL, &g), QK_OK, "%s", g.err.text);
  cr_expect_float_eq(g.check.plaquette, 1, 1e-15);
  cr_expect_eq(g.check.unitarity, 0);
  gauge_unload(&g);
  cr_assert_eq(gauge_load("builtin:weak:4x6x8x10:5", NULL, &g), QK_OK, "%s", g.err.text);
  cr_expect_float_eq(g.check.plaquette, 0.887, 0.01);
  cr_expect_lt(g.check.unitarity, 1e-14);
  gauge_sums(g.info.dims, g.links, &plaquette, &trace);
  cr_expect_float_eq(g.check.plaquette, plaquette, 1e-13);
  cr_assert_eq(gauge_load("builtin:weak:4x6x8x10:5", NULL, &h), QK_OK);
  cr_expect_eq(h.check.digest, g.check.digest);
  gauge_unload(&h);
  cr_assert_eq(gauge_load("builtin:weak:4x6x8x10:6", NULL, &h), QK_OK);
  cr_expect_neq(h.check.digest, g.check.digest);
  gauge_unload(&h);
  gauge_unload(&g);
}

Test(gauge_formats, malformed_builtin_names_are_refused) {
  static const char *const bad[] = {"builtin:",
                                    "builtin:weak",
                                    "builtin:weak:4x4x4x4",
                                    "builtin:weak:4x4x4x4:",
                                    "builtin:weak:4x4x4x4:-1",
                                    "builtin:weak:4x4x4x4:1x",
                                    "builtin:weak:4x4x4x4:1:2",
                                    "builtin:weak:4x4x4x5:1",
                                    "builtin:weak:4x4x4:1",
                                    "builtin:unit:4x4x4x4:1",
                                    "builtin:unit:65536x65536x2x2",
                                    "builtin:hot:4x4x4x4:1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_gauge_info_t info;
    qk_err_t err = {0};
    qk_status_t status = qk_gauge_probe(bad[i], NULL, &info, &err);
    cr_expect(status == QK_BAD_ARGUMENT || status == QK_BAD_GEOMETRY, "%s: %d", bad[i], status);
    cr_expect_neq(err.text[0], '\0');
  }
}

/* Bytes of the two phases; negative once they are complete. */
static void count_progress(void *arg, const char *phase, int64_t done, int64_t total) {
  int64_t *last = (int64_t *)arg + (strcmp(phase, "check") == 0);
  cr_expect(strcmp(phase, "read") == 0 || strcmp(phase, "check") == 0, "%s", phase);
  cr_expect(done >= *last && *last >= 0 && done <= total);
  *last = done == total ? -done : done;
}

Test(gauge_formats, progress_ends_with_all_bytes) {
  for (int i = 0; i < gauge_makes_count; i++) {
    const gauge_make_t *m = &gauge_makes[i];
    double *links = gauge_random(shapes[0], 0.4, 3);
    gauge_load_t g;
    int64_t last[2] = {0};
    if (m->kind == MAKE_BARE) continue;
    make_file(m, shapes[0], links);
    cr_assert_eq(gauge_load(path, NULL, &g), QK_OK);
    cr_expect_eq(
        qk_gauge_read(path, &g.info, &g.geom, g.links, &g.check, count_progress, last, NULL),
        QK_OK);
    cr_expect_eq(last[0], -g.info.data_bytes, "%s", gauge_make_name(m));
    cr_expect_eq(last[1], -g.geom.volume * 576, "%s", gauge_make_name(m));
    gauge_unload(&g);
    free(links);
  }
}

/* ---- judging ---- */

static qk_status_t judge(int bits, double unitarity, double determinant, double plaquette) {
  qk_gauge_info_t info = {.bits = bits, .has_plaquette = true, .plaquette = 0.5};
  qk_gauge_check_t check = {
      .unitarity = unitarity, .determinant = determinant, .plaquette = plaquette};
  return qk_gauge_judge(&info, &check, false, NULL);
}

Test(gauge_judge, thresholds_follow_the_stored_precision) {
  cr_expect_eq(judge(64, 1e-10, 0, 0.5), QK_OK);
  cr_expect_eq(judge(64, 1e-8, 0, 0.5), QK_NOT_UNITARY);
  cr_expect_eq(judge(64, 0, 1e-8, 0.5), QK_NOT_UNITARY);
  cr_expect_eq(judge(32, 1e-6, 1e-6, 0.5), QK_OK);
  cr_expect_eq(judge(32, 1e-4, 0, 0.5), QK_NOT_UNITARY);
  cr_expect_eq(judge(64, 0, 0, 0.5 + 1e-9), QK_BAD_PLAQUETTE);
  cr_expect_eq(judge(32, 0, 0, 0.5 + 1e-6), QK_OK);
  cr_expect_eq(judge(32, 0, 0, 0.5 + 1e-4), QK_BAD_PLAQUETTE);
}

Test(gauge_judge, nan_passes_nothing) {
  cr_expect_eq(judge(64, NAN, 0, 0.5), QK_NOT_UNITARY);
  cr_expect_eq(judge(64, 0, NAN, 0.5), QK_NOT_UNITARY);
  cr_expect_eq(judge(64, 0, 0, NAN), QK_BAD_PLAQUETTE);
}

Test(gauge_formats, one_nan_in_a_link_is_found) {
  for (int k = 0; k < 3; k++) {
    const double value[3] = {NAN, INFINITY, 1e300};
    const gauge_make_t m = {MAKE_BARE, 64, 3, true};
    double *links = gauge_random(shapes[0], 0.4, 3);
    gauge_load_t g;
    links[12345] = value[k];
    make_file(&m, shapes[0], links);
    cr_expect_eq(gauge_load(path, shapes[0], &g), QK_NOT_UNITARY, "%s", g.err.text);
    gauge_unload(&g);
    free(links);
  }
}

/* ---- failures on the way ---- */

/* Fails the n-th passage of a fault point for n = 1, 2, ... until one run
 * passes none; counts runs. */
static int for_all_faults(const char *point, qk_status_t want, qk_status_t (*attempt)(void)) {
  for (int n = 1;; n++) {
    char text[32];
    int64_t before = qk_mem_bytes();
    snprintf(text, sizeof text, "%s:%d", point, n);
    cr_assert_eq(qk_fault_set(text), 0);
    qk_status_t status = attempt();
    cr_assert_eq(qk_fault_set(NULL), 0);
    cr_expect_eq(qk_mem_bytes(), before, "%s leaks", text);
    if (status == QK_OK) return n - 1;
    cr_expect_eq(status, want, "%s: status %d", text, status);
    cr_assert_lt(n, 100000);
  }
}

static qk_status_t attempt_load(void) {
  gauge_load_t g;
  qk_status_t status = gauge_load(path, NULL, &g);
  gauge_unload(&g);
  return status;
}

Test(gauge_formats, each_failed_read_and_allocation_is_reported) {
  for (int i = 0; i < gauge_makes_count; i++) {
    const gauge_make_t *m = &gauge_makes[i];
    double *links = gauge_random(shapes[3], 0.4, 3);
    if (m->kind != MAKE_BARE) {
      make_file(m, shapes[3], links);
      cr_expect_gt(for_all_faults("read", QK_IO_ERROR, attempt_load), 1, "%s", gauge_make_name(m));
      cr_expect_gt(for_all_faults("alloc", QK_NO_MEMORY, attempt_load), 3, "%s",
                   gauge_make_name(m));
    }
    free(links);
  }
}

static gauge_load_t given;
static const char *given_format;

static qk_status_t attempt_write(void) {
  return qk_gauge_write(path2, given_format, 64, &given.geom, given.links, NULL);
}

/* teardown sees to it that no temporary file is left */
Test(gauge_formats, a_failed_write_leaves_the_old_file) {
  static const char *const formats[2] = {"ildg", "nersc"};
  static const char *const points[3] = {"write", "read", "alloc"};
  cr_assert_eq(gauge_load("builtin:weak:2x2x2x4:1", NULL, &given), QK_OK);
  for (int k = 0; k < 6; k++) {
    struct stat before, after;
    given_format = formats[k % 2];
    gauge_save(path2, "old", 3);
    cr_assert_eq(stat(path2, &before), 0);
    char text[32];
    snprintf(text, sizeof text, "%s:1", points[k / 2]);
    cr_assert_eq(qk_fault_set(text), 0);
    cr_expect_neq(attempt_write(), QK_OK);
    cr_assert_eq(stat(path2, &after), 0);
    cr_expect(after.st_size == 3 && after.st_ino == before.st_ino);
    qk_status_t want = k / 2 == 2 ? QK_NO_MEMORY : QK_IO_ERROR;
    cr_expect_gt(for_all_faults(points[k / 2], want, attempt_write), 1);
  }
  gauge_unload(&given);
}

Test(gauge_formats, writing_refuses_what_it_cannot_do) {
  qk_err_t err = {0};
  gauge_load_t g;
  cr_assert_eq(gauge_load("builtin:unit:2x2x2x4", NULL, &g), QK_OK);
  cr_expect_eq(qk_gauge_write(path2, "milc", 32, &g.geom, g.links, &err), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_gauge_write(path2, "ildg", 16, &g.geom, g.links, NULL), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_gauge_write("/nonexistent/x.lime", "ildg", 64, &g.geom, g.links, NULL),
               QK_IO_ERROR);
  gauge_unload(&g);
}

Test(gauge_formats, info_of_another_lattice_is_refused) {
  gauge_load_t g;
  qk_err_t err = {0};
  cr_assert_eq(gauge_load("builtin:unit:2x2x2x4", NULL, &g), QK_OK);
  g.info.dims[3] = 6;
  cr_expect_eq(
      qk_gauge_read("builtin:unit:2x2x2x4", &g.info, &g.geom, g.links, &g.check, NULL, NULL, &err),
      QK_BAD_GEOMETRY);
  cr_expect_not_null(strstr(err.text, "extent of t = 6"), "%s", err.text);
  gauge_unload(&g);
}
