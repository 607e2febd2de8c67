/*
 * bench_masses: several masses of staggered fermions from one Krylov space beside the lightest of
 * them alone, by the solver that slots have ("cg") and by the same one with one mass.
 *
 * Prints for each batch and inner precision: iterations (of the block of all masses), seconds, and
 * their ratio to those of the lightest mass alone. Sources are points on one parity.
 */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/engine/masses/masses.h"
#include "tests/support/staggered/colours.h"

typedef struct options {
  const char *gauge, *action, *precisions;
  double tol, mass[QK_MASSES_MAX];
  int nmass, batch[8], nbatch;
} options_t;

static const char *const precision[] = {"double", "single"};

enum { ACTION = 256, PRECISION, MASSES };
enum { MOST = 12 }; /* sources of a batch */

static const struct argp_option table[] = {
    {"gauge", 'g', "FILE", 0, "gauge file or builtin:... (default builtin:weak:8x8x8x16:1)", 0},
    {"action", ACTION, "NAME", 0, "staggered, asqtad or hisq (hisq)", 0},
    {"masses", MASSES, "M,M,...", 0,
     "the lightest first (0.01,0.014,0.02,0.028,0.04,0.056,0.08,0.11)", 0},
    {"tol", 't', "TOL", 0, "relative residual (1e-10)", 0},
    {"batch", 'b', "N,N,...", 0, "sources (1,3)", 0},
    {"precision", PRECISION, "NAME,...", 0, "double,single", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  if (key == 'g')
    o->gauge = arg;
  else if (key == 't')
    o->tol = atof(arg);
  else if (key == ACTION)
    o->action = arg;
  else if (key == PRECISION)
    o->precisions = arg;
  else if (key == MASSES) {
    o->nmass = 0;
    for (char *p = arg; *p && o->nmass < QK_MASSES_MAX; p += *p == ',')
      o->mass[o->nmass++] = strtod(p, &p);
  } else if (key == 'b') {
    o->nbatch = rig_batches(arg, MOST, o->batch);
    if (o->nbatch == 0) argp_error(state, "batch sizes: 1 to %d", MOST);
  } else if (key == ARGP_KEY_END && o->nmass < 1) {
    argp_error(state, "no mass");
  } else {
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

/* Points of other colours, and on other sites of the same parity. */
static double complex *source(const qk_rig_t *rig, int j) {
  double complex *b = colours_vector(rig);
  if (qk_comm_rank(rig->geom.comm) == 0) b[6 * (j / 3) + j % 3] = 1;
  return b;
}

typedef struct cost {
  double iterations, seconds;
  bool failed;
} cost_t;

/* By the solver of slots. */
static cost_t alone(qk_rig_t *rig, const options_t *o, qk_prec_t inner, int n) {
  qk_solver_t *solver = rig_solver(rig, "cg", inner, n);
  int slot[MOST];
  double tol[MOST];
  int64_t limit[MOST];
  cost_t cost = {0};
  for (int j = 0; j < n; j++) {
    double complex *b = source(rig, j);
    colours_import(rig, qk_solver_rhs(solver, j), 0, b);
    qk_free(b);
    slot[j] = j;
    tol[j] = o->tol;
    limit[j] = 100000;
  }
  const double since = qk_clock_now();
  rig_must(qk_solver_fill_many(solver, slot, n, tol, limit), "fill", NULL);
  rig_run(solver);
  cost.seconds = qk_clock_now() - since;
  for (int j = 0; j < n; j++) {
    const qk_slot_t *s = qk_solver_slot(solver, j);
    cost.iterations = fmax(cost.iterations, (double)s->iterations);
    cost.failed |= s->status != QK_OK;
  }
  qk_solver_destroy(solver);
  return cost;
}

static cost_t together(qk_rig_t *rig, const options_t *o, qk_prec_t inner, int n, int nmass) {
  qk_masses_params_t params = {.inner = inner, .nrhs = n, .n = nmass};
  qk_masses_t *masses = NULL;
  qk_err_t err = {0};
  memcpy(params.mass, o->mass, sizeof params.mass);
  rig_must(qk_masses_create(rig->op, rig->work, &params, &masses, &err), "masses", &err);
  for (int j = 0; j < n; j++) {
    double complex *b = source(rig, j);
    colours_import(rig, qk_masses_source(masses), j, b);
    qk_free(b);
  }
  const double since = qk_clock_now();
  rig_must(qk_masses_begin(masses, o->tol, 100000), "begin", NULL);
  while (!qk_masses_is_over(masses)) rig_must(qk_masses_step(masses, 10), "step", NULL);
  cost_t cost = {.seconds = qk_clock_now() - since,
                 .iterations = (double)qk_masses_iterations(masses)};
  for (int k = 0; k < nmass; k++)
    for (int j = 0; j < n; j++) cost.failed |= qk_masses_result(masses, k, j)->status != QK_OK;
  qk_masses_destroy(masses);
  return cost;
}

static void show(const char *what, int prec, int n, const cost_t *c, const cost_t *beside) {
  printf("%-14s %-7s %4d %10.0f %12.5f %8.3f%s\n", what, precision[prec], n, c->iterations,
         c->seconds, c->seconds / beside->seconds, c->failed ? "  NOT CONVERGED" : "");
  fflush(stdout);
}

static void bench(qk_rig_t *rig, const options_t *o, int prec, int n) {
  char what[32];
  together(rig, o, (qk_prec_t)prec, n, o->nmass); /* memory of work fields is there then */
  const cost_t one = alone(rig, o, (qk_prec_t)prec, n);
  const cost_t same = together(rig, o, (qk_prec_t)prec, n, 1);
  const cost_t all = together(rig, o, (qk_prec_t)prec, n, o->nmass);
  show("alone, cg", prec, n, &one, &one);
  show("alone, masses", prec, n, &same, &one);
  snprintf(what, sizeof what, "%d masses", o->nmass);
  show(what, prec, n, &all, &one);
}

int main(int argc, char **argv) {
  options_t o = {.gauge = "builtin:weak:8x8x8x16:1",
                 .action = "hisq",
                 .precisions = "double,single",
                 .tol = 1e-10,
                 .mass = {0.01, 0.014, 0.02, 0.028, 0.04, 0.056, 0.08, 0.11},
                 .nmass = 8,
                 .batch = {1, 3},
                 .nbatch = 2};
  const struct argp argp = {table, parse, NULL, "Several masses. QK_BACKEND names the backend.",
                            NULL,  NULL,  NULL};
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  if (!rig_backend_present()) return 77;
  char text[128];
  qk_rig_t rig;
  snprintf(text, sizeof text, "%.40s;mass=%.17g%s", o.action, o.mass[0],
           strcmp(o.action, "asqtad") == 0 ? ";u0=0.9" : "");
  colours_open(&rig, NULL, o.gauge, NULL, text, -1);
  rig_print(&rig, o.gauge, text);
  printf("%-14s %-7s %4s %10s %12s %8s\n", "what", "inner", "RHS", "iterations", "seconds",
         "ratio");
  for (int p = 0; p < 2; p++)
    for (int b = 0; b < o.nbatch && strstr(o.precisions, precision[p]); b++)
      bench(&rig, &o, p, o.batch[b]);
  rig_close(&rig);
  return 0;
}
