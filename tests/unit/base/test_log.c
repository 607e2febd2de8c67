#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/utf8.h"

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

/* One line as JSON; what comes before the text is checked and left out. */
static json_t *logged(const char *job, const char *format, const char *argument) {
  char line[4096];
  json_error_t error;
  qk_log_init("quarkd", -1, QK_LOG_INFO);
  qk_log_use(QK_LOG_JSON);
  qk_log(QK_LOG_WARN, "session", job, format, argument);
  fclose(stderr);
  captured(line, sizeof line);
  cr_expect_lt(strlen(line), 2049);
  cr_assert_eq(strchr(line, '\n'), line + strlen(line) - 1, "%s", line);
  json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
  cr_assert_not_null(object, "%s: %s", error.text, line);
  cr_assert_eq(json_object_size(object), 7);
  return object;
}

static const char *member(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

Test(log, json_lines_have_stable_keys, .init = cr_redirect_stderr) {
  json_t *o = logged("c0ffee/17", "user %s", "ann");
  int y, mo, d, h, mi, s, ms, end = 0;
  sscanf(member(o, "time"), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &y, &mo, &d, &h, &mi, &s, &ms, &end);
  cr_expect_eq(end, 24, "%s", member(o, "time"));
  cr_expect_str_eq(member(o, "level"), "warn");
  cr_expect_str_eq(member(o, "program"), "quarkd");
  cr_expect(json_is_null(json_object_get(o, "rank")));
  cr_expect_str_eq(member(o, "subsystem"), "session");
  cr_expect_str_eq(member(o, "job"), "c0ffee/17");
  cr_expect_str_eq(member(o, "text"), "user ann");
  json_decref(o);
}

Test(log, json_escapes_what_a_peer_said, .init = cr_redirect_stderr) {
  json_t *o =
      logged(NULL, "%s", "a\"}\n{\\ \x1b[31m \xc3\xa9 \xff \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82");
  cr_expect(json_is_null(json_object_get(o, "job")));
  cr_expect_str_eq(member(o, "text"),
                   "a\"}\n{\\ \x1b[31m \xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
                   "\xf0\x9f\x98\x80 \xef\xbf\xbd\xef\xbf\xbd");
  json_decref(o);
}

/* Whatever the text consists of: an escape is not cut, nor is a character. */
Test(log, json_lines_are_cut_whole, .init = cr_redirect_stderr) {
  static const char *const parts[] = {"m", "\"", "\x01", "\xff", "\xc3\xa9", "\xf0\x9f\x98\x80"};
  for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++)
    for (size_t shift = 0; shift < 4; shift++) {
      char big[6000];
      memset(big, 'x', shift);
      size_t n = shift;
      for (; n + 8 < sizeof big; n += strlen(parts[p])) strcpy(big + n, parts[p]);
      qk_log_init("engine", 12, QK_LOG_INFO);
      qk_log_use(QK_LOG_JSON);
      qk_info("load", "%s", big);
    }
  fclose(stderr);
  FILE *err = cr_get_redirected_stderr();
  char line[4096];
  int lines = 0;
  for (; fgets(line, sizeof line, err); lines++) {
    json_t *o = json_loads(line, 0, NULL);
    cr_assert(o && strlen(line) <= 2048 && strlen(line) > 1900, "%zu: %s", strlen(line), line);
    cr_expect_eq(json_integer_value(json_object_get(o, "rank")), 12);
    json_decref(o);
  }
  cr_expect_eq(lines, 24);
}

Test(log, parses_format_words) {
  qk_log_format_t format = QK_LOG_TEXT;
  cr_expect_eq(qk_log_parse_format("json", &format), 0);
  cr_expect_eq(format, QK_LOG_JSON);
  cr_expect_str_eq(qk_log_format_name(format), "json");
  cr_expect_eq(qk_log_parse_format("xml", &format), -1);
}

Test(utf8, cleans_what_is_no_text) {
  char text[] = "caf\xc3\xa9 \x1b[2J\x7f \xc2\x9b \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 "
                "\xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x82";
  qk_utf8_clean(text);
  cr_expect_str_eq(text, "caf\xc3\xa9 ?[2J? ?? ?? ??? ???? \xe2\x82\xac \xf0\x9f\x98\x80 ??");
}

Test(log, parses_level_words) {
  qk_level_t level = QK_LOG_ERROR;
  cr_expect_eq(qk_log_parse_level("debug", &level), 0);
  cr_expect_eq(level, QK_LOG_DEBUG);
  cr_expect_eq(qk_log_parse_level("loud", &level), -1);
  cr_expect_eq(level, QK_LOG_DEBUG);
}
