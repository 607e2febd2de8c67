/* What an engine said last before it ended. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/front/host/stderr_tail.h"

static void hear(qk_stderr_tail_t *words, const char *line) {
  qk_stderr_tail_add(words, line, strlen(line));
}

Test(stderr_tail, an_error_tells_more_than_what_comes_after_it) {
  qk_stderr_tail_t w = {0};
  cr_expect_str_eq(qk_stderr_tail_cause(&w), "");
  hear(&w, "malloc(): corrupted top size");
  cr_expect_str_eq(qk_stderr_tail_cause(&w), "malloc(): corrupted top size");
  hear(&w, "2026-11-22T10:07:12.580Z error quark[3] assert: work.c:102: assertion failed: top");
  hear(&w, "2026-11-22T10:07:12.581Z info quark worker: on its way");
  hear(&w, "mpirun noticed that process rank 3 exited on signal 6");
  hear(&w, "-----------------------------------");
  hear(&w, "");
  cr_expect_str_eq(qk_stderr_tail_cause(&w), "assert: work.c:102: assertion failed: top");
}

Test(stderr_tail, json_lines_are_read_too) {
  qk_stderr_tail_t w = {0};
  hear(&w, "{\"time\":\"2026-11-22T10:07:12.581Z\",\"level\":\"info\",\"program\":\"quark\","
           "\"rank\":null,\"subsystem\":\"worker\",\"job\":null,\"text\":\"ready\"}");
  cr_expect_str_eq(qk_stderr_tail_cause(&w), "");
  hear(&w, "{\"time\":\"2026-11-22T10:07:12.581Z\",\"level\":\"error\",\"program\":\"quark\","
           "\"rank\":null,\"subsystem\":\"worker\",\"job\":null,\"text\":\"cudaMalloc: lost\"}");
  cr_expect_str_eq(qk_stderr_tail_cause(&w), "cudaMalloc: lost");
}

Test(stderr_tail, the_last_lines_are_recounted_together) {
  qk_stderr_tail_t w = {0};
  char text[40];
  qk_stderr_tail_lines(&w, text, sizeof text);
  cr_expect_str_eq(text, "");
  hear(&w, "one");
  hear(&w, "2026-11-22T10:07:12.580Z error quark[3] assert: work.c:102: assertion failed: top");
  hear(&w, "two");
  qk_stderr_tail_lines(&w, text, sizeof text);
  cr_expect_str_eq(text, "one / two");
  hear(&w, "three");
  hear(&w, "four");
  qk_stderr_tail_lines(&w, text, sizeof text);
  cr_expect_str_eq(text, "two / three / four");
  qk_stderr_tail_lines(&w, text, 8);
  cr_expect_str_eq(text, "two / t");
}

Test(stderr_tail, are_short_and_printable) {
  qk_stderr_tail_t w = {0};
  char line[2000];
  memset(line, 'a', sizeof line);
  line[1] = '\x1b';
  qk_stderr_tail_add(&w, line, sizeof line);
  cr_expect_eq(strlen(qk_stderr_tail_cause(&w)), QK_STDERR_LINE_MAX - 1);
  cr_expect_eq(qk_stderr_tail_cause(&w)[1], '?');
}
