/*
 * bench_solve: what a right-hand side costs by method, inner precision and batch size.
 *
 * Prints operator applications per RHS (all precisions counted alike), their ratio to the first
 * precision of the same method, iterations, seconds per RHS, the time of an iteration of the whole
 * batch, the speed that the inner iteration reached, and how often the operator that this one is
 * made of (of overlap Wilson's) was applied to the batch. Under mpirun on all ranks.
 */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "proto/action/operator_text.h"
#include "tests/support/mg_rig.h"
#include "tests/support/staggered/colours.h"

typedef struct options {
  const char *gauge, *methods, *action, *precisions;
  double kappa, csw, tol;
  int batch[8], nbatch;
} options_t;

static const char *const precision[] = {"double", "single", "half"};

enum { ACTION = 256, PRECISION };

static const struct argp_option table[] = {
    {"gauge", 'g', "FILE", 0, "gauge file or builtin:... (default builtin:weak:8x8x8x16:1)", 0},
    {"kappa", 'k', "K", 0, "hopping parameter (0.123)", 0},
    {"csw", 'c', "CSW", 0, "clover coefficient (1)", 0},
    {"action", ACTION, "TEXT", 0,
     "operator in place of kappa and csw: moebius;mass=0.01;M5=1.8;Ls=12;b=1.5;c=0.5", 0},
    {"tol", 't', "TOL", 0, "relative residual (1e-10)", 0},
    {"batch", 'b', "N,N,...", 0, "batch sizes (1,12)", 0},
    {"methods", 'm', "NAME,...", 0, "bicgstab,cg,block-cg,gcr (all but block-cg)", 0},
    {"precision", PRECISION, "NAME,...", 0, "double,single,half", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  if (key == 'g')
    o->gauge = arg;
  else if (key == 'm')
    o->methods = arg;
  else if (key == 'k')
    o->kappa = atof(arg);
  else if (key == 'c')
    o->csw = atof(arg);
  else if (key == 't')
    o->tol = atof(arg);
  else if (key == ACTION)
    o->action = arg;
  else if (key == PRECISION)
    o->precisions = arg;
  else if (key == 'b') {
    o->nbatch = rig_batches(arg, QK_MAX_RHS, o->batch);
    if (o->nbatch == 0) argp_error(state, "batch sizes: 1 to %d", QK_MAX_RHS);
  } else
    return ARGP_ERR_UNKNOWN;
  return 0;
}

/* Whether the action has colour vectors. */
static bool has_colours(const options_t *o) {
  qk_values_t values;
  char why[QK_WHY];
  return o->action && qk_values_parse(&values, o->action, why) && qk_values_action(&values)->colour;
}

/* Point sources of a propagator, one column after the other. */
static void fill(qk_rig_t *rig, const options_t *o, qk_solver_t *solver, int n) {
  if (has_colours(o)) {
    double complex *v = colours_vector(rig);
    const bool has_origin = qk_comm_rank(rig->comm) == 0;
    for (int i = 0; i < n; i++) {
      memset(v, 0, colours_numbers(rig) * sizeof *v);
      if (has_origin) v[i] = 1; /* three columns a site */
      colours_import(rig, qk_solver_rhs(solver, i), 0, v);
    }
    qk_free(v);
    return;
  }
  double *v = rig_vector(rig);
  for (int i = 0; i < n; i++) {
    rig_point(rig, i / 3 % 4, i % 3, v);
    rig_import(rig, qk_solver_rhs(solver, i), 0, v);
  }
  qk_free(v);
}

typedef struct cost {
  double applications, iterations, seconds,
      flops;      /* per RHS; flops a second of the inner precision */
  double beneath; /* applications of the operator that this one is made of, to a whole batch */
  int failed;
} cost_t;

static double applied(const qk_operator_t *op) {
  double n = 0;
  for (int p = 0; p < QK_PRECS; p++) n += op ? (double)op->applications[p] : 0;
  return n;
}

static cost_t measure(qk_rig_t *rig, const options_t *o, const char *method, qk_prec_t inner,
                      int n) {
  cost_t cost = {0};
  double longest = 0;
  qk_solver_t *solver = rig_solver(rig, method, inner, n);
  int slot[QK_MAX_RHS];
  double tol[QK_MAX_RHS];
  int64_t limit[QK_MAX_RHS], before = rig->op->applications[inner];
  const double beneath = applied(rig->op->base);
  fill(rig, o, solver, n);
  for (int i = 0; i < n; i++) {
    slot[i] = i;
    tol[i] = o->tol;
    limit[i] = 20000;
    rig_must(qk_solver_set_group(solver, i, 1), "group", NULL);
  }
  rig_must(qk_solver_fill_many(solver, slot, n, tol, limit), "fill", NULL);
  rig_run(solver);
  for (int i = 0; i < n; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    cost.applications += (double)s->applications / n;
    cost.iterations += (double)s->iterations / n;
    cost.failed += s->status != QK_OK;
    longest = fmax(longest, s->seconds);
  }
  cost.beneath = applied(rig->op->base) - beneath;
  cost.seconds = longest / n;
  cost.flops = (double)(rig->op->applications[inner] - before) * (double)rig->op->flops_system *
               (double)rig->geom.volume * n / longest;
  qk_solver_destroy(solver);
  return cost;
}

/* Whether `name` is among the words of a comma-separated list. */
static bool listed(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list; p; p = strchr(p, ','), p += p != NULL)
    if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0')) return true;
  return false;
}

static void table_of(qk_rig_t *rig, const options_t *o, const char *method) {
  for (int b = 0; b < o->nbatch; b++) {
    double base = 0;
    for (int p = 0; p < 3; p++) {
      if (!listed(o->precisions, precision[p])) continue;
      cost_t c = measure(rig, o, method, (qk_prec_t)p, o->batch[b]);
      if (base == 0) base = c.applications;
      printf("%-9s %-7s %4d %10.1f %7.3f %10.1f %12.5f %10.4f %10.2f %9.0f%s\n", method,
             precision[p], o->batch[b], c.applications, c.applications / base, c.iterations,
             c.seconds, 1e3 * c.seconds * o->batch[b] / c.iterations, c.flops * 1e-9, c.beneath,
             c.failed ? "  NOT CONVERGED" : "");
      fflush(stdout);
    }
  }
}

int main(int argc, char **argv) {
  options_t o = {.gauge = "builtin:weak:8x8x8x16:1",
                 .methods = "bicgstab,cg,gcr",
                 .precisions = "double,single,half",
                 .kappa = 0.123,
                 .csw = 1,
                 .tol = 1e-10,
                 .batch = {1, 12},
                 .nbatch = 2};
  const struct argp argp = {table, parse, NULL, "Solver benchmark. QK_BACKEND names the backend.",
                            NULL,  NULL,  NULL};
  static const char *const all[] = {"bicgstab", "cg", "block-cg", "gcr"};
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  if (!rig_backend_present()) return 77;
  qk_rig_t rig;
  qk_comm_t *comm = mg_rig_ranks(&argc, &argv, o.gauge);
  char what[160];
  if (has_colours(&o)) {
    colours_open(&rig, comm, o.gauge, NULL, o.action, -1);
    snprintf(what, sizeof what, "%.100s, tolerance %g", o.action, o.tol);
  } else if (o.action) {
    rig_open(&rig, comm, o.gauge, NULL);
    rig_action(&rig, o.action, -1);
    snprintf(what, sizeof what, "%.100s, tolerance %g", o.action, o.tol);
  } else {
    rig_open(&rig, comm, o.gauge, NULL);
    rig_operator(&rig, qk_mass_of_kappa(o.kappa), o.csw, -1);
    snprintf(what, sizeof what, "kappa %g, csw %g, tolerance %g", o.kappa, o.csw, o.tol);
  }
  rig_print(&rig, o.gauge, what);
  printf("%-9s %-7s %4s %10s %7s %10s %12s %10s %10s %9s\n", "method", "inner", "RHS", "apps/RHS",
         "ratio", "iter/RHS", "s/RHS", "ms/iter", "GFLOPS", "beneath");
  for (int m = 0; m < 4; m++)
    if (listed(o.methods, all[m])) table_of(&rig, &o, all[m]);
  rig_close(&rig);
  return 0;
}
