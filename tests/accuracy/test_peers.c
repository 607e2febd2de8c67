/*
 * Numbers that other programs published or computed: the clover propagators that Chroma wrote, and
 * correlators and solution norms of DDalphaAMG.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/mg_rig.h"

static const char *in_data(const char *name) {
  static char path[1024];
  const char *folder = getenv("QK_DATA");
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared/data", name);
  return path;
}

static json_t *load(const char *name) {
  json_t *j = json_load_file(in_data(name), 0, NULL);
  if (!j) cr_skip_test("no %s in QK_DATA", name);
  if (!rig_backend_present()) cr_skip_test("no device");
  return j;
}

static double element(const json_t *array, size_t i) {
  return json_number_value(json_array_get(array, i));
}

static void expect_relative(const char *what, double got, double want, double tol) {
  cr_expect(fabs(got - want) <= tol * fabs(want), "%s: %.14g, not %.14g: off by %.1e", what, got,
            want, fabs(got / want - 1));
}

/* ---- Chroma ---------------------------------------------------------------------------------- */

/* The file's propagator: [t][z][y][x][spin][source spin][colour][source colour], complex double. */
static double *read_propagator(const char *name, size_t sites) {
  double *s = qk_malloc(sites * 288 * sizeof *s);
  char dataset[64];
  snprintf(dataset, sizeof dataset, "sh_sig2p0_n5/%s", name);
  hid_t file = H5Fopen(in_data("lalibe_test_propagator_t4.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
  hid_t data = H5Dopen2(file, dataset, H5P_DEFAULT);
  hid_t stored = H5Dget_type(data), native = H5Tget_native_type(stored, H5T_DIR_ASCEND);
  cr_assert(H5Tget_size(native) == 288 * sizeof *s);
  cr_assert(H5Dread(data, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, s) >= 0);
  H5Tclose(native);
  H5Tclose(stored);
  H5Dclose(data);
  H5Fclose(file);
  return s;
}

static void take_column(const double *s, size_t sites, int spin0, int colour0, double *v) {
  for (size_t i = 0; i < sites; i++)
    for (int spin = 0; spin < 4; spin++)
      for (int colour = 0; colour < 3; colour++)
        memcpy(v + 24 * i + 2 * (3 * spin + colour),
               s + 288 * i + 2 * (((spin * 4 + spin0) * 3 + colour) * 3 + colour0), 16);
}

/* M S must be the smeared source: as good as nothing off its time slice, the stated norm on it. */
static void check_chroma(const json_t *entry, const char *name) {
  const json_t *norms = json_object_get(entry, "norm_MS_on_source_slice_per_spin_colour");
  const json_t *pion = json_object_get(entry, "pion");
  qk_rig_t rig;
  double c[8] = {0};
  rig_open(&rig, NULL, in_data("pyquda_weak_field.lime"), NULL);
  rig_operator(&rig, json_number_value(json_object_get(entry, "mass")),
               json_number_value(json_object_get(entry, "csw")), -1);
  size_t sites = (size_t)rig.geom.volume, slice = rig_reals(&rig) / 8;
  double *s = read_propagator(name, sites), *v = rig_vector(&rig), *mv = rig_vector(&rig);
  double off = 0; /* largest on any other slice: where the stored solution is not exact */
  for (int column = 0; column < 12; column++) {
    double norm2[8] = {0};
    take_column(s, sites, column / 3, column % 3, v);
    rig_apply(&rig, v, false, mv);
    for (size_t i = 0; i < rig_reals(&rig); i++) {
      c[i / slice] += v[i] * v[i];
      norm2[i / slice] += mv[i] * mv[i];
    }
    for (int t = 0; t < 8; t++)
      if (t != 4) off = fmax(off, sqrt(norm2[t]));
    expect_relative("|M S| on the source", sqrt(norm2[4]), element(norms, (size_t)column), 1e-12);
  }
  double want = json_number_value(json_object_get(entry, "max_norm_MS_off_source_slice"));
  expect_relative("|M S| off the source", off, want, 1e-2);
  for (size_t t = 0; t < 8; t++) expect_relative("pion", c[t], element(pion, t), 1e-12);
  qk_free(mv);
  qk_free(v);
  qk_free(s);
  rig_close(&rig);
}

Test(peers, chroma_propagators_are_solutions) {
  json_t *all = load("published.json");
  const json_t *pair =
      json_object_get(all, "pyquda_weak_field.lime + lalibe_test_propagator_t4.h5");
  const char *names[] = {"PS_up_4", "PS_dn_4"};
  for (int i = 0; i < 2; i++) check_chroma(json_object_get(pair, names[i]), names[i]);
  json_decref(all);
}

/* ---- DDalphaAMG ------------------------------------------------------------------------------ */

/* Twelve point sources at the origin, and ones in its basis. */
static void import_sources(qk_rig_t *rig, qk_solver_t *solver) {
  double *v = rig_vector(rig);
  for (int i = 0; i < 13; i++) {
    rig_point(rig, i / 3, i % 3, v);
    for (size_t k = 0; i == 12 && k < rig_reals(rig); k++) {
      size_t spin = k % 24 / 6;
      v[k] = k % 2 ? 0 : spin == 1 || spin == 2 ? 1 : -1;
    }
    rig_import(rig, qk_solver_rhs(solver, i), 0, v);
  }
  qk_free(v);
}

static void check_solutions(qk_rig_t *rig, qk_solver_t *solver, const json_t *entry) {
  double pion[16] = {0}, *v = rig_vector(rig),
         tol = json_number_value(json_object_get(entry, "tol"));
  size_t nt = (size_t)rig->geom.global[3], slice = rig_reals(rig) / nt;
  import_sources(rig, solver);
  for (int i = 0; i < 13; i++) rig_must(qk_solver_fill(solver, i, tol, 5000), "fill", NULL);
  rig_run(solver);
  for (int i = 0; i < 13; i++) {
    cr_expect(qk_solver_slot(solver, i)->status == QK_OK);
    rig_export(rig, qk_solver_solution(solver, i), 0, v);
    for (size_t k = 0; i < 12 && k < rig_reals(rig); k++) pion[k / slice] += v[k] * v[k];
  }
  expect_relative("norm of the solution", sqrt(rig_norm2(rig, v)),
                  json_number_value(json_object_get(entry, "norm_solution_constant_rhs_BASIS4")),
                  1e-9);
  for (size_t t = 0; t < nt; t++)
    expect_relative("pion", pion[t], element(json_object_get(entry, "pion"), t), 1e-8);
  qk_free(v);
}

static void operator_of(qk_rig_t *rig, const json_t *entry) {
  rig_operator(rig, json_number_value(json_object_get(entry, "m0")),
               json_number_value(json_object_get(entry, "csw")), -1);
}

Test(peers, ddalphaamg_has_the_same_solutions) {
  json_t *all = load("peer_ddalphaamg.json");
  const json_t *list = json_object_get(all, "dd_8x8x8x8b6.0000id3n1");
  qk_rig_t rig;
  rig_open(&rig, NULL, in_data("dd_8x8x8x8b6.0000id3n1"), NULL);
  for (size_t i = 0; i < 2; i++) { /* the heavier masses */
    operator_of(&rig, json_array_get(list, i));
    qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_SINGLE, 13);
    check_solutions(&rig, solver, json_array_get(list, i));
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
  json_decref(all);
}

/* The lightest masses by multigrid, on their configuration tiled to dims. name: as in the file;
 * params: NULL for the defaults. */
static void check_multigrid(const char *name, const char *dims, size_t masses,
                            const qk_mg_params_t *params) {
  json_t *all = load("peer_ddalphaamg.json");
  const json_t *list = json_object_get(all, name);
  size_t n = json_array_size(list);
  char gauge[1100];
  qk_rig_t rig;
  mg_rig_t m;
  cr_assert(n >= masses, "%s", name);
  snprintf(gauge, sizeof gauge, "tiled:%s:%s", dims, in_data("dd_8x8x8x8b6.0000id3n1"));
  rig_open(&rig, NULL, gauge, NULL);
  for (size_t i = n - masses; i < n; i++) {
    const json_t *entry = json_array_get(list, i);
    operator_of(&rig, entry);
    mg_rig_open(&rig, params, QK_SINGLE, 13, &m);
    check_solutions(&rig, m.solver, entry);
    mg_rig_close(&m);
  }
  rig_close(&rig);
  json_decref(all);
}

Test(peers, ddalphaamg_and_multigrid_agree_at_light_masses) {
  check_multigrid("dd_8x8x8x8b6.0000id3n1", "8x8x8x8", 2, NULL);
}

/* With QK_LARGE on 16^4, too, whose default it is: minutes. */
Test(peers, ddalphaamg_and_multigrid_agree_on_three_levels, .timeout = 580) {
  static const qk_mg_params_t params = {
      .nlevel = 3,
      .level = {{.block = {2, 2, 2, 4}, .nvec = 16}, {.block = {2, 2, 2, 2}, .nvec = 16}}};
  check_multigrid("dd_8x8x8x8b6.0000id3n1 tiled to X8 Y8 Z8 T16", "8x8x8x16", 1, &params);
  if (getenv("QK_LARGE"))
    check_multigrid("dd_8x8x8x8b6.0000id3n1 tiled to 16^4", "16x16x16x16", 1, NULL);
}
