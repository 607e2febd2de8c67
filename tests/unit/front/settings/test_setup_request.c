/* What a LOAD may say, and which files it may name. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/settings/setup_request.h"

static char folder[] = "/tmp/qk-load-XXXXXX";

static qk_settings_t base(void) {
  qk_settings_t s = {.gauge = "builtin:weak:4x4x4x4:1",
                     .boundary_text = "1,1,1,-1",
                     .boundary = {1, 0, 1, 0, 1, 0, -1, 0},
                     .dims = {4, 4, 4, 4},
                     .slots = 3};
  const qk_setting_t given[] = {{"mass", "0.1"}, {"csw", "1.5"}};
  char why[QK_WHY];
  cr_assert(qk_values_read(&s.op, NULL, given, 2, why), "%s", why);
  return s;
}

static void expect_operator(const qk_settings_t *s, const char *given) {
  char text[QK_OPERATOR_TEXT];
  qk_values_text(&s->op, QK_TEXT_GIVEN, text);
  cr_expect_str_eq(text, given);
}

static const char *path(const char *name) {
  static char text[8][128];
  static int n;
  char *p = text[n++ % 8];
  snprintf(p, sizeof text[0], "%s/%s", folder, name);
  return p;
}

static void touch(const char *name) {
  FILE *f = fopen(path(name), "w");
  cr_assert(f);
  fclose(f);
}

static void make_folder(void) {
  cr_assert(mkdtemp(folder));
  cr_assert_eq(mkdir(path("root"), 0700) | mkdir(path("rooted"), 0700), 0);
  touch("root/cfg");
  touch("rooted/secret");
  cr_assert_eq(symlink("cfg", path("root/in")) | symlink("../rooted/secret", path("root/out")), 0);
}

static void remove_folder(void) {
  static const char *const names[] = {"root/cfg", "root/in", "root/out", "rooted/secret"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(path(names[i]));
  rmdir(path("root"));
  rmdir(path("rooted"));
  rmdir(folder);
}

Test(setup_request, files_lie_below_a_root, .init = make_folder, .fini = remove_folder) {
  char found[QK_PATH_MAX + 1], roots[300];
  qk_err_t err = {0};
  snprintf(roots, sizeof roots, "/nowhere:%s::", path("root"));
  const char *const good[] = {"cfg", "in", "./cfg", "../root/cfg", path("root/in")};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    cr_expect_eq(qk_setup_request_find(roots, good[i], found, &err), QK_OK, "%s: %s", good[i],
                 err.text);
    cr_expect(strstr(found, "/root/cfg"), "%s", found);
  }
  const char *const bad[] = {"out",
                             path("root/out"),
                             "../rooted/secret",
                             path("rooted/secret"),
                             "",
                             ".",
                             "missing",
                             "/dev/null",
                             "cfg/",
                             "\n"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    err = (qk_err_t){0};
    cr_expect_eq(qk_setup_request_find(roots, bad[i], found, &err), QK_NOT_FOUND, "%s", bad[i]);
    cr_expect(strstr(err.text, "there is no such file below /nowhere:"), "%s", err.text);
  }
  cr_expect_eq(qk_setup_request_find("", path("root/cfg"), found, NULL), QK_NOT_FOUND);
  cr_expect_eq(qk_setup_request_find("/", path("root/cfg"), found, NULL), QK_OK,
               "all of the machine");
}

Test(setup_request, what_is_not_said_is_the_daemons) {
  const qk_settings_t b = base();
  qk_settings_t s;
  char gauge[QK_PATH_MAX + 1];
  Quark__Load load = QUARK__LOAD__INIT;
  load.name = "heavy";
  cr_assert_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, NULL), QK_OK);
  cr_expect_eq(memcmp(&s, &b, sizeof s), 0);
  load.has_kappa = true;
  load.kappa = 0.125;
  cr_assert_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, NULL), QK_OK);
  expect_operator(&s, "wilson-clover;kappa=0.125;csw=1.5");
  cr_expect(s.dims[0] == 4 && s.slots == 3);
  load.gauge = "builtin:weak:8x8x8x8:2";
  cr_assert_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, NULL), QK_OK);
  cr_expect_str_eq(s.gauge, "builtin:weak:8x8x8x8:2");
  cr_expect(s.gauge == gauge && s.dims[0] == 0, "extents were of the daemon's own file");
}

/* The daemon may ignore the checksum of its own file: that is not meant for others. */
Test(setup_request, a_checksum_is_ignored_where_it_was_asked_for) {
  qk_settings_t b = base(), s;
  char gauge[QK_PATH_MAX + 1];
  size_t bytes;
  Quark__Load load = QUARK__LOAD__INIT;
  load.name = "old";
  b.ignore_checksum = 1;
  cr_assert_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, NULL), QK_OK);
  cr_expect_eq(s.ignore_checksum, 1, "the same file");
  load.gauge = "builtin:weak:8x8x8x8:2";
  cr_assert_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, NULL), QK_OK);
  cr_expect_eq(s.ignore_checksum, 0, "another file");
  b.ignore_checksum = 0;
  load.has_ignore_checksum = load.ignore_checksum = true;
  cr_assert_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, NULL), QK_OK);
  cr_expect_eq(s.ignore_checksum, 1);
  uint8_t *packed = qk_setup_request_pack(&load, &s, &bytes);
  Quark__Load *read = packed ? quark__load__unpack(NULL, bytes, packed) : NULL;
  cr_assert(read);
  cr_assert_eq(qk_setup_request_settings(read, &b, true, gauge, &s, NULL), QK_OK);
  cr_expect_eq(s.ignore_checksum, 1, "from the journal");
  quark__load__free_unpacked(read, NULL);
  free(packed);
}

Test(setup_request, a_packed_load_means_the_same_to_any_daemon) {
  const qk_settings_t b = base();
  qk_settings_t other = base(), s, again;
  char gauge[QK_PATH_MAX + 1], gauge_again[QK_PATH_MAX + 1];
  Quark__Load load = QUARK__LOAD__INIT;
  size_t bytes;
  load.name = "heavy";
  load.has_kappa = true;
  load.kappa = 0.12;
  load.boundary = "periodic";
  cr_assert_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, NULL), QK_OK);
  uint8_t *packed = qk_setup_request_pack(&load, &s, &bytes);
  Quark__Load *read = packed ? quark__load__unpack(NULL, bytes, packed) : NULL;
  cr_assert(read);
  other.gauge = "/some/where/else";
  const qk_setting_t three = {"mass", "3"};
  char why[QK_WHY];
  cr_assert(qk_values_read(&other.op, "wilson", &three, 1, why), "%s", why);
  other.dims[3] = 64;
  cr_assert_eq(qk_setup_request_settings(read, &other, true, gauge_again, &again, NULL), QK_OK);
  cr_expect_str_eq(again.gauge, b.gauge);
  expect_operator(&again, "wilson-clover;kappa=0.12;csw=1.5");
  cr_expect_eq(memcmp(&again.op, &s.op, sizeof s.op), 0);
  cr_expect_eq(memcmp(again.boundary, s.boundary, sizeof s.boundary), 0);
  cr_expect_eq(memcmp(again.dims, s.dims, sizeof s.dims), 0);
  quark__load__free_unpacked(read, NULL);
  free(packed);
}

#define REFUSED(status, ...)                                                                       \
  do {                                                                                             \
    const qk_settings_t b = base();                                                                \
    qk_settings_t s = {.slots = 77};                                                               \
    char gauge[QK_PATH_MAX + 1];                                                                   \
    qk_err_t err = {0};                                                                            \
    Quark__Load load = QUARK__LOAD__INIT;                                                          \
    load.name = "heavy";                                                                           \
    __VA_ARGS__;                                                                                   \
    cr_expect_eq(qk_setup_request_settings(&load, &b, false, gauge, &s, &err), status, "%s: %s",   \
                 #__VA_ARGS__, err.text);                                                          \
    cr_expect_eq(s.slots, 77, "nothing has changed");                                              \
  } while (0)

/* The operator of a LOAD with an action, or NULL, and these settings, over that of base(). */
static qk_status_t operate(const char *action, const char *key[], const char *value[], int n,
                           qk_settings_t *s, qk_err_t *err) {
  const qk_settings_t b = base();
  Quark__Setting setting[40], *list[40];
  Quark__Load load = QUARK__LOAD__INIT;
  char gauge[QK_PATH_MAX + 1];
  for (int i = 0; i < n; i++) {
    setting[i] = (Quark__Setting)QUARK__SETTING__INIT;
    setting[i].key = (char *)key[i];
    setting[i].value = (char *)value[i];
    list[i] = &setting[i];
  }
  load.name = "heavy";
  load.action = (char *)action;
  load.parameter = list;
  load.n_parameter = (size_t)n;
  return qk_setup_request_settings(&load, &b, false, gauge, s, err);
}

Test(setup_request, parameters_are_those_of_the_action_or_laid_over_the_daemon_s) {
  const char *csw[] = {"csw"}, *mass[] = {"mass"}, *both[] = {"csw", "kappa"};
  qk_settings_t s;
  qk_err_t err = {0};
  cr_assert_eq(operate(NULL, csw, (const char *[]){"2.50"}, 1, &s, &err), QK_OK, "%s", err.text);
  expect_operator(&s, "wilson-clover;mass=0.1;csw=2.5");
  cr_assert_eq(operate(NULL, csw, (const char *[]){"0"}, 1, &s, &err), QK_OK, "%s", err.text);
  expect_operator(&s, "wilson;mass=0.1");
  cr_assert_eq(operate("wilson", mass, (const char *[]){"1"}, 1, &s, &err), QK_OK, "%s", err.text);
  expect_operator(&s, "wilson;mass=1");
  cr_assert_eq(operate(NULL, both, (const char *[]){"1", "0.125"}, 2, &s, &err), QK_OK);
  expect_operator(&s, "wilson-clover;kappa=0.125;csw=1");
}

static void expect_refused(const char *action, const char *key, int n, const char *words) {
  const char *keys[40], *values[40];
  qk_settings_t s = {.slots = 77};
  qk_err_t err = {0};
  for (int i = 0; i < n; i++) {
    keys[i] = key;
    values[i] = "1";
  }
  cr_expect_eq(operate(action, keys, values, n, &s, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, words), "%s", err.text);
  cr_expect_eq(s.slots, 77);
}

Test(setup_request, wrong_parameters_are_refused_with_what_would_be_accepted) {
  expect_refused("wilson", "csw", 1, "csw: wilson has no such parameter: it has mass (or kappa)");
  expect_refused("wilson-clover", "csw", 1, "wilson-clover needs mass (or kappa): not given");
  expect_refused("wilson", "mass", 2, "mass is given twice");
  expect_refused(NULL, "mass", 2, "mass is given twice");
  expect_refused(NULL, "mu", 1, "mu: wilson-clover has no such parameter: it has mass (or kappa)");
  expect_refused("wilson", "x\x01", 1, "x?: wilson has no such parameter");
  expect_refused("domainwall", "mass", 1, "must be one of wilson, wilson-clover");
  expect_refused("wilson", "mass", 40, "parameter: 40 are given, the limit is 16");
}

Test(setup_request, refuses_each_illegal_field) {
  uint32_t dims[4] = {4, 4, 4, 0};
  char text[QK_SETUP_GAUGE_MAX + 2];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  REFUSED(QK_BAD_ARGUMENT, load.name = "");
  REFUSED(QK_BAD_ARGUMENT, load.name = "default");
  REFUSED(QK_BAD_ARGUMENT, load.name = ".hidden");
  REFUSED(QK_BAD_ARGUMENT, load.name = "a/b");
  REFUSED(QK_BAD_ARGUMENT, load.name = text);
  REFUSED(QK_BAD_ARGUMENT, load.has_mass = load.has_kappa = true; load.kappa = 1);
  REFUSED(QK_BAD_ARGUMENT, load.has_kappa = true);
  REFUSED(QK_BAD_ARGUMENT, load.has_kappa = true; load.kappa = NAN);
  REFUSED(QK_BAD_ARGUMENT, load.has_mass = true; load.mass = -4);
  REFUSED(QK_BAD_ARGUMENT, load.has_mass = true; load.mass = -INFINITY);
  REFUSED(QK_BAD_ARGUMENT, load.has_csw = true; load.csw = 1001);
  REFUSED(QK_BAD_ARGUMENT, load.action = "");
  REFUSED(QK_BAD_ARGUMENT, load.action = "wilson-clover"; load.has_mass = true);
  REFUSED(QK_BAD_ARGUMENT, load.action = text);
  REFUSED(QK_BAD_ARGUMENT, load.boundary = "1,1,1,2");
  REFUSED(QK_BAD_ARGUMENT, load.dims = dims; load.n_dims = 3);
  REFUSED(QK_BAD_ARGUMENT, load.dims = dims; load.n_dims = 4);
  REFUSED(QK_BAD_ARGUMENT, load.solver = "");
  REFUSED(QK_BAD_ARGUMENT, load.precision = "triple");
  REFUSED(QK_TOO_LARGE, load.has_slots = true; load.slots = QK_SLOTS_MAX + 1);
  REFUSED(QK_BAD_ARGUMENT, load.gauge = text);
  REFUSED(QK_BAD_ARGUMENT, load.gauge = "builtin:weak:\x1b[2J");
  REFUSED(QK_NOT_FOUND, load.gauge = "/etc/passwd");
}

/* ---- replicas -------------------------------------------------------------------------------- */

static qk_status_t ask_replicas(const Quark__Load *load, qk_settings_t *s, qk_err_t *err) {
  char gauge[QK_PATH_MAX + 1];
  qk_settings_t from = base();
  from.replicas = 2;
  from.ranks = 1;
  *err = (qk_err_t){0};
  return qk_setup_request_settings(load, &from, false, gauge, s, err);
}

Test(setup_request, replicas_are_those_of_the_load_or_of_quarkd) {
  Quark__Load load = QUARK__LOAD__INIT;
  qk_settings_t s;
  qk_err_t err;
  load.name = "new";
  cr_assert_eq(ask_replicas(&load, &s, &err), QK_OK, "%s", err.text);
  cr_expect(s.replicas == 2 && s.ndevices == 0);
  load.has_replicas = true;
  load.replicas = 3;
  load.devices = "4,0,4";
  cr_assert_eq(ask_replicas(&load, &s, &err), QK_OK, "%s", err.text);
  cr_expect(s.replicas == 3 && s.ndevices == 3);
  cr_expect(s.device[0] == 4 && s.device[1] == 0 && s.device[2] == 4);
  load.devices = "4,0";
  cr_expect_eq(ask_replicas(&load, &s, &err), QK_BAD_ARGUMENT);
  load.devices = NULL;
  load.replicas = QK_REPLICAS_MAX + 1;
  cr_expect_eq(ask_replicas(&load, &s, &err), QK_BAD_ARGUMENT);
  load.replicas = 0;
  cr_expect_eq(ask_replicas(&load, &s, &err), QK_BAD_ARGUMENT);
}

Test(setup_request, a_private_setup_has_one_engine) {
  Quark__Load load = QUARK__LOAD__INIT;
  qk_settings_t s;
  qk_err_t err;
  load.name = "own";
  load.owner = "ann";
  cr_assert_eq(ask_replicas(&load, &s, &err), QK_OK, "%s", err.text);
  cr_expect_eq(s.replicas, 1);
  load.has_replicas = true;
  load.replicas = 2;
  cr_expect_eq(ask_replicas(&load, &s, &err), QK_UNSUPPORTED);
  load.replicas = 1;
  load.devices = "1";
  cr_expect_eq(ask_replicas(&load, &s, &err), QK_DENIED);
}
