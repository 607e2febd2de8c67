/* Beside the suite of all operators (tests/conformance) and the kernel's plain loops: staggered
 * fermions by what is known of them, and their solver. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/fat/fat_links.h"
#include "tests/support/dense.h"
#include "tests/support/staggered/colours.h"
#include "tests/support/values.h"

static const char rough[] = "random:4x6x2x8:7";

/* out = M in, or hop in, of one column in double. */
static void apply(const qk_rig_t *rig, bool hop, const double complex *in, double complex *out) {
  qk_field_t *a, *b;
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &a), "apply", NULL);
  rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &b), "apply", NULL);
  colours_import(rig, a, 0, in);
  rig_must(hop ? rig->op->ops->hop(rig->op, b, a, false)
               : rig->op->ops->apply(rig->op, b, a, false, NULL, 0),
           "apply", NULL);
  colours_export(rig, b, 0, out);
  qk_work_release(rig->work, b);
  qk_work_release(rig->work, a);
}

/* D^2 = -4 sum_mu (f sin p_mu + l sin 3 p_mu)^2 on waves that fit the boundary. */
static void check_momenta(const char *action, double f, double l) {
  static const int modes[][4] = {{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 2, 0, 3}, {0, 1, 1, 7}};
  qk_rig_t rig;
  colours_open(&rig, NULL, "builtin:unit:4x6x4x8", NULL, action, -1);
  double complex *wave = colours_vector(&rig), *once = colours_vector(&rig),
                 *twice = colours_vector(&rig);
  for (int k = 0; k < 4; k++) {
    double p[4], square = 0;
    for (int mu = 0; mu < 4; mu++) {
      p[mu] = 2 * M_PI * (modes[k][mu] + (mu == 3 ? 0.5 : 0)) / rig.geom.global[mu];
      const double momentum = f * sin(p[mu]) + l * sin(3 * p[mu]);
      square += momentum * momentum;
    }
    for (size_t i = 0; i < colours_numbers(&rig); i++) {
      int x[4];
      double phase = 0;
      colours_site(&rig, i / 3, x);
      for (int mu = 0; mu < 4; mu++) phase += p[mu] * x[mu];
      wave[i] = (double)(i % 3 + 1) * cexp(I * phase);
    }
    apply(&rig, true, wave, once);
    apply(&rig, true, once, twice);
    for (size_t i = 0; i < colours_numbers(&rig); i++) wave[i] *= -4 * square;
    cr_expect_leq(colours_distance(&rig, twice, wave), 1e-14, "%s, mode %d", action, k);
  }
  qk_free(twice);
  qk_free(once);
  qk_free(wave);
  rig_close(&rig);
}

Test(staggered, squares_to_the_lattice_momenta_on_unit_links) {
  check_momenta("staggered;mass=0.3", 1, 0);
  check_momenta("asqtad;mass=0.3;u0=1", 9.0 / 8, -1.0 / 24);
  check_momenta("hisq;mass=0.3", 9.0 / 8, -1.0 / 24);
  check_momenta("hisq;mass=0.3;epsilon=-0.24", 1 + 0.76 / 8, -0.76 / 24);
}

/* m += D/2 of hops of so many sites, row-major, in wire order. */
static void add_hops(const int dims[4], const double *links, int reach, double phase_t,
                     double complex *m) {
  const size_t sites = (size_t)dims[0] * dims[1] * dims[2] * dims[3], n = 3 * sites;
  const size_t stride[4] = {1, (size_t)dims[0], (size_t)dims[0] * dims[1],
                            (size_t)dims[0] * dims[1] * dims[2]};
  const double complex *u = (const double complex *)links;
  for (size_t s = 0; s < sites; s++)
    for (int mu = 0, before = 0; mu < 4; mu++) {
      const size_t l = (size_t)dims[mu], x = s / stride[mu] % l;
      const size_t ahead = s + ((x + (size_t)reach) % l) * stride[mu] - x * stride[mu];
      double factor = before % 2 ? -0.5 : 0.5;
      if (mu == 3 && x + (size_t)reach >= l) factor *= phase_t;
      for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++) {
          const double complex link = factor * u[(4 * s + (size_t)mu) * 9 + 3 * a + b];
          m[(3 * s + a) * n + 3 * ahead + b] += link;
          m[(3 * ahead + b) * n + 3 * s + a] -= conj(link);
        }
      before += (int)x;
    }
}

/* The definition, one number at a time: m + D/2. naik: NULL, or links of hops of three sites. */
static double complex *dense_staggered(const int dims[4], const double *links, const double *naik,
                                       double mass, double phase_t) {
  const size_t n = 3 * (size_t)dims[0] * dims[1] * dims[2] * dims[3];
  double complex *m = calloc(n * n, sizeof *m);
  cr_assert_not_null(m);
  for (size_t i = 0; i < n; i++) m[i * n + i] = mass;
  add_hops(dims, links, 1, phase_t, m);
  if (naik) add_hops(dims, naik, 3, phase_t, m);
  return m;
}

static void expect_matrix(qk_rig_t *rig, const double complex *m) {
  const size_t n = colours_numbers(rig);
  double complex *v = colours_vector(rig), *got = colours_vector(rig), *want = colours_vector(rig);
  colours_random(rig, 3, v);
  apply(rig, false, v, got);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) want[i] += m[i * n + k] * v[k];
  cr_expect_leq(colours_distance(rig, got, want), 1e-15);
  qk_free(want);
  qk_free(got);
  qk_free(v);
}

Test(staggered, is_the_matrix_of_its_definition) {
  const int dims[4] = {2, 4, 2, 4};
  qk_rig_t rig;
  colours_open(&rig, NULL, "random:2x4x2x4:5", NULL, "staggered;mass=0.4", -1);
  double complex *m = dense_staggered(dims, rig.links, NULL, 0.4, -1);
  expect_matrix(&rig, m);
  free(m);
  rig_close(&rig);
}

/* Of links that tests/unit/engine/gauge/test_fat_links.c judges. */
static double complex *dense_improved(const qk_rig_t *rig, const qk_fat_recipe_t *recipe,
                                      double mass) {
  const size_t bytes = (size_t)rig->geom.local_volume * 72 * sizeof(double);
  qk_gaugefield_t *thin, *made[2];
  double *links[2];
  rig_must(qk_gaugefield_create(&rig->dev, QK_FAT_HALO, &thin), "links", NULL);
  rig_must(qk_gaugefield_import(thin, rig->links), "links", NULL);
  rig_must(qk_fat_links(thin, recipe, &made[0], &made[1], NULL), "fat links", NULL);
  for (int i = 0; i < 2; i++) {
    links[i] = qk_malloc(bytes);
    rig_must(qk_gaugefield_export(made[i], links[i]), "fat links", NULL);
    qk_gaugefield_destroy(made[i]);
  }
  qk_gaugefield_destroy(thin);
  double complex *m = dense_staggered(rig->geom.global, links[0], links[1], mass, -1);
  for (int i = 0; i < 2; i++) qk_free(links[i]);
  return m;
}

Test(staggered, improved_is_the_matrix_over_fat_and_long_links) {
  static const struct {
    const char *text;
    qk_fat_recipe_t recipe;
  } action[] = {{"asqtad;mass=0.4;u0=0.9", {.kind = QK_FAT_ASQTAD, .u0 = 0.9}},
                {"hisq;mass=0.4;epsilon=-0.2", {.kind = QK_FAT_HISQ, .epsilon = -0.2}}};
  for (int i = 0; i < 2; i++) {
    qk_rig_t rig;
    colours_open(&rig, NULL, "random:4x2x2x6:5", NULL, action[i].text, -1);
    double complex *m = dense_improved(&rig, &action[i].recipe, 0.4);
    expect_matrix(&rig, m);
    free(m);
    rig_close(&rig);
  }
}

/* ---- halos ----------------------------------------------------------------------------------- */

/* M v on a lattice that is cut from itself (QK_LOOP), with an odd number of exchanges, so that the
 * last one takes the other half of the ghosts; v in the last right-hand side. */
static double complex *image(const char *action, const char *axes, const char *transport,
                             qk_prec_t prec, int n) {
  qk_rig_t rig;
  qk_field_t *in, *out;
  cr_assert(setenv("QK_LOOP", axes, 1) == 0 && setenv("QK_TRANSPORT", transport, 1) == 0);
  colours_open(&rig, NULL, "builtin:weak:4x6x8x4:3", NULL, action, -1);
  double complex *v = colours_vector(&rig);
  rig_must(qk_field_create(&rig.dev, prec, n, QK_FULL, &in), "field", NULL);
  rig_must(qk_field_create(&rig.dev, prec, n, QK_FULL, &out), "field", NULL);
  colours_random(&rig, 7, v);
  colours_import(&rig, in, n - 1, v);
  for (int i = 0; i < 3; i++)
    rig_must(rig.op->ops->apply(rig.op, out, in, false, NULL, 0), "apply", NULL);
  colours_export(&rig, out, n - 1, v);
  qk_field_destroy(out);
  qk_field_destroy(in);
  rig_close(&rig);
  return v;
}

/* By memory and by messages the same bits; to rounding those of a lattice that is not cut. */
static void expect_same(const char *action, const char *axes, qk_prec_t prec, int n) {
  static const double rounding[] = {[QK_DOUBLE] = 2e-15, [QK_SINGLE] = 2e-7, [QK_HALF] = 1e-3};
  const size_t bytes = (size_t)4 * 6 * 8 * 4 * 3 * sizeof(double complex);
  double complex *peer = image(action, axes, "peer", prec, n);
  double complex *staged = image(action, axes, "staged", prec, n);
  double complex *one = image(action, "", "auto", prec, n);
  double off = 0, norm = 0;
  for (size_t i = 0; i < bytes / sizeof *one; i++) {
    off += creal((peer[i] - one[i]) * conj(peer[i] - one[i]));
    norm += creal(one[i] * conj(one[i]));
  }
  cr_expect_eq(memcmp(peer, staged, bytes), 0, "%s, %s, precision %d, %d", action, axes, prec, n);
  cr_expect_leq(sqrt(off / norm), rounding[prec], "%s, %s, precision %d, %d: %g", action, axes,
                prec, n, sqrt(off / norm));
  qk_free(one);
  qk_free(staged);
  qk_free(peer);
}

Test(staggered, is_the_same_across_the_edges_of_ranks) {
  static const char *const axes[] = {"t", "xz", "xyzt"};
  for (int p = 0; p < QK_PRECS; p++) {
    for (int a = 0; a < 3; a++)
      for (int n = 1; n <= 11; n += 5) expect_same("staggered;mass=0.3", axes[a], (qk_prec_t)p, n);
    expect_same("hisq;mass=0.3", "xyzt", (qk_prec_t)p, 6);
  }
}

/* ---- the solver ------------------------------------------------------------------------------ */

static void fill(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed, double tol) {
  double complex *v = colours_vector(rig);
  colours_random(rig, seed, v);
  colours_import(rig, qk_solver_rhs(solver, slot), 0, v);
  rig_must(qk_solver_fill(solver, slot, tol, 4000), "fill", NULL);
  qk_free(v);
}

static double residual(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed) {
  double complex *b = colours_vector(rig), *x = colours_vector(rig), *m = colours_vector(rig);
  colours_random(rig, seed, b);
  colours_export(rig, qk_solver_solution(solver, slot), 0, x);
  apply(rig, false, x, m);
  const double off = colours_distance(rig, m, b);
  qk_free(m);
  qk_free(x);
  qk_free(b);
  return off;
}

Test(staggered, is_solved_in_every_precision_and_batch) {
  static const int batch[] = {1, 5, 8, 12};
  qk_rig_t rig;
  colours_open(&rig, NULL, rough, NULL, "staggered;mass=0.05", -1);
  for (int p = 0; p < QK_PRECS; p++)
    for (int k = 0; k < 4; k++) {
      qk_solver_t *solver = rig_solver(&rig, "cg", (qk_prec_t)p, batch[k]);
      for (int i = 0; i < batch[k]; i++) fill(&rig, solver, i, 100 + (uint64_t)i, 1e-11);
      rig_run(solver);
      for (int i = 0; i < batch[k]; i++) {
        const qk_slot_t *slot = qk_solver_slot(solver, i);
        const double off = residual(&rig, solver, i, 100 + (uint64_t)i);
        cr_expect_eq(slot->status, QK_OK, "precision %d, slot %d: %s", p, i,
                     qk_status_name(slot->status));
        cr_expect_leq(off, 1e-11, "precision %d, slot %d", p, i);
        cr_expect_float_eq(slot->residual, off, 1e-13, "precision %d, slot %d", p, i);
      }
      qk_solver_destroy(solver);
    }
  rig_close(&rig);
}

Test(staggered, is_solved_as_by_elimination) {
  const int dims[4] = {2, 2, 2, 4};
  qk_rig_t rig;
  colours_open(&rig, NULL, "random:2x2x2x4:5", NULL, "staggered;mass=0.1", -1);
  double complex *exact = colours_vector(&rig), *x = colours_vector(&rig);
  double complex *m = dense_staggered(dims, rig.links, NULL, 0.1, -1);
  colours_random(&rig, 100, exact);
  dense_solve((int)colours_numbers(&rig), m, exact);
  for (int p = 0; p < QK_PRECS; p++) {
    qk_solver_t *solver = rig_solver(&rig, "cg", (qk_prec_t)p, 3);
    fill(&rig, solver, 1, 100, 1e-12);
    rig_run(solver);
    colours_export(&rig, qk_solver_solution(solver, 1), 0, x);
    cr_expect_leq(colours_distance(&rig, x, exact), 2e-11, "precision %d",
                  p); /* 1e-12 / m, or so */
    qk_solver_destroy(solver);
  }
  free(m);
  qk_free(x);
  qk_free(exact);
  rig_close(&rig);
}

static int64_t iterations(qk_rig_t *rig, const char *method, qk_prec_t inner,
                          int64_t *applications) {
  qk_solver_t *solver = rig_solver(rig, method, inner, 2);
  fill(rig, solver, 0, 7, 1e-10);
  rig_run(solver);
  cr_expect_eq(qk_solver_slot(solver, 0)->status, QK_OK);
  const int64_t n = qk_solver_slot(solver, 0)->iterations;
  *applications = qk_solver_slot(solver, 0)->applications;
  qk_solver_destroy(solver);
  return n;
}

/* The condition number of Mhat, 1 + |D|^2 / 4 m^2, not its square; and reliable updates cost
 * little. */
Test(staggered, takes_one_application_an_iteration) {
  qk_rig_t rig;
  int64_t applications, more;
  colours_open(&rig, NULL, rough, NULL, "staggered;mass=0.05", -1);
  const int64_t n = iterations(&rig, "cg", QK_DOUBLE, &applications);
  const int64_t half = iterations(&rig, "cg", QK_HALF, &more);
  cr_expect_leq(n, applications);
  cr_expect_leq(applications, n + n / 8 + 8);
  cr_expect_leq(2 * half, 3 * n, "%lld in half, %lld in double", (long long)half, (long long)n);
  rig_close(&rig);
}

/* A slot's bits do not depend on the others of the batch. */
Test(staggered, slots_do_not_depend_on_each_other) {
  qk_rig_t rig;
  colours_open(&rig, NULL, rough, NULL, "staggered;mass=0.1", -1);
  double complex *alone = colours_vector(&rig), *among = colours_vector(&rig);
  for (int p = 0; p < QK_PRECS; p++)
    for (int others = 0; others < 2; others++) {
      qk_solver_t *solver = rig_solver(&rig, "cg", (qk_prec_t)p, 5);
      fill(&rig, solver, 3, 50, 1e-10);
      if (others) {
        rig_must(qk_solver_step(solver), "step", NULL); /* they come later, and end earlier */
        fill(&rig, solver, 0, 51, 1e-3);
        fill(&rig, solver, 4, 52, 1e-12);
      }
      rig_run(solver);
      colours_export(&rig, qk_solver_solution(solver, 3), 0, others ? among : alone);
      if (others)
        cr_expect_eq(memcmp(alone, among, colours_numbers(&rig) * sizeof *alone), 0, "precision %d",
                     p);
      qk_solver_destroy(solver);
    }
  qk_free(among);
  qk_free(alone);
  rig_close(&rig);
}

/* ---- eigenvectors ---------------------------------------------------------------------------- */

/* Those of Mhat on unit links are 1 + sum sin^2 p / m^2, each as often as there are p, colours and,
 * of even sites, half of that. */
Test(staggered, has_eigenvalues_of_the_lattice_momenta) {
  const double m = 0.5, s = sin(M_PI / 8); /* antiperiodic in 8 sites */
  const qk_lanczos_params_t p = {.n = 24, .prec = QK_DOUBLE, .tol = 1e-9, .seed = 3};
  qk_rig_t rig;
  qk_err_t err = {0};
  qk_eigen_t *e = NULL;
  colours_open(&rig, NULL, "builtin:unit:4x4x4x8", NULL, "staggered;mass=0.5", -1);
  rig_must(qk_lanczos(rig.op, rig.work, &p, NULL, NULL, &e, &err), "lanczos", &err);
  cr_assert_eq(e->n, 24);
  for (int i = 0; i < 24; i++) /* p_j = 0 or pi, 8 of them, 4 p_t of least sine: 48 on even sites */
    cr_expect_float_eq(e->value[i], 1 + s * s / (m * m), 1e-8, "%d: %.12g", i, e->value[i]);
  qk_eigen_destroy(e);
  rig_close(&rig);
}

/* The first guess of 48 vectors leaves fewer iterations, and the solution is what it was. */
Test(staggered, is_deflated_by_eigenvectors_of_mhat) {
  static const qk_prec_t store[] = {QK_SINGLE, QK_HALF};
  const qk_lanczos_params_t p = {.n = 48, .prec = QK_SINGLE, .tol = 1e-5, .seed = 3};
  qk_rig_t rig;
  qk_err_t err = {0};
  int64_t applications;
  colours_open(&rig, NULL, "builtin:weak:4x4x4x8:5", NULL, "staggered;mass=0.02", -1);
  const int64_t plain = iterations(&rig, "cg", QK_SINGLE, &applications);
  for (int k = 0; k < 2; k++) {
    qk_solver_params_t params = {.method = "cg", .inner = QK_SINGLE, .nslot = 2};
    qk_solver_t *solver = NULL;
    rig_must(
        qk_deflation_create(rig.op, rig.work, &p, store[k], NULL, NULL, &params.deflation, &err),
        "deflation", &err);
    rig_must(qk_solver_create(rig.op, rig.op->work, &params, &solver, &err), "solver", &err);
    fill(&rig, solver, 0, 7, 1e-10);
    rig_run(solver);
    cr_expect_eq(qk_solver_slot(solver, 0)->status, QK_OK);
    cr_expect_leq(residual(&rig, solver, 0, 7), 1e-10);
    cr_expect_lt(4 * qk_solver_slot(solver, 0)->iterations, 3 * plain, "%lld of %lld",
                 (long long)qk_solver_slot(solver, 0)->iterations, (long long)plain);
    qk_solver_destroy(solver);
    qk_deflation_destroy(params.deflation);
  }
  rig_close(&rig);
}

/* ---- what is refused ------------------------------------------------------------------------- */

Test(staggered, needs_fields_of_colour_vectors) {
  qk_rig_t rig;
  qk_err_t err = {0};
  colours_open(&rig, NULL, rough, NULL, "staggered;mass=0.1", -1);
  rig.geom.ncomp = 12;
  qk_action_params_t p = params_wilson(0.1, 0, -1);
  p.values = values_of("staggered;mass=0.1");
  qk_operator_t *op = NULL;
  cr_expect_eq(qk_operator_create(&rig.dev, rig.work, rig.links, &p, &op, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "staggered has 3"), "%s", err.text);
  rig.geom.ncomp = QK_COLOUR_COMPONENTS;
  rig_close(&rig);
}

/* Each allocation fails in its turn, on a lattice with neighbours: nothing is left. */
static void fail_each(const char *point) {
  qk_rig_t rig;
  qk_err_t err = {0};
  char text[64];
  qk_action_params_t p = params_wilson(0.1, 0, -1);
  p.values = values_of("staggered;mass=0.1");
  cr_assert_eq(setenv("QK_LOOP", "zt", 1), 0);
  colours_open(&rig, NULL, "builtin:weak:4x4x4x8:5", NULL, "staggered;mass=0.1", -1);
  rig.op->ops->destroy(rig.op);
  rig.op = NULL;
  const int64_t before = (int64_t)rig.dev.ops->allocated(rig.dev.ctx);
  qk_status_t status = QK_DEVICE_MEMORY;
  int n = 0;
  while (status != QK_OK && n++ < 100) {
    snprintf(text, sizeof text, "%s:%d", point, n);
    cr_assert_eq(qk_fault_set(text), 0);
    status = qk_operator_create(&rig.dev, rig.work, rig.links, &p, &rig.op, &err);
    cr_assert_eq(qk_fault_set(NULL), 0);
    if (status != QK_OK)
      cr_expect_eq((int64_t)rig.dev.ops->allocated(rig.dev.ctx), before, "%s", text);
  }
  cr_expect(n > 2 && n < 100, "%s: %d", point, n);
  cr_expect_eq(setenv("QK_LOOP", "", 1), 0);
  rig_close(&rig);
}

Test(staggered, leaves_nothing_where_memory_fails) {
  fail_each("device-alloc");
  fail_each("alloc");
}

Test(staggered, has_a_mass_above_zero) {
  qk_values_t values;
  char why[QK_WHY];
  cr_expect_not(qk_values_parse(&values, "staggered;mass=0", why));
  cr_expect_not_null(strstr(why, "mass"), "%s", why);
}
