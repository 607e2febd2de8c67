/* Multi-shift CG against elimination, by residuals that are computed here, and what it saves. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/krylov/multishift/multishift.h"
#include "daemon/engine/lattice/scalars.h"
#include "tests/support/dense.h"
#include "tests/unit/engine/krylov/solver_kit.h"

enum { SHIFTS = 5, N = 3 };
static const double shift[SHIFTS] = {0.3, 0, 0.01, 2, 1e-4};

/* Source, solutions, and a field for checks, on the sites of the system. */
typedef struct problem {
  qk_rig_t rig;
  qk_multishift_t *solver;
  qk_field_t *b, *x[SHIFTS], *t;
  qk_shifted_t result[SHIFTS * N];
  qk_multishift_cost_t cost;
} problem_t;

static qk_field_t *field(const qk_rig_t *rig, int nrhs) {
  qk_field_t *f;
  rig_must(qk_field_create(rig->op->dev, QK_DOUBLE, nrhs, rig->op->system, &f), "field", NULL);
  return f;
}

/* Random numbers, others in each column and vector. */
static void make_sources(problem_t *p) {
  const qk_device_t *dev = p->rig.op->dev;
  qk_field_t *full;
  rig_must(qk_field_create(dev, QK_DOUBLE, N, QK_FULL, &full), "field", NULL);
  for (int k = 0; k < qk_field_vectors(full); k++) {
    const qk_field_t from = qk_field_vector(full, k), to = qk_field_vector(p->b, k);
    const qk_noise_args_t noise = {
        .lat = dev->geom->lat, .field = from.v, .rhs = -1, .seed = 5 + (uint64_t)k};
    rig_must(dev->ops->noise(dev->ctx, &noise), "noise", NULL);
    qk_dev_blas(dev, QK_BLAS_COPY,
                (qk_blas_args_t){.f = {to.v, qk_field_parity(&from, p->rig.op->system)}});
  }
  rig_must(qk_dev_status(dev), "sources", NULL);
  qk_field_destroy(full);
}

static void open_problem(problem_t *p, const char *gauge, const char *action, qk_prec_t inner,
                         int nshift) {
  *p = (problem_t){.solver = NULL};
  rig_open(&p->rig, NULL, gauge, NULL);
  rig_action(&p->rig, action, -1);
  qk_multishift_params_t params = {
      .system = qk_normal_system(p->rig.op), .inner = inner, .nrhs = N, .nshift = nshift};
  memcpy(params.shift, shift, sizeof shift);
  qk_err_t err = {0};
  rig_must(qk_multishift_create(&params, &p->solver, &err), "multi-shift", &err);
  p->b = field(&p->rig, N);
  p->t = field(&p->rig, N);
  for (int k = 0; k < nshift; k++) p->x[k] = field(&p->rig, N);
  make_sources(p);
}

static void close_problem(problem_t *p) {
  qk_multishift_destroy(p->solver);
  for (int k = 0; k < SHIFTS; k++) qk_field_destroy(p->x[k]);
  qk_field_destroy(p->t);
  qk_field_destroy(p->b);
  rig_close(&p->rig);
}

static void solve(problem_t *p, double tol, int64_t max_iter) {
  rig_must(qk_multishift_solve(p->solver, p->b, p->x, tol, max_iter, p->result, &p->cost), "solve",
           NULL);
}

/* |b - A x - shift x| / |b| of each column, by the operator alone. */
static void measure(problem_t *p, int k, double residual[N]) {
  const qk_device_t *dev = p->rig.op->dev;
  qk_operator_t *op = p->rig.op;
  qk_scalars_t s;
  qk_field_t *u = field(&p->rig, N);
  rig_must(qk_scalars_init(&s, dev, 3, N), "scalars", NULL);
  rig_must(op->ops->apply_system(op, u, p->x[k], false, NULL), "Mhat", NULL);
  rig_must(op->ops->apply_system(op, p->t, u, true, NULL), "Mhat^+", NULL);
  qk_scalars_fill(&s, 2, shift[k]);
  qk_dev_blas(dev, QK_BLAS_AXPY,
              (qk_blas_args_t){.f = {p->t->v, p->x[k]->v}, .c = {qk_scalars_at(&s, 2)}});
  qk_dev_blas(dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {u->v, p->b->v, p->t->v}});
  qk_scalars_reduce(&s, 0, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {u->v}});
  qk_scalars_reduce(&s, 1, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {p->b->v}});
  qk_scalars_fetch(&s, 0, 2);
  rig_must(qk_dev_status(dev), "residual", NULL);
  for (int j = 0; j < N; j++)
    residual[j] = sqrt(qk_scalars_host(&s, 0, j)[0] / qk_scalars_host(&s, 1, j)[0]);
  qk_scalars_fini(&s);
  qk_field_destroy(u);
}

static void expect_solved_to(problem_t *p, double tol, const char *what) {
  for (int k = 0; k < SHIFTS; k++) {
    double residual[N];
    measure(p, k, residual);
    for (int j = 0; j < N; j++) {
      const qk_shifted_t *r = &p->result[k * N + j];
      cr_expect(r->status == QK_OK && residual[j] <= 1.01 * tol &&
                    fabs(r->residual - residual[j]) < 1e-2 * residual[j] + 1e-15,
                "%s, shift %g, column %d: %s, residual %g, said to be %g", what, shift[k], j,
                qk_status_name(r->status), residual[j], r->residual);
    }
  }
}

static const char *const action[] = {
    "wilson-clover;mass=0.1;csw=1.2", "twisted-clover;mass=0.05;mu=0.1;csw=1.2",
    "doublet;mass=0.1;mu=0.4;epsilon=0.3;csw=1.2", "moebius;mass=0.1;M5=1.4;Ls=4;b=1.5;c=0.5"};

Test(multishift, solves_every_shift_of_every_action) {
  for (size_t a = 0; a < sizeof action / sizeof *action; a++)
    for (int inner = QK_DOUBLE; inner <= QK_SINGLE; inner++) {
      problem_t p;
      open_problem(&p, smooth_gauge, action[a], (qk_prec_t)inner, SHIFTS);
      solve(&p, 1e-11, 2000);
      expect_solved_to(&p, 1e-11, action[a]);
      close_problem(&p);
    }
}

/* What shifts cost together, or (alone >= 0) one of them. */
static qk_multishift_cost_t cost_of(qk_prec_t inner, int alone) {
  problem_t p;
  open_problem(&p, smooth_gauge, action[0], inner, SHIFTS);
  if (alone >= 0) {
    qk_multishift_destroy(p.solver);
    const qk_multishift_params_t params = {.system = qk_normal_system(p.rig.op),
                                           .inner = inner,
                                           .nrhs = N,
                                           .nshift = 1,
                                           .shift = {shift[alone]}};
    rig_must(qk_multishift_create(&params, &p.solver, NULL), "one shift", NULL);
  }
  solve(&p, 1e-11, 2000);
  const qk_multishift_cost_t cost = p.cost;
  close_problem(&p);
  return cost;
}

/* In double all shifts cost the iterations of the smallest one; in single as many until each is
 * refined. */
Test(multishift, one_space_serves_all) {
  for (int inner = QK_DOUBLE; inner <= QK_SINGLE; inner++) {
    const qk_multishift_cost_t all = cost_of((qk_prec_t)inner, -1);
    int64_t apart = 0;
    for (int k = 0; k < SHIFTS; k++) {
      const qk_multishift_cost_t one = cost_of((qk_prec_t)inner, k);
      apart += one.shared + one.refined;
      if (shift[k] == 0) cr_expect_eq(all.shared, one.shared);
    }
    if (inner == QK_DOUBLE) cr_expect_eq(all.refined, 0);
    cr_expect_lt(4 * (all.shared + all.refined), 3 * apart, "%ld and %ld, one by one %ld",
                 (long)all.shared, (long)all.refined, (long)apart);
  }
}

/* Mhat^+ Mhat + shift on 2^4 sites of the matrix M as it is defined: T = 4 + mass, so that
 * Mhat = 1 - M_eo M_oe / T^2. Sites in wire order; even ones in their order are the system's. */
static double complex *dense_system(const double complex *m, double t, double sigma) {
  enum { SITES = 16, ROWS = 12 * SITES / 2 };
  int even[ROWS], odd[ROWS], n[2] = {0, 0};
  for (int i = 0; i < SITES; i++) {
    const int parity = (i + i / 2 + i / 4 + i / 8) % 2;
    for (int c = 0; c < 12; c++) (parity ? odd : even)[n[parity]++] = 12 * i + c;
  }
  double complex *hat = calloc((size_t)ROWS * ROWS, sizeof *hat),
                 *a = calloc((size_t)ROWS * ROWS, sizeof *a);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < ROWS; j++) {
      double complex sum = 0;
      for (int l = 0; l < ROWS; l++)
        sum += m[even[i] * 2 * ROWS + odd[l]] * m[odd[l] * 2 * ROWS + even[j]];
      hat[i * ROWS + j] = (i == j) - sum / (t * t);
    }
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < ROWS; j++) {
      double complex sum = i == j ? sigma : 0;
      for (int l = 0; l < ROWS; l++) sum += conj(hat[l * ROWS + i]) * hat[l * ROWS + j];
      a[i * ROWS + j] = sum;
    }
  free(hat);
  return a;
}

/* Column j of a field of even sites as numbers of these, through a full field. */
static void export_even(problem_t *p, const qk_field_t *f, int j, double complex out[96]) {
  qk_field_t *full;
  double *v = rig_vector(&p->rig);
  rig_must(qk_field_create(&p->rig.dev, QK_DOUBLE, 1, QK_FULL, &full), "field", NULL);
  const qk_rhs_copy_args_t copy = {
      .to = qk_field_parity(full, QK_EVEN), .from = f->v, .from_rhs = j};
  rig_must(p->rig.dev.ops->rhs_copy(p->rig.dev.ctx, &copy), "copy", NULL);
  rig_export(&p->rig, full, 0, v);
  for (int i = 0, n = 0; i < 16; i++)
    for (int c = 0; c < 12 && (i + i / 2 + i / 4 + i / 8) % 2 == 0; c++, n++)
      out[n] = v[24 * i + 2 * c] + I * v[24 * i + 2 * c + 1];
  qk_field_destroy(full);
  qk_free(v);
}

Test(multishift, agrees_with_elimination_on_2x2x2x2) {
  const int dims[4] = {2, 2, 2, 2};
  for (int inner = QK_DOUBLE; inner <= QK_SINGLE; inner++) {
    problem_t p;
    open_problem(&p, "random:2x2x2x2:5", "wilson;mass=0.4", (qk_prec_t)inner, SHIFTS);
    solve(&p, 1e-12, 2000);
    double complex *m = dense_wilson(dims, p.rig.links, 0.4, -1);
    for (int k = 0; k < SHIFTS; k++)
      for (int j = 0; j < N; j++) {
        double complex *a = dense_system(m, 4.4, shift[k]), exact[96], x[96];
        double d = 0, n = 0;
        export_even(&p, p.b, j, exact);
        dense_solve(96, a, exact);
        export_even(&p, p.x[k], j, x);
        for (int i = 0; i < 96; i++) {
          d += creal((x[i] - exact[i]) * conj(x[i] - exact[i]));
          n += creal(exact[i] * conj(exact[i]));
        }
        cr_expect(sqrt(d / n) < 1e-10, "precision %d, shift %g, column %d: off by %g", inner,
                  shift[k], j, sqrt(d / n));
        free(a);
      }
    free(m);
    close_problem(&p);
  }
}

/* ---- what columns do to each other ----------------------------------------------------------- */

static void scale_column(problem_t *p, int j, double factor) {
  qk_scalars_t s;
  rig_must(qk_scalars_init(&s, &p->rig.dev, 1, N), "scalars", NULL);
  for (int i = 0; i < N; i++) qk_scalars_set(&s, 0, i, i == j ? factor : 1, 0);
  qk_scalars_store(&s, 0, 1);
  qk_dev_blas(&p->rig.dev, QK_BLAS_SCALE,
              (qk_blas_args_t){.f = {p->b->v}, .c = {qk_scalars_at(&s, 0)}});
  rig_must(qk_dev_status(&p->rig.dev), "scale", NULL);
  qk_scalars_fini(&s);
}

Test(multishift, zero_nan_and_tiny_sources_leave_the_others_bit_identical) {
  const double factor[] = {1, 0, NAN, 1e-60, 1e60};
  for (int inner = QK_DOUBLE; inner <= QK_SINGLE; inner++) {
    double complex first[96];
    for (int i = 0; i < 5; i++) {
      problem_t p;
      double complex x[96];
      open_problem(&p, "random:2x2x2x2:5", "wilson;mass=0.4", (qk_prec_t)inner, SHIFTS);
      scale_column(&p, 1, factor[i]);
      solve(&p, 1e-11, 2000);
      export_even(&p, p.x[2], 0, i == 0 ? first : x);
      cr_expect(i == 0 || !memcmp(x, first, sizeof x), "%g beside it: other bits", factor[i]);
      const qk_shifted_t *r = &p.result[2 * N + 1];
      cr_expect_eq(r->status, isnan(factor[i]) ? QK_NAN_INPUT : QK_OK);
      cr_expect(factor[i] != 0 || r->residual == 0);
      close_problem(&p);
    }
  }
}

/* Column 1 becomes a vector of the lowest modes, by inverse iteration: it is done with double
 * before the others, and waits for them. */
Test(multishift, columns_that_change_precision_at_different_times_need_no_correction) {
  enum { TIMES = 8 };
  problem_t p;
  open_problem(&p, smooth_gauge, action[0], QK_SINGLE, SHIFTS);
  for (int i = 0; i < TIMES; i++) {
    const qk_rhs_copy_args_t copy = {.to = p.b->v, .from = p.x[1]->v, .to_rhs = 1, .from_rhs = 1};
    solve(&p, 1e-11, 2000);
    rig_must(p.rig.dev.ops->rhs_copy(p.rig.dev.ctx, &copy), "copy", NULL);
  }
  solve(&p, 1e-11, 2000);
  expect_solved_to(&p, 1e-11, action[0]);
  const qk_shifted_t *r = &p.result[1 * N];
  cr_expect_gt(r[0].iterations, r[1].iterations + 4, "%ld and %ld", (long)r[0].iterations,
               (long)r[1].iterations);
  cr_expect_eq(p.cost.refined, 0, "%ld", (long)p.cost.refined);
  close_problem(&p);
}

Test(multishift, begins_in_single_where_there_is_no_room_for_double) {
  problem_t p;
  open_problem(&p, smooth_gauge, action[0], QK_SINGLE, SHIFTS);
  solve(&p, 1e-11, 2000);
  const qk_multishift_cost_t wide = p.cost;
  cr_assert_eq(qk_fault_set("device-alloc:1"), 0);
  solve(&p, 1e-11, 2000);
  cr_assert_eq(qk_fault_set(NULL), 0);
  expect_solved_to(&p, 1e-11, action[0]);
  cr_expect(wide.refined == 0 && p.cost.refined > 0 && p.cost.shared < wide.shared,
            "shared %ld and %ld, of the block %ld and %ld", (long)wide.shared, (long)p.cost.shared,
            (long)wide.refined, (long)p.cost.refined);
  close_problem(&p);
}

Test(multishift, limit_and_impossible_tolerance_end_as_not_converged) {
  problem_t p;
  open_problem(&p, smooth_gauge, action[0], QK_SINGLE, SHIFTS);
  solve(&p, 1e-11, 3);
  for (int i = 0; i < SHIFTS * N; i++) cr_expect_neq(p.result[i].status, QK_NAN_INPUT);
  cr_expect_eq(p.result[1 * N].status, QK_NOT_CONVERGED);
  cr_expect(p.cost.shared == 3 && p.cost.refined <= 3 * SHIFTS);
  solve(&p, 1e-25, 100000);
  for (int i = 0; i < SHIFTS * N; i++)
    cr_expect(p.result[i].status == QK_NOT_CONVERGED && p.result[i].residual < 1e-14, "%g",
              p.result[i].residual);
  cr_expect_lt(p.cost.refined, 5000);
  close_problem(&p);
}

Test(multishift, refuses_what_is_out_of_range) {
  const struct {
    int prec, nrhs, nshift;
    double shift;
    const char *says;
  } bad[] = {{QK_HALF, 1, 1, 0, "precision 2"},       {QK_SINGLE, 0, 1, 0, "sides = 0"},
             {QK_SINGLE, 65, 1, 0, "sides = 65"},     {QK_SINGLE, 1, 0, 0, "shifts = 0"},
             {QK_SINGLE, 1, 33, 0, "shifts = 33"},    {QK_SINGLE, 1, 1, -1e-9, "shift 0 = -1e-09"},
             {QK_SINGLE, 1, 1, NAN, "shift 0 = nan"}, {QK_SINGLE, 1, 1, INFINITY, "= inf"}};
  problem_t p;
  open_problem(&p, smooth_gauge, action[0], QK_SINGLE, SHIFTS);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_err_t err = {0};
    qk_multishift_t *solver = NULL;
    const qk_multishift_params_t params = {.system = qk_normal_system(p.rig.op),
                                           .inner = (qk_prec_t)bad[i].prec,
                                           .nrhs = bad[i].nrhs,
                                           .nshift = bad[i].nshift,
                                           .shift = {bad[i].shift}};
    cr_expect_eq(qk_multishift_create(&params, &solver, &err), QK_BAD_ARGUMENT);
    cr_expect(solver == NULL && strstr(err.text, bad[i].says), "\"%s\" does not say %s", err.text,
              bad[i].says);
  }
  qk_field_t *one = field(&p.rig, 1), *x0 = p.x[0];
  cr_expect_eq(qk_multishift_solve(p.solver, one, p.x, 1e-8, 10, p.result, NULL), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_multishift_solve(p.solver, p.b, p.x, 0, 10, p.result, NULL), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_multishift_solve(p.solver, p.b, p.x, 1e-8, 0, p.result, NULL), QK_BAD_ARGUMENT);
  p.x[0] = p.b;
  cr_expect_eq(qk_multishift_solve(p.solver, p.b, p.x, 1e-8, 9, p.result, NULL), QK_BAD_ARGUMENT);
  p.x[0] = x0;
  qk_field_destroy(one);
  close_problem(&p);
}
