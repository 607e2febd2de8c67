/* Fat and long links against the oracle, and by what they must conserve. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/fat/fat_links.h"
#include "tests/support/smear_kit.h"

static const struct {
  const char *spec; /* of the oracle */
  qk_fat_recipe_t recipe;
} recipes[] = {{"asqtad:1", {.kind = QK_FAT_ASQTAD, .u0 = 1}},
               {"asqtad:0.87", {.kind = QK_FAT_ASQTAD, .u0 = 0.87}},
               {"hisq:0", {.kind = QK_FAT_HISQ}},
               {"hisq:-0.3", {.kind = QK_FAT_HISQ, .epsilon = -0.3}}};
enum { RECIPES = sizeof recipes / sizeof *recipes };

/* Host memory, each [site][mu]. */
typedef struct made {
  double *fat, *lng, *left; /* left: what became of the links */
} made_t;

static double *take(const qk_rig_t *rig, const qk_gaugefield_t *f) {
  double *out = qk_malloc(smear_reals(rig) * sizeof *out);
  rig_must(qk_gaugefield_export(f, out), "export", NULL);
  return out;
}

static made_t make(const qk_rig_t *rig, const double *links, const qk_fat_recipe_t *recipe) {
  qk_err_t err = {0};
  qk_gaugefield_t *u = smear_field(rig, links, QK_FAT_HALO), *fat, *lng;
  rig_must(qk_fat_links(u, recipe, &fat, &lng, &err), "fat links", &err);
  const made_t m = {take(rig, fat), take(rig, lng), take(rig, u)};
  qk_gaugefield_destroy(lng);
  qk_gaugefield_destroy(fat);
  qk_gaugefield_destroy(u);
  return m;
}

static void drop(made_t *m) {
  qk_free(m->fat);
  qk_free(m->lng);
  qk_free(m->left);
}

/* ---- against the oracle ---- */

static void check_oracle(const char *gauge) {
  qk_rig_t rig;
  rig_open(&rig, NULL, gauge, NULL);
  const size_t n = smear_reals(&rig);
  for (int i = 0; i < RECIPES; i++) {
    made_t m = make(&rig, rig.links, &recipes[i].recipe);
    double *want = fat_oracle(&rig, recipes[i].spec, rig.links, 2 * n);
    double off[2] = {0}; /* the oracle has fat and long links of a site side by side */
    for (size_t k = 0; k < n; k++) {
      const size_t at = k / 72 * 144 + k % 72;
      off[0] = fmax(off[0], fabs(m.fat[k] - want[at]));
      off[1] = fmax(off[1], fabs(m.lng[k] - want[at + 72]));
    }
    cr_expect(off[0] < 1e-13 && off[1] < 1e-14, "%s of %s: off by %g, %g", recipes[i].spec, gauge,
              off[0], off[1]);
    qk_free(want);
    drop(&m);
  }
  rig_close(&rig);
}

Test(fat_links, agree_with_the_oracle_on_rough_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check_oracle("random:4x6x2x8:7");
}
Test(fat_links, agree_with_the_oracle_on_smooth_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check_oracle("builtin:weak:6x4x4x2:7");
}
Test(fat_links, agree_with_the_oracle_on_the_smallest_lattice) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check_oracle("random:2x2x2x2:3");
}
Test(fat_links, agree_with_the_oracle_on_thermalised_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  const char *data = getenv("QK_DATA");
  char path[512];
  snprintf(path, sizeof path, "%s/cl2qcd_conf.00200", data ? data : "");
  if (access(path, R_OK) != 0) cr_skip_test("%s is not there", path);
  check_oracle(path);
}

/* ---- invariants ---- */

Test(fat_links, are_gauge_covariant) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x2x6x4:5", NULL);
  const size_t n = smear_reals(&rig);
  double *g = smear_rotation(&rig, 12), *turned = qk_malloc(n * sizeof *turned);
  memcpy(turned, rig.links, n * sizeof *turned);
  smear_rotate_links(&rig, g, turned);
  for (int i = 0; i < RECIPES; i++) {
    made_t a = make(&rig, rig.links, &recipes[i].recipe);
    made_t b = make(&rig, turned, &recipes[i].recipe);
    smear_rotate_links(&rig, g, a.fat);
    smear_rotate_paths(&rig, g, 3, a.lng);
    const double fat = smear_distance(b.fat, a.fat, n), lng = smear_distance(b.lng, a.lng, n);
    cr_expect(fat < 1e-13 && lng < 1e-14, "%s: off by %g, %g", recipes[i].spec, fat, lng);
    drop(&b);
    drop(&a);
  }
  qk_free(turned);
  qk_free(g);
  rig_close(&rig);
}

Test(fat_links, fat_and_three_long_are_one_on_unit_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:4x2x2x6", NULL);
  for (int i = 0; i < RECIPES; i++) {
    if (recipes[i].recipe.kind == QK_FAT_ASQTAD && recipes[i].recipe.u0 != 1) continue;
    made_t m = make(&rig, rig.links, &recipes[i].recipe);
    for (size_t k = 0; k < smear_reals(&rig); k++) m.fat[k] += 3 * m.lng[k];
    const double off = smear_distance(m.fat, rig.links, smear_reals(&rig));
    cr_expect(off < 1e-15, "%s: off by %g", recipes[i].spec, off);
    drop(&m);
  }
  rig_close(&rig);
}

Test(fat_links, of_hisq_leave_w_in_place_of_the_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x2x6x4:6", NULL);
  const size_t n = smear_reals(&rig);
  double *want = fat_oracle(&rig, "w", rig.links, n);
  for (int i = 0; i < RECIPES; i++) {
    const bool hisq = recipes[i].recipe.kind == QK_FAT_HISQ;
    made_t m = make(&rig, rig.links, &recipes[i].recipe);
    const double off = smear_distance(m.left, hisq ? want : rig.links, n);
    cr_expect(off <= (hisq ? 1e-13 : 0), "%s: off by %g", recipes[i].spec, off);
    drop(&m);
  }
  qk_free(want);
  rig_close(&rig);
}

/* ---- memory, failures ---- */

static qk_status_t life(const qk_rig_t *rig, const qk_fat_recipe_t *recipe) {
  qk_err_t err = {0};
  qk_gaugefield_t *u = NULL, *fat = NULL, *lng = NULL;
  qk_status_t status = qk_gaugefield_create(&rig->dev, QK_FAT_HALO, &u);
  if (!status) status = qk_gaugefield_import(u, rig->links);
  if (!status) status = qk_fat_links(u, recipe, &fat, &lng, &err);
  cr_expect(!status == (fat && lng), "outputs are set on success alone");
  qk_gaugefield_destroy(lng);
  qk_gaugefield_destroy(fat);
  qk_gaugefield_destroy(u);
  return status;
}

static void fail_everywhere(const char *point, qk_status_t expected) {
  char faults[64];
  qk_status_t status = QK_INTERNAL;
  int n = 0;
  while (status && n < 1000) {
    qk_rig_t rig; /* a new one each time: a device that failed is lost */
    rig_open(&rig, NULL, "builtin:weak:2x2x2x4:1", NULL);
    const int64_t host = qk_mem_bytes(), device = rig.dev.ops->allocated(rig.dev.ctx);
    snprintf(faults, sizeof faults, "%s:%d", point, ++n);
    cr_assert(qk_fault_set(faults) == 0);
    status = life(&rig, &recipes[3].recipe);
    cr_assert(qk_fault_set(NULL) == 0);
    cr_assert(!status || status == expected, "%s: %s", faults, qk_status_name(status));
    cr_assert(qk_mem_bytes() == host && rig.dev.ops->allocated(rig.dev.ctx) == device,
              "%s: memory stays", faults);
    rig_close(&rig);
  }
  cr_expect(!status && n > 8, "%s: %d places, then %s", point, n, qk_status_name(status));
}

Test(fat_links, give_back_all_memory_wherever_they_fail) {
  if (!rig_backend_present()) cr_skip_test("no device");
  fail_everywhere("device-alloc", QK_DEVICE_MEMORY);
  fail_everywhere("alloc", QK_NO_MEMORY);
  fail_everywhere("device-call", QK_DEVICE_ERROR);
}

static void refused(const qk_rig_t *rig, const double *links, int halo, qk_fat_recipe_t recipe,
                    const char *said) {
  qk_err_t err = {0};
  qk_gaugefield_t *u = smear_field(rig, links, halo), *fat = NULL, *lng = NULL;
  cr_expect_eq(qk_fat_links(u, &recipe, &fat, &lng, &err), QK_BAD_ARGUMENT, "%s", said);
  cr_expect(strstr(err.text, said) != NULL, "%s: %s", said, err.text);
  cr_expect(fat == NULL && lng == NULL);
  qk_gaugefield_destroy(u);
}

Test(fat_links, refuse_parameters_by_name) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:2x2x4x2", NULL);
  refused(&rig, rig.links, 2, (qk_fat_recipe_t){.kind = QK_FAT_ASQTAD}, "u0 = 0: must be");
  refused(&rig, rig.links, 2, (qk_fat_recipe_t){.kind = QK_FAT_ASQTAD, .u0 = NAN}, "u0 = ");
  refused(&rig, rig.links, 2, (qk_fat_recipe_t){.kind = QK_FAT_ASQTAD, .u0 = INFINITY}, "u0 = inf");
  refused(&rig, rig.links, 2, (qk_fat_recipe_t){.kind = QK_FAT_HISQ, .epsilon = NAN}, "epsilon = ");
  refused(&rig, rig.links, 1, (qk_fat_recipe_t){.kind = QK_FAT_HISQ}, "halo of the links = 1");
  rig_close(&rig);
}

/* Links that are zero on a slice and beside it: no path leads from there to anywhere. */
Test(fat_links, name_the_site_of_a_singular_link) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x2x2x8:2", NULL);
  const size_t slice = smear_reals(&rig) / 8;
  memset(rig.links + 3 * slice, 0, 3 * slice * sizeof *rig.links);
  refused(&rig, rig.links, 2, (qk_fat_recipe_t){.kind = QK_FAT_HISQ},
          "direction t at site 0 0 0 3 (x y z t) is singular");
  rig_close(&rig);
}

/* A plan reserves what the largest phase takes: links, F and six fields of a matrix a site. */
Test(fat_links, take_the_memory_that_plans_know_of) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:4x2x4x6", NULL);
  qk_gaugefield_t *field[8] = {NULL};
  const int64_t before = rig.dev.ops->allocated(rig.dev.ctx);
  rig_must(qk_gaugefield_create(&rig.dev, QK_FAT_HALO, &field[0]), "links", NULL);
  rig_must(qk_gaugefield_create(&rig.dev, 1, &field[1]), "F", NULL);
  for (int i = 2; i < 8; i++)
    rig_must(qk_gaugefield_create_sites(&rig.dev, 1, &field[i]), "work", NULL);
  cr_expect_eq(rig.dev.ops->allocated(rig.dev.ctx) - before, qk_fat_links_bytes(&rig.geom.lat));
  for (int i = 0; i < 8; i++) qk_gaugefield_destroy(field[i]);
  rig_close(&rig);
}
