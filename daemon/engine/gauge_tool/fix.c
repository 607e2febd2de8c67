#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/file.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/fix/gauge_fix.h"
#include "daemon/engine/gauge_tool/interrupt.h"
#include "daemon/engine/gauge_tool/show.h"
#include "daemon/engine/tool/tool.h"

/* Plaquettes of the same links in another gauge differ by rounding. */
static const double PLAQUETTE_ROUNDING = 1e-11;

typedef struct options {
  qk_tool_options_t tool;
  qk_fix_params_t params;
  const char *gauge, *transform; /* NULL: not given */
  bool random, partial, quiet;
  uint64_t seed;
} options_t;

enum {
  KEY_GAUGE = QK_TOOL_OWN,
  KEY_TOL,
  KEY_MAX_ITER,
  KEY_OVERRELAX,
  KEY_CHECK_EVERY,
  KEY_RANDOM_START,
  KEY_TRANSFORM,
  KEY_PARTIAL
};

static const struct argp_option rows[] = {
    {"gauge", KEY_GAUGE, "KIND", 0, "landau, or coulomb (each time slice by itself)", 1},
    {"tol", KEY_TOL, "THETA", 0, "ends where theta is not above this (1e-12)", 2},
    {"max-iter", KEY_MAX_ITER, "N", 0, "iterations at most (20000)", 2},
    {"check-every", KEY_CHECK_EVERY, "N", 0, "iterations between two looks at theta (20)", 2},
    {"overrelax", KEY_OVERRELAX, "OMEGA", 0, "1 (none) to 1.99 (default: by the extents)", 2},
    {"random-start", KEY_RANDOM_START, "SEED", 0,
     "from a random transformation of this seed, which may lead to another Gribov copy", 3},
    {"transform", KEY_TRANSFORM, "FILE", 0, "write the transformation, too (SciDAC)", 4},
    {"partial", KEY_PARTIAL, NULL, 0,
     "write the configuration also if theta is above the tolerance at the end", 4},
    QK_TOOL_ROW_DIMS,
    QK_TOOL_ROW_FORMAT,
    QK_TOOL_ROW_BITS,
    QK_TOOL_ROW_BACKEND,
    QK_TOOL_ROW_GRID,
    QK_TOOL_ROW_JSON,
    {"quiet", 'q', NULL, 0, "print the summary only", 8},
    {0}};

static void parse_end(struct argp_state *state, options_t *o) {
  if (o->gauge == NULL) argp_error(state, "--gauge is needed");
  if (o->tool.in != NULL && o->tool.out != NULL && qk_file_is_same(o->tool.in, o->tool.out))
    argp_error(state, "OUT = %s: is IN, too, which would be lost", o->tool.out);
  if (o->transform == NULL) return;
  if (o->tool.json) qk_tool_need_utf8(state, o->transform);
  qk_tool_need_target(state, "--transform", o->transform);
  if (o->tool.out != NULL && qk_file_is_same(o->transform, o->tool.out))
    argp_error(state, "--transform=%s: is OUT, too", o->transform);
  if (o->tool.in != NULL && qk_file_is_same(o->transform, o->tool.in))
    argp_error(state, "--transform=%s: is IN, too", o->transform);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  static const char *const gauges[] = {"landau", "coulomb"};
  options_t *o = state->input;
  qk_fix_params_t *p = &o->params;
  switch (key) {
  case KEY_GAUGE:
    p->gauge = (qk_fix_gauge_t)qk_tool_word(state, "gauge", arg, 2, gauges);
    o->gauge = gauges[p->gauge];
    return 0;
  case KEY_TOL:
    p->tol = qk_tool_real(state, "tol", arg, QK_FIX_TOL_MIN, 1);
    return 0;
  case KEY_MAX_ITER:
    p->max_iterations = qk_tool_integer(state, "max-iter", arg, 0, 1000000000);
    return 0;
  case KEY_CHECK_EVERY:
    p->check_every = qk_tool_integer(state, "check-every", arg, 1, 1000000);
    return 0;
  case KEY_OVERRELAX:
    p->omega = qk_tool_real(state, "overrelax", arg, 1, 1.99);
    return 0;
  case KEY_RANDOM_START:
    o->seed = (uint64_t)qk_tool_integer(state, "random-start", arg, 0, INT64_MAX);
    o->random = true;
    return 0;
  case KEY_TRANSFORM:
    o->transform = arg;
    return 0;
  case KEY_PARTIAL:
    o->partial = true;
    return 0;
  case 'q':
    o->quiet = true;
    return 0;
  case ARGP_KEY_END:
    parse_end(state, o);
    return qk_tool_parse_in_out(key, arg, state, &o->tool);
  default:
    return qk_tool_parse_in_out(key, arg, state, &o->tool);
  }
}

/* ---- the run ---- */

typedef struct job {
  qk_tool_t *tool;
  options_t *o;
  qk_tool_config_t config;
  qk_gaugefield_t *u, *g;
  double *transform; /* host, where it is asked for */
  qk_show_t show;
  qk_fix_point_t point; /* the last look at theta */
  bool stopped;
  double plaquette;
  qk_err_t *err;
} job_t;

static qk_status_t watch(void *arg, const qk_fix_point_t *point, bool *stop) {
  job_t *job = arg;
  qk_status_t status = qk_interrupt_asked(job->tool->comm, stop, job->err);
  job->stopped = *stop;
  if (job->tool->root)
    qk_show_row(&job->show, "%11" PRId64 "  %.15f  %.6e", point->iteration, point->functional,
                point->theta);
  return status;
}

static void show_head(job_t *job) {
  const qk_tool_t *tool = job->tool;
  const options_t *o = job->o;
  const int *d = job->config.info.dims, *g = tool->geom.grid;
  qk_show_begin(&job->show, tool->root && !o->quiet && !tool->json, false, 0, 0);
  qk_show_note(&job->show, "%dx%dx%dx%d, %s gauge, overrelaxation %g, tolerance %g", d[0], d[1],
               d[2], d[3], o->gauge, o->params.omega, o->params.tol);
  qk_show_note(&job->show, "%s, ranks %dx%dx%dx%d", tool->ops->name, g[0], g[1], g[2], g[3]);
  if (o->random) qk_show_note(&job->show, "random start, seed %" PRIu64, o->seed);
  qk_show_note(&job->show, "iteration  functional         theta%s",
               o->params.gauge == QK_FIX_COULOMB ? " of the worst time slice" : "");
}

static bool converged(const job_t *job) {
  return job->point.theta <= job->o->params.tol;
}

/* Whether what there is may be written. */
static qk_status_t judge(const job_t *job, qk_err_t *err) {
  const qk_fix_point_t *p = &job->point;
  const char *kept = job->o->partial ? "written as it is" : "nothing is written";
  if (converged(job)) return QK_OK;
  if (!isfinite(p->theta))
    return qk_fail(err, QK_INTERNAL, "iteration %" PRId64 ": theta is not a number", p->iteration);
  if (job->stopped)
    return qk_fail(err, QK_SHUTTING_DOWN,
                   "interrupted after %" PRId64 " iterations, theta = %.3g: %s", p->iteration,
                   p->theta, kept);
  return qk_fail(err, QK_NOT_CONVERGED,
                 "theta = %.3g after %" PRId64 " iterations (--max-iter): above %g (--tol): %s",
                 p->theta, p->iteration, job->o->params.tol, kept);
}

/* The fields on the device, and room for the transformation. */
static qk_status_t make_fields(job_t *job, qk_err_t *err) {
  qk_tool_t *tool = job->tool;
  qk_status_t status = qk_gaugefield_create(&tool->dev, 1, &job->u);
  if (status != QK_OK) return status;
  status = qk_gaugefield_create_sites(&tool->dev, 1, &job->g);
  if (status != QK_OK) return status;
  status = qk_gaugefield_share(job->g);
  if (status != QK_OK || job->o->transform == NULL) return status;
  const size_t bytes = (size_t)tool->geom.local_volume * 18 * sizeof(double);
  job->transform = qk_malloc(bytes);
  if (job->transform == NULL)
    status = qk_fail(err, QK_NO_MEMORY, "no memory for %zu bytes of the transformation", bytes);
  return qk_comm_agree(tool->comm, status, err);
}

static qk_status_t iterate(job_t *job) {
  const options_t *o = job->o;
  qk_status_t status = qk_gaugefield_import(job->u, job->config.links);
  if (status != QK_OK) return status;
  status = qk_fix_start(job->g, o->random, o->seed);
  if (status != QK_OK) return status;
  qk_interrupt_catch();
  show_head(job);
  status = qk_fix_run(job->u, job->g, &o->params, watch, job, &job->point);
  qk_show_end(&job->show);
  return status;
}

/* What came of it, in host memory: the links in place of those that were read. */
static qk_status_t fetch(job_t *job) {
  qk_status_t status = qk_fix_apply(job->u, job->g);
  if (status != QK_OK) return status;
  status = qk_gaugefield_export(job->u, job->config.links);
  if (status != QK_OK || job->transform == NULL) return status;
  return qk_gaugefield_export(job->g, job->transform);
}

static qk_status_t run(job_t *job, qk_err_t *err) {
  qk_status_t status = make_fields(job, err);
  if (status != QK_OK) return status;
  status = iterate(job);
  return status == QK_OK ? fetch(job) : status;
}

/* OUT comes last: where it is, all is there. */
static qk_status_t write_all(job_t *job, int bits, qk_err_t *err) {
  qk_tool_t *tool = job->tool;
  const options_t *o = job->o;
  const double before = job->config.check.plaquette;
  qk_gauge_check_t check;
  qk_status_t status = qk_gauge_measure(&tool->geom, job->config.links, &check, err);
  if (status != QK_OK) return status;
  job->plaquette = check.plaquette;
  if (!(fabs(check.plaquette - before) < PLAQUETTE_ROUNDING))
    return qk_fail(err, QK_INTERNAL, "the plaquette became %.15g from %.15g", check.plaquette,
                   before);
  if (job->transform != NULL)
    status = qk_gauge_write_transform(o->transform, &tool->geom, job->transform, err);
  if (status != QK_OK) return status;
  return qk_gauge_write(o->tool.out, o->tool.format, bits, &tool->geom, job->config.links, err);
}

static void print_json(const job_t *job, int bits) {
  const options_t *o = job->o;
  const int *g = job->tool->geom.grid;
  json_t *transform = o->transform == NULL ? json_null() : json_string(o->transform);
  qk_tool_print(
      job->tool,
      json_pack("{s:s, s:s, s:s, s:s, s:i, s:o, s:s, s:[i,i,i,i], s:b, s:b, s:I, s:f, "
                "s:f, s:f, s:f, s:f, s:f}",
                "in", o->tool.in, "out", o->tool.out, "gauge", o->gauge, "format", o->tool.format,
                "bits", bits, "transform", transform, "backend", job->tool->ops->name, "grid", g[0],
                g[1], g[2], g[3], "converged", converged(job), "interrupted", job->stopped,
                "iterations", (json_int_t)job->point.iteration, "functional", job->point.functional,
                "theta", job->point.theta, "tol", o->params.tol, "overrelax", o->params.omega,
                "plaquette_before", job->config.check.plaquette, "plaquette", job->plaquette));
}

static void print_result(const job_t *job, int bits) {
  const options_t *o = job->o;
  if (job->tool->json) {
    print_json(job, bits);
  } else if (job->tool->root) {
    printf("%s gauge: theta %.3g, functional %.15f, %" PRId64 " iterations\n", o->gauge,
           job->point.theta, job->point.functional, job->point.iteration);
    printf("%s: %s, %d bit, verified; plaquette %.12f, before %.12f\n", o->tool.out, o->tool.format,
           bits, job->plaquette, job->config.check.plaquette);
  }
}

static qk_status_t fix(job_t *job, qk_err_t *err) {
  qk_tool_t *tool = job->tool;
  const options_t *o = job->o;
  qk_status_t status = qk_tool_load(tool, o->tool.in, &o->tool, &job->config, err);
  if (status != QK_OK) return status;
  if (job->o->params.omega == 0) job->o->params.omega = qk_fix_omega(&tool->geom, o->params.gauge);
  status = qk_tool_open_device(tool, o->tool.backend != NULL ? o->tool.backend : "auto", err);
  if (status != QK_OK) return status;
  status = qk_tool_explain(tool, run(job, err), err);
  if (status != QK_OK) return status;
  qk_err_t why = {0};
  const qk_status_t verdict = judge(job, &why);
  const bool wanted = verdict == QK_OK || (o->partial && verdict != QK_INTERNAL);
  const int bits = o->tool.bits != 0 ? o->tool.bits : job->config.info.bits;
  if (wanted) status = write_all(job, bits, err);
  if (status != QK_OK) return status;
  if (wanted) print_result(job, bits);
  if (wanted) qk_tool_tell_bits(tool, o->tool.out, bits, &job->config.check);
  if (wanted) tool->json = false; /* it has had its object */
  return verdict == QK_OK ? QK_OK : qk_fail(err, verdict, "%s", why.text);
}

int qk_tool_fix(int argc, char **argv) {
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "IN OUT",
      .doc = "Bring a gauge configuration to Landau or Coulomb gauge by overrelaxation and write "
             "it.\v"
             "IN and OUT are as for quark-gauge convert. theta = 1/(3V) sum tr D D^+, where D is "
             "the traceless part of sum_mu [U_mu(x-mu) - U_mu(x)] - h.c.; in Coulomb gauge that of "
             "the worst time slice. SIGINT and SIGTERM end the iteration at its next look at "
             "theta (exit status 75). Where theta stays above the tolerance the exit status is 65, "
             "and nothing is written without --partial."};
  options_t o = {.params = {.tol = 1e-12, .max_iterations = 20000, .check_every = 20}};
  qk_tool_t tool;
  qk_err_t err = {0};
  job_t job = {.tool = &tool, .o = &o, .err = &err};
  qk_tool_parse(&argp, argc, argv, &o);
  qk_status_t status = qk_tool_begin(&tool, "quark-gauge", &o.tool, argc, argv, &err);
  if (status == QK_OK) status = fix(&job, &err);
  qk_gaugefield_destroy(job.g);
  qk_gaugefield_destroy(job.u);
  qk_free(job.transform);
  qk_free(job.config.links);
  return qk_tool_end(&tool, status, &err);
}
