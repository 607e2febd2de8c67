/* The parameters of the action, by flags, by --set and as keys of a file. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/config/config.h"
#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/front/settings/settings.h"

enum { ARGS = 4 };

static char file[] = "/tmp/qk-parameters-XXXXXX";

/* quarkd with these lines in its file and these arguments. */
static bool parse(qk_settings_t *s, const char *lines, const char *const args[ARGS], int *code) {
  char config[64];
  const char *argv[ARGS + 4] = {"quarkd", "--gauge=x", config};
  int argc = 3;
  FILE *f;
  snprintf(config, sizeof config, "--config=%s", file);
  cr_assert((f = fopen(file, "w")) && fputs(lines, f) >= 0 && fclose(f) == 0);
  for (int i = 0; i < ARGS && args[i]; i++) argv[argc++] = args[i];
  return qk_settings_parse(s, argc, (char **)argv, code);
}

static void begin(void) {
  const int fd = mkstemp(file);
  cr_assert(fd >= 0);
  close(fd);
}

static void end(void) {
  unlink(file);
}

TestSuite(parameters, .init = begin, .fini = end);

static const struct {
  const char *lines, *args[ARGS], *given;
} good[] = {
    {"", {"--mass=1", "--csw=1.5"}, "wilson-clover;mass=1;csw=1.5"},
    {"", {"--set=mass=1", "--set", "csw=1.5"}, "wilson-clover;mass=1;csw=1.5"},
    {"", {"--set=kappa=0.125"}, "wilson;kappa=0.125"},
    {"set = mass=1\nset = csw = 1.5\n", {0}, "wilson-clover;mass=1;csw=1.5"},
    {"mass = 1\nset = csw=1.5\n", {0}, "wilson-clover;mass=1;csw=1.5"},
    {"kappa = 0.125\naction = wilson-clover\ncsw = 0\n", {0}, "wilson-clover;kappa=0.125;csw=0"},
    /* the command line wins, whichever way the two go */
    {"mass = 1\ncsw = 1.5\n", {"--csw=2"}, "wilson-clover;mass=1;csw=2"},
    {"mass = 1\ncsw = 1.5\n", {"--set=csw=2"}, "wilson-clover;mass=1;csw=2"},
    {"mass = 1\nset = csw=1.5\n", {"--csw=2"}, "wilson-clover;mass=1;csw=2"},
    {"mass = 1\nset = csw=1.5\n", {"--set=csw=2", "--mass=3"}, "wilson-clover;mass=3;csw=2"},
    {"", {"--mass=1", "--csw=1", "--csw=2"}, "wilson-clover;mass=1;csw=2"},
};

Test(parameters, come_by_flag_by_set_and_by_file) {
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    char text[QK_OPERATOR_TEXT];
    qk_settings_t s;
    int code = -1;
    cr_assert(parse(&s, good[i].lines, good[i].args, &code), "case %zu", i);
    qk_values_text(&s.op, QK_TEXT_GIVEN, text);
    cr_expect_str_eq(text, good[i].given, "case %zu", i);
    qk_settings_fini(&s);
  }
  cr_expect_eq(qk_mem_bytes(), 0);
}

static const struct {
  const char *lines, *args[ARGS];
  int code;
  const char *why;
} bad[] = {
    {"",
     {"--mass=1", "--set=mu=0.1"},
     64,
     "command line: mu: wilson has no such parameter: it has mass (or kappa)"},
    {"mass = 1\ncsw = 1\nset = mu=0.1\n",
     {0},
     78,
     ":3: mu: wilson-clover has no such parameter: it has mass (or kappa), csw"},
    {"mass = 1\ncsw = 1001\n", {0}, 78, ":2: csw = 1001: must be a number from -1000 to 1000"},
    {"", {"--mass=1", "--set=csw=much"}, 64, "command line: csw = much: must be a number from"},
    {"", {"--set=mass=1", "--mass=1"}, 64, "command line: mass is given twice"},
    {"", {"--set=mass=1", "--set=mass=2"}, 64, "command line: mass is given twice"},
    {"mass = 1\nset = csw=1\ncsw = 1\n", {0}, 78, ":2: csw is given twice"},
    {"mass = 1\nmass = 1\n", {0}, 78, ":2: mass is given twice"},
    {"mass = 1\n", {"--kappa=0.1"}, 64, "kappa and mass are both given"},
    {"", {"--mass=1", "--set=csw"}, 64, "command line: set = csw: must be KEY=VALUE"},
    {"mass = 1\nset = =1\n", {0}, 78, ":2: set = =1: must be KEY=VALUE"},
    {"", {"--set=csw=1"}, 64, "wilson-clover needs mass (or kappa): not given"},
    {"zeta = 0.1\n", {"--mass=1"}, 78, ":1: unknown key \"zeta\""},
};

Test(parameters, are_refused_with_place_and_what_is_accepted) {
  FILE *real = stderr;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char said[1024] = "";
    qk_settings_t s;
    int code = -1;
    stderr = fmemopen(said, sizeof said, "w");
    const bool fine = parse(&s, bad[i].lines, bad[i].args, &code);
    fclose(stderr);
    stderr = real;
    cr_expect_not(fine, "case %zu", i);
    cr_expect_eq(code, bad[i].code, "case %zu", i);
    cr_expect_not_null(strstr(said, bad[i].why), "case %zu: %s", i, said);
    qk_settings_fini(&s);
  }
}

/* Each with a value in its range, in a file. */
Test(parameters, of_all_actions_are_keys_of_the_file) {
  const char *none[ARGS] = {0};
  for (int a = 0; qk_action_rows[a].name; a++) {
    char lines[4096];
    qk_settings_t s;
    int code = -1, n = snprintf(lines, sizeof lines, "action = %s\n", qk_action_rows[a].name);
    for (const qk_param_t *p = qk_action_rows[a].param; p->key; p++) {
      const double middle = p->least / 2 + p->most / 2;
      n += snprintf(lines + n, sizeof lines - (size_t)n, "%s = ", p->key);
      if (p->otherwise || p->type == QK_PARAM_WORD)
        n += snprintf(lines + n, sizeof lines - (size_t)n, "%s\n",
                      p->otherwise ? p->otherwise : "digest:0123456789abcdef");
      else
        n += snprintf(lines + n, sizeof lines - (size_t)n, "%.0f\n", middle);
    }
    cr_expect(parse(&s, lines, none, &code), "%s", lines);
    for (const qk_param_t *p = qk_action_rows[a].param; p->key; p++)
      cr_expect_not_null(qk_config_where(s.config, p->key, NULL), "%s", p->key);
    qk_settings_fini(&s);
  }
}

/* A setting of quarkd that has the key of a parameter and is not its flag. */
Test(parameters, whose_key_another_setting_has_are_refused) {
  qk_config_row_t rows[1 + QK_PARAMETER_KEYS] = {
      {"csw", QK_CONFIG_STRING, offsetof(qk_settings_t, gauge), NULL, 0, 0, "FILE", "a file"}};
  const int n = qk_parameters_rows(rows, 1, offsetof(qk_settings_t, parameter));
  qk_settings_t s = {0};
  qk_config_t *config = NULL;
  qk_err_t err = {0};
  cr_expect_eq(qk_config_create("x", "y", rows, n, &s, &config, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "two settings have the key csw"), "%s", err.text);
}

Test(parameters, survive_a_lack_of_memory) {
  const char *args[ARGS] = {"--mass=1", "--set=csw=2"};
  int code = -1;
  stderr = fopen("/dev/null", "w");
  for (int n = 1; n < 1000 && code != 0; n++) {
    char plan[32];
    qk_settings_t s;
    snprintf(plan, sizeof plan, "alloc:%d", n);
    cr_assert_eq(qk_fault_set(plan), 0);
    const bool fine = parse(&s, "csw = 1\n", args, &code);
    cr_expect_eq(fine, code == 0);
    if (fine) cr_expect_eq(qk_value(&s.op, "csw"), 2);
    qk_settings_fini(&s);
    cr_assert_eq(qk_mem_bytes(), 0, "allocation %d", n);
  }
  cr_expect_eq(code, 0);
}
