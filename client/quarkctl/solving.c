#include "client/quarkctl/solving.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/smearing.h"

enum { IN_FLIGHT = 2, LEAST_BATCH = 12, MOST_BATCH = 256, RETRY_MS = 500, LOOK_MS = 200 };

/* A request on its way: right-hand sides first .. first + nrhs - 1 of the work. */
typedef struct batch {
  uint64_t request; /* 0: none */
  int64_t first;
  uint32_t nrhs, ended;
} batch_t;

typedef struct run {
  ctl_work_t *work;
  batch_t batch[IN_FLIGHT];
  int64_t next, ended, batch_size; /* next: the first right-hand side that is not submitted */
  quark_result_t *result;          /* nrhs */
  void *field;                     /* room for one */
  size_t field_bytes;
  qk_h5file_t *out;
  bool any_solution;
  double give_up; /* at submitting, in seconds of the clock */
  ctl_progress_t progress;
} run_t;

int ctl_work_begin(ctl_work_t *work, const ctl_solve_options_t *options) {
  memset(work, 0, sizeof *work);
  work->options = options;
  work->params = options->params;
  const int code = ctl_connect(&options->common, options->has_client ? options->client : NULL,
                               false, &work->conn);
  return code ? code : ctl_report(&options->common, work->conn, false, &work->report);
}

void ctl_work_end(ctl_work_t *work) {
  quark_close(work->conn);
  qk_h5file_close(work->in);
}

int ctl_columns(const qk_source_t *source, const char *text, const quark_report_t *report,
                int64_t *n, quark_column_t **columns) {
  qk_err_t err = {0};
  if (qk_source_columns(source, report->setup.dims, n, columns, &err) == QK_OK) return 0;
  ctl_complain("source %s: %s", text, err.text);
  return err.code == QK_NO_MEMORY ? EXIT_AGAIN : EXIT_USAGE;
}

/* ---- the output file ---- */

static int bits_of(const ctl_work_t *work) {
  return work->params.dtype == QUARK_F32 ? 32 : 64;
}

static void describe(const ctl_work_t *work, qk_h5meta_t *meta) {
  const quark_report_t *r = &work->report;
  qk_h5meta_init(meta);
  for (int mu = 0; mu < 4; mu++) meta->dims[mu] = (int32_t)r->setup.dims[mu];
  snprintf(meta->kind, sizeof meta->kind, "%s", work->kind);
  snprintf(meta->basis, sizeof meta->basis, "%s", quark_basis_name(work->params.basis));
  snprintf(meta->normalisation, sizeof meta->normalisation, "%s",
           work->params.normalisation == QUARK_KAPPA ? "kappa" : "mass");
  snprintf(meta->source, sizeof meta->source, "%.127s", work->source);
  const quark_smearing_t *smear = &work->options->params.smear;
  if (smear->steps) qk_smearing_print(smear, meta->smear);
  if (smear->links) qk_smearing_print_links(smear, meta->links);
  if (work->sequential) snprintf(meta->sequential, sizeof meta->sequential, "%s", work->sequential);
  snprintf(meta->gauge, sizeof meta->gauge, "%s", r->setup.gauge);
  snprintf(meta->digest, sizeof meta->digest, "%016" PRIx64, r->setup.digest);
  meta->kappa = r->setup.kappa;
  meta->mass = r->setup.mass;
  meta->csw = r->setup.csw;
  memcpy(meta->boundary, r->setup.boundary, sizeof meta->boundary);
  meta->plaquette = r->setup.plaquette;
  meta->tolerance = work->params.tol;
}

static int set_column(run_t *run, int64_t rhs, qk_err_t *err) {
  static const char *const kinds[] = {"upload", "point", "wall", "z2", "z4", "sequential"};
  const ctl_work_t *work = run->work;
  const quark_result_t *result = &run->result[rhs];
  qk_h5column_t c;
  qk_h5column_init(&c);
  if (work->in && qk_h5file_column(work->in, rhs, &c, NULL) != QK_OK)
    snprintf(c.source, sizeof c.source, "%s", kinds[QUARK_UPLOAD]);
  if (work->column) {
    const quark_column_t *from = &work->column[rhs];
    const bool point = work->params.source == QUARK_POINT;
    const int32_t site[4] = {point ? from->x : -1, point ? from->y : -1, point ? from->z : -1,
                             from->t};
    memcpy(c.site, site, sizeof site);
    snprintf(c.source, sizeof c.source, "%s", kinds[work->params.source]);
    c.spin = from->spin;
    c.colour = from->colour;
    c.seed = from->seed;
    const int32_t momentum[3] = {from->px, from->py, from->pz};
    memcpy(c.momentum, momentum, sizeof momentum);
    c.every = (int32_t)from->t_every;
    if (work->params.source == QUARK_SEQUENTIAL) {
      c.spin = c.colour = -1;
      c.gamma = (int32_t)from->gamma;
    }
  }
  c.status = (qk_status_t)result->status;
  c.true_residual = result->true_residual;
  c.iterations = (int64_t)result->iterations;
  c.seconds = result->seconds;
  return qk_h5file_set_column(run->out, rhs, &c, err) == QK_OK ? 0 : ctl_fail_file(err);
}

/* ---- requests ---- */

static batch_t *find_batch(run_t *run, uint64_t request) {
  for (int i = 0; i < IN_FLIGHT; i++)
    if (run->batch[i].request == request) return &run->batch[i];
  return NULL;
}

static int upload(run_t *run, const batch_t *b) {
  ctl_work_t *work = run->work;
  for (uint32_t i = 0; i < b->nrhs && !ctl_interrupted(); i++) {
    qk_err_t file_err = {0};
    quark_error_t err;
    if (qk_h5file_read(work->in, b->first + i, bits_of(work), run->field, &file_err) != QK_OK)
      return ctl_fail_file(&file_err);
    if (quark_upload(work->conn, b->request, run->field, run->field_bytes, &err) != QUARK_OK)
      return ctl_fail(&err);
  }
  return 0;
}

static void pause_ms(uint32_t ms) {
  const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&t, NULL);
}

/* A refusal: smaller requests, patience with a full daemon, or the end. */
static int refused(run_t *run, const quark_error_t *err) {
  if (err->code == QUARK_TOO_LARGE && run->batch_size > 1) {
    run->batch_size /= 2;
    return 0;
  }
  const bool waits = run->next > run->ended; /* our own work may be what fills the daemon */
  if (!err->retryable || err->code == QUARK_TIMEOUT || err->code == QUARK_SHUTTING_DOWN ||
      (!waits && ctl_seconds() > run->give_up))
    return ctl_fail(err);
  if (!waits) pause_ms(err->retry_after_ms ? err->retry_after_ms : RETRY_MS);
  return 0;
}

/* Submits the next batch. *full: the daemon has no room now. */
static int submit(run_t *run, batch_t *b, bool *full) {
  ctl_work_t *work = run->work;
  quark_params_t p = work->params;
  quark_error_t err;
  const int64_t left = work->nrhs - run->next;
  p.nrhs = (uint32_t)(left < run->batch_size ? left : run->batch_size);
  p.column = work->column ? work->column + run->next : NULL;
  uint64_t field_bytes, request;
  if (quark_submit(work->conn, &p, &request, &field_bytes, &err) != QUARK_OK) {
    *full = true;
    return refused(run, &err);
  }
  *b = (batch_t){.request = request, .first = run->next, .nrhs = p.nrhs};
  run->next += p.nrhs;
  if (field_bytes != run->field_bytes) {
    ctl_complain("the daemon has fields of %llu bytes, expected %zu",
                 (unsigned long long)field_bytes, run->field_bytes);
    return EXIT_DATA;
  }
  return work->in ? upload(run, b) : 0;
}

static int take_result(run_t *run, const quark_result_t *result) {
  batch_t *b = find_batch(run, result->request);
  if (!b) return 0;
  ctl_work_t *work = run->work;
  const int64_t rhs = b->first + result->rhs;
  quark_error_t err;
  qk_err_t file_err = {0};
  run->result[rhs] = *result;
  run->ended++;
  if (result->bytes > 0) {
    if (quark_download(work->conn, result->request, result->rhs, run->field, run->field_bytes,
                       &err) != QUARK_OK)
      return ctl_fail(&err);
    if (qk_h5file_write(run->out, rhs, run->field, &file_err) != QK_OK)
      return ctl_fail_file(&file_err);
    run->any_solution = true;
  }
  const int code = set_column(run, rhs, &file_err);
  if (code) return code;
  if (++b->ended < b->nrhs)
    return quark_ack(work->conn, b->request, (int32_t)result->rhs, &err) ? ctl_fail(&err) : 0;
  quark_release(work->conn, b->request, NULL);
  b->request = 0;
  return 0;
}

static int interrupted(const run_t *run) {
  ctl_complain("interrupted: %lld of %lld right-hand sides had ended; nothing is written",
               (long long)run->ended, (long long)run->work->nrhs);
  return EXIT_AGAIN;
}

static int solve_all(run_t *run) {
  ctl_work_t *work = run->work;
  while (run->ended < work->nrhs) {
    batch_t *b;
    bool full = false;
    while (!full && run->next < work->nrhs && (b = find_batch(run, 0))) {
      const int code = submit(run, b, &full);
      if (code) return code;
    }
    quark_event_t event;
    quark_error_t err;
    if (ctl_interrupted()) return interrupted(run);
    if (quark_event_next(work->conn, LOOK_MS, &event, &err) != QUARK_OK) return ctl_fail(&err);
    if (event.kind == QUARK_EVENT_RESULT) {
      const int code = take_result(run, &event.result);
      if (code) return code;
    }
    if (event.kind == QUARK_EVENT_RESULT || event.kind == QUARK_EVENT_PROGRESS)
      ctl_progress_show(&run->progress, &event);
  }
  return 0;
}

/* ---- outcome ---- */

static json_t *result_json(const quark_result_t *r) {
  return json_pack("{s:s, s:o, s:I, s:I, s:o, s:s}", "status", quark_code_name(r->status),
                   "true_residual", ctl_number(r->true_residual), "iterations",
                   (json_int_t)r->iterations, "applications", (json_int_t)r->applications,
                   "seconds", ctl_number(r->seconds), "text", r->text);
}

static int print_json(const run_t *run, double seconds) {
  const ctl_work_t *work = run->work;
  json_t *rhs = json_array();
  for (int64_t i = 0; i < work->nrhs; i++) json_array_append_new(rhs, result_json(&run->result[i]));
  json_t *out = run->any_solution ? json_string(work->options->out) : json_null();
  return ctl_print(json_pack("{s:o, s:s, s:o, s:o, s:o}", "out", out, "source", work->source,
                             "tolerance", ctl_number(work->params.tol), "seconds",
                             ctl_number(seconds), "rhs", rhs));
}

static void print_text(const run_t *run, double seconds) {
  const ctl_work_t *work = run->work;
  int64_t converged = 0, iterations = 0;
  double worst = 0;
  for (int64_t i = 0; i < work->nrhs; i++) {
    const quark_result_t *r = &run->result[i];
    iterations += (int64_t)r->iterations;
    if (r->status == QUARK_OK) {
      converged++;
      worst = fmax(worst, r->true_residual);
    } else
      printf("right-hand side %lld: %s, residual %.3g after %llu iterations%s%s\n", (long long)i,
             quark_code_name(r->status), r->true_residual, (unsigned long long)r->iterations,
             *r->text ? ": " : "", r->text);
  }
  printf("%lld of %lld converged, largest residual %.3g, %lld iterations, %.2f s",
         (long long)converged, (long long)work->nrhs, worst, (long long)iterations, seconds);
  printf(run->any_solution ? ", written to %s\n" : ", nothing to write\n", work->options->out);
}

/* The exit code of the worst right-hand side: what a second try can mend counts only where nothing else is wrong. */
static int verdict(const run_t *run) {
  int code = 0;
  for (int64_t i = 0; i < run->work->nrhs; i++) {
    const quark_code_t status = run->result[i].status;
    if (status == QUARK_OK) continue;
    if (!quark_code_retryable(status)) return EXIT_DATA;
    code = EXIT_AGAIN;
  }
  return code;
}

static int finish(run_t *run, double seconds) {
  qk_err_t err = {0};
  if (run->any_solution && qk_h5file_commit(run->out, &err) != QK_OK) return ctl_fail_file(&err);
  if (run->work->options->common.json) {
    const int code = print_json(run, seconds);
    if (code) return code;
  } else
    print_text(run, seconds);
  return verdict(run);
}

static int open_output(run_t *run) {
  ctl_work_t *work = run->work;
  qk_h5meta_t meta;
  qk_err_t err = {0};
  describe(work, &meta);
  if (qk_h5file_create(work->options->out, &meta, bits_of(work), work->nrhs, &run->out, &err) !=
      QK_OK)
    return ctl_fail_file(&err);
  run->field_bytes = qk_h5file_rhs_bytes(run->out, bits_of(work));
  run->field = malloc(run->field_bytes);
  run->result = calloc((size_t)work->nrhs, sizeof *run->result);
  if (run->field && run->result) return 0;
  ctl_complain("no memory for one field of %zu bytes", run->field_bytes);
  return EXIT_AGAIN;
}

static int64_t batch_size(const quark_report_t *report) {
  const int64_t twice = 2 * (int64_t)report->engine.slots;
  return twice < LEAST_BATCH ? LEAST_BATCH : twice > MOST_BATCH ? MOST_BATCH : twice;
}

int ctl_work_run(ctl_work_t *work) {
  const double patience =
      isnan(work->options->common.timeout) ? 300 : work->options->common.timeout;
  run_t run = {
      .work = work, .batch_size = batch_size(&work->report), .give_up = ctl_seconds() + patience};
  ctl_catch_signals();
  int code = open_output(&run);
  if (code == 0) {
    const double begun = ctl_seconds();
    ctl_progress_begin(&run.progress, work->nrhs, work->options->progress);
    code = solve_all(&run);
    ctl_progress_end(&run.progress);
    if (code == 0) code = finish(&run, ctl_seconds() - begun);
  }
  qk_h5file_close(run.out);
  free(run.field);
  free(run.result);
  return code;
}

/* ---- options ---- */

enum {
  OPT_OUT = 0x300,
  OPT_TOL,
  OPT_MAX_ITER,
  OPT_DEADLINE,
  OPT_PRIORITY,
  OPT_DTYPE,
  OPT_BASIS,
  OPT_NORMALISATION,
  OPT_SMEAR,
  OPT_LINKS,
  OPT_PROGRESS,
  OPT_CLIENT
};

static const struct argp_option options[] = {
    {"out", OPT_OUT, "FILE", 0, "HDF5 file for the solutions (required)", 10},
    {"tol", OPT_TOL, "TOL", 0, "relative residual |b - M x| / |b| to reach (1e-10)", 10},
    {"max-iter", OPT_MAX_ITER, "N", 0,
     "iterations after which a right-hand side is given up (10000)", 10},
    {"deadline", OPT_DEADLINE, "SECONDS", 0, "time after which a right-hand side is given up", 10},
    {"priority", OPT_PRIORITY, "N", 0,
     "0 to 9: among the requests of one user the greater goes first (4)", 10},
    {"dtype", OPT_DTYPE, "f32|f64", 0,
     "precision of the file and on the wire (f64; solve: that of the input)", 10},
    {"basis", OPT_BASIS, "NAME", 0, "degrand-rossi (default), ukqcd, dirac-pauli or openqcd", 10},
    {"normalisation", OPT_NORMALISATION, "mass|kappa", 0,
     "solve M x = b (mass, default) or 2 kappa M x = b", 10},
    {"smear", OPT_SMEAR, "SMEARING", 0,
     "Gaussian smearing of the sources: gauss:ALPHA,STEPS or gauss:width=W,steps=N", 10},
    {"smear-links", OPT_LINKS, "SMEARING", 0,
     "of the links that smearing uses: ape:ALPHA,STEPS[,4d], stout:RHO,STEPS[,4d] or "
     "hyp:A1,A2,A3[,STEPS]",
     10},
    {"progress", OPT_PROGRESS, 0, 0, "show progress also where stderr is no terminal", 10},
    {"client", OPT_CLIENT, "ID", 0,
     "32 hexadecimal digits to be known by, for quarkctl cancel (random)", 10},
    {0},
};

static void parse_words(int key, const char *arg, ctl_solve_options_t *o,
                        const struct argp_state *state) {
  quark_params_t *p = &o->params;
  if (key == OPT_DTYPE) {
    if (strcmp(arg, "f32") != 0 && strcmp(arg, "f64") != 0)
      argp_error(state, "--dtype=%s: must be f32 or f64", arg);
    p->dtype = strcmp(arg, "f32") == 0 ? QUARK_F32 : QUARK_F64;
    o->has_dtype = true;
  } else if (key == OPT_BASIS) {
    if (!quark_basis_parse(arg, &p->basis))
      argp_error(state, "--basis=%s: must be degrand-rossi, ukqcd, dirac-pauli or openqcd", arg);
    o->has_basis = true;
  } else {
    if (strcmp(arg, "mass") != 0 && strcmp(arg, "kappa") != 0)
      argp_error(state, "--normalisation=%s: must be mass or kappa", arg);
    p->normalisation = strcmp(arg, "kappa") == 0 ? QUARK_KAPPA : QUARK_MASS;
  }
}

void ctl_smearing(const struct argp_state *state, const char *name, const char *text,
                  quark_smearing_t *smearing) {
  qk_err_t err = {0};
  if (qk_smearing_parse(text, smearing, &err) != QK_OK)
    argp_error(state, "--%s=%s: %s", name, text, err.text);
}

void ctl_source(const struct argp_state *state, const char *text, qk_source_t *source) {
  qk_err_t err = {0};
  if (qk_source_parse(text, source, &err) != QK_OK) argp_error(state, "--source: %s", err.text);
}

static void parse_links(const struct argp_state *state, const char *text,
                        quark_smearing_t *smearing) {
  qk_err_t err = {0};
  if (qk_smearing_parse_links(text, smearing, &err) != QK_OK)
    argp_error(state, "--smear-links=%s: %s", text, err.text);
}

/* The links are the same for sources and sinks. */
static void finish_options(ctl_solve_options_t *o, const struct argp_state *state) {
  quark_smearing_t links = o->params.smear;
  if (!o->out && !o->out_optional) argp_error(state, "--out is required");
  if (links.links && !o->params.smear.steps && !o->sink.steps)
    argp_error(state, "--smear-links is for what is smeared: --smear is missing");
  links.alpha = o->sink.alpha;
  links.steps = o->sink.steps;
  o->sink = links;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  ctl_solve_options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->common;
    return 0;
  case OPT_OUT:
    o->out = arg;
    return 0;
  case OPT_TOL:
    o->params.tol = ctl_real(state, "tol", arg, 1e-16, 0.999);
    return 0;
  case OPT_MAX_ITER:
    o->params.max_iter = ctl_integer(state, "max-iter", arg, 1, 1000000000);
    return 0;
  case OPT_DEADLINE:
    o->params.deadline_ms = (uint64_t)(1000 * ctl_real(state, "deadline", arg, 1e-3, 3e7));
    return 0;
  case OPT_PRIORITY:
    o->params.priority = (int)ctl_integer(state, "priority", arg, 0, 9);
    return 0;
  case OPT_DTYPE:
  case OPT_BASIS:
  case OPT_NORMALISATION:
    parse_words(key, arg, o, state);
    return 0;
  case OPT_SMEAR:
    ctl_smearing(state, "smear", arg, &o->params.smear);
    return 0;
  case OPT_LINKS:
    parse_links(state, arg, &o->params.smear);
    return 0;
  case OPT_PROGRESS:
    o->progress = true;
    return 0;
  case OPT_CLIENT:
    ctl_client(state, arg, o->client);
    o->has_client = true;
    return 0;
  case ARGP_KEY_END:
    finish_options(o, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child children[] = {{&ctl_common_argp, 0, NULL, 0}, {0}};
const struct argp ctl_solve_argp = {.options = options, .parser = parse, .children = children};

void ctl_solve_options_init(ctl_solve_options_t *o) {
  *o = (ctl_solve_options_t){0};
  ctl_common_init(&o->common);
  quark_params_init(&o->params);
}
