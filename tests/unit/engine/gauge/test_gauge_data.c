/* Every configuration of the reference data against the numbers that an independent code found. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/gauge_load.h"

static json_t *reference;

static const char *data_path(const char *name) {
  static char path[4096];
  const char *folder = getenv("QK_DATA");
  snprintf(path, sizeof path, "%s/%s", folder == NULL ? "../shared/data" : folder, name);
  return path;
}

static void setup(void) {
  reference = json_load_file(data_path("reference.json"), 0, NULL);
}

static void teardown(void) {
  json_decref(reference);
}

TestSuite(gauge_data, .init = setup, .fini = teardown);

#define NEED_DATA()                                                                                \
  do {                                                                                             \
    if (reference == NULL) cr_skip_test("no reference data: set QK_DATA");                         \
  } while (0)

static double number(const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  cr_assert(json_is_number(v), "%s is no number", key);
  return json_number_value(v);
}

/* The extents that its header leaves out. */
static const int *hint_of(const char *name) {
  static const int four[4] = {4, 4, 4, 4};
  return strncmp(name, "lqcdjl_", 7) == 0 ? four : NULL;
}

static const char *format_of(const char *reference_format) {
  static const char *const names[][2] = {{"LIME/ILDG D", "ILDG"},
                                         {"LIME/ILDG F", "ILDG"},
                                         {"LIME/SCIDAC F", "SciDAC"},
                                         {"LIME/SCIDAC D", "SciDAC"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(reference_format, names[i][0]) == 0) return names[i][1];
  return reference_format;
}

/* A link in single precision is off by 1e-7: deviations are then compared to that. */
static void compare(const char *name, const json_t *want, const gauge_load_t *g) {
  static const char *const plane[6] = {"xy", "xz", "xt", "yz", "yt", "zt"};
  const json_t *header = json_object_get(want, "header"),
               *dims = json_object_get(want, "dims_xyzt");
  cr_expect_str_eq(g->info.format, format_of(json_string_value(json_object_get(header, "format"))),
                   "%s", name);
  for (size_t mu = 0; mu < 4; mu++)
    cr_expect_eq(g->info.dims[mu], json_integer_value(json_array_get(dims, mu)), "%s", name);
  cr_expect_float_eq(g->check.plaquette, number(want, "plaquette"), 1e-12, "%s", name);
  for (int i = 0; i < 6; i++) {
    double p = number(json_object_get(want, "planes"), plane[i]);
    cr_expect_float_eq(g->check.plane[i], p, 1e-12, "%s %s", name, plane[i]);
  }
  cr_expect_float_eq(g->check.link_trace, number(want, "link_trace"), 1e-12, "%s", name);
  cr_expect_float_eq(g->check.unitarity, number(want, "max_unitarity_deviation"), 1e-14, "%s",
                     name);
  cr_expect_float_eq(g->check.determinant, number(want, "max_determinant_deviation"), 1e-14, "%s",
                     name);
}

Test(gauge_data, every_configuration_has_the_reference_numbers) {
  NEED_DATA();
  const char *name;
  json_t *want;
  int seen = 0;
  json_object_foreach(reference, name, want) {
    gauge_load_t g;
    int64_t before = qk_mem_bytes();
    qk_status_t status = gauge_load(data_path(name), hint_of(name), &g);
    bool bad = strcmp(name, "milc_lat.sample.5p7") == 0;
    cr_expect_eq(status, bad ? QK_BAD_CHECKSUM : QK_OK, "%s: %s", name, g.err.text);
    compare(name, want, &g);
    gauge_unload(&g);
    cr_expect_eq(qk_mem_bytes(), before, "%s", name);
    seen++;
  }
  cr_expect_geq(seen, 17);
}

Test(gauge_data, formats_of_one_field_hold_the_same_links) {
  NEED_DATA();
  static const char *const same[][2] = {{"milc_lat.sample.l4444", "milc_lat.sample.l4444.ildg"},
                                        {"milc_lat.sample.l4444", "milc_lat.sample.l4444.scidac"},
                                        {"milc_lat.sample.l4448", "milc_lat.sample.l4448.scidac"},
                                        {"milc_lat.sample.l4448", "milc_lat.sample.l4448.foreign"}};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    gauge_load_t g[2];
    for (int k = 0; k < 2; k++)
      cr_assert_eq(gauge_load(data_path(same[i][k]), NULL, &g[k]), QK_OK, "%s", g[k].err.text);
    cr_expect_eq(g[0].check.digest, g[1].check.digest, "%s %s", same[i][0], same[i][1]);
    cr_expect_arr_eq(g[0].links, g[1].links, (size_t)g[0].geom.volume * 72 * sizeof(double));
    for (int k = 0; k < 2; k++) gauge_unload(&g[k]);
  }
}

/* The two files were written by different codes: they agree to rounding. */
Test(gauge_data, ildg_and_nersc_of_one_field_agree_to_rounding) {
  NEED_DATA();
  gauge_load_t a, b;
  double worst = 0;
  cr_assert_eq(gauge_load(data_path("atb_ildg.l8t4b3360"), NULL, &a), QK_OK);
  cr_assert_eq(gauge_load(data_path("atb_nersc.l8t4b3360"), NULL, &b), QK_OK);
  for (int64_t i = 0; i < a.geom.volume * 72; i++)
    worst = fmax(worst, fabs(a.links[i] - b.links[i]));
  cr_expect_lt(worst, 1e-14);
  gauge_unload(&a);
  gauge_unload(&b);
}

Test(gauge_data, links_that_are_not_su3_are_refused_and_named) {
  NEED_DATA();
  gauge_load_t g;
  cr_expect_eq(gauge_load(data_path("milc_lat.sample.5p7"), NULL, &g), QK_BAD_CHECKSUM);
  cr_expect_not_null(strstr(g.err.text, "checksum"), "%s", g.err.text);
  cr_expect_not_null(strstr(g.err.text, "not unitary"), "%s", g.err.text);
  qk_err_t err = {0};
  cr_expect_eq(qk_gauge_judge(&g.info, &g.check, false, &err), QK_NOT_UNITARY);
  cr_expect_not_null(strstr(err.text, "0.179"), "%s", err.text);
  gauge_unload(&g);
}

Test(gauge_data, a_file_without_extents_asks_for_them) {
  NEED_DATA();
  const char *path = data_path("lqcdjl_confs_HMC_L04040404_beta5.7_Wilson_kappa0.141139.ildg");
  const int large[4] = {4, 4, 8, 8}, odd[4] = {4, 4, 4, 5}, twice[4] = {4, 4, 4, 8};
  gauge_load_t g;
  cr_expect_eq(gauge_load(path, NULL, &g), QK_BAD_GEOMETRY);
  cr_expect_not_null(strstr(g.err.text, "--dims"), "%s", g.err.text);
  gauge_unload(&g);
  cr_expect_eq(gauge_load(path, large, &g), QK_TRUNCATED, "%s", g.err.text);
  gauge_unload(&g);
  cr_expect_eq(gauge_load(path, odd, &g), QK_BAD_GEOMETRY, "%s", g.err.text);
  gauge_unload(&g);
  /* twice the sites would fit links of half the precision: but those are not SU(3) */
  cr_expect_eq(gauge_load(path, twice, &g), QK_NOT_UNITARY, "%s", g.err.text);
  gauge_unload(&g);
}
