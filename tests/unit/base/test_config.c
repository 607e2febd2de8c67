#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/config/config.h"
#include "daemon/base/fault.h"
#include "daemon/base/mem.h"

typedef struct settings {
  int64_t slots, memory;
  double kappa, csw;
  const char *gauge, *listen;
  bool verbose;
  int backend;
  qk_config_list_t tags;
  const char *colour;
} settings_t;

#define AT(member) offsetof(settings_t, member)
static const qk_config_row_t rows[] = {
    {NULL, QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Physics:"},
    {"kappa", QK_CONFIG_DOUBLE, AT(kappa), "0.12", 0.01, 0.25, "NUMBER", "hopping parameter"},
    {"csw", QK_CONFIG_DOUBLE, AT(csw), "0", 0, 0, "NUMBER", "clover coefficient"},
    {"gauge", QK_CONFIG_STRING | QK_CONFIG_LIVE, AT(gauge), NULL, 0, 0, "FILE",
     "gauge configuration"},
    {NULL, QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "Service:"},
    {"listen", QK_CONFIG_STRING, AT(listen), "tcp://127.0.0.1:5555", 6, 40, "ENDPOINT",
     "where to listen"},
    {"slots", QK_CONFIG_INT, AT(slots), "12", 1, 64, "COUNT", "right-hand sides at once"},
    {"max-memory", QK_CONFIG_SIZE | QK_CONFIG_LIVE, AT(memory), "4G", 1 << 20, 1e15, "BYTES",
     "host memory for requests"},
    {"verbose", QK_CONFIG_BOOL, AT(verbose), NULL, 0, 0, NULL, "say more"},
    {"backend", QK_CONFIG_CHOICE | QK_CONFIG_LIVE, AT(backend), "auto", 0, 0, "auto|cuda|cpu",
     "where kernels run"},
    {"tag", QK_CONFIG_LIST | QK_CONFIG_LIVE, AT(tags), NULL, 2, 9, "WORD", "a word of the setup"},
    {"colour", QK_CONFIG_STRING | QK_CONFIG_FILE_ONLY, AT(colour), NULL, 0, 0, NULL,
     "colour of the page"},
    {"label", QK_CONFIG_OLD_NAME, 0, NULL, 0, 0, "tag", NULL},
    {"places", QK_CONFIG_OLD_NAME, 0, NULL, 0, 0, "slots", NULL},
    {"chatty", QK_CONFIG_OLD_NAME, 0, NULL, 0, 0, "verbose", NULL},
};
enum { NROWS = sizeof rows / sizeof rows[0] };

static settings_t set;
static qk_config_t *config;
static char path[] = "/tmp/test_config.XXXXXX";

static void setup(void) {
  qk_err_t err = {0};
  memset(&set, 0, sizeof set);
  cr_assert_eq(qk_config_create("quarkd", "serves solves", rows, NROWS, &set, &config, &err), QK_OK,
               "%s", err.text);
}

static void teardown(void) {
  qk_config_destroy(config);
  unlink(path);
}

TestSuite(config, .init = setup, .fini = teardown);

static void write_file(const char *text) {
  int fd = mkstemp(path);
  cr_assert(fd >= 0);
  cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
}

/* Runs the parser on up to five arguments after the program's name; returns its verdict. */
static bool parse(int *exit_code, const char *a, const char *b, const char *c) {
  char *argv[] = {(char *)"quarkd", (char *)a, (char *)b, (char *)c, NULL};
  int argc = 1;
  while (argv[argc] != NULL) argc++;
  return qk_config_parse(config, argc, argv, exit_code);
}

Test(config, defaults_stand_where_nothing_is_given) {
  cr_expect_eq(set.kappa, 0.12);
  cr_expect_eq(set.slots, 12);
  cr_expect_eq(set.memory, (int64_t)4 << 30);
  cr_expect_null(set.gauge);
  cr_expect_str_eq(set.listen, "tcp://127.0.0.1:5555");
  cr_expect_eq(set.backend, 0);
  cr_expect_not(set.verbose);
  cr_expect_not(qk_config_given(config, "kappa"));
}

Test(config, command_line_beats_file_beats_default) {
  write_file("# comment\n[quarkd]\nkappa = 0.1345\nslots = 8   ; inline\nbackend=cpu\nmax-memory = "
             "512M\n");
  char arg[64];
  snprintf(arg, sizeof arg, "--config=%s", path);
  int code = -1;
  cr_assert(parse(&code, "--slots=24", arg, "--verbose"));
  cr_expect_eq(code, 0);
  cr_expect_eq(set.kappa, 0.1345);
  cr_expect_eq(set.slots, 24);
  cr_expect_eq(set.backend, 2);
  cr_expect_eq(set.memory, (int64_t)512 << 20);
  cr_expect_eq(set.csw, 0);
  cr_expect(set.verbose);
  cr_expect(qk_config_given(config, "kappa") && qk_config_given(config, "slots"));
  cr_expect_not(qk_config_given(config, "csw"));
}

/* One setting that must be refused with a text holding `cause`, and leave the old value. */
static void refused(const char *key, const char *text, const char *cause) {
  settings_t before = set;
  qk_err_t err = {0};
  cr_expect_eq(qk_config_set(config, "here", key, text, &err), QK_BAD_ARGUMENT, "%s = %s", key,
               text);
  cr_expect_not_null(strstr(err.text, cause), "\"%s\" lacks \"%s\"", err.text, cause);
  cr_expect_eq(memcmp(&before, &set, sizeof set), 0);
}

Test(config, bad_values_name_place_key_value_and_limit) {
  refused("kappa", "0.3", "here: kappa = 0.3: must be 0.01 .. 0.25");
  refused("kappa", "nan", "kappa = \"nan\": not a finite number");
  refused("kappa", "0.1x", "0.1x");
  refused("kappa", "", "not a finite number");
  refused("slots", "0", "slots = 0: must be 1 .. 64");
  refused("slots", "65", "must be 1 .. 64");
  refused("slots", "8.5", "not an integer");
  refused("slots", "99999999999999999999", "not an integer");
  refused("max-memory", "12Q", "not a size in bytes");
  refused("max-memory", "9000000T", "not a size in bytes");
  refused("max-memory", "1K", "must be 1M .. ");
  refused("verbose", "maybe", "must be yes or no");
  refused("backend", "gpu", "must be auto|cuda|cpu");
  refused("backend", "cud", "must be auto|cuda|cpu");
  refused("listen", "tcp", "has 3 bytes, must have 6 .. 40");
  refused("kapa", "0.1", "here: unknown key \"kapa\"");
}

Test(config, values_without_limits_take_any_sign) {
  qk_err_t err = {0};
  cr_expect_eq(qk_config_set(config, "here", "csw", "-1.5e-3", &err), QK_OK);
  cr_expect_eq(set.csw, -1.5e-3);
}

static void file_refused(const char *text, qk_status_t status, const char *cause) {
  qk_err_t err = {0};
  strcpy(path, "/tmp/test_config.XXXXXX");
  write_file(text);
  cr_expect_eq(qk_config_read_file(config, path, &err), status, "%s", text);
  cr_expect_not_null(strstr(err.text, cause), "\"%s\" lacks \"%s\"", err.text, cause);
  cr_expect_not_null(strstr(err.text, path));
  unlink(path);
}

Test(config, bad_files_name_the_line) {
  file_refused("kappa = 0.1\n\nslots = 99\n", QK_BAD_ARGUMENT, ":3: slots = 99: must be 1 .. 64");
  file_refused("taste = sour\n", QK_BAD_ARGUMENT, ":1: unknown key \"taste\"");
  file_refused("slots = 2\nslots = 3\n", QK_BAD_ARGUMENT, ":2: slots is given twice");
  file_refused("[engine]\nslots = 2\n", QK_BAD_ARGUMENT, ":2: unknown section [engine]");
  file_refused("\nhello\n", QK_BAD_FORMAT, ":2: not \"key = value\"");
  char big[400] = "gauge = ";
  memset(big + 8, 'x', 300);
  file_refused(big, QK_TOO_LARGE, ":1: line is longer than 190 bytes");
  memset(big + 8, 'x', QK_CONFIG_LINE - 7);
  big[QK_CONFIG_LINE + 1] = '\0'; /* one too many, without an end of the line */
  file_refused(big, QK_TOO_LARGE, ":1: line is longer than 190 bytes");
  qk_err_t err = {0};
  cr_expect_eq(qk_config_read_file(config, "/nonexistent/quarkd.conf", &err), QK_IO_ERROR);
  cr_expect_not_null(strstr(err.text, "/nonexistent/quarkd.conf"));
}

/* What comes behind it would be lost, without a word. */
Test(config, a_file_with_a_zero_byte_is_refused) {
  static const char TEXT[] = "csw = 1\ngauge = /data/a\0b\nslots = 3\n";
  qk_err_t err = {0};
  strcpy(path, "/tmp/test_config.XXXXXX");
  const int fd = mkstemp(path);
  cr_assert_eq(write(fd, TEXT, sizeof TEXT - 1), (ssize_t)sizeof TEXT - 1);
  close(fd);
  cr_expect_eq(qk_config_read_file(config, path, &err), QK_BAD_FORMAT);
  cr_expect_not_null(strstr(err.text, ":2: a byte of this line is 0"), "%s", err.text);
  unlink(path);
}

/* As flag, with and without a value, and as key; the warning names both. */
Test(config, old_names_set_what_they_are_called_now) {
  cr_redirect_stderr();
  int code = -1;
  cr_expect(parse(&code, "--places=3", "--chatty", NULL));
  cr_expect(set.slots == 3 && set.verbose && qk_config_given(config, "slots"));
  write_file("places = 5\n");
  qk_err_t err = {0};
  cr_expect_eq(qk_config_read_file(config, path, &err), QK_OK, "%s", err.text);
  cr_expect_eq(set.slots, 5);
  refused("places", "65", "here: slots = 65: must be 1 .. 64");
  fflush(stderr);
  fclose(stderr);
  char said[4096];
  said[fread(said, 1, sizeof said - 1, cr_get_redirected_stderr())] = '\0';
  cr_expect_not_null(strstr(said, "command line: places is called slots now"), "%s", said);
  cr_expect_not_null(strstr(said, ":1: places is called slots now"), "%s", said);
}

Test(config, both_names_of_a_setting_are_an_error) {
  cr_redirect_stderr();
  int code = -1;
  file_refused("places = 2\nslots = 3\n", QK_BAD_ARGUMENT, ":2: slots is given twice");
  file_refused("slots = 2\nplaces = 3\n", QK_BAD_ARGUMENT,
               ":2: places is given twice (it is called slots now)");
  cr_expect_not(parse(&code, "--places=3", "--slots=3", NULL));
  cr_expect_eq(code, 64);
}

Test(config, exit_codes_tell_usage_from_configuration) {
  cr_redirect_stderr();
  cr_redirect_stdout();
  int code = -1;
  cr_expect_not(parse(&code, "--slots=0", NULL, NULL));
  cr_expect_eq(code, 64);
  cr_expect_not(parse(&code, "--no-such-flag", NULL, NULL));
  cr_expect_eq(code, 64);
  cr_expect_not(parse(&code, "extra", NULL, NULL));
  cr_expect_eq(code, 64);
  cr_expect_not(parse(&code, "--config=/nonexistent", NULL, NULL));
  cr_expect_eq(code, 78);
  cr_expect_not(parse(&code, "--version", NULL, NULL));
  cr_expect_eq(code, 0);
}

static bool is_listed(const qk_config_row_t *row) {
  return row->type != QK_CONFIG_OLD_NAME && !(row->type & QK_CONFIG_FILE_ONLY);
}

Test(config, help_lists_every_key_with_limits_and_default) {
  cr_redirect_stdout();
  int code = -1;
  cr_expect_not(parse(&code, "--help", NULL, NULL));
  fflush(stdout);
  fclose(stdout);
  char text[8192];
  size_t n = fread(text, 1, sizeof text - 1, cr_get_redirected_stdout());
  text[n] = '\0';
  for (int i = 0; i < NROWS; i++) {
    const char *needle = rows[i].key != NULL ? rows[i].key : rows[i].help;
    cr_expect_eq(strstr(text, needle) != NULL, is_listed(&rows[i]), "%s:\n%s", needle, text);
  }
  cr_expect_not_null(strstr(text, "1 .. 64; default 12"), "%s", text);
  cr_expect_not_null(strstr(text, "(reread on SIGHUP; may be\n"), "%s", text);
  cr_expect_null(strstr(text, "help-man"));
}

Test(config, man_page_lists_every_key) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  qk_config_print_man(config, out);
  fclose(out);
  for (int i = 0; i < NROWS; i++) {
    char needle[64];
    if (rows[i].key == NULL) continue;
    snprintf(needle, sizeof needle, ".It Fl -%s ", rows[i].key);
    cr_expect_eq(strstr(text, needle) != NULL, is_listed(&rows[i]), "%s", needle);
  }
  cr_expect_not_null(strstr(text, "(default auto; reread on SIGHUP)"), "%s", text);
  free(text);
}

/* "text@place" of all values of the list. */
static const char *tags(void) {
  static char all[512];
  size_t n = 0;
  all[0] = '\0';
  for (int i = 0; i < set.tags.n && n < sizeof all; i++)
    n += (size_t)snprintf(all + n, sizeof all - n, "%s@%s%s ", set.tags.item[i].text,
                          set.tags.item[i].where, set.tags.item[i].by_flag ? "!" : "");
  return all;
}

Test(config, a_list_holds_what_file_and_command_line_gave_with_places) {
  char arg[64], want[256];
  int code = -1;
  bool by_flag = true;
  cr_redirect_stderr();
  write_file("tag = red\nslots = 3\nlabel = green\n");
  snprintf(arg, sizeof arg, "--config=%s", path);
  cr_assert(parse(&code, "--tag=blue", arg, "--tag=red"));
  snprintf(want, sizeof want, "red@%s:1 green@%s:3 blue@command line! red@command line! ", path,
           path);
  cr_expect_str_eq(tags(), want);
  cr_expect_str_eq(qk_config_where(config, "tag", &by_flag), "command line");
  cr_expect(by_flag);
  snprintf(want, sizeof want, "%s:2", path);
  cr_expect_str_eq(qk_config_where(config, "slots", &by_flag), want);
  cr_expect_not(by_flag);
  cr_expect_null(qk_config_where(config, "kappa", NULL));
  refused("tag", "x", "here: tag = \"x\": has 1 bytes, must have 2 .. 9");
  refused("tag", "0123456789", "has 10 bytes, must have 2 .. 9");
}

Test(config, a_list_has_a_limit) {
  qk_err_t err = {0};
  for (int i = 0; i < QK_CONFIG_ITEMS_MAX; i++)
    cr_assert_eq(qk_config_set(config, "here", "tag", "word", &err), QK_OK);
  refused("tag", "word", "here: tag is given more than 64 times");
  cr_expect_eq(set.tags.n, QK_CONFIG_ITEMS_MAX);
}

Test(config, keys_of_files_are_no_flags) {
  cr_redirect_stderr();
  int code = -1;
  qk_err_t err = {0};
  cr_expect_not(parse(&code, "--colour=red", NULL, NULL));
  cr_expect_eq(code, 64);
  write_file("colour = red\n");
  cr_expect_eq(qk_config_read_file(config, path, &err), QK_OK, "%s", err.text);
  cr_expect_str_eq(set.colour, "red");
}

Test(config, two_rows_with_one_key_are_refused) {
  const qk_config_row_t twice[] = {{"n", QK_CONFIG_INT, AT(slots), NULL, 0, 0, "N", "a number"},
                                   {NULL, QK_CONFIG_GROUP, 0, NULL, 0, 0, NULL, "More"},
                                   {"n", QK_CONFIG_STRING, AT(gauge), NULL, 0, 0, "N", "a word"}};
  qk_config_t *other = NULL;
  qk_err_t err = {0};
  cr_expect_eq(qk_config_create("x", "y", twice, 3, &set, &other, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "two settings have the key n"), "%s", err.text);
}

static char told[1024];

static void note(void *arg, const qk_config_row_t *row, const char *old, const char *now) {
  (void)arg;
  size_t n = strlen(told);
  snprintf(told + n, sizeof told - n, "%s %s>%s;", row->key, old, now);
}

/* Reads the file as it is now; what has been told. */
static const char *again(const char *text) {
  settings_t now = {0};
  qk_config_t *fresh = NULL;
  qk_err_t err = {0};
  FILE *out = fopen(path, "w");
  fputs(text, out);
  fclose(out);
  told[0] = '\0';
  cr_assert_eq(qk_config_again(config, &now, &fresh, &err), QK_OK, "%s", err.text);
  qk_config_adopt(config, fresh, note, NULL);
  qk_config_destroy(fresh);
  return told;
}

Test(config, what_is_live_changes_when_it_is_read_again) {
  char arg[64];
  int code = -1;
  write_file("kappa = 0.13\ngauge = a\n");
  snprintf(arg, sizeof arg, "--config=%s", path);
  cr_assert(parse(&code, arg, "--slots=24", NULL));
  cr_expect_str_eq(again("kappa = 0.13\ngauge = a\nslots = 3\n"), "");
  cr_expect_str_eq(
      again("kappa = 0.14\nmax-memory = 2M\nbackend = cpu\nverbose = yes\n"),
      "kappa 0.13>0.14;gauge a>;max-memory 4294967296>2097152;verbose no>yes;backend auto>cpu;");
  cr_expect(set.kappa == 0.13 && !set.verbose && set.slots == 24);
  cr_expect(set.memory == 2 << 20 && set.backend == 2);
  cr_expect_null(set.gauge);
  cr_expect_str_eq(again("gauge = b\nkappa = 0.13\n"),
                   "gauge >b;max-memory 2097152>4294967296;backend cpu>auto;");
  cr_expect_str_eq(set.gauge, "b");
  cr_expect_str_eq(again("gauge = b\nkappa = 0.13\ntag = red\ntag = blue\n"), "tag >red, blue;");
  cr_expect(set.tags.n == 2 && !set.tags.item[1].by_flag);
  cr_expect_str_eq(again("gauge = b\nkappa = 0.13\ntag = red\n"), "tag red, blue>red;");
}

Test(config, a_file_that_has_become_bad_changes_nothing) {
  char arg[64];
  int code = -1;
  write_file("gauge = a\n");
  snprintf(arg, sizeof arg, "--config=%s", path);
  cr_assert(parse(&code, arg, NULL, NULL));
  const int64_t before = qk_mem_bytes();
  settings_t now = {0};
  qk_config_t *fresh = NULL;
  qk_err_t err = {0};
  FILE *out = fopen(path, "w");
  fputs("gauge = b\nslots = 99\n", out);
  fclose(out);
  cr_expect_eq(qk_config_again(config, &now, &fresh, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, ":2: slots = 99"), "%s", err.text);
  cr_expect_null(fresh);
  cr_expect_str_eq(set.gauge, "a");
  cr_expect_eq(qk_mem_bytes(), before);
}

Test(config, illegal_defaults_are_refused) {
  const qk_config_row_t bad[] = {{"n", QK_CONFIG_INT, AT(slots), "7", 1, 5, "N", "a number"}};
  qk_config_t *other = NULL;
  qk_err_t err = {0};
  cr_expect_eq(qk_config_create("x", "y", bad, 1, &set, &other, &err), QK_BAD_ARGUMENT);
  cr_expect_null(other);
}

Test(config, every_allocation_may_fail) {
  const int64_t before = qk_mem_bytes();
  for (int n = 1;; n++) {
    char plan[32];
    snprintf(plan, sizeof plan, "alloc:%d", n);
    cr_assert_eq(qk_fault_set(plan), 0);
    qk_config_t *c = NULL;
    qk_err_t err = {0};
    qk_status_t status = qk_config_create("quarkd", "", rows, NROWS, &set, &c, &err);
    cr_assert(status == QK_OK || status == QK_NO_MEMORY);
    qk_config_destroy(c);
    cr_assert_eq(qk_mem_bytes(), before);
    if (status == QK_OK) {
      cr_expect_eq(n, 4);
      break;
    }
  }
}
