/* How an engine is started, and what tells one from another. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/engines/engine_argv.h"

static const qk_settings_t BASE = {
    .gauge = "builtin:weak:4x4x4x4:1",
    .op = {.at = {{QK_VALUE_GIVEN, 0, 1}}, .nreal = 1, .real = {0.1}},
    .ranks = 1,
    .mpirun = "mpirun --oversubscribe",
    .state = "/state",
    .engine_grace = 30};

static void expect_words(const qk_settings_t *s, const char *want) {
  char words[512] = "";
  qk_engine_argv_t c;
  qk_engine_argv_make(s, "/bin/engine", "ipc:///x", &c);
  for (char **arg = c.argv; *arg; arg++) {
    strcat(words, *arg);
    if (arg[1]) strcat(words, " ");
  }
  cr_expect_str_eq(words, want);
}

Test(engine_argv, has_a_grace_only_where_another_front_can_come) {
  qk_settings_t s = BASE;
  expect_words(&s, "/bin/engine --log-format text --grace 30000 --front ipc:///x");
  s.engine_grace = 0.0001;
  expect_words(&s, "/bin/engine --log-format text --grace 1 --front ipc:///x");
  s.engine_grace = 0;
  expect_words(&s, "/bin/engine --log-format text --front ipc:///x");
  s = BASE;
  s.state = NULL;
  s.ranks = 3;
  expect_words(&s, "mpirun --oversubscribe -n 3 /bin/engine --log-format text --front ipc:///x");
}

Test(engine_argv, fits_whatever_starts_the_ranks) {
  char mpirun[2048];
  qk_settings_t s = BASE;
  qk_engine_argv_t c;
  int n = 0;
  for (size_t i = 0; i < sizeof mpirun - 1; i++) mpirun[i] = i % 2 ? ' ' : 'm';
  mpirun[sizeof mpirun - 1] = '\0';
  s.mpirun = mpirun;
  s.ranks = 2;
  qk_engine_argv_make(&s, "engine", "ipc:///x", &c);
  while (c.argv[n]) n++;
  cr_assert_leq(n, QK_ARGS_MAX);
  cr_assert_str_eq(c.argv[n - 1], "ipc:///x");
}

static uint64_t of(const qk_settings_t *s) {
  return qk_engine_argv_fingerprint(s, "/bin/sh", "", 0);
}

Test(engine_argv, fingerprint_tells_engines_apart) {
  const uint64_t base = of(&BASE);
  cr_assert_neq(base, 0);
  cr_assert_eq(of(&BASE), base);
  qk_settings_t s[8];
  for (int i = 0; i < 8; i++) s[i] = BASE;
  s[0].gauge = "builtin:weak:4x4x4x4:2";
  s[1].op.real[0] = nextafter(0.1, 1);
  s[2].boundary[6] = -1;
  s[3].slots = 3;
  s[4].ranks = 2;
  s[5].engine_grace = 31;
  s[6].mg[QK_MG_KEY_VECTORS] = "16";
  s[7].solver = 2;
  for (int i = 0; i < 8; i++) {
    cr_expect_neq(of(&s[i]), base, "change %d", i);
    for (int k = 0; k < i; k++) cr_expect_neq(of(&s[i]), of(&s[k]), "changes %d and %d", i, k);
  }
  cr_expect_neq(qk_engine_argv_fingerprint(&BASE, "/bin/cat", "", 0), base);
  cr_expect_neq(qk_engine_argv_fingerprint(&BASE, "/bin/sh", "/checkpoint", 0), base);
  qk_settings_t two = BASE;
  two.replicas = 2;
  const uint64_t first = qk_engine_argv_fingerprint(&two, "/bin/sh", "", 0);
  cr_expect_neq(first, base);
  cr_expect_neq(qk_engine_argv_fingerprint(&two, "/bin/sh", "", 1), first);
  qk_settings_t same = BASE; /* what is no engine's business */
  same.lease = 17;
  same.user_rhs = 3;
  same.start_timeout = 7;
  same.engine_timeout = 5;
  cr_expect_eq(of(&same), base);
}

Test(engine_argv, fingerprint_sees_that_a_file_was_replaced) {
  char path[] = "/tmp/qk-gauge-XXXXXX";
  qk_settings_t s = BASE;
  const int fd = mkstemp(path);
  cr_assert_geq(fd, 0);
  s.gauge = path;
  const uint64_t empty = of(&s);
  cr_assert_eq(write(fd, "links", 5), 5);
  const uint64_t written = of(&s);
  cr_expect_neq(written, empty);
  unlink(path);
  cr_expect_neq(of(&s), written);
  close(fd);
}
