/* Smearing of links against the oracle, and by what it must conserve. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "tests/support/refused.h"
#include "tests/support/smear_kit.h"

static const char *const usual[] = {"ape:0.6,3", "ape:0.7,2,4d", "stout:0.1,3", "stout:0.15,2,4d",
                                    "hyp:0.75,0.6,0.3,2"};
enum { USUAL = 5 };

/* Links without smoothness: with these the sum of links and staples is near one matrix only. */
static const char *const mild[] = {"ape:0.25,2", "ape:0.3,1,4d", "stout:0.25,2", "stout:0.2,1,4d",
                                   "hyp:0.3,0.25,0.2,1"};

static void check_oracle(const char *gauge, const char *const spec[], int n) {
  qk_rig_t rig;
  rig_open(&rig, NULL, gauge, NULL);
  for (int i = 0; i < n; i++) {
    double *got = smear_links(&rig, spec[i], rig.links);
    double *want = smear_oracle(&rig, spec[i], rig.links, NULL, smear_reals(&rig));
    const double off = smear_distance(got, want, smear_reals(&rig));
    cr_expect(off < 1e-12, "%s of %s: off by %g", spec[i], gauge, off);
    qk_free(want);
    qk_free(got);
  }
  rig_close(&rig);
}

Test(link_smear, agrees_with_the_oracle_on_smooth_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check_oracle("builtin:weak:4x6x8x4:7", usual, USUAL);
}
Test(link_smear, agrees_with_the_oracle_on_thermalised_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  const char *data = getenv("QK_DATA");
  char path[512];
  snprintf(path, sizeof path, "%s/cl2qcd_conf.00200", data ? data : "");
  if (access(path, R_OK) != 0) cr_skip_test("%s is not there", path);
  check_oracle(path, usual, USUAL);
}
Test(link_smear, agrees_with_the_oracle_on_rough_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check_oracle("random:4x6x2x8:7", mild, USUAL);
}
Test(link_smear, agrees_with_the_oracle_on_the_smallest_lattice) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check_oracle("builtin:weak:2x2x2x2:3", usual, USUAL);
}

Test(link_smear, is_gauge_covariant) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:4x2x6x4:5", NULL);
  const size_t bytes = smear_reals(&rig) * sizeof(double);
  double *g = smear_rotation(&rig, 12), *turned = qk_malloc(bytes);
  memcpy(turned, rig.links, bytes);
  smear_rotate_links(&rig, g, turned);
  for (int i = 0; i < USUAL; i++) {
    double *a = smear_links(&rig, usual[i], rig.links), *b = smear_links(&rig, usual[i], turned);
    smear_rotate_links(&rig, g, a);
    const double off = smear_distance(b, a, smear_reals(&rig));
    cr_expect(off < 1e-13, "%s: off by %g", usual[i], off);
    qk_free(b);
    qk_free(a);
  }
  qk_free(turned);
  qk_free(g);
  rig_close(&rig);
}

Test(link_smear, keeps_unit_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:4x2x2x6", NULL);
  for (int i = 0; i < USUAL; i++) {
    double *a = smear_links(&rig, usual[i], rig.links);
    cr_expect(smear_distance(a, rig.links, smear_reals(&rig)) < 1e-15, "%s", usual[i]);
    qk_free(a);
  }
  rig_close(&rig);
}

Test(link_smear, raises_the_plaquette_and_stays_in_the_group) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const char *const spec[] = {"ape:0.6,%d", "ape:0.7,%d,4d", "stout:0.1,%d",
                                     "stout:0.1,%d,4d", "hyp:0.75,0.6,0.3,%d"};
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:4x4x4x4:9", NULL);
  for (int i = 0; i < 5; i++) {
    const bool spatial = i == 0 || i == 2;
    double last = 0;
    for (int steps = 0; steps <= 6; steps += 2) {
      char text[64];
      qk_gauge_check_t check;
      snprintf(text, sizeof text, spec[i], steps);
      double *a = smear_links(&rig, text, rig.links);
      rig_must(qk_gauge_measure(&rig.geom, a, &check, NULL), text, NULL);
      const double *p = check.plane; /* xy, xz, yz; xt, yt, zt */
      const double now = spatial ? p[0] + p[1] + p[3] : check.plaquette;
      cr_expect(now > last, "%s: %.17g after %.17g", text, now, last);
      cr_expect(check.unitarity < 1e-14 && check.determinant < 1e-14, "%s: off by %g, %g", text,
                check.unitarity, check.determinant);
      last = now;
      qk_free(a);
    }
    cr_expect(last > (spatial ? 2.98 : 0.99), "%s: %g", spec[i], last);
  }
  rig_close(&rig);
}

Test(link_smear, in_space_leaves_links_in_time_and_other_slices_alone) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:4x4x2x4:9", NULL);
  const size_t slice = smear_reals(&rig) / 4;
  static const char *const spec[] = {"ape:0.6,3", "stout:0.1,3"};
  for (int i = 0; i < 2; i++) {
    double *a = smear_links(&rig, spec[i], rig.links), *links = qk_malloc(4 * slice * sizeof *a);
    for (size_t n = 0; n < 4 * slice; n += 72)
      cr_assert_eq(memcmp(a + n + 54, rig.links + n + 54, 18 * sizeof *a), 0, "%s: U_t", spec[i]);
    memcpy(links, rig.links, 4 * slice * sizeof *a);
    memcpy(links + slice, rig.links + 2 * slice, slice * sizeof *a);
    double *b = smear_links(&rig, spec[i], links);
    cr_expect_eq(memcmp(a, b, slice * sizeof *a), 0, "%s: slice 0", spec[i]);
    cr_expect_eq(memcmp(a + 2 * slice, b + 2 * slice, 2 * slice * sizeof *a), 0, "%s: slices 2, 3",
                 spec[i]);
    cr_expect_neq(memcmp(a + slice, b + slice, slice * sizeof *a), 0, "%s: slice 1", spec[i]);
    qk_free(b);
    qk_free(links);
    qk_free(a);
  }
  rig_close(&rig);
}

/* ---- projection: a stage without staples projects any matrices ---- */

static double *project_all(const qk_rig_t *rig, const double *matrices) {
  qk_gaugefield_t *in = smear_field(rig, matrices, 1), *out = smear_field(rig, matrices, 1);
  double *v = qk_malloc(smear_reals(rig) * sizeof *v);
  const qk_link_smear_args_t args = {
      .lat = rig->geom.lat, .u = in->v, .out = out->v, .mask = 15, .own = 1};
  rig_must(rig->dev.ops->link_smear(rig->dev.ctx, &args), "link_smear", NULL);
  rig_must(qk_gaugefield_export(out, v), "export", NULL);
  qk_gaugefield_destroy(out);
  qk_gaugefield_destroy(in);
  return v;
}

/* Where V is best, V^+ A is hermitian but for a multiple of i: the largest
 * element of what it is not. */
static double slope(const double *v, const double *a, double *trace) {
  double m[3][3][2] = {{{0}}}, most = 0, middle = 0;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) {
        const double *x = v + 6 * k + 2 * i, *y = a + 6 * k + 2 * j;
        m[i][j][0] += x[0] * y[0] + x[1] * y[1];
        m[i][j][1] += x[0] * y[1] - x[1] * y[0];
      }
  *trace = m[0][0][0] + m[1][1][0] + m[2][2][0];
  for (int i = 0; i < 3; i++) middle += m[i][i][1] / 3;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      most = fmax(most, fabs(m[i][j][0] - m[j][i][0]) / 2);
      most = fmax(most, fabs((m[i][j][1] + m[j][i][1]) / 2 - (i == j ? middle : 0)));
    }
  return most;
}

/* Products with a diagonal matrix of wild sizes and phases have singular values far apart and
 * determinants of any phase. */
static void stretch(double *matrices, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 9; k++) {
      double *z = matrices + 18 * i + 2 * k;
      const double size = pow(10, -(double)((i >> k % 3) % 4)), angle = 0.37 * (double)(i % 17);
      const double re = z[0] * size, im = z[1] * size;
      z[0] = re * cos(angle) - im * sin(angle);
      z[1] = re * sin(angle) + im * cos(angle);
    }
}

Test(link_smear, projects_any_matrix_to_the_best_of_the_group) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x4x2x4:21", NULL);
  const int64_t n = rig.geom.volume * 4;
  double *a = qk_malloc(smear_reals(&rig) * sizeof *a);
  double *other = smear_rotation(&rig, 5), worst_slope = 0, worst_trace = 0;
  memcpy(a, rig.links, smear_reals(&rig) * sizeof *a);
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 18; k++) a[18 * i + k] += other[18 * (i % rig.geom.volume) + k];
  stretch(a + smear_reals(&rig) / 2, n / 2);
  double *v = project_all(&rig, a), *best = smear_oracle(&rig, "best", a, NULL, 2 * (size_t)n);
  qk_gauge_check_t check;
  rig_must(qk_gauge_measure(&rig.geom, v, &check, NULL), "measure", NULL);
  cr_expect(check.unitarity < 1e-14 && check.determinant < 1e-14, "off by %g, %g", check.unitarity,
            check.determinant);
  for (int64_t i = 0; i < n; i++) {
    double trace, size = 0;
    for (int k = 0; k < 18; k++) size += a[18 * i + k] * a[18 * i + k];
    worst_slope = fmax(worst_slope, slope(v + 18 * i, a + 18 * i, &trace) / sqrt(size));
    worst_trace = fmax(worst_trace, fabs(trace - best[2 * i]) / sqrt(size));
  }
  cr_expect(worst_slope < 1e-14, "V^+ A off by %g", worst_slope);
  cr_expect(worst_trace < 1e-6, "Re tr V^+ A off by %g", worst_trace);
  qk_free(best);
  qk_free(v);
  qk_free(other);
  qk_free(a);
  rig_close(&rig);
}

/* ---- what is asked for ---- */

Test(link_smear, parses_what_it_documents) {
  const struct {
    const char *text;
    qk_link_smear_t want;
  } good[] = {
      {"none", {.spatial = true}},
      {"ape:0.6,20", {QK_LINK_SMEAR_APE, {0.6, 0, 0}, 20, true, false}},
      {"ape:0,0,4d", {QK_LINK_SMEAR_APE, {0, 0, 0}, 0, false, false}},
      {"stout:.1,10", {QK_LINK_SMEAR_STOUT, {0.1, 0, 0}, 10, true, false}},
      {"stout:0.25,100,4d", {QK_LINK_SMEAR_STOUT, {0.25, 0, 0}, 100, false, false}},
      {"hyp:0.75,0.6,0.3,3", {QK_LINK_SMEAR_HYP, {0.75, 0.6, 0.3}, 3, true, false}},
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    qk_link_smear_t got;
    qk_err_t err = {0};
    const qk_link_smear_t *want = &good[i].want;
    cr_assert_eq(qk_link_smear_parse(good[i].text, &got, &err), QK_OK, "%s: %s", good[i].text,
                 err.text);
    cr_expect(got.kind == want->kind && got.steps == want->steps && got.spatial == want->spatial &&
                  memcmp(got.param, want->param, sizeof got.param) == 0,
              "%s", good[i].text);
  }
}

static qk_status_t parse(const char *text, bool *touched, qk_err_t *err) {
  qk_link_smear_t got = {.steps = 77};
  const qk_status_t status = qk_link_smear_parse(text, &got, err);
  *touched = got.steps != 77;
  return status;
}

Test(link_smear, refuses_bad_texts_by_name) {
  const struct {
    const char *text, *said;
  } bad[] = {
      {"", "unknown kind"},
      {"ape", "unknown kind"},
      {"apes:0.5,2", "unknown kind"},
      {":0.5,2", "unknown kind"},
      {"none:1,1", "unknown kind"},
      {"ape:", "a number is missing"},
      {"ape:x,3", "a number is missing"},
      {"ape:nan,3", "a number is missing"},
      {"ape:inf,3", "a number is missing"},
      {"ape:0.5", "steps is missing"},
      {"ape:0.5,", "steps is missing"},
      {"ape:0.5,2.5", "whole number"},
      {"ape:0.5,1e99", "whole number"},
      {"ape:0.5,2,", "not understood"},
      {"ape:0.5,2,3d", "not understood"},
      {"ape:0.5,2x", "steps is missing"},
      {"hyp:0.75,0.6,0.3", "steps is missing"},
      {"hyp:0.75,0.6,0.3,1,4d", "not understood"},
      {"ape:1.01,1", "APE alpha = 1.01: must be 0 to 1"},
      {"ape:-0.1,1", "APE alpha = -0.1: must be 0 to 1"},
      {"stout:0.26,1", "stout rho = 0.26: must be 0 to 0.25"},
      {"hyp:1.1,0.6,0.3,1", "HYP alpha1 = 1.1"},
      {"hyp:0.75,2,0.3,1", "HYP alpha2 = 2"},
      {"hyp:0.75,0.6,-1,1", "HYP alpha3 = -1"},
      {"ape:0.5,101", "steps = 101: must be 0 to 100"},
      {"ape:0.5,-1", "steps = -1: must be 0 to 100"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    expect_refused(parse, bad[i].text, bad[i].said);
}

Test(link_smear, refuses_parameters_that_are_not_numbers_or_kinds) {
  qk_err_t err = {0};
  qk_link_smear_t s = {QK_LINK_SMEAR_STOUT, {NAN, 0, 0}, 1, true, false};
  cr_expect_eq(qk_link_smear_check(&s, &err), QK_BAD_ARGUMENT);
  s = (qk_link_smear_t){(qk_link_smear_kind_t)4, {0.1, 0, 0}, 1, true, false};
  err = (qk_err_t){0};
  cr_expect_eq(qk_link_smear_check(&s, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "kind = 4") != NULL, "%s", err.text);
}
