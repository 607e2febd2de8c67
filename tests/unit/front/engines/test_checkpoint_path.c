/*
 * Tests of checkpoint_path.h.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/engines/checkpoint_path.h"

static char folder[] = "/tmp/qk-state-XXXXXX";

static void in_a_folder(void) {
  cr_assert_not_null(mkdtemp(folder));
  unsetenv("STATE_DIRECTORY");
  setenv("XDG_STATE_HOME", folder, 1);
}

static void away(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  cr_expect_eq(system(command), 0);
}

typedef struct daemon {
  qk_settings_t settings;
  char path[QK_PATH_MAX + 1];
  int lock;
} daemon_t;

static void start(daemon_t *d, const char *checkpoint, const char *state) {
  qk_err_t err = {0};
  *d = (daemon_t){.settings = {.mg_checkpoint = checkpoint, .state = state}};
  cr_assert_eq(qk_checkpoint_claim(&d->settings, d->path, &d->lock, &err), QK_OK, "%s", err.text);
}

static void stop(daemon_t *d) {
  if (d->lock >= 0) close(d->lock);
}

static void expect(const daemon_t *d, const char *setup, const char *name) {
  char path[QK_PATH_MAX + 1], want[QK_PATH_MAX + 1];
  qk_err_t err = {0};
  cr_assert_eq(qk_checkpoint_path(&d->settings, setup, path, &err), QK_OK, "%s", err.text);
  snprintf(want, sizeof want, "%s/quarkd/%s", folder, name);
  cr_expect_str_eq(path, want);
}

TestSuite(checkpoint_path, .init = in_a_folder, .fini = away);

Test(checkpoint_path, each_quarkd_of_a_user_has_a_file_of_its_own) {
  daemon_t first, second, third;
  start(&first, "auto", NULL);
  start(&second, "auto", NULL);
  expect(&first, "", "multigrid");
  expect(&first, "strange", "multigrid-strange");
  expect(&second, "", "multigrid.2");
  expect(&second, "strange", "multigrid.2-strange");
  stop(&first);
  start(&third, "auto", NULL);
  expect(&third, "", "multigrid");
  stop(&second);
  stop(&third);
}

Test(checkpoint_path, what_settings_name_is_taken_as_it_is) {
  static const char *const given[][2] = {{"off", NULL}, {"/a/b", NULL}, {"auto", "/state"}};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    daemon_t d;
    start(&d, given[i][0], given[i][1]);
    cr_expect_null(d.settings.multigrid);
    cr_expect_eq(d.lock, -1);
  }
}

Test(checkpoint_path, a_folder_is_for_all) {
  char path[QK_PATH_MAX + 1];
  daemon_t d;
  snprintf(path, sizeof path, "%s/quarkd", folder);
  cr_assert_eq(mkdir(path, 0700), 0);
  strcat(path, "/multigrid");
  cr_assert_eq(mkdir(path, 0700), 0);
  start(&d, "auto", NULL);
  cr_expect_eq(d.lock, -1);
  expect(&d, "", "multigrid");
  expect(&d, "strange", "multigrid");
}

Test(checkpoint_path, a_lock_that_cannot_be_had_changes_nothing) {
  char path[QK_PATH_MAX + 1];
  daemon_t d;
  snprintf(path, sizeof path, "%s/quarkd", folder);
  cr_assert_eq(mkdir(path, 0700), 0);
  strcat(path, "/multigrid.lock");
  cr_assert_eq(symlink("/nowhere", path), 0);
  start(&d, "auto", NULL);
  cr_expect_eq(d.lock, -1);
  expect(&d, "", "multigrid");
}
