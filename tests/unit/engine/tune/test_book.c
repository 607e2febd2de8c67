#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/engine/multigrid/mg_text.h"
#include "daemon/engine/tune/book.h"

static qk_tune_case_t some_case(void) {
  return (qk_tune_case_t){.links = 0xfedcba9876543210u,
                          .dims = {8, 8, 8, 16},
                          .grid = {1, 1, 1, 2},
                          .op = "wilson-clover;mass=-0.1;csw=1.5",
                          .boundary_t = -1,
                          .tol = 1e-10,
                          .slots = 16,
                          .threads = 4,
                          .backend = "cpu",
                          .device = "A processor",
                          .precision = "single",
                          .version = "0.1.0"};
}

static qk_tune_record_t some_record(int post, double seconds) {
  qk_tune_record_t r = {.gauge = "cfg.lime",
                        .time = "2026-11-27T21:30:00Z",
                        .what = "mg-post on level 0",
                        .outcome = QK_TUNE_GOOD,
                        .seconds = seconds,
                        .spread = 0.01,
                        .alone = 3 * seconds,
                        .setup_seconds = 1.0 / 3,
                        .iterations = 12.5,
                        .residual = 7.3e-11,
                        .bytes = (int64_t)5e10};
  char text[16];
  qk_err_t err = {0};
  snprintf(text, sizeof text, "%d", post);
  cr_assert_eq(qk_mg_text_set(&r.params, "mg-levels", "3", &err), QK_OK);
  cr_assert_eq(qk_mg_text_set(&r.params, "mg-blocks", "4x4x4x4,2x2x2x2", &err), QK_OK);
  cr_assert_eq(qk_mg_text_set(&r.params, "mg-post", text, &err), QK_OK);
  cr_assert(qk_tune_settings(&r.params, r.settings));
  return r;
}

static char folder[] = "/tmp/quark-tune-XXXXXX", path[64];
static void open_folder(void) {
  cr_assert_not_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/protocol", folder);
}
static void close_folder(void) {
  unlink(path);
  rmdir(folder);
}

static int told_line[16], ntold;
static char told_why[200];
static void tell(void *arg, const char *file, int line, const char *why) {
  (void)arg;
  cr_assert_str_eq(file, path);
  told_line[ntold++] = line;
  snprintf(told_why, sizeof told_why, "%s", why);
}

static void append(const qk_tune_case_t *of, const qk_tune_record_t *r) {
  qk_err_t err = {0};
  char *line = qk_tune_record_line(of, r);
  cr_assert_eq(qk_tune_file_append(path, line, &err), QK_OK, "%s", err.text);
  free(line);
}

static void write_text(const char *mode, const char *text) {
  FILE *f = fopen(path, mode);
  cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* ---- lines ----------------------------------------------------------------------------------- */

Test(record, comes_back_as_it_was) {
  const qk_tune_case_t of = some_case();
  for (int outcome = 0; outcome < 3; outcome++) {
    qk_tune_record_t r = some_record(4, 0.1), back;
    qk_tune_case_t of_back;
    qk_err_t err = {0};
    r.outcome = (qk_tune_outcome_t)outcome;
    snprintf(r.error, sizeof r.error, "%s", outcome == QK_TUNE_FAILED ? "no \"memory\"" : "");
    char *line = qk_tune_record_line(&of, &r);
    cr_assert_not_null(line);
    cr_assert_null(strchr(line, '\n'));
    cr_assert_eq(qk_tune_record_read(line, strlen(line), &of_back, &back, &err), QK_OK, "%s",
                 err.text);
    cr_assert(qk_tune_case_is(&of, &of_back));
    cr_assert_str_eq(back.settings, r.settings);
    cr_assert_eq(memcmp(&back.params, &r.params, sizeof r.params), 0);
    cr_assert_str_eq(back.error, r.error);
    cr_assert_str_eq(back.time, r.time);
    cr_assert_eq((int)back.outcome, outcome);
    if (outcome != QK_TUNE_FAILED) {
      cr_assert(back.seconds == r.seconds && back.alone == r.alone && back.spread == r.spread);
      cr_assert(back.setup_seconds == r.setup_seconds && back.residual == r.residual);
      cr_assert(back.iterations == r.iterations && back.bytes == r.bytes);
    }
    free(line);
  }
}

/* `from` of a good line is replaced by `to`: the reason must name what is wrong. */
static void refuse(const char *from, const char *to, const char *word) {
  const qk_tune_case_t of = some_case();
  const qk_tune_record_t r = some_record(4, 0.25);
  char *line = qk_tune_record_line(&of, &r), bad[8192];
  const char *at = strstr(line, from);
  cr_assert_not_null(at, "%s in %s", from, line);
  snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - line), line, to, at + strlen(from));
  qk_tune_case_t of_back;
  qk_tune_record_t back;
  qk_err_t err = {0};
  cr_assert_neq(qk_tune_record_read(bad, strlen(bad), &of_back, &back, &err), QK_OK, "%s", bad);
  cr_assert_not_null(strstr(err.text, word), "%s: %s", to, err.text);
  free(line);
}

static const struct {
  const char *from, *to, *word;
} wrong[] = {
    {"\"quark-tune\":1", "\"quark-tune\":2", "version 2"},
    {"\"quark-tune\":1", "\"quark\":1", "quark-tune is not there"},
    {"fedcba9876543210", "FEDC", "links"},
    {"[8,8,8,16]", "[8,8,8]", "lattice"},
    {"[8,8,8,16]", "[8,8,8,0]", "lattice"},
    {"\"slots\":16", "\"slots\":\"16\"", "slots is of another type"},
    {"\"slots\":16", "\"slots\":0", "slots = 0"},
    {"\"seconds\":0.25", "\"seconds\":-0.25", "seconds = -0.25"},
    {"\"seconds\":0.25", "\"seconds\":0", "seconds = 0"},
    {"\"seconds\":0.25,", "", "seconds is not there"},
    {"\"result\":\"good\"", "\"result\":\"fine\"", "good, stopped or failed"},
    {"\"mg-levels\":\"3\"", "\"mg-levels\":\"7\"", "mg-levels = 7"},
    {"\"mg-levels\":\"3\"", "\"mg-colour\":\"3\"", "mg-colour"},
    {"\"mg-levels\":\"3\"", "\"mg-levels\":3", "mg-levels: a text"},
    {"\"mg-levels\":\"3\",", "", "mg-levels is not there"},
    {"\"A processor\"", "7", "device is of another type"},
    {"{", "[{", "no JSON object"},
    {"}", "", "no JSON object"},
};

Test(record, what_is_wrong_is_named) {
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    refuse(wrong[i].from, wrong[i].to, wrong[i].word);
}

Test(record, texts_of_others_lose_what_a_terminal_would_obey) {
  const qk_tune_case_t of = some_case();
  qk_tune_record_t r = some_record(4, 0.25), back;
  qk_tune_case_t of_back;
  qk_err_t err = {0};
  snprintf(r.what, sizeof r.what, "a\x1b[31m\xff");
  char *line = qk_tune_record_line(&of, &r);
  cr_assert_eq(qk_tune_record_read(line, strlen(line), &of_back, &back, &err), QK_OK);
  cr_assert_str_eq(back.what, "a?[31m?");
  free(line);
}

/* ---- book ------------------------------------------------------------------------------------ */

Test(book, finds_the_last_of_the_same_settings_and_the_best) {
  qk_tune_book_t book = {0};
  const qk_tune_case_t of = some_case();
  qk_tune_case_t other = of;
  other.tol = 1e-8;
  const int mine = qk_tune_book_case(&book, &of), its = qk_tune_book_case(&book, &other);
  cr_assert_eq(qk_tune_book_case(&book, &of), mine);
  cr_assert_neq(mine, its);
  qk_tune_record_t r = some_record(4, 0.2);
  r.of = mine;
  cr_assert(qk_tune_book_add(&book, &r));
  r.seconds = 0.3;
  cr_assert(qk_tune_book_add(&book, &r));
  r = some_record(6, 0.1);
  r.of = mine;
  r.setup_seconds = 20;
  cr_assert(qk_tune_book_add(&book, &r));
  r = some_record(8, 0.01);
  r.of = its;
  cr_assert(qk_tune_book_add(&book, &r));
  r.of = mine;
  r.outcome = QK_TUNE_STOPPED;
  cr_assert(qk_tune_book_add(&book, &r));
  cr_assert_eq(qk_tune_book_find(&book, mine, some_record(4, 0).settings)->seconds, 0.3);
  cr_assert_null(qk_tune_book_find(&book, its, some_record(4, 0).settings));
  cr_assert_eq(qk_tune_book_best(&book, mine, 1e6)->seconds, 0.1);
  cr_assert_eq(qk_tune_book_best(&book, mine, 100)->seconds, 0.2, "the setup is dear");
  qk_tune_book_fini(&book);
}

Test(book, near_cases_come_first) {
  const qk_tune_case_t of = some_case();
  qk_tune_case_t mass = of, lattice = of, action = of, backend = of;
  snprintf(mass.op, sizeof mass.op, "wilson-clover;mass=-0.11;csw=1.5");
  lattice.dims[3] = 32;
  snprintf(action.op, sizeof action.op, "wilson;mass=-0.1");
  snprintf(backend.backend, sizeof backend.backend, "cuda");
  const double d[] = {qk_tune_case_distance(&of, &of), qk_tune_case_distance(&of, &mass),
                      qk_tune_case_distance(&of, &lattice), qk_tune_case_distance(&of, &action),
                      qk_tune_case_distance(&of, &backend)};
  cr_assert_eq(d[0], 0);
  for (int i = 1; i < 5; i++) cr_assert_gt(d[i], d[i - 1], "%d", i);
}

/* ---- files ----------------------------------------------------------------------------------- */

Test(protocol, damaged_lines_are_told_and_the_others_are_there, .init = open_folder,
     .fini = close_folder) {
  const qk_tune_case_t of = some_case();
  const qk_tune_record_t a = some_record(4, 0.2), b = some_record(6, 0.1);
  qk_tune_book_t book = {0};
  qk_tune_file_t file = {.path = path};
  qk_err_t err = {0};
  append(&of, &a);
  write_text("a", "{\"quark-tune\":1,\"li"); /* who wrote was killed */
  append(&of, &b);
  write_text("a", "\n\nnonsense\n");
  append(&of, &a);
  write_text("a", "{");
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_OK, "%s", err.text);
  cr_assert_eq(book.nrecord, 3);
  cr_assert_eq(book.ncase, 1);
  cr_assert_eq(file.good, 3);
  cr_assert_eq(file.bad, 2);
  cr_assert(file.left);
  cr_assert_eq(ntold, 2);
  cr_assert_eq(told_line[0], 2);
  cr_assert_eq(told_line[1], 6);
  qk_tune_book_fini(&book);
}

Test(protocol, what_others_append_is_read_on, .init = open_folder, .fini = close_folder) {
  const qk_tune_case_t of = some_case();
  const qk_tune_record_t a = some_record(4, 0.2), b = some_record(6, 0.1);
  qk_tune_book_t book = {0};
  qk_tune_file_t file = {.path = path};
  qk_err_t err = {0};
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_NOT_FOUND);
  cr_assert_not_null(strstr(err.text, path));
  cr_assert_eq(qk_tune_file_append(path, NULL, &err), QK_OK);
  append(&of, &a);
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_OK);
  append(&of, &b);
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_OK);
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_OK);
  cr_assert_eq(book.nrecord, 2);
  cr_assert_eq(book.record[1].seconds, 0.1);
  qk_tune_book_fini(&book);
}

Test(protocol, a_line_without_end_is_no_danger, .init = open_folder, .fini = close_folder) {
  const qk_tune_case_t of = some_case();
  const qk_tune_record_t a = some_record(4, 0.2);
  qk_tune_book_t book = {0};
  qk_tune_file_t file = {.path = path};
  qk_err_t err = {0};
  FILE *f = fopen(path, "w");
  for (int i = 0; i < 5 * QK_TUNE_LINE; i++) fputc('[', f);
  fclose(f);
  append(&of, &a);
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_OK, "%s", err.text);
  cr_assert_eq(file.bad, 1);
  cr_assert_not_null(strstr(told_why, "more than 32768 bytes"), "%s", told_why);
  cr_assert_eq(book.nrecord, 1);
  qk_tune_book_fini(&book);
}

/* Processes that append at the same time leave whole lines. */
Test(protocol, several_processes_share_a_file, .init = open_folder, .fini = close_folder) {
  enum { WRITERS = 4, LINES = 25 };
  const qk_tune_case_t of = some_case();
  qk_tune_book_t book = {0};
  qk_tune_file_t file = {.path = path};
  qk_err_t err = {0};
  pid_t writer[WRITERS];
  for (int w = 0; w < WRITERS; w++) {
    writer[w] = fork();
    cr_assert_geq(writer[w], 0);
    if (writer[w] > 0) continue;
    const qk_tune_record_t r = some_record(w + 1, 0.1);
    char *line = qk_tune_record_line(&of, &r);
    int bad = line == NULL;
    for (int i = 0; i < LINES && !bad; i++) bad = qk_tune_file_append(path, line, NULL) != QK_OK;
    _exit(bad);
  }
  for (int w = 0; w < WRITERS; w++) {
    int status = 1;
    waitpid(writer[w], &status, 0);
    cr_assert_eq(status, 0);
  }
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_OK);
  cr_assert_eq(file.good, WRITERS * LINES);
  cr_assert_eq(file.bad, 0);
  qk_tune_book_fini(&book);
}

Test(protocol, a_file_must_be_one, .init = open_folder, .fini = close_folder) {
  qk_tune_book_t book = {0};
  qk_tune_file_t file = {.path = path};
  qk_err_t err = {0}, again = {0};
  cr_assert_eq(mkfifo(path, 0600), 0);
  cr_assert_eq(qk_tune_file_read(&file, &book, tell, NULL, &err), QK_IO_ERROR);
  cr_assert_not_null(strstr(err.text, "not a regular file"), "%s", err.text);
  cr_assert_eq(qk_tune_file_append(path, "{}", &again), QK_IO_ERROR);
}
