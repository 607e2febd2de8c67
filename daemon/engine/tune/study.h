/*
 * study.h: a run of quark-tune: the defaults, what others have found, the search, the comparison at
 * the end. Every trial is told on stderr and appended to the protocol as it ends; one that is in
 * the protocol, of the same case, is not made again. Collective; rank 0 has book, files and
 * figures, all ranks the verdict.
 */
#ifndef QK_TUNE_STUDY_H
#define QK_TUNE_STUDY_H

#include "daemon/engine/tune/book.h"
#include "daemon/engine/tune/judge.h"
#include "daemon/engine/tune/options.h"
#include "daemon/engine/tune/trial.h"

typedef enum qk_study_end {
  QK_STUDY_BETTER,   /* settings are better than the defaults */
  QK_STUDY_DEFAULTS, /* nothing is */
  QK_STUDY_ONLY      /* the defaults do not work, settings do */
} qk_study_end_t;

typedef struct qk_study {
  const qk_tool_t *tool;
  const qk_tune_options_t *options;
  qk_trial_t trial;
  qk_tune_book_t book; /* what is known */
  qk_tune_book_t seen; /* trials of this run, and those that it has not made again */
  qk_tune_case_t of;
  int mine; /* its number in the book */
  qk_tune_file_t file;
  double began, wall_defaults, wall_best; /* seconds; those that a trial takes */
  int ntrial, nknown;                     /* made; not made again */
  qk_status_t failed;                     /* what ends the run; err says why */
  qk_err_t *err;
  double noise, least; /* of the defaults; the cost of the best so far */

  /* results */
  qk_study_end_t end;
  bool compared; /* the verdict is there */
  bool spoiled;  /* it is not, as the best or the defaults failed in their first turn */
  qk_tune_verdict_t verdict;
  qk_tune_record_t defaults, best; /* as first measured */
  double drift;                    /* of the cost of the defaults, from first to last; NaN: none */
} qk_study_t;

/* of: what is studied. The caller fills in tool, options, trial, of, err. */
qk_status_t qk_study_run(qk_study_t *study, qk_err_t *err);
void qk_study_fini(qk_study_t *study);

/* One trial, from memory if it may be and there is one: its record and cost. least: of the best so
 * far. For the parts of a study. */
typedef struct qk_study_trial {
  const char *what;
  qk_trial_plan_t plan;
  bool remember; /* a record of the protocol will do */
  bool silent;   /* is no trial: it warms up */
} qk_study_trial_t;
double qk_study_trial(qk_study_t *study, qk_mg_params_t *params, const qk_study_trial_t *how,
                      qk_tune_record_t *record);
/* The first SIGINT or SIGTERM ends the search: there is no time left then. The second one ends the
 * program. */
void qk_study_catch_signals(void);
void qk_study_tell_signal(const qk_study_t *study); /* if there was one */
/* Whether the budget has more than `reserve` seconds left, by the clock of rank 0. */
bool qk_study_time_left(qk_study_t *study, double reserve);
/* Reads the protocol and the files of --from; the case gets its number. */
qk_status_t qk_study_read(qk_study_t *study, qk_err_t *err);

#endif
