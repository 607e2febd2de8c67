/*
 * bench_mg: what a right-hand side costs with multigrid, by batch size, with BiCGStab beside it.
 *
 * Prints the setup (seconds, bytes, health of the levels), then per batch: outer iterations,
 * applications, seconds per RHS, shares of the levels (arXiv:1612.07873, Fig. 4), what passes in
 * double cost. With --action the same of one action after the other, and at the end
 * what an iteration of each costs beside one of the first. With --errors the error of a solution
 * against one solved to tol * 1e-4, over its residual (Table 3 there). --write and --from measure
 * setups that evolve from those of another mass, action or configuration.
 */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/mem.h"
#include "daemon/engine/checkpoint/mg_file.h"
#include "daemon/engine/multigrid/mg_text.h"
#include "proto/action/operator_text.h"
#include "tests/support/mg_rig.h"

enum { PLAIN = 256, POINT, ERRORS, KEEP, SECONDS, STAGGER, OUTER, NEXT, ACTION, FLAVOURS, PION };
enum { WRITE = 300, FROM, AGAIN };
enum { MOST_SLICES = 512, MOST_SETS = 16, MOST_ACTIONS = 12, MOST_BATCHES = 8 };

typedef struct options {
  const char *gauge, *write, *from;
  double kappa[8], csw, tol, seconds;
  int nkappa, batch[MOST_BATCHES], nbatch, plain, point, errors, keep, stagger;
  const char *action[MOST_ACTIONS];
  int naction, flavours, pion, again;
  qk_prec_t outer, inner; /* of multigrid's and BiCGStab's solver */
  qk_mg_params_t mg[MOST_SETS];
  int nset;
} options_t;

static const struct argp_option table[] = {
    {"gauge", 'g', "FILE", 0, "gauge file or builtin:... (default builtin:weak:8x8x8x16:1)", 0},
    {"kappa", 'k', "K,...", 0, "hopping parameters (0.1350)", 0},
    {"csw", 'c', "CSW", 0, "clover coefficient (1.769)", 0},
    {"action", ACTION, "TEXT", 0,
     "operator in place of kappa and csw: wilson-clover;mass=-0.4;csw=1.5; any number of times", 0},
    {"flavours", FLAVOURS, "N", 0,
     "of twisted actions: N right-hand sides of +1, then N of -1, and so on (+1 alone)", 0},
    {"tol", 't', "TOL", 0, "relative residual (1e-10)", 0},
    {"batch", 'b', "N,N,...", 0, "batch sizes (1,12)", 0},
    {"plain", PLAIN, "PRECISION", 0, "BiCGStab beside it: single or half inside, double outside",
     0},
    {"point", POINT, 0, 0,
     "point sources instead of random ones: propagators, each at another site", 0},
    {"pion", PION, 0, 0,
     "the effective mass of the pion of the first propagator, of twelve --point", 0},
    {"again", AGAIN, 0, 0, "also with solutions as sources: sequential propagators have such", 0},
    {"errors", ERRORS, 0, 0, "error over residual, by a second solve", 0},
    {"keep", KEEP, "N", 0, "directions of the outer GCR (7)", 0},
    {"seconds", SECONDS, "S", 0,
     "solve again and again for so long: the mean of the second half (once)", 0},
    {"stagger", STAGGER, 0, 0,
     "with --seconds: also with slots that begin at different times and are filled as they end", 0},
    {"outer", OUTER, "PRECISION", 0, "of the outer iteration: single (default), half or double", 0},
    {"mg", 'm', "KEY=VALUE", 0, "a parameter of multigrid as quarkd has it: mg-vectors=24,32", 0},
    {"write", WRITE, "FILE", 0, "write a checkpoint of each setup", 0},
    {"from", FROM, "FILE", 0, "setups evolve from this checkpoint", 0},
    {"next", NEXT, 0, 0, "another set of parameters follows, from the defaults", 0},
    {0}};

static qk_prec_t precision_of(const char *name, struct argp_state *state) {
  static const char *const names[] = {"double", "single", "half"};
  for (int p = 0; p < 3; p++)
    if (strcmp(name, names[p]) == 0) return (qk_prec_t)p;
  argp_error(state, "precision %s: double, single or half", name);
  return QK_SINGLE;
}

/* "a,b,..." into at most `most` numbers; returns how many. */
static int numbers(const char *text, int most, double *v) {
  int n = 0;
  for (const char *p = text; *p && n < most; p += *p == ',') {
    char *end;
    v[n++] = strtod(p, &end);
    if (end == p) break;
    p = end;
  }
  return n;
}

static void set_parameter(const char *arg, qk_mg_params_t *mg, struct argp_state *state) {
  char key[64];
  qk_err_t err = {0};
  size_t n = strcspn(arg, "=");
  if (arg[n] == '\0' || n >= sizeof key) argp_error(state, "--mg=%s: KEY=VALUE is wanted", arg);
  snprintf(key, sizeof key, "%.*s", (int)n, arg);
  if (qk_mg_text_set(mg, key, arg + n + 1, &err) != QK_OK)
    argp_error(state, "--mg=%s: %s", arg, err.text);
}

static int *flag_of(int key, options_t *o) {
  return key == POINT     ? &o->point
         : key == ERRORS  ? &o->errors
         : key == AGAIN   ? &o->again
         : key == STAGGER ? &o->stagger
         : key == PION    ? &o->pion
                          : NULL;
}

static error_t parse_simple(int key, char *arg, options_t *o) {
  int *flag = flag_of(key, o);
  if (flag) {
    *flag = 1;
    return 0;
  }
  switch (key) {
  case WRITE:
    o->write = arg;
    return 0;
  case FROM:
    o->from = arg;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  double v[8];
  int n = arg ? numbers(arg, 8, v) : 0;
  switch (key) {
  case 'g':
    o->gauge = arg;
    break;
  case 'k':
    memcpy(o->kappa, v, sizeof v);
    o->nkappa = n;
    break;
  case 'c':
    o->csw = v[0];
    break;
  case 't':
    o->tol = v[0];
    break;
  case 'b':
    for (int i = 0; i < n; i++) {
      if (v[i] < 1 || v[i] > QK_MAX_RHS)
        argp_error(state, "batch %g: batch sizes are 1 to %d", v[i], QK_MAX_RHS);
      o->batch[i] = (int)v[i];
    }
    o->nbatch = n;
    break;
  case PLAIN:
    o->plain = 1;
    o->inner = precision_of(arg, state);
    break;
  case KEEP:
    o->keep = (int)v[0];
    break;
  case SECONDS:
    o->seconds = v[0];
    break;
  case OUTER:
    o->outer = precision_of(arg, state);
    break;
  case 'm':
    set_parameter(arg, &o->mg[o->nset - 1], state);
    break;
  case ACTION:
    if (o->naction == MOST_ACTIONS) argp_error(state, "at most %d actions", MOST_ACTIONS);
    o->action[o->naction++] = arg;
    break;
  case FLAVOURS:
    o->flavours = (int)v[0];
    break;
  case NEXT:
    if (o->nset++ == MOST_SETS) argp_error(state, "at most %d sets of parameters", MOST_SETS);
    break;
  default:
    return parse_simple(key, arg, o);
  }
  return 0;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(const qk_rig_t *rig) {
  rig_must(rig->dev.ops->queue_sync(rig->dev.ctx, 0), "queue", NULL);
}

/* ---- setup ----------------------------------------------------------------------------------- */

/* processor: seconds of all threads, which other programs do not lengthen. */
static void show_setup(const qk_rig_t *rig, const qk_mg_t *mg, double seconds, double processor) {
  printf("setup %.2f s (%.2f of processors), hierarchy %.2f GB, device %.2f GB, convergence %.3f "
         "an iteration, attempts "
         "%d\n",
         seconds, processor, 1e-9 * (double)qk_mg_bytes(mg),
         1e-9 * (double)rig->dev.ops->allocated(rig->dev.ctx), mg->convergence, mg->attempts);
  printf("%5s %-14s %-10s %4s %5s %5s %5s %7s %9s %9s %9s %9s\n", "level", "lattice", "block",
         "vec", "pre", "post", "iter", "seconds", "P+P-1", "galerkin", "|Mv|/|v|", "represent");
  for (int l = 0; l < mg->nlevel; l++) {
    const qk_mg_level_t *a = &mg->level[l];
    const qk_mg_level_params_t *p = &mg->params.level[l];
    const int *x = l ? a->geom.global : rig->geom.global;
    char lattice[32], block[32] = "";
    snprintf(lattice, sizeof lattice, "%dx%dx%dx%d", x[0], x[1], x[2], x[3]);
    if (l + 1 < mg->nlevel)
      snprintf(block, sizeof block, "%dx%dx%dx%d", p->block[0], p->block[1], p->block[2],
               p->block[3]);
    printf("%5d %-14s %-10s %4d %5d %5d %5d %7.2f %9.1e %9.1e %9.1e %9.1e\n", l, lattice, block,
           l + 1 < mg->nlevel ? p->nvec : 0, p->pre, p->post, p->iterations, a->setup_seconds,
           a->health.orthonormality, a->health.galerkin, a->health.null_residual,
           a->health.representation);
  }
}

#define HEADING "%-16s %4s %7s %5s %5s %9s %9s %7s %9s\n"

/* ---- solves ---------------------------------------------------------------------------------- */

/* Sources of batch `batch`: noise that is the same in all of them, or with --point propagators one
 * after the other, each at a site of its own. */
static void make_source(const qk_rig_t *rig, const options_t *o, qk_solver_t *solver, int n,
                        int batch, int i) {
  static const int step[4] = {5, 7, 11, 13};
  qk_source_args_t a = {.lat = rig->geom.lat,
                        .kind = QK_SOURCE_Z4,
                        .site = {0, 0, 0, -1},
                        .spin = -1,
                        .colour = -1,
                        .seed = 1000 + (uint64_t)i};
  if (o->point) {
    const int column = batch * n + i;
    a.kind = QK_SOURCE_POINT;
    a.spin = column / 3 % 4;
    a.colour = column % 3;
    for (int mu = 0; mu < 4; mu++) a.site[mu] = column / 12 * step[mu] % rig->geom.global[mu];
  }
  rig_source(rig, &a, qk_solver_rhs(solver, i));
}

static void make_sources(const qk_rig_t *rig, const options_t *o, qk_solver_t *solver, int n,
                         int batch) {
  for (int i = 0; i < n; i++) {
    make_source(rig, o, solver, n, batch, i);
    qk_solver_clear(solver, i);
    rig_must(qk_solver_set_flavour(solver, i, o->flavours && i / o->flavours % 2 ? -1 : 1),
             "flavour", NULL);
  }
  wait_for(rig);
}

typedef struct cost {
  double iterations, least, most, applications, seconds, residual;
  int failed;
} cost_t;

/* For the sources that are there. */
static cost_t solve_again(qk_rig_t *rig, qk_solver_t *solver, int n, double tol) {
  cost_t c = {.least = INFINITY};
  int slot[QK_MAX_RHS];
  double tols[QK_MAX_RHS];
  int64_t most[QK_MAX_RHS];
  for (int i = 0; i < n; i++) {
    slot[i] = i;
    tols[i] = tol;
    most[i] = 20000;
    qk_solver_clear(solver, i);
  }
  double start = now();
  rig_must(qk_solver_fill_many(solver, slot, n, tols, most), "fill", NULL);
  rig_run(solver);
  wait_for(rig);
  c.seconds = (now() - start) / n;
  for (int i = 0; i < n; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    c.iterations += (double)s->iterations / n;
    c.least = fmin(c.least, (double)s->iterations);
    c.most = fmax(c.most, (double)s->iterations);
    c.applications += (double)s->applications / n;
    c.residual = fmax(c.residual, s->residual);
    c.failed += s->status != QK_OK;
  }
  return c;
}

static cost_t solve(qk_rig_t *rig, const options_t *o, qk_solver_t *solver, int n, double tol) {
  make_sources(rig, o, solver, n, 0);
  return solve_again(rig, solver, n, tol);
}

static void show_cost(const char *what, int n, const cost_t *c, double reference) {
  printf("%-16s %4d %7.1f %5.0f %5.0f %9.1f %9.5f %7.2f %9.1e%s\n", what, n, c->iterations,
         c->least, c->most, c->applications, c->seconds, reference / c->seconds, c->residual,
         c->failed ? "  NOT CONVERGED" : "");
  fflush(stdout);
}

/* |x - x*| / |x*| over the residual of x, with x* solved 1e4 times further. */
static void error_ratio(qk_rig_t *rig, const options_t *o, qk_solver_t *solver) {
  cost_t c = solve(rig, o, solver, 1, o->tol);
  double *x = rig_vector(rig), *better = rig_vector(rig);
  rig_export(rig, qk_solver_solution(solver, 0), 0, x);
  cost_t d = solve(rig, o, solver, 1, o->tol * 1e-4);
  rig_export(rig, qk_solver_solution(solver, 0), 0, better);
  printf("residual %.2e (%.2e), relative error %.2e: error / residual %.1f\n", c.residual,
         d.residual, rig_distance(rig, x, better), rig_distance(rig, x, better) / c.residual);
  qk_free(x);
  qk_free(better);
}

/* C(t) += |x|^2 on each time slice of the whole lattice. */
static void add_slices(const qk_rig_t *rig, const double *x, double *c) {
  const int32_t *l = rig->geom.lat.l;
  const int64_t slice = (int64_t)l[0] * l[1] * l[2] * 24;
  const int nt = rig->geom.global[3];
  double part[MOST_SLICES] = {0};
  for (int t = 0; t < l[3]; t++)
    for (int64_t i = 0; i < slice; i++)
      part[rig->geom.lat.offset[3] + t] += x[t * slice + i] * x[t * slice + i];
  rig_must(qk_comm_sum(rig->comm, part, nt), "sum", NULL);
  for (int t = 0; t < nt; t++) c[t] += part[t];
}

/* From C(T/4), the mean of both sides, over C(T/2) = cosh(m T/4). */
static void show_pion(qk_rig_t *rig, const options_t *o, qk_solver_t *solver) {
  const int nt = rig->geom.global[3], quarter = nt / 4;
  double c[MOST_SLICES] = {0}, *x = rig_vector(rig);
  make_sources(rig, o, solver, 12, 0);
  solve_again(rig, solver, 12, o->tol);
  for (int i = 0; i < 12; i++) {
    rig_export(rig, qk_solver_solution(solver, i), 0, x);
    add_slices(rig, x, c);
  }
  const double side = (c[quarter] + c[nt - quarter]) / 2;
  printf("pion mass %.4f\n", acosh(side / c[2 * quarter]) / quarter);
  qk_free(x);
}

static double plain(qk_rig_t *rig, const options_t *o, int n) {
  qk_solver_t *solver = rig_solver(rig, "bicgstab", o->inner, n);
  solve(rig, o, solver, n, o->tol); /* allocates, warms up */
  cost_t c = solve(rig, o, solver, n, o->tol);
  show_cost(o->inner == QK_HALF ? "bicgstab half" : "bicgstab single", n, &c, c.seconds);
  if (o->errors && n == 1) error_ratio(rig, o, solver);
  qk_solver_destroy(solver);
  return c.seconds;
}

/* The mean of batches once the device is warm, one right behind the other: where power is what
 * limits it, rests between batches make it faster in them. */
static cost_t sustained(qk_rig_t *rig, const options_t *o, qk_solver_t *solver, int n) {
  const double start = now();
  cost_t sum = {.least = INFINITY};
  int batch = 0, count = 0;
  while (count == 0 || now() - start < o->seconds) {
    const bool late = now() - start > o->seconds / 2;
    make_sources(rig, o, solver, n, batch); /* a solution takes the place of its source */
    const cost_t c = solve_again(rig, solver, n, o->tol);
    batch++;
    if (!late) continue;
    count++;
    sum.iterations += c.iterations;
    sum.applications += c.applications;
    sum.seconds += c.seconds;
    sum.least = fmin(sum.least, c.least);
    sum.most = fmax(sum.most, c.most);
    sum.residual = fmax(sum.residual, c.residual);
    sum.failed += c.failed;
  }
  sum.iterations /= count;
  sum.applications /= count;
  sum.seconds /= count;
  return sum;
}

/* Slot i begins in step 7 i mod n, and is filled again with the same source whenever it has ended:
 * what a service sees. Seconds a RHS, of the second half. */
static cost_t staggered(qk_rig_t *rig, const options_t *o, qk_solver_t *solver, int n) {
  cost_t c = {.least = INFINITY};
  double late_since = 0, ended = 0;
  for (int i = 0; i < n; i++) qk_solver_clear(solver, i);
  make_sources(rig, o, solver, n, 0);
  const double start = now();
  for (int step = 0; now() - start < o->seconds; step++) {
    if (late_since == 0 && now() - start > o->seconds / 2) {
      late_since = now();
      c = (cost_t){.least = INFINITY};
      ended = 0;
    }
    for (int i = 0; i < n; i++) {
      const qk_slot_t *s = qk_solver_slot(solver, i);
      if (s->state == QK_SLOT_ENDED) {
        c.iterations += (double)s->iterations;
        c.applications += (double)s->applications;
        c.least = fmin(c.least, (double)s->iterations);
        c.most = fmax(c.most, (double)s->iterations);
        c.residual = fmax(c.residual, s->residual);
        c.failed += s->status != QK_OK;
        ended++;
        make_source(rig, o, solver, n, 0, i);
        qk_solver_clear(solver, i);
      }
      if (s->state == QK_SLOT_FREE && step >= 7 * i % n)
        rig_must(qk_solver_fill(solver, i, o->tol, 20000), "fill", NULL);
    }
    rig_must(qk_solver_step(solver), "step", NULL);
  }
  wait_for(rig);
  c.seconds = (now() - late_since) / ended;
  c.iterations /= ended;
  c.applications /= ended;
  for (int i = 0; i < n; i++) {
    if (qk_solver_slot(solver, i)->state == QK_SLOT_RUNNING) qk_solver_cancel(solver, i);
    qk_solver_clear(solver, i);
  }
  return c;
}

/* Returns the seconds of an iteration. */
static double multigrid(qk_rig_t *rig, const options_t *o, qk_mg_t *mg, int n, double reference) {
  double level[QK_MG_LEVELS_MAX] = {0};
  mg_rig_t m = {.mg = mg};
  mg_rig_slots(rig, &m, o->outer, n, o->keep);
  qk_cycle_t *cycle = m.cycle;
  qk_solver_t *solver = m.solver;
  solve(rig, o, solver, n, o->tol); /* records all graphs */
  cost_t c = solve(rig, o, solver, n, o->tol);
  if (o->seconds > 0) c = sustained(rig, o, solver, n);
  show_cost("multigrid", n, &c, reference);
  if (o->stagger && o->seconds > 0) {
    c = staggered(rig, o, solver, n);
    show_cost("  staggered", n, &c, reference);
  }
  if (o->again) {
    solve(rig, o, solver, n, o->tol);
    const cost_t again = solve_again(rig, solver, n, o->tol);
    show_cost("  of a solution", n, &again, reference);
  }
  qk_cycle_time(cycle, true, level);
  double total = n * solve(rig, o, solver, n, o->tol).seconds;
  qk_cycle_time(cycle, false, level);
  printf("%16s device %.1f GB; share of time by level:", "",
         1e-9 * (double)rig->dev.ops->allocated(rig->dev.ctx));
  double outside = total;
  for (int l = 0; l < mg->nlevel; l++) outside -= level[l];
  printf(" outer %.0f %%", 100 * outside / total);
  for (int l = 0; l < mg->nlevel; l++) printf(", %d: %.0f %%", l, 100 * level[l] / total);
  printf(" (of %.4f s per RHS)\n", total / n);
  if (o->outer != QK_DOUBLE) {
    make_sources(rig, o, solver, n, 0);
    mg_rig_show_double(rig, solver, n, o->tol);
  }
  if (o->errors && n == 1) error_ratio(rig, o, solver);
  if (o->pion && o->point && n == 12) show_pion(rig, o, solver);
  qk_solver_destroy(solver);
  qk_cycle_vectors_destroy(m.vectors);
  qk_cycle_destroy(cycle);
  return c.seconds * n / c.iterations;
}

static void progress(void *arg, const char *phase, int64_t done, int64_t total) {
  (void)arg;
  if (done == total && !getenv("OMPI_COMM_WORLD_RANK")) fprintf(stderr, "  %s\n", phase);
}

/* NULL: it would be no good. */
static qk_mg_t *set_up(qk_rig_t *rig, const options_t *o, const qk_mg_params_t *params) {
  qk_err_t err = {0};
  qk_mg_t *mg = NULL;
  qk_operator_t *op = qk_operator_base(rig->op);
  if (!o->from) {
    rig_must(qk_mg_create(op, rig->work, params, progress, NULL, &mg, &err), "setup", &err);
    return mg;
  }
  if (qk_mg_load_evolved(op, rig->work, o->from, o->from, params, progress, NULL, &mg, &err) !=
      QK_OK)
    printf("not evolved: %s\n", err.text);
  else
    printf("%s\n", mg->origin);
  return mg;
}

/* text: the operator. */
static void write_checkpoint(const qk_rig_t *rig, const options_t *o, const char *text,
                             const qk_mg_t *mg) {
  qk_mg_identity_t id = {.gauge_digest = rig->check.digest,
                         .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}},
                         .seed = mg->params.seed};
  qk_err_t err = {0};
  qk_mg_save_t *save;
  bool ended;
  snprintf(id.operator_text, sizeof id.operator_text, "%s", text);
  rig_must(qk_mg_save_begin(mg, o->write, &id, &save, &err), o->write, &err);
  rig_must(qk_mg_save_poll(&save, true, &ended, &err), o->write, &err);
}

static void with_parameters(qk_rig_t *rig, const options_t *o, const char *text,
                            const qk_mg_params_t *params, const double plain_seconds[],
                            double iteration[]) {
  printf("\n");
  qk_mg_text_print(params, stdout);
  wait_for(rig);
  const double start = now(), busy = (double)clock();
  qk_mg_t *mg = set_up(rig, o, params);
  wait_for(rig);
  if (!mg) {
    printf("after %.2f s\n", now() - start);
    for (int b = 0; b < o->nbatch; b++) iteration[b] = NAN;
    return;
  }
  show_setup(rig, mg, now() - start, ((double)clock() - busy) / CLOCKS_PER_SEC);
  printf(HEADING, "method", "RHS", "iter", "least", "most", "apps/RHS", "s/RHS", "gain",
         "residual");
  for (int b = 0; b < o->nbatch; b++)
    iteration[b] = multigrid(rig, o, mg, o->batch[b], plain_seconds[b]);
  if (o->write) write_checkpoint(rig, o, text, mg);
  qk_mg_destroy(mg);
}

/* iteration: seconds of one, by batch, of the last set of parameters. */
static void with_operator(qk_rig_t *rig, const options_t *o, const char *text, double iteration[]) {
  double seconds[MOST_BATCHES];
  if (o->plain)
    printf(HEADING, "method", "RHS", "iter", "least", "most", "apps/RHS", "s/RHS", "gain",
           "residual");
  for (int b = 0; b < o->nbatch; b++) seconds[b] = o->plain ? plain(rig, o, o->batch[b]) : NAN;
  for (int i = 0; i < o->nset; i++) with_parameters(rig, o, text, &o->mg[i], seconds, iteration);
}

static void clover_text(double kappa, double csw, char text[QK_OPERATOR_TEXT]) {
  char number[2][32], why[QK_WHY];
  const qk_setting_t setting[] = {{"mass", number[0]}, {"csw", number[1]}};
  qk_values_t values;
  qk_err_t err = {0};
  snprintf(number[0], sizeof number[0], "%.17g", qk_mass_of_kappa(kappa));
  snprintf(number[1], sizeof number[1], "%.17g", csw);
  if (!qk_values_read(&values, "wilson-clover", setting, 2, why))
    qk_fail(&err, QK_BAD_ARGUMENT, "%s", why);
  rig_must(err.code, "operator", &err);
  qk_values_text(&values, QK_TEXT_CANONICAL, text);
}

static void at_masses(qk_rig_t *rig, const options_t *o) {
  char text[QK_OPERATOR_TEXT];
  double iteration[MOST_BATCHES];
  for (int k = 0; k < o->nkappa; k++) {
    rig_operator(rig, qk_mass_of_kappa(o->kappa[k]), o->csw, -1);
    printf("\nkappa %g\n", o->kappa[k]);
    clover_text(o->kappa[k], o->csw, text);
    with_operator(rig, o, text, iteration);
  }
}

static void of_actions(qk_rig_t *rig, const options_t *o) {
  double iteration[MOST_ACTIONS][MOST_BATCHES];
  for (int a = 0; a < o->naction; a++) {
    rig_action(rig, o->action[a], -1);
    printf("\n%s\n", o->action[a]);
    with_operator(rig, o, o->action[a], iteration[a]);
  }
  printf("\nMilliseconds of an iteration of the batch, and over that of the first action\n");
  for (int a = 0; a < o->naction; a++) {
    for (int b = 0; b < o->nbatch; b++)
      printf("%4d RHS %9.3f %6.3f  ", o->batch[b], 1e3 * iteration[a][b],
             iteration[a][b] / iteration[0][b]);
    printf("%s\n", o->action[a]);
  }
}

int main(int argc, char **argv) {
  options_t o = {.gauge = "builtin:weak:8x8x8x16:1",
                 .kappa = {0.1350},
                 .nkappa = 1,
                 .nset = 1,
                 .csw = 1.769,
                 .tol = 1e-10,
                 .batch = {1, 12},
                 .nbatch = 2,
                 .outer = QK_SINGLE};
  const struct argp argp = {
      table, parse, NULL, "Multigrid benchmark. QK_BACKEND names the backend.", NULL, NULL, NULL};
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  if (!rig_backend_present()) return 77;
  qk_rig_t rig;
  char what[80];
  rig_open(&rig, mg_rig_ranks(&argc, &argv, o.gauge), o.gauge, NULL);
  snprintf(what, sizeof what, "csw %g, tolerance %g", o.csw, o.tol);
  rig_print(&rig, o.gauge, what);
  if (o.naction > 0)
    of_actions(&rig, &o);
  else
    at_masses(&rig, &o);
  rig_close(&rig);
  return 0;
}
