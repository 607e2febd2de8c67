/* What LOAD makes of its choices: solver, number of slots, memory. Multigrid that is refined,
 * rebuilt, or read from its checkpoint. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "tests/support/values.h"
#include "tests/unit/engine/setup/setup_kit.h"

static void expect_as_planned(const qk_load_t *load) {
  loaded_t l = must_load(load);
  qk_loaded_t *s = l.setup;
  const qk_fill_t alone = noise_for(0, 3);
  qk_result_t result[QK_INFLIGHT_MAX] = {0};
  solve_all(&l);
  fill_entries(&l, 1, &alone);
  run_entries(&l, result);
  cr_expect_eq(result[0].err.code, QK_OK);
  cr_expect_eq(s->single_rhs != NULL, load->nslot > 1);
  double planned = (double)s->plan.serving, held = (double)s->ops->allocated(s->ctx);
  cr_expect_float_eq(planned / held, 1, 0.04, "%s, %d slots: %.0f bytes planned, %.0f held",
                     qk_choice_word(&qk_choice_solvers, load->solver), s->nslot, planned, held);
  cr_expect(held <= 1.005 * planned, "%.0f bytes planned, %.0f held", planned, held);
  cr_expect(s->plan.setup >= s->plan.serving && s->plan.nslot == s->nslot);
  close_load(&l);
}

Test(setup, memory_is_as_planned) {
  static const char *const plain[] = {"bicgstab", "cg", "gcr"};
  for (int i = 0; i < 3; i++) {
    qk_load_t load = a_load("builtin:weak:8x8x8x8:1", plain[i], (qk_prec_t)i, i == 1 ? 1 : 8);
    expect_as_planned(&load);
  }
}

/* Reals of the links in double. */
static int double_reals(const qk_load_t *load) {
  loaded_t l = must_load(load);
  const int reals = qk_eo_parts(qk_operator_base(l.setup->op))->links[QK_DOUBLE].reals;
  cr_expect_eq(l.setup->link_reals, load->inner == QK_DOUBLE ? reals : 12);
  solve_all(&l);
  close_load(&l);
  return reals;
}

Test(setup, exact_links_have_two_rows_in_double_unless_all_are_asked_for) {
  qk_load_t load = a_load("builtin:weak:8x4x4x8:1", "bicgstab", QK_SINGLE, 2);
  cr_expect_eq(double_reals(&load), 12);
  load.inner = QK_DOUBLE;
  cr_expect_eq(double_reals(&load), 12);
  load.link_reals = 18;
  cr_expect_eq(double_reals(&load), 18);
  expect_as_planned(&load);
  load.link_reals = 0;
  load.inner = QK_SINGLE;
  load.values = values_of("wilson-clover;mass=0.1;csw=1;links=stout:0.1,1");
  cr_expect_eq(double_reals(&load), 18);
  load.solver = QK_SOLVER_CG;
  load.values = values_of("moebius;mass=0.1;M5=1.4;Ls=4");
  cr_expect_eq(double_reals(&load), 12);
}

Test(setup, memory_of_multigrid_is_as_planned) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 8);
  expect_as_planned(&load);
  load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_HALF, 1);
  load.mg.level[0].smoother.kind = QK_SMOOTHER_CAGCR;
  load.mg.level[0].smoother_prec = QK_HALF;
  load.mg.level[0].prolongator = load.mg.level[1].store = QK_HALF;
  expect_as_planned(&load);
}

Test(setup, memory_of_three_levels_is_as_planned) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 3);
  static const int block[4] = {2, 2, 2, 2};
  load.mg.nlevel = 3;
  for (int l = 0; l < 2; l++) {
    memcpy(load.mg.level[l].block, block, sizeof block);
    load.mg.level[l].nvec = 6;
    load.mg.level[l].setup_iterations = 20;
    load.mg.level[l].smoother.kind = QK_SMOOTHER_CHEBYSHEV;
  }
  expect_as_planned(&load);
}

/* Right-hand sides of two vectors, and a base whose work fields are others. */
Test(setup, memory_of_doublets_is_as_planned) {
  static const struct {
    const char *solver;
    qk_prec_t inner, smoother;
    int nslot, pre;
  } cases[] = {{"cg", QK_SINGLE, QK_SINGLE, 8, 0}, {"gcr", QK_HALF, QK_SINGLE, 1, 0},
               {"mg", QK_SINGLE, QK_SINGLE, 8, 0}, {"mg", QK_SINGLE, QK_SINGLE, 1, 0},
               {"mg", QK_HALF, QK_SINGLE, 8, 0},   {"mg", QK_SINGLE, QK_HALF, 8, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_load_t load =
        a_load("builtin:weak:8x8x4x8:1", cases[i].solver, cases[i].inner, cases[i].nslot);
    load.values = values_of("doublet;mass=0.05;mu=0.2;epsilon=0.15;csw=1");
    load.mg.level[0].smoother.kind = QK_SMOOTHER_CAGCR;
    load.mg.level[0].smoother_prec = cases[i].smoother;
    load.mg.level[0].pre = cases[i].pre;
    expect_as_planned(&load);
  }
}

/* Right-hand sides of five dimensions, sources of four. */
Test(setup, memory_of_domain_walls_is_as_planned) {
  static const struct {
    const char *action;
    qk_prec_t inner;
    int nslot;
  } cases[] = {{"moebius;mass=0.1;M5=1.4;Ls=4", QK_DOUBLE, 1},
               {"moebius;mass=0.1;M5=1.4;Ls=4", QK_SINGLE, 3},
               {"moebius;mass=0.1;M5=1.4;Ls=6;b=1.5;c=0.5", QK_HALF, 1},
               {"moebius;mass=0.1;M5=1.4;Ls=6;b=1.5;c=0.5;b-im=0.1", QK_HALF, 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_load_t load = a_load("builtin:weak:4x4x4x8:1", "cg", cases[i].inner, cases[i].nslot);
    load.values = values_of(cases[i].action);
    expect_as_planned(&load);
  }
}

/* The system is all sites. */
Test(setup, memory_of_overlap_is_as_planned) {
  static const struct {
    const char *solver;
    qk_prec_t inner;
    int nslot;
  } cases[] = {{"cg", QK_DOUBLE, 1}, {"cg", QK_SINGLE, 3}, {"gcr", QK_SINGLE, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_load_t load =
        a_load("builtin:weak:4x2x2x4:1", cases[i].solver, cases[i].inner, cases[i].nslot);
    load.values = values_of("overlap;mass=0.3;M=1.3;modes=10;sign-tol=1e-07");
    expect_as_planned(&load);
  }
}

Test(setup, memory_of_deflation_is_as_planned) {
  static const struct {
    const char *action, *solver;
    qk_prec_t inner;
    int nslot, deflate;
  } cases[] = {{"wilson;mass=-0.3", "cg", QK_SINGLE, 3, 24},
               {"wilson-clover;mass=-0.3;csw=1", "bicgstab", QK_HALF, 1, 70},
               {"twisted-clover;mass=-0.2;mu=0.1;csw=1", "cg", QK_DOUBLE, 2, 8},
               {"doublet;mass=0.05;mu=0.2;epsilon=0.15;csw=1", "gcr", QK_SINGLE, 2, 16},
               {"moebius;mass=0.1;M5=1.4;Ls=6;b=1.5;c=0.5", "cg", QK_HALF, 2, 9}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_load_t load =
        a_load("builtin:weak:4x4x4x8:1", cases[i].solver, cases[i].inner, cases[i].nslot);
    load.values = values_of(cases[i].action);
    load.deflate = cases[i].deflate;
    expect_as_planned(&load);
  }
}

Test(setup, auto_takes_multigrid_where_the_lattice_allows_it) {
  static const struct {
    const char *gauge;
    qk_prec_t inner;
    const char *solver;
  } cases[] = {{"builtin:weak:8x8x8x8:1", QK_SINGLE, "mg"},
               {"builtin:weak:8x8x8x8:1", QK_DOUBLE, "bicgstab"},
               {"builtin:weak:2x2x2x4:1", QK_SINGLE, "bicgstab"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    qk_load_t load = a_load(cases[i].gauge, "auto", cases[i].inner, 0);
    loaded_t l = must_load(&load);
    cr_expect_str_eq(qk_choice_word(&qk_choice_solvers, l.setup->method), cases[i].solver, "%s",
                     cases[i].gauge);
    cr_expect_eq(l.setup->mg != NULL, strcmp(cases[i].solver, "mg") == 0);
    cr_expect_eq(l.setup->nslot, QK_SLOTS_CHOSEN);
    close_load(&l);
  }
}

static void expect_refused(const qk_load_t *load, qk_status_t status, const char *words) {
  qk_err_t err = {0};
  loaded_t l;
  cr_expect_eq(open_load(load, &l, &err), status, "%s", err.text);
  cr_expect(strstr(err.text, words) != NULL, "'%s' where '%s' was expected", err.text, words);
  cr_expect_null(l.setup);
  qk_comm_destroy(l.comm);
}

Test(setup, impossible_multigrid_is_refused_with_the_reason) {
  qk_load_t load = a_load("builtin:weak:2x2x2x4:1", "mg", QK_SINGLE, 4);
  expect_refused(&load, QK_BAD_GEOMETRY, "2x2x2x4");
  load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_DOUBLE, 4);
  expect_refused(&load, QK_BAD_ARGUMENT, "precision = double");
  load = a_load("builtin:weak:8x8x8x8:1", "auto", QK_SINGLE, 4);
  load.mg.level[0].block[1] = 3;
  expect_refused(&load, QK_BAD_GEOMETRY, "3");
}

Test(setup, auto_does_without_a_multigrid_that_is_no_good) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 4);
  load.values = values_wilson(-2, 0);
  load.mg.level[0].setup_iterations = 2;
  expect_refused(&load, QK_BREAKDOWN, "");
  load.solver = QK_SOLVER_AUTO;
  loaded_t l = must_load(&load);
  cr_expect_eq(l.setup->method, QK_SOLVER_BICGSTAB);
  cr_expect_null(l.setup->mg);
  close_load(&l);
}

Test(setup, what_does_not_fit_is_refused_with_numbers) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 16);
  load.mg.level[0].nvec = load.mg.level[0].ntest = 24; /* more would set what setup needs */
  loaded_t l = must_load(&load);
  qk_loaded_t *s = l.setup;
  qk_action_params_t op = params_wilson(0.05, 1, -1);
  op.want[QK_HALF] = s->mg_params.level[0].smoother_prec == QK_HALF; /* on the GPU */
  op.link_reals[QK_DOUBLE] = 12;
  qk_plan_input_t in = {.ops = s->ops,
                        .geom = &s->geom,
                        .action = qk_action_of(&op.values),
                        .params = &op,
                        .method = QK_SOLVER_GCR,
                        .inner = QK_SINGLE,
                        .nslot = 16,
                        .gcr_keep = QK_GCR_KEEP_PRECONDITIONED,
                        .single_rhs = true,
                        .mg = &s->mg_params};
  qk_plan_t sixteen, plan;
  qk_err_t err = {0};
  in.staging = s->plan.staging;
  qk_plan_make(&in, &sixteen);
  cr_expect(sixteen.single_rhs && sixteen.staging == 4 && sixteen.leaving == 8 &&
            sixteen.serving == s->plan.serving);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup, &plan, &err), QK_OK);
  cr_expect(plan.single_rhs && plan.staging == 4 && !plan.compact);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_OK);
  cr_expect(plan.single_rhs && plan.staging == 4 && plan.compact);
  in.compact = true;
  qk_plan_make(&in, &sixteen);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_OK);
  cr_expect(plan.single_rhs && plan.staging == 2 && plan.leaving == 4 && plan.nslot == 16);
  in.nslot = 3;
  qk_plan_make(&in, &plan);
  cr_expect(plan.staging == 2 && plan.leaving == 3);
  in.nslot = 16;
  in.staging = 2;
  qk_plan_make(&in, &sixteen);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_OK);
  cr_expect(!plan.single_rhs && plan.staging == 2 && plan.share[QK_PLAN_SINGLE_RHS] == 0);
  in.single_rhs = false;
  qk_plan_make(&in, &sixteen);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_OK);
  cr_expect(plan.staging == 1 && plan.leaving == 2 && plan.nslot == 16);
  in.staging = 0;
  qk_plan_make(&in, &sixteen);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup, &plan, &err), QK_OK);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_DEVICE_MEMORY);
  cr_expect(strstr(err.text, "slots = 16 need") && strstr(err.text, "slots = 15 would need"), "%s",
            err.text);
  in.nslot = 0;
  err = (qk_err_t){0};
  cr_expect_eq(qk_plan_fit(&in, qk_plan_needed(&sixteen), &plan, &err), QK_OK);
  cr_expect_eq(plan.nslot, 16);
  cr_expect_eq(qk_plan_fit(&in, qk_plan_needed(&sixteen) - 1, &plan, &err), QK_OK);
  cr_expect_eq(plan.nslot, 15);
  cr_expect_eq(qk_plan_fit(&in, 1000, &plan, &err), QK_DEVICE_MEMORY);
  cr_expect(strstr(err.text, "slots = 1 need"), "%s", err.text);
  close_load(&l);
}

/* Of multigrid in single, without what would be left out first. */
static qk_plan_input_t plan_input(const qk_loaded_t *s, const qk_action_params_t *op,
                                  const qk_mg_params_t *mg, int nslot) {
  return (qk_plan_input_t){.ops = s->ops,
                           .geom = &s->geom,
                           .action = qk_action_of(&op->values),
                           .params = op,
                           .method = QK_SOLVER_GCR,
                           .inner = QK_SINGLE,
                           .nslot = nslot,
                           .gcr_keep = QK_GCR_KEEP_PRECONDITIONED,
                           .mg = mg};
}

Test(setup, a_refusal_proposes_what_would_fit) {
  qk_load_t load = a_load("builtin:weak:8x8x8x16:1", "bicgstab", QK_SINGLE, 1);
  loaded_t l = must_load(&load);
  const qk_mg_params_t given = {0};
  qk_mg_params_t mg = given;
  qk_action_params_t op = params_wilson(0.05, 1, -1);
  op.want[QK_HALF] = false;
  qk_plan_input_t in = plan_input(l.setup, &op, &mg, 4);
  qk_plan_t plan;
  qk_err_t err = {0};
  char text[240];
  cr_assert_eq(qk_mg_params_complete(in.geom, &qk_tuning_gpu, &mg, &err), QK_OK);
  qk_plan_make(&in, &plan);
  qk_plan_advise(&in, &given, &qk_tuning_gpu, plan.setup - 1, 1, text, sizeof text);
  cr_expect(strncmp(text, "mg-vectors = 24 would need 0.", 29) == 0, "%s", text);
  cr_expect(strstr(text, ", 2 devices would need 0.") && strstr(text, " GB on each"), "%s", text);
  qk_plan_advise(&in, &given, &qk_tuning_gpu, 1000, 1, text, sizeof text);
  cr_expect_str_eq(text, "");
  in.mg = NULL;
  in.inner = QK_DOUBLE;
  qk_plan_make(&in, &plan);
  qk_plan_advise(&in, NULL, &qk_tuning_gpu, plan.setup - 1, 1, text, sizeof text);
  cr_expect(strncmp(text, "precision = half would need 0.", 30) == 0, "%s", text);
  close_load(&l);
}

/* With the parameters of a GPU, whose number of vectors has room to fall: first they come in turns,
 * then there are fewer. */
Test(setup, vectors_come_in_turns_and_are_fewer_where_more_do_not_fit) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "bicgstab", QK_SINGLE, 1);
  loaded_t l = must_load(&load);
  const qk_mg_params_t open = {0}, said = {.together = -1, .level = {{.nvec = 32, .ntest = 64}}};
  qk_mg_params_t mg = open;
  qk_action_params_t op = params_wilson(0.05, 1, -1);
  op.want[QK_HALF] = false;
  qk_plan_input_t in = plan_input(l.setup, &op, &mg, 1);
  qk_plan_t more, fewer, turns, plan;
  qk_err_t err = {0};
  cr_assert_eq(qk_mg_params_complete(in.geom, &qk_tuning_gpu, &mg, &err), QK_OK);
  qk_plan_make(&in, &more);
  cr_expect_eq(qk_plan_fit_vectors(&in, &open, &qk_tuning_gpu, more.setup, &mg, &plan, &err),
               QK_OK);
  cr_expect(mg.level[0].nvec == 32 && mg.level[0].ntest == 64 && mg.together == 0);
  cr_expect_eq(qk_plan_fit_vectors(&in, &open, &qk_tuning_gpu, more.setup - 1, &mg, &fewer, &err),
               QK_OK);
  cr_expect(mg.level[0].nvec == 32 && mg.level[0].ntest == 32 && mg.together == 0);
  cr_expect_eq(qk_plan_fit_vectors(&in, &open, &qk_tuning_gpu, fewer.setup - 1, &mg, &turns, &err),
               QK_OK);
  cr_expect(mg.level[0].nvec == 32 && mg.together == 8 && turns.setup < fewer.setup);
  cr_expect_eq(qk_plan_fit_vectors(&in, &open, &qk_tuning_gpu, turns.setup - 1, &mg, &plan, &err),
               QK_OK);
  cr_expect(mg.level[0].nvec == QK_MG_VECTORS_FEW && plan.setup < turns.setup);
  mg = said;
  cr_assert_eq(qk_mg_params_complete(in.geom, &qk_tuning_gpu, &mg, &err), QK_OK);
  cr_expect_eq(qk_plan_fit_vectors(&in, &said, &qk_tuning_gpu, more.setup - 1, &mg, &plan, &err),
               QK_DEVICE_MEMORY);
  cr_expect(mg.level[0].nvec == 32 && mg.together == -1, "what was asked for stays");
  mg = open;
  err = (qk_err_t){0};
  cr_assert_eq(qk_mg_params_complete(in.geom, &qk_tuning_gpu, &mg, &err), QK_OK);
  cr_expect_eq(qk_plan_fit_vectors(&in, &open, &qk_tuning_gpu, 1000, &mg, &plan, &err),
               QK_DEVICE_MEMORY);
  close_load(&l);
}

Test(setup, multigrid_is_refined_and_made_anew) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 4);
  qk_err_t err = {0};
  loaded_t l = must_load(&load);
  int64_t first = solve_all(&l), held = l.setup->ops->allocated(l.setup->ctx);
  cr_expect_eq(l.setup->mg->health.in_first, 0, "the worker watches");
  for (int i = 0; i < 2; i++) {
    qk_mg_refresh_t refresh = i == 0 ? QK_MG_REFINE : QK_MG_REBUILD;
    cr_assert_eq(qk_loaded_refresh(l.setup, (qk_mg_order_t){.refresh = refresh}, NULL, NULL, &err),
                 QK_OK, "%s", err.text);
    cr_expect(solve_all(&l) <= first + 2);
    cr_expect_float_eq((double)l.setup->ops->allocated(l.setup->ctx) / (double)held, 1, 0.01);
    cr_expect_eq(l.setup->mg->health.tried, refresh);
  }
  cr_expect(l.setup->mg->refined == 1 && l.setup->mg->rebuilt == 1);
  close_load(&l);
}

static void wait_written(qk_mg_service_t *mg) {
  bool news = false;
  while (mg->save != NULL) cr_assert_eq(qk_mg_service_poll(mg, &news), QK_OK);
  cr_assert(news && mg->written, "%s", mg->trouble);
}

Test(setup, multigrid_comes_back_from_its_checkpoint) {
  char folder[] = "/tmp/qk-setup-XXXXXX", path[QK_FILE_PATH], *file;
  cr_assert_not_null(mkdtemp(folder));
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 4);
  snprintf(load.checkpoint, sizeof load.checkpoint, "%s", folder);
  loaded_t l = must_load(&load);
  cr_expect_not(l.setup->mg->mg->restored);
  wait_written(l.setup->mg);
  int64_t first = solve_all(&l);
  snprintf(path, sizeof path, "%s", l.setup->mg->checkpoint);
  cr_expect(strncmp(path, folder, strlen(folder)) == 0);
  close_load(&l);

  l = must_load(&load);
  cr_expect(l.setup->mg->mg->restored && l.setup->mg->written && l.setup->mg->save == NULL);
  cr_expect(l.setup->mg->mg->convergence > 0, "what was read is checked, too");
  const qk_mg_level_health_t *health = &l.setup->mg->mg->level[0].health;
  cr_expect(health->galerkin > 0 && health->representation == 0, "no vector was relaxed");
  cr_expect_eq(solve_all(&l), first);
  close_load(&l);

  snprintf(load.checkpoint, sizeof load.checkpoint, "%s", path);
  load.values =
      values_wilson(0.06, 1); /* the file of another mass is replaced, one that is cut too */
  for (int i = 0; i < 2; i++) {
    l = must_load(&load);
    cr_expect_not(l.setup->mg->mg->restored);
    file = l.setup->mg->trouble;
    cr_expect(strstr(file, "not used") != NULL, "'%s'", file);
    wait_written(l.setup->mg);
    cr_expect_str_eq(l.setup->mg->trouble, "");
    close_load(&l);
    cr_assert_eq(truncate(path, 1000), 0);
  }
  unlink(path);
  cr_expect_eq(rmdir(folder), 0, "something is left in %s", folder);
}

/* What is missing, or does not fit, costs words and nothing else. */
Test(setup, multigrid_evolves_where_it_can) {
  char folder[] = "/tmp/qk-setup-XXXXXX", from[QK_FILE_PATH];
  cr_assert_not_null(mkdtemp(folder));
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 4);
  snprintf(load.checkpoint, sizeof load.checkpoint, "%s", folder);
  loaded_t l = must_load(&load);
  wait_written(l.setup->mg);
  const int64_t first = solve_all(&l);
  snprintf(from, sizeof from, "%s", l.setup->mg->checkpoint);
  close_load(&l);

  load.values = values_wilson(0.051, 1);
  snprintf(load.checkpoint, sizeof load.checkpoint, "%s/next", folder);
  snprintf(load.evolve_from, sizeof load.evolve_from, "light");
  const char *const path[] = {"", "/nowhere/mg", from, load.checkpoint, load.checkpoint};
  const char *const words[] = {"null vectors of light not used: it is not here any more",
                               "there is no checkpoint", "", "", ""};
  for (int i = 0; i < 5; i++) {
    if (i < 3) unlink(load.checkpoint);
    if (i == 3) load.values = values_wilson(0.052, 1); /* its own file is that of another mass */
    if (i == 4) load.mg.level[0].nvec = 16;
    snprintf(load.evolve_path, sizeof load.evolve_path, "%s", path[i]);
    l = must_load(&load);
    const qk_mg_service_t *mg = l.setup->mg;
    const char *trouble = i == 4 ? "checkpoint of 8 vectors on level 0, not 16" : words[i];
    cr_expect(strstr(mg->evolve_trouble, trouble) != NULL, "%d: %s", i, mg->evolve_trouble);
    cr_expect_eq(mg->evolve_trouble[0] == '\0', i == 2 || i == 3);
    cr_expect_eq(strncmp(mg->mg->origin, "evolved from light (", 20) == 0, i == 2 || i == 3);
    cr_expect_str_eq(mg->trouble, "");
    cr_expect(solve_all(&l) <= first + 4, "four right-hand sides, an iteration more each");
    wait_written(l.setup->mg);
    close_load(&l);
  }
  unlink(load.checkpoint);
  unlink(from);
  cr_expect_eq(rmdir(folder), 0, "something is left in %s", folder);
}

/* Load, refresh, close, with something failing at places that lie ever farther apart. */
static void fail_at_places(const char *point, qk_status_t expected, const char *checkpoint) {
  qk_load_t load = a_load("builtin:weak:4x4x4x4:1", "mg", QK_SINGLE, 2);
  int failed = 0;
  load.mg.level[0].nvec = 4;
  load.mg.level[0].setup_iterations = 4;
  for (int mu = 0; mu < 4; mu++) load.mg.level[0].block[mu] = 2;
  snprintf(load.checkpoint, sizeof load.checkpoint, "%s", checkpoint);
  for (int n = 4; n < 8000; n += 1 + n / 6) { /* the communicator comes first */
    char faults[64];
    qk_err_t err = {0};
    loaded_t l;
    int64_t before = qk_mem_bytes();
    snprintf(faults, sizeof faults, "%s:%d", point, n);
    cr_assert(qk_fault_set(faults) == 0);
    qk_status_t status = open_load(&load, &l, &err);
    if (status == QK_OK)
      status =
          qk_loaded_refresh(l.setup, (qk_mg_order_t){.refresh = QK_MG_REFINE}, NULL, NULL, &err);
    cr_assert(qk_fault_set(NULL) == 0);
    cr_assert(status == QK_OK || status == expected, "%s: %s: %s", faults, qk_status_name(status),
              err.text);
    cr_expect(status == QK_OK || err.text[0] != '\0', "%s: no words", faults);
    failed += status != QK_OK;
    close_load(&l);
    cr_assert_eq(qk_mem_bytes(), before, "%s: %ld bytes stay", faults,
                 (long)(qk_mem_bytes() - before));
  }
  cr_expect(failed > 10, "%s: only %d places", point, failed);
}

Test(setup, failures_leave_nothing_behind) {
  fail_at_places("device-alloc", QK_DEVICE_MEMORY, "");
  fail_at_places("device-call", QK_DEVICE_ERROR, "");
}

Test(setup, failures_with_a_checkpoint_leave_nothing_behind) {
  char folder[] = "/tmp/qk-setup-XXXXXX", path[64];
  cr_assert_not_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/multigrid", folder);
  fail_at_places("alloc", QK_NO_MEMORY, path);
  fail_at_places("device-call", QK_DEVICE_ERROR, path);
  unlink(path);
  cr_expect_eq(rmdir(folder), 0, "something is left in %s", folder);
}

Test(setup, a_checkpoint_that_cannot_be_written_is_no_failure) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 2);
  snprintf(load.checkpoint, sizeof load.checkpoint, "/proc/no/such/file");
  loaded_t l = must_load(&load);
  bool news;
  while (l.setup->mg->save != NULL) cr_assert_eq(qk_mg_service_poll(l.setup->mg, &news), QK_OK);
  cr_expect(strstr(l.setup->mg->trouble, "not written") != NULL, "'%s'", l.setup->mg->trouble);
  cr_expect_not(l.setup->mg->written);
  solve_all(&l);
  close_load(&l);
}
