#include "daemon/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/utf8.h"

enum { LINE_MAX_BYTES = 2048, NAME_MAX_BYTES = 256 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const format_names[] = {"text", "json"};
/* Written by qk_log_init and qk_log_use only, before threads start. */
static char source[41] = "quark";
static int source_rank = -1;
static qk_log_format_t format = QK_LOG_TEXT;
static _Atomic int threshold = QK_LOG_INFO;

void qk_log_init(const char *program, int rank, qk_level_t level) {
  snprintf(source, sizeof source, "%s", program);
  source_rank = rank;
  qk_log_set_level(level);
}

void qk_log_set_level(qk_level_t level) {
  atomic_store(&threshold, (int)level);
}

void qk_log_use(qk_log_format_t wanted) {
  format = wanted;
}

const char *qk_log_format_name(qk_log_format_t f) {
  return format_names[f];
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

int qk_log_parse_format(const char *word, qk_log_format_t *wanted) {
  for (int i = 0; i <= QK_LOG_JSON; i++) {
    if (strcmp(word, format_names[i]) == 0) {
      *wanted = (qk_log_format_t)i;
      return 0;
    }
  }
  return -1;
}

/* Appends to line[0..*n), cutting what does not fit; the last byte is kept for the newline. */
__attribute__((format(printf, 3, 4))) static void appendf(char *line, size_t *n, const char *fmt,
                                                          ...) {
  va_list ap;
  va_start(ap, fmt);
  size_t room = LINE_MAX_BYTES - 1 - *n;
  int k = vsnprintf(line + *n, room, fmt, ap);
  va_end(ap);
  if (k > 0) *n += (size_t)k < room ? (size_t)k : room - 1;
}

/* Appends a JSON string of at most `room` bytes: cut between characters; bytes that are not
 * UTF-8 become U+FFFD. */
static void append_string(char *line, size_t *n, const char *text, size_t room) {
  const size_t bytes = strlen(text), end = *n + room - sizeof "\\u0000\"";
  line[(*n)++] = '"';
  for (size_t i = 0, length; i < bytes && *n <= end; i += length ? length : 1) {
    length = qk_utf8_char(text + i, bytes - i);
    const unsigned char c = (unsigned char)text[i];
    if (length == 0) {
      appendf(line, n, "\\ufffd");
    } else if (c < 0x20 || c == 0x7f) {
      appendf(line, n, "\\u%04x", c);
    } else {
      if (c == '"' || c == '\\') line[(*n)++] = '\\';
      memcpy(line + *n, text + i, length);
      *n += length;
    }
  }
  line[(*n)++] = '"';
}

static size_t write_json(char *line, const char *time, qk_level_t level, const char *subsystem,
                         const char *job, const char *text) {
  size_t n = 0;
  appendf(line, &n, "{\"time\":\"%s\",\"level\":\"%s\",\"program\":", time, level_names[level]);
  append_string(line, &n, source, NAME_MAX_BYTES);
  if (source_rank >= 0)
    appendf(line, &n, ",\"rank\":%d,\"subsystem\":", source_rank);
  else
    appendf(line, &n, ",\"rank\":null,\"subsystem\":");
  append_string(line, &n, subsystem, NAME_MAX_BYTES);
  appendf(line, &n, ",\"job\":");
  if (job)
    append_string(line, &n, job, NAME_MAX_BYTES);
  else
    appendf(line, &n, "null");
  appendf(line, &n, ",\"text\":");
  append_string(line, &n, text, LINE_MAX_BYTES - n - sizeof "}");
  line[n++] = '}';
  return n;
}

static size_t write_text(char *line, const char *time, qk_level_t level, const char *subsystem,
                         const char *job, const char *text) {
  size_t n = 0;
  appendf(line, &n, "%s %s %s", time, level_names[level], source);
  if (source_rank >= 0) appendf(line, &n, "[%d]", source_rank);
  appendf(line, &n, " %s: ", subsystem);
  if (job) appendf(line, &n, "job %s: ", job);
  appendf(line, &n, "%s", text);
  /* Texts may quote what a peer or a file said: it must not be able to forge a line. */
  for (size_t i = 0; i < n; i++) {
    if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = '?';
  }
  return n;
}

void qk_log(qk_level_t level, const char *subsystem, const char *job, const char *fmt, ...) {
  if ((int)level > atomic_load_explicit(&threshold, memory_order_relaxed)) return;
  const int saved_errno = errno;
  struct timespec now;
  struct tm utc;
  char line[LINE_MAX_BYTES], text[LINE_MAX_BYTES], time[32], seconds[24];
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(time, sizeof time, "%s.%03dZ", seconds, (int)(now.tv_nsec / 1000000));
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);

  size_t n =
      (format == QK_LOG_JSON ? write_json : write_text)(line, time, level, subsystem, job, text);
  line[n++] = '\n';
  /* One write per line keeps lines of threads and processes apart; there is nowhere to report to.
   */
  ssize_t written = write(STDERR_FILENO, line, n);
  (void)written;
  errno = saved_errno;
}
