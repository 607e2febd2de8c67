/*
 * config.h: settings as a table. One row makes the command line flag, the key of the --config file,
 * the line in --help and the entry of the man page.
 *
 * Order      Defaults, then the --config file, then the command line; the later source wins. On the
 *            command line the last value counts; a key given twice in a file is an error. All
 *            values of a LIST count: those of the file, then those of the command line.
 * Values     Stand in the caller's struct, at row.offset:
 *              INT, SIZE  int64_t (SIZE: bytes; suffix K, M, G or T for powers of 1024)
 *              DOUBLE     double (finite)
 *              STRING     const char * (owned by the qk_config_t; NULL: no default was given)
 *              BOOL       bool (yes/no, true/false, on/off, 1/0; the flag alone means yes,
 *                         unless row.form says what it takes: "no|yes")
 *              CHOICE     int, the index of the word in row.form
 *              LIST       qk_config_list_t: texts, each with its place, as the key may be given
 *                         QK_CONFIG_ITEMS_MAX times (owned by the qk_config_t; it has no default)
 * Limits     min <= value <= max, both inclusive, if min < max; of a STRING and of a text of a LIST
 *            the length in bytes (at most 4095 without). A value outside is an error, it is never
 *            clamped.
 * File       INI: `key = value`, comments after ';' or '#', optionally under [program]. Lines have
 *            at most QK_CONFIG_LINE bytes. A row with QK_CONFIG_FILE_ONLY is a key there and no
 *            flag; --help and the man page do not list it.
 * Old names  A setting that has been renamed has a row QK_CONFIG_OLD_NAME as well: flag and key of
 *            that name still set it, and a warning names the new one. Both in one source are an
 *            error.
 * Errors     name the place (file:line or flag), key, value and limit.
 * Rereading  Settings whose type has QK_CONFIG_LIVE can change while the program runs:
 *            qk_config_again reads file and flags once more, qk_config_adopt takes over what may
 *            change.
 * Threads    One thread; not collective.
 */
#ifndef QK_BASE_CONFIG_H
#define QK_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_CONFIG_LINE = 190, QK_CONFIG_ITEMS_MAX = 64 };

typedef enum qk_config_type {
  QK_CONFIG_INT,
  QK_CONFIG_SIZE,
  QK_CONFIG_DOUBLE,
  QK_CONFIG_STRING,
  QK_CONFIG_BOOL,
  QK_CONFIG_CHOICE,
  QK_CONFIG_LIST,
  QK_CONFIG_GROUP,        /* not a setting: `help` is the title of the rows that follow */
  QK_CONFIG_OLD_NAME,     /* not a setting: what the one with the key `form` was called before */
  QK_CONFIG_LIVE = 0x100, /* with one of the others: can change while the program runs */
  QK_CONFIG_FILE_ONLY = 0x200 /* likewise: a key of the file, not a flag */
} qk_config_type_t;

typedef struct qk_config_item {
  const char *text;
  const char *where; /* "quarkd.conf:3", "command line" */
  bool by_flag;
} qk_config_item_t;

/* The value of a LIST. */
typedef struct qk_config_list {
  const qk_config_item_t *item;
  int n;
} qk_config_list_t;

typedef struct qk_config_row {
  const char *key;     /* "max-memory": flag --max-memory, key max-memory */
  int type;            /* qk_config_type_t, with QK_CONFIG_LIVE and _FILE_ONLY or without */
  size_t offset;       /* offsetof the value in the caller's struct */
  const char *initial; /* default as it would be written; NULL: zero, or NULL for a STRING */
  double min, max;
  const char *form; /* stands for the value in --help: unit or shape; CHOICE: "auto|cuda|cpu" */
  const char *help; /* one sentence, lower case, no full stop */
} qk_config_row_t;

typedef struct qk_config qk_config_t;

/* Puts the defaults into *values. rows and values are borrowed until destroy. program: "quarkd";
 * about: one line for --help. Errors: QK_NO_MEMORY; QK_BAD_ARGUMENT where a default is not legal
 * or two rows have one key. */
qk_status_t qk_config_create(const char *program, const char *about, const qk_config_row_t *rows,
                             int nrows, void *values, qk_config_t **config, qk_err_t *err);
void qk_config_destroy(qk_config_t *config); /* NULL-safe; frees the strings in values */

/* What a main() needs. True: go on. False: leave with *exit_code; --help or --version has been
 * printed (0), or the error has been written to stderr: 64 for the command line, 78 for the file.
 */
bool qk_config_parse(qk_config_t *config, int argc, char **argv, int *exit_code);

/* One setting; `where` opens the error text ("quarkd.conf:3"). On error the value is unchanged. */
qk_status_t qk_config_set(qk_config_t *config, const char *where, const char *key, const char *text,
                          qk_err_t *err);
/* QK_IO_ERROR where it cannot be read; values of the lines before the error have been set. */
qk_status_t qk_config_read_file(qk_config_t *config, const char *path, qk_err_t *err);

/* Whether the file or the command line gave the key (false: it holds its default). */
bool qk_config_given(const qk_config_t *config, const char *key);

/* Where its value, the last one of a LIST, was given: "quarkd.conf:3" or "command line"; NULL: it
 * holds its default. *by_flag (may be NULL): whether on the command line. Owned by config. */
const char *qk_config_where(const qk_config_t *config, const char *key, bool *by_flag);

/* Makes *fresh with the rows, flags and file of config, but reads the file again. values: a
 * struct like the first one, for the new values. Errors: those of the file, QK_NO_MEMORY; config
 * is unchanged. */
qk_status_t qk_config_again(const qk_config_t *config, void *values, qk_config_t **fresh,
                            qk_err_t *err);

/* A setting that another source gives now, with both values as they would be written ("" for a
 * STRING that is not given). It has been taken over where row->type has QK_CONFIG_LIVE. */
typedef void (*qk_config_change_fn)(void *arg, const qk_config_row_t *row, const char *old,
                                    const char *now);
/* Takes the live settings over from fresh, which is fit for nothing but destroy after that; tells
 * of each setting that differs. */
void qk_config_adopt(qk_config_t *config, qk_config_t *fresh, qk_config_change_fn tell, void *arg);

/* The option list as mdoc, for man pages (also by the hidden flag --help-man). */
void qk_config_print_man(const qk_config_t *config, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
