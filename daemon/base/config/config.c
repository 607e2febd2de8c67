#include "daemon/base/config/config.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <math.h>
#include <string.h>

#include "daemon/base/config/value.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/version.h"

enum { FIRST_KEY = 256, HELP_BYTES = 640 };
enum { EXIT_USAGE_ERROR = 64, EXIT_BAD_CONFIG = 78 };

typedef struct qk_config_state {
  char *string;           /* STRING: the value, of qk_malloc */
  qk_config_item_t *item; /* LIST: the values, of qk_malloc; so is the text of each */
  int nitem;
  char *where; /* of the last value that was given; NULL: none was */
  bool by_flag, in_file;
  char help[HELP_BYTES];
} qk_config_state_t;

/* A flag of the command line. */
typedef struct qk_config_flag {
  int named; /* the row */
  const char *text;
} qk_config_flag_t;

struct qk_config {
  const char *program, *about;
  const qk_config_row_t *rows;
  int nrows;
  char *values;
  const char *file; /* of --config; NULL: none */
  qk_config_state_t *state;
  qk_config_flag_t *flag; /* in the order of the command line; applied after the file */
  int nflag;
};

static bool is_setting(const qk_config_row_t *row) {
  return qk_config_type_of(row) != QK_CONFIG_GROUP && qk_config_type_of(row) != QK_CONFIG_OLD_NAME;
}

/* Whether the flag without a value means yes. */
static bool may_stand_alone(const qk_config_row_t *row) {
  return qk_config_type_of(row) == QK_CONFIG_BOOL && row->form == NULL;
}

/* ---- one value ------------------------------------------------------------------------------- */

static int row_by_key(const qk_config_t *config, const char *key) {
  for (int i = 0; i < config->nrows; i++) {
    if (qk_config_type_of(&config->rows[i]) != QK_CONFIG_GROUP &&
        strcmp(config->rows[i].key, key) == 0)
      return i;
  }
  return -1;
}

/* The setting that row i names: i itself, unless it is an old name. */
static int setting_of(const qk_config_t *config, int i) {
  const bool old = i >= 0 && qk_config_type_of(&config->rows[i]) == QK_CONFIG_OLD_NAME;
  return old ? row_by_key(config, config->rows[i].form) : i;
}

/* Of a STRING, or an item. */
static qk_status_t check_length(const qk_config_row_t *row, const char *where, const char *text,
                                qk_err_t *err) {
  const size_t n = strlen(text);
  const double min = row->min < row->max ? row->min : 0;
  const double max = row->min < row->max ? row->max : QK_CONFIG_STRING_MAX;
  if ((double)n >= min && (double)n <= max) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = \"%.60s%s\": has %zu bytes, must have %g .. %g",
                 where, row->key, text, n > 60 ? "..." : "", n, min, max);
}

static qk_status_t set_string(qk_config_t *config, int i, const char *where, const char *text,
                              qk_err_t *err) {
  const qk_config_row_t *row = &config->rows[i];
  const size_t n = strlen(text);
  const qk_status_t status = check_length(row, where, text, err);
  if (status != QK_OK) return status;
  char *copy = qk_malloc(n + 1);
  if (copy == NULL) return qk_fail(err, QK_NO_MEMORY, "%s: %s: no memory", where, row->key);
  memcpy(copy, text, n + 1);
  qk_free(config->state[i].string);
  config->state[i].string = copy;
  memcpy(config->values + row->offset, &config->state[i].string, sizeof copy);
  return QK_OK;
}

/* Both texts in one piece of memory, which begins with the first. NULL without memory. */
static char *copy_two(const char *text, const char *where, const char **copy_of_where) {
  const size_t n = strlen(text) + 1, m = strlen(where) + 1;
  char *copy = qk_malloc(n + m);
  if (copy == NULL) return NULL;
  memcpy(copy, text, n);
  memcpy(copy + n, where, m);
  *copy_of_where = copy + n;
  return copy;
}

static void show_items(qk_config_t *config, int i) {
  const qk_config_list_t list = {config->state[i].item, config->state[i].nitem};
  memcpy(config->values + config->rows[i].offset, &list, sizeof list);
}

static qk_status_t add_item(qk_config_t *config, int i, const char *where, bool by_flag,
                            const char *text, qk_err_t *err) {
  const qk_config_row_t *row = &config->rows[i];
  qk_config_state_t *state = &config->state[i];
  qk_status_t status = check_length(row, where, text, err);
  if (status != QK_OK) return status;
  if (state->nitem == QK_CONFIG_ITEMS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s is given more than %d times", where, row->key,
                   QK_CONFIG_ITEMS_MAX);
  const size_t n = (size_t)state->nitem;
  qk_config_item_t *more = qk_malloc((n + 1) * sizeof *more), *item = more + n;
  char *copy = more != NULL ? copy_two(text, where, &item->where) : NULL;
  if (copy == NULL) {
    qk_free(more);
    return qk_fail(err, QK_NO_MEMORY, "%s: %s: no memory", where, row->key);
  }
  item->text = copy;
  item->by_flag = by_flag;
  if (n > 0) memcpy(more, state->item, n * sizeof *more);
  qk_free(state->item);
  state->item = more;
  state->nitem++;
  show_items(config, i);
  return QK_OK;
}

static qk_status_t set_row(qk_config_t *config, int i, const char *where, bool by_flag,
                           const char *text, qk_err_t *err) {
  const qk_config_row_t *row = &config->rows[i];
  if (qk_config_type_of(row) == QK_CONFIG_STRING) return set_string(config, i, where, text, err);
  if (qk_config_type_of(row) == QK_CONFIG_LIST)
    return add_item(config, i, where, by_flag, text, err);
  return qk_config_value_set(row, config->values + row->offset, where, text, err);
}

static qk_status_t set_key(qk_config_t *config, const char *where, bool by_flag, const char *key,
                           const char *text, qk_err_t *err) {
  const int named = row_by_key(config, key), i = setting_of(config, named);
  if (i < 0) return qk_fail(err, QK_BAD_ARGUMENT, "%s: unknown key \"%.60s\"", where, key);
  const size_t n = strlen(where) + 1;
  char *copy = qk_malloc(n);
  if (copy == NULL) return qk_fail(err, QK_NO_MEMORY, "%s: %s: no memory", where, key);
  qk_status_t status = set_row(config, i, where, by_flag, text, err);
  if (status != QK_OK) {
    qk_free(copy);
    return status;
  }
  memcpy(copy, where, n);
  qk_free(config->state[i].where);
  config->state[i].where = copy;
  config->state[i].by_flag = by_flag;
  if (named != i) qk_warn("config", "%s: %s is called %s now", where, key, config->rows[i].key);
  return QK_OK;
}

qk_status_t qk_config_set(qk_config_t *config, const char *where, const char *key, const char *text,
                          qk_err_t *err) {
  return set_key(config, where, false, key, text, err);
}

bool qk_config_given(const qk_config_t *config, const char *key) {
  return qk_config_where(config, key, NULL) != NULL;
}

const char *qk_config_where(const qk_config_t *config, const char *key, bool *by_flag) {
  const int i = row_by_key(config, key);
  if (i < 0) return NULL;
  if (by_flag != NULL) *by_flag = config->state[i].by_flag;
  return config->state[i].where;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void describe(const qk_config_row_t *row, char *out, size_t size) {
  int n = snprintf(out, size, "%s", row->help);
  char note[128] = "", min[32], max[32];
  const qk_config_type_t type = qk_config_type_of(row);
  const bool texts = type == QK_CONFIG_STRING || type == QK_CONFIG_LIST;
  const bool bounded = row->min < row->max && !texts;
  if (bounded)
    snprintf(note, sizeof note, "%s .. %s", qk_config_limit_text(row, row->min, min),
             qk_config_limit_text(row, row->max, max));
  if (row->initial != NULL && *row->initial != '\0') {
    snprintf(note + strlen(note), sizeof note - strlen(note), "%sdefault %.40s",
             bounded ? "; " : "", row->initial);
  }
  if (row->type & QK_CONFIG_LIVE)
    snprintf(note + strlen(note), sizeof note - strlen(note), "%sreread on SIGHUP",
             *note ? "; " : "");
  if (type == QK_CONFIG_LIST)
    snprintf(note + strlen(note), sizeof note - strlen(note), "%smay be given several times",
             *note ? "; " : "");
  if (*note != '\0' && n > 0 && (size_t)n < size)
    snprintf(out + n, size - (size_t)n, " (%s)", note);
}

/* Rows are made by hand and from other tables. */
static qk_status_t check_key(const qk_config_t *config, int i, qk_err_t *err) {
  const qk_config_row_t *row = &config->rows[i];
  if (qk_config_type_of(row) == QK_CONFIG_GROUP || row_by_key(config, row->key) == i) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "configuration: two settings have the key %s", row->key);
}

qk_status_t qk_config_create(const char *program, const char *about, const qk_config_row_t *rows,
                             int nrows, void *values, qk_config_t **config, qk_err_t *err) {
  qk_status_t status = QK_NO_MEMORY;
  qk_config_t *c = qk_calloc(1, sizeof *c);
  if (c == NULL) goto fail_memory;
  *c = (qk_config_t){
      .program = program, .about = about, .rows = rows, .nrows = nrows, .values = values};
  c->state = qk_calloc((size_t)nrows, sizeof *c->state);
  if (c->state == NULL) goto fail_memory;
  for (int i = 0; i < nrows; i++) {
    status = check_key(c, i, err);
    if (status != QK_OK) goto fail;
    describe(&rows[i], c->state[i].help, sizeof c->state[i].help);
    if (rows[i].initial == NULL) continue;
    status = set_row(c, i, "default", false, rows[i].initial, err);
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
  for (int i = 0; config->state != NULL && i < config->nrows; i++) {
    qk_config_state_t *state = &config->state[i];
    for (int k = 0; k < state->nitem; k++) qk_free((void *)state->item[k].text);
    qk_free(state->item);
    qk_free(state->string);
    qk_free(state->where);
  }
  qk_free(config->state);
  qk_free(config->flag);
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

/* fgets that counts lines and refuses those that the parser would cut in two or cut short. */
static char *read_line(char *buffer, int size, void *arg) {
  qk_config_file_t *file = arg;
  int n = 0;
  if (file->status != QK_OK) return NULL;
  for (int c; n < size - 1 && n <= QK_CONFIG_LINE && (c = getc(file->in)) != EOF;) {
    buffer[n++] = (char)c;
    if (c == '\n') break;
  }
  buffer[n] = '\0';
  if (n == 0) return NULL;
  file->line++;
  if (memchr(buffer, '\0', (size_t)n))
    file->status =
        qk_fail(file->err, QK_BAD_FORMAT,
                "%s:%d: a byte of this line is 0: this is not a text file", file->path, file->line);
  else if (n > QK_CONFIG_LINE)
    file->status = qk_fail(file->err, QK_TOO_LARGE, "%s:%d: line is longer than %d bytes",
                           file->path, file->line, QK_CONFIG_LINE);
  return file->status == QK_OK ? buffer : NULL;
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
  const bool once = i >= 0 && qk_config_type_of(&file->config->rows[i]) != QK_CONFIG_LIST;
  if (once && file->config->state[i].in_file) {
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
  for (int f = 0; f < config->nflag; f++) {
    const int other = config->flag[f].named;
    if (other == named || setting_of(config, other) != i) continue;
    argp_error(state, "--%s and --%s are one setting, which is called %s now",
               config->rows[other].key, config->rows[named].key, config->rows[i].key);
    return EINVAL;
  }
  config->flag[config->nflag++] = (qk_config_flag_t){named, arg != NULL ? arg : "yes"};
  return 0;
}

static void fill_options(const qk_config_t *config, struct argp_option *options) {
  int group = 0, n = 0;
  for (int i = 0; i < config->nrows; i++) {
    const qk_config_row_t *row = &config->rows[i];
    if (row->type & QK_CONFIG_FILE_ONLY) continue;
    struct argp_option *option = &options[n++];
    if (qk_config_type_of(row) == QK_CONFIG_GROUP) {
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

/* Flags were only noted while argp ran: they come after the file. The last one of a setting counts,
 * but all of a LIST. */
static qk_status_t apply_flags(qk_config_t *config, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int f = 0; f < config->nflag && status == QK_OK; f++) {
    const int named = config->flag[f].named;
    const bool list = qk_config_type_of(&config->rows[setting_of(config, named)]) == QK_CONFIG_LIST;
    bool last = true;
    for (int later = f + 1; later < config->nflag && !list; later++)
      if (config->flag[later].named == named) last = false;
    if (list || last)
      status =
          set_key(config, "command line", true, config->rows[named].key, config->flag[f].text, err);
  }
  return status;
}

bool qk_config_parse(qk_config_t *config, int argc, char **argv, int *exit_code) {
  bool go_on = false;
  qk_err_t err = {0};
  *exit_code = EXIT_USAGE_ERROR;
  struct argp_option *options = qk_calloc((size_t)config->nrows + COMMON_OPTIONS, sizeof *options);
  qk_free(config->flag);
  config->nflag = 0;
  config->flag = qk_calloc((size_t)argc + 1, sizeof *config->flag);
  if (options == NULL || config->flag == NULL) {
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
  fresh->flag = qk_calloc((size_t)config->nflag + 1, sizeof *fresh->flag);
  if (fresh->flag == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory for the command line");
  for (int f = 0; f < config->nflag && status == QK_OK; f++)
    fresh->flag[fresh->nflag++] = config->flag[f];
  if (status == QK_OK && fresh->file != NULL) status = qk_config_read_file(fresh, fresh->file, err);
  if (status == QK_OK) status = apply_flags(fresh, err);
  if (status != QK_OK) {
    qk_config_destroy(fresh);
    return status;
  }
  *out = fresh;
  return QK_OK;
}

/* What belongs to the states changes places with it. */
static void take_over(qk_config_t *config, qk_config_t *fresh, int i) {
  static const size_t bytes[] = {[QK_CONFIG_INT] = sizeof(int64_t),
                                 [QK_CONFIG_SIZE] = sizeof(int64_t),
                                 [QK_CONFIG_DOUBLE] = sizeof(double),
                                 [QK_CONFIG_STRING] = sizeof(char *),
                                 [QK_CONFIG_BOOL] = sizeof(bool),
                                 [QK_CONFIG_CHOICE] = sizeof(int),
                                 [QK_CONFIG_LIST] = sizeof(qk_config_list_t)};
  const qk_config_row_t *row = &config->rows[i];
  const qk_config_state_t mine = config->state[i];
  config->state[i] = fresh->state[i];
  fresh->state[i] = mine;
  memcpy(config->values + row->offset, fresh->values + row->offset, bytes[qk_config_type_of(row)]);
}

void qk_config_adopt(qk_config_t *config, qk_config_t *fresh, qk_config_change_fn tell, void *arg) {
  char old[QK_CONFIG_STRING_MAX + 1], now[QK_CONFIG_STRING_MAX + 1];
  for (int i = 0; i < config->nrows; i++) {
    const qk_config_row_t *row = &config->rows[i];
    const bool given = config->state[i].where != NULL || fresh->state[i].where != NULL;
    if (!is_setting(row) || !given) continue;
    qk_config_value_show(row, config->values + row->offset, old, sizeof old);
    qk_config_value_show(row, fresh->values + row->offset, now, sizeof now);
    if (row->type & QK_CONFIG_LIVE) take_over(config, fresh, i);
    if (strcmp(old, now) != 0) tell(arg, row, old, now);
  }
}

/* ---- man page -------------------------------------------------------------------------------- */

void qk_config_print_man(const qk_config_t *config, FILE *out) {
  bool open = false;
  for (int i = 0; i < config->nrows; i++) {
    const qk_config_row_t *row = &config->rows[i];
    if (qk_config_type_of(row) == QK_CONFIG_GROUP) {
      fprintf(out, "%s.Ss %s\n", open ? ".El\n" : "", row->help);
      open = false;
      continue;
    }
    if (!is_setting(row) || row->type & QK_CONFIG_FILE_ONLY) continue;
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
