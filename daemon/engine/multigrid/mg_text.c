#include "daemon/engine/multigrid/mg_text.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/eigen/lanczos.h"

/* STEPS, LIMIT: a number or none. */
typedef enum kind { COUNT, STEPS, REAL, LIMIT, BLOCK, PREC, SMOOTHER } kind_t;

/* Where a key's values stand: in each level, or in the whole. */
typedef struct row {
  const char *key;
  kind_t kind;
  int first;
  size_t offset;
  double min, max;
} row_t;

#define LEVEL(member) offsetof(qk_mg_level_params_t, member)
#define WHOLE(member) offsetof(qk_mg_params_t, member)
#define FINEST(member) (WHOLE(level) + LEVEL(member))

/* mg-graphs and mg-seed have members of their own types and are handled apart. */
static const row_t rows[] = {
    {"mg-levels", COUNT, -1, WHOLE(nlevel), 2, QK_MG_LEVELS_MAX},
    {"mg-blocks", BLOCK, 0, LEVEL(block), 1, 1024},
    {"mg-vectors", COUNT, 0, LEVEL(nvec), 2, QK_MG_VECTORS_MAX},
    {"mg-test-vectors", COUNT, 0, LEVEL(ntest), 2, QK_MG_VECTORS_MAX},
    {"mg-setup-iterations", COUNT, 0, LEVEL(setup_iterations), 1, 100000},
    {"mg-setup-tol", REAL, 0, LEVEL(setup_tol), 0, 1},
    {"mg-setup-passes", STEPS, 0, LEVEL(setup_passes), 1, 100},
    {"mg-setup-precision", PREC, -1, FINEST(setup_prec), 0, 0},
    {"mg-setup-vectors", STEPS, -1, WHOLE(together), QK_TILE, QK_MG_VECTORS_MAX},
    {"mg-prolongator", PREC, 0, LEVEL(prolongator), 0, 0},
    {"mg-smoother", SMOOTHER, 0, LEVEL(smoother.kind), 0, 0},
    {"mg-omega", REAL, 0, LEVEL(smoother.omega), 0, 2},
    {"mg-smoother-blocks", BLOCK, 0, LEVEL(smoother.block), 1, 1024},
    {"mg-smoother-precision", PREC, -1, FINEST(smoother_prec), 0, 0},
    {"mg-smoother-sums", PREC, -1, FINEST(smoother_sums), 0, 0},
    {"mg-pre", STEPS, 0, LEVEL(pre), 1, 100},
    {"mg-post", STEPS, 0, LEVEL(post), 1, 100},
    {"mg-iterations", COUNT, 1, LEVEL(iterations), 1, 1000},
    {"mg-tol", LIMIT, 1, LEVEL(tol), 0, 1},
    {"mg-store", PREC, 1, LEVEL(store), 0, 0},
    {"mg-smoother-bits", STEPS, 1, LEVEL(smoother_bits), 8, 8},
    {"mg-twist", REAL, 1, LEVEL(twist), 0, 1000},
    {"mg-deflate", STEPS, -1, WHOLE(deflate), 1, QK_MG_DEFLATE_MAX},
    {"mg-whole", STEPS, -1, WHOLE(whole), 1, 1 << 20},
};
enum { NROW = sizeof rows / sizeof rows[0], WORD = 64 };

static const row_t *find(const char *key) {
  for (int i = 0; i < NROW; i++)
    if (strcmp(rows[i].key, key) == 0) return &rows[i];
  return NULL;
}

/* ---- one word -------------------------------------------------------------------------------- */

static bool is_real(const row_t *row) {
  return row->kind == REAL || row->kind == LIMIT;
}

static bool may_be_none(const row_t *row) {
  return row->kind == STEPS || row->kind == LIMIT;
}

/* Precisions that multigrid stores in. */
static bool is_low(int64_t prec) {
  return prec == QK_SINGLE || prec == QK_HALF;
}

static bool is_within(const row_t *row, double v) {
  return is_real(row) ? v > row->min && v < row->max : v >= row->min && v <= row->max;
}

/* The values that a row takes, for an error. */
static const char *limits(const row_t *row, char text[WORD]) {
  switch (row->kind) {
  case BLOCK:
    snprintf(text, WORD, "four extents from %g to %g, like 4x4x4x4", row->min, row->max);
    break;
  case PREC:
    snprintf(text, WORD, "%s or %s", qk_choice_word(&qk_choice_precisions, QK_SINGLE),
             qk_choice_word(&qk_choice_precisions, QK_HALF));
    break;
  case SMOOTHER:
    snprintf(text, WORD, "mr, ca-gcr, chebyshev, polynomial or schwarz");
    break;
  case REAL:
  case LIMIT:
    snprintf(text, WORD, "a number above %g and below %g%s", row->min, row->max,
             may_be_none(row) ? ", or none" : "");
    break;
  default:
    snprintf(text, WORD, "a whole number from %.7g to %.7g%s", row->min, row->max,
             may_be_none(row) ? ", or none" : "");
  }
  return text;
}

static qk_status_t bad_word(const row_t *row, const char *word, qk_err_t *err) {
  char text[WORD];
  return qk_fail(err, QK_BAD_ARGUMENT, "%s = %s: %s", row->key, word, limits(row, text));
}

static qk_status_t set_number(const row_t *row, const char *word, void *to, qk_err_t *err) {
  char *end;
  double v = strtod(word, &end);
  bool good = end > word && *end == '\0' && (is_real(row) || v == floor(v)) && is_within(row, v);
  if (may_be_none(row) && strcmp(word, "none") == 0) {
    v = -1;
    good = true;
  }
  if (!good) return bad_word(row, word, err);
  if (is_real(row))
    *(double *)to = v;
  else
    *(int *)to = (int)v;
  return QK_OK;
}

static qk_status_t set_block(const row_t *row, const char *word, int to[4], qk_err_t *err) {
  int b[4], n = -1;
  bool good = sscanf(word, "%4dx%4dx%4dx%4d%n", &b[0], &b[1], &b[2], &b[3], &n) == 4 && n >= 0 &&
              word[n] == '\0';
  for (int mu = 0; mu < 4 && good; mu++) good = b[mu] >= row->min && b[mu] <= row->max;
  if (!good) return bad_word(row, word, err);
  memcpy(to, b, sizeof b);
  return QK_OK;
}

static qk_status_t set_word(const row_t *row, const char *word, void *to, qk_err_t *err) {
  int prec;
  if (strcmp(word, "auto") == 0 || word[0] == '\0') return QK_OK;
  switch (row->kind) {
  case BLOCK:
    return set_block(row, word, to, err);
  case PREC:
    prec = qk_choice_find(&qk_choice_precisions, word);
    if (!is_low(prec)) return bad_word(row, word, err);
    *(qk_prec_t *)to = (qk_prec_t)prec;
    return QK_OK;
  case SMOOTHER:
    return qk_smoother_parse(word, to) ? QK_OK : bad_word(row, word, err);
  default:
    return set_number(row, word, to, err);
  }
}

/* ---- a key ----------------------------------------------------------------------------------- */

static qk_status_t set_row(const row_t *row, const char *text, qk_mg_params_t *p, qk_err_t *err) {
  char word[WORD] = "";
  if (row->first < 0) return set_word(row, text, (char *)p + row->offset, err);
  const char *rest = text;
  for (int l = row->first; l < QK_MG_LEVELS_MAX; l++) {
    if (*rest != '\0' || l == row->first) {
      size_t n = strcspn(rest, ",");
      if (n >= WORD)
        return qk_fail(err, QK_BAD_ARGUMENT, "%s: a word of %zu characters: at most %d", row->key,
                       n, WORD - 1);
      memcpy(word, rest, n);
      word[n] = '\0';
      rest += n + (rest[n] == ',');
    } else if (row->kind == BLOCK) {
      break;
    }
    qk_status_t status = set_word(row, word, (char *)&p->level[l] + row->offset, err);
    if (status) return status;
  }
  if (*rest != '\0')
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = %s: at most %d levels", row->key, text,
                   QK_MG_LEVELS_MAX);
  return QK_OK;
}

static qk_status_t set_graphs(const char *text, qk_mg_params_t *p, qk_err_t *err) {
  bool yes = strcmp(text, "yes") == 0 || strcmp(text, "auto") == 0;
  if (!yes && strcmp(text, "no") != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "mg-graphs = %s: yes or no", text);
  p->no_graphs = !yes;
  return QK_OK;
}

static qk_status_t set_seed(const char *text, qk_mg_params_t *p, qk_err_t *err) {
  char *end;
  unsigned long long seed = strtoull(text, &end, 10);
  if (!isdigit((unsigned char)text[0]) || *end != '\0' || seed == ULLONG_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "mg-seed = %s: must be a whole number below 2^64", text);
  p->seed = seed;
  return QK_OK;
}

qk_status_t qk_mg_text_set(qk_mg_params_t *params, const char *key, const char *text,
                           qk_err_t *err) {
  qk_mg_params_t p = *params;
  const row_t *row = find(key);
  qk_status_t status;
  if (row)
    status = set_row(row, text, &p, err);
  else if (strcmp(key, "mg-graphs") == 0)
    status = set_graphs(text, &p, err);
  else if (strcmp(key, "mg-seed") == 0)
    status = set_seed(text, &p, err);
  else
    status = qk_fail(err, QK_BAD_ARGUMENT, "%s: no parameter of multigrid", key);
  if (status == QK_OK) *params = p;
  return status;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Whether a value that is not a default is one that text could have set, and the value in words. */
static bool is_good(const row_t *row, const void *value, char word[WORD]) {
  const int i = *(const int *)value;
  double d = i;
  if (is_real(row)) memcpy(&d, value, sizeof d);
  snprintf(word, WORD, "%g", d);
  switch (row->kind) {
  case BLOCK:
    return true; /* the lattice decides */
  case PREC:
    return is_low(i);
  case SMOOTHER:
    return i > QK_SMOOTHER_AUTO && i < QK_SMOOTHER_COUNT;
  default:
    return is_within(row, d) || (may_be_none(row) && (is_real(row) ? d < 0 : i == -1));
  }
}

/* The last level that has a value: what belongs to a level and the next one is not there for the
 * last. */
static int last_level(const row_t *row, int nlevel) {
  return row->first < 0 ? 0 : row->first == 0 ? nlevel - 2 : nlevel - 1;
}

qk_status_t qk_mg_text_check(const qk_mg_params_t *params, qk_err_t *err) {
  char word[WORD], text[WORD];
  for (const row_t *row = rows; row < rows + NROW; row++)
    for (int l = row->first; l >= 0 && l <= last_level(row, params->nlevel); l++)
      if (!is_good(row, (const char *)&params->level[l] + row->offset, word))
        return qk_fail(err, QK_BAD_ARGUMENT, "multigrid: level %d: %s = %s: %s", l, row->key, word,
                       limits(row, text));
  return QK_OK;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* False for a value of zero: the default. */
static bool print_word(const row_t *row, const void *v, char word[WORD]) {
  const int *i = v;
  const double *d = v;
  switch (row->kind) {
  case BLOCK:
    snprintf(word, WORD, "%dx%dx%dx%d", i[0], i[1], i[2], i[3]);
    return i[0] != 0;
  case PREC:
    snprintf(word, WORD, "%s", qk_choice_word(&qk_choice_precisions, *(const qk_prec_t *)v));
    return *(const qk_prec_t *)v != QK_DOUBLE;
  case SMOOTHER:
    snprintf(word, WORD, "%s", qk_smoother_name(*(const qk_smoother_kind_t *)v));
    return *(const qk_smoother_kind_t *)v != QK_SMOOTHER_AUTO;
  case REAL:
  case LIMIT:
    snprintf(word, WORD, *d < 0 ? "none" : "%g", *d);
    return *d != 0;
  default:
    snprintf(word, WORD, *i < 0 ? "none" : "%d", *i);
    return *i != 0;
  }
}

void qk_mg_text_print(const qk_mg_params_t *params, FILE *out) {
  int nlevel = params->nlevel ? params->nlevel : QK_MG_LEVELS_MAX;
  for (const row_t *row = rows; row < rows + NROW; row++) {
    int last = last_level(row, nlevel);
    int first = row->first < 0 ? 0 : row->first;
    char line[QK_MG_LEVELS_MAX * (WORD + 1)] = "", word[WORD];
    size_t n = 0;
    bool any = false;
    for (int l = first; l <= last; l++) {
      const char *base = row->first < 0 ? (const char *)params : (const char *)&params->level[l];
      bool given = print_word(row, base + row->offset, word);
      any |= given;
      n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", l > first ? "," : "",
                            given ? word : "auto");
    }
    if (any) fprintf(out, "%s = %s\n", row->key, line);
  }
  if (params->no_graphs) fprintf(out, "mg-graphs = no\n");
  if (params->seed) fprintf(out, "mg-seed = %llu\n", (unsigned long long)params->seed);
}
