/* What quarkd reads from its command line and makes of it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/host/runtime.h"
#include "daemon/front/settings/settings.h"

Test(settings, reads_the_walltime_as_batch_systems_write_it) {
  static const struct {
    const char *text;
    double seconds;
  } good[] = {{"0", 0},
              {"90", 90},
              {"12:34", 754},
              {"100:00", 6000},
              {"1:02:03", 3723},
              {"47:00:00", 169200},
              {"2-03:04:05", 183845},
              {"0-00:00:59", 59},
              {"365-00:00:00", 31536000}};
  static const char *const bad[] = {"",
                                    "-1",
                                    "1.5",
                                    "12:60",
                                    "1:60:00",
                                    "1-24:00:00",
                                    "1-00:00",
                                    "1-2",
                                    "1:2:3:4",
                                    "1:",
                                    ":1",
                                    " 1",
                                    "1 ",
                                    "1h",
                                    "UNLIMITED",
                                    "365-00:00:01",
                                    "99999999999999999999",
                                    "1-2-03:04",
                                    "+5",
                                    "1:+5",
                                    "1-2:3:4:5"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    qk_err_t err = {0};
    double seconds = -1;
    cr_expect_eq(qk_settings_walltime(good[i].text, &seconds, &err), QK_OK, "%s", good[i].text);
    cr_expect_eq(seconds, good[i].seconds, "%s", good[i].text);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qk_err_t err = {0};
    double seconds = -1;
    cr_expect_eq(qk_settings_walltime(bad[i], &seconds, &err), QK_BAD_ARGUMENT, "%s", bad[i]);
    cr_expect_eq(seconds, -1);
  }
}

static int parse(qk_settings_t *s, int argc, const char **argv) {
  int code = -1;
  bool ok = qk_settings_parse(s, argc, (char **)argv, &code);
  return ok ? 0 : code;
}

Test(settings, takes_kappa_or_mass_and_makes_the_other) {
  qk_settings_t s;
  const char *kappa[] = {"quarkd", "--gauge=builtin:weak:4x4x4x4:1", "--kappa=0.125"};
  cr_assert_eq(parse(&s, 3, kappa), 0);
  cr_assert_eq(qk_value(&s.op, "mass"), 0);
  cr_expect_eq(qk_values_kappa(&s.op), 0.125);
  cr_expect_eq(s.op.action, QK_ACTION_WILSON);
  qk_settings_fini(&s);
  const char *mass[] = {"quarkd", "--gauge=x", "--mass=-0.5", "--grid=1x1x2x2", "--ranks=4"};
  cr_assert_eq(parse(&s, 5, mass), 0);
  cr_assert_float_eq(qk_values_kappa(&s.op), 1 / 7., 1e-15);
  cr_assert_eq(s.grid[3], 2);
  cr_assert(qk_settings_link_reals(&s) == 0 && s.slots == 0);
  cr_expect_str_eq(qk_settings_solver(&s), "auto");
  qk_settings_fini(&s);
}

Test(settings, hands_words_of_multigrid_on) {
  qk_settings_t s;
  const char *argv[] = {"quarkd",    "--gauge=x",       "--mass=1",          "--solver=mg",
                        "--slots=8", "--link-reals=18", "--mg-vectors=24,32"};
  cr_assert_eq(parse(&s, 7, argv), 0);
  cr_expect_str_eq(qk_settings_solver(&s), "mg");
  cr_expect(s.slots == 8 && qk_settings_link_reals(&s) == 18);
  cr_expect_str_eq(s.mg[QK_MG_KEY_VECTORS], "24,32");
  cr_expect_null(s.mg[QK_MG_KEY_LEVELS]);
  cr_expect_str_eq(s.mg_checkpoint, "auto");
  cr_expect_null(s.mg_from);
  qk_settings_fini(&s);
}

Test(runtime, makes_paths_absolute_or_says_which_is_too_long) {
  char path[QK_PATH_MAX + 1], lengthy[QK_PATH_MAX + 8];
  qk_err_t err = {0};
  cr_assert_eq(qk_runtime_path("mg-from", "/a/b", path, &err), QK_OK);
  cr_expect_str_eq(path, "/a/b");
  cr_assert_eq(qk_runtime_path("mg-from", "b", path, &err), QK_OK);
  cr_expect(path[0] == '/' && strcmp(strrchr(path, '/'), "/b") == 0);
  memset(lengthy, 'a', sizeof lengthy);
  lengthy[sizeof lengthy - 1] = '\0';
  cr_assert_eq(qk_runtime_path("mg-from", lengthy, path, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "mg-from: a path of ") != NULL, "%s", err.text);
}

Test(runtime, finds_a_place_for_the_checkpoint) {
  char path[QK_PATH_MAX + 1], want[QK_PATH_MAX + 1], folder[] = "/tmp/qk-state-XXXXXX";
  qk_err_t err = {0};
  cr_assert_eq(qk_runtime_checkpoint("off", NULL, path, &err), QK_OK);
  cr_expect_str_eq(path, "");
  cr_assert_eq(qk_runtime_checkpoint("/a/b", NULL, path, &err), QK_OK);
  cr_expect_str_eq(path, "/a/b");
  cr_assert_eq(qk_runtime_checkpoint("b", NULL, path, &err), QK_OK);
  cr_expect(path[0] == '/' && strcmp(strrchr(path, '/'), "/b") == 0);
  cr_assert_not_null(mkdtemp(folder));
  unsetenv("STATE_DIRECTORY");
  setenv("XDG_STATE_HOME", folder, 1);
  cr_assert_eq(qk_runtime_checkpoint("auto", NULL, path, &err), QK_OK);
  snprintf(want, sizeof want, "%s/quarkd/multigrid", folder);
  cr_expect_str_eq(path, want);
  *strrchr(want, '/') = '\0';
  cr_expect_eq(rmdir(want), 0, "the folder of the file is not there");
  rmdir(folder);
  setenv("XDG_STATE_HOME", "/proc/no", 1);
  setenv("HOME", "/proc/no", 1);
  cr_assert_eq(qk_runtime_checkpoint("auto", NULL, path, &err), QK_OK);
  cr_expect_str_eq(path, "");
}

/* A flag that takes yes or no may have its value beside it, as in a batch script. */
Test(settings, yes_and_no_stand_behind_their_flags) {
  static const char *const forms[][2] = {{"no", "yes"}, {"off", "on"}, {"false", "true"}};
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    const char *argv[] = {"quarkd",    "--gauge=x",         "--mass=1", "--local",
                          forms[i][0], "--ignore-checksum", forms[i][1]};
    qk_settings_t s;
    cr_assert_eq(parse(&s, 7, argv), 0, "%s", forms[i][0]);
    cr_expect(!s.local && s.ignore_checksum && s.single_rhs, "%s", forms[i][0]);
    qk_settings_fini(&s);
  }
}

Test(settings, refuses_with_the_exit_code_of_usage) {
  static const char *const bad[][5] = {
      {"quarkd", "--kappa=0.1"},
      {"quarkd", "--gauge=x"},
      {"quarkd", "--gauge=x", "--kappa=0.1", "--mass=1"},
      {"quarkd", "--gauge=x", "--kappa=0"},
      {"quarkd", "--gauge=x", "--mass=-4"},
      {"quarkd", "--gauge=x", "--mass=1", "--csw=1001"},
      {"quarkd", "--gauge=x", "--mass=1", "--action=wilson-clover"},
      {"quarkd", "--gauge=x", "--mass=1", "--csw=1", "--action=wilson"},
      {"quarkd", "--gauge=x", "--mass=1", "--action=overlap"},
      {"quarkd", "--gauge=x", "--mass=1", "--dims=4x4x4"},
      {"quarkd", "--gauge=x", "--mass=1", "--dims=4x4x4x4x"},
      {"quarkd", "--gauge=x", "--mass=1", "--dims=0x4x4x4"},
      {"quarkd", "--gauge=x", "--mass=1", "--grid=2x1x1x1"},
      {"quarkd", "--gauge=x", "--mass=1", "--boundary=1,1"},
      {"quarkd", "--gauge=x", "--mass=1", "--slots=65"},
      {"quarkd", "--gauge=x", "--mass=1", "--local"},
      {"quarkd", "--gauge=x", "--mass=1", "--local=maybe"},
      {"quarkd", "--gauge=x", "--mass=1", "--walltime=1h"},
      {"quarkd", "--gauge=x", "--mass=1", "--walltime=10:00"}, /* drain-timeout */
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qk_settings_t s;
    const char *argv[5];
    int argc = 0;
    for (; argc < 5 && bad[i][argc]; argc++) argv[argc] = bad[i][argc];
    cr_expect_eq(parse(&s, argc, argv), 64, "case %zu", i);
    qk_settings_fini(&s);
  }
}

Test(runtime, derives_the_data_endpoint) {
  static const char *const cases[][4] = {
      {"tcp://127.0.0.1:5555", NULL, "tcp://127.0.0.1:5555", "tcp://127.0.0.1:5556"},
      {"tcp://127.0.0.1:0", NULL, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"},
      {"tcp://*:*", NULL, "tcp://*:*", "tcp://*:*"},
      {"tcp://[::1]:70", NULL, "tcp://[::1]:70", "tcp://[::1]:71"},
      {"ipc:///run/q", NULL, "ipc:///run/q", "ipc:///run/q-data"},
      {"ipc:///run/q", "tcp://127.0.0.1:0", "ipc:///run/q", "tcp://127.0.0.1:*"},
      {"tcp://127.0.0.1:5555", "tcp://127.0.0.1:99", "tcp://127.0.0.1:5555", "tcp://127.0.0.1:99"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char control[QK_ENDPOINT_MAX], data[QK_ENDPOINT_MAX];
    qk_err_t err = {0};
    cr_expect_eq(qk_runtime_endpoints(cases[i][0], cases[i][1], control, data, &err), QK_OK);
    cr_expect_str_eq(control, cases[i][2]);
    cr_expect_str_eq(data, cases[i][3]);
  }
}

Test(runtime, refuses_endpoints_it_cannot_serve) {
  static const char *const bad[] = {
      "",           "127.0.0.1:5555",       "tcp://127.0.0.1",       "tcp://127.0.0.1:x",
      "inproc://a", "tcp://127.0.0.1:-1",   "tcp://127.0.0.1:65535", "tcp://127.0.0.1:5a",
      "ipc://",     "tcp://127.0.0.1:99999"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char control[QK_ENDPOINT_MAX], data[QK_ENDPOINT_MAX];
    qk_err_t err = {0};
    cr_expect_eq(qk_runtime_endpoints(bad[i], NULL, control, data, &err), QK_BAD_ARGUMENT, "%s",
                 bad[i]);
  }
}

Test(runtime, names_any_host) {
  char a[QK_ENDPOINT_MAX] = "tcp://0.0.0.0:17", b[QK_ENDPOINT_MAX] = "tcp://[::]:17",
       c[QK_ENDPOINT_MAX] = "tcp://127.0.0.1:17";
  qk_runtime_any_host(a);
  qk_runtime_any_host(b);
  qk_runtime_any_host(c);
  cr_assert_str_eq(a, "tcp://*:17");
  cr_assert_str_eq(b, "tcp://*:17");
  cr_assert_str_eq(c, "tcp://127.0.0.1:17");
}

Test(runtime, knows_what_other_machines_can_reach) {
  static const char *const local[] = {"ipc:///tmp/q",         "ipc://@q",
                                      "tcp://127.0.0.1:5555", "tcp://127.1.2.3:1",
                                      "tcp://[::1]:5555",     "tcp://[::ffff:127.0.0.1]:1"};
  static const char *const open[] = {"tcp://0.0.0.0:5555", "tcp://[::]:5555", "tcp://192.168.1.1:1",
                                     "tcp://128.0.0.1:1", "tcp://[fe80::1]:1"};
  for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
    cr_expect(qk_runtime_local(local[i]), "%s", local[i]);
  for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
    cr_expect_not(qk_runtime_local(open[i]), "%s", open[i]);
}

Test(runtime, tells_others_the_name_of_this_machine) {
  char a[QK_ENDPOINT_MAX] = "tcp://0.0.0.0:17", b[QK_ENDPOINT_MAX] = "tcp://10.1.2.3:17", name[100],
       want[150];
  cr_assert_eq(gethostname(name, sizeof name), 0);
  snprintf(want, sizeof want, "tcp://%s:17", name);
  qk_runtime_this_host(a);
  qk_runtime_this_host(b);
  cr_assert_str_eq(a, want);
  cr_assert_str_eq(b, "tcp://10.1.2.3:17");
}
