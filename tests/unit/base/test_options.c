#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/config/options.h"

typedef struct inner {
  const char *name;
  double seconds;
} inner_t;

typedef struct values {
  bool json, wait;
  int slots;
  uint32_t rhs;
  uint64_t request, word;
  const char *in, *out, *detach;
  inner_t inner;
  int finished; /* what inner and outer finish have asked, in their order */
} values_t;

static void take_word(const struct argp_state *state, const char *name, char *text, void *values) {
  values_t *v = values;
  if (strcmp(text, "five") != 0) argp_error(state, "--%s=%s: must be five", name, text);
  v->word = 5;
}

static void take_detach(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  values_t *v = values;
  (void)state, (void)name;
  v->detach = text ? text : "a day";
}

static int order;

static void finish_inner(const struct argp_state *state, void *values) {
  const inner_t *inner = values;
  if (inner->name && inner->seconds == 0) argp_error(state, "--name needs --seconds");
  order = 10 * order + 1;
}

static void finish(const struct argp_state *state, void *values) {
  values_t *v = values;
  if (!v->in) argp_error(state, "IN is missing");
  order = 10 * order + 2;
  v->finished = order;
}

static const qk_option_row_t inner_rows[] = {
    {"name", QK_OPTION_TEXT, offsetof(inner_t, name), "NAME", .help = "what it is called"},
    {"seconds", QK_OPTION_REAL, offsetof(inner_t, seconds), "SECONDS", .min = 0.5, .max = 60,
     .help = "how long"},
    {0},
};
static const qk_option_table_t inner_table = {
    .row = inner_rows, .group = 2, .finish = finish_inner};

#define AT(member) offsetof(values_t, member)
static const qk_option_row_t rows[] = {
    {"json", QK_OPTION_FLAG, AT(json), .help = "print JSON"},
    {"no-wait", QK_OPTION_CLEAR, AT(wait), .help = "return at once"},
    {"slots", QK_OPTION_INT, AT(slots), "N", .max = 64, .help = "slots"},
    {"rhs", QK_OPTION_UINT32, AT(rhs), "N", .min = 1, .max = 1024, .help = "right-hand sides"},
    {"request", QK_OPTION_UINT64, AT(request), "N", .min = 1, .max = 0x1p64, .help = "request"},
    {"word", QK_OPTION_TAKEN, .form = "WORD", .take = take_word, .help = "a word"},
    {"detach", QK_OPTION_TAKEN, .form = "SECONDS", .take = take_detach,
     .flags = OPTION_ARG_OPTIONAL, .help = "leave"},
    {"IN", QK_OPTION_ARGUMENT, .offset = AT(in)},
    {"OUT", QK_OPTION_ARGUMENT, .offset = AT(out)},
    {NULL, QK_OPTION_TABLE, AT(inner), .table = &inner_table},
    {0},
};
static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

static const qk_option_row_t bare_rows[] = {
    {"json", QK_OPTION_FLAG, AT(json), .help = "print JSON"}, {0}};
static const qk_option_table_t bare = {.row = bare_rows};

enum { WORDS = 8 };

static void parse(const qk_option_table_t *t, const char *const words[WORDS], values_t *v) {
  static char copy[WORDS][64] = {"tool"}; /* values point into it */
  char *argv[WORDS + 2] = {copy[0]};
  int n = 1;
  for (int i = 0; i < WORDS - 1 && words[i]; i++, n++) {
    snprintf(copy[n], sizeof copy[n], "%s", words[i]);
    argv[n] = copy[n];
  }
  *v = (values_t){.wait = true, .slots = 12};
  qk_options_parse(t, "IN OUT", "a tool", n, argv, v);
}

/* What another process of these words leaves with, and its standard output and error. */
static int outcome(const qk_option_table_t *t, const char *const words[WORDS], char *said,
                   size_t room) {
  int ends[2], status = -1;
  size_t n = 0;
  cr_assert_eq(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    values_t v;
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    parse(t, words, &v);
    _exit(99);
  }
  close(ends[1]);
  for (ssize_t got; n < room - 1 && (got = read(ends[0], said + n, room - 1 - n)) > 0;)
    n += (size_t)got;
  said[n] = '\0';
  close(ends[0]);
  cr_assert_eq(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(options, values_go_where_their_rows_say) {
  values_t v;
  parse(&table, (const char *const[WORDS]){"a.in", "--slots=64", "--json"}, &v);
  cr_expect(v.json && v.wait && v.slots == 64);
  cr_expect_str_eq(v.in, "a.in");
  cr_expect_null(v.out);
  parse(&table, (const char *const[WORDS]){"--no-wait", "--rhs", "1024", "a", "--word=five", "b"},
        &v);
  cr_expect(!v.wait && !v.json && v.slots == 12 && v.rhs == 1024 && v.word == 5);
  cr_expect_str_eq(v.in, "a");
  cr_expect_str_eq(v.out, "b");
  parse(&table, (const char *const[WORDS]){"a", "--request=18446744073709551615", "--detach"}, &v);
  cr_expect_eq(v.request, UINT64_MAX);
  cr_expect_str_eq(v.detach, "a day");
}

Test(options, tables_within_tables_have_structs_of_their_own_and_finish_first) {
  values_t v;
  order = 0;
  parse(&table, (const char *const[WORDS]){"a", "--name=x", "--seconds=0.5"}, &v);
  cr_expect_str_eq(v.inner.name, "x");
  cr_expect_eq(v.inner.seconds, 0.5);
  cr_expect_eq(v.finished, 12, "%d", v.finished);
}

Test(options, wrong_usage_names_option_value_and_limit) {
  const struct {
    const qk_option_table_t *table;
    const char *words[WORDS], *said;
  } bad[] = {
      {&table, {"a", "--slots=65"}, "--slots=65: must be an integer from 0 to 64\n"},
      {&table, {"a", "--slots=4 "}, "must be an integer from 0 to 64, without blanks\n"},
      {&table, {"a", "--slots=-1"}, "--slots=-1: must be an integer"},
      {&table, {"a", "--slots=1e1"}, "--slots=1e1: must be an integer"},
      {&table, {"a", "--rhs=0"}, "--rhs=0: must be an integer from 1 to 1024"},
      {&table, {"a", "--request=18446744073709551616"}, "from 1 to 18446744073709551615"},
      {&table, {"a", "--seconds=nan"}, "--seconds=nan: must be a number from 0.5 to 60"},
      {&table, {"a", "--seconds="}, "--seconds=: must be a number"},
      {&table, {"a", "--seconds=61"}, "--seconds=61: must be a number from 0.5 to 60"},
      {&table, {"a", "--word=six"}, "--word=six: must be five"},
      {&table, {"a", "--name=x"}, "--name needs --seconds"},
      {&table, {"--json"}, "IN is missing"},
      {&table, {"a", "b", "c d"}, "one argument too many: \"c d\""},
      {&table, {"a", "--colour"}, "unrecognized option"},
      {&table, {"a", "--json=1"}, "doesn't allow an argument"},
      {&table, {"a", "--slots"}, "requires an argument"},
      {&bare, {"a"}, "Usage: tool"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char said[2048];
    cr_expect_eq(outcome(bad[i].table, bad[i].words, said, sizeof said), 64, "%s", bad[i].said);
    cr_expect(strstr(said, bad[i].said) != NULL, "%s: %s", bad[i].said, said);
  }
}

Test(options, help_has_a_line_for_each_row_in_the_order_of_groups) {
  char said[4096];
  const char *at = said;
  const char *const lines[] = {"Usage: tool [OPTION...] IN OUT",
                               "a tool",
                               "--detach[=SECONDS]",
                               "--json",
                               "--no-wait",
                               "--rhs=N",
                               "--name=NAME",
                               "--seconds=SECONDS"};
  cr_assert_eq(outcome(&table, (const char *const[WORDS]){"--help"}, said, sizeof said), 0);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const char *found = strstr(at, lines[i]);
    cr_assert(found != NULL, "%s is not there, or too early: %s", lines[i], said);
    at = found;
  }
}
