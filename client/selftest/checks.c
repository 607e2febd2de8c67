#include "client/selftest/checks.h"

#include <stdarg.h>
#include <stdio.h>

const char *ctl_verdict_word(ctl_verdict_t verdict) {
  static const char *const words[] = {"ok", "warning", "FAILED"};
  return words[verdict];
}

void ctl_checks_add(ctl_checks_t *c, const char *layer, ctl_verdict_t verdict, json_t *values,
                    const char *advice, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (verdict > c->worst) c->worst = verdict;
  json_array_append_new(c->list, json_pack("{s:s, s:s, s:s, s:s*, s:o}", "layer", layer, "verdict",
                                           ctl_verdict_word(verdict), "text", text, "advice",
                                           advice, "values", values ? values : json_object()));
  if (c->json) return;
  printf("%-8s %-9s %s\n", ctl_verdict_word(verdict), layer, text);
  if (advice) printf("%-18s -> %s\n", "", advice);
  fflush(stdout);
}
