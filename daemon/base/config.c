#include "daemon/base/config.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/version.h"

enum { STRING_MAX = 4095, FIRST_KEY = 256, HELP_BYTES = 640 };
enum { EXIT_USAGE_ERROR = 64, EXIT_BAD_CONFIG = 78 };

typedef struct qk_config_state {
  char *string;     /* STRING: the value, of qk_malloc */
  const char *flag; /* text of the command line, until it is applied */
  int named;        /* the row whose flag gave it */
  bool given;
  bool in_file;
  char help[HELP_BYTES];
} qk_config_state_t;

struct qk_config {
  const char *program, *about;
  const qk_config_row_t *rows;
  int nrows;
  char *values;
  const char *file; /* of --config; NULL: none */
  qk_config_state_t *state;
};

static qk_config_type_t type_of(const qk_config_row_t *row) {
  return (qk_config_type_t)(row->type & ~QK_CONFIG_LIVE);
}

static bool is_setting(const qk_config_row_t *row) {
  return type_of(row) != QK_CONFIG_GROUP && type_of(row) != QK_CONFIG_OLD_NAME;
}

/* Whether the flag without a value means yes. */
static bool may_stand_alone(const qk_config_row_t *row) {
  return type_of(row) == QK_CONFIG_BOOL && row->form == NULL;
}

/* ---- one value ------------------------------------------------------------------------------- */

static int row_by_key(const qk_config_t *config, const char *key) {
  for (int i = 0; i < config->nrows; i++) {
    if (type_of(&config->rows[i]) != QK_CONFIG_GROUP && strcmp(config->rows[i].key, key) == 0)
      return i;
  }
  return -1;
}

/* The setting that row i names: i itself, unless it is an old name. */
static int setting_of(const qk_config_t *config, int i) {
  const bool old = i >= 0 && type_of(&config->rows[i]) == QK_CONFIG_OLD_NAME;
  return old ? row_by_key(config, config->rows[i].form) : i;
}

static bool parse_bool(const char *text, bool *out) {
  static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off",
                                                                              "0"};
  for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
    if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
      *out = strcmp(text, yes[i]) == 0;
      return true;
    }
  }
  return false;
}

static bool parse_integer(const char *text, bool suffix, int64_t *out) {
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (errno != 0 || end == text || isspace((unsigned char)*text)) return false;
  if (suffix && *end != '\0') {
    const char *const units = "KMGT", *unit = strchr(units, *end++);
    if (unit == NULL) return false;
    int64_t scale = (int64_t)1 << (10 * (unit - units + 1)), scaled;
    if (__builtin_mul_overflow((int64_t)v, scale, &scaled)) return false;
    v = scaled;
  }
  *out = v;
  return *end == '\0';
}

static bool parse_double(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0' && !isspace((unsigned char)*text) && isfinite(*out);
}

/* Index of text among the words of "a|b|c", or -1. */
static int parse_choice(const char *text, const char *form) {
  const size_t n = strlen(text);
  for (int index = 0;; index++) {
    size_t word = strcspn(form, "|");
    if (word == n && memcmp(form, text, n) == 0) return index;
    if (form[word] == '\0') return -1;
    form += word + 1;
  }
}

/* As it may be given: sizes with the greatest suffix that keeps them whole. */
static const char *print_limit(const qk_config_row_t *row, double limit, char out[32]) {
  const char *suffix = "\0KMGT";
  while (type_of(row) == QK_CONFIG_SIZE && limit != 0 && suffix[1] && fmod(limit, 1024) == 0) {
    limit /= 1024;
    suffix++;
  }
  snprintf(out, 32, "%.12g%.1s", limit, suffix);
  return out;
}

static qk_status_t outside(const qk_config_row_t *row, const char *where, const char *text,
                           qk_err_t *err) {
  char min[32], max[32];
  return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = %.80s: must be %s .. %s", where, row->key, text,
                 print_limit(row, row->min, min), print_limit(row, row->max, max));
}

static qk_status_t set_string(qk_config_t *config, int i, const char *where, const char *text,
                              qk_err_t *err) {
  const qk_config_row_t *row = &config->rows[i];
  const size_t n = strlen(text);
  const double min = row->min < row->max ? row->min : 0;
  const double max = row->min < row->max ? row->max : STRING_MAX;
  if ((double)n < min || (double)n > max) {
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = \"%.60s%s\": has %zu bytes, must have %g .. %g",
                   where, row->key, text, n > 60 ? "..." : "", n, min, max);
  }
  char *copy = qk_malloc(n + 1);
  if (copy == NULL) return qk_fail(err, QK_NO_MEMORY, "%s: %s: no memory", where, row->key);
  memcpy(copy, text, n + 1);
  qk_free(config->state[i].string);
  config->state[i].string = copy;
  memcpy(config->values + row->offset, &config->state[i].string, sizeof copy);
  return QK_OK;
}

static bool has_blank(const char *text) {
  return strpbrk(text, " \t\r\n\v\f") != NULL;
}

static qk_status_t set_number(const qk_config_row_t *row, void *value, const char *where,
                              const char *text, qk_err_t *err) {
  int64_t integer = 0;
  double real = 0;
  bool ok = type_of(row) == QK_CONFIG_DOUBLE
                ? parse_double(text, &real)
                : parse_integer(text, type_of(row) == QK_CONFIG_SIZE, &integer);
  if (!ok) {
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = \"%.80s\": not %s%s", where, row->key, text,
                   type_of(row) == QK_CONFIG_DOUBLE ? "a finite number"
                   : type_of(row) == QK_CONFIG_SIZE ? "a size in bytes (suffix K, M, G, T)"
                                                    : "an integer",
                   has_blank(text) ? ": take the blanks away" : "");
  }
  const double v = type_of(row) == QK_CONFIG_DOUBLE ? real : (double)integer;
  if (row->min < row->max && (v < row->min || v > row->max)) return outside(row, where, text, err);
  if (type_of(row) == QK_CONFIG_DOUBLE) {
    memcpy(value, &real, sizeof real);
  } else {
    memcpy(value, &integer, sizeof integer);
  }
  return QK_OK;
}

static qk_status_t set_word(const qk_config_row_t *row, void *value, const char *where,
                            const char *text, qk_err_t *err) {
  bool flag;
  int index = 0;
  bool ok = type_of(row) == QK_CONFIG_BOOL ? parse_bool(text, &flag)
                                           : (index = parse_choice(text, row->form)) >= 0;
  if (!ok) {
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = \"%.80s\": must be %s", where, row->key, text,
                   type_of(row) == QK_CONFIG_BOOL ? "yes or no" : row->form);
  }
  if (type_of(row) == QK_CONFIG_BOOL) {
    memcpy(value, &flag, sizeof flag);
  } else {
    memcpy(value, &index, sizeof index);
  }
  return QK_OK;
}

static qk_status_t set_row(qk_config_t *config, int i, const char *where, const char *text,
                           qk_err_t *err) {
  const qk_config_row_t *row = &config->rows[i];
  void *value = config->values + row->offset;
  switch (type_of(row)) {
  case QK_CONFIG_STRING:
    return set_string(config, i, where, text, err);
  case QK_CONFIG_BOOL:
  case QK_CONFIG_CHOICE:
    return set_word(row, value, where, text, err);
  default:
    return set_number(row, value, where, text, err);
  }
}

qk_status_t qk_config_set(qk_config_t *config, const char *where, const char *key, const char *text,
                          qk_err_t *err) {
  const int named = row_by_key(config, key), i = setting_of(config, named);
  if (i < 0) return qk_fail(err, QK_BAD_ARGUMENT, "%s: unknown key \"%.60s\"", where, key);
  qk_status_t status = set_row(config, i, where, text, err);
  if (status != QK_OK) return status;
  config->state[i].given = true;
  if (named != i) qk_warn("config", "%s: %s is called %s now", where, key, config->rows[i].key);
  return QK_OK;
}

bool qk_config_given(const qk_config_t *config, const char *key) {
  int i = row_by_key(config, key);
  return i >= 0 && config->state[i].given;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void describe(const qk_config_row_t *row, char *out, size_t size) {
  int n = snprintf(out, size, "%s", row->help);
  char note[128] = "", min[32], max[32];
  const bool bounded = row->min < row->max && type_of(row) != QK_CONFIG_STRING;
  if (bounded)
    snprintf(note, sizeof note, "%s .. %s", print_limit(row, row->min, min),
             print_limit(row, row->max, max));
  if (row->initial != NULL && *row->initial != '\0') {
    snprintf(note + strlen(note), sizeof note - strlen(note), "%sdefault %.40s",
             bounded ? "; " : "", row->initial);
  }
  if (row->type & QK_CONFIG_LIVE)
    snprintf(note + strlen(note), sizeof note - strlen(note), "%sreread on SIGHUP",
             *note ? "; " : "");
  if (*note != '\0' && n > 0 && (size_t)n < size)
    snprintf(out + n, size - (size_t)n, " (%s)", note);
}

qk_status_t qk_config_create(const char *program, const char *about, const qk_config_row_t *rows,
                             int nrows, void *values, qk_config_t **config, qk_err_t *err) {
  qk_status_t status = QK_NO_MEMORY;
  qk_config_t *c = qk_calloc(1, sizeof *c);
  if (c == NULL) goto fail_memory;
  *c = (qk_config_t){program, about, rows, nrows, values, NULL, NULL};
  c->state = qk_calloc((size_t)nrows, sizeof *c->state);
  if (c->state == NULL) goto fail_memory;
  for (int i = 0; i < nrows; i++) {
    describe(&rows[i], c->state[i].help, sizeof c->state[i].help);
    if (rows[i].initial == NULL) continue;
    status = set_row(c, i, "default", rows[i].initial, err);
    if (status != QK_OK) goto fail;
  }
  *config = c;
  return QK_OK;
fail_memory:
  qk_fail(err, QK_NO_MEMORY, "configuration of %d keys: no memory", nrows);
fail:
  qk_config_destroy(c);
  return status;
}

void qk_config_destroy(qk_config_t *config) {
  if (config == NULL) return;
  for (int i = 0; config->state != NULL && i < config->nrows; i++) qk_free(config->state[i].string);
  qk_free(config->state);
  qk_free(config);
}

/* ---- file ------------------------------------------------------------------------------------ */

typedef struct qk_config_file {
  qk_config_t *config;
  FILE *in;
  const char *path;
  int line;
  qk_status_t status;
  qk_err_t *err;
} qk_config_file_t;

/* fgets that counts lines and refuses those that the parser would cut in two. */
static char *read_line(char *buffer, int size, void *arg) {
  qk_config_file_t *file = arg;
  if (file->status != QK_OK || fgets(buffer, size, file->in) == NULL) return NULL;
  file->line++;
  if (strlen(buffer) > QK_CONFIG_LINE) {
    file->status = qk_fail(file->err, QK_TOO_LARGE, "%s:%d: line is longer than %d bytes",
                           file->path, file->line, QK_CONFIG_LINE);
    return NULL;
  }
  return buffer;
}

static int take_key(void *arg, const char *section, const char *name, const char *value) {
  qk_config_file_t *file = arg;
  if (file->status != QK_OK) return 0;
  char where[512];
  snprintf(where, sizeof where, "%.480s:%d", file->path, file->line);
  if (*section != '\0' && strcmp(section, file->config->program) != 0) {
    file->status = qk_fail(file->err, QK_BAD_ARGUMENT, "%s: unknown section [%.60s], only [%s]",
                           where, section, file->config->program);
    return 0;
  }
  const int named = row_by_key(file->config, name), i = setting_of(file->config, named);
  if (i >= 0 && file->config->state[i].in_file) {
    file->status = qk_fail(file->err, QK_BAD_ARGUMENT, "%s: %s is given twice%s%s%s", where, name,
                           named == i ? "" : " (it is called ",
                           named == i ? "" : file->config->rows[i].key, named == i ? "" : " now)");
    return 0;
  }
  file->status = qk_config_set(file->config, where, name, value, file->err);
  if (file->status == QK_OK) file->config->state[i].in_file = true;
  return file->status == QK_OK;
}

qk_status_t qk_config_read_file(qk_config_t *config, const char *path, qk_err_t *err) {
  qk_config_file_t file = {config, fopen(path, "re"), path, 0, QK_OK, err};
  if (file.in == NULL) return qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  for (int i = 0; i < config->nrows; i++) config->state[i].in_file = false;
  int rc = ini_parse_stream(read_line, &file, take_key, &file);
  if (file.status == QK_OK && ferror(file.in)) {
    file.status = qk_fail(err, QK_IO_ERROR, "%s: cannot be read", path);
  } else if (file.status == QK_OK && rc != 0) {
    file.status = qk_fail(err, QK_BAD_FORMAT, "%s:%d: not \"key = value\"", path, rc);
  }
  fclose(file.in);
  return file.status;
}

/* ---- command line ---------------------------------------------------------------------------- */

enum { KEY_CONFIG = 1000001, KEY_HELP, KEY_HELP_MAN, KEY_VERSION, COMMON_OPTIONS = 5 };

typedef struct qk_config_line {
  qk_config_t *config;
  bool done;
} qk_config_line_t;

static error_t take_flag(int key, char *arg, struct argp_state *state) {
  qk_config_line_t *line = state->input;
  qk_config_t *config = line->config;
  switch (key) {
  case KEY_CONFIG:
    config->file = arg;
    return 0;
  case KEY_HELP:
    argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    line->done = true;
    return 0;
  case KEY_HELP_MAN:
    qk_config_print_man(config, stdout);
    line->done = true;
    return 0;
  case KEY_VERSION:
    printf("%s %s\n", config->program, qk_version());
    line->done = true;
    return 0;
  case ARGP_KEY_ARG:
    argp_error(state, "unexpected argument \"%s\"", arg);
    return EINVAL;
  default:
    break;
  }
  if (key < FIRST_KEY || key >= FIRST_KEY + config->nrows) return ARGP_ERR_UNKNOWN;
  const int named = key - FIRST_KEY, i = setting_of(config, named);
  if (config->state[i].flag != NULL && config->state[i].named != named) {
    argp_error(state, "--%s and --%s are one setting, which is called %s now",
               config->rows[config->state[i].named].key, config->rows[named].key,
               config->rows[i].key);
    return EINVAL;
  }
  config->state[i].flag = arg != NULL ? arg : "yes";
  config->state[i].named = named;
  return 0;
}

static void fill_options(const qk_config_t *config, struct argp_option *options) {
  int group = 0, n = 0;
  for (int i = 0; i < config->nrows; i++) {
    const qk_config_row_t *row = &config->rows[i];
    struct argp_option *option = &options[n++];
    if (type_of(row) == QK_CONFIG_GROUP) {
      *option = (struct argp_option){.doc = row->help, .group = ++group};
      continue;
    }
    const qk_config_row_t *setting = &config->rows[setting_of(config, i)];
    *option = (struct argp_option){.name = row->key,
                                   .key = FIRST_KEY + i,
                                   .arg = setting->form != NULL ? setting->form : "VALUE",
                                   .flags = setting != row ? OPTION_HIDDEN : 0,
                                   .doc = config->state[i].help,
                                   .group = group};
    if (may_stand_alone(setting)) {
      option->flags |= OPTION_ARG_OPTIONAL;
      option->arg = "yes|no";
    }
  }
  const struct argp_option common[COMMON_OPTIONS] = {
      {"config", KEY_CONFIG, "FILE", 0,
       "read settings from FILE (key = value; every flag is a key)", -1},
      {"help", KEY_HELP, NULL, 0, "print this help", -1},
      {"version", KEY_VERSION, NULL, 0, "print the version", -1},
      {"help-man", KEY_HELP_MAN, NULL, OPTION_HIDDEN, "print the options as mdoc", -1},
      {0}};
  memcpy(options + n, common, sizeof common);
}

/* Flags were only noted while argp ran: they come after the file. */
static qk_status_t apply_flags(qk_config_t *config, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < config->nrows && status == QK_OK; i++) {
    const char *text = config->state[i].flag;
    if (text == NULL) continue;
    const char *key = config->rows[config->state[i].named].key;
    status = qk_config_set(config, "command line", key, text, err);
  }
  return status;
}

bool qk_config_parse(qk_config_t *config, int argc, char **argv, int *exit_code) {
  bool go_on = false;
  qk_err_t err = {0};
  *exit_code = EXIT_USAGE_ERROR;
  struct argp_option *options = qk_calloc((size_t)config->nrows + COMMON_OPTIONS, sizeof *options);
  if (options == NULL) {
    qk_fail(&err, QK_NO_MEMORY, "no memory for the command line");
    goto done;
  }
  fill_options(config, options);
  qk_config_line_t line = {config, false};
  const struct argp argp = {options, take_flag, NULL, config->about, NULL, NULL, NULL};
  if (argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &line) != 0) goto done;
  if (line.done) {
    *exit_code = 0;
    goto done;
  }
  if (config->file != NULL && qk_config_read_file(config, config->file, &err) != QK_OK) {
    *exit_code = EXIT_BAD_CONFIG;
    goto done;
  }
  if (apply_flags(config, &err) != QK_OK) goto done;
  *exit_code = 0;
  go_on = true;
done:
  if (err.code != QK_OK) fprintf(stderr, "%s: %s\n", config->program, err.text);
  qk_free(options);
  return go_on;
}

/* ---- again ----------------------------------------------------------------------------------- */

qk_status_t qk_config_again(const qk_config_t *config, void *values, qk_config_t **out,
                            qk_err_t *err) {
  qk_config_t *fresh = NULL;
  qk_status_t status = qk_config_create(config->program, config->about, config->rows, config->nrows,
                                        values, &fresh, err);
  if (status != QK_OK) return status;
  fresh->file = config->file;
  for (int i = 0; i < config->nrows; i++) {
    fresh->state[i].flag = config->state[i].flag;
    fresh->state[i].named = config->state[i].named;
  }
  if (fresh->file != NULL) status = qk_config_read_file(fresh, fresh->file, err);
  if (status == QK_OK) status = apply_flags(fresh, err);
  if (status != QK_OK) {
    qk_config_destroy(fresh);
    return status;
  }
  *out = fresh;
  return QK_OK;
}

/* The value as it would be written. */
static void show(const qk_config_row_t *row, const void *value, char *out, size_t size) {
  const char *string, *word = row->form;
  int64_t integer;
  double real;
  bool flag;
  int index;
  switch (type_of(row)) {
  case QK_CONFIG_STRING:
    memcpy(&string, value, sizeof string);
    snprintf(out, size, "%s", string != NULL ? string : "");
    return;
  case QK_CONFIG_DOUBLE:
    memcpy(&real, value, sizeof real);
    snprintf(out, size, "%.12g", real);
    return;
  case QK_CONFIG_BOOL:
    memcpy(&flag, value, sizeof flag);
    snprintf(out, size, "%s", flag ? "yes" : "no");
    return;
  case QK_CONFIG_CHOICE:
    memcpy(&index, value, sizeof index);
    while (index-- > 0) word = strchr(word, '|') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(word, "|"), word);
    return;
  default:
    memcpy(&integer, value, sizeof integer);
    snprintf(out, size, "%lld", (long long)integer);
  }
}

/* The strings, which belong to the states, change places with the values. */
static void take_over(qk_config_t *config, qk_config_t *fresh, int i) {
  static const size_t bytes[] = {
      [QK_CONFIG_INT] = sizeof(int64_t),   [QK_CONFIG_SIZE] = sizeof(int64_t),
      [QK_CONFIG_DOUBLE] = sizeof(double), [QK_CONFIG_STRING] = sizeof(char *),
      [QK_CONFIG_BOOL] = sizeof(bool),     [QK_CONFIG_CHOICE] = sizeof(int)};
  const qk_config_row_t *row = &config->rows[i];
  char *string = config->state[i].string;
  config->state[i].string = fresh->state[i].string;
  fresh->state[i].string = string;
  config->state[i].given = fresh->state[i].given;
  memcpy(config->values + row->offset, fresh->values + row->offset, bytes[type_of(row)]);
}

void qk_config_adopt(qk_config_t *config, qk_config_t *fresh, qk_config_change_fn tell, void *arg) {
  char old[STRING_MAX + 1], now[STRING_MAX + 1];
  for (int i = 0; i < config->nrows; i++) {
    const qk_config_row_t *row = &config->rows[i];
    const bool given = config->state[i].given || fresh->state[i].given;
    if (!is_setting(row) || !given) continue;
    show(row, config->values + row->offset, old, sizeof old);
    show(row, fresh->values + row->offset, now, sizeof now);
    if (row->type & QK_CONFIG_LIVE) take_over(config, fresh, i);
    if (strcmp(old, now) != 0) tell(arg, row, old, now);
  }
}

/* ---- man page -------------------------------------------------------------------------------- */

void qk_config_print_man(const qk_config_t *config, FILE *out) {
  bool open = false;
  for (int i = 0; i < config->nrows; i++) {
    const qk_config_row_t *row = &config->rows[i];
    if (type_of(row) == QK_CONFIG_GROUP) {
      fprintf(out, "%s.Ss %s\n", open ? ".El\n" : "", row->help);
      open = false;
      continue;
    }
    if (!is_setting(row)) continue;
    if (!open) fputs(".Bl -tag -width Ds\n", out);
    open = true;
    if (may_stand_alone(row)) {
      fprintf(out, ".It Fl -%s Ns Op = Ns Cm yes Ns | Ns Cm no\n", row->key);
    } else {
      fprintf(out, ".It Fl -%s Ns = Ns Ar %s\n", row->key, row->form != NULL ? row->form : "VALUE");
    }
    fprintf(out, "%c%s.\n", toupper((unsigned char)config->state[i].help[0]),
            config->state[i].help + 1);
  }
  if (open) fputs(".El\n", out);
}
