#include "tests/unit/engine/setup/setup_kit.h"
#include "tests/support/values.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

qk_load_t a_load(const char *gauge, const char *solver, qk_prec_t inner, int nslot) {
  qk_load_t load = {.values = values_wilson(0.05, 1),
                    .inner = inner,
                    .nslot = nslot,
                    .single_rhs = true,
                    .staging = 4};
  snprintf(load.gauge, sizeof load.gauge, "%s", gauge);
  const char *backend = getenv("QK_BACKEND");
  load.solver = (qk_solver_choice_t)qk_choice_find(&qk_choice_solvers, solver);
  load.backend = (qk_backend_t)qk_choice_find(&qk_choice_backends, backend ? backend : "cpu");
  for (int mu = 0; mu < 4; mu++) load.phase[mu][0] = mu < 3 ? 1 : -1;
  load.mg.level[0].nvec = 8;
  load.mg.level[0].setup_iterations = 20;
  return load;
}

qk_status_t open_load(const qk_load_t *load, loaded_t *l, qk_err_t *err) {
  *l = (loaded_t){0};
  cr_assert_eq(qk_comm_self_create(&l->comm, err), QK_OK);
  return qk_loaded_create(l->comm, load, NULL, NULL, NULL, &l->setup, err);
}

loaded_t must_load(const qk_load_t *load) {
  qk_err_t err = {0};
  loaded_t l;
  cr_assert_eq(open_load(load, &l, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_field_io_create(qk_loaded_fields(l.setup), l.setup->pinned, &l.port, &err), QK_OK,
               "%s", err.text);
  cr_assert_eq(qk_inflight_create(l.setup, l.port, &l.inflight, &err), QK_OK, "%s", err.text);
  return l;
}

void close_load(loaded_t *l) {
  qk_inflight_destroy(l->inflight);
  qk_field_io_destroy(l->port);
  qk_loaded_destroy(l->setup);
  qk_comm_destroy(l->comm);
}

qk_fill_t noise_for(int entry, uint64_t seed) {
  qk_fill_t fill = {.serial = seed, .entry = entry, .source = QK_SOURCE_Z4, .seed = seed};
  fill.spin = fill.colour = fill.site[3] = -1;
  fill.factor = 1;
  fill.stopping.tol = 1e-9;
  fill.max_iter = 1000;
  fill.flavour = 1;
  fill.hint.order = QK_ORDER_OTHERS;
  return fill;
}

void fill_entries(loaded_t *l, int n, const qk_fill_t *fill) {
  qk_err_t err = {0};
  cr_assert_eq(qk_inflight_fill(l->inflight, n, fill, &err), QK_OK, "%s", err.text);
}

void run_entries(loaded_t *l, qk_result_t by_entry[]) {
  qk_result_t result[QK_INFLIGHT_MAX];
  qk_err_t err = {0};
  int ended;
  while (qk_inflight_running(l->inflight) > 0) {
    cr_assert_eq(qk_inflight_step(l->inflight, &err), QK_OK, "%s", err.text);
    cr_assert_eq(qk_inflight_retire(l->inflight, result, &ended, &err), QK_OK, "%s", err.text);
    for (int i = 0; i < ended; i++) by_entry[result[i].entry] = result[i];
  }
}

int64_t solve_all(loaded_t *l) {
  qk_fill_t fill[QK_INFLIGHT_MAX] = {0};
  qk_result_t result[QK_INFLIGHT_MAX] = {0};
  const int n = l->setup->nslot;
  int64_t most = 0;
  for (int i = 0; i < n; i++) fill[i] = noise_for(i, (uint64_t)i + 5);
  fill_entries(l, n, fill);
  run_entries(l, result);
  for (int i = 0; i < n; i++) {
    cr_assert(result[i].serial == fill[i].serial && result[i].err.code == QK_OK, "%s",
              result[i].err.text);
    cr_assert(result[i].stopping.tol == 1e-9 && result[i].true_residual <= 1e-9);
    if (result[i].iterations > most) most = result[i].iterations;
  }
  return most;
}
