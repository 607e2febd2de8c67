/*
 * record.h: a trial as a line of a protocol: one JSON object, which says on what it was measured
 * (its case), with which settings, and what came out. docs/man/quark-tune.1 lists the members.
 *
 * Reading takes any bytes: members that it does not know are ignored, those that it needs must be
 * there, of their type and within their limits. Errors: QK_BAD_FORMAT, QK_UNSUPPORTED (a version
 * that is not ours), QK_TOO_LARGE; QK_BAD_ARGUMENT for settings that multigrid here does not have.
 * Pure.
 */
#ifndef QK_TUNE_RECORD_H
#define QK_TUNE_RECORD_H

#include <jansson.h>
#include <stddef.h>

#include "daemon/engine/multigrid/multigrid.h"
#include "proto/action/operator_text.h"

enum {
  QK_TUNE_VERSION = 1,
  QK_TUNE_LINE = 32768,    /* bytes of a line without its end */
  QK_TUNE_SETTINGS = 2048, /* of settings as text with its end */
  QK_TUNE_NAME = 128
};

/* What figures hold for. Texts are UTF-8 without control characters. */
typedef struct qk_tune_case {
  uint64_t links; /* digest (gauge.h) */
  int dims[4], grid[4];
  char op[QK_OPERATOR_TEXT]; /* canonical (operator_text.h) */
  double boundary_t, tol;
  int slots, threads;
  char backend[16], device[QK_TUNE_NAME], precision[16], version[32];
} qk_tune_case_t;

/* STOPPED: slower than what there was; its figures are only the least that they can be. */
typedef enum qk_tune_outcome { QK_TUNE_GOOD, QK_TUNE_STOPPED, QK_TUNE_FAILED } qk_tune_outcome_t;

typedef struct qk_tune_record {
  int of;                          /* which case: an index of the book (book.h) */
  char gauge[256];                 /* the file, for people */
  char time[32];                   /* UTC, "2026-11-27T21:30:00Z" */
  char what[QK_TUNE_NAME];         /* how it differs from what was best */
  char settings[QK_TUNE_SETTINGS]; /* "mg-levels = 3\n...": all of them, as mg_text.h prints */
  qk_mg_params_t params;           /* the same */
  qk_tune_outcome_t outcome;
  double seconds; /* a right-hand side, of a block; GOOD: > 0 */
  double spread;  /* of the block's solves (trial.h); < 0: there was one */
  double alone;   /* seconds of a right-hand side by itself; < 0: not measured */
  double setup_seconds, iterations, residual;
  int64_t bytes; /* device memory, of a rank */
  char error[256];
} qk_tune_record_t;

qk_status_t qk_tune_record_read(const char *line, size_t n, qk_tune_case_t *of,
                                qk_tune_record_t *record, qk_err_t *err);
/* The line, without its end, of malloc. NULL: no memory. Texts are cleaned (utf8.h). */
char *qk_tune_record_line(const qk_tune_case_t *of, const qk_tune_record_t *record);

/* Settings of complete parameters as text. False: there is not enough memory or room. */
bool qk_tune_settings(const qk_mg_params_t *params, char text[QK_TUNE_SETTINGS]);

/* The same as an object, of texts. */
json_t *qk_tune_settings_object(const char *settings);

/* Seconds of a solve with its part of a setup that serves so many. */
static inline double qk_tune_cost(double seconds, double setup_seconds, double solves) {
  return seconds + setup_seconds / solves;
}

#endif
