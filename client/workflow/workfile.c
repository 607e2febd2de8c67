#include "client/workflow/workfile.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <ini.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/scan.h"
#include "client/analysis/smearing.h"
#include "proto/action/operator_text.h"

/* The parser cuts lines at 199 bytes and sections at 49. */
enum { MOST_LINE = 190, MOST_NAME = 40, MOST_ITEMS = 100000 };

/* The state of reading. Lists are first collected as text, as their lines come one by one. */
typedef struct reader {
  ctl_workfile_t *work;
  FILE *in;
  int line;
  char where[400]; /* file:line */
  char *gauge, *quark, *channels, *momenta;
  ctl_list_t seen; /* "section key", in order */
  ctl_list_t at;   /* "file:line" of each parameter */
  qk_status_t status;
  qk_err_t *err;
} reader_t;

/* ---- lists ---- */

static void list_fini(ctl_list_t *list) {
  for (int i = 0; i < list->n; i++) free(list->item[i]);
  free(list->item);
  *list = (ctl_list_t){0};
}

/* Takes text, which is malloc'ed; NULL or a full list: no memory. */
static bool list_take(ctl_list_t *list, char *text) {
  char **more = text && list->n < MOST_ITEMS
                    ? realloc(list->item, ((size_t)list->n + 1) * sizeof *more)
                    : NULL;
  if (!more) {
    free(text);
    return false;
  }
  list->item = more;
  list->item[list->n++] = text;
  return true;
}

/* The words of text, which may be NULL. */
static bool list_words(ctl_list_t *list, const char *text, const char *separators) {
  for (const char *p = text ? text + strspn(text, separators) : ""; *p;
       p += strspn(p, separators)) {
    const size_t bytes = strcspn(p, separators);
    if (!list_take(list, strndup(p, bytes))) return false;
    p += bytes;
  }
  return true;
}

/* ---- values ---- */

static qk_status_t no_memory(const reader_t *r) {
  return qk_fail(r->err, QK_NO_MEMORY, "%s: no memory", r->where);
}

static qk_status_t bad_value(const reader_t *r, const char *key, const char *value,
                             const char *must) {
  return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: %s = %.80s: must be %s", r->where, key, value, must);
}

static qk_status_t set_text(const reader_t *r, char **to, const char *value) {
  free(*to);
  *to = strdup(value);
  return *to ? QK_OK : no_memory(r);
}

/* Appends a line to the text of a list. */
static qk_status_t append(const reader_t *r, char **to, const char *value) {
  char *whole;
  if (asprintf(&whole, "%s%s%s", *to ? *to : "", *to ? " " : "", value) < 0) return no_memory(r);
  free(*to);
  *to = whole;
  return QK_OK;
}

static qk_status_t set_real(const reader_t *r, const char *key, const char *value, double min,
                            double max, double *to) {
  const char *p = value;
  char must[80];
  if (qk_scan_real(&p, to) && !*p && *to >= min && *to <= max) return QK_OK;
  snprintf(must, sizeof must, "a number from %g to %g", min, max);
  return bad_value(r, key, value, must);
}

static qk_status_t set_boundary(const reader_t *r, const char *value) {
  char why[QK_WHY];
  if (!qk_boundary_parse(value, r->work->boundary, why))
    return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: %s", r->where, why);
  r->work->has_boundary = true;
  return set_text(r, &r->work->boundary_text, value);
}

/* ---- sections ---- */

static qk_status_t unknown(const reader_t *r, const char *key, const char *section,
                           const char *keys) {
  return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: unknown key \"%.60s\", [%s] has %s", r->where, key,
                 section, keys);
}

/* ---- the operator ---- */

static const char WORKFLOW_KEYS[] =
    "out, gauge, endpoint, quarkd, action, boundary, tolerance, max-iter, dtype, evolve";

static bool is_quark(const char *key) {
  return strcmp(key, "kappa") == 0 || strcmp(key, "mass") == 0;
}

static qk_status_t take_quark(reader_t *r, const char *key, const char *value) {
  ctl_workfile_t *w = r->work;
  if (w->quark_key && strcmp(w->quark_key, key) != 0)
    return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: kappa and mass are both given: give only one",
                   r->where);
  w->quark_key = strcmp(key, "kappa") == 0 ? "kappa" : "mass";
  return append(r, &r->quark, value);
}

/* Of which action it is shows at the end of the file. */
static qk_status_t take_parameter(reader_t *r, const char *key, const char *value) {
  ctl_workfile_t *w = r->work;
  return list_take(&w->key, strdup(key)) && list_take(&w->value, strdup(value)) &&
                 list_take(&r->at, strdup(r->where))
             ? QK_OK
             : no_memory(r);
}

static void forget_parameter(reader_t *r, const char *key) {
  ctl_workfile_t *w = r->work;
  ctl_list_t *const lists[] = {&w->key, &w->value, &r->at};
  int i = 0;
  while (i < w->key.n && strcmp(w->key.item[i], key) != 0) i++;
  if (i == w->key.n) return;
  for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
    free(lists[l]->item[i]);
    lists[l]->item[i] = lists[l]->item[--lists[l]->n];
  }
}

/* What the command line says replaces what the file says. */
static qk_status_t take_given(reader_t *r, const ctl_operator_t *given) {
  qk_status_t status = given->action ? set_text(r, &r->work->action, given->action) : QK_OK;
  bool replaced = false; /* the list of quarks; kappa and mass after each other are refused */
  for (uint32_t i = 0; i < given->n && status == QK_OK; i++) {
    const quark_parameter_t *p = &given->parameter[i];
    snprintf(r->where, sizeof r->where, "--set");
    if (is_quark(p->key)) {
      if (!replaced) {
        free(r->quark);
        r->quark = NULL;
        r->work->quark_key = NULL;
      }
      replaced = true;
      status = take_quark(r, p->key, p->value);
    } else {
      forget_parameter(r, p->key);
      status = take_parameter(r, p->key, p->value);
    }
  }
  return status;
}

/* NULL: this program does not know the action. */
static const qk_action_row_t *row_of(const ctl_workfile_t *w) {
  return w->action ? qk_action_named(w->action) : &qk_action_rows[QK_ACTION_WILSON_CLOVER];
}

/* A key that nothing has: lists what there is. */
static qk_status_t refuse_key(reader_t *r, int i) {
  const qk_action_row_t *row = row_of(r->work);
  char keys[QK_WHY];
  size_t n = (size_t)snprintf(keys, sizeof keys, "%s; of %s kappa", WORKFLOW_KEYS, row->name);
  for (const qk_param_t *p = row->param; p->key && n < sizeof keys; p++)
    n += (size_t)snprintf(keys + n, sizeof keys - n, ", %s", p->key);
  snprintf(r->where, sizeof r->where, "%s", r->at.item[i]);
  return unknown(r, r->work->key.item[i], "workflow", keys);
}

/* All keys must be those of the action, also if no quark is given. */
static qk_status_t check_keys(reader_t *r) {
  const ctl_workfile_t *w = r->work;
  const qk_action_row_t *row = row_of(w);
  for (int i = 0; i < w->key.n; i++) {
    const qk_param_t *p = row ? row->param : NULL;
    while (p && p->key && strcmp(p->key, w->key.item[i]) != 0) p++;
    if (p && !p->key) return refuse_key(r, i);
  }
  return QK_OK;
}

/* The operator of a quark. */
static qk_status_t read_operator(reader_t *r, const char *quark, qk_values_t *values) {
  const ctl_workfile_t *w = r->work;
  const size_t n = (size_t)w->key.n + 1;
  qk_setting_t *setting = calloc(n, sizeof *setting);
  char why[QK_WHY];
  size_t at = 0;
  if (!setting) return no_memory(r);
  for (int i = 0; i < w->key.n; i++) setting[i] = (qk_setting_t){w->key.item[i], w->value.item[i]};
  setting[n - 1] = (qk_setting_t){w->quark_key, quark};
  const bool ok = qk_values_read_at(values, w->action, setting, n, &at, why);
  free(setting);
  if (ok) return QK_OK;
  return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: %s", at < n - 1 ? r->at.item[at] : w->path, why);
}

static qk_status_t finish_operator(reader_t *r) {
  ctl_workfile_t *w = r->work;
  char why[QK_WHY];
  qk_values_t any;
  if (w->action && !qk_values_init(&any, w->action, why))
    return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: %s", w->path, why);
  qk_status_t status = check_keys(r);
  if (status != QK_OK) return status;
  if (!list_words(&w->quark_text, r->quark, ", ")) return no_memory(r);
  w->quark = calloc((size_t)w->quark_text.n + 1, sizeof *w->quark);
  if (!w->quark) return no_memory(r);
  for (int i = 0; i < w->quark_text.n && w->gauge.n; i++) {
    const char *text = w->quark_text.item[i];
    if ((status = read_operator(r, text, &w->quark[i])) != QK_OK) return status;
    for (int j = 0; j < i; j++)
      if (qk_value(&w->quark[i], "mass") == qk_value(&w->quark[j], "mass"))
        return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: %s = %s is given twice", w->path, w->quark_key,
                       text);
  }
  return QK_OK;
}

/* ---- sections, once more ---- */

static qk_status_t take_workflow(reader_t *r, const char *key, const char *value) {
  ctl_workfile_t *w = r->work;
  double x;
  qk_status_t status;
  if (strcmp(key, "out") == 0) return set_text(r, &w->out, value);
  if (strcmp(key, "gauge") == 0) return append(r, &r->gauge, value);
  if (strcmp(key, "endpoint") == 0) return set_text(r, &w->endpoint, value);
  if (strcmp(key, "quarkd") == 0) return set_text(r, &w->quarkd, value);
  if (is_quark(key)) return take_quark(r, key, value);
  if (strcmp(key, "action") == 0) return set_text(r, &w->action, value);
  if (strcmp(key, "boundary") == 0) return set_boundary(r, value);
  if (strcmp(key, "tolerance") == 0) return set_real(r, key, value, 1e-16, 0.999, &w->params.tol);
  if (strcmp(key, "max-iter") == 0) {
    if ((status = set_real(r, key, value, 1, 1e9, &x)) == QK_OK) w->params.max_iter = (uint64_t)x;
    return status;
  }
  if (strcmp(key, "dtype") == 0) {
    if (strcmp(value, "f32") != 0 && strcmp(value, "f64") != 0)
      return bad_value(r, key, value, "f32 or f64");
    w->params.dtype = strcmp(value, "f32") == 0 ? QUARK_F32 : QUARK_F64;
    return QK_OK;
  }
  if (strcmp(key, "evolve") == 0) {
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
      return bad_value(r, key, value, "yes or no");
    w->no_evolve = strcmp(value, "no") == 0;
    return QK_OK;
  }
  return take_parameter(r, key, value);
}

static qk_status_t take_daemon(reader_t *r, const char *key, const char *value) {
  static const char *const ours[] = {"action",      "set",           "gauge",         "kappa",
                                     "mass",        "csw",           "boundary",      "listen",
                                     "listen-data", "endpoint-file", "drain-timeout", "config"};
  for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
    if (strcmp(ours[i], key) == 0)
      return qk_fail(r->err, QK_BAD_ARGUMENT,
                     "%s: %s is no key of [daemon]: the workflow decides it", r->where, key);
  char *option;
  if (asprintf(&option, "--%s=%s", key, value) < 0) option = NULL;
  return list_take(&r->work->daemon, option) ? QK_OK : no_memory(r);
}

static qk_status_t take_channels(reader_t *r, const char *key, const char *value) {
  if (strcmp(key, "names") == 0) return append(r, &r->channels, value);
  if (strcmp(key, "momenta") == 0) return append(r, &r->momenta, value);
  if (strcmp(key, "sink") != 0) return unknown(r, key, "channels", "names, momenta, sink");
  const qk_status_t status = qk_smearing_parse(value, &r->work->sink, r->err);
  if (status != QK_OK) qk_err_prefix(r->err, "%s: sink", r->where);
  return status;
}

static qk_status_t find_source(reader_t *r, const char *name, ctl_worksource_t **source) {
  ctl_workfile_t *w = r->work;
  const size_t n = strlen(name);
  for (int i = 0; i < w->nsource; i++)
    if (strcmp(w->source[i].name, name) == 0) {
      *source = &w->source[i];
      return QK_OK;
    }
  if (!n || n > MOST_NAME ||
      strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+") != n)
    return qk_fail(r->err, QK_BAD_ARGUMENT,
                   "%s: [source %.80s]: the name must be 1 to %d letters, digits, _, - or +",
                   r->where, name, MOST_NAME);
  ctl_worksource_t *more = realloc(w->source, ((size_t)w->nsource + 1) * sizeof *more);
  if (!more) return no_memory(r);
  w->source = more;
  *source = &more[w->nsource++];
  **source = (ctl_worksource_t){.source = {.kind = QUARK_UPLOAD}, .flavour = 1};
  snprintf((*source)->name, sizeof(*source)->name, "%s", name);
  return QK_OK;
}

static qk_status_t add_times(const reader_t *r, const char *value, ctl_worksource_t *s) {
  for (const char *p = value + strspn(value, ", "); *p; p += strspn(p, ", ")) {
    int64_t t;
    int32_t *more = realloc(s->times, ((size_t)s->ntimes + 1) * sizeof *more);
    if (!more) return no_memory(r);
    s->times = more;
    if (!qk_scan_int(&p, 0, 65535, &t) || (*p && *p != ',' && *p != ' '))
      return bad_value(r, "times", value, "a list of time slices");
    for (int i = 0; i < s->ntimes; i++)
      if (s->times[i] == t)
        return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: times: %d is given twice", r->where, (int)t);
    s->times[s->ntimes++] = (int32_t)t;
  }
  return QK_OK;
}

static qk_status_t take_source(reader_t *r, const char *name, const char *key, const char *value) {
  ctl_worksource_t *s = NULL;
  qk_status_t status = find_source(r, name, &s);
  if (status != QK_OK) return status;
  if (strcmp(key, "times") == 0) return add_times(r, value, s);
  if (strcmp(key, "flavour") == 0)
    return qk_flavour_parse(value, &s->flavour) ? QK_OK : bad_value(r, key, value, "+1 or -1");
  if (strcmp(key, "source") == 0)
    status = qk_source_parse(value, &s->source, r->err);
  else if (strcmp(key, "smear") == 0)
    status = qk_smearing_parse(value, &s->smear, r->err);
  else if (strcmp(key, "links") == 0)
    status = qk_smearing_parse_links(value, &s->smear, r->err);
  else
    return unknown(r, key, "source", "source, smear, links, times, flavour");
  if (status != QK_OK) qk_err_prefix(r->err, "%s: %s", r->where, key);
  if (status == QK_OK && (qk_source_is_noise(&s->source) || qk_source_has_flavour(&s->source)))
    status =
        bad_value(r, key, value, "a point or a wall with all spins and colours, without a flavour");
  return status;
}

/* A key may be repeated only by the next line of a list. */
static qk_status_t check_repeated(reader_t *r, const char *section, const char *key) {
  static const char *const lists[] = {"gauge", "kappa", "mass", "times", "names", "momenta"};
  bool list = false;
  char *name;
  if (asprintf(&name, "%s %s", section, key) < 0) return no_memory(r);
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) list |= strcmp(lists[i], key) == 0;
  for (int i = 0; i < r->seen.n; i++) {
    if (strcmp(r->seen.item[i], name) != 0) continue;
    free(name);
    if (list && i == r->seen.n - 1) return QK_OK;
    return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: %s is given twice", r->where, key);
  }
  return list_take(&r->seen, name) ? QK_OK : no_memory(r);
}

static int take_key(void *arg, const char *section, const char *key, const char *value) {
  reader_t *r = arg;
  if (r->status != QK_OK) return 0;
  snprintf(r->where, sizeof r->where, "%.360s:%d", r->work->path, r->line);
  if ((r->status = check_repeated(r, section, key)) != QK_OK) return 0;
  if (strcmp(section, "workflow") == 0)
    r->status = take_workflow(r, key, value);
  else if (strcmp(section, "daemon") == 0)
    r->status = take_daemon(r, key, value);
  else if (strcmp(section, "channels") == 0)
    r->status = take_channels(r, key, value);
  else if (strncmp(section, "source ", 7) == 0)
    r->status = take_source(r, section + 7 + strspn(section + 7, " "), key, value);
  else
    r->status = qk_fail(r->err, QK_BAD_ARGUMENT,
                        "%s: unknown section [%.60s]: [workflow], [daemon], [source NAME] or "
                        "[channels]",
                        r->where, section);
  return r->status == QK_OK;
}

/* The same as fgets, but counts lines and refuses those that the parser would cut: lines that are
 * too long, and comments behind a value, as momenta may contain a semicolon. */
static char *read_line(char *buffer, int size, void *arg) {
  reader_t *r = arg;
  if (r->status != QK_OK || !fgets(buffer, size, r->in)) return NULL;
  r->line++;
  const char *text = buffer + strspn(buffer, " \t"), *comment = strchr(text, ';');
  while (comment && comment > text && !isspace((unsigned char)comment[-1]))
    comment = strchr(comment + 1, ';');
  if (strlen(buffer) > MOST_LINE)
    r->status = qk_fail(r->err, QK_TOO_LARGE,
                        "%s:%d: line is longer than %d bytes; lists go on in indented lines",
                        r->work->path, r->line, MOST_LINE);
  else if (comment && comment > text && *text != '#')
    r->status =
        qk_fail(r->err, QK_BAD_FORMAT,
                "%s:%d: a ';' behind a blank would hide the rest: comments stand on lines of their "
                "own, momenta are separated by blanks",
                r->work->path, r->line);
  return r->status == QK_OK ? buffer : NULL;
}

/* ---- the whole ---- */

/* The path value; a relative one begins at the folder of the file. */
static char *resolve(const ctl_workfile_t *w, const char *value) {
  const char *slash = strrchr(w->path, '/');
  char *whole;
  if (*value == '/' || !slash || strncmp(value, "builtin:", 8) == 0) return strdup(value);
  const int folder = (int)(slash - w->path + 1);
  return asprintf(&whole, "%.*s%s", folder, w->path, value) < 0 ? NULL : whole;
}

static qk_status_t expand_gauge(const reader_t *r, const char *pattern) {
  ctl_workfile_t *w = r->work;
  glob_t found = {0};
  qk_status_t status = QK_OK;
  char *whole = resolve(w, pattern);
  if (!whole) return no_memory(r);
  if (strncmp(whole, "builtin:", 8) == 0) return list_take(&w->gauge, whole) ? QK_OK : no_memory(r);
  if (glob(whole, 0, NULL, &found) != 0)
    status = qk_fail(r->err, QK_BAD_ARGUMENT, "%s: gauge = %s: no file matches %s", w->path,
                     pattern, whole);
  for (size_t i = 0; i < found.gl_pathc && status == QK_OK; i++)
    if (!list_take(&w->gauge, strdup(found.gl_pathv[i]))) status = no_memory(r);
  globfree(&found);
  free(whole);
  return status;
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static qk_status_t finish_gauge(const reader_t *r) {
  ctl_workfile_t *w = r->work;
  ctl_list_t patterns = {0};
  qk_status_t status = list_words(&patterns, r->gauge, ", ") ? QK_OK : no_memory(r);
  for (int i = 0; i < patterns.n && status == QK_OK; i++)
    status = expand_gauge(r, patterns.item[i]);
  list_fini(&patterns);
  for (int i = 0; i < w->gauge.n && status == QK_OK; i++)
    for (int j = 0; j < i; j++)
      if (strcmp(last_part(w->gauge.item[i]), last_part(w->gauge.item[j])) == 0)
        return qk_fail(r->err, QK_BAD_ARGUMENT,
                       "%s: gauge: %s and %s have the same file name: results would be confused",
                       w->path, w->gauge.item[j], w->gauge.item[i]);
  return status;
}

static qk_status_t missing(const reader_t *r, const char *what) {
  return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: %s", r->work->path, what);
}

static qk_status_t finish_sources(const reader_t *r) {
  const ctl_workfile_t *w = r->work;
  const qk_action_row_t *row = w->action || w->gauge.n ? row_of(w) : NULL; /* NULL: not known */
  if (row && qk_action_vectors(row) > 1)
    return qk_fail(
        r->err, QK_UNSUPPORTED,
        "%s: action = %s: its right-hand sides have two flavours, for which contractions "
        "are not defined; quarkctl propagator and solve work",
        w->path, row->name);
  for (int i = 0; i < w->nsource; i++) {
    const ctl_worksource_t *s = &w->source[i];
    if (s->flavour < 0 && row && !row->has_flavours)
      return qk_fail(r->err, QK_BAD_ARGUMENT,
                     "%s: [source %s] has flavour = %d: the action %s has no flavours", w->path,
                     s->name, s->flavour, row->name);
    if (s->source.kind == QUARK_UPLOAD)
      return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: [source %s] has no source", w->path, s->name);
    if (s->smear.links && !s->smear.steps && !w->sink.steps)
      return qk_fail(r->err, QK_BAD_ARGUMENT, "%s: [source %s] has links, but nothing is smeared",
                     w->path, s->name);
  }
  return w->nsource ? QK_OK : missing(r, "there is no [source NAME]");
}

static qk_status_t finish(reader_t *r) {
  ctl_workfile_t *w = r->work;
  if (!w->out) return missing(r, "[workflow] has no out");
  char *out = resolve(w, w->out);
  if (!out) return no_memory(r);
  free(w->out);
  w->out = out;
  qk_status_t status = finish_gauge(r);
  if (status == QK_OK) status = finish_operator(r);
  if (status != QK_OK) return status;
  if (!w->gauge.n == !w->endpoint) return missing(r, "[workflow] needs gauge or endpoint");
  if (w->gauge.n && !w->quark_text.n) return missing(r, "[workflow] has no kappa and no mass");
  if (w->endpoint && (w->quark_text.n > 1 || w->daemon.n || w->quarkd))
    return missing(r, "endpoint allows at most one kappa or mass, and neither quarkd nor [daemon]");
  if ((status = finish_sources(r)) != QK_OK) return status;
  status = qk_channels_parse(r->channels ? r->channels : "pion", &w->channels, r->err);
  if (status == QK_OK)
    status = qk_momenta_parse(r->momenta ? r->momenta : "0,0,0", &w->nmom, &w->momentum, r->err);
  if (status != QK_OK) qk_err_prefix(r->err, "%s", w->path);
  return status;
}

qk_status_t ctl_workfile_read(const char *path, const ctl_operator_t *given, ctl_workfile_t *work,
                              qk_err_t *err) {
  static const double antiperiodic[8] = {1, 0, 1, 0, 1, 0, -1, 0};
  ctl_workfile_t w = {.path = strdup(path)};
  reader_t r = {.work = &w, .in = fopen(path, "re"), .err = err};
  quark_params_init(&w.params);
  memcpy(w.boundary, antiperiodic, sizeof w.boundary);
  snprintf(r.where, sizeof r.where, "%.390s", path);
  if (!w.path)
    r.status = no_memory(&r);
  else if (!r.in)
    r.status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  const int bad_line = r.status == QK_OK ? ini_parse_stream(read_line, &r, take_key, &r) : 0;
  if (r.status == QK_OK && bad_line)
    r.status = qk_fail(err, QK_BAD_FORMAT, "%s:%d: not \"key = value\"", path, bad_line);
  if (r.status == QK_OK) r.status = take_given(&r, given);
  if (r.status == QK_OK) r.status = finish(&r);
  if (r.in) fclose(r.in);
  list_fini(&r.seen);
  list_fini(&r.at);
  free(r.gauge);
  free(r.quark);
  free(r.channels);
  free(r.momenta);
  if (r.status == QK_OK)
    *work = w;
  else
    ctl_workfile_fini(&w);
  return r.status;
}

void ctl_workfile_fini(ctl_workfile_t *work) {
  for (int i = 0; i < work->nsource; i++) free(work->source[i].times);
  free(work->source);
  free(work->path);
  free(work->out);
  free(work->endpoint);
  free(work->quarkd);
  free(work->boundary_text);
  free(work->action);
  free(work->quark);
  free(work->momentum);
  list_fini(&work->gauge);
  list_fini(&work->quark_text);
  list_fini(&work->key);
  list_fini(&work->value);
  list_fini(&work->daemon);
  qk_channels_fini(&work->channels);
  memset(work, 0, sizeof *work);
}

void ctl_worksource_at(const ctl_worksource_t *source, int i, qk_source_t *at, char text[128]) {
  *at = source->source;
  quark_column_t *c = &at->place;
  if (source->ntimes) c->t = source->times[i];
  if (at->kind == QUARK_POINT)
    snprintf(text, 128, "point:%d,%d,%d,%d", c->x, c->y, c->z, c->t);
  else if (c->px || c->py || c->pz)
    snprintf(text, 128, "wall:%d,p=%d:%d:%d", c->t, c->px, c->py, c->pz);
  else
    snprintf(text, 128, "wall:%d", c->t);
}
