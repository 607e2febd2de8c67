#include "daemon/front/view/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/version.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/state/spill.h"
#include "daemon/front/view/report.h"

static const char *const PHASES[QK_PHASES] = {"upload", "queue", "solve", "fetch"};

#define COUNT(array) ((int)(sizeof array / sizeof *array))

/* ---- text ---------------------------------------------------------------------------------- */

static void head(FILE *out, const char *name, const char *type, const char *help) {
  fprintf(out, "# HELP quarkd_%s %s\n# TYPE quarkd_%s %s\n", name, help, name, type);
}

/* label: "" or a pair with a comma behind it. */
static void histogram(FILE *out, const char *name, const char *label, const qk_histogram_t *h,
                      const qk_bounds_t *bounds) {
  const int n = bounds->n;
  uint64_t below = 0;
  for (int i = 0; i < n; i++) {
    below += h->count[i];
    fprintf(out, "quarkd_%s_bucket{%sle=\"%g\"} %" PRIu64 "\n", name, label, bounds->at[i], below);
  }
  below += h->count[n];
  fprintf(out, "quarkd_%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, label, below);
  const char *open = label[0] ? "{" : "", *close = label[0] ? "}" : "";
  int length = label[0] ? (int)strlen(label) - 1 : 0;
  fprintf(out, "quarkd_%s_sum%s%.*s%s %.17g\n", name, open, length, label, close, h->sum);
  fprintf(out, "quarkd_%s_count%s%.*s%s %" PRIu64 "\n", name, open, length, label, close, below);
}

/* ---- of the daemon ------------------------------------------------------------------------- */

/* What the values are taken from. */
typedef struct daemon {
  const qk_service_t *service;
  Quark__CounterReport count;
} daemon_t;

/* NaN where there is none. */
#define VALUE(name, value)                                                                         \
  static double name(const daemon_t *d) {                                                          \
    return (double)(value);                                                                        \
  }
VALUE(up_seconds, qk_service_now(d->service) - d->service->started)
VALUE(walltime_left,
      isfinite(qk_service_left(d->service)) ? fmax(0, qk_service_left(d->service)) : NAN)
VALUE(ready, qk_setup_state(d->service->primary) == QK_SUPERVISOR_READY)
VALUE(trouble, qk_journal_trouble(d->service->journal) != NULL)
VALUE(memory_used, d->service->budget.used)
VALUE(memory_limit, d->service->budget.limit)
VALUE(eigen_used, qk_eigen_memory(d->service))
VALUE(eigen_limit, d->service->eigen_limit)
VALUE(spilled, qk_spill_bytes(d->service->spill))
VALUE(redone, d->service->count.redone)
VALUE(journal_loop, d->service->journal ? qk_journal_times(d->service->journal)->loop : 0)
VALUE(journal_writer, d->service->journal ? qk_journal_times(d->service->journal)->writer : 0)
VALUE(unsaved, d->service->jobs.unsaved)
VALUE(oldest_unsaved, qk_upload_oldest(d->service))
#define COUNTER(name) VALUE(count_##name, d->count.name)
COUNTER(sessions)
COUNTER(requests)
COUNTER(held)
COUNTER(kept_bytes)
COUNTER(accepted)
COUNTER(rejected)
COUNTER(dropped)
COUNTER(denied)
COUNTER(refused)
COUNTER(converged)
COUNTER(failed)
COUNTER(cancelled)
COUNTER(contracted)
COUNTER(iterations)
COUNTER(applications)
COUNTER(bytes_in)
COUNTER(bytes_out)
#undef COUNTER
#undef VALUE

/* Samples of one name stand together; the first has its head. */
static const struct {
  const char *name, *labels, *type, *help;
  double (*value)(const daemon_t *daemon);
} DAEMON[] = {
    {"up_seconds", "", "gauge", "Time since the start.", up_seconds},
    {"walltime_left_seconds", "", "gauge", "Time until the walltime ends.", walltime_left},
    {"ready", "", "gauge", "1 where work can be done.", ready},
    {"journal_trouble", "", "gauge", "1 if the journal cannot be written: no new work is accepted.",
     trouble},
    {"sessions", "", "gauge", "Clients.", count_sessions},
    {"requests", "", "gauge", "Requests that the daemon holds.", count_requests},
    {"rhs_held", "", "gauge", "Results that are not acknowledged.", count_held},
    {"memory_used_bytes", "", "gauge", "Shared memory of uploads and results.", memory_used},
    {"memory_limit_bytes", "", "gauge", "Its limit.", memory_limit},
    {"eigen_used_bytes", "", "gauge", "Host memory of eigenvectors that setups keep.", eigen_used},
    {"eigen_limit_bytes", "", "gauge", "Its limit.", eigen_limit},
    {"kept_bytes", "", "gauge", "Solutions kept by handle.", count_kept_bytes},
    {"spilled_bytes", "", "gauge", "Solutions that are on disk instead of in memory.", spilled},
    {"journal_seconds_total", "{where=\"loop\"}", "counter",
     "Time with the journal: of the loop, and of the thread that writes it.", journal_loop},
    {"journal_seconds_total", "{where=\"writer\"}", NULL, NULL, journal_writer},
    {"spool_waiting", "", "gauge", "Uploads that are to be on disk and are not there yet.",
     unsaved},
    {"spool_oldest_seconds", "", "gauge", "How long the oldest of them has waited.",
     oldest_unsaved},
    {"requests_accepted_total", "", "counter", "Requests accepted.", count_accepted},
    {"requests_rejected_total", "", "counter", "Requests rejected.", count_rejected},
    {"sessions_dropped_total", "", "counter", "Clients dropped for an error.", count_dropped},
    {"messages_denied_total", "", "counter", "Messages that their sender's role does not allow.",
     count_denied},
    {"connections_refused_total", "", "counter", "Connections whose key is not authorised.",
     count_refused},
    {"rhs_ended_total", "{how=\"converged\"}", "counter", "Right-hand sides that have ended.",
     count_converged},
    {"rhs_ended_total", "{how=\"failed\"}", NULL, NULL, count_failed},
    {"rhs_ended_total", "{how=\"cancelled\"}", NULL, NULL, count_cancelled},
    {"rhs_ended_total", "{how=\"contracted\"}", NULL, NULL, count_contracted},
    {"rhs_redone_total", "", "counter",
     "Right-hand sides queued again because their engine was lost.", redone},
    {"iterations_total", "", "counter", "Iterations of all right-hand sides.", count_iterations},
    {"applications_total", "", "counter", "Applications of the operator.", count_applications},
    {"bytes_in_total", "", "counter", "Bytes of fields that came in.", count_bytes_in},
    {"bytes_out_total", "", "counter", "Bytes of fields that went out.", count_bytes_out},
};

/* Doubles hold counts to 2^53 as they are. */
static void write_daemon(FILE *out, const qk_service_t *service) {
  daemon_t daemon = {.service = service};
  quark__counter_report__init(&daemon.count);
  qk_report_counters(service, &daemon.count);
  for (int i = 0; i < COUNT(DAEMON); i++) {
    const double value = DAEMON[i].value(&daemon);
    if (isnan(value)) continue;
    if (DAEMON[i].type) head(out, DAEMON[i].name, DAEMON[i].type, DAEMON[i].help);
    fprintf(out, "quarkd_%s%s %.17g\n", DAEMON[i].name, DAEMON[i].labels, value);
  }
}

/* ---- of each setup ------------------------------------------------------------------------- */

static const qk_engine_info_t *engine(const qk_setup_t *m) {
  return qk_setup_info(m);
}
static const Quark__MultigridReport *multigrid(const qk_setup_t *m) {
  return engine(m)->multigrid;
}

/* The value of a family; NaN where this setup has none. */
#define VALUE(name, value)                                                                         \
  static double name(const qk_setup_t *m) {                                                        \
    return (double)(value);                                                                        \
  }
VALUE(is_ready, qk_setup_serves(m) && qk_setup_state(m) == QK_SUPERVISOR_READY)
VALUE(is_default, m == m->service->primary)
VALUE(queued, qk_report_queued(m))
VALUE(running, qk_setup_running(m))
VALUE(restarts, qk_setup_restarts(m))
VALUE(adopted, qk_supervisor_adopted(qk_setup_lead(m)->supervisor))
VALUE(steps, engine(m)->steps)
VALUE(slots, qk_setup_slots(m))
VALUE(device_bytes, engine(m)->device_bytes)
VALUE(host_bytes, engine(m)->host_bytes)
VALUE(saturated, qk_setup_occupancy(m).saturated)
VALUE(solving, qk_setup_occupancy(m).solving)
VALUE(moving, qk_setup_occupancy(m).moving)
VALUE(idle, qk_setup_occupancy(m).idle)
VALUE(load_seconds, engine(m)->load_seconds)
VALUE(sign_square, engine(m)->sign ? engine(m)->sign->square : NAN)
VALUE(sign_bound, engine(m)->sign ? engine(m)->sign->bound : NAN)
VALUE(mg_seconds, multigrid(m) ? multigrid(m)->seconds : NAN)
VALUE(mg_refined, multigrid(m) ? multigrid(m)->refined : NAN)
VALUE(mg_rebuilt, multigrid(m) ? multigrid(m)->rebuilt : NAN)
#undef VALUE

/* Samples of one name stand together; the first has its head. */
static const struct {
  const char *name, *label, *type, *help;
  double (*value)(const qk_setup_t *setup);
} FAMILIES[] = {
    {"setup_ready", "", "gauge", "1 if the setup accepts work.", is_ready},
    {"setup_default", "", "gauge", "1 for the setup of requests that name none.", is_default},
    {"rhs_queued", "", "gauge", "Right-hand sides that wait for a slot.", queued},
    {"rhs_running", "", "gauge", "Right-hand sides in slots, and contractions.", running},
    {"engine_restarts_total", "", "counter", "Engines that were lost and started again.", restarts},
    {"engine_adopted", "", "gauge", "1 if the running engine was taken over from a killed daemon.",
     adopted},
    {"engine_steps_total", "", "counter", "Outer steps of the running engine.", steps},
    {"slots", "", "gauge", "Right-hand sides that are solved together.", slots},
    {"engine_memory_bytes", ",where=\"device\"", "gauge", "What the engine holds.", device_bytes},
    {"engine_memory_bytes", ",where=\"host\"", "gauge", NULL, host_bytes},
    {"saturated_seconds_total", "", "counter", "Time in which right-hand sides waited for slots.",
     saturated},
    {"slot_seconds_total", ",state=\"solving\"", "counter", "Slots in that time.", solving},
    {"slot_seconds_total", ",state=\"moving\"", "counter", NULL, moving},
    {"slot_seconds_total", ",state=\"idle\"", "counter", NULL, idle},
    {"load_seconds", "", "gauge", "From LOAD to READY.", load_seconds},
    {"multigrid_setup_seconds", "", "gauge", "Time of the multigrid setup or its restore.",
     mg_seconds},
    {"multigrid_refined_total", "", "counter", "Refinements while serving.", mg_refined},
    {"multigrid_rebuilt_total", "", "counter", "Multigrid setups rebuilt while serving.",
     mg_rebuilt},
    {"sign_square_error", "", "gauge", "|sgn(H)^2 f - f| / |f| of noise, of overlap fermions.",
     sign_square},
    {"sign_bound", "", "gauge", "|h| of the first eigenvector of H that is not projected.",
     sign_bound},
};

/* Words of parameters may have any printable letter. */
static void write_label(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', out);
    fputc(*text, out);
  }
}

static void write_operators(FILE *out, const qk_service_t *service) {
  head(out, "setup_info", "gauge", "Action of the setup, with its parameters as they were given.");
  for (int k = 0; k < QK_SETUPS_MAX; k++) {
    const qk_setup_t *setup = service->setup[k];
    char text[QK_OPERATOR_TEXT];
    if (!setup || setup->ending) continue;
    qk_values_text(&setup->settings.op, QK_TEXT_GIVEN, text);
    fprintf(out, "quarkd_setup_info{setup=\"%s\",action=\"%s\",operator=\"", setup->site_name,
            setup->shown.action);
    write_label(out, text);
    fputs("\"} 1\n", out);
  }
}

/* What load_seconds went on. */
static void write_starts(FILE *out, const qk_service_t *service) {
  head(out, "start_seconds", "gauge", "Parts of load_seconds, and what ran beside them.");
  for (int k = 0; k < QK_SETUPS_MAX; k++) {
    const qk_setup_t *setup = service->setup[k];
    const qk_start_clocks_t *start = setup && !setup->ending ? &engine(setup)->start : NULL;
    for (int i = 0; start && i < start->n; i++) {
      const qk_start_clock_t *c = &start->clock[i];
      fprintf(out, "quarkd_start_seconds{setup=\"%s\",phase=\"", setup->site_name);
      write_label(out, c->phase);
      fprintf(out, "\",beside=\"%d\"} %.17g\n", c->beside, c->seconds);
    }
  }
}

static void write_setups(FILE *out, const qk_service_t *service) {
  for (int i = 0; i < COUNT(FAMILIES); i++) {
    bool headed = FAMILIES[i].help == NULL;
    for (int k = 0; k < QK_SETUPS_MAX; k++) {
      const qk_setup_t *setup = service->setup[k];
      const double value = setup && !setup->ending ? FAMILIES[i].value(setup) : NAN;
      if (isnan(value)) continue;
      if (!headed) head(out, FAMILIES[i].name, FAMILIES[i].type, FAMILIES[i].help);
      headed = true;
      fprintf(out, "quarkd_%s{setup=\"%s\"%s} %.17g\n", FAMILIES[i].name, setup->site_name,
              FAMILIES[i].label, value);
    }
  }
}

/* ---- of each replica of setups that have several --------------------------------------------- */

static double replica_ready(const qk_replica_t *r) {
  return qk_setup_serves(r->setup) && qk_replica_is_ready(r);
}
static double replica_slots(const qk_replica_t *r) {
  return qk_replica_is_ready(r) ? qk_supervisor_info(r->supervisor)->slots : 0;
}
static double replica_busy(const qk_replica_t *r) {
  return qk_replica_busy(r);
}
static double replica_solved(const qk_replica_t *r) {
  return (double)r->solved;
}
static double replica_restarts(const qk_replica_t *r) {
  return qk_supervisor_restarts(r->supervisor);
}

static const struct {
  const char *name, *type, *help;
  double (*value)(const qk_replica_t *replica);
} REPLICAS[] = {
    {"replica_ready", "gauge", "1 if this engine of a setup with several serves.", replica_ready},
    {"replica_slots", "gauge", "Right-hand sides that it solves together.", replica_slots},
    {"replica_slots_busy", "gauge", "Its slots in use.", replica_busy},
    {"replica_solved_total", "counter", "Right-hand sides that it has solved.", replica_solved},
    {"replica_restarts_total", "counter", "How often it was lost and started again.",
     replica_restarts},
};

static void write_replicas(FILE *out, const qk_service_t *service) {
  for (int i = 0; i < COUNT(REPLICAS); i++) {
    bool headed = false;
    for (int k = 0; k < QK_SETUPS_MAX; k++) {
      const qk_setup_t *setup = service->setup[k];
      if (!setup || setup->ending || setup->replicas == 1) continue;
      if (!headed) head(out, REPLICAS[i].name, REPLICAS[i].type, REPLICAS[i].help);
      headed = true;
      QK_EACH_REPLICA(r, setup)
      fprintf(out, "quarkd_%s{setup=\"%s\",replica=\"%d\"} %.17g\n", REPLICAS[i].name,
              setup->site_name, r->number, REPLICAS[i].value(r));
    }
  }
}

static void write_histograms(FILE *out, const qk_stats_t *m) {
  head(out, "rhs_seconds", "histogram", "Time of a right-hand side in each phase.");
  for (int p = 0; p < QK_PHASES; p++) {
    char label[32];
    snprintf(label, sizeof label, "phase=\"%s\",", PHASES[p]);
    histogram(out, "rhs_seconds", label, &m->seconds[p], &QK_STATS_SECONDS);
  }
  head(out, "rhs_iterations", "histogram", "Iterations of a solve.");
  histogram(out, "rhs_iterations", "", &m->iterations, &QK_STATS_ITERATIONS);
  head(out, "rhs_residual", "histogram", "|b - M x| / |b| of a solve, recomputed in double.");
  histogram(out, "rhs_residual", "", &m->residual, &QK_STATS_RESIDUALS);
}

char *qk_metrics_text(const qk_service_t *service) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out) return NULL;
  head(out, "info", "gauge", "Version and solver.");
  fprintf(out, "quarkd_info{version=\"%s\",solver=\"%s\"} 1\n", qk_version(),
          qk_setup_solver(service->primary));
  write_daemon(out, service);
  write_operators(out, service);
  write_setups(out, service);
  write_replicas(out, service);
  write_starts(out, service);
  write_histograms(out, &service->stats);
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}
