/* perambulator: solutions for eigenvectors of time slices, projected onto such by the daemon. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/peramfile.h"
#include "client/cli/operator.h"
#include "client/cli/solving.h"
#include "client/quark_eigen.h"

enum { IN_FLIGHT = 2, BATCH = 256, RETRY_MS = 500, LOOK_MS = 200, SPINS = QK_PERAM_SPINS };

typedef struct options {
  ctl_solve_options_t solve;
  const char *vectors;
  uint32_t count; /* 0: all that there are */
  bool every;     /* time slice; else */
  int32_t *t;     /* n of them, in the order given; NULL: none was given */
  int n;
} options_t;

/* A request under way: sources first .. first+nrhs-1 of those that are to be solved for. */
typedef struct batch {
  uint64_t request; /* 0: none */
  int64_t first;
  uint32_t nrhs, ended;
} batch_t;

typedef struct run {
  const options_t *o;
  ctl_work_t *work;
  quark_eigen_report_t set;
  qk_peramfile_t *file;
  int *slice;    /* [nslice] those of --t-sources that the file lacks, by their number */
  int64_t *left; /* [nslice] sources of it that are not in the file yet */
  int nslice, nfailed;
  int64_t per_slice, next, batch_size, solved;
  batch_t batch[IN_FLIGHT];
  void *field;
  size_t bytes; /* of a right-hand side */
  double give_up, residual;
  ctl_progress_t progress;
} run_t;

/* ---- options --------------------------------------------------------------------------------- */

static void take_times(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  char *rest = text;
  free(o->t);
  o->t = NULL;
  o->n = 0;
  o->every = strcmp(text, "all") == 0;
  for (char *word; !o->every && (word = strsep(&rest, ","));) {
    const int32_t t = (int32_t)qk_option_integer(state, name, word, 0, QK_H5FILE_MAX_EXTENT - 1);
    int32_t *more = realloc(o->t, (size_t)(o->n + 1) * sizeof *more);
    if (!more) argp_failure(state, EXIT_AGAIN, 0, "no memory for time slices");
    o->t = more;
    for (int i = 0; i < o->n; i++)
      if (o->t[i] == t) argp_error(state, "--%s: time slice %d stands there twice", name, t);
    o->t[o->n++] = t;
  }
}

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->vectors || (!o->every && o->n == 0))
    argp_error(state, "--vectors and --t-sources are required");
}

static const qk_option_row_t rows[] = {
    {"vectors", QK_OPTION_TEXT, offsetof(options_t, vectors), "NAME",
     .help = "eigenvectors of kind laplacian that the setup keeps: sources and what solutions are "
             "projected onto (required)"},
    {"t-sources", QK_OPTION_TAKEN, .form = "T,...|all", .take = take_times,
     .help = "time slices of the sources (required)"},
    {"count", QK_OPTION_UINT32, offsetof(options_t, count), "N", .min = 1,
     .max = QK_EIGEN_COUNT_MAX, .help = "the lowest N vectors of each time slice (all)"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, solve), .table = &ctl_solve_few_table},
    {0},
};
static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

/* ---- what is to be done ---------------------------------------------------------------------- */

static int find_set(run_t *run) {
  quark_eigen_report_t list[QUARK_EIGEN_NAMES];
  quark_error_t err;
  uint32_t n;
  if (quark_eigen_list(run->work->conn, NULL, list, &n, &err) != QUARK_OK) return ctl_fail(&err);
  const char *setup = run->work->report.setup.name, *name = run->o->vectors;
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(list[i].name, name) == 0) run->set = list[i];
  if (!*run->set.name) {
    ctl_complain("setup %s has no eigenvectors %s (quarkctl eigen --list)", setup, name);
    return EXIT_DATA;
  }
  if (run->set.kind != QUARK_EIGEN_LAPLACIAN) {
    const char *kind = quark_eigen_kind_name(run->set.kind);
    ctl_complain("eigenvectors %s are of kind %s, and not laplacian", name, kind ? kind : "?");
    return EXIT_DATA;
  }
  if (run->set.state == QUARK_EIGEN_MAKING) {
    ctl_complain("eigenvectors %s are being made: try again later", name);
    return EXIT_AGAIN;
  }
  if (run->o->count <= run->set.count) return 0;
  ctl_complain("--count=%u: %s has %u vectors of each time slice", run->o->count, name,
               run->set.count);
  return EXIT_USAGE;
}

static uint32_t count_of(const run_t *run) {
  return run->o->count ? run->o->count : run->set.count;
}

static int check_times(options_t *o, const quark_report_t *report) {
  const int extent = (int)report->setup.dims[3];
  for (int i = 0; i < o->n; i++)
    if (o->t[i] >= extent) {
      ctl_complain("--t-sources: %d is outside the lattice (0 to %d)", o->t[i], extent - 1);
      return EXIT_USAGE;
    }
  if (!o->every) return 0;
  o->t = calloc((size_t)extent, sizeof *o->t);
  if (!o->t) return EXIT_AGAIN;
  for (o->n = 0; o->n < extent; o->n++) o->t[o->n] = o->n;
  return 0;
}

static void describe(const run_t *run, qk_perammeta_t *meta) {
  const quark_report_t *r = &run->work->report;
  const quark_params_t *p = &run->work->params;
  qk_perammeta_init(meta);
  for (int mu = 0; mu < 4; mu++) meta->dims[mu] = (int32_t)r->setup.dims[mu];
  meta->count = (int32_t)count_of(run);
  meta->flavour = ctl_operator_flavour(r, p->flavour);
  snprintf(meta->vectors, sizeof meta->vectors, "%s", run->set.name);
  snprintf(meta->vectors_digest, sizeof meta->vectors_digest, "%s", run->set.field);
  meta->lowest = run->set.lowest;
  meta->highest = run->set.highest;
  meta->vector_residual = run->set.residual;
  ctl_operator_canonical(r, meta->action);
  snprintf(meta->basis, sizeof meta->basis, "%s", quark_basis_name(p->basis));
  snprintf(meta->normalisation, sizeof meta->normalisation, "%s",
           ctl_normalisation(p->normalisation));
  snprintf(meta->gauge, sizeof meta->gauge, "%s", r->setup.gauge);
  snprintf(meta->digest, sizeof meta->digest, "%016" PRIx64, r->setup.digest);
  memcpy(meta->boundary, r->setup.boundary, sizeof meta->boundary);
  meta->plaquette = r->setup.plaquette;
  meta->tolerance = ctl_asked(p->tol);
  meta->tolerance_abs = ctl_asked(p->tol_abs);
  meta->tolerance_hq = ctl_asked(p->tol_hq);
}

/* *done: the finished file is there, and nothing is left to do. */
static int open_output(run_t *run, bool *done) {
  const options_t *o = run->o;
  const int bits = ctl_work_bits(run->work);
  qk_perammeta_t meta;
  qk_err_t err = {0};
  describe(run, &meta);
  qk_status_t status = qk_peramfile_is_done(o->solve.out, &meta, o->n, o->t, bits, done, &err);
  if (status == QK_OK && !*done)
    status = qk_peramfile_open(o->solve.out, &meta, o->n, o->t, bits, &run->file, &err);
  return status == QK_OK ? 0 : ctl_fail_file(&err);
}

static int list_slices(run_t *run) {
  const options_t *o = run->o;
  run->per_slice = (int64_t)SPINS * count_of(run);
  run->bytes = (size_t)run->work->report.setup.dims[3] * (size_t)run->per_slice *
               (run->work->params.dtype == QUARK_F32 ? 8 : 16);
  run->slice = calloc((size_t)o->n, sizeof *run->slice);
  run->left = calloc((size_t)o->n, sizeof *run->left);
  run->field = malloc(run->bytes);
  if (!run->slice || !run->left || !run->field) {
    ctl_complain("no memory for %zu bytes of a right-hand side", run->bytes);
    return EXIT_AGAIN;
  }
  for (int i = 0; i < o->n; i++)
    if (!qk_peramfile_has(run->file, i)) {
      run->slice[run->nslice] = i;
      run->left[run->nslice++] = run->per_slice;
    }
  return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static batch_t *find_batch(run_t *run, uint64_t request) {
  for (int i = 0; i < IN_FLIGHT; i++)
    if (run->batch[i].request == request) return &run->batch[i];
  return NULL;
}

static int64_t total(const run_t *run) {
  return run->nslice * run->per_slice;
}

/* After a refusal: makes requests smaller, waits for a full daemon, or returns an exit code. */
static int refused(run_t *run, const quark_error_t *err) {
  bool waits = false; /* our own work may be what fills the daemon */
  for (int i = 0; i < IN_FLIGHT; i++) waits |= run->batch[i].request != 0;
  if (err->code == QUARK_TOO_LARGE && run->batch_size > 1) {
    run->batch_size /= 2;
    return 0;
  }
  if (!err->retryable || err->code == QUARK_TIMEOUT || err->code == QUARK_SHUTTING_DOWN ||
      (!waits && ctl_seconds() > run->give_up))
    return ctl_fail(err);
  if (!waits) ctl_pause(err->retry_after_ms ? err->retry_after_ms : RETRY_MS);
  return 0;
}

/* Source k of those that are to be solved for. */
static quark_column_t column_of(const run_t *run, int64_t k) {
  const int64_t in_slice = k % run->per_slice, count = run->per_slice / SPINS;
  return (quark_column_t){.t = run->o->t[run->slice[k / run->per_slice]],
                          .spin = (int32_t)(in_slice / count),
                          .vector = (uint32_t)(in_slice % count)};
}

/* *full: the daemon has no room now. */
static int submit(run_t *run, batch_t *b, bool *full) {
  quark_column_t column[BATCH];
  quark_params_t p = run->work->params;
  quark_error_t err;
  uint64_t bytes, request;
  const int64_t left = total(run) - run->next;
  p.nrhs = (uint32_t)(left < run->batch_size ? left : run->batch_size);
  for (uint32_t i = 0; i < p.nrhs; i++) column[i] = column_of(run, run->next + i);
  p.column = column;
  p.source = QUARK_VECTOR;
  p.vectors = p.project = run->o->vectors;
  p.project_count = count_of(run);
  if (quark_submit(run->work->conn, &p, &request, &bytes, &err) != QUARK_OK) {
    *full = true;
    return refused(run, &err);
  }
  *b = (batch_t){.request = request, .first = run->next, .nrhs = p.nrhs};
  run->next += p.nrhs;
  if (bytes == run->bytes) return 0;
  ctl_complain("the daemon has results of %" PRIu64 " bytes, expected %zu", bytes, run->bytes);
  return EXIT_DATA;
}

/* The numbers of source k go to the file. */
static int store(run_t *run, int64_t k, const quark_result_t *result) {
  const int in_list = (int)(k / run->per_slice), slice = run->slice[in_list];
  const quark_column_t c = column_of(run, k);
  quark_error_t err;
  qk_err_t file_err = {0};
  if (quark_download(run->work->conn, result->request, result->rhs, run->field, run->bytes, &err) !=
      QUARK_OK)
    return ctl_fail(&err);
  qk_status_t status = qk_peramfile_write(run->file, slice, c.spin, (int)c.vector, run->field,
                                          result->true_residual, &file_err);
  if (status == QK_OK && --run->left[in_list] == 0)
    status = qk_peramfile_complete(run->file, slice, &file_err);
  if (status != QK_OK) return ctl_fail_file(&file_err);
  run->solved++;
  if (result->true_residual > run->residual) run->residual = result->true_residual;
  return 0;
}

static int take_result(run_t *run, const quark_result_t *result) {
  batch_t *b = find_batch(run, result->request);
  char text[CTL_RESULT_MAX];
  int code = 0;
  if (!b) return 0;
  const int64_t k = b->first + result->rhs;
  if (result->status == QUARK_OK) {
    code = store(run, k, result);
  } else {
    const quark_column_t c = column_of(run, k);
    ctl_complain("time slice %d, spin %d, vector %u: %s", c.t, c.spin, c.vector,
                 ctl_result_text(result, text));
    run->nfailed++;
  }
  quark_ack(run->work->conn, result->request, (int32_t)result->rhs, NULL);
  if (code || ++b->ended < b->nrhs) return code;
  quark_release(run->work->conn, b->request, NULL);
  b->request = 0;
  return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int solve_all(run_t *run) {
  while (run->solved + run->nfailed < total(run)) {
    batch_t *b;
    bool full = false;
    while (!full && run->next < total(run) && (b = find_batch(run, 0))) {
      const int code = submit(run, b, &full);
      if (code) return code;
    }
    quark_event_t event;
    quark_error_t err;
    int code = 0;
    if (ctl_interrupted()) {
      ctl_complain("interrupted: the same command goes on with %s.part", run->o->solve.out);
      return EXIT_AGAIN;
    }
    if (quark_event_next(run->work->conn, LOOK_MS, &event, &err) != QUARK_OK) return ctl_fail(&err);
    if (event.kind == QUARK_EVENT_RESULT) code = take_result(run, &event.result);
    if (code) return code;
    if (event.kind == QUARK_EVENT_RESULT || event.kind == QUARK_EVENT_PROGRESS)
      ctl_progress_show(&run->progress, &event);
  }
  return 0;
}

/* Bytes that came, and those of the solutions. */
static int print(const run_t *run, double seconds) {
  const options_t *o = run->o;
  const quark_report_t *r = &run->work->report;
  const double came = (double)run->bytes * (double)run->solved;
  double plain = (double)run->solved * 24 * (run->work->params.dtype == QUARK_F32 ? 4 : 8);
  for (int mu = 0; mu < 4; mu++) plain *= r->setup.dims[mu];
  if (o->solve.common.json)
    return ctl_print(
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "out", o->solve.out, "slices",
                  (json_int_t)o->n, "vectors", (json_int_t)count_of(run), "solved",
                  (json_int_t)run->solved, "failed", (json_int_t)run->nfailed, "residual",
                  ctl_number(run->solved ? run->residual : NAN), "seconds", ctl_number(seconds),
                  "bytes", ctl_number(came), "plain_bytes", ctl_number(plain)));
  if (run->solved)
    printf("%" PRId64
           " solves in %.1f s   residual %.2e   %.4g MB fetched; solutions have %.4g MB\n",
           run->solved, seconds, run->residual, 1e-6 * came, 1e-6 * plain);
  if (!run->nfailed) printf("written %s\n", o->solve.out);
  return 0;
}

/* Solves for what the file lacks. */
static int carry_out(run_t *run) {
  const options_t *o = run->o;
  qk_err_t err = {0};
  int code = list_slices(run);
  if (code) return code;
  if (run->nslice < o->n && !o->solve.common.json)
    printf("%s.part has %d of %d time slices\n", o->solve.out, o->n - run->nslice, o->n);
  ctl_catch_signals();
  const double begun = ctl_seconds();
  ctl_progress_begin(&run->progress, total(run), o->solve.progress);
  code = solve_all(run);
  ctl_progress_end(&run->progress);
  if (code) return code;
  if (!run->nfailed && qk_peramfile_commit(run->file, &err) != QK_OK) return ctl_fail_file(&err);
  code = print(run, ctl_seconds() - begun);
  if (!run->nfailed) return code;
  ctl_complain("%d of %" PRId64 " solves failed: the same command tries their time slices again",
               run->nfailed, total(run));
  return EXIT_DATA;
}

static int work(options_t *o, ctl_work_t *w) {
  run_t run = {.o = o, .work = w, .batch_size = BATCH};
  bool done = false;
  run.give_up = ctl_seconds() + ctl_work_patience(w);
  int code = find_set(&run);
  if (code == 0) code = check_times(o, &w->report);
  if (code == 0) code = open_output(&run, &done);
  if (code == 0) code = done ? print(&run, 0) : carry_out(&run);
  qk_peramfile_close(run.file);
  free(run.slice);
  free(run.left);
  free(run.field);
  return code;
}

int ctl_perambulator(int argc, char **argv) {
  static const char about[] =
      "Solves for eigenvectors of time slices in each spin, and writes the products of the "
      "solutions with such vectors, [t0][spin0][n0][t][spin][n]; solutions do not leave the "
      "daemon. What is complete of the file OUT.part is not solved again.\v"
      "The eigenvectors: quarkctl eigen NAME --kind=laplacian. Exit codes: 65 a solve did not "
      "reach the tolerance, 69 no daemon, 75 try again later.";
  options_t o = {0};
  ctl_work_t w;
  ctl_solve_options_init(&o.solve);
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  int code = ctl_work_begin(&w, &o.solve);
  if (code == 0) code = ctl_operator_check_usual(&w.report, "perambulators");
  if (code == 0) code = work(&o, &w);
  ctl_work_end(&w);
  free(o.t);
  return code;
}
