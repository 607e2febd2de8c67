/*
 * Halos of a rank that is its own neighbour (QK_LOOP): the operator and the cycle give the same
 * bits whether faces are stored into peer memory or sent in messages, and, but for the rounding of
 * faces, those of a lattice that is not cut.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/peers.h"
#include "tests/support/mg_rig.h"

static const char gauge[] = "builtin:weak:4x4x8x8:3";

static void open_loop(qk_rig_t *rig, const char *axes, const char *transport) {
  cr_assert(setenv("QK_LOOP", axes, 1) == 0 && setenv("QK_TRANSPORT", transport, 1) == 0);
  rig_open(rig, NULL, gauge, NULL);
  rig_action(rig, "wilson-clover;mass=-0.1;csw=1.2", -1);
}

/* Column n-1 of M v, or of M^+ v, for v random there and zero in the others. */
static double *image(qk_rig_t *rig, qk_prec_t prec, int n, bool dagger) {
  qk_field_t *in, *out;
  double *v = rig_vector(rig);
  rig_must(qk_field_create(&rig->dev, prec, n, QK_FULL, &in), "field", NULL);
  rig_must(qk_field_create(&rig->dev, prec, n, QK_FULL, &out), "field", NULL);
  rig_random(rig, 7, v);
  rig_import(rig, in, n - 1, v);
  /* an odd number of exchanges, so that the next call takes the other half of the ghosts */
  for (int i = 0; i < 3; i++)
    rig_must(rig->op->ops->apply(rig->op, out, in, dagger, NULL, 0), "apply", NULL);
  rig_export(rig, out, n - 1, v);
  qk_field_destroy(out);
  qk_field_destroy(in);
  return v;
}

static const double rounding[] = {[QK_DOUBLE] = 1e-14, [QK_SINGLE] = 1e-6, [QK_HALF] = 2e-3};

static void expect_same(const char *axes, qk_prec_t prec, int n, bool dagger) {
  qk_rig_t rig;
  double *by[3];
  static const char *const transport[] = {"peer", "staged", "auto"};
  for (int i = 0; i < 3; i++) {
    open_loop(&rig, i < 2 ? axes : "", transport[i]);
    cr_assert_eq(rig.dev.peers != NULL, i == 0);
    by[i] = image(&rig, prec, n, dagger);
    if (i == 2) {
      const double distance = rig_distance(&rig, by[0], by[2]);
      cr_expect_eq(memcmp(by[0], by[1], rig_reals(&rig) * sizeof *by[0]), 0, "%s, precision %d, %d",
                   axes, prec, n);
      cr_expect_leq(distance, rounding[prec], "%s, precision %d, %d: %g", axes, prec, n, distance);
    }
    rig_close(&rig);
  }
  for (int i = 0; i < 3; i++) qk_free(by[i]);
}

Test(halo, of_the_operator_has_the_same_bits_by_memory_and_by_messages) {
  static const char *const axes[] = {"t", "z", "xyzt"};
  static const int columns[] = {1, 3, 16};
  if (!rig_backend_present()) cr_skip_test("no device");
  for (int a = 0; a < 3; a++)
    for (int c = 0; c < 3; c++) {
      expect_same(axes[a], QK_DOUBLE, columns[c], false);
      expect_same(axes[a], QK_SINGLE, columns[c], c == 1);
      expect_same(axes[a], QK_HALF, columns[c], c == 2);
    }
}

/* ---- the whole cycle ------------------------------------------------------------------------- */

/* The last of n solutions by multigrid, of the cut lattice. */
static double *solved(const char *axes, const char *transport, int n, int64_t *iterations) {
  qk_rig_t rig;
  mg_rig_t m;
  const qk_mg_params_t params = mg_rig_small_params(3);
  open_loop(&rig, axes, transport);
  double *v = rig_vector(&rig);
  mg_rig_open(&rig, &params, QK_SINGLE, n, &m);
  for (int i = 0; i < n; i++) {
    rig_random(&rig, 100 + (uint64_t)i, v);
    rig_import(&rig, qk_solver_rhs(m.solver, i), 0, v);
    rig_must(qk_solver_fill(m.solver, i, 1e-10, 1000), "fill", NULL);
  }
  rig_run(m.solver);
  const qk_slot_t *slot = qk_solver_slot(m.solver, n - 1);
  cr_assert(slot->status == QK_OK && slot->residual <= 1e-10);
  *iterations = slot->iterations;
  rig_export(&rig, qk_solver_solution(m.solver, n - 1), 0, v);
  mg_rig_close(&m);
  rig_close(&rig);
  return v;
}

Test(halo, a_cycle_has_the_same_bits_by_memory_and_by_messages) {
  qk_geom_t geom;
  const int dims[4] = {4, 4, 8, 8}, grid[4] = {1, 1, 1, 1}, coord[4] = {0};
  if (!rig_backend_present()) cr_skip_test("no device");
  cr_assert_eq(qk_geom_part(dims, grid, coord, &geom, NULL), QK_OK);
  for (int n = 1; n <= 3; n += 2) {
    int64_t iterations[3];
    double *peer = solved("zt", "peer", n, &iterations[0]);
    double *staged = solved("zt", "staged", n, &iterations[1]);
    double *whole = solved("", "auto", n, &iterations[2]);
    cr_expect_eq(iterations[0], iterations[1]);
    cr_expect(llabs(iterations[0] - iterations[2]) <= 1, "%ld iterations, not cut %ld",
              (long)iterations[0], (long)iterations[2]);
    const size_t bytes = (size_t)geom.local_volume * 24 * sizeof *peer;
    cr_expect_eq(memcmp(peer, staged, bytes), 0, "%d right-hand sides", n);
    qk_free(peer);
    qk_free(staged);
    qk_free(whole);
  }
}

/* On a GPU the cycle is one graph. */
Test(halo, a_cycle_that_is_repeated_a_thousand_times_keeps_its_bits) {
  qk_rig_t rig;
  mg_rig_t m;
  int64_t applied = 0;
  const qk_mg_params_t params = mg_rig_small_params(3);
  if (!rig_backend_present()) cr_skip_test("no device");
  open_loop(&rig, "zt", "peer");
  double *v = rig_vector(&rig), *first = rig_vector(&rig);
  mg_rig_open(&rig, &params, QK_SINGLE, 1, &m);
  for (int i = 0; applied < 1000; i++) {
    if (i > 0) qk_solver_clear(m.solver, 0);
    rig_random(&rig, 100, v);
    rig_import(&rig, qk_solver_rhs(m.solver, 0), 0, v);
    rig_must(qk_solver_fill(m.solver, 0, 1e-10, 1000), "fill", NULL);
    rig_run(m.solver);
    cr_assert_eq(qk_solver_slot(m.solver, 0)->status, QK_OK);
    applied += qk_solver_slot(m.solver, 0)->iterations;
    rig_export(&rig, qk_solver_solution(m.solver, 0), 0, i == 0 ? first : v);
    cr_assert(i == 0 || memcmp(v, first, rig_reals(&rig) * sizeof *v) == 0, "solve %d", i);
  }
  qk_free(v);
  qk_free(first);
  mg_rig_close(&m);
  rig_close(&rig);
}

/* ---- the numbers of exchanges ---------------------------------------------------------------- */

static void put(const qk_device_t *dev, uint32_t *word, uint32_t value) {
  rig_must(dev->ops->copy(dev->ctx, word, &value, sizeof value, QK_COPY_TO_DEVICE, 0), "put", NULL);
  rig_must(dev->ops->queue_sync(dev->ctx, 0), "put", NULL);
}

static uint32_t get(const qk_device_t *dev, const uint32_t *word) {
  uint32_t value;
  rig_must(dev->ops->copy(dev->ctx, &value, word, sizeof value, QK_COPY_TO_HOST, 0), "get", NULL);
  rig_must(dev->ops->queue_sync(dev->ctx, 0), "get", NULL);
  return value;
}

Test(halo, numbers_of_exchanges_wrap_around) {
  qk_rig_t rig;
  qk_peer_memory_t *memory;
  if (!rig_backend_present()) cr_skip_test("no device");
  open_loop(&rig, "t", "peer");
  const qk_device_t *dev = &rig.dev;
  rig_must(qk_peers_take(dev, 3 * QK_PEER_LINE, &memory), "memory", NULL);
  char *own = memory->own;
  uint32_t *epoch = (uint32_t *)own,
           *flag[2] = {(uint32_t *)(own + QK_PEER_LINE), (uint32_t *)(own + 2 * QK_PEER_LINE)};
  const qk_signal_args_t args = {
      .epoch = epoch, .flag = {flag[0], flag[1]}, .n = 2, .seconds = 0.2};
  put(dev, epoch, UINT32_MAX - 2);
  put(dev, flag[0], UINT32_MAX - 2);
  put(dev, flag[1], UINT32_MAX - 2);
  for (uint32_t i = 0; i < 6; i++) {
    rig_must(dev->ops->signal(dev->ctx, &args), "signal", NULL);
    rig_must(dev->ops->await(dev->ctx, &args), "await", NULL);
    cr_expect_eq(get(dev, epoch), UINT32_MAX - 1 + i);
    cr_expect_eq(get(dev, flag[1]), UINT32_MAX - 1 + i);
  }
  qk_peers_give_back(memory);
  rig_close(&rig);
}

/* Last: the context is of no use then. */
Test(halo, a_neighbour_that_does_not_send_is_told_within_the_limit) {
  qk_rig_t rig;
  qk_peer_memory_t *memory;
  if (!rig_backend_present()) cr_skip_test("no device");
  open_loop(&rig, "t", "peer");
  const qk_device_t *dev = &rig.dev;
  rig_must(qk_peers_take(dev, 2 * QK_PEER_LINE, &memory), "memory", NULL);
  char *own = memory->own;
  const qk_signal_args_t args = {
      .epoch = (uint32_t *)own, .flag = {(uint32_t *)(own + QK_PEER_LINE)}, .n = 1, .seconds = 0.1};
  qk_status_t status = dev->ops->await(dev->ctx, &args);
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  cr_expect_eq(status, QK_COMM_ERROR);
  cr_expect(strstr(dev->ops->last_error(dev->ctx), "another rank did not send"), "%s",
            dev->ops->last_error(dev->ctx));
  qk_peers_give_back(memory);
  rig_close(&rig);
}

Test(halo, a_transport_that_does_not_exist_is_refused) {
  qk_rig_t rig;
  qk_err_t err = {0};
  open_loop(&rig, "", "auto");
  cr_assert(setenv("QK_TRANSPORT", "pigeon", 1) == 0);
  cr_expect_eq(qk_peers_create(&rig.dev, &err), QK_BAD_ARGUMENT);
  cr_expect_str_eq(err.text, "QK_TRANSPORT = \"pigeon\": auto, peer or staged");
  rig_close(&rig);
}
