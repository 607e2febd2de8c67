/* Damaged gauge files: each damage has its own error, costs no memory, and leaks none. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "tests/support/gauge_load.h"
#include "tests/support/gauge_make.h"

static char dir[64], path[96];
static double *links, plaquette, trace;
static const int dims[4] = {2, 4, 2, 6};
static const gauge_make_t ildg = {MAKE_ILDG, 64, 3, true}, nersc = {MAKE_NERSC, 32, 2, false},
                          milc = {MAKE_MILC, 32, 3, false}, openqcd = {MAKE_OPENQCD, 64, 3, false};

static void setup(void) {
  strcpy(dir, "/tmp/qk-damage-XXXXXX");
  cr_assert_not_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/in", dir);
  links = gauge_random(dims, 0.4, 3);
  gauge_sums(dims, links, &plaquette, &trace);
}

static void teardown(void) {
  free(links);
  unlink(path);
  rmdir(dir);
}

TestSuite(gauge_damage, .init = setup, .fini = teardown);

static gauge_bytes_t make(const gauge_make_t *m) {
  return gauge_make(m, dims, links, plaquette, trace);
}

/* Loads what is at path. What the reader says begins with the name of the file; what the judge says
 * has it put before by its caller. */
static qk_status_t load(const int hint[4]) {
  gauge_load_t g;
  int64_t before = qk_mem_bytes();
  qk_status_t status = gauge_load(path, hint, &g);
  cr_expect_eq(status, g.err.code);
  bool judged = status == QK_NOT_UNITARY || status == QK_BAD_PLAQUETTE;
  if (status != QK_OK && !judged)
    cr_expect_eq(strncmp(g.err.text, path, strlen(path)), 0, "%s", g.err.text);
  gauge_unload(&g);
  cr_expect_eq(qk_mem_bytes(), before);
  return status;
}

static qk_status_t load_bytes(const void *p, size_t n) {
  gauge_save(path, p, n);
  return load(NULL);
}

#define EXPECT_LOAD(want, p, n)                                                                    \
  do {                                                                                             \
    qk_status_t got_ = load_bytes(p, n);                                                           \
    cr_expect_eq(got_, want, "%s, not %s", qk_status_name(got_), qk_status_name(want));            \
  } while (0)

/* The bytes with the first `from` replaced by `to`, which has the same length. */
static void replace(gauge_bytes_t *b, const char *from, const char *to) {
  uint8_t *at = memmem(b->p, b->n, from, strlen(from));
  cr_assert(at != NULL && strlen(from) == strlen(to), "%s", from);
  memcpy(at, to, strlen(to));
}

static void expect_replaced(qk_status_t want, const gauge_make_t *m, const char *from,
                            const char *to) {
  gauge_bytes_t b = make(m);
  replace(&b, from, to);
  qk_status_t got = load_bytes(b.p, b.n);
  cr_expect_eq(got, want, "%s for %s: %s, not %s", to, from, qk_status_name(got),
               qk_status_name(want));
  free(b.p);
}

/* Cut at every byte near the ends and now and then between. Before byte 32 a format may not be
 * known; between two LIME records nothing says that another was to come, and its padding at the
 * very end may be missing. */
Test(gauge_damage, every_truncation_is_an_error) {
  for (int i = 0; i < gauge_makes_count; i++) {
    const gauge_make_t *m = &gauge_makes[i];
    if (m->kind == MAKE_BARE) continue;
    bool lime = m->kind == MAKE_ILDG || m->kind == MAKE_SCIDAC;
    gauge_bytes_t b = make(m);
    size_t after =
        b.links + (size_t)(m->rows * m->bits * dims[0] * dims[1] * dims[2] * dims[3] * 3);
    gauge_save(path, b.p, b.n);
    for (size_t n = b.n; n-- > 0;) {
      if (n > b.links + 9 && n < after - 9) n -= n % 997;
      cr_assert_eq(truncate(path, (off_t)n), 0);
      qk_status_t status = load(NULL);
      bool unknown = n < 32 || (lime && n <= b.links - 144);
      bool good = status == QK_TRUNCATED || (unknown && status == QK_BAD_FORMAT) ||
                  (lime && (n == after || n + 8 > b.n) && status == QK_OK);
      cr_expect(good, "%s cut to %zu: %s", gauge_make_name(m), n, qk_status_name(status));
    }
    free(b.p);
  }
}

Test(gauge_damage, every_flipped_bit_of_the_links_breaks_the_checksum) {
  for (int i = 0; i < gauge_makes_count; i++) {
    const gauge_make_t *m = &gauge_makes[i];
    gauge_bytes_t b = make(m);
    size_t bytes =
        (size_t)dims[0] * dims[1] * dims[2] * dims[3] * 12 * (size_t)m->rows * (size_t)m->bits / 4;
    bool has_checksum = m->kind == MAKE_ILDG || m->kind == MAKE_SCIDAC || m->kind == MAKE_NERSC ||
                        m->kind == MAKE_MILC;
    for (size_t k = 0; k < 16 && has_checksum; k++) {
      size_t bit = (k * 7919 * 8 + k) % (bytes * 8);
      b.p[b.links + bit / 8] ^= (uint8_t)(1u << bit % 8);
      EXPECT_LOAD(QK_BAD_CHECKSUM, b.p, b.n);
      b.p[b.links + bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(b.p);
  }
}

/* Without a checksum, unitarity and plaquette see all that matters: sign and exponent bits here. */
Test(gauge_damage, damage_without_a_checksum_is_seen_by_unitarity_or_plaquette) {
  for (int i = 0; i < gauge_makes_count; i++) {
    const gauge_make_t *m = &gauge_makes[i];
    if (m->kind != MAKE_OPENQCD && m->kind != MAKE_DDALPHAAMG) continue;
    gauge_bytes_t b = make(m);
    for (size_t k = 0; k < 40; k++) {
      size_t at = b.links + 8 * (k * 163) + 7;
      b.p[at] ^= k % 2 ? 0x80 : 0x10;
      qk_status_t status = load_bytes(b.p, b.n);
      cr_expect_eq(status, QK_NOT_UNITARY, "%s", qk_status_name(status));
      b.p[at] ^= k % 2 ? 0x80 : 0x10;
    }
    /* two links exchanged: all are SU(3), but not where they were */
    for (size_t k = 0; k < 144; k++) {
      uint8_t *p = b.p + b.links + k, swap = p[0];
      p[0] = p[144];
      p[144] = swap;
    }
    EXPECT_LOAD(QK_BAD_PLAQUETTE, b.p, b.n);
    free(b.p);
  }
}

Test(gauge_damage, bytes_after_the_links_are_an_error) {
  for (int i = 0; i < gauge_makes_count; i++) {
    const gauge_make_t *m = &gauge_makes[i];
    if (m->kind == MAKE_BARE) continue;
    gauge_bytes_t b = make(m);
    gauge_put(&b, "x", 1);
    bool lime = m->kind == MAKE_ILDG || m->kind == MAKE_SCIDAC;
    EXPECT_LOAD(lime ? QK_TRUNCATED : QK_BAD_GEOMETRY, b.p, b.n);
    free(b.p);
  }
}

Test(gauge_damage, changed_extents_are_an_error) {
  expect_replaced(QK_TRUNCATED, &ildg, "<lx>2<", "<lx>4<");
  expect_replaced(QK_BAD_GEOMETRY, &ildg, "<lt>6<", "<lt>2<");
  expect_replaced(QK_BAD_GEOMETRY, &ildg, "<lt>6<", "<lt>5<");
  expect_replaced(QK_BAD_GEOMETRY, &ildg, "<lt>6<", "<lt>0<");
  expect_replaced(QK_BAD_FORMAT, &ildg, "<lt>6<", "<lt>-<");
  expect_replaced(QK_TRUNCATED, &nersc, "DIMENSION_1 = 2", "DIMENSION_1 = 8");
  expect_replaced(QK_BAD_GEOMETRY, &nersc, "DIMENSION_2 = 4", "DIMENSION_2 = 2");
  expect_replaced(QK_BAD_GEOMETRY, &nersc, "DIMENSION_2 = 4", "DIMENSION_2 = 3");
}

Test(gauge_damage, exchanged_extents_are_seen_by_the_plaquette) {
  gauge_bytes_t b = make(&nersc);
  replace(&b, "DIMENSION_1 = 2", "DIMENSION_1 = 6");
  replace(&b, "DIMENSION_4 = 6", "DIMENSION_4 = 2");
  EXPECT_LOAD(QK_BAD_PLAQUETTE, b.p, b.n);
  free(b.p);
}

static void put_le(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* MILC and openQCD need no memory to see it, NERSC that of its header: all
 * later allocations fail. */
Test(gauge_damage, huge_extents_allocate_nothing) {
  static const char *const huge[][2] = {{"2147483648", "2"},
                                        {"65536", "65536"},
                                        {"999999999999999998", "999999999999999998"},
                                        {"4611686018427387904", "4"}};
  for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
    char text[512];
    int n = snprintf(text, sizeof text,
                     "BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE\nDIMENSION_1 = %s\nDIMENSION_2 = %s\n"
                     "DIMENSION_3 = 2\nDIMENSION_4 = 2\nFLOATING_POINT = IEEE32BIG\nEND_HEADER\n",
                     huge[i][0], huge[i][1]);
    cr_assert_eq(qk_fault_set("alloc:2+"), 0);
    qk_status_t status = load_bytes(text, (size_t)n);
    cr_expect_eq(status, i == 3 ? QK_BAD_FORMAT : QK_TOO_LARGE, "%s: %s", huge[i][0],
                 qk_status_name(status));
  }
  gauge_bytes_t m = make(&milc), o = make(&openqcd);
  cr_assert_eq(qk_fault_set("alloc:1+"), 0);
  put_le(m.p + 4, 0x7ffffffe);
  EXPECT_LOAD(QK_TOO_LARGE, m.p, m.n);
  put_le(m.p + 4, 0xfffffffe);
  EXPECT_LOAD(QK_BAD_GEOMETRY, m.p, m.n);
  for (int i = 0; i < 4; i++) put_le(o.p + 4 * i, 65536);
  EXPECT_LOAD(QK_TOO_LARGE, o.p, o.n);
  put_le(o.p, 0x40000000);
  EXPECT_LOAD(QK_BAD_FORMAT, o.p, o.n);
  cr_assert_eq(qk_fault_set(NULL), 0);
  free(m.p);
  free(o.p);
}

Test(gauge_damage, nersc_headers_are_parsed_strictly) {
  expect_replaced(QK_BAD_FORMAT, &nersc, "DIMENSION_1", "DIMENSION_2");
  expect_replaced(QK_BAD_FORMAT, &nersc, "DIMENSION_1", "DIMENSIO__1");
  expect_replaced(QK_BAD_FORMAT, &nersc, "= 4D_SU3", "  4D_SU3");
  expect_replaced(QK_BAD_FORMAT, &nersc, "FLOATING", "FLOATINX");
  expect_replaced(QK_UNSUPPORTED, &nersc, "IEEE32LITTLE", "IEEE16LITTLE");
  expect_replaced(QK_UNSUPPORTED, &nersc, "4D_SU3", "4D_SU2");
  expect_replaced(QK_BAD_FORMAT, &nersc, "CHECKSUM = ", "CHECKSUM =g");
  expect_replaced(QK_BAD_FORMAT, &nersc, "PLAQUETTE = 0.", "PLAQUETTE = .-");
  expect_replaced(QK_BAD_PLAQUETTE, &nersc, "PLAQUETTE = 0.", "PLAQUETTE = 9.");
  expect_replaced(QK_BAD_PLAQUETTE, &nersc, "LINK_TRACE = 0.", "LINK_TRACE = 7.");
}

Test(gauge_damage, a_nersc_header_without_end_is_not_read_for_ever) {
  size_t n = 1 << 20;
  char *text = malloc(n);
  memset(text, '\n', n);
  memcpy(text, "BEGIN_HEADER\n", 13);
  EXPECT_LOAD(QK_BAD_FORMAT, text, n);
  EXPECT_LOAD(QK_TRUNCATED, text, 1000);
  free(text);
}

Test(gauge_damage, milc_files_in_another_site_order_are_refused) {
  gauge_bytes_t b = make(&milc);
  b.p[84] = 1;
  EXPECT_LOAD(QK_UNSUPPORTED, b.p, b.n);
  free(b.p);
}

/* ---- LIME ---- */

static const char ildg_text[] = "<precision>64</precision><lx>2</lx><ly>4</ly><lz>2</lz><lt>6</lt>";

/* A LIME file of these records of text (pairs type, text, to NULL), then the links. */
static qk_status_t load_lime(const char *const record[], const int hint[4]) {
  gauge_bytes_t b = {0};
  size_t n = (size_t)dims[0] * dims[1] * dims[2] * dims[3] * 576;
  uint8_t *data = calloc(n, 1); /* probed only where an error is expected */
  for (int i = 0; record[i] != NULL; i += 2)
    gauge_put_record(&b, record[i], record[i + 1], strlen(record[i + 1]));
  gauge_put_record(&b, "ildg-binary-data", data, n);
  gauge_save(path, b.p, b.n);
  free(b.p);
  free(data);
  qk_gauge_info_t info;
  qk_err_t err = {0};
  qk_status_t status = qk_gauge_probe(path, hint, &info, &err);
  cr_expect_eq(status == QK_OK, err.text[0] == '\0');
  if (status == QK_OK) cr_expect_arr_eq(info.dims, dims, sizeof dims);
  return status;
}

#define EXPECT_LIME(want, hint, ...)                                                               \
  do {                                                                                             \
    const char *const records_[] = {__VA_ARGS__, NULL};                                            \
    qk_status_t got_ = load_lime(records_, hint);                                                  \
    cr_expect_eq(got_, want, "%s, not %s", qk_status_name(got_), qk_status_name(want));            \
  } while (0)

Test(gauge_damage, ildg_texts_are_read_as_they_come) {
  EXPECT_LIME(QK_OK, NULL, "ildg-format", ildg_text);
  EXPECT_LIME(QK_OK, NULL, "ildg-format",
              "\n<?xml?><a b=\"unbalanced><precision> 64\n</precision><lx>\t2</lx><ly x='1'>4</ly>"
              "<lz>2</lz>\n<lt>6 </lt></a>");
  EXPECT_LIME(QK_OK, NULL, "ildg-format", ildg_text, "anything", "<lx>8</lx>");
}

Test(gauge_damage, ildg_texts_are_parsed_strictly) {
  static const char *const bad[] = {
      "",
      "<",
      "<lx",
      "<lx>",
      "<precision>64</precision><lx>2</lx><ly>4</ly><lz>2</lz>",
      "<precision>64</precision><lx>2</lx><lx>2</lx><ly>4</ly><lz>2</lz><lt>6</lt>",
      "<precision>64</precision><lx>2<ly>4</ly></lx><lz>2</lz><lt>6</lt>",
      "<precision>64</precision><lx>+2</lx><ly>4</ly><lz>2</lz><lt>6</lt>",
      "<precision>64</precision><lx>2.0</lx><ly>4</ly><lz>2</lz><lt>6</lt>",
      "<precision>64</precision><lx>0x2</lx><ly>4</ly><lz>2</lz><lt>6</lt>",
      "<precision>64</precision><lx>&two;</lx><ly>4</ly><lz>2</lz><lt>6</lt>",
      "<precision>64</precision><lx></lx><ly>4</ly><lz>2</lz><lt>6</lt>",
      "<precision>64</precision><lx>22222222222222222222222222</lx><ly>4</ly><lz>2</lz><lt>6</lt>"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const char *const record[] = {"ildg-format", bad[i], NULL};
    qk_status_t got = load_lime(record, NULL);
    cr_expect_eq(got, QK_BAD_FORMAT, "\"%s\": %s", bad[i], qk_status_name(got));
  }
}

/* Messages go to terminals and into JSON. */
Test(gauge_damage, bytes_that_are_not_text_stay_out_of_messages) {
  static const char *const bad[][2] = {
      {"ildg-format", "<field>su3\x1b[2J</field>"},
      {"ildg-format", "<field>su3\xff</field>"},
      {"scidac-private-file-xml", "<volfmt>0</volfmt><dims>\xff</dims>"},
      {"xlf-info", "plaquette = \x01\n"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    gauge_bytes_t b = {0};
    qk_gauge_info_t info;
    qk_err_t err = {0};
    gauge_put_record(&b, bad[i][0], bad[i][1], strlen(bad[i][1]));
    gauge_save(path, b.p, b.n);
    cr_expect_eq(qk_gauge_probe(path, NULL, &info, &err), QK_BAD_FORMAT);
    for (const char *c = err.text; *c != '\0'; c++) cr_expect(*c >= ' ' && *c <= '~');
    free(b.p);
  }
  expect_replaced(QK_BAD_FORMAT, &nersc, "IEEE32LITTLE", "IEEE32LITTL\xff");
}

Test(gauge_damage, records_that_contradict_each_other_are_refused) {
  static const int other[4] = {2, 4, 4, 6};
  static const char scidac[] = "<dims>2 4 2 8</dims><volfmt>0</volfmt>";
  static const char record[] = "<precision>F</precision><colors>3</colors><datacount>4</datacount>";
  EXPECT_LIME(QK_BAD_GEOMETRY, NULL, "scidac-private-file-xml", scidac, "ildg-format", ildg_text);
  EXPECT_LIME(QK_BAD_FORMAT, NULL, "scidac-private-record-xml", record, "ildg-format", ildg_text);
  EXPECT_LIME(QK_BAD_GEOMETRY, other, "ildg-format", ildg_text);
  EXPECT_LIME(QK_OK, dims, "ildg-format", ildg_text);
  EXPECT_LIME(QK_OK, dims, "nothing", "");
  EXPECT_LIME(QK_BAD_GEOMETRY, NULL, "nothing", "");
}

Test(gauge_damage, what_is_not_a_gauge_field_of_su3_is_refused) {
  EXPECT_LIME(QK_UNSUPPORTED, NULL, "ildg-format", "<field>su2gauge</field>");
  EXPECT_LIME(QK_UNSUPPORTED, NULL, "ildg-format",
              "<precision>16</precision><lx>2</lx><ly>4</ly><lz>2</lz><lt>6</lt>");
  EXPECT_LIME(QK_UNSUPPORTED, NULL, "scidac-private-file-xml",
              "<dims>2 4 2 6</dims><volfmt>1</volfmt>");
  EXPECT_LIME(QK_UNSUPPORTED, NULL, "scidac-private-record-xml",
              "<precision>F</precision><colors>2</colors><datacount>4</datacount>");
  EXPECT_LIME(QK_BAD_GEOMETRY, NULL, "scidac-private-file-xml",
              "<dims>2 4 2</dims><volfmt>0</volfmt>");
  EXPECT_LIME(QK_BAD_GEOMETRY, NULL, "scidac-private-file-xml",
              "<dims>2 4 2 6 2</dims><volfmt>0</volfmt>");
  EXPECT_LIME(QK_UNSUPPORTED, NULL, "ildg-format", ildg_text, "ildg-binary-data", "twice");
  EXPECT_LIME(QK_BAD_FORMAT, NULL, "ildg-format", ildg_text, "xlf-info", "plaquette = nan\n");
}

/* ILDG with a checksum in these words instead. */
static gauge_bytes_t with_sums(const char *form, uint32_t a, uint32_t b) {
  gauge_bytes_t all = make(&ildg);
  char text[200];
  uint8_t *at = memmem(all.p, all.n, "scidac-checksum", 15);
  cr_assert_not_null(at);
  all.n = (size_t)(at - 16 - all.p);
  const int n = snprintf(text, sizeof text, form, a, b);
  gauge_put_record(&all, "scidac-checksum", text, (size_t)n);
  return all;
}

static void stated_sums(uint32_t sum[2]) {
  qk_gauge_info_t info;
  gauge_bytes_t b = make(&ildg);
  gauge_save(path, b.p, b.n);
  free(b.p);
  cr_assert_eq(qk_gauge_probe(path, NULL, &info, NULL), QK_OK);
  memcpy(sum, info.layout.stated, sizeof info.layout.stated);
}

/* As tmLQCD and its relatives write it, and nothing looser. */
Test(gauge_damage, a_checksum_may_have_the_prefix_of_tmlqcd) {
  static const char *const good[] = {"<suma>%#x</suma><sumb>%#x</sumb>",
                                     "<suma>%#010x</suma><sumb>%x</sumb>",
                                     "<suma>%X</suma><sumb>%08x</sumb>"},
                           *const bad[] = {"<suma>0X%x</suma><sumb>%x</sumb>",
                                           "<suma>0x%XA</suma><sumb>%x</sumb>",
                                           "<suma>0x0x%x</suma><sumb>%x</sumb>",
                                           "<suma>0x 1%x</suma><sumb>%x</sumb>",
                                           "<suma>0x00%08x</suma><sumb>%x</sumb>",
                                           "<suma>0x</suma><!--%x--><sumb>%x</sumb>",
                                           "<suma>-0x1</suma><!--%x--><sumb>%x</sumb>",
                                           "<suma>1%08x</suma><sumb>%x</sumb>",
                                           "<suma>%x</suma><!--%x-->"};
  uint32_t sum[2];
  stated_sums(sum);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    gauge_bytes_t b = with_sums(good[i], sum[0], sum[1]);
    EXPECT_LOAD(QK_OK, b.p, b.n);
    free(b.p);
    b = with_sums(good[i], sum[0] ^ 1, sum[1]);
    EXPECT_LOAD(QK_BAD_CHECKSUM, b.p, b.n);
    free(b.p);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    gauge_bytes_t b = with_sums(bad[i], sum[0], sum[1]);
    EXPECT_LOAD(QK_BAD_FORMAT, b.p, b.n);
    free(b.p);
  }
}

static qk_status_t load_ignoring(gauge_load_t *g) {
  static const int grid[4] = {1, 1, 1, 1};
  *g = (gauge_load_t){0};
  cr_assert_eq(qk_gauge_probe(path, NULL, &g->info, &g->err), QK_OK, "%s", g->err.text);
  cr_assert(qk_comm_self_create(&g->comm, NULL) == QK_OK &&
            qk_comm_set_grid(g->comm, grid, NULL) == QK_OK &&
            qk_geom_init(&g->geom, g->comm, g->info.dims, NULL) == QK_OK);
  g->links = qk_malloc((size_t)g->geom.local_volume * 72 * sizeof(double));
  g->info.ignore_checksum = true;
  qk_status_t status =
      qk_gauge_read(path, &g->info, &g->geom, g->links, &g->check, NULL, NULL, &g->err);
  return status ? status : qk_gauge_judge(&g->info, &g->check, false, &g->err);
}

/* Of each format that has one: plaquette and unitarity are judged all the same. */
Test(gauge_damage, an_ignored_checksum_is_told_and_nothing_else_is_ignored) {
  const gauge_make_t *const kinds[] = {&ildg, &nersc, &milc};
  gauge_load_t g;
  for (int k = 0; k < 3; k++) {
    gauge_bytes_t b = make(kinds[k]);
    gauge_save(path, b.p, b.n);
    cr_expect(load_ignoring(&g) == QK_OK && g.check.checksum_ok);
    gauge_unload(&g);
    const size_t last = kinds[k]->bits == 64 && kinds[k]->big ? 7 : 0;
    b.p[b.links + last] ^= 1; /* the last bit of a link */
    EXPECT_LOAD(QK_BAD_CHECKSUM, b.p, b.n);
    cr_expect_eq(load_ignoring(&g), QK_OK, "%s", g.err.text);
    cr_expect_not(g.check.checksum_ok);
    gauge_unload(&g);
    b.p[b.links + (kinds[k]->big ? 0 : kinds[k]->bits / 8 - 1)] ^= 0x40; /* of the exponent */
    gauge_save(path, b.p, b.n);
    cr_expect_eq(load_ignoring(&g), QK_NOT_UNITARY, "%s", g.err.text);
    gauge_unload(&g);
    free(b.p);
  }
  static const gauge_make_t *const texts[] = {&ildg, &nersc};
  static const char *const from[] = {"<suma>", "CHECKSUM = "}, *const to[] = {"<sumc>",
                                                                              "CHECKSUM =g"};
  for (int k = 0; k < 2; k++) { /* one that is no number */
    gauge_bytes_t b = make(texts[k]);
    replace(&b, from[k], to[k]);
    EXPECT_LOAD(QK_BAD_FORMAT, b.p, b.n);
    cr_expect_eq(load_ignoring(&g), QK_OK, "%s", g.err.text);
    cr_expect(g.info.has_checksum && !g.check.checksum_ok && g.info.checksum_fault[0]);
    gauge_unload(&g);
    free(b.p);
  }
  gauge_bytes_t b = make(&ildg);
  char text[64];
  b.p[b.links + 7] ^= 1;
  const int n = snprintf(text, sizeof text, "plaquette = %.8f\n", plaquette + 1e-4);
  gauge_put_record(&b, "xlf-info", text, (size_t)n);
  gauge_save(path, b.p, b.n);
  free(b.p);
  cr_expect_eq(load_ignoring(&g), QK_BAD_PLAQUETTE, "%s", g.err.text);
  gauge_unload(&g);
}

/* All links U_t of the last time slice are zero: not merely a file of wrong links. */
Test(gauge_damage, an_open_boundary_is_named) {
  const gauge_make_t *const kinds[] = {&ildg, &nersc, &milc, &openqcd};
  const int slice = dims[0] * dims[1] * dims[2], first = (dims[3] - 1) * slice;
  for (int all = 0; all < 2; all++)
    for (int k = 0; k < 4; k++) {
      gauge_load_t g;
      double *open = gauge_random(dims, 0.4, 3);
      for (int i = 0; i < slice - !all; i++)
        memset(open + ((first + i) * 4 + 3) * 18, 0, 18 * sizeof *open);
      double mean, mean_trace;
      gauge_sums(dims, open, &mean, &mean_trace);
      gauge_bytes_t b = gauge_make(kinds[k], dims, open, mean, mean_trace);
      gauge_save(path, b.p, b.n);
      cr_expect_eq(gauge_load(path, NULL, &g), QK_NOT_UNITARY);
      cr_expect_eq(
          strncmp(g.err.text, "open boundary: all links U_t from t = 5 to t = 0 are zero", 57) == 0,
          all, "%s", g.err.text);
      cr_expect_eq(strstr(g.err.text, "give open = C_F") != NULL, all, "%s", g.err.text);
      cr_expect_eq(g.check.open_boundary, all);
      cr_expect_eq(g.check.unitarity >= 1, !all);
      cr_expect_eq(qk_gauge_judge(&g.info, &g.check, true, &g.err), all ? QK_OK : QK_NOT_UNITARY);
      gauge_unload(&g);
      free(b.p);
      free(open);
    }
}

Test(gauge_damage, a_stated_plaquette_is_compared) {
  for (int k = 0; k < 4; k++) {
    gauge_bytes_t b = make(&ildg);
    char text[128];
    double stated = plaquette + (k % 2 ? 1e-4 : 1e-7);
    int n =
        snprintf(text, sizeof text,
                 k / 2 ? "<usqcdInfo><plaq>%.6f</plaq></usqcdInfo>" : "plaquette = %.6f\n", stated);
    gauge_put_record(&b, k / 2 ? "scidac-record-xml" : "xlf-info", text, (size_t)n);
    EXPECT_LOAD(k % 2 ? QK_BAD_PLAQUETTE : QK_OK, b.p, b.n);
    free(b.p);
  }
}

Test(gauge_damage, lime_lengths_are_never_believed) {
  gauge_bytes_t b = make(&ildg);
  for (int byte = 8; byte < 14; byte++) {
    uint8_t was = b.p[byte];
    b.p[byte] = 0xff;
    EXPECT_LOAD(QK_TRUNCATED, b.p, b.n);
    b.p[byte] = was;
  }
  b.p[0] ^= 1; /* the first magic number makes it LIME; the next ones must be there */
  EXPECT_LOAD(QK_BAD_FORMAT, b.p, b.n);
  b.p[0] ^= 1;
  b.p[b.links - 144] ^= 1;
  EXPECT_LOAD(QK_BAD_FORMAT, b.p, b.n);
  free(b.p);
}

Test(gauge_damage, long_texts_and_endless_records_are_refused) {
  size_t n = (1 << 20) + 8;
  char *text = malloc(n);
  gauge_bytes_t b = {0};
  memset(text, ' ', n);
  gauge_put_record(&b, "ildg-format", text, n);
  EXPECT_LOAD(QK_TOO_LARGE, b.p, b.n);
  free(text);
  free(b.p);
  b = (gauge_bytes_t){0};
  for (int i = 0; i < 10001; i++) gauge_put_record(&b, "x", "", 0);
  EXPECT_LOAD(QK_TOO_LARGE, b.p, b.n);
  free(b.p);
}

/* ---- no gauge file at all ---- */

Test(gauge_damage, garbage_is_not_a_gauge_file) {
  uint8_t bytes[4096] = {0};
  uint64_t state = 1;
  EXPECT_LOAD(QK_BAD_FORMAT, bytes, 0);
  for (int k = 0; k < 50; k++) {
    for (size_t i = 0; i < sizeof bytes; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes[i] = (uint8_t)(state >> 56);
    }
    cr_expect_neq(load_bytes(bytes, sizeof bytes), QK_OK);
  }
  memset(bytes, 0, sizeof bytes);
  EXPECT_LOAD(QK_BAD_FORMAT, bytes, sizeof bytes);
}

/* Only who reads the links may ignore it, so the header passes. */
Test(gauge_damage, a_checksum_that_is_no_number_is_refused_with_the_links) {
  static const char *const bad[] = {"<suma>1</suma><sumb>123456789</sumb>", "<suma>1</suma>"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    EXPECT_LIME(QK_OK, NULL, "ildg-format", ildg_text, "scidac-checksum", bad[i]);
    cr_expect_eq(load(NULL), QK_BAD_FORMAT, "%s", bad[i]);
  }
}

Test(gauge_damage, what_is_no_file_is_an_io_error) {
  static const char *const none[] = {"/nonexistent/file", "/tmp", "/dev/zero"};
  for (size_t i = 0; i < 3; i++) {
    qk_gauge_info_t info;
    qk_err_t err = {0};
    cr_expect_eq(qk_gauge_probe(none[i], NULL, &info, &err), QK_IO_ERROR);
    cr_expect_eq(strncmp(err.text, none[i], strlen(none[i])), 0, "%s", err.text);
  }
}
