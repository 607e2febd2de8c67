/*
 * pattern.h: names of files with a number in them, such as run1/cfg.%05d.lime.
 *
 * A pattern has one conversion, %d or %0Nd with N from 1 to 18, in the last component of the path.
 * %% is a percent sign; any other % is an error. Pure.
 */
#ifndef QK_GAUGE_TOOL_PATTERN_H
#define QK_GAUGE_TOOL_PATTERN_H

#include <stdint.h>

#include "daemon/base/err.h"

enum {
  QK_PATTERN_NAME =
      200, /* bytes of the last component; more than 200 digits and suffixes fit behind */
  QK_PATTERN_TEXT = 3500, /* bytes of the whole */
  QK_PATTERN_PATH = 4000, /* room for any path made here */
};

typedef struct qk_pattern {
  char head[QK_PATTERN_TEXT + 1], tail[QK_PATTERN_NAME + 1]; /* before and after the number */
  int width;                                                 /* digits at least */
} qk_pattern_t;

/* QK_BAD_ARGUMENT says what is wrong with the text. */
qk_status_t qk_pattern_parse(const char *text, qk_pattern_t *pattern, qk_err_t *err);

/* number >= 0 */
void qk_pattern_path(const qk_pattern_t *pattern, int64_t number, char path[QK_PATTERN_PATH]);

/* "run1/": the folder with its slash, "" for the current one. */
void qk_pattern_folder(const qk_pattern_t *pattern, char folder[QK_PATTERN_PATH]);

/* "run1/cfg": what comes before the number without the separators . _ - at its end; "run1/chain"
 * where nothing is left. */
void qk_pattern_stem(const qk_pattern_t *pattern, char stem[QK_PATTERN_PATH]);

#endif
