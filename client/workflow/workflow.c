#include "client/workflow/workflow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/measure.h"
#include "client/cli/operator.h"
#include "client/workflow/owndaemon.h"
#include "client/workflow/workfile.h"
#include "proto/action/operator_text.h"

enum { PATIENCE = 300, ATTEMPTS = 3 };

typedef struct options {
  ctl_common_t common;
  const char *file, *png, *quarkd;
  ctl_operator_t op;
  bool dry_run, report;
} options_t;

/* One piece that the workflow asks for. */
typedef struct item {
  int gauge, kappa, source, time; /* indices */
  qk_corrmeta_t names;
  bool done;
} item_t;

typedef struct run {
  const options_t *options;
  ctl_workfile_t work;
  quark_connection_t *conn; /* with an endpoint */
  quark_report_t report;    /* of that daemon, or what the file says of ours */
  ctl_pieces_t pieces;
  int n, done, computed;
  item_t *item;
  double begun;
} run_t;

/* ---- options ---- */

static void take_resume(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  (void)state, (void)text, (void)values;
  ctl_complain("--%s has no effect: a workflow always continues where its last run ended", name);
}

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->file) argp_error(state, "the file of the workflow is required");
  if (o->common.has_endpoint)
    argp_error(state, "--endpoint: a workflow has its endpoint in its file: endpoint = %s",
               o->common.endpoint);
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"dry-run", QK_OPTION_FLAG, AT(dry_run),
     .help = "list the pieces, and which of them are finished"},
    {"report", QK_OPTION_FLAG, AT(report), .help = "only print the results that are finished"},
    {"plot", QK_OPTION_TEXT, AT(png), "FILE.png", .help = "plot the means with gnuplot"},
    {"quarkd", QK_OPTION_TEXT, AT(quarkd), "PROGRAM",
     .help = "the daemon to start (the one beside quarkctl)"},
    {"resume", QK_OPTION_TAKEN, .take = take_resume, .flags = OPTION_HIDDEN}, /* does nothing */
    {"FILE", QK_OPTION_ARGUMENT, .offset = AT(file)},
    {NULL, QK_OPTION_TABLE, AT(op), .table = &ctl_operator_table},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

/* ---- the plan ---- */

/* The measurement of an item. text: room for its source. */
static ctl_measurement_t measurement(const run_t *run, const item_t *item, char text[128]) {
  const ctl_workfile_t *w = &run->work;
  const ctl_worksource_t *s = &w->source[item->source];
  ctl_measurement_t what = {
      .params = w->params,
      .sink = s->smear,
      .text = text,
      .channels = &w->channels,
      .nmom = w->nmom,
      .momentum = (const int32_t(*)[3])w->momentum,
      .patience = isnan(run->options->common.timeout) ? PATIENCE : run->options->common.timeout};
  what.sink.alpha = w->sink.alpha;
  what.sink.steps = w->sink.steps;
  what.params.smear = s->smear;
  what.params.flavour = s->flavour;
  ctl_worksource_at(s, item->time, &what.source, text);
  return what;
}

static const char *gauge_of(const run_t *run, int i) {
  return run->work.endpoint ? run->report.setup.gauge : run->work.gauge.item[i];
}

/* Fills in what our own daemon will report of its setup, as far as the file determines it. */
static void expect_setup(run_t *run, int kappa) {
  if (run->work.endpoint) return;
  const qk_values_t *quark = &run->work.quark[kappa];
  const double csw = qk_value(quark, "csw");
  char text[QK_OPERATOR_TEXT];
  qk_values_text(quark, QK_TEXT_GIVEN, text);
  char *parameters = strchr(text, ';');
  if (parameters) *parameters++ = '\0';
  snprintf(run->report.setup.action, sizeof run->report.setup.action, "%.31s", text);
  snprintf(run->report.setup.parameters, sizeof run->report.setup.parameters, "%s",
           parameters ? parameters : "");
  run->report.setup.kappa = qk_values_kappa(quark);
  run->report.setup.mass = qk_value(quark, "mass");
  run->report.setup.csw = isnan(csw) ? 0 : csw;
  memcpy(run->report.setup.boundary, run->work.boundary, sizeof run->work.boundary);
}

static int make_plan(run_t *run) {
  const ctl_workfile_t *w = &run->work;
  const int gauges = w->endpoint ? 1 : w->gauge.n, kappas = w->endpoint ? 1 : w->quark_text.n;
  int times = 0;
  for (int s = 0; s < w->nsource; s++) times += w->source[s].ntimes ? w->source[s].ntimes : 1;
  run->item = calloc((size_t)gauges * (size_t)kappas * (size_t)times + 1, sizeof *run->item);
  if (!run->item) {
    ctl_complain("no memory for the plan");
    return EXIT_AGAIN;
  }
  for (int g = 0; g < gauges; g++)
    for (int k = 0; k < kappas; k++)
      for (int s = 0; s < w->nsource; s++)
        for (int t = 0; t < (w->source[s].ntimes ? w->source[s].ntimes : 1); t++) {
          item_t *item = &run->item[run->n++];
          char label[QK_CORR_NAME], text[128];
          *item = (item_t){.gauge = g, .kappa = k, .source = s, .time = t};
          const ctl_measurement_t what = measurement(run, item, text);
          snprintf(label, sizeof label, "%s.t%d", w->source[s].name, what.source.place.t);
          qk_corrmeta_init(&item->names);
          expect_setup(run, k);
          ctl_name_piece(&run->report, gauge_of(run, g), label, what.params.flavour, &item->names);
          snprintf(item->names.name, sizeof item->names.name, "%s", w->source[s].name);
        }
  return 0;
}

/* ---- what is finished must be what is asked for ---- */

static int differs(const run_t *run, const qk_corrmeta_t *found, const char *field,
                   const char *found_value, const char *value) {
  ctl_complain("%s: piece %s/%s/%s has %s = %s, but %s says %s: choose another out, or remove it",
               run->pieces.out, found->config, found->quark, found->label, field, found_value,
               run->work.path, value);
  return EXIT_DATA;
}

static int compare_texts(const run_t *run, const qk_corrmeta_t *found, const qk_corrmeta_t *want) {
  const struct {
    const char *field, *found, *want;
  } texts[] = {{"source", found->source, want->source},
               {"smear", found->smear, want->smear},
               {"links", found->links, want->links},
               {"sink", found->sink, want->sink},
               {"channels", found->channels, want->channels}};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (strcmp(texts[i].found, texts[i].want) != 0)
      return differs(run, found, texts[i].field, texts[i].found, texts[i].want);
  return 0;
}

static int compare_numbers(const run_t *run, const qk_corrmeta_t *found,
                           const qk_corrmeta_t *want) {
  const struct {
    const char *field;
    double found, want;
  } numbers[] = {{"kappa", found->kappa, want->kappa},
                 {"csw", found->csw, want->csw},
                 {"tolerance", found->tolerance, want->tolerance}};
  char a[40], b[40];
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (fabs(numbers[i].found - numbers[i].want) <= 1e-12 * fabs(numbers[i].want) ||
        (isnan(numbers[i].found) && isnan(numbers[i].want)))
      continue;
    snprintf(a, sizeof a, "%.12g", numbers[i].found);
    snprintf(b, sizeof b, "%.12g", numbers[i].want);
    return differs(run, found, numbers[i].field, a, b);
  }
  for (int i = 0; i < 8; i++) {
    if (fabs(found->boundary[i] - want->boundary[i]) <= 1e-12) continue;
    snprintf(a, sizeof a, "(%g, %g) in %c", found->boundary[i & ~1], found->boundary[i | 1],
             "xyzt"[i / 2]);
    snprintf(b, sizeof b, "(%g, %g)", want->boundary[i & ~1], want->boundary[i | 1]);
    return differs(run, found, "boundary", a, b);
  }
  return 0;
}

static void print_momenta(uint32_t n, const int32_t (*p)[3], char *text, size_t size) {
  size_t used = 0;
  for (uint32_t i = 0; i < n && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%d,%d,%d", i ? " " : "", p[i][0], p[i][1],
                             p[i][2]);
}

static int compare_momenta(const run_t *run, const qk_corrpiece_t *found) {
  const ctl_workfile_t *w = &run->work;
  char a[300], b[300];
  if (found->nmom == w->nmom &&
      memcmp(found->momentum, w->momentum, w->nmom * sizeof *w->momentum) == 0)
    return 0;
  print_momenta(found->nmom, (const int32_t(*)[3])found->momentum, a, sizeof a);
  print_momenta(w->nmom, (const int32_t(*)[3])w->momentum, b, sizeof b);
  return differs(run, &found->meta, "momenta", a, b);
}

/* Older files do not say the action: kappa and csw were all of it. */
static bool is_made_with(const char *found, const char *want) {
  qk_values_t values;
  char why[QK_WHY];
  if (*found) return ctl_operator_same(found, want);
  return qk_values_parse(&values, want, why) && qk_values_are_plain(&values);
}

/* Marks the items that are finished. */
static int find_finished(run_t *run) {
  for (int i = 0; i < run->n; i++) {
    item_t *item = &run->item[i];
    const qk_corrpiece_t *found =
        ctl_pieces_find(&run->pieces, item->names.config, item->names.quark, item->names.label);
    if (!found) continue;
    char text[128];
    const ctl_measurement_t what = measurement(run, item, text);
    qk_corrmeta_t want = item->names;
    expect_setup(run, item->kappa);
    ctl_measurement_describe(&what, &run->report, &want);
    int code = compare_texts(run, &found->meta, &want);
    if (code == 0) code = compare_numbers(run, &found->meta, &want);
    if (code == 0 && !is_made_with(found->meta.action, want.action))
      code = differs(run, &found->meta, "action", found->meta.action, want.action);
    if (code == 0) code = compare_momenta(run, found);
    if (code) return code;
    item->done = true;
    run->done++;
  }
  return 0;
}

/* Pieces of this configuration must have been made of the same links. */
static int check_digest(const run_t *run, const char *config, const quark_report_t *report) {
  char digest[24];
  snprintf(digest, sizeof digest, "%016" PRIx64, report->setup.digest);
  for (int i = 0; i < run->pieces.n; i++) {
    const qk_corrmeta_t *m = &run->pieces.piece[i].meta;
    if (strcmp(m->config, config) == 0 && strcmp(m->digest, digest) != 0) {
      ctl_complain(
          "%s: piece %s/%s/%s is of links with digest %s, but %s has %s: take another out, "
          "or remove it",
          run->pieces.out, m->config, m->quark, m->label, m->digest, report->setup.gauge, digest);
      return EXIT_DATA;
    }
  }
  return 0;
}

/* ---- the run ---- */

static void print_progress(const run_t *run, const item_t *item, const qk_corrmeta_t *made) {
  const double left = (ctl_seconds() - run->begun) / run->computed * (run->n - run->done);
  fprintf(stderr, "%d of %d   %s/%s/%s   %.1f s, residual %.1e", run->done, run->n,
          item->names.config, item->names.quark, item->names.label, made->seconds, made->residual);
  if (run->done == run->n)
    fputc('\n', stderr);
  else if (left < 120)
    fprintf(stderr, "   %.0f s left\n", left);
  else
    fprintf(stderr, "   %.0f min left\n", left / 60);
}

/* Measures one piece. It is tried again if the daemon has lost its engine and starts another. */
static int measure(run_t *run, quark_connection_t *conn, const quark_report_t *report,
                   const item_t *item, qk_corrpiece_t *piece) {
  char text[128];
  const ctl_measurement_t what = measurement(run, item, text);
  for (int attempt = 1;; attempt++) {
    ctl_progress_t progress;
    quark_report_t now;
    ctl_progress_begin(&progress, run->report.setup.columns, false);
    const int code = ctl_measure(conn, report, &what, &item->names, &progress, piece);
    if (progress.terminal) fputs("\r\033[K", stderr);
    if (code != EXIT_AGAIN || attempt == ATTEMPTS || ctl_interrupted()) return code;
    ctl_complain("%s/%s/%s is tried again", item->names.config, item->names.quark,
                 item->names.label);
    if (ctl_report(&run->options->common, conn, false, &now) != 0) return code;
  }
}

static int run_item(run_t *run, quark_connection_t *conn, const quark_report_t *report,
                    item_t *item) {
  qk_corrpiece_t piece;
  int code = measure(run, conn, report, item, &piece);
  if (code) return code;
  const qk_corrmeta_t made = piece.meta;
  if ((code = ctl_pieces_add(&run->pieces, &piece))) return code;
  item->done = true;
  run->done++;
  run->computed++;
  print_progress(run, item, &made);
  return 0;
}

/* Computes items first .. end - 1, which need the same daemon. */
static int run_items(run_t *run, quark_connection_t *conn, const quark_report_t *report, int first,
                     int end) {
  int code = check_digest(run, run->item[first].names.config, report);
  for (int i = first; i < end && code == 0; i++) {
    if (run->item[i].done) continue;
    code = ctl_interrupted() ? EXIT_AGAIN : run_item(run, conn, report, &run->item[i]);
  }
  return code;
}

/* "--key=value"; NULL: no memory. */
static char *option(const char *key, const char *value) {
  char *text;
  return asprintf(&text, "--%s=%s", key, value) < 0 ? NULL : text;
}

/* A parameter that has no flag of its own. */
static char *set_option(const char *key, const char *value) {
  char *text;
  if (strcmp(key, "csw") == 0) return option(key, value);
  return asprintf(&text, "--set=%s=%s", key, value) < 0 ? NULL : text;
}

/* The file that hands the null vectors of multigrid on from one daemon to the next. */
static char *null_vectors(const run_t *run) {
  char *path;
  return asprintf(&path, "%s/null-vectors.mg", run->pieces.folder) < 0 ? NULL : path;
}

/* They are handed on, unless the file says no, or decides itself where a daemon has them. */
static bool evolves(const ctl_workfile_t *w) {
  static const char checkpoint[] = "--mg-checkpoint=", from[] = "--mg-from=";
  for (int i = 0; i < w->daemon.n; i++)
    if (strncmp(w->daemon.item[i], checkpoint, sizeof checkpoint - 1) == 0 ||
        strncmp(w->daemon.item[i], from, sizeof from - 1) == 0)
      return false;
  return !w->no_evolve && w->gauge.n * w->quark_text.n > 1;
}

static int hand_on(const run_t *run, char **options) {
  int n = 0;
  char *path = evolves(&run->work) ? null_vectors(run) : NULL;
  options[n++] = option("mg-checkpoint", path ? path : "off");
  if (path && access(path, F_OK) == 0) options[n++] = option("mg-from", path);
  free(path);
  return n;
}

/* Makes the options that the workflow decides. Returns their number; all of them must be freed.
 * Those that are NULL had no memory. */
static int make_options(const run_t *run, const item_t *item, char **options) {
  const ctl_workfile_t *w = &run->work;
  int n = hand_on(run, options);
  options[n++] = option("gauge", w->gauge.item[item->gauge]);
  options[n++] = option("boundary", w->boundary_text ? w->boundary_text : "antiperiodic");
  options[n++] = option(w->quark_key, w->quark_text.item[item->kappa]);
  if (w->action) options[n++] = option("action", w->action);
  for (int i = 0; i < w->key.n; i++) options[n++] = set_option(w->key.item[i], w->value.item[i]);
  return n;
}

static int start_daemon(const run_t *run, const item_t *item, ctl_daemon_t *daemon) {
  enum { FIXED = 6 };
  const ctl_workfile_t *w = &run->work;
  const char *program = run->options->quarkd ? run->options->quarkd : w->quarkd;
  char **options = calloc((size_t)w->daemon.n + (size_t)w->key.n + FIXED, sizeof *options);
  const int made = options ? make_options(run, item, options) : 0;
  int code = options ? 0 : EXIT_AGAIN;
  for (int i = 0; i < made; i++)
    if (!options[i]) code = EXIT_AGAIN;
  if (code) {
    ctl_complain("no memory for the options of quarkd");
    goto out;
  }
  for (int i = 0; i < w->daemon.n; i++) options[made + i] = w->daemon.item[i];
  code = ctl_daemon_start(program, made + w->daemon.n, options, run->pieces.folder, daemon);
out:
  for (int i = 0; i < made; i++) free(options[i]);
  free(options);
  return code;
}

static int run_with_own_daemon(run_t *run, int first, int end) {
  ctl_daemon_t daemon = {.pid = 0};
  ctl_common_t common = run->options->common;
  quark_connection_t *conn = NULL;
  quark_report_t report;
  int code = start_daemon(run, &run->item[first], &daemon);
  if (code) return code;
  common.endpoint = daemon.endpoint;
  common.server_key = common.key = NULL; /* those of other daemons */
  code = ctl_connect(&common, NULL, false, &conn);
  if (code == 0) code = ctl_report(&common, conn, false, &report);
  if (code == 0)
    code = run_items(run, conn, &report, first, end);
  else {
    code = ctl_daemon_verdict(&daemon, run->pieces.folder, code);
    if (daemon.pid) ctl_complain("the log of quarkd is %s/quarkd.log", run->pieces.folder);
  }
  quark_close(conn);
  ctl_daemon_stop(&daemon);
  return code;
}

static int run_all(run_t *run) {
  int code = 0, end;
  ctl_catch_signals();
  run->begun = ctl_seconds();
  for (int first = 0; first < run->n && code == 0; first = end) {
    const item_t *item = &run->item[first];
    bool left = false;
    for (end = first;
         end < run->n && run->item[end].gauge == item->gauge && run->item[end].kappa == item->kappa;
         end++)
      left |= !run->item[end].done;
    if (!left) continue;
    code = run->conn ? run_items(run, run->conn, &run->report, first, end)
                     : run_with_own_daemon(run, first, end);
  }
  if (code)
    ctl_complain("%d of %d pieces are finished; the same command continues from here", run->done,
                 run->n);
  return code ? code : ctl_pieces_merge(&run->pieces);
}

/* ---- an endpoint ---- */

static int disagree(const ctl_workfile_t *w, const char *key, const char *value,
                    const char *theirs) {
  ctl_complain("%s: %s = %s, but the daemon at %s has %s", w->path, key, value, w->endpoint,
               theirs);
  return EXIT_DATA;
}

/* One parameter, as the file has it, must be that of the daemon. */
static int check_parameter(const run_t *run, const char *key, const char *value) {
  const ctl_workfile_t *w = &run->work;
  const quark_report_t *r = &run->report;
  const struct {
    const char *key;
    double theirs;
  } known[] = {{"kappa", r->setup.kappa}, {"mass", r->setup.mass}, {"csw", r->setup.csw}};
  char theirs[QK_OPERATOR_TEXT];
  double x;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(key, known[i].key) != 0) continue;
    if (!qk_real_parse(value, &x)) {
      ctl_complain("%s: %s = %s: must be a number", w->path, key, value);
      return EXIT_DATA;
    }
    snprintf(theirs, sizeof theirs, "%.12g", known[i].theirs);
    return fabs(x - known[i].theirs) <= 1e-12 * fmax(1e-3, fabs(x))
               ? 0
               : disagree(w, key, value, theirs);
  }
  ctl_operator_canonical(r, theirs);
  return ctl_operator_has(r, key, value) ? 0 : disagree(w, key, value, theirs);
}

/* The daemon must have the operator that the file describes. */
static int check_setup(const run_t *run) {
  const ctl_workfile_t *w = &run->work;
  const quark_report_t *r = &run->report;
  char theirs[QK_OPERATOR_TEXT];
  ctl_operator_canonical(r, theirs);
  theirs[strcspn(theirs, ";")] = '\0';
  if (w->action && strcmp(w->action, theirs) != 0) return disagree(w, "action", w->action, theirs);
  int code = w->quark_text.n ? check_parameter(run, w->quark_key, w->quark_text.item[0]) : 0;
  for (int i = 0; i < w->key.n && code == 0; i++)
    code = check_parameter(run, w->key.item[i], w->value.item[i]);
  if (code) return code;
  for (int i = 0; i < 8 && w->has_boundary; i++)
    if (fabs(r->setup.boundary[i] - w->boundary[i]) > 1e-12) {
      ctl_complain("%s: boundary = %s, but the daemon at %s has (%g, %g) in %c", w->path,
                   w->boundary_text, w->endpoint, r->setup.boundary[i & ~1],
                   r->setup.boundary[i | 1], "xyzt"[i / 2]);
      return EXIT_DATA;
    }
  return 0;
}

static int ask_endpoint(run_t *run) {
  ctl_common_t common = run->options->common;
  common.endpoint = run->work.endpoint;
  int code = ctl_connect(&common, NULL, false, &run->conn);
  if (code == 0) code = ctl_report(&common, run->conn, false, &run->report);
  if (code == 0) code = ctl_operator_check_single(&run->report, "contractions");
  return code ? code : check_setup(run);
}

/* ---- output ---- */

static void print_plan(const run_t *run) {
  for (int i = 0; i < run->n; i++) {
    const qk_corrmeta_t *m = &run->item[i].names;
    printf("%s  %s/%s/%s\n", run->item[i].done ? "done" : "todo", m->config, m->quark, m->label);
  }
  printf("%d of %d pieces are finished\n", run->done, run->n);
}

static json_t *plan_json(const run_t *run) {
  json_t *list = json_array();
  for (int i = 0; i < run->n; i++) {
    const qk_corrmeta_t *m = &run->item[i].names;
    json_array_append_new(list,
                          json_pack("{s:s, s:s, s:s, s:b}", "config", m->config, "quark", m->quark,
                                    "label", m->label, "done", (int)run->item[i].done));
  }
  return list;
}

static int print_report(const run_t *run) {
  const options_t *o = run->options;
  bool drawn = false;
  json_t *list;
  if (!run->pieces.n) ctl_complain("%s: nothing is finished", run->work.out);
  int code = o->png ? ctl_workreport_png(&run->pieces, o->png, &drawn) : 0;
  if (code) return code;
  if (!o->common.json) return ctl_workreport_print(&run->pieces);
  if ((code = ctl_workreport_json(&run->pieces, &list))) return code;
  return ctl_print(json_pack("{s:s, s:i, s:i, s:o, s:o}", "out", run->work.out, "pieces",
                             run->pieces.n, "computed", run->computed, "png",
                             drawn ? json_string(o->png) : json_null(), "ensembles", list));
}

static int run_workflow(run_t *run) {
  const options_t *o = run->options;
  int code = ctl_pieces_open(run->work.out, !o->dry_run && !o->report, &run->pieces);
  if (code) return code;
  if (!o->report) {
    if (run->work.endpoint) code = ask_endpoint(run);
    if (code == 0) code = make_plan(run);
    if (code == 0) code = find_finished(run);
  }
  if (code == 0 && o->dry_run) {
    if (o->common.json) return ctl_print(json_pack("{s:o}", "pieces", plan_json(run)));
    print_plan(run);
    return 0;
  }
  if (code == 0 && !o->report) code = run_all(run);
  return code ? code : print_report(run);
}

int ctl_workflow(int argc, char **argv) {
  static const char about[] =
      "Makes the correlators that a file describes: configurations x kappas x sources. What is "
      "finished is not made again, however the last run ended. At the end: means over "
      "configurations with jackknife errors. --action and --set replace what the file has.\v"
      "Exit codes: 65 bad data, or a column that did not reach the tolerance, 69 no daemon, "
      "75 interrupted, or try again later.";
  options_t o = {.file = NULL};
  run_t run = {.options = &o, .pieces = {.lock = -1}};
  qk_err_t err = {0};
  ctl_common_init(&o.common);
  qk_options_parse(&table, "FILE", about, argc, argv, &o);
  if (ctl_workfile_read(o.file, &o.op, &run.work, &err) != QK_OK) return ctl_fail_file(&err);
  const int code = run_workflow(&run);
  quark_close(run.conn);
  ctl_pieces_close(&run.pieces);
  ctl_workfile_fini(&run.work);
  free(run.item);
  return code;
}
