/*
 * options.h: the command line of one command as a table: a row makes the option, its line in
 * --help and the check of its value, and says where the value goes. For commands that read no
 * configuration file (else config.h), and whose values may be words that they alone understand.
 *
 * Values     Stand in the caller's struct, at row.offset, with their defaults before parsing:
 *              FLAG      bool: true if it is given
 *              CLEAR     bool: false if it is given
 *              TEXT      const char *
 *              REAL      double
 *              INT, UINT32, UINT64   int, uint32_t, uint64_t
 *              TAKEN     what row.take does with it
 *              ARGUMENT  const char *: an argument; they come in the order of their rows
 *              TABLE     the rows of another table, whose struct is at row.offset
 * Limits     Numbers: min <= value <= max.
 * Errors     A value outside, an unknown option, an argument too many: a line on stderr that names
 *            option, value and limits, and exit status 64. take and finish end wrong usage in the
 *            same way, by argp_error.
 * Threads    One thread; a table is constant.
 */
#ifndef QK_BASE_OPTIONS_H
#define QK_BASE_OPTIONS_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_option_type {
  QK_OPTION_END, /* behind the last row */
  QK_OPTION_FLAG,
  QK_OPTION_CLEAR,
  QK_OPTION_TEXT,
  QK_OPTION_REAL,
  QK_OPTION_INT,
  QK_OPTION_UINT32,
  QK_OPTION_UINT64,
  QK_OPTION_TAKEN,
  QK_OPTION_ARGUMENT,
  QK_OPTION_TABLE
} qk_option_type_t;

/* Sets in values, the struct of the table, what the text of option `name` means. The text may be
 * changed; it is NULL for an option without a value. */
typedef void qk_option_take_fn(const struct argp_state *state, const char *name, char *text,
                               void *values);
/* What holds for values together, asked at the end. */
typedef void qk_option_finish_fn(const struct argp_state *state, void *values);

typedef struct qk_option_table qk_option_table_t;

typedef struct qk_option_row {
  const char *name; /* "max-iter" */
  qk_option_type_t type;
  size_t offset;
  const char *form; /* stands for the value in --help; NULL: the option takes none */
  const char *help; /* lower case, no full stop */
  double min, max;
  qk_option_take_fn *take;
  const qk_option_table_t *table;
  int flags; /* of argp: OPTION_HIDDEN, OPTION_ALIAS, OPTION_ARG_OPTIONAL */
} qk_option_row_t;

struct qk_option_table {
  const qk_option_row_t *row;
  int group;                   /* where its rows are in --help, by ascending numbers */
  qk_option_finish_fn *finish; /* NULL: nothing is to be checked; TABLEs come first */
};

/* Parses a command line; exits after --help, --usage and wrong usage. args ("IN OUT", or NULL) and
 * about are args_doc and doc of argp. */
void qk_options_parse(const qk_option_table_t *table, const char *args, const char *about, int argc,
                      char **argv, void *values);

/* For take: a number in [min, max], else a usage error. */
double qk_option_real(const struct argp_state *state, const char *name, const char *text,
                      double min, double max);
uint64_t qk_option_integer(const struct argp_state *state, const char *name, const char *text,
                           uint64_t min, uint64_t max);

#ifdef __cplusplus
}
#endif
#endif
