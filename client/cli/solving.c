#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/solving.h"
#include "proto/action/text.h"

enum { IN_FLIGHT = 2, LEAST_BATCH = 12, MOST_BATCH = 256, RETRY_MS = 500, LOOK_MS = 200 };

/* A request under way: sources first .. first + n - 1 of the work, for each mass one after the
 * other: nrhs in all. */
typedef struct batch {
  uint64_t request; /* 0: none */
  int64_t first;
  uint32_t n, nrhs, ended;
} batch_t;

typedef struct run {
  ctl_work_t *work;
  batch_t batch[IN_FLIGHT];
  int64_t next, batch_size; /* next: the first source that is not submitted */
  int64_t ended;
  int masses;                           /* files: 1, or one for each mass */
  ctl_work_t of[QK_MASSES_MAX];         /* work, as each of them has it */
  char out[QK_MASSES_MAX][CTL_OUT_MAX]; /* their names, with several masses */
  ctl_outcome_t outcome[QK_MASSES_MAX]; /* of each */
  int writing;                          /* the one whose writer may be at work */
  double give_up;                       /* at submitting, in seconds of the clock */
  ctl_progress_t progress;
} run_t;

/* ---- requests ---- */

static batch_t *find_batch(run_t *run, uint64_t request) {
  for (int i = 0; i < IN_FLIGHT; i++)
    if (run->batch[i].request == request) return &run->batch[i];
  return NULL;
}

/* Whether the daemon keeps all solutions until the file is written. */
static bool gathers(const run_t *run) {
  return run->outcome[0].out && qk_fieldfile_gathers(run->outcome[0].out);
}

/* After a refusal: makes requests smaller, waits for a full daemon, or returns an exit code. */
static int refused(run_t *run, const quark_error_t *err) {
  if (err->code == QUARK_TOO_LARGE && run->batch_size > 1 && !run->work->whole) {
    run->batch_size /= 2;
    return 0;
  }
  const bool waits =
      run->next * run->masses > run->ended; /* our own work may be what fills the daemon */
  if (!err->retryable || err->code == QUARK_TIMEOUT || err->code == QUARK_SHUTTING_DOWN ||
      (!waits && ctl_seconds() > run->give_up)) {
    const int code = ctl_fail(err);
    if (err->code == QUARK_BUSY && gathers(run))
      ctl_complain("the daemon keeps %lld solutions until the file can be written, and needs room "
                   "for all %lld: --format=hdf5 needs two",
                   (long long)run->ended, (long long)run->work->nrhs * run->masses);
    return code;
  }
  if (!waits) ctl_pause(err->retry_after_ms ? err->retry_after_ms : RETRY_MS);
  return 0;
}

/* Submits the next batch. *full: the daemon has no room now. */
static int submit(run_t *run, batch_t *b, bool *full) {
  ctl_work_t *work = run->work;
  quark_params_t p = work->params;
  quark_error_t err;
  const int64_t left = work->nrhs - run->next;
  const uint32_t n = (uint32_t)(left < run->batch_size ? left : run->batch_size);
  p.nrhs = n * (uint32_t)run->masses;
  p.column = work->column ? work->column + run->next : NULL;
  uint64_t field_bytes, request;
  if (quark_submit(work->conn, &p, &request, &field_bytes, &err) != QUARK_OK) {
    *full = true;
    return refused(run, &err);
  }
  *b = (batch_t){.request = request, .first = run->next, .n = n, .nrhs = p.nrhs};
  run->next += n;
  const ctl_outcome_t *first = &run->outcome[0];
  if (field_bytes != first->field_bytes) {
    ctl_complain("the daemon has fields of %llu bytes, expected %zu",
                 (unsigned long long)field_bytes, first->field_bytes);
    return EXIT_DATA;
  }
  int code = 0;
  for (int k = 0; k < run->masses && work->in && code == 0; k++)
    code = ctl_work_upload(work, request, b->first, n, first->field, first->field_bytes);
  return code;
}

/* One file is written at a time. */
static int turn_to(run_t *run, int k) {
  if (k == run->writing) return 0;
  const int code = ctl_outcome_drain(&run->outcome[run->writing]);
  run->writing = k;
  return code;
}

static int take_result(run_t *run, const quark_result_t *result) {
  batch_t *b = find_batch(run, result->request);
  if (!b) return 0;
  const int k = (int)(result->rhs / b->n);
  int code = turn_to(run, k);
  if (code == 0) code = ctl_outcome_take(&run->outcome[k], b->first + result->rhs % b->n, result);
  run->ended++;
  if (code || ++b->ended < b->nrhs) return code;
  if ((code = ctl_outcome_drain(&run->outcome[k]))) return code;
  if (!gathers(run)) quark_release(run->work->conn, b->request, NULL);
  b->request = 0;
  return 0;
}

static int interrupted(const run_t *run) {
  ctl_complain("interrupted: %lld of %lld right-hand sides had ended; nothing is written",
               (long long)run->ended, (long long)run->work->nrhs * run->masses);
  return EXIT_AGAIN;
}

static int solve_all(run_t *run) {
  ctl_work_t *work = run->work;
  while (run->ended < work->nrhs * run->masses) {
    batch_t *b;
    bool full = false;
    while (!full && run->next < work->nrhs && (b = find_batch(run, 0))) {
      const int code = submit(run, b, &full);
      if (code) return code;
    }
    quark_event_t event;
    quark_error_t err;
    if (ctl_interrupted()) return interrupted(run);
    int code = ctl_outcome_check(&run->outcome[run->writing]);
    if (code) return code;
    if (quark_event_next(work->conn, LOOK_MS, &event, &err) != QUARK_OK) return ctl_fail(&err);
    if (event.kind == QUARK_EVENT_RESULT) code = take_result(run, &event.result);
    if (code) return code;
    if (event.kind == QUARK_EVENT_RESULT || event.kind == QUARK_EVENT_PROGRESS)
      ctl_progress_show(&run->progress, &event);
  }
  return 0;
}

/* Sources. */
static int64_t batch_size(const quark_report_t *report, int masses) {
  const int64_t twice = 2 * (int64_t)report->engine.slots;
  const int64_t n = twice < LEAST_BATCH ? LEAST_BATCH : twice > MOST_BATCH ? MOST_BATCH : twice;
  return n * masses < MOST_BATCH ? n : MOST_BATCH / masses;
}

int ctl_mass_file(const char *out, double mass, char name[CTL_OUT_MAX]) {
  const char *slash = strrchr(out, '/'), *dot = strrchr(out, '.');
  const size_t stem = dot && dot > (slash ? slash + 1 : out) ? (size_t)(dot - out) : strlen(out);
  char number[QK_REAL_TEXT];
  qk_real_text(mass, number);
  const int n = snprintf(name, CTL_OUT_MAX, "%.*s_m%s%s", (int)stem, out, number, out + stem);
  if (n > 0 && n < CTL_OUT_MAX) return 0;
  ctl_complain("--out=%.80s...: the name is too long", out);
  return EXIT_USAGE;
}

static int open_files(run_t *run) {
  const quark_params_t *p = &run->work->params;
  int code = 0;
  run->masses = p->nmass > 0 ? (int)p->nmass : 1;
  for (int k = 0; k < run->masses && code == 0; k++) {
    ctl_work_t *of = &run->of[k];
    *of = *run->work;
    if (p->nmass > 0) {
      of->mass = p->mass[k];
      code = ctl_mass_file(run->work->out, of->mass, run->out[k]);
      of->out = run->out[k];
    }
    if (code == 0) code = ctl_outcome_open(of, true, &run->outcome[k]);
  }
  return code;
}

/* The worst of all files; all that can be written are. */
static int finish_files(run_t *run) {
  int worst = 0;
  for (int k = 0; k < run->masses; k++) {
    bool written;
    const int code = ctl_outcome_finish(&run->outcome[k], &written);
    if (worst == 0 || (worst == EXIT_AGAIN && code != 0)) worst = code;
  }
  return worst;
}

static void close_files(run_t *run) {
  for (int k = 0; k < run->masses; k++) ctl_outcome_close(&run->outcome[k]);
}

int ctl_work_run(ctl_work_t *work) {
  run_t *run = calloc(1, sizeof *run);
  if (!run) {
    ctl_complain("no memory");
    return EXIT_AGAIN;
  }
  run->work = work;
  run->give_up = ctl_seconds() + ctl_work_patience(work);
  ctl_catch_signals();
  int code = open_files(run);
  run->batch_size = work->whole ? work->nrhs : batch_size(&work->report, run->masses);
  if (code == 0) {
    ctl_progress_begin(&run->progress, work->nrhs * run->masses, work->options->progress);
    code = solve_all(run);
    ctl_progress_end(&run->progress);
    if (code == 0) code = finish_files(run);
  }
  close_files(run);
  free(run);
  return code;
}
