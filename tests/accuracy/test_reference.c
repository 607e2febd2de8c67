/*
 * Every configuration and case of reference.json: plaquettes, applied vectors, solutions and pion
 * correlators as an independent program computed them. The inner precision goes through all three
 * with the number of the case.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/rig.h"

static void in_data(char *path, size_t size, const char *name) {
  const char *folder = getenv("QK_DATA");
  snprintf(path, size, "%s/%s", folder ? folder : "../shared/data", name);
}

static json_t *load_reference(void) {
  char path[1024];
  in_data(path, sizeof path, "reference.json");
  return json_load_file(path, 0, NULL);
}

static double number(const json_t *j) {
  return json_number_value(j);
}

/* "re, im" pairs anywhere inside nested arrays, in order. Returns how many numbers. */
static int flatten(const json_t *j, double *out) {
  if (json_is_number(j)) {
    *out = number(j);
    return 1;
  }
  int n = 0;
  for (size_t i = 0; i < json_array_size(j); i++) n += flatten(json_array_get(j, i), out + n);
  return n;
}

static void expect_relative(const char *what, double got, double want, double tol) {
  cr_expect(fabs(got - want) <= tol * fabs(want), "%s: %.16g, not %.16g: off by %.2e > %.0e", what,
            got, want, fabs(got / want - 1), tol);
}

/* n numbers, to tol of the largest. */
static void expect_numbers(const char *what, const double *got, const json_t *want, double tol) {
  double w[64], largest = 0;
  int n = flatten(want, w);
  cr_assert(n > 0 && n <= 64, "%s: %d numbers", what, n);
  for (int i = 0; i < n; i++) largest = fmax(largest, fabs(w[i]));
  for (int i = 0; i < n; i++)
    cr_expect(fabs(got[i] - w[i]) <= tol * largest, "%s[%d]: %.16g, not %.16g", what, i, got[i],
              w[i]);
}

static void make_ones(const qk_rig_t *rig, double *v) {
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] = i % 2 ? 0 : 1;
}

static void make_wave(const qk_rig_t *rig, double *v) {
  for (size_t i = 0; i < rig_reals(rig) / 2; i++) {
    v[2 * i] = cos(0.37 * (double)i);
    v[2 * i + 1] = sin(0.37 * (double)i);
  }
}

static void check_applied(qk_rig_t *rig, const json_t *c) {
  double *in = rig_vector(rig), *out = rig_vector(rig), dot[2];
  make_ones(rig, in);
  rig_apply(rig, in, false, out);
  expect_relative("|M ones|^2", rig_norm2(rig, out), number(json_object_get(c, "norm2_M_ones")),
                  1e-12);

  rig_point(rig, 0, 0, in);
  rig_apply(rig, in, false, out);
  expect_relative("|M point|^2", rig_norm2(rig, out), number(json_object_get(c, "norm2_M_point")),
                  1e-12);
  expect_numbers("M point at origin", out, json_object_get(c, "M_point_at_origin"), 1e-13);
  expect_numbers("M point at +x", out + 24, json_object_get(c, "M_point_spin0_at_neighbour_x+1"),
                 1e-13);

  make_wave(rig, in);
  rig_apply(rig, in, false, out);
  rig_dot(rig, in, out, dot);
  expect_relative("|M wave|^2", rig_norm2(rig, out), number(json_object_get(c, "norm2_M_wave")),
                  1e-12);
  expect_numbers("(wave, M wave)", dot, json_object_get(c, "wave_dot_M_wave"), 1e-12);
  expect_numbers("M wave at origin", out, json_object_get(c, "M_wave_site0_spin0"), 1e-12);
  qk_free(out);
  qk_free(in);
}

/* 12 point columns and one of ones: a ragged block. */
static void check_solved(qk_rig_t *rig, const json_t *c, qk_prec_t inner) {
  qk_solver_t *solver = rig_solver(rig, "bicgstab", inner, 13);
  double *v = rig_vector(rig), tol[13], pion[64] = {0};
  int slot[13], nt = rig->geom.global[3];
  int64_t limit[13];
  for (int i = 0; i < 13; i++) {
    slot[i] = i;
    tol[i] = 1e-12;
    limit[i] = 5000;
    if (i < 12)
      rig_point(rig, i / 3, i % 3, v);
    else
      make_ones(rig, v);
    rig_import(rig, qk_solver_rhs(solver, i), 0, v);
  }
  cr_assert(qk_solver_fill_many(solver, slot, 13, tol, limit) == QK_OK);
  rig_run(solver);
  size_t slice = rig_reals(rig) / (size_t)nt;
  for (int i = 0; i < 13; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    cr_expect(s->status == QK_OK && s->residual <= 1e-12, "column %d: %s, %g", i,
              qk_status_name(s->status), s->residual);
    rig_export(rig, qk_solver_solution(solver, i), 0, v);
    for (size_t k = 0; i < 12 && k < rig_reals(rig); k++) pion[k / slice] += v[k] * v[k];
  }
  double sum[2] = {0, 0};
  for (size_t k = 0; k < rig_reals(rig); k++) sum[k % 2] += v[k];
  expect_relative("|M^-1 ones|^2", rig_norm2(rig, v), number(json_object_get(c, "norm2_Minv_ones")),
                  1e-10);
  expect_numbers("(ones, M^-1 ones)", sum, json_object_get(c, "ones_dot_Minv_ones"), 1e-10);

  const json_t *want = json_object_get(c, "pion");
  cr_assert((int)json_array_size(want) == nt);
  for (int t = 0; t < nt; t++) {
    char what[32];
    snprintf(what, sizeof what, "pion C(%d)", t);
    expect_relative(what, pion[t], number(json_array_get(want, (size_t)t)), 1e-8);
  }
  qk_free(v);
  qk_solver_destroy(solver);
}

typedef struct config {
  char name[128];
} config_t;

ParameterizedTestParameters(reference, every_case_agrees) {
  static config_t list[64];
  size_t n = 0;
  json_t *all = load_reference();
  const char *name;
  json_t *entry;
  json_object_foreach(all, name, entry) if (json_object_get(entry, "cases") && n < 64)
      snprintf(list[n++].name, sizeof list[0].name, "%s", name);
  json_decref(all);
  return cr_make_param_array(config_t, list, n);
}

ParameterizedTest(const config_t *config, reference, every_case_agrees) {
  if (!rig_backend_present()) cr_skip_test("no device");
  char path[1024];
  int dims[4];
  size_t i;
  const char *plane;
  json_t *all = load_reference(), *c, *value;
  const json_t *entry = json_object_get(all, config->name);
  for (i = 0; i < 4; i++)
    dims[i] = (int)json_integer_value(json_array_get(json_object_get(entry, "dims_xyzt"), i));

  qk_rig_t rig;
  in_data(path, sizeof path, config->name);
  rig_open(&rig, NULL, path, dims);
  expect_relative("plaquette", rig.check.plaquette, number(json_object_get(entry, "plaquette")),
                  1e-12);
  i = 0;
  json_object_foreach(json_object_get(entry, "planes"), plane, value)
      expect_relative(plane, rig.check.plane[i++], number(value), 1e-11);

  cr_assert(json_array_size(json_object_get(entry, "cases")) > 0);
  json_array_foreach(json_object_get(entry, "cases"), i, c) {
    const char *boundary = json_string_value(json_object_get(c, "boundary"));
    double phase = strcmp(boundary, "periodic") == 0 ? 1 : -1;
    rig_operator(&rig, number(json_object_get(c, "m0")), number(json_object_get(c, "csw")), phase);
    check_applied(&rig, c);
    check_solved(&rig, c, (qk_prec_t)(i % 3));
  }
  rig_close(&rig);
  json_decref(all);
}

Test(reference, data_are_present) {
  json_t *all = load_reference();
  if (!all) cr_skip_test("no reference.json in QK_DATA");
  cr_expect(json_object_size(all) >= 19);
  json_decref(all);
}
