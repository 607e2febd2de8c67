#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/engine/tune/study.h"

static qk_comm_t *comm_of(const qk_study_t *s) {
  return s->tool->comm;
}

static void fail(qk_study_t *s, qk_status_t status, const qk_err_t *why) {
  if (s->failed != QK_OK) return;
  s->failed = status;
  *s->err = *why;
}

/* ---- the end of the search ------------------------------------------------------------------- */

static volatile sig_atomic_t signalled;

static void note_signal(int number) {
  (void)number;
  signalled = 1;
}

void qk_study_catch_signals(void) {
  struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

void qk_study_tell_signal(const qk_study_t *s) {
  if (signalled && s->tool->root)
    fprintf(stderr, "%s: interrupted: the search ends, the comparison follows\n", s->tool->program);
}

bool qk_study_time_left(qk_study_t *s, double reserve) {
  const double spent = qk_clock_now() - s->began + reserve;
  int32_t left = s->failed == QK_OK && !signalled && spent < s->options->budget;
  qk_err_t why = {0};
  const qk_status_t status = qk_comm_bcast(comm_of(s), &left, sizeof left, 0);
  if (status != QK_OK) fail(s, status, &why);
  return left && status == QK_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void tell_damage(void *arg, const char *path, int line, const char *why) {
  const qk_study_t *s = arg;
  fprintf(stderr, "%s: %s: line %d: %s; skipped\n", s->tool->program, path, line, why);
}

static qk_status_t read_files(qk_study_t *s, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < s->options->nfrom && status == QK_OK; i++) {
    qk_tune_file_t from = {.path = s->options->from[i]};
    status = qk_tune_file_read(&from, &s->book, tell_damage, s, err);
    if (status == QK_OK && from.left) tell_damage(s, from.path, from.line + 1, "it has no end");
  }
  s->file = (qk_tune_file_t){.path = s->options->protocol};
  if (status != QK_OK || !s->file.path) return status;
  status = qk_tune_file_append(s->file.path, NULL, err);
  return status ? status : qk_tune_file_read(&s->file, &s->book, tell_damage, s, err);
}

qk_status_t qk_study_read(qk_study_t *s, qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (s->tool->root) {
    status = read_files(s, err);
    s->mine = qk_tune_book_case(&s->book, &s->of);
    if (s->mine < 0 && status == QK_OK) status = qk_fail(err, QK_NO_MEMORY, "no memory");
  }
  return qk_comm_agree(comm_of(s), status, err);
}

/* To the protocol, where others may have added trials meanwhile; to the book. Rank 0. */
static qk_status_t keep(qk_study_t *s, const qk_tune_record_t *r, qk_err_t *err) {
  if (!s->file.path)
    return qk_tune_book_add(&s->book, r) ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory");
  char *line = qk_tune_record_line(&s->of, r);
  qk_status_t status = line ? qk_tune_file_append(s->file.path, line, err)
                            : qk_fail(err, QK_NO_MEMORY, "%s: no memory", s->file.path);
  free(line);
  return status == QK_OK ? qk_tune_file_read(&s->file, &s->book, tell_damage, s, err) : status;
}

/* ---- progress -------------------------------------------------------------------------------- */

typedef enum how { MADE, KNOWN, UNFIT } how_t;

static void tell(const qk_study_t *s, const qk_tune_record_t *r, how_t how) {
  char count[16] = "-";
  if (how == MADE) snprintf(count, sizeof count, "%d", s->ntrial);
  if (how == KNOWN) snprintf(count, sizeof count, "known");
  fprintf(stderr, "%5s %5.0f s  %-40s ", count, qk_clock_now() - s->began, r->what);
  if (r->outcome == QK_TUNE_FAILED)
    fprintf(stderr, "%s\n", r->error);
  else if (r->outcome == QK_TUNE_STOPPED)
    fprintf(stderr, "stopped: above %.4f s per RHS with its part of a setup of %.2f s\n",
            qk_tune_cost(r->seconds, r->setup_seconds, s->options->solves), r->setup_seconds);
  else
    fprintf(stderr, "%9.4f s per RHS, %5.1f iterations, setup %6.2f s; best %.4f s\n", r->seconds,
            r->iterations, r->setup_seconds, s->least);
}

/* A trial that has ended, on rank 0. */
static void note(qk_study_t *s, const qk_tune_record_t *r, how_t how) {
  if (!s->tool->root) return;
  tell(s, r, how);
  qk_err_t why = {0};
  if (!qk_tune_book_add(&s->seen, r)) fail(s, qk_fail(&why, QK_NO_MEMORY, "no memory"), &why);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What a record says of the cost; NaN: not enough. */
static double known_cost(const qk_study_t *s, const qk_tune_record_t *r, double keen) {
  if (r->outcome == QK_TUNE_FAILED) return INFINITY;
  const double cost = qk_tune_cost(r->seconds, r->setup_seconds, s->options->solves);
  return r->outcome == QK_TUNE_GOOD || cost > keen ? cost : NAN;
}

/* False where the trial has to be made. */
static bool recall(qk_study_t *s, const qk_study_trial_t *how, qk_tune_record_t *r, double *cost) {
  double found = NAN;
  qk_err_t why = {0};
  if (s->tool->root && how->remember) {
    const qk_tune_record_t *known = qk_tune_book_find(&s->book, s->mine, r->settings);
    if (known) {
      found = known_cost(s, known, how->plan.keen);
      *r = *known;
      snprintf(r->what, sizeof r->what, "%s", how->what);
    }
  }
  const qk_status_t status = qk_comm_bcast(comm_of(s), &found, sizeof found, 0);
  if (status != QK_OK) fail(s, status, &why);
  *cost = found;
  return !isnan(found);
}

/* ---- a trial --------------------------------------------------------------------------------- */

static void tell_time(char *text, size_t size) {
  const time_t now = time(NULL);
  struct tm utc;
  gmtime_r(&now, &utc);
  strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static void fill_in(qk_tune_record_t *r, const qk_trial_result_t *t, const qk_err_t *why) {
  tell_time(r->time, sizeof r->time);
  r->outcome = t->status != QK_OK ? QK_TUNE_FAILED : t->stopped ? QK_TUNE_STOPPED : QK_TUNE_GOOD;
  snprintf(r->error, sizeof r->error, "%.255s", t->status != QK_OK ? why->text : "");
  r->seconds = t->seconds;
  r->spread = t->spread;
  r->alone = t->alone;
  r->setup_seconds = t->setup_seconds;
  r->iterations = t->iterations;
  r->residual = t->residual;
  r->bytes = t->bytes;
}

/* Returns the cost, the same on all ranks. */
static double make(qk_study_t *s, const qk_mg_params_t *params, const qk_study_trial_t *how,
                   qk_tune_record_t *r) {
  qk_trial_result_t result;
  qk_err_t why = {0}, lost = {0};
  const double start = qk_clock_now();
  qk_status_t status = qk_trial_run(&s->trial, params, &how->plan, &result, &why);
  double cost = qk_trial_cost(&s->trial, &result);
  if (status != QK_OK || (status = qk_comm_bcast(comm_of(s), &cost, sizeof cost, 0)) != QK_OK) {
    fail(s, status, &why);
    return INFINITY;
  }
  fill_in(r, &result, &why);
  if (how->silent) return cost;
  s->ntrial++;
  if (cost < s->least) {
    s->least = cost;
    s->wall_best = qk_clock_now() - start;
  }
  if (s->tool->root) status = keep(s, r, &lost);
  status = qk_comm_agree(comm_of(s), status, &lost);
  if (status != QK_OK) fail(s, status, &lost);
  note(s, r, MADE);
  return cost;
}

double qk_study_trial(qk_study_t *s, qk_mg_params_t *params, const qk_study_trial_t *how,
                      qk_tune_record_t *record) {
  qk_tune_record_t r = {.of = s->mine, .spread = -1, .alone = -1, .outcome = QK_TUNE_FAILED};
  qk_err_t why = {0};
  double cost = INFINITY;
  snprintf(r.what, sizeof r.what, "%s", how->what);
  snprintf(r.gauge, sizeof r.gauge, "%s", s->options->gauge);
  if (s->failed != QK_OK) return INFINITY;
  const bool fits = qk_trial_complete(&s->trial, params, &why) == QK_OK;
  r.params = *params;
  if (!fits || !qk_tune_settings(params, r.settings)) {
    snprintf(r.error, sizeof r.error, "%.255s", why.text);
    if (!how->silent) note(s, &r, UNFIT);
  } else if (recall(s, how, &r, &cost)) {
    s->nknown++;
    s->least = fmin(s->least, cost);
    note(s, &r, KNOWN);
  } else {
    cost = make(s, params, how, &r);
  }
  if (record) *record = r;
  return cost;
}
