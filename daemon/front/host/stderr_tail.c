#include "daemon/front/host/stderr_tail.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/err.h"

typedef enum kind { OTHER, ERROR, LOG } kind_t;

/* What kind of line it is, and where the words of an error begin and end. */
static kind_t look_at(const char *line, const char **from, const char **to) {
  static const char json[] = "{\"time\":\"", error[] = "\"level\":\"error\"",
                    text[] = "\"text\":\"";
  char level[16];
  int at = 0;
  *from = line;
  *to = line + strlen(line);
  if (strncmp(line, json, sizeof json - 1) == 0) {
    const char *words = strstr(line, text);
    if (!words || !strstr(line, error)) return LOG;
    *from = words + sizeof text - 1;
    *to -= sizeof "\"}" - 1;
    return *to > *from ? ERROR : LOG;
  }
  if (sscanf(line, "%*4d-%*2d-%*2dT%*2d:%*2d:%*fZ %15s %*s %n", level, &at) != 1 || at == 0)
    return OTHER;
  *from += at;
  return strcmp(level, "error") == 0 ? ERROR : LOG;
}

void qk_stderr_tail_add(qk_stderr_tail_t *tail, const char *line, size_t n) {
  char copy[1024];
  const char *from, *to;
  snprintf(copy, sizeof copy, "%.*s", (int)(n < sizeof copy ? n : sizeof copy - 1), line);
  const kind_t kind = look_at(copy, &from, &to);
  if (kind == LOG) return;
  while (from < to && !isalnum((unsigned char)*from)) from++;
  if (from == to) return; /* a rule, or nothing */
  copy[to - copy] = '\0';
  qk_err_quote(from, kind == ERROR ? tail->error : tail->other[tail->others++ % QK_STDERR_LINES],
               QK_STDERR_LINE_MAX);
}

const char *qk_stderr_tail_cause(const qk_stderr_tail_t *tail) {
  if (tail->error[0] || tail->others == 0) return tail->error;
  return tail->other[(tail->others - 1) % QK_STDERR_LINES];
}

void qk_stderr_tail_lines(const qk_stderr_tail_t *tail, char *text, size_t size) {
  const unsigned end = tail->others, first = end > QK_STDERR_LINES ? end - QK_STDERR_LINES : 0;
  size_t n = 0;
  text[0] = '\0';
  for (unsigned i = first; i < end && n < size; i++)
    n += (size_t)snprintf(text + n, size - n, "%s%s", i > first ? " / " : "",
                          tail->other[i % QK_STDERR_LINES]);
}
