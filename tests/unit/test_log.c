#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"

/* What qk_log wrote to stderr since redirection, as one string. */
static void captured(char *out, size_t size) {
  FILE *err = cr_get_redirected_stderr();
  size_t n = fread(out, 1, size - 1, err);
  out[n] = '\0';
}

Test(log, line_holds_time_level_source_job_and_cause, .init = cr_redirect_stderr) {
  qk_log_init("quark-engine", 3, QK_LOG_INFO);
  qk_log(QK_LOG_WARN, "load", "c0ffee/17", "plaquette %.1f", 0.5);
  fclose(stderr);
  char text[512], level[8], source[32], rest[128];
  captured(text, sizeof text);
  int y, mo, d, h, mi, s, ms;
  int n = sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %7s %31s %127[^\n]", &y, &mo, &d, &h, &mi, &s,
                 &ms, level, source, rest);
  cr_assert_eq(n, 10, "%s", text);
  cr_expect_str_eq(level, "warn");
  cr_expect_str_eq(source, "quark-engine[3]");
  cr_expect_str_eq(rest, "load: job c0ffee/17: plaquette 0.5");
}

Test(log, levels_below_the_threshold_are_dropped, .init = cr_redirect_stderr) {
  qk_log_init("quarkd", -1, QK_LOG_WARN);
  qk_info("x", "dropped");
  qk_debug("x", "dropped");
  qk_error("x", "kept");
  fclose(stderr);
  char text[512];
  captured(text, sizeof text);
  cr_expect_null(strstr(text, "dropped"));
  cr_expect_not_null(strstr(text, " error quarkd x: kept\n"));
}

Test(log, control_characters_cannot_forge_a_line, .init = cr_redirect_stderr) {
  qk_log_init("quarkd", -1, QK_LOG_INFO);
  qk_info("x", "a\nb\033[31m");
  fclose(stderr);
  char text[512];
  captured(text, sizeof text);
  cr_expect_not_null(strstr(text, "a?b?[31m\n"));
  cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

Test(log, long_messages_are_cut_and_keep_their_newline, .init = cr_redirect_stderr) {
  qk_log_init("quarkd", -1, QK_LOG_INFO);
  char big[6000], text[8000];
  memset(big, 'm', sizeof big - 1);
  big[sizeof big - 1] = '\0';
  qk_info("x", "%s", big);
  fclose(stderr);
  captured(text, sizeof text);
  size_t n = strlen(text);
  cr_expect_eq(n, 2047, "%zu", n);
  cr_expect_eq(text[n - 1], '\n');
}

Test(log, parses_level_words) {
  qk_level_t level = QK_LOG_ERROR;
  cr_expect_eq(qk_log_parse_level("debug", &level), 0);
  cr_expect_eq(level, QK_LOG_DEBUG);
  cr_expect_eq(qk_log_parse_level("loud", &level), -1);
  cr_expect_eq(level, QK_LOG_DEBUG);
}
