/* Messages, settings, and the end of the program. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "grid.h"
#include "say.h"

enum { AGAIN = 75 };

const char *qk_quda_setting(const char *name) {
  char whole[64];
  snprintf(whole, sizeof whole, "QUARK_QUDA_%s", name);
  const char *value = getenv(whole);
  return value && value[0] ? value : NULL;
}

static void print(const char *format, va_list args) {
  char text[2048];
  vsnprintf(text, sizeof text, format, args);
  for (char *c = text; *c; c++) /* texts of the daemon must not steer a terminal */
    if (iscntrl((unsigned char)*c)) *c = ' ';
  fprintf(stderr, "quark-quda: %s\n", text);
  fflush(stderr);
}

void qk_quda_note(const char *format, ...) {
  va_list args;
  if (qk_quda_rank() != 0) return;
  va_start(args, format);
  print(format, args);
  va_end(args);
}

void qk_quda_log(const char *format, ...) {
  va_list args;
  if (qk_quda_rank() != 0 || !qk_quda_setting("LOG")) return;
  va_start(args, format);
  print(format, args);
  va_end(args);
}

static void (*leaves)(void);

void qk_quda_at_end(void (*leave)(void)) {
  leaves = leave;
}

void qk_quda_end(int code) {
  void (*leave)(void) = leaves;
  leaves = NULL;
  if (leave) leave();
  qk_quda_abort(code);
}

/* All ranks come here with most errors, and rank 0 ends the others. One that still runs after 20 s
 * has found what rank 0 did not: so long, since rank 0 may be seconds late on a busy machine, and
 * two ranks that speak say the same thing twice. */
static void let_rank_0_speak(void) {
  if (qk_quda_rank() != 0) sleep(20);
}

void qk_quda_refuse(const char *format, ...) {
  va_list args;
  let_rank_0_speak();
  va_start(args, format);
  print(format, args);
  va_end(args);
  qk_quda_end(EXIT_FAILURE);
}

void qk_quda_fail(const char *what, const quark_error_t *err) {
  let_rank_0_speak();
  char text[1024];
  snprintf(text, sizeof text, "%s: %s: %s", what, quark_code_name(err->code),
           err->text[0] ? err->text : quark_code_text(err->code));
  for (char *c = text; *c; c++)
    if (iscntrl((unsigned char)*c)) *c = ' ';
  fprintf(stderr, "quark-quda: %s\n", text);
  fflush(stderr);
  qk_quda_end(err->retryable || err->code == QUARK_TIMEOUT ? AGAIN : EXIT_FAILURE);
}

void qk_quda_refuse_member(const char *member, double value, const char *only) {
  qk_quda_refuse("%s = %.17g is not served by quarkd, only %s", member, value, only);
}

void *qk_quda_alloc(size_t bytes) {
  void *data = malloc(bytes ? bytes : 1);
  if (!data) qk_quda_refuse("no memory for %zu bytes", bytes);
  return data;
}

double qk_quda_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double qk_quda_number_setting(const char *name, double least, double most, double otherwise) {
  const char *text = qk_quda_setting(name);
  char *end;
  if (!text) return otherwise;
  const double v = strtod(text, &end);
  if (*end || !(v >= least && v <= most))
    qk_quda_refuse("QUARK_QUDA_%s = %.60s: must be a number from %g to %g", name, text, least,
                   most);
  return v;
}
