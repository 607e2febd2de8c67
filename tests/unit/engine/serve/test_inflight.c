/* Right-hand sides in the slots of a setup: which solver takes them, which begin together, and that
 * nothing waits for copies beside the solver. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/values.h"
#include "tests/unit/engine/setup/setup_kit.h"

/* What is alone has a solver of its own and stays there; what comes meanwhile goes to the block. */
static void single_rhs_and_block(const char *solver) {
  qk_load_t load = a_load("builtin:weak:8x8x8x8:1", solver, QK_SINGLE, 8);
  loaded_t l = must_load(&load);
  qk_solver_t *block = l.setup->solver, *single_rhs = l.setup->single_rhs;
  const qk_fill_t first = noise_for(5, 11), later[2] = {noise_for(0, 12), noise_for(1, 13)};
  qk_result_t alone[QK_INFLIGHT_MAX] = {0}, together[QK_INFLIGHT_MAX] = {0};
  qk_err_t err = {0};

  fill_entries(&l, 1, &first);
  cr_expect(qk_solver_running(single_rhs) == 1 && qk_solver_running(block) == 0);
  cr_expect(qk_inflight_busy(l.inflight, 5) && !qk_inflight_busy(l.inflight, 0));
  cr_assert_eq(qk_inflight_step(l.inflight, &err), QK_OK);
  fill_entries(&l, 2, later);
  cr_expect(qk_solver_running(single_rhs) == 1 && qk_solver_running(block) == 2);
  run_entries(&l, alone);
  for (int i = 0; i < 3; i++) {
    const qk_result_t *r = &alone[i < 2 ? i : 5];
    cr_expect(r->serial == (i < 2 ? later[i].serial : first.serial) && r->err.code == QK_OK &&
                  r->true_residual <= 1e-9 && r->norm_x > 0,
              "%s: %d", solver, i);
  }
  fill_entries(&l, 2, later);
  fill_entries(&l, 1, &first);
  cr_expect(qk_solver_running(single_rhs) == 0 && qk_solver_running(block) == 3);
  run_entries(&l, together);
  cr_expect_float_eq(alone[5].norm_x / together[5].norm_x, 1, 1e-8, "%s", solver);
  cr_expect(llabs(alone[5].iterations - together[5].iterations) <= together[5].iterations / 5 + 1);

  fill_entries(&l, 1, &first);
  cr_expect_eq(qk_solver_running(single_rhs), 1);
  qk_inflight_cancel(l.inflight, 5);
  qk_inflight_cancel(l.inflight, 6); /* free: nothing happens */
  qk_result_t result[QK_INFLIGHT_MAX];
  int ended = 0;
  cr_assert_eq(qk_inflight_retire(l.inflight, result, &ended, &err), QK_OK);
  cr_expect(ended == 1 && result[0].entry == 5 && result[0].err.code == QK_CANCELLED);
  close_load(&l);
}

Test(inflight, what_is_alone_is_not_solved_as_a_block) {
  single_rhs_and_block("bicgstab");
  single_rhs_and_block("mg");
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
  qk_result_t result[QK_INFLIGHT_MAX];
  qk_err_t err = {0};
  int ended;
  cr_assert_eq(qk_inflight_step(l->inflight, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_inflight_retire(l->inflight, result, &ended, &err), QK_OK, "%s", err.text);
}

/* Steps until both slots are solved, which began together. */
static void step_until_both(loaded_t *l, int i, int k) {
  const qk_slot_t *a, *b;
  do {
    step(l);
    a = qk_inflight_state(l->inflight, i);
    b = qk_inflight_state(l->inflight, k);
  } while (a == NULL || b == NULL);
  cr_expect_eq(a->iterations, b->iterations, "slots %d and %d: iterations %d and %d", i, k,
               (int)a->iterations, (int)b->iterations);
}

/* Slot 0 begins, then 1 and 2, whose sources come meanwhile; 3 and 4 wait until then. All are
 * alike. False: 1 and 2 began more than a quarter of a solve after 0, which may be over. */
static bool begin_apart(loaded_t *l, qk_fill_t fill[5], int64_t whole) {
  fill_entries(l, 1, &fill[0]);
  while (qk_inflight_state(l->inflight, 0) == NULL ||
         qk_inflight_state(l->inflight, 0)->iterations == 0)
    step(l);
  fill_entries(l, 2, &fill[1]);
  step_until_both(l, 1, 2);
  const qk_slot_t *first = qk_inflight_state(l->inflight, 0);
  const int64_t apart =
      first ? first->iterations - qk_inflight_state(l->inflight, 1)->iterations : whole;
  cr_expect_gt(apart, 0);
  fill_entries(l, 2, &fill[3]);
  return apart <= whole / 4;
}

/* Sources that are alike. */
static void begin_beside_each_other(loaded_t *l, qk_fill_t fill[5]) {
  qk_result_t result[QK_INFLIGHT_MAX] = {0};
  for (int i = 0; i < 3; i++) fill_entries(l, 1, &fill[i]);
  run_entries(l, result); /* each column has been used */
  const int64_t whole = result[0].iterations;
  cr_assert(result[0].err.code == QK_OK && result[2].iterations == whole && whole >= 40, "%d",
            (int)whole);

  bool near = false;
  for (int attempt = 0; attempt < 50 && !near; attempt++) {
    near = begin_apart(l, fill, whole);
    if (near) step_until_both(l, 3, 4);
    run_entries(l, result);
  }
  cr_expect(near, "sources take more than %d iterations to come", (int)whole / 4);
}

static loaded_t load_three(void) {
  qk_load_t load = a_load("builtin:weak:4x4x4x8:1", "cg", QK_DOUBLE, 3);
  load.single_rhs = false;
  load.values = values_wilson(0.01, 1);
  return must_load(&load);
}

Test(inflight, uploads_begin_beside_each_other_at_the_same_time) {
  loaded_t l = load_three();
  char name[QK_SHM_NAME_MAX + 1];
  snprintf(name, sizeof name, "/qk-test-%ld-together", (long)getpid());
  qk_fill_t fill[5];
  for (int i = 0; i < 5; i++) fill[i] = upload_for(i, name, 4 * 4 * 4 * 8);
  begin_beside_each_other(&l, fill);
  shm_unlink(name);
  close_load(&l);
}

Test(inflight, generated_sources_begin_beside_each_other_at_the_same_time) {
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
  const qk_slot_t *state = qk_inflight_state(l->inflight, slot);
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

Test(inflight, slots_do_not_wait_for_copies_beside_them) {
  char name[QK_SHM_NAME_MAX + 1];
  loaded_t l = load_slow(name);
  const qk_fill_t first = noise_for(0, 1), second = upload_for(1, name, 4 * 4 * 4 * 8);
  qk_result_t result[QK_INFLIGHT_MAX] = {0};

  fill_entries(&l, 1, &first);
  slow.busy[1] = true;
  fill_entries(&l, 1, &second);
  while (iterations_of(&l, 0) < 24) step(&l);
  cr_expect_eq(iterations_of(&l, 1), -1, "its source has not come");
  cr_expect_eq(slow.waits, 0);
  slow.busy[1] = false;
  run_entries(&l, result);
  for (int i = 0; i < 2; i++)
    cr_expect(result[i].err.code == QK_OK && result[i].true_residual <= 1e-9, "slot %d", i);

  slow.busy[1] = true;
  fill_entries(&l, 1, &second);
  while (iterations_of(&l, 1) < 0) step(&l);
  cr_expect_gt(slow.waits, 0, "where nothing is solved they are waited for");
  run_entries(&l, result);
  shm_unlink(name);
  close_load(&l);
}

Test(inflight, sources_do_not_wait_for_solutions_that_leave) {
  char name[QK_SHM_NAME_MAX + 1];
  loaded_t l = load_slow(name);
  const qk_fill_t stays = noise_for(1, 1), comes = upload_for(2, name, 4 * 4 * 4 * 8);
  qk_fill_t leaves = noise_for(0, 1);
  leaves.stopping.tol = 0.1;
  leaves.is_double = true;
  snprintf(leaves.shm_out, sizeof leaves.shm_out, "%s", name);
  const struct timespec pause = {.tv_nsec = 1000000};
  qk_result_t result[QK_INFLIGHT_MAX] = {0};

  slow.busy[2] = true;
  fill_entries(&l, 1, &leaves);
  fill_entries(&l, 1, &stays);
  do step(&l);
  while (iterations_of(&l, 0) >= 0);
  fill_entries(&l, 1, &comes);
  while (iterations_of(&l, 2) < 0 && iterations_of(&l, 1) >= 0) {
    nanosleep(&pause, NULL); /* for what moves the source */
    step(&l);
  }
  cr_expect_geq(iterations_of(&l, 2), 0, "its source has come");
  cr_expect(qk_inflight_busy(l.inflight, 0), "its solution has not gone");
  slow.busy[2] = false;
  run_entries(&l, result);
  for (int i = 0; i < 3; i++)
    cr_expect(result[i].err.code == QK_OK && result[i].true_residual <= (i == 0 ? 0.1 : 1e-9),
              "slot %d", i);
  cr_expect(result[0].written);
  shm_unlink(name);
  close_load(&l);
}

Test(inflight, what_was_cancelled_does_not_wait_for_others_to_leave) {
  qk_load_t load = a_load("builtin:weak:4x4x4x8:1", "cg", QK_DOUBLE, 3);
  load.single_rhs = false;
  load.staging = 1;
  loaded_t l = must_load(&load);
  cr_assert_lt(l.setup->plan.leaving, 3);
  char name[QK_SHM_NAME_MAX + 1];
  snprintf(name, sizeof name, "/qk-test-%ld-cancelled", (long)getpid());
  qk_fill_t fill[3];
  qk_result_t result[QK_INFLIGHT_MAX];
  qk_err_t err = {0};
  int ended = 0;
  for (int i = 0; i < 3; i++) {
    fill[i] = upload_for(i, name, 4 * 4 * 4 * 8);
    fill[i].upload = false;
    snprintf(fill[i].shm_out, sizeof fill[i].shm_out, "%s", name);
  }
  fill_entries(&l, 3, fill);
  step(&l);
  for (int i = 0; i < 3; i++) qk_inflight_cancel(l.inflight, i);
  cr_assert_eq(qk_inflight_retire(l.inflight, result, &ended, &err), QK_OK, "%s", err.text);
  cr_expect_eq(ended, 3);
  for (int i = 0; i < ended; i++) cr_expect_eq(result[i].err.code, QK_CANCELLED);
  shm_unlink(name);
  close_load(&l);
}
