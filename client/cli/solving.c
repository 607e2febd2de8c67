#include "client/cli/solving.h"

enum { IN_FLIGHT = 2, LEAST_BATCH = 12, MOST_BATCH = 256, RETRY_MS = 500, LOOK_MS = 200 };

/* A request under way: right-hand sides first .. first + nrhs - 1 of the work. */
typedef struct batch {
  uint64_t request; /* 0: none */
  int64_t first;
  uint32_t nrhs, ended;
} batch_t;

typedef struct run {
  ctl_work_t *work;
  batch_t batch[IN_FLIGHT];
  int64_t next, batch_size; /* next: the first right-hand side that is not submitted */
  ctl_outcome_t outcome;
  double give_up; /* at submitting, in seconds of the clock */
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
  return run->outcome.out && qk_fieldfile_gathers(run->outcome.out);
}

/* After a refusal: makes requests smaller, waits for a full daemon, or returns an exit code. */
static int refused(run_t *run, const quark_error_t *err) {
  if (err->code == QUARK_TOO_LARGE && run->batch_size > 1 && !run->work->whole) {
    run->batch_size /= 2;
    return 0;
  }
  const bool waits = run->next > run->outcome.ended; /* our own work may be what fills the daemon */
  if (!err->retryable || err->code == QUARK_TIMEOUT || err->code == QUARK_SHUTTING_DOWN ||
      (!waits && ctl_seconds() > run->give_up)) {
    const int code = ctl_fail(err);
    if (err->code == QUARK_BUSY && gathers(run))
      ctl_complain("the daemon keeps %lld solutions until the file can be written, and needs room "
                   "for all %lld: --format=hdf5 needs two",
                   (long long)run->outcome.ended, (long long)run->work->nrhs);
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
  p.nrhs = (uint32_t)(left < run->batch_size ? left : run->batch_size);
  p.column = work->column ? work->column + run->next : NULL;
  uint64_t field_bytes, request;
  if (quark_submit(work->conn, &p, &request, &field_bytes, &err) != QUARK_OK) {
    *full = true;
    return refused(run, &err);
  }
  *b = (batch_t){.request = request, .first = run->next, .nrhs = p.nrhs};
  run->next += p.nrhs;
  if (field_bytes != run->outcome.field_bytes) {
    ctl_complain("the daemon has fields of %llu bytes, expected %zu",
                 (unsigned long long)field_bytes, run->outcome.field_bytes);
    return EXIT_DATA;
  }
  return work->in ? ctl_work_upload(work, request, b->first, b->nrhs, run->outcome.field,
                                    run->outcome.field_bytes)
                  : 0;
}

static int take_result(run_t *run, const quark_result_t *result) {
  batch_t *b = find_batch(run, result->request);
  if (!b) return 0;
  int code = ctl_outcome_take(&run->outcome, b->first + result->rhs, result);
  if (code || ++b->ended < b->nrhs) return code;
  if ((code = ctl_outcome_drain(&run->outcome))) return code;
  if (!gathers(run)) quark_release(run->work->conn, b->request, NULL);
  b->request = 0;
  return 0;
}

static int interrupted(const run_t *run) {
  ctl_complain("interrupted: %lld of %lld right-hand sides had ended; nothing is written",
               (long long)run->outcome.ended, (long long)run->work->nrhs);
  return EXIT_AGAIN;
}

static int solve_all(run_t *run) {
  ctl_work_t *work = run->work;
  while (run->outcome.ended < work->nrhs) {
    batch_t *b;
    bool full = false;
    while (!full && run->next < work->nrhs && (b = find_batch(run, 0))) {
      const int code = submit(run, b, &full);
      if (code) return code;
    }
    quark_event_t event;
    quark_error_t err;
    if (ctl_interrupted()) return interrupted(run);
    int code = ctl_outcome_check(&run->outcome);
    if (code) return code;
    if (quark_event_next(work->conn, LOOK_MS, &event, &err) != QUARK_OK) return ctl_fail(&err);
    if (event.kind == QUARK_EVENT_RESULT) code = take_result(run, &event.result);
    if (code) return code;
    if (event.kind == QUARK_EVENT_RESULT || event.kind == QUARK_EVENT_PROGRESS)
      ctl_progress_show(&run->progress, &event);
  }
  return 0;
}

static int64_t batch_size(const quark_report_t *report) {
  const int64_t twice = 2 * (int64_t)report->engine.slots;
  return twice < LEAST_BATCH ? LEAST_BATCH : twice > MOST_BATCH ? MOST_BATCH : twice;
}

int ctl_work_run(ctl_work_t *work) {
  bool written;
  run_t run = {.work = work,
               .batch_size = batch_size(&work->report),
               .give_up = ctl_seconds() + ctl_work_patience(work)};
  if (work->whole) run.batch_size = work->nrhs;
  ctl_catch_signals();
  int code = ctl_outcome_open(work, true, &run.outcome);
  if (code == 0) {
    ctl_progress_begin(&run.progress, work->nrhs, work->options->progress);
    code = solve_all(&run);
    ctl_progress_end(&run.progress);
    if (code == 0) code = ctl_outcome_finish(&run.outcome, &written);
  }
  ctl_outcome_close(&run.outcome);
  return code;
}
