/*
 * stderr_tail.h: keeps the stderr line that most likely tells why a process ended: its last logged
 * error, or else the last line that is not of the log (of a library, the C runtime, mpirun). It
 * also keeps the last few such lines. Pure.
 */
#ifndef QK_FRONT_STDERR_TAIL_H
#define QK_FRONT_STDERR_TAIL_H

#include <stddef.h>

enum { QK_STDERR_LINE_MAX = 160, QK_STDERR_LINES = 3 };

typedef struct qk_stderr_tail {
  char error[QK_STDERR_LINE_MAX], other[QK_STDERR_LINES][QK_STDERR_LINE_MAX];
  unsigned others; /* lines so far: the n-th is in other[n % QK_STDERR_LINES] */
} qk_stderr_tail_t;

/* A line without its newline, of base/log.h in either format or of anything else. */
void qk_stderr_tail_add(qk_stderr_tail_t *tail, const char *line, size_t n);
/* Printable ASCII; "": no line tells the cause. */
const char *qk_stderr_tail_cause(const qk_stderr_tail_t *tail);
/* The last lines that are not of the log, oldest first, with " / " between them, cut to size; "":
 * none. */
void qk_stderr_tail_lines(const qk_stderr_tail_t *tail, char *text, size_t size);

#endif
