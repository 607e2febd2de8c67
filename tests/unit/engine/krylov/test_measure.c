/* Slots whose residual is that of the system on one parity, against part.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/operator/part.h"
#include "tests/unit/engine/krylov/solver_kit.h"

static const double tol = 1e-10;

/* v on one parity, 0 on the other. */
static void keep(const qk_rig_t *rig, double *v, qk_subset_t parity) {
  const int32_t *l = rig->geom.lat.l;
  for (int64_t i = 0; i < rig->geom.local_volume; i++) {
    int64_t rest = i, sum = 0;
    for (int mu = 0; mu < 4; mu++) {
      sum += rest % l[mu];
      rest /= l[mu];
    }
    if ((sum & 1) != (parity == QK_ODD)) memset(v + 24 * i, 0, 24 * sizeof *v);
  }
}

/* out = part in, on the parity. */
static void apply(const qk_rig_t *rig, const qk_part_t *part, const double *in, double *out) {
  qk_field_t *f[3];
  for (int k = 0; k < 3; k++)
    rig_must(qk_work_reserve(rig->work, QK_DOUBLE, 1, QK_FULL, &f[k]), "field", NULL);
  rig_import(rig, f[0], 0, in);
  rig_must(qk_part_apply(rig->op, part, f[1], f[0], f[2]), "part", NULL);
  rig_export(rig, f[1], 0, out);
  for (int k = 2; k >= 0; k--) qk_work_release(rig->work, f[k]);
  keep(rig, out, part->parity);
}

/* A source that the system is solved for, in a slot: b, or T b. */
static void fill(const qk_rig_t *rig, qk_solver_t *solver, int slot, const qk_measure_t *measure) {
  qk_measure_t m = *measure;
  double *b = rig_vector(rig), *product = rig_vector(rig);
  rig_random(rig, 200 + (uint64_t)slot, b);
  if (m.kind != QK_MEASURE_FULL) keep(rig, b, m.parity);
  if (m.kind == QK_MEASURE_UNIT) {
    apply(rig, &(qk_part_t){.kind = QK_PART_DIAG, .parity = m.parity}, b, product);
    m.unit = sqrt(rig_norm2(rig, product) / rig_norm2(rig, b));
    memcpy(b, product, rig_reals(rig) * sizeof *b);
  }
  rig_import(rig, qk_solver_rhs(solver, slot), 0, b);
  cr_assert_eq(qk_solver_set_measure(solver, slot, &m), QK_OK);
  fill_slot(solver, slot, tol, 1000);
  qk_free(product);
  qk_free(b);
}

static void expect_measured(const qk_rig_t *rig, qk_solver_t *solver, int slot,
                            const qk_measure_t *m) {
  const qk_slot_t *s = qk_solver_slot(solver, slot);
  double *b = rig_vector(rig), *x = get_solution(rig, solver, slot), *mx = rig_vector(rig);
  rig_random(rig, 200 + (uint64_t)slot, b);
  keep(rig, b, m->parity);
  keep(rig, x, m->parity);
  apply(rig,
        &(qk_part_t){
            .kind = QK_PART_SCHUR, .asymmetric = m->kind == QK_MEASURE_SCHUR, .parity = m->parity},
        x, mx);
  const double off = rig_distance(rig, mx, b);
  cr_expect(s->status == QK_OK && off <= 1.001 * tol && fabs(off - s->residual) < 1e-3 * tol,
            "slot %d: %s, residual %g, said to be %g", slot, qk_status_name(s->status), off,
            s->residual);
  qk_free(mx);
  qk_free(x);
  qk_free(b);
}

static const qk_measure_t measures[] = {{.kind = QK_MEASURE_FULL},
                                        {QK_MEASURE_SCHUR, QK_EVEN, 1},
                                        {QK_MEASURE_SCHUR, QK_ODD, 1},
                                        {QK_MEASURE_UNIT, QK_EVEN, 1},
                                        {QK_MEASURE_UNIT, QK_ODD, 1}};
enum { MEASURES = sizeof measures / sizeof measures[0] };

static void check_method(qk_rig_t *rig, const char *method, qk_prec_t prec, int nslot) {
  qk_solver_t *solver = rig_solver(rig, method, prec, nslot);
  for (int first = 0; first < MEASURES; first += nslot) {
    const int n = MEASURES - first < nslot ? MEASURES - first : nslot;
    for (int i = 0; i < n; i++) fill(rig, solver, i, &measures[first + i]);
    rig_run(solver);
    for (int i = 0; i < n; i++) {
      if (measures[first + i].kind != QK_MEASURE_FULL)
        expect_measured(rig, solver, i, &measures[first + i]);
      else
        expect_solved(rig, solver, i, 200 + (uint64_t)i, 1, method);
      qk_solver_clear(solver, i);
    }
  }
  qk_solver_destroy(solver);
}

Test(measure, a_slot_ends_by_the_residual_of_its_system) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < 3; p++) {
      check_method(&rig, solver_methods[k], (qk_prec_t)p, MEASURES);
      check_method(&rig, solver_methods[k], (qk_prec_t)p, 1);
    }
  rig_close(&rig);
}

Test(measure, leaves_the_others_bit_identical) {
  qk_rig_t rig;
  open_smooth(&rig);
  double *x[2];
  for (int turn = 0; turn < 2; turn++) {
    qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_SINGLE, 2);
    fill(&rig, solver, 1, &measures[turn == 0 ? 0 : 4]);
    put_and_fill(&rig, solver, 0, 7, 1e-11, 1000);
    rig_run(solver);
    x[turn] = get_solution(&rig, solver, 0);
    qk_solver_destroy(solver);
  }
  cr_expect_eq(memcmp(x[0], x[1], rig_reals(&rig) * sizeof(double)), 0);
  qk_free(x[0]);
  qk_free(x[1]);
  rig_close(&rig);
}

Test(measure, that_does_not_exist_is_refused) {
  static const qk_measure_t wrong[] = {{QK_MEASURE_SCHUR, QK_FULL, 1},
                                       {QK_MEASURE_UNIT, QK_ODD, 0},
                                       {QK_MEASURE_UNIT, QK_ODD, (double)NAN},
                                       {QK_MEASURE_UNIT + 1, QK_ODD, 1}};
  qk_rig_t rig;
  open_smooth(&rig);
  qk_solver_t *solver = rig_solver(&rig, "gcr", QK_DOUBLE, 1);
  for (int i = 0; i < 4; i++)
    cr_expect_eq(qk_solver_set_measure(solver, 0, &wrong[i]), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_solver_set_measure(solver, 1, &measures[0]), QK_BAD_ARGUMENT);
  put_and_fill(&rig, solver, 0, 7, 1e-11, 1000);
  cr_expect_eq(qk_solver_set_measure(solver, 0, &measures[0]), QK_BAD_ARGUMENT, "it runs");
  rig_run(solver);
  expect_solved(&rig, solver, 0, 7, 1, "as before");
  qk_solver_destroy(solver);
  rig_close(&rig);
}
