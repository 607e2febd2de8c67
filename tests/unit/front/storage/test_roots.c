/* Folders in which clients may name files: what their names may be, and that no link leads out. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/storage/roots.h"

static char top[PATH_MAX];
static qk_roots_t roots;

static const char *at(const char *name) {
  static char path[4][2 * PATH_MAX];
  static int i;
  i = (i + 1) % 4;
  snprintf(path[i], sizeof path[i], "%s/%s", top, name);
  return path[i];
}

static void touch(const char *name) {
  const int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  cr_assert_geq(fd, 0);
  close(fd);
}

static void setup(void) {
  char text[2 * PATH_MAX + 16];
  snprintf(top, sizeof top, "/tmp/qk-roots-XXXXXX");
  cr_assert_not_null(mkdtemp(top));
  mkdir(at("a"), 0700);
  mkdir(at("a/in"), 0700);
  mkdir(at("ab"), 0700);
  touch("a/file");
  touch("a/in/file");
  touch("ab/file");
  symlink("../ab/file", at("a/out"));
  symlink("../ab", at("a/way"));
  symlink(at("a/file"), at("a/absolute"));
  symlink("in/file", at("a/inside"));
  symlink("loop", at("a/loop"));
  snprintf(text, sizeof text, "%s/a//", top);
  qk_err_t err = {0};
  cr_assert_eq(qk_roots_init(&roots, text, &err), QK_OK, "%s", err.text);
}

static void teardown(void) {
  char command[PATH_MAX + 16];
  qk_roots_fini(&roots);
  snprintf(command, sizeof command, "rm -r %s", top);
  cr_expect_eq(system(command), 0);
}

TestSuite(roots, .init = setup, .fini = teardown);

static qk_status_t check(const char *path) {
  qk_err_t err = {0};
  const qk_status_t status = qk_roots_check(&roots, "file", path, &err);
  cr_expect(status == QK_OK || strstr(err.text, "file"), "%s: %s", path, err.text);
  return status;
}

Test(roots, names_are_checked_without_a_look_at_the_disk) {
  char longest[QK_FILE_NAME_MAX + 2];
  cr_expect_eq(check(at("a/none/x")), QK_OK);
  cr_expect_eq(check(at("a/...")), QK_OK);
  cr_expect_eq(check(at("a/.x/..y")), QK_OK);
  cr_expect_eq(check(at("ab/file")), QK_DENIED);
  cr_expect_eq(check(at("a")), QK_DENIED);
  cr_expect_eq(check("/"), QK_DENIED);
  cr_expect_eq(check(""), QK_BAD_ARGUMENT);
  cr_expect_eq(check("a/file"), QK_BAD_ARGUMENT);
  cr_expect_eq(check(at("a/")), QK_BAD_ARGUMENT);
  cr_expect_eq(check(at("a/..")), QK_BAD_ARGUMENT);
  cr_expect_eq(check(at("a/../ab/file")), QK_BAD_ARGUMENT);
  cr_expect_eq(check(at("a/./x")), QK_BAD_ARGUMENT);
  cr_expect_eq(check(at("a/x\x7f")), QK_BAD_ARGUMENT);
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  cr_expect_eq(check(longest), QK_TOO_LARGE);
  qk_roots_t none;
  qk_err_t err = {0};
  cr_assert_eq(qk_roots_init(&none, NULL, &err), QK_OK);
  cr_expect_eq(qk_roots_check(&none, "file", at("a/file"), &err), QK_DENIED);
}

static qk_status_t open_it(const char *name) {
  qk_err_t err = {0};
  int fd = -1;
  const qk_status_t status = qk_roots_open(&roots, at(name), &fd, &err);
  cr_expect_eq(status == QK_OK, fd >= 0, "%s: %s", name, err.text);
  if (fd >= 0) close(fd);
  return status;
}

Test(roots, no_link_leads_out) {
  cr_expect_eq(open_it("a/file"), QK_OK);
  cr_expect_eq(open_it("a/in/file"), QK_OK);
  cr_expect_eq(open_it("a/inside"), QK_OK);
  cr_expect_eq(open_it("a/out"), QK_DENIED);
  cr_expect_eq(open_it("a/way/file"), QK_DENIED);
  cr_expect_eq(open_it("a/absolute"), QK_DENIED, "an absolute link begins outside");
  cr_expect_eq(open_it("a/loop"), QK_DENIED);
  cr_expect_eq(open_it("a/none"), QK_NOT_FOUND);
  cr_expect_eq(open_it("a/file/x"), QK_NOT_FOUND);
  cr_expect_eq(open_it("a/in"), QK_BAD_ARGUMENT);
}

Test(roots, folders_of_outputs_are_inside) {
  qk_err_t err = {0};
  const char *name = NULL;
  int fd = -1;
  struct stat st;
  cr_assert_eq(qk_roots_open_folder(&roots, at("a/in/new"), &fd, &name, &err), QK_OK);
  cr_expect_str_eq(name, "new");
  cr_expect_eq(fstatat(fd, "file", &st, 0), 0);
  close(fd);
  cr_assert_eq(qk_roots_open_folder(&roots, at("a/new"), &fd, &name, &err), QK_OK);
  cr_expect_eq(fstatat(fd, "in", &st, 0), 0);
  close(fd);
  cr_expect_eq(qk_roots_open_folder(&roots, at("a/way/new"), &fd, &name, &err), QK_DENIED);
  err = (qk_err_t){0};
  cr_expect_eq(qk_roots_open_folder(&roots, at("a/none/new"), &fd, &name, &err), QK_NOT_FOUND);
}

Test(roots, are_folders) {
  const char *const wrong[] = {"", "relative", "/", at("a/file"), at("none"), at("a:")};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    qk_err_t err = {0};
    qk_roots_t r;
    cr_expect_eq(qk_roots_init(&r, wrong[i], &err), QK_BAD_ARGUMENT, "%s", wrong[i]);
    cr_expect(strstr(err.text, "file-roots"), "%s", err.text);
  }
}
