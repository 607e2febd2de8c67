#include "daemon/base/config/options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/assert.h"

enum { MOST = 64, KEY = 0x100 /* of the first row: more than a letter */ };

typedef struct place {
  const qk_option_row_t *row;
  char *values; /* struct of its table */
} place_t;

typedef struct line {
  struct argp_option option[MOST + 1];
  place_t place[MOST], argument[MOST];
  int n, arguments, taken; /* options; arguments that there are, and that were given */
  struct {
    qk_option_finish_fn *ask;
    void *values;
  } finish[MOST];
  int finishes;
} line_t;

static void add_row(line_t *line, const qk_option_row_t *row, int group, char *values) {
  QK_ASSERT(line->n < MOST && line->arguments < MOST);
  if (row->type == QK_OPTION_ARGUMENT) {
    line->argument[line->arguments++] = (place_t){row, values};
    return;
  }
  line->option[line->n] = (struct argp_option){.name = row->name,
                                               .key = KEY + line->n,
                                               .arg = row->form,
                                               .flags = row->flags,
                                               .doc = row->help,
                                               .group = group};
  line->place[line->n++] = (place_t){row, values};
}

static void add_finish(line_t *line, qk_option_finish_fn *ask, void *values) {
  if (!ask) return;
  QK_ASSERT(line->finishes < MOST);
  line->finish[line->finishes].ask = ask;
  line->finish[line->finishes++].values = values;
}

/* Tables hold tables: of a command, what it shares with others of its kind, and that with all. */
static void add_rows(line_t *line, const qk_option_table_t *table, char *values, int depth) {
  QK_ASSERT(depth < 5);
  for (const qk_option_row_t *row = table->row; row->type != QK_OPTION_END; row++)
    if (row->type == QK_OPTION_TABLE)
      add_rows(line, row->table, values + row->offset, depth + 1);
    else
      add_row(line, row, table->group, values);
  add_finish(line, table->finish, values);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Points at blanks, which are easily overlooked. */
static const char *hint(const char *text) {
  return strpbrk(text, " \t\r\n") ? ", without blanks" : "";
}

double qk_option_real(const struct argp_state *state, const char *name, const char *text,
                      double min, double max) {
  char *end;
  const double x = strtod(text, &end);
  if (end == text || *end || !(x >= min && x <= max))
    argp_error(state, "--%s=%s: must be a number from %g to %g%s", name, text, min, max,
               hint(text));
  return x;
}

uint64_t qk_option_integer(const struct argp_state *state, const char *name, const char *text,
                           uint64_t min, uint64_t max) {
  char *end;
  errno = 0;
  const unsigned long long x = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || x < min || x > max)
    argp_error(state, "--%s=%s: must be an integer from %llu to %llu%s", name, text,
               (unsigned long long)min, (unsigned long long)max, hint(text));
  return x;
}

/* A limit of 2^64 stands for the largest integer, which a double does not hold. */
static uint64_t limit(double x) {
  return x < 0x1p64 ? (uint64_t)x : UINT64_MAX;
}

static void take(const struct argp_state *state, const place_t *place, char *text) {
  const qk_option_row_t *row = place->row;
  void *value = place->values + row->offset;
  switch (row->type) {
  case QK_OPTION_FLAG:
  case QK_OPTION_CLEAR:
    *(bool *)value = row->type == QK_OPTION_FLAG;
    return;
  case QK_OPTION_TEXT:
  case QK_OPTION_ARGUMENT:
    *(const char **)value = text;
    return;
  case QK_OPTION_REAL:
    *(double *)value = qk_option_real(state, row->name, text, row->min, row->max);
    return;
  case QK_OPTION_TAKEN:
    row->take(state, row->name, text, place->values);
    return;
  default:
    break;
  }
  const uint64_t n = qk_option_integer(state, row->name, text, limit(row->min), limit(row->max));
  if (row->type == QK_OPTION_INT)
    *(int *)value = (int)n;
  else if (row->type == QK_OPTION_UINT32)
    *(uint32_t *)value = (uint32_t)n;
  else
    *(uint64_t *)value = n;
}

/* ---- the line -------------------------------------------------------------------------------- */

static void take_argument(const struct argp_state *state, line_t *line, char *text) {
  if (line->arguments == 0) argp_usage(state);
  if (line->taken == line->arguments) argp_error(state, "one argument too many: \"%s\"", text);
  if (line->taken < line->arguments) take(state, &line->argument[line->taken++], text);
}

static error_t parse(int key, char *text, struct argp_state *state) {
  line_t *line = state->input;
  if (key >= KEY && key < KEY + line->n) {
    take(state, &line->place[key - KEY], text);
    return 0;
  }
  switch (key) {
  case ARGP_KEY_ARG:
    take_argument(state, line, text);
    return 0;
  case ARGP_KEY_END:
    for (int i = 0; i < line->finishes; i++) line->finish[i].ask(state, line->finish[i].values);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

void qk_options_parse(const qk_option_table_t *table, const char *args, const char *about, int argc,
                      char **argv, void *values) {
  line_t line = {.n = 0};
  const struct argp argp = {line.option, parse, args, about, NULL, NULL, NULL};
  add_rows(&line, table, values, 0);
  argp_err_exit_status = EX_USAGE;
  const error_t failed = argp_parse(&argp, argc, argv, 0, NULL, &line);
  if (failed == 0) return;
  fprintf(stderr, "%s: %s\n", argv[0], strerror(failed));
  exit(EX_USAGE);
}
