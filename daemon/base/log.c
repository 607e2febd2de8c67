#include "daemon/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static char source[64] = "quark"; /* written by qk_log_init only, before threads start */
static _Atomic int threshold = QK_LOG_INFO;

void qk_log_init(const char *program, int rank, qk_level_t level) {
  if (rank >= 0) {
    snprintf(source, sizeof source, "%.40s[%d]", program, rank);
  } else {
    snprintf(source, sizeof source, "%.40s", program);
  }
  atomic_store(&threshold, (int)level);
}

int qk_log_parse_level(const char *word, qk_level_t *level) {
  for (int i = 0; i <= QK_LOG_DEBUG; i++) {
    if (strcmp(word, level_names[i]) == 0) {
      *level = (qk_level_t)i;
      return 0;
    }
  }
  return -1;
}

/* Appends to line[0..*n), cutting what does not fit; the last byte is kept for the newline. */
__attribute__((format(printf, 3, 0))) static void append(char *line, size_t *n, const char *fmt,
                                                         va_list ap) {
  size_t room = LINE_MAX_BYTES - 1 - *n;
  int k = vsnprintf(line + *n, room, fmt, ap);
  if (k > 0) *n += (size_t)k < room ? (size_t)k : room - 1;
}

__attribute__((format(printf, 3, 4))) static void appendf(char *line, size_t *n, const char *fmt,
                                                          ...) {
  va_list ap;
  va_start(ap, fmt);
  append(line, n, fmt, ap);
  va_end(ap);
}

void qk_log(qk_level_t level, const char *subsystem, const char *job, const char *fmt, ...) {
  if ((int)level > atomic_load_explicit(&threshold, memory_order_relaxed)) return;
  const int saved_errno = errno;
  struct timespec now;
  struct tm utc;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);

  char line[LINE_MAX_BYTES];
  size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
  appendf(line, &n, ".%03ldZ %s %s %s: ", now.tv_nsec / 1000000, level_names[level], source,
          subsystem);
  if (job != NULL) appendf(line, &n, "job %s: ", job);
  va_list ap;
  va_start(ap, fmt);
  append(line, &n, fmt, ap);
  va_end(ap);

  /* Texts may quote what a peer or a file said: it must not be able to forge a line. */
  for (size_t i = 0; i < n; i++) {
    if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = '?';
  }
  line[n++] = '\n';
  /* One write per line keeps lines of threads and processes apart; there is nowhere to report to.
   */
  ssize_t written = write(STDERR_FILENO, line, n);
  (void)written;
  errno = saved_errno;
}
