#include "client/cli/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/analysis/smearing.h"
#include "client/cli/operator.h"

enum { RETRY_MS = 500, LOOK_MS = 200 };

/* After a refusal: true if the call may succeed now, after a pause. */
static bool wait_for_room(const quark_error_t *err, double give_up) {
  if (!err->retryable || err->code == QUARK_TIMEOUT || err->code == QUARK_SHUTTING_DOWN ||
      ctl_seconds() > give_up || ctl_interrupted())
    return false;
  const uint32_t ms = err->retry_after_ms ? err->retry_after_ms : RETRY_MS;
  const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&t, NULL);
  return true;
}

/* Waits until n right-hand sides of the request have ended. */
static int wait_for_all(quark_connection_t *conn, uint64_t request, int64_t n,
                        ctl_progress_t *progress, quark_result_t *result) {
  for (int64_t ended = 0; ended < n;) {
    quark_event_t event;
    quark_error_t err;
    if (ctl_interrupted()) {
      ctl_complain("interrupted: %lld of %lld right-hand sides had ended", (long long)ended,
                   (long long)n);
      return EXIT_AGAIN;
    }
    if (quark_event_next(conn, LOOK_MS, &event, &err) != QUARK_OK) return ctl_fail(&err);
    if (event.request != request) continue;
    if (event.kind == QUARK_EVENT_RESULT) {
      result[event.result.rhs] = event.result;
      ended++;
    }
    if (progress && (event.kind == QUARK_EVENT_RESULT || event.kind == QUARK_EVENT_PROGRESS))
      ctl_progress_show(progress, &event);
  }
  return 0;
}

/* Prints the first result that is not OK, and returns its exit code. */
static int check_results(const char *what, int64_t n, const quark_result_t *result) {
  for (int64_t i = 0; i < n; i++) {
    const quark_result_t *r = &result[i];
    if (r->status == QUARK_OK) continue;
    char why[CTL_RESULT_MAX];
    ctl_complain("%s %lld: %s", what, (long long)i, ctl_result_text(r, why));
    return ctl_exit_code(r->status);
  }
  return 0;
}

int ctl_keep(quark_connection_t *conn, const quark_params_t *params, int64_t n,
             const quark_column_t *columns, double give_up, ctl_progress_t *progress,
             uint64_t *request, quark_result_t *result) {
  quark_params_t p = *params;
  quark_error_t err;
  uint64_t number;
  p.nrhs = (uint32_t)n * (p.nmass > 0 ? p.nmass : 1);
  p.column = columns;
  p.keep = true;
  while (quark_submit(conn, &p, &number, NULL, &err) != QUARK_OK)
    if (!wait_for_room(&err, give_up)) return ctl_fail(&err);
  int code = wait_for_all(conn, number, p.nrhs, progress, result);
  if (code == 0) code = check_results("column", p.nrhs, result);
  if (code)
    quark_release(conn, number, NULL);
  else
    *request = number;
  return code;
}

/* kappa 0: by the mass. */
static void name_quark(qk_corrmeta_t *meta, double kappa, double mass, int32_t flavour) {
  const char *other = flavour < 0 ? ",flavour=-1" : "";
  snprintf(meta->quark, sizeof meta->quark, "%s=%.10g%s", kappa == 0 ? "mass" : "kappa",
           kappa == 0 ? mass : kappa, other);
}

void ctl_name_piece(const quark_report_t *report, const char *gauge, const char *label,
                    int32_t flavour, qk_corrmeta_t *meta) {
  const char *slash = strrchr(gauge, '/');
  snprintf(meta->config, sizeof meta->config, "%.127s", slash ? slash + 1 : gauge);
  name_quark(meta, report->setup.kappa, report->setup.mass, flavour);
  snprintf(meta->label, sizeof meta->label, "%s", label);
}

bool ctl_can_measure(const qk_source_t *source) {
  return !qk_source_is_noise(source) && !qk_source_has_flavour(source);
}

void ctl_measurement_describe(const ctl_measurement_t *what, const quark_report_t *report,
                              qk_corrmeta_t *meta) {
  const quark_column_t *place = &what->source.place;
  const int32_t origin[4] = {place->x, place->y, place->z, place->t};
  memcpy(meta->origin, origin, sizeof origin);
  for (int mu = 0; mu < 4; mu++) meta->dims[mu] = (int32_t)report->setup.dims[mu];
  snprintf(meta->source, sizeof meta->source, "%s", what->text);
  qk_smearing_print(&what->params.smear, meta->smear);
  qk_smearing_print(&what->sink, meta->sink);
  qk_smearing_print_links(&what->params.smear, meta->links);
  *meta->channels = 0;
  for (int i = 0, used = 0; i < what->channels->n; i++)
    used += snprintf(meta->channels + used, sizeof meta->channels - (size_t)used, "%s%s",
                     i ? " " : "", qk_channels_name(what->channels, i));
  ctl_operator_canonical(report, meta->action);
  meta->site_reals = (int32_t)report->setup.site_reals;
  meta->kappa = ctl_operator_kappa(report);
  meta->mass = report->setup.mass;
  meta->csw = ctl_operator_csw(report);
  memcpy(meta->boundary, report->setup.boundary, sizeof meta->boundary);
  meta->plaquette = report->setup.plaquette;
  snprintf(meta->gauge, sizeof meta->gauge, "%s", report->setup.gauge);
  snprintf(meta->digest, sizeof meta->digest, "%016" PRIx64, report->setup.digest);
  snprintf(meta->normalisation, sizeof meta->normalisation, "%s",
           ctl_normalisation(what->params.normalisation));
  meta->flavour = ctl_operator_flavour(report, what->params.flavour);
  meta->tolerance = ctl_asked(what->params.tol);
  meta->tolerance_abs = ctl_asked(what->params.tol_abs);
  meta->tolerance_hq = ctl_asked(what->params.tol_hq);
}

/* A measurement under way. */
typedef struct run {
  quark_connection_t *conn;
  const ctl_measurement_t *what;
  const qk_corrmeta_t *meta;
  ctl_progress_t *progress;
  const char *setup; /* of all its requests, whatever becomes the default meanwhile */
  bool colour;
  int64_t n; /* columns of a mass */
  quark_column_t *column;
  quark_result_t *result; /* of the columns of all masses */
  uint64_t propagator;    /* of the source as it is */
  double complex *raw[QK_MASSES_MAX];
  double begun;
} run_t;

static size_t raw_bytes(const run_t *run) {
  return (size_t)qk_channels_numbers(run->what->channels) * run->what->nmom *
         (size_t)run->meta->dims[3] * sizeof **run->raw;
}

/* Of the solves of its source. */
static quark_params_t params_of(const run_t *run) {
  quark_params_t params = run->what->params;
  params.source = run->what->source.kind;
  if (*run->setup) params.setup = run->setup;
  return params;
}

static unsigned shift_of(const run_t *run, uint32_t raw) {
  return run->colour ? qk_channel_shift(&run->what->channels->raw[raw]) : 0;
}

/* Waits for a contraction and fetches its numbers. */
static int fetch(quark_connection_t *conn, uint64_t request, void *to, size_t bytes) {
  quark_result_t result;
  quark_error_t err;
  int code = wait_for_all(conn, request, 1, NULL, &result);
  if (code == 0) code = check_results("contraction", 1, &result);
  if (code == 0 && quark_download(conn, request, 0, to, bytes, &err) != QUARK_OK)
    code = ctl_fail(&err);
  return code;
}

/* The channels of the contraction, from columns `first` on; with b beside a, if it is not 0. */
static int contract(const run_t *run, uint64_t a, uint64_t b, int64_t first, uint32_t nchannel,
                    const quark_channel_t *channel, double complex *to, size_t want) {
  const ctl_measurement_t *what = run->what;
  quark_contraction_t c;
  quark_error_t err;
  uint64_t request, bytes;
  quark_contraction_init(&c);
  c.request_a = a;
  c.request_b = b;
  c.first_a = (uint32_t)first;
  c.first_b = b ? (uint32_t)first : 0;
  c.nchannel = nchannel;
  c.channel = channel;
  c.nmomentum = what->nmom;
  c.momentum = what->momentum;
  memcpy(c.origin, run->meta->origin, sizeof c.origin);
  c.sink = what->sink;
  c.deadline_ms = what->params.deadline_ms;
  c.priority = what->params.priority;
  const double give_up = ctl_seconds() + what->patience;
  while (quark_contract(run->conn, &c, &request, &bytes, &err) != QUARK_OK)
    if (!wait_for_room(&err, give_up)) return ctl_fail(&err);
  int code = 0;
  if (bytes != want) {
    ctl_complain("correlators of %" PRIu64 " bytes, expected %zu", bytes, want);
    code = EXIT_DATA;
  }
  if (code == 0) code = fetch(run->conn, request, to, want);
  quark_release(run->conn, request, NULL);
  return code;
}

/* Those channels of mass k that have this shift, of the propagator that has it. Where not all have
 * it, each has one number at a time and momentum. */
static int contract_shift(const run_t *run, unsigned shift, uint64_t shifted, uint32_t k) {
  const qk_channels_t *channels = run->what->channels;
  const size_t all = raw_bytes(run), one = (size_t)run->what->nmom * (size_t)run->meta->dims[3];
  quark_channel_t *channel = calloc(channels->nraw, sizeof *channel);
  double complex *found = malloc(all);
  uint32_t n = 0;
  int code = channel && found ? 0 : EXIT_AGAIN;
  for (uint32_t r = 0; r < channels->nraw && code == 0; r++)
    if (shift_of(run, r) == shift) channel[n++] = channels->raw[r];
  const size_t bytes = n == channels->nraw ? all : n * one * sizeof *found;
  if (code)
    ctl_complain("no memory for correlators");
  else
    code = contract(run, shift ? shifted : run->propagator, shift ? run->propagator : 0, k * run->n,
                    n, channel, found, bytes);
  if (code == 0 && n == channels->nraw) memcpy(run->raw[k], found, all);
  for (uint32_t r = 0, i = 0; r < channels->nraw && n < channels->nraw && code == 0; r++)
    if (shift_of(run, r) == shift)
      memcpy(run->raw[k] + r * one, found + one * i++, one * sizeof *found);
  free(channel);
  free(found);
  return code;
}

/* All masses, with one solve of the shifted source for all of them. */
static int measure_shift(run_t *run, unsigned shift) {
  const ctl_measurement_t *what = run->what;
  const uint32_t masses = ctl_measurement_pieces(what);
  const size_t columns = (size_t)run->n * masses;
  quark_params_t params = params_of(run);
  uint64_t shifted = 0;
  int code = 0;
  params.smear.shift = shift;
  if (shift) {
    quark_result_t *result = calloc(columns, sizeof *result);
    code = result ? ctl_keep(run->conn, &params, run->n, run->column,
                             ctl_seconds() + what->patience, run->progress, &shifted, result)
                  : EXIT_AGAIN;
    for (size_t i = 0; i < columns && code == 0; i++) {
      quark_result_t *r = &run->result[i];
      r->true_residual = fmax(r->true_residual, result[i].true_residual);
      if (result[i].iterations > r->iterations) r->iterations = result[i].iterations;
    }
    free(result);
  }
  for (uint32_t k = 0; k < masses && code == 0; k++) code = contract_shift(run, shift, shifted, k);
  if (shifted) quark_release(run->conn, shifted, NULL);
  return code;
}

static bool has_shift(const run_t *run, unsigned shift) {
  for (uint32_t r = 0; r < run->what->channels->nraw; r++)
    if (shift_of(run, r) == shift) return true;
  return false;
}

/* Makes the piece of the results and the raw correlators. */
static int make_piece(const ctl_measurement_t *what, qk_corrmeta_t *meta, int64_t n,
                      const quark_result_t *result, const double complex *raw,
                      qk_corrpiece_t *piece) {
  qk_err_t err = {0};
  double worst = 0;
  uint64_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    worst = fmax(worst, result[i].true_residual);
    if (result[i].iterations > most) most = result[i].iterations;
  }
  meta->residual = worst;
  meta->iterations = most < INT32_MAX ? (int32_t)most : INT32_MAX;
  if (qk_corrpiece_create(meta, what->nmom, piece, &err) != QK_OK) return ctl_fail_file(&err);
  memcpy(piece->momentum, what->momentum, what->nmom * sizeof *piece->momentum);
  qk_channels_evaluate(what->channels, raw, (int)what->nmom, meta->dims[3],
                       meta->boundary[6] + I * meta->boundary[7], piece->c);
  return 0;
}

/* Baryons are means over times before and after the source, which an open boundary makes different,
 * and continue over the edge, which nothing crosses then. */
static int check_open(const ctl_measurement_t *what, const char *action) {
  const char *open = strstr(action, ";open=");
  if (open == NULL) return 0;
  for (uint32_t r = 0; r < what->channels->nraw; r++)
    if (what->channels->raw[r].kind != QUARK_MESON) {
      ctl_complain("--channels: nucleon, nucleon_minus and delta are means over times before and "
                   "after the source, which go over the edge in t: not with an open boundary "
                   "(%.40s); mesons are possible",
                   open + 1);
      return EXIT_DATA;
    }
  return 0;
}

static bool is_of_walls(const ctl_measurement_t *what) {
  for (uint32_t r = 0; r < what->channels->nraw; r++)
    if (!qk_channel_is_of_walls(&what->channels->raw[r])) return false;
  return true;
}

/* Only a warning, since narrow smearing leaves a signal. */
static void warn_of_smearing(const ctl_measurement_t *what) {
  if (what->params.smear.steps == 0 && what->sink.steps == 0) return;
  if (is_of_walls(what)) return;
  ctl_complain("warning: %s: smearing mixes even and odd sites, on which all staggered mesons but "
               "the pion have different signs: the wider the smearing, the more they average to "
               "zero (docs/physics.md)",
               what->params.smear.steps > 0 ? "--smear" : "--smear-sink");
}

/* What there is of colour vectors, and of them alone. */
static int check_colour(const ctl_measurement_t *what, const quark_report_t *report) {
  const qk_shape_t shape = ctl_operator_shape(report);
  const bool colour = qk_shape_is_colour(&shape);
  for (uint32_t r = 0; r < what->channels->nraw; r++) {
    const quark_channel_t *raw = &what->channels->raw[r];
    const bool corner = raw->kind == QUARK_CORNER;
    if (colour ? corner || (raw->kind == QUARK_MESON && qk_channel_shift(raw) <= QK_SHIFT_MAX)
               : !corner && !what->channels->tastes)
      continue;
    if (colour)
      ctl_complain(
          "--channels: setup %s, %s: its fields have colour alone, for which there are local "
          "mesons: pion, a4, a0, rho, rho_t, a1, b1; pions of other tastes: tastes; SPIN-TASTE, "
          "which may differ in x, y and z as g5-gxgt does, not in t; and nucleon_corner",
          report->setup.name, report->setup.action);
    else
      ctl_complain("--channels: setup %s, %s: nucleon_corner and tastes are for fields with colour "
                   "alone; nucleon and pion are those of quarks with spin",
                   report->setup.name, report->setup.action);
    return EXIT_DATA;
  }
  if (colour) warn_of_smearing(what);
  if (!colour || what->source.kind == QUARK_POINT || is_of_walls(what)) return 0;
  ctl_complain("--source=%s: of staggered fermions a wall makes the pion and nucleon_corner; all "
               "other mesons average to zero, as each site would need a sign of its own: they need "
               "a point source",
               what->text);
  return EXIT_DATA;
}

/* The piece of mass k, when its correlators are there. */
static int piece_of(const run_t *run, uint32_t k, qk_corrpiece_t *piece) {
  const ctl_measurement_t *what = run->what;
  const quark_result_t *result = run->result + k * run->n;
  qk_corrmeta_t meta = *run->meta;
  qk_wall_t wall;
  int code = 0;
  if (what->params.nmass > 0) {
    meta.mass = what->params.mass[k];
    ctl_operator_set_mass(meta.mass, meta.action);
    name_quark(&meta, 0, meta.mass, 1);
  }
  meta.seconds = ctl_seconds() - run->begun;
  qk_wall_init(&wall, run->n, meta.dims[3], meta.origin[3]);
  for (int64_t i = 0; i < run->n && code == 0; i++)
    code = ctl_wall_take(&wall, run->conn, i, &result[i]);
  if (code == 0) code = make_piece(what, &meta, run->n, result, run->raw[k], piece);
  if (code == 0)
    piece->wall = wall;
  else
    qk_wall_fini(&wall);
  return code;
}

/* With the propagator of the source as it is. */
static int measure_all(run_t *run, qk_corrpiece_t *piece) {
  uint32_t made = 0;
  int code = 0;
  for (unsigned shift = 0; shift <= QK_SHIFT_MAX && code == 0; shift++)
    if (has_shift(run, shift)) code = measure_shift(run, shift);
  for (; made < ctl_measurement_pieces(run->what) && code == 0; made += code == 0)
    code = piece_of(run, made, &piece[made]);
  for (uint32_t k = 0; k < made && code; k++) qk_corrpiece_fini(&piece[k]);
  return code;
}

/* Whether what is asked for is defined for what the daemon has. */
static int check(const ctl_measurement_t *what, const quark_report_t *report, const char *action) {
  int code = ctl_operator_check_single(report, "contractions");
  if (code == 0) code = check_open(what, action);
  return code ? code : check_colour(what, report);
}

uint32_t ctl_measurement_pieces(const ctl_measurement_t *what) {
  return what->params.nmass > 0 ? what->params.nmass : 1;
}

int64_t ctl_measurement_columns(const ctl_measurement_t *what, const quark_report_t *report) {
  const qk_shape_t shape = ctl_operator_shape(report);
  const run_t run = {.what = what, .colour = qk_shape_is_colour(&shape)};
  int64_t solves = 1;
  for (unsigned shift = 1; shift <= QK_SHIFT_MAX; shift++) solves += has_shift(&run, shift);
  return solves * ctl_measurement_pieces(what) * report->setup.columns;
}

static int reserve(run_t *run) {
  const uint32_t masses = ctl_measurement_pieces(run->what);
  bool enough = (run->result = calloc((size_t)run->n * masses, sizeof *run->result)) != NULL;
  for (uint32_t k = 0; k < masses; k++) enough &= (run->raw[k] = malloc(raw_bytes(run))) != NULL;
  if (enough) return 0;
  ctl_complain("no memory for correlators of %zu bytes", masses * raw_bytes(run));
  return EXIT_AGAIN;
}

int ctl_measure(quark_connection_t *conn, const quark_report_t *report,
                const ctl_measurement_t *what, const qk_corrmeta_t *names, ctl_progress_t *progress,
                qk_corrpiece_t *piece) {
  const qk_shape_t shape = ctl_operator_shape(report);
  qk_corrmeta_t meta = *names;
  run_t run = {.conn = conn,
               .what = what,
               .meta = &meta,
               .progress = progress,
               .setup = report->setup.name,
               .colour = qk_shape_is_colour(&shape),
               .begun = ctl_seconds()};
  ctl_measurement_describe(what, report, &meta);
  int code = check(what, report, meta.action);
  if (code == 0) code = ctl_columns(&what->source, what->text, report, &run.n, &run.column);
  if (code) return code;
  const quark_params_t params = params_of(&run);
  code = reserve(&run);
  if (code == 0)
    code = ctl_keep(conn, &params, run.n, run.column, run.begun + what->patience, progress,
                    &run.propagator, run.result);
  if (code == 0) {
    code = measure_all(&run, piece);
    quark_release(conn, run.propagator, NULL);
  }
  for (uint32_t k = 0; k < ctl_measurement_pieces(what); k++) free(run.raw[k]);
  free(run.result);
  free(run.column);
  return code;
}
