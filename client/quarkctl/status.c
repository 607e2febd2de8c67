#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/operator.h"
#include "client/quarkctl/deflation.h"
#include "proto/counters.h"
#include "proto/limits.h"

typedef struct options {
  ctl_common_t common;
  bool any;
} options_t;

static const qk_option_row_t rows[] = {
    {"any", QK_OPTION_FLAG, offsetof(options_t, any),
     .help = "print the state at once, also if the daemon is not ready"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1};

static json_t *integers(const uint32_t *x, int n) {
  json_t *list = json_array();
  for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(x[i]));
  return list;
}

static json_t *level_json(const quark_mg_level_t *l) {
  return json_pack("{s:o, s:o, s:i, s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "dims",
                   integers(l->dims, 4), "block", l->block[0] ? integers(l->block, 4) : json_null(),
                   "vectors", (int)l->vectors, "smoother", l->smoother, "pre", (int)l->pre, "post",
                   (int)l->post, "iterations", (int)l->iterations, "orthonormality",
                   ctl_number(l->orthonormality), "galerkin", ctl_number(l->galerkin),
                   "representation", ctl_number(l->representation), "null_residual",
                   ctl_number(l->null_residual), "seconds", ctl_number(l->seconds));
}

static json_t *multigrid_json(const quark_mg_report_t *mg) {
  if (mg->levels == 0) return json_null();
  json_t *levels = json_array();
  for (uint32_t l = 0; l < mg->levels; l++)
    json_array_append_new(levels, level_json(&mg->level[l]));
  return json_pack("{s:o, s:o, s:b, s:i, s:i, s:i, s:o, s:I, s:s, s:b, s:s, s:o, s:o, s:s, s:s}",
                   "levels", levels, "seconds", ctl_number(mg->seconds), "restored", mg->restored,
                   "attempts", (int)mg->attempts, "refined", (int)mg->refined, "rebuilt",
                   (int)mg->rebuilt, "convergence", ctl_number(mg->convergence), "bytes",
                   (json_int_t)mg->bytes, "checkpoint", mg->checkpoint, "checkpoint_written",
                   mg->checkpoint_written, "checkpoint_trouble", mg->checkpoint_trouble,
                   "iterations_per_digit", ctl_number(mg->iterations_per_digit),
                   "iterations_per_digit_first", ctl_number(mg->iterations_per_digit_first),
                   "origin", mg->origin, "origin_trouble", mg->origin_trouble);
}

static json_t *memory_json(const quark_memory_plan_t *plan) {
  if (plan->shares == 0) return json_null();
  json_t *shares = json_object();
  for (uint32_t i = 0; i < plan->shares; i++)
    json_object_set_new(shares, plan->share[i].name,
                        json_integer((json_int_t)plan->share[i].bytes));
  return json_pack("{s:o, s:I, s:I, s:I}", "shares", shares, "serving", (json_int_t)plan->serving,
                   "setup", (json_int_t)plan->setup, "free", (json_int_t)plan->free);
}

static json_t *start_json(const quark_report_t *r) {
  json_t *parts = json_array();
  for (uint32_t i = 0; i < r->setup.start_parts; i++)
    json_array_append_new(parts, json_pack("{s:s, s:o, s:b}", "phase", r->setup.start[i].phase,
                                           "seconds", ctl_number(r->setup.start[i].seconds),
                                           "beside", r->setup.start[i].beside));
  return parts;
}

static json_t *sign_json(const quark_sign_t *s) {
  if (s->order == 0) return json_null();
  return json_pack("{s:I, s:o, s:o, s:s, s:I, s:o, s:o}", "vectors", (json_int_t)s->vectors,
                   "lowest", ctl_number(s->lowest), "bound", ctl_number(s->bound), "kind",
                   s->fractions ? "zolotarev" : "chebyshev", "order", (json_int_t)s->order,
                   "square", ctl_number(s->square), "ginsparg_wilson",
                   ctl_number(s->ginsparg_wilson));
}

static json_t *setup_json(const quark_report_t *r) {
  char digest[24];
  snprintf(digest, sizeof digest, "%016" PRIx64, r->setup.digest);
  json_t *boundary = json_array();
  for (int i = 0; i < 8; i++) json_array_append_new(boundary, ctl_number(r->setup.boundary[i]));
  return json_pack(
      "{s:s, s:s, s:s, s:o, s:s?, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:s, s:s, s:i, s:o, s:o, s:s, "
      "s:o, s:o, s:o, s:b, s:I, s:s, s:s, s:o, s:o}",
      "name", r->setup.name, "gauge", r->setup.gauge, "format", r->setup.format, "dims",
      r->setup.dims[0] ? integers(r->setup.dims, 4) : json_null(), "action",
      *r->setup.action ? r->setup.action : NULL, "parameters",
      ctl_parameters_json(r->setup.parameters), "site_reals", (int)r->setup.site_reals, "columns",
      (int)r->setup.columns, "mass", ctl_number(r->setup.mass), "kappa",
      ctl_kappa_json(r->setup.kappa), "csw", ctl_csw_json(r->setup.kappa, r->setup.csw), "boundary",
      boundary, "solver", r->setup.solver, "precision", r->setup.precision, "link_reals",
      (int)r->setup.link_reals, "plaquette", ctl_number(r->setup.plaquette), "unitarity",
      ctl_number(r->setup.unitarity), "digest", digest, "load_seconds",
      ctl_number(r->setup.load_seconds), "start", start_json(r), "multigrid",
      multigrid_json(&r->setup.mg), "checksum_ignored", r->setup.checksum_ignored, "deflate",
      (json_int_t)r->setup.deflate, "deflate_from", r->setup.deflate_from, "fix_gauge",
      r->setup.fix_gauge, "deflation", ctl_deflation_json(&r->setup.deflation), "sign",
      sign_json(&r->setup.sign));
}

static json_t *engine_json(const quark_report_t *r) {
  return json_pack(
      "{s:I, s:s, s:s, s:i, s:o, s:s, s:i, s:i, s:i, s:I, s:I, s:s, s:o}", "pid",
      (json_int_t)r->engine.pid, "backend", r->engine.backend, "device", r->engine.device, "ranks",
      (int)r->engine.ranks, "grid", r->engine.grid[0] ? integers(r->engine.grid, 4) : json_null(),
      "grid_why", r->engine.grid_why, "restarts", (int)r->engine.restarts, "slots",
      (int)r->engine.slots, "slots_busy", (int)r->engine.slots_busy, "device_bytes",
      (json_int_t)r->engine.device_bytes, "host_bytes", (json_int_t)r->engine.host_bytes,
      "last_error", r->engine.last_error, "memory_plan", memory_json(&r->engine.memory));
}

static json_t *counters_json(const quark_report_t *r) {
  json_t *object = json_object();
#define SET(name) json_object_set_new(object, #name, json_integer((json_int_t)r->counters.name));
  QK_COUNTERS(SET)
#undef SET
  return object;
}

static json_t *replicas_json(const quark_report_t *r) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < r->replicas; i++) {
    const quark_replica_t *of = &r->replica[i];
    json_array_append_new(
        list,
        json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:I, s:s}", "replica", (int)i,
                  "state", quark_state_name(of->state), "phase", of->phase, "device", of->device,
                  "pid", (json_int_t)of->pid, "solved", (json_int_t)of->solved, "slots",
                  (int)of->slots, "slots_busy", (int)of->slots_busy, "restarts", (int)of->restarts,
                  "refreshes", (json_int_t)of->refreshes, "last_error", of->last_error));
  }
  return list;
}

static void print_replicas(const quark_report_t *r) {
  for (uint32_t i = 0; i < r->replicas; i++) {
    const quark_replica_t *of = &r->replica[i];
    printf("replica %-3u %s%s%s   %u of %u slots busy   %" PRIu64 " solved   restarts %u   %s\n", i,
           quark_state_name(of->state), *of->phase ? ": " : "", of->phase, of->slots_busy,
           of->slots, of->solved, of->restarts, of->device);
  }
}

json_t *ctl_status_json(const quark_report_t *r) {
  json_t *engine = engine_json(r);
  if (r->replicas > 0) json_object_set_new(engine, "replicas", replicas_json(r));
  return json_pack("{s:s, s:b, s:s, s:I, s:o, s:o, s:{s:s, s:I, s:I}, s:o, s:o, s:o, s:{s:I, s:I, "
                   "s:s}, s:{s:I, s:I}, s:o, s:s, s:s*}",
                   "state", quark_state_name(r->state), "ready", r->state == QUARK_READY, "version",
                   r->version, "pid", (json_int_t)r->pid, "uptime", ctl_number(r->uptime),
                   "walltime_left", ctl_number(r->walltime_left), "phase", "name", r->phase, "done",
                   (json_int_t)r->phase_done, "total", (json_int_t)r->phase_total, "setup",
                   setup_json(r), "engine", engine, "counters", counters_json(r), "memory", "used",
                   (json_int_t)r->memory_used, "limit", (json_int_t)r->memory_limit, "by",
                   r->memory_by, "eigen_memory", "used", (json_int_t)r->eigen_used, "limit",
                   (json_int_t)r->eigen_limit, "occupancy", ctl_occupancy_json(r), "trouble",
                   r->trouble, "set_aside", *r->set_aside ? r->set_aside : NULL);
}

/* "1" or "exp(2 pi i 0.25)" */
static void print_phase(const double z[2]) {
  if (z[1] == 0)
    printf(" %g", z[0]);
  else
    printf(" exp(2 pi i %g)", atan2(z[1], z[0]) / (2 * acos(-1)));
}

/* As it was given; of mass and kappa also the other one. */
static void print_operator(const quark_report_t *r) {
  char text[CTL_OPERATOR_TEXT];
  const char *given = strstr(r->setup.parameters, "kappa=");
  const bool by_kappa =
      !*r->setup.action || (given && (given == r->setup.parameters || given[-1] == ';'));
  printf("operator    %s", ctl_operator_text(r->setup.action, r->setup.parameters, r->setup.kappa,
                                             r->setup.csw, CTL_OPERATOR_LINE, text));
  if (r->setup.kappa != 0)
    printf("   (%s %.10g)", by_kappa ? "mass" : "kappa", by_kappa ? r->setup.mass : r->setup.kappa);
}

static void print_start(const quark_report_t *r, bool beside) {
  const char *before = beside ? "; beside" : ":";
  for (uint32_t i = 0; i < r->setup.start_parts; i++) {
    if (r->setup.start[i].beside != beside) continue;
    printf("%s %s %.2f", before, r->setup.start[i].phase, r->setup.start[i].seconds);
    before = ",";
  }
}

static void print_setup(const quark_report_t *r) {
  printf("setup       %s\n", r->setup.name);
  printf("gauge       %s\n", r->setup.gauge);
  if (r->setup.dims[0]) {
    printf("lattice     %u x %u x %u x %u   (%s)\n", r->setup.dims[0], r->setup.dims[1],
           r->setup.dims[2], r->setup.dims[3], r->setup.format);
    printf("plaquette   %.15g   unitarity %.2g   digest %016" PRIx64 "\n", r->setup.plaquette,
           r->setup.unitarity, r->setup.digest);
  }
  if (*r->setup.fix_gauge) printf("fixed       %s\n", r->setup.fix_gauge);
  if (r->setup.checksum_ignored) printf("checksum    that of the gauge file is ignored\n");
  print_operator(r);
  printf("   boundary");
  for (int mu = 0; mu < 4; mu++) print_phase(&r->setup.boundary[2 * mu]);
  printf("\nsolver      %s, %s inside", r->setup.solver, r->setup.precision);
  if (r->setup.link_reals) printf(", links as %u reals", r->setup.link_reals);
  printf("\n");
  if (isnan(r->setup.load_seconds)) return;
  printf("start       %.2f s", r->setup.load_seconds);
  print_start(r, false);
  print_start(r, true);
  printf("\n");
}

/* A figure, or a dash where it was not measured. */
static void print_figure(double x, int width) {
  if (isnan(x))
    printf(" %*s", width, "-");
  else
    printf(" %*.2g", width, x);
}

static void print_extents(const uint32_t x[4]) {
  char text[48] = "-";
  if (x[0]) snprintf(text, sizeof text, "%ux%ux%ux%u", x[0], x[1], x[2], x[3]);
  printf(" %-14s", text);
}

static void print_level(int number, const quark_mg_level_t *l) {
  printf("  %d    ", number);
  print_extents(l->dims);
  print_extents(l->block);
  if (l->vectors)
    printf(" %7u %-10s %2u+%-2u", l->vectors, l->smoother, l->pre, l->post);
  else
    printf(" %7s %-10s %5s", "-", "-", "");
  if (l->iterations)
    printf(" %3u", l->iterations);
  else
    printf("   -");
  print_figure(l->orthonormality, 8);
  print_figure(l->galerkin, 8);
  print_figure(l->representation, 8);
  print_figure(l->null_residual, 8);
  printf(" %7.2f\n", l->seconds);
}

static void print_multigrid(const quark_mg_report_t *mg) {
  if (mg->levels == 0) return;
  printf("multigrid   %s in %.2f s", mg->restored ? "restored" : "set up", mg->seconds);
  if (mg->attempts > 1) printf(" at the %u. attempt", mg->attempts);
  if (!isnan(mg->convergence)) printf("   residual x %.2g an iteration", mg->convergence);
  printf("   %.1f MiB   refined %u   rebuilt %u\n", (double)mg->bytes / 1048576, mg->refined,
         mg->rebuilt);
  printf("  level lattice        aggregates     vectors smoother   steps gcr"
         "   P+P-1   PMP-Mc  missing    |Mv|  seconds\n");
  for (uint32_t l = 0; l < mg->levels; l++) print_level((int)l, &mg->level[l]);
  if (*mg->origin) printf("  %s\n", mg->origin);
  if (*mg->origin_trouble) printf("  %s\n", mg->origin_trouble);
  if (!isnan(mg->iterations_per_digit_first)) {
    printf("  %.2f outer iterations a digit when new", mg->iterations_per_digit_first);
    if (!isnan(mg->iterations_per_digit)) printf(", %.2f lately", mg->iterations_per_digit);
    printf("\n");
  }
  if (*mg->checkpoint)
    printf("checkpoint  %s%s\n", mg->checkpoint, mg->checkpoint_written ? "" : "   (not written)");
  if (*mg->checkpoint_trouble) printf("checkpoint  %s\n", mg->checkpoint_trouble);
}

static void print_sign(const quark_sign_t *s) {
  if (s->order == 0) return;
  printf("sgn(H)      %u vectors, |h| = %.4g to %.4g   %s %u   sgn(H)^2 = 1 to %.2g, "
         "Ginsparg-Wilson to %.2g\n",
         s->vectors, s->lowest, s->bound,
         s->fractions ? "partial fractions" : "polynomial of order", s->order, s->square,
         s->ginsparg_wilson);
}

static void print_plan(const quark_memory_plan_t *plan) {
  if (plan->shares == 0) return;
  printf("plan        %.1f MiB on each device:", (double)plan->serving / 1048576);
  for (uint32_t i = 0; i < plan->shares; i++)
    printf("%s %s %.1f", i ? "," : "", plan->share[i].name, (double)plan->share[i].bytes / 1048576);
  printf("; during setup %.1f; free %.1f\n", (double)plan->setup / 1048576,
         (double)plan->free / 1048576);
}

static void print_grid(const quark_report_t *r) {
  const uint32_t *g = r->engine.grid;
  if (*r->engine.grid_why)
    printf("grid        %ux%ux%ux%u   %s\n", g[0], g[1], g[2], g[3], r->engine.grid_why);
}

static void print_text(const quark_report_t *r) {
  printf("state       %s", quark_state_name(r->state));
  if (*r->phase) printf("   %s: %" PRIu64 " of %" PRIu64, r->phase, r->phase_done, r->phase_total);
  printf("\ndaemon      %s   pid %" PRIu64 "   up %.0f s", r->version, r->pid, r->uptime);
  if (!isnan(r->walltime_left)) printf("   walltime left %.0f s", r->walltime_left);
  printf("\n");
  if (*r->trouble) printf("trouble     %s\n", r->trouble);
  print_setup(r);
  print_multigrid(&r->setup.mg);
  if (r->setup.deflation.vectors > 0) {
    printf("deflation   ");
    ctl_deflation_print(&r->setup.deflation);
  }
  print_sign(&r->setup.sign);
  printf("engine      %s   %s   %u rank%s   pid %" PRIu64 "   restarts %u\n", r->engine.backend,
         r->engine.device, r->engine.ranks, r->engine.ranks == 1 ? "" : "s", r->engine.pid,
         r->engine.restarts);
  print_grid(r);
  print_replicas(r);
  if (*r->set_aside) printf("set aside   %s\n", r->set_aside);
  if (*r->engine.last_error) printf("last error  %s\n", r->engine.last_error);
  printf("slots       %u of %u busy   queued %" PRIu64 "   results held %" PRIu64 "\n",
         r->engine.slots_busy, r->engine.slots, r->counters.queued, r->counters.held);
  ctl_occupancy_print(r);
  printf("solved      %" PRIu64 " converged   %" PRIu64 " failed   %" PRIu64 " cancelled\n",
         r->counters.converged, r->counters.failed, r->counters.cancelled);
  printf("kept        %" PRIu64 " solutions   %.1f MiB   %" PRIu64 " contractions made\n",
         r->counters.kept, (double)r->counters.kept_bytes / 1048576, r->counters.contracted);
  printf("memory      %.1f of %.1f MiB for fields   engine %.1f MiB   device %.1f MiB\n",
         (double)r->memory_used / 1048576, (double)r->memory_limit / 1048576,
         (double)r->engine.host_bytes / 1048576, (double)r->engine.device_bytes / 1048576);
  if (*r->memory_by) printf("limited by  %s\n", r->memory_by);
  if (r->eigen_used > 0)
    printf("eigen       %.1f of %.1f MiB for eigenvectors\n", (double)r->eigen_used / 1048576,
           (double)r->eigen_limit / 1048576);
  print_plan(&r->engine.memory);
}

int ctl_status(int argc, char **argv) {
  static const char about[] =
      "Waits until the daemon is ready to accept work, then prints its state.\v"
      "Exit codes: 69 the daemon cannot be reached, 75 it did not become ready in time.";
  options_t o = {0};
  ctl_common_init(&o.common);
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  quark_connection_t *conn;
  quark_report_t report;
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  quark_setup_t setup[QK_SETUPS_MAX];
  uint32_t count = 0;
  quark_error_t err;
  code = ctl_report(&o.common, conn, o.any, &report);
  if (code == 0 && quark_setup_list(conn, setup, QK_SETUPS_MAX, &count, &err) != QUARK_OK)
    code = ctl_fail(&err);
  quark_close(conn);
  if (code) return code;
  if (count > QK_SETUPS_MAX) count = QK_SETUPS_MAX;
  if (o.common.json) {
    json_t *object = ctl_status_json(&report);
    json_object_set_new(object, "setups", ctl_setups_json(setup, count));
    return ctl_print(object);
  }
  print_text(&report);
  if (count > 1) ctl_setups_print(setup, count);
  return 0;
}
