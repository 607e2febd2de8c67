/* What LOAD makes of its choices: which solver, how many slots, how much memory;
 * and multigrid mended. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/serve/slots.h"

typedef struct loaded {
  qk_comm_t *comm;
  qk_setup_t *setup;
  qk_port_t *port;
  qk_slots_t *slots;
} loaded_t;

static qk_load_t a_load(const char *gauge, const char *solver, qk_prec_t inner, int nslot) {
  qk_load_t load = {
      .mass = 0.05, .csw = 1, .inner = inner, .nslot = nslot, .lone = true, .staging = 4};
  snprintf(load.gauge, sizeof load.gauge, "%s", gauge);
  snprintf(load.solver, sizeof load.solver, "%s", solver);
  const char *backend = getenv("QK_BACKEND");
  snprintf(load.backend, sizeof load.backend, "%s", backend ? backend : "cpu");
  for (int mu = 0; mu < 4; mu++) load.phase[mu][0] = mu < 3 ? 1 : -1;
  load.mg.level[0].nvec = 8;
  load.mg.level[0].setup_iterations = 20;
  return load;
}

static qk_status_t open_load(const qk_load_t *load, loaded_t *l, qk_err_t *err) {
  *l = (loaded_t){0};
  cr_assert_eq(qk_comm_self_create(&l->comm, err), QK_OK);
  return qk_setup_create(l->comm, load, NULL, NULL, &l->setup, err);
}

static loaded_t must_load(const qk_load_t *load) {
  qk_err_t err = {0};
  loaded_t l;
  cr_assert_eq(open_load(load, &l, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_port_create(&l.setup->dev, &l.port, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_slots_create(l.setup, l.port, &l.slots, &err), QK_OK, "%s", err.text);
  return l;
}

static void close_load(loaded_t *l) {
  qk_slots_destroy(l->slots);
  qk_port_destroy(l->port);
  qk_setup_destroy(l->setup);
  qk_comm_destroy(l->comm);
}

static qk_fill_t noise_for(int slot, uint64_t seed) {
  qk_fill_t fill = {.ticket = seed, .slot = slot, .source = QK_SOURCE_Z4, .seed = seed};
  fill.spin = fill.colour = fill.site[3] = -1;
  fill.factor = 1;
  fill.tol = 1e-9;
  fill.max_iter = 1000;
  return fill;
}

static void fill_slots(loaded_t *l, int n, const qk_fill_t *fill) {
  qk_err_t err = {0};
  cr_assert_eq(qk_slots_fill(l->slots, n, fill, &err), QK_OK, "%s", err.text);
}

/* Steps until nothing runs; results by slot. */
static void run_slots(loaded_t *l, qk_result_t by_slot[]) {
  qk_result_t result[QK_SEATS_MAX];
  qk_err_t err = {0};
  int ended;
  while (qk_slots_running(l->slots) > 0) {
    cr_assert_eq(qk_slots_step(l->slots, &err), QK_OK, "%s", err.text);
    cr_assert_eq(qk_slots_retire(l->slots, result, &ended, &err), QK_OK, "%s", err.text);
    for (int i = 0; i < ended; i++) by_slot[result[i].slot] = result[i];
  }
}

/* Noise in all slots; the iterations of the slowest. */
static int64_t solve_all(loaded_t *l) {
  qk_fill_t fill[QK_SEATS_MAX] = {0};
  qk_result_t result[QK_SEATS_MAX] = {0};
  const int n = l->setup->nslot;
  int64_t most = 0;
  for (int i = 0; i < n; i++) fill[i] = noise_for(i, (uint64_t)i + 5);
  fill_slots(l, n, fill);
  run_slots(l, result);
  for (int i = 0; i < n; i++) {
    cr_assert(result[i].ticket == fill[i].ticket && result[i].err.code == QK_OK, "%s",
              result[i].err.text);
    cr_assert(result[i].tol == 1e-9 && result[i].true_residual <= 1e-9);
    if (result[i].iterations > most) most = result[i].iterations;
  }
  return most;
}

static void expect_as_planned(const qk_load_t *load) {
  loaded_t l = must_load(load);
  qk_setup_t *s = l.setup;
  const qk_fill_t alone = noise_for(0, 3);
  qk_result_t result[QK_SEATS_MAX] = {0};
  solve_all(&l);
  fill_slots(&l, 1, &alone);
  run_slots(&l, result);
  cr_expect_eq(result[0].err.code, QK_OK);
  cr_expect_eq(s->lone != NULL, load->nslot > 1);
  double planned = (double)s->plan.serving, held = (double)s->ops->allocated(s->ctx);
  cr_expect_float_eq(planned / held, 1, 0.1, "%s, %d slots: %.0f bytes planned, %.0f held",
                     load->solver, s->nslot, planned, held);
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

/* What is alone has a solver of its own and stays there; what comes meanwhile goes to the block. */
static void lone_and_block(const char *solver) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", solver, QK_SINGLE, 8);
  loaded_t l = must_load(&load);
  qk_solver_t *block = l.setup->solver, *lone = l.setup->lone;
  const qk_fill_t first = noise_for(5, 11), later[2] = {noise_for(0, 12), noise_for(1, 13)};
  qk_result_t alone[QK_SEATS_MAX] = {0}, together[QK_SEATS_MAX] = {0};
  qk_err_t err = {0};

  fill_slots(&l, 1, &first);
  cr_expect(qk_solver_running(lone) == 1 && qk_solver_running(block) == 0);
  cr_expect(qk_slots_busy(l.slots, 5) && !qk_slots_busy(l.slots, 0));
  cr_assert_eq(qk_slots_step(l.slots, &err), QK_OK);
  fill_slots(&l, 2, later);
  cr_expect(qk_solver_running(lone) == 1 && qk_solver_running(block) == 2);
  run_slots(&l, alone);
  for (int i = 0; i < 3; i++) {
    const qk_result_t *r = &alone[i < 2 ? i : 5];
    cr_expect(r->ticket == (i < 2 ? later[i].ticket : first.ticket) && r->err.code == QK_OK &&
                  r->true_residual <= 1e-9 && r->norm_x > 0,
              "%s: %d", solver, i);
  }
  fill_slots(&l, 2, later);
  fill_slots(&l, 1, &first);
  cr_expect(qk_solver_running(lone) == 0 && qk_solver_running(block) == 3);
  run_slots(&l, together);
  cr_expect_float_eq(alone[5].norm_x / together[5].norm_x, 1, 1e-8, "%s", solver);
  cr_expect(llabs(alone[5].iterations - together[5].iterations) <= together[5].iterations / 5 + 1);

  fill_slots(&l, 1, &first);
  cr_expect_eq(qk_solver_running(lone), 1);
  qk_slots_cancel(l.slots, 5);
  qk_slots_cancel(l.slots, 6); /* free: nothing happens */
  qk_result_t result[QK_SEATS_MAX];
  int ended = 0;
  cr_assert_eq(qk_slots_retire(l.slots, result, &ended, &err), QK_OK);
  cr_expect(ended == 1 && result[0].slot == 5 && result[0].err.code == QK_CANCELLED);
  close_load(&l);
}

Test(setup, what_is_alone_is_not_solved_as_a_block) {
  lone_and_block("bicgstab");
  lone_and_block("mg");
}

/* A source of noise in shared memory, to be unlinked. */
static qk_fill_t upload_for(int slot, const char *name, size_t sites) {
  const size_t reals = 24 * sites;
  double *v = malloc(reals * sizeof *v);
  const int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
  cr_assert(v != NULL && fd >= 0);
  uint64_t seed = 1;
  for (size_t i = 0; i < reals; i++) {
    seed = 6364136223846793005u * seed + 1442695040888963407u;
    v[i] = (double)(seed >> 40) * 0x1p-23 - 1;
  }
  cr_assert_eq(pwrite(fd, v, reals * sizeof *v, 0), (ssize_t)(reals * sizeof *v));
  close(fd);
  free(v);
  qk_fill_t fill = noise_for(slot, (uint64_t)slot + 1);
  fill.upload = fill.is_double = fill.in_double = true;
  fill.basis = QK_BASIS_DEGRAND_ROSSI;
  snprintf(fill.shm_in, sizeof fill.shm_in, "%s", name);
  return fill;
}

static void step(loaded_t *l) {
  qk_result_t result[QK_SEATS_MAX];
  qk_err_t err = {0};
  int ended;
  cr_assert_eq(qk_slots_step(l->slots, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_slots_retire(l->slots, result, &ended, &err), QK_OK, "%s", err.text);
}

/* Steps until both slots are solved, which began together. */
static void step_until_both(loaded_t *l, int i, int k) {
  const qk_slot_t *a, *b;
  do {
    step(l);
    a = qk_slots_state(l->slots, i);
    b = qk_slots_state(l->slots, k);
  } while (a == NULL || b == NULL);
  cr_expect_eq(a->iterations, b->iterations, "slots %d and %d: iterations %d and %d", i, k,
               (int)a->iterations, (int)b->iterations);
}

/* Slot 0 begins, then 1 and 2, whose sources come meanwhile; 3 and 4 wait until then. All are
 * alike. False: 1 and 2 began more than a quarter of a solve after 0. */
static bool begin_apart(loaded_t *l, qk_fill_t fill[5], int64_t whole) {
  fill_slots(l, 1, &fill[0]);
  while (qk_slots_state(l->slots, 0) == NULL || qk_slots_state(l->slots, 0)->iterations == 0)
    step(l);
  fill_slots(l, 2, &fill[1]);
  step_until_both(l, 1, 2);
  const int64_t apart =
      qk_slots_state(l->slots, 0)->iterations - qk_slots_state(l->slots, 1)->iterations;
  cr_expect_gt(apart, 0);
  fill_slots(l, 2, &fill[3]);
  return apart <= whole / 4;
}

/* Sources that are alike. */
static void begin_beside_each_other(loaded_t *l, qk_fill_t fill[5]) {
  qk_result_t result[QK_SEATS_MAX] = {0};
  for (int i = 0; i < 3; i++) fill_slots(l, 1, &fill[i]);
  run_slots(l, result); /* each column has been used */
  const int64_t whole = result[0].iterations;
  cr_assert(result[0].err.code == QK_OK && result[2].iterations == whole && whole >= 40, "%d",
            (int)whole);

  bool near = false;
  for (int attempt = 0; attempt < 50 && !near; attempt++) {
    near = begin_apart(l, fill, whole);
    if (near) step_until_both(l, 3, 4);
    run_slots(l, result);
  }
  cr_expect(near, "sources take more than %d iterations to come", (int)whole / 4);
}

static loaded_t load_three(void) {
  qk_load_t load = a_load("builtin:weak:4x4x4x8:1", "cg", QK_DOUBLE, 3);
  load.lone = false;
  load.mass = 0.01;
  return must_load(&load);
}

Test(setup, uploads_begin_beside_each_other_at_the_same_time) {
  loaded_t l = load_three();
  char name[QK_SHM_NAME_MAX + 1];
  snprintf(name, sizeof name, "/qk-test-%ld-abreast", (long)getpid());
  qk_fill_t fill[5];
  for (int i = 0; i < 5; i++) fill[i] = upload_for(i, name, 4 * 4 * 4 * 8);
  begin_beside_each_other(&l, fill);
  shm_unlink(name);
  close_load(&l);
}

Test(setup, generated_sources_begin_beside_each_other_at_the_same_time) {
  loaded_t l = load_three();
  qk_fill_t fill[5];
  for (int i = 0; i < 5; i++) fill[i] = noise_for(i, 1);
  begin_beside_each_other(&l, fill);
  close_load(&l);
}

/* Copies that take long, in the table of the device. */
static struct {
  qk_ops_t ops;
  bool busy[QK_QUEUES];
  int waits; /* while they were */
} slow;

static qk_status_t slow_idle(qk_ops_ctx_t *ctx, int queue, bool *idle) {
  (void)ctx;
  *idle = !slow.busy[queue];
  return QK_OK;
}

static qk_status_t slow_sync(qk_ops_ctx_t *ctx, int queue) {
  (void)ctx;
  if (slow.busy[queue]) slow.waits++;
  return QK_OK;
}

static int64_t iterations_of(const loaded_t *l, int slot) {
  const qk_slot_t *state = qk_slots_state(l->slots, slot);
  return state != NULL ? state->iterations : -1;
}

/* With a name of shared memory. */
static loaded_t load_slow(char name[QK_SHM_NAME_MAX + 1]) {
  loaded_t l = load_three();
  if (!l.setup->ops->host_memory) cr_skip("the copies of this backend take as long as they take");
  memset(&slow, 0, sizeof slow);
  slow.ops = *l.setup->ops;
  slow.ops.queue_idle = slow_idle;
  slow.ops.queue_sync = slow_sync;
  l.setup->ops = l.setup->dev.ops = &slow.ops;
  snprintf(name, QK_SHM_NAME_MAX + 1, "/qk-test-%ld-slow", (long)getpid());
  return l;
}

Test(setup, slots_do_not_wait_for_copies_beside_them) {
  char name[QK_SHM_NAME_MAX + 1];
  loaded_t l = load_slow(name);
  const qk_fill_t first = noise_for(0, 1), second = upload_for(1, name, 4 * 4 * 4 * 8);
  qk_result_t result[QK_SEATS_MAX] = {0};

  fill_slots(&l, 1, &first);
  slow.busy[1] = true;
  fill_slots(&l, 1, &second);
  while (iterations_of(&l, 0) < 24) step(&l);
  cr_expect_eq(iterations_of(&l, 1), -1, "its source has not come");
  cr_expect_eq(slow.waits, 0);
  slow.busy[1] = false;
  run_slots(&l, result);
  for (int i = 0; i < 2; i++)
    cr_expect(result[i].err.code == QK_OK && result[i].true_residual <= 1e-9, "slot %d", i);

  slow.busy[1] = true;
  fill_slots(&l, 1, &second);
  while (iterations_of(&l, 1) < 0) step(&l);
  cr_expect_gt(slow.waits, 0, "where nothing is solved they are waited for");
  run_slots(&l, result);
  shm_unlink(name);
  close_load(&l);
}

Test(setup, sources_do_not_wait_for_solutions_that_leave) {
  char name[QK_SHM_NAME_MAX + 1];
  loaded_t l = load_slow(name);
  const qk_fill_t stays = noise_for(1, 1), comes = upload_for(2, name, 4 * 4 * 4 * 8);
  qk_fill_t leaves = noise_for(0, 1);
  leaves.tol = 0.1;
  leaves.is_double = true;
  snprintf(leaves.shm_out, sizeof leaves.shm_out, "%s", name);
  const struct timespec pause = {.tv_nsec = 1000000};
  qk_result_t result[QK_SEATS_MAX] = {0};

  slow.busy[2] = true;
  fill_slots(&l, 1, &leaves);
  fill_slots(&l, 1, &stays);
  do step(&l);
  while (iterations_of(&l, 0) >= 0);
  fill_slots(&l, 1, &comes);
  while (iterations_of(&l, 2) < 0 && iterations_of(&l, 1) >= 0) {
    nanosleep(&pause, NULL); /* for what moves the source */
    step(&l);
  }
  cr_expect_geq(iterations_of(&l, 2), 0, "its source has come");
  cr_expect(qk_slots_busy(l.slots, 0), "its solution has not gone");
  slow.busy[2] = false;
  run_slots(&l, result);
  for (int i = 0; i < 3; i++)
    cr_expect(result[i].err.code == QK_OK && result[i].true_residual <= (i == 0 ? 0.1 : 1e-9),
              "slot %d", i);
  cr_expect(result[0].written);
  shm_unlink(name);
  close_load(&l);
}

Test(setup, what_was_cancelled_does_not_wait_for_others_to_leave) {
  qk_load_t load = a_load("builtin:weak:4x4x4x8:1", "cg", QK_DOUBLE, 3);
  load.lone = false;
  load.staging = 1;
  loaded_t l = must_load(&load);
  cr_assert_lt(l.setup->plan.leaving, 3);
  char name[QK_SHM_NAME_MAX + 1];
  snprintf(name, sizeof name, "/qk-test-%ld-cancelled", (long)getpid());
  qk_fill_t fill[3];
  qk_result_t result[QK_SEATS_MAX];
  qk_err_t err = {0};
  int ended = 0;
  for (int i = 0; i < 3; i++) {
    fill[i] = upload_for(i, name, 4 * 4 * 4 * 8);
    fill[i].upload = false;
    snprintf(fill[i].shm_out, sizeof fill[i].shm_out, "%s", name);
  }
  fill_slots(&l, 3, fill);
  step(&l);
  for (int i = 0; i < 3; i++) qk_slots_cancel(l.slots, i);
  cr_assert_eq(qk_slots_retire(l.slots, result, &ended, &err), QK_OK, "%s", err.text);
  cr_expect_eq(ended, 3);
  for (int i = 0; i < ended; i++) cr_expect_eq(result[i].err.code, QK_CANCELLED);
  shm_unlink(name);
  close_load(&l);
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
    cr_expect_str_eq(l.setup->solver_name, cases[i].solver, "%s", cases[i].gauge);
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
  load.mass = -2;
  load.csw = 0;
  load.mg.level[0].setup_iterations = 2;
  expect_refused(&load, QK_BREAKDOWN, "");
  snprintf(load.solver, sizeof load.solver, "auto");
  loaded_t l = must_load(&load);
  cr_expect_str_eq(l.setup->solver_name, "bicgstab");
  cr_expect_null(l.setup->mg);
  close_load(&l);
}

Test(setup, what_does_not_fit_is_refused_with_numbers) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "mg", QK_SINGLE, 16);
  loaded_t l = must_load(&load);
  qk_setup_t *s = l.setup;
  const bool half = s->mg_params.level[0].smoother_prec == QK_HALF; /* on the GPU */
  qk_plan_input_t in = {.ops = s->ops,
                        .geom = &s->geom,
                        .op = {.want = {true, true, half}, .link_reals = {18, 12, 18}, .csw = 1},
                        .method = "gcr",
                        .inner = QK_SINGLE,
                        .nslot = 16,
                        .gcr_keep = QK_GCR_KEEP_PRECONDITIONED,
                        .lone = true,
                        .mg = &s->mg_params};
  qk_plan_t sixteen, plan;
  qk_err_t err = {0};
  in.staging = s->plan.staging;
  qk_plan_make(&in, &sixteen);
  cr_expect(sixteen.lone && sixteen.staging == 4 && sixteen.leaving == 8 &&
            sixteen.serving == s->plan.serving);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup, &plan, &err), QK_OK);
  cr_expect(plan.lone && plan.staging == 4);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_OK);
  cr_expect(plan.lone && plan.staging == 2 && plan.leaving == 4 && plan.nslot == 16);
  in.nslot = 3;
  qk_plan_make(&in, &plan);
  cr_expect(plan.staging == 2 && plan.leaving == 3);
  in.nslot = 16;
  in.staging = 0;
  qk_plan_make(&in, &sixteen);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_OK);
  cr_expect(!plan.lone && plan.nslot == 16 && plan.share[QK_PLAN_LONE] == 0);
  in.lone = false;
  qk_plan_make(&in, &sixteen);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup, &plan, &err), QK_OK);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_DEVICE_MEMORY);
  cr_expect(strstr(err.text, "slots = 16 need") && strstr(err.text, "slots = 15 would need"), "%s",
            err.text);
  in.nslot = 0;
  err = (qk_err_t){0};
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup, &plan, &err), QK_OK);
  cr_expect_eq(plan.nslot, 16);
  cr_expect_eq(qk_plan_fit(&in, sixteen.setup - 1, &plan, &err), QK_OK);
  cr_expect_eq(plan.nslot, 15);
  cr_expect_eq(qk_plan_fit(&in, 1000, &plan, &err), QK_DEVICE_MEMORY);
  cr_expect(strstr(err.text, "slots = 1 need"), "%s", err.text);
  close_load(&l);
}

/* With the parameters of a GPU, whose number of vectors has room to fall. */
Test(setup, fewer_vectors_are_taken_where_more_do_not_fit) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", "bicgstab", QK_SINGLE, 1);
  loaded_t l = must_load(&load);
  const qk_mg_params_t open = {0}, said = {.level = {{.nvec = 32}}};
  qk_mg_params_t mg = open, few = {.level = {{.nvec = QK_MG_VECTORS_FEW}}};
  qk_plan_input_t in = {.ops = l.setup->ops,
                        .geom = &l.setup->geom,
                        .op = {.want = {true, true, false}, .link_reals = {18, 12, 0}, .csw = 1},
                        .method = "gcr",
                        .inner = QK_SINGLE,
                        .nslot = 1,
                        .gcr_keep = QK_GCR_KEEP_PRECONDITIONED,
                        .mg = &mg};
  qk_plan_t more, plan;
  qk_err_t err = {0};
  cr_assert_eq(qk_mg_params_complete(in.geom, &qk_tuning_gpu, &mg, &err), QK_OK);
  cr_assert_eq(qk_mg_params_complete(in.geom, &qk_tuning_gpu, &few, &err), QK_OK);
  cr_assert_eq(mg.level[0].nvec, 32);
  qk_plan_make(&in, &more);
  cr_expect_eq(qk_plan_fit_vectors(&in, &open, &qk_tuning_gpu, more.setup, &mg, &plan, &err),
               QK_OK);
  cr_expect_eq(mg.level[0].nvec, 32);
  cr_expect_eq(qk_plan_fit_vectors(&in, &said, &qk_tuning_gpu, more.setup - 1, &mg, &plan, &err),
               QK_DEVICE_MEMORY);
  cr_expect_eq(mg.level[0].nvec, 32, "what was asked for stays");
  cr_expect_eq(qk_plan_fit_vectors(&in, &open, &qk_tuning_gpu, more.setup - 1, &mg, &plan, &err),
               QK_OK);
  cr_expect(memcmp(&mg, &few, sizeof mg) == 0 && plan.setup < more.setup);
  mg = open;
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
  cr_expect_eq(l.setup->mg->watch.in_first, 0, "the worker watches");
  for (int i = 0; i < 2; i++) {
    qk_mg_remedy_t remedy = i == 0 ? QK_MG_REFINE : QK_MG_REBUILD;
    cr_assert_eq(qk_setup_mend(l.setup, remedy, NULL, NULL, &err), QK_OK, "%s", err.text);
    cr_expect(solve_all(&l) <= first + 2);
    cr_expect_float_eq((double)l.setup->ops->allocated(l.setup->ctx) / (double)held, 1, 0.01);
    cr_expect_eq(l.setup->mg->watch.tried, remedy);
  }
  cr_expect(l.setup->mg->refined == 1 && l.setup->mg->rebuilt == 1);
  close_load(&l);
}

static void wait_written(qk_mg_host_t *mg) {
  bool news = false;
  while (mg->save != NULL) cr_assert_eq(qk_mg_host_poll(mg, &news), QK_OK);
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
  cr_expect_eq(solve_all(&l), first);
  close_load(&l);

  snprintf(load.checkpoint, sizeof load.checkpoint, "%s", path);
  load.mass = 0.06; /* the file of another mass is replaced, one that is cut too */
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

/* Load, mend, close, with something failing at places that lie ever farther apart. */
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
    if (status == QK_OK) status = qk_setup_mend(l.setup, QK_MG_REFINE, NULL, NULL, &err);
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
  while (l.setup->mg->save != NULL) cr_assert_eq(qk_mg_host_poll(l.setup->mg, &news), QK_OK);
  cr_expect(strstr(l.setup->mg->trouble, "not written") != NULL, "'%s'", l.setup->mg->trouble);
  cr_expect_not(l.setup->mg->written);
  solve_all(&l);
  close_load(&l);
}
