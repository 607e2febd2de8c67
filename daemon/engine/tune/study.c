#include "daemon/engine/tune/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/tune/search.h"

/* Of cases other than this one, and how much slower than the best a trial may be before it ends. */
enum { MOST_STARTS = 4 };
static const double HOPELESS = 1.5;
/* More noise than a device of our own has. */
static const double RESTLESS = 0.05;

/* ---- trials of the search -------------------------------------------------------------------- */

static double margin_of(const qk_study_t *s) {
  return fmax(s->noise, QK_TUNE_LEAST_GAIN);
}

/* A comparison takes at least so long; it is left a third of the budget at most. */
static double reserve(const qk_study_t *s) {
  const double turns = QK_TUNE_TURNS_LEAST * (s->wall_defaults + s->wall_best);
  return fmin(turns, s->options->budget / 3);
}

static bool search_time_left(void *arg) {
  qk_study_t *s = arg;
  return s->ntrial < s->options->trials && qk_study_time_left(s, reserve(s));
}

static double try(qk_study_t *s, qk_mg_params_t *params, const char *what, double least,
                  qk_tune_record_t *record) {
  const qk_study_trial_t how = {
      .what = what,
      .plan = {.repeats = 3, .keen = least * (1 + margin_of(s)), .stop = HOPELESS * least},
      .remember = true};
  return qk_study_trial(s, params, &how, record);
}

static double search_cost(void *arg, qk_mg_params_t *params, const char *what, double least) {
  return try(arg, params, what, least, NULL);
}

static double cost_again(void *arg, const qk_mg_params_t *best) {
  qk_study_t *s = arg;
  qk_mg_params_t p = *best;
  const qk_study_trial_t how = {.what = "the best again",
                                .plan = {.repeats = 3, .keen = INFINITY, .stop = INFINITY}};
  return qk_study_trial(s, &p, &how, NULL);
}

/* ---- starting points ------------------------------------------------------------------------- */

/* The defaults, twice: what a program does for the first time takes longer. */
static double measure_defaults(qk_study_t *s, qk_mg_params_t *params) {
  const qk_trial_plan_t plan = {.repeats = 5, .keen = INFINITY, .stop = INFINITY};
  qk_study_trial_t how = {.what = "defaults", .plan = plan, .silent = true};
  how.plan.repeats = 1;
  qk_study_trial(s, params, &how, NULL);
  how.silent = false;
  how.plan = plan;
  how.plan.anew = true;
  const double start = qk_clock_now(), cost = qk_study_trial(s, params, &how, &s->defaults);
  s->wall_defaults = qk_clock_now() - start;
  qk_err_t why = {0};
  s->noise = isfinite(cost) ? fmax(s->defaults.spread, 0) : 0;
  if (s->tool->root && s->noise > RESTLESS)
    fprintf(stderr, "%s: times of the defaults differ by %.0f %%: is there other work here?\n",
            s->tool->program, 100 * s->noise);
  const qk_status_t status = qk_comm_bcast(s->tool->comm, &s->noise, sizeof s->noise, 0);
  if (status != QK_OK && s->failed == QK_OK) {
    s->failed = status;
    *s->err = why;
  }
  return cost;
}

typedef struct start {
  double distance;
  char what[QK_TUNE_NAME];
  qk_mg_params_t params;
} start_t;

static int by_distance(const void *a, const void *b) {
  const double x = ((const start_t *)a)->distance, y = ((const start_t *)b)->distance;
  return (x > y) - (x < y);
}

/* The best of each other case that there is, the nearest first. Rank 0. */
static int list_starts(const qk_study_t *s, start_t start[MOST_STARTS]) {
  start_t *all = calloc((size_t)s->book.ncase + 1, sizeof *all);
  int n = 0;
  for (int i = 0; i < s->book.ncase && all; i++) {
    const qk_tune_record_t *best = qk_tune_book_best(&s->book, i, s->options->solves);
    if (i == s->mine || !best) continue;
    const qk_tune_case_t *of = &s->book.of[i];
    all[n].distance = qk_tune_case_distance(&s->of, of);
    all[n].params = best->params;
    snprintf(all[n++].what, QK_TUNE_NAME, "best of %dx%dx%dx%d, %.20s", of->dims[0], of->dims[1],
             of->dims[2], of->dims[3], of->device);
  }
  if (all) qsort(all, (size_t)n, sizeof *all, by_distance);
  n = n < MOST_STARTS ? n : MOST_STARTS;
  if (n > 0) memcpy(start, all, (size_t)n * sizeof *all);
  free(all);
  return n;
}

/* Aggregates of another lattice may not fit: then those that are chosen here. */
static void fit(const qk_study_t *s, qk_mg_params_t *params) {
  qk_mg_params_t p = *params;
  qk_err_t why = {0};
  if (qk_trial_complete(&s->trial, &p, &why) == QK_OK) return;
  for (int l = 0; l < QK_MG_LEVELS_MAX; l++) {
    memset(params->level[l].block, 0, sizeof params->level[l].block);
    memset(params->level[l].smoother.block, 0, sizeof params->level[l].smoother.block);
  }
}

/* Takes a point that is better than the best. */
static void try_start(qk_study_t *s, const char *what, qk_mg_params_t *params, qk_mg_params_t *best,
                      double *least) {
  const double cost = try(s, params, what, *least, NULL);
  if (!(cost < (1 - margin_of(s)) * *least)) return;
  *least = cost;
  *best = *params;
}

static void try_starts(qk_study_t *s, qk_mg_params_t *best, double *least) {
  struct {
    int32_t n;
    start_t start[MOST_STARTS];
  } list = {0};
  qk_err_t why = {0};
  if (s->options->has_start) {
    qk_mg_params_t p = s->options->start;
    try_start(s, "start", &p, best, least);
  }
  if (s->tool->root) {
    list.n = list_starts(s, list.start);
    const qk_tune_record_t *mine = qk_tune_book_best(&s->book, s->mine, s->options->solves);
    if (mine && list.n < MOST_STARTS &&
        qk_tune_book_find(&s->seen, s->mine, mine->settings) == NULL) {
      list.start[list.n].params = mine->params;
      snprintf(list.start[list.n++].what, QK_TUNE_NAME, "best of the protocol");
    }
  }
  const qk_status_t status = qk_comm_bcast(s->tool->comm, &list, sizeof list, 0);
  if (status != QK_OK && s->failed == QK_OK) {
    s->failed = status;
    *s->err = why;
  }
  for (int i = 0; i < list.n && search_time_left(s); i++) {
    fit(s, &list.start[i].params);
    try_start(s, list.start[i].what, &list.start[i].params, best, least);
  }
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* False where it did not work, so that there is nothing to compare. */
static bool take_turn(qk_study_t *s, const char *what, qk_mg_params_t *params, int repeats,
                      qk_tune_turns_t *turns) {
  char text[QK_TUNE_WHAT];
  qk_tune_record_t r;
  const qk_study_trial_t how = {.what = text,
                                .plan = {.repeats = repeats, .keen = INFINITY, .stop = INFINITY}};
  snprintf(text, sizeof text, "turn %d: %s", turns->n + 1, what);
  if (!isfinite(qk_study_trial(s, params, &how, &r))) return false;
  turns->seconds[turns->n] = r.seconds;
  turns->setup[turns->n] = r.setup_seconds;
  turns->alone[turns->n++] = r.alone;
  return true;
}

/* More turns where the first ones do not say enough, and there is time. */
static void compare(qk_study_t *s, qk_mg_params_t *defaults, qk_mg_params_t *best) {
  qk_tune_turns_t a = {0}, b = {0};
  qk_err_t why = {0};
  for (int i = 0; i < QK_TUNE_TURNS; i++) {
    if (!take_turn(s, "defaults", defaults, 3, &a) || !take_turn(s, "the best", best, 3, &b)) break;
    qk_tune_judge(&a, &b, s->noise, s->options->solves, &s->verdict);
    s->compared = true;
    /* others would wait for ever if they did not agree */
    const qk_status_t status = qk_comm_bcast(s->tool->comm, &s->verdict, sizeof s->verdict, 0);
    if (status != QK_OK && s->failed == QK_OK) {
      s->failed = status;
      *s->err = why;
    }
    const bool clear = i + 1 > QK_TUNE_TURNS_LEAST && fabs(s->verdict.gain) > 3 * s->verdict.noise;
    if (i + 1 >= QK_TUNE_TURNS_LEAST && (clear || !qk_study_time_left(s, 0))) break;
  }
  const double first =
      qk_tune_cost(s->defaults.seconds, s->defaults.setup_seconds, s->options->solves);
  if (s->compared) s->drift = s->verdict.defaults.cost / first - 1;
  s->spoiled = !s->compared;
  s->end = s->compared && s->verdict.better ? QK_STUDY_BETTER : QK_STUDY_DEFAULTS;
}

/* Nothing is to be compared: how the defaults fare now. */
static void measure_drift(qk_study_t *s, qk_mg_params_t *defaults) {
  qk_tune_turns_t a = {0};
  s->end = QK_STUDY_DEFAULTS;
  if (!take_turn(s, "defaults", defaults, 3, &a)) return;
  s->drift = qk_tune_cost(a.seconds[0], a.setup[0], s->options->solves) /
                 qk_tune_cost(s->defaults.seconds, s->defaults.setup_seconds, s->options->solves) -
             1;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The record that params were measured with: they are the best. Rank 0. */
static void find_best(qk_study_t *s, const qk_mg_params_t *params) {
  char settings[QK_TUNE_SETTINGS];
  s->best = s->defaults;
  if (!qk_tune_settings(params, settings)) return;
  for (int i = 0; i < s->seen.nrecord; i++)
    if (strcmp(s->seen.record[i].settings, settings) == 0) s->best = s->seen.record[i];
}

static qk_status_t conclude(qk_study_t *s, double first, double least, qk_mg_params_t *defaults,
                            qk_mg_params_t *best, qk_err_t *err) {
  if (!isfinite(least))
    return qk_fail(err, QK_NOT_CONVERGED, "no parameters were found that work: %s",
                   s->defaults.error);
  if (s->tool->root) find_best(s, best);
  if (!isfinite(first))
    s->end = QK_STUDY_ONLY;
  else if (memcmp(best, defaults, sizeof *best) == 0)
    measure_drift(s, defaults);
  else
    compare(s, defaults, best);
  return QK_OK;
}

qk_status_t qk_study_run(qk_study_t *s, qk_err_t *err) {
  qk_mg_params_t defaults = {0};
  s->began = qk_clock_now();
  s->drift = NAN;
  s->least = INFINITY;
  qk_study_catch_signals();
  qk_status_t status = qk_study_read(s, err);
  if (status == QK_OK && !s->options->has_start)
    status = qk_trial_complete(&s->trial, &defaults, err);
  if (status != QK_OK) return status;
  const double first = measure_defaults(s, &defaults);
  qk_mg_params_t best = defaults;
  double least = first;
  try_starts(s, &best, &least);
  const qk_tune_search_t search = {.arg = s,
                                   .geom = &s->tool->geom,
                                   .twisted = qk_operator_base(s->trial.op)->twist != 0,
                                   .margin = margin_of(s),
                                   .cost = search_cost,
                                   .again = cost_again,
                                   .time_left = search_time_left};
  if (s->failed == QK_OK && best.nlevel > 0) least = qk_tune_run(&search, &best, least);
  qk_study_tell_signal(s);
  if (s->failed == QK_OK) status = conclude(s, first, least, &defaults, &best, err);
  return s->failed != QK_OK ? s->failed : status;
}

void qk_study_fini(qk_study_t *s) {
  qk_trial_fini(&s->trial);
  qk_tune_book_fini(&s->book);
  qk_tune_book_fini(&s->seen);
}
