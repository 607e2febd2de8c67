#include "daemon/engine/tune/axes.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/engine/multigrid/mg_text.h"

/* Which levels have the parameter; for some keys text begins with level 1 (mg_text.h). */
typedef enum where { ALL, FINEST, UPPER, MIDDLE, LAST } where_t;
/* DEEP: three levels or more; RELAXED: the smoother of the level has a relaxation factor. */
typedef enum when { ALWAYS, DEEP, TWISTED, RELAXED } when_t;

/* Null vectors and aggregates decide most, so they come first; then the cycle, whose trials share a
 * hierarchy; then what makes it good or quick to make, and its depth. Words NULL: aggregates. */
static const struct {
  const char *key;
  where_t where;
  when_t when;
  bool ordered;
  const char *words;
} table[] = {
    {"mg-vectors", UPPER, ALWAYS, true, "16 24 32 48"},
    {"mg-test-vectors", FINEST, ALWAYS, true, "16 24 32 48 64"},
    {"mg-blocks", UPPER, ALWAYS, false, NULL},
    {"mg-post", UPPER, ALWAYS, true, "2 4 6 8 12 16"},
    {"mg-pre", UPPER, ALWAYS, true, "none 2 4"},
    {"mg-smoother", FINEST, ALWAYS, false, "polynomial ca-gcr mr chebyshev"},
    {"mg-smoother", MIDDLE, ALWAYS, false, "ca-gcr mr chebyshev"},
    {"mg-omega", UPPER, RELAXED, true, "0.7 0.85 1.0 1.15"},
    {"mg-iterations", MIDDLE, ALWAYS, true, "1 2 3 4 6 8"},
    {"mg-iterations", LAST, ALWAYS, true, "4 6 8 12 16 32"},
    {"mg-deflate", ALL, DEEP, true, "none 16 32 64 128"},
    {"mg-twist", LAST, TWISTED, true, "1 2 4 6 8 10"},
    {"mg-setup-iterations", FINEST, ALWAYS, true, "25 50 100 200 400"},
    {"mg-setup-passes", FINEST, ALWAYS, true, "none 1 2 4"},
    {"mg-smoother-precision", ALL, ALWAYS, false, "single half"},
    {"mg-smoother-sums", ALL, ALWAYS, false, "single half"},
    {"mg-levels", ALL, ALWAYS, true, "2 3 4"},
};
enum { NTABLE = sizeof table / sizeof table[0] };

/* ---- the axes of a lattice ------------------------------------------------------------------- */

static void add_words(qk_tune_axis_t *a, const char *words) {
  while (*words) {
    const size_t length = strcspn(words, " ");
    QK_ASSERT(a->nword < QK_TUNE_WORDS && length < QK_TUNE_WORD);
    snprintf(a->word[a->nword++], QK_TUNE_WORD, "%.*s", (int)length, words);
    words += length + (words[length] == ' ');
  }
}

/* Blocks near each of a few sizes that cut every extent into an even number of aggregates. */
static void add_blocks(qk_tune_axis_t *a, const int extent[4]) {
  static const int sizes[] = {4, 2, 3, 6, 8};
  for (int i = 0; i < 5; i++) {
    int b[4];
    bool cuts = false, known = false;
    for (int mu = 0; mu < 4; mu++) {
      b[mu] = sizes[i];
      while (b[mu] > 1 && extent[mu] % (2 * b[mu])) b[mu]--;
      cuts |= b[mu] > 1;
    }
    char *word = a->word[a->nword];
    snprintf(word, QK_TUNE_WORD, "%dx%dx%dx%d", b[0], b[1], b[2], b[3]);
    for (int w = 0; w < a->nword; w++) known |= strcmp(word, a->word[w]) == 0;
    a->nword += cuts && !known;
  }
}

/* The first and the last level of a row's axes; none where the first is the greater one. */
static void levels_of(where_t where, int last, int *from, int *to) {
  *from = where == ALL ? -1 : where == MIDDLE ? 1 : where == LAST ? last : 0;
  *to = where == ALL ? -1 : where == FINEST ? 0 : where == LAST ? last : last - 1;
}

static void extents_of(const qk_geom_t *geom, const qk_mg_params_t *params, int level,
                       int extent[4]) {
  for (int mu = 0; mu < 4; mu++) {
    extent[mu] = geom->lat.l[mu];
    for (int l = 0; l < level; l++) extent[mu] /= params->level[l].block[mu];
  }
}

static bool is_wanted(when_t when, const qk_mg_params_t *start, bool twisted, int level) {
  const qk_smoother_kind_t kind = level >= 0 ? start->level[level].smoother.kind : QK_SMOOTHER_AUTO;
  switch (when) {
  case DEEP:
    return start->nlevel > 2;
  case TWISTED:
    return twisted;
  case RELAXED:
    return kind == QK_SMOOTHER_MR || kind == QK_SMOOTHER_SCHWARZ;
  default:
    return true;
  }
}

int qk_tune_axes(const qk_geom_t *geom, const qk_mg_params_t *start, bool twisted,
                 qk_tune_axis_t axis[QK_TUNE_AXES]) {
  int n = 0;
  const int last = start->nlevel - 1;
  for (int i = 0; i < NTABLE; i++) {
    int from, to, extent[4];
    levels_of(table[i].where, last, &from, &to);
    for (int l = from; l <= to; l++) {
      if (!is_wanted(table[i].when, start, twisted, l)) continue;
      QK_ASSERT(n < QK_TUNE_AXES);
      axis[n] = (qk_tune_axis_t){.key = table[i].key, .level = l, .ordered = table[i].ordered};
      if (table[i].words) {
        add_words(&axis[n], table[i].words);
      } else {
        extents_of(geom, start, l, extent);
        add_blocks(&axis[n], extent);
      }
      n++;
    }
  }
  return n;
}

/* ---- one word -------------------------------------------------------------------------------- */

/* What was chosen for other levels or aggregates is chosen anew. */
static void forget(const qk_tune_axis_t *axis, qk_mg_params_t *params) {
  const bool levels = strcmp(axis->key, "mg-levels") == 0;
  const bool blocks = strcmp(axis->key, "mg-blocks") == 0;
  if (strcmp(axis->key, "mg-vectors") == 0) params->level[axis->level].ntest = 0;
  if (strcmp(axis->key, "mg-test-vectors") == 0) params->level[axis->level].setup_passes = 0;
  if (strcmp(axis->key, "mg-smoother-precision") == 0) params->level[0].smoother_sums = 0;
  if (levels) params->deflate = 0;
  for (int l = 0; l < QK_MG_LEVELS_MAX; l++) {
    qk_mg_level_params_t *p = &params->level[l];
    if (levels && l > 0) {
      p->iterations = 0;
      p->twist = 0;
    }
    if (blocks && l >= axis->level) memset(p->smoother.block, 0, sizeof p->smoother.block);
    if (blocks && l > axis->level) memset(p->block, 0, sizeof p->block);
  }
}

/* The words of all levels: those of the others stay. */
static void words_of_levels(const qk_tune_axis_t *axis, int word, char *text, size_t size) {
  const bool below = strcmp(axis->key, "mg-iterations") == 0 || strcmp(axis->key, "mg-twist") == 0;
  size_t n = 0;
  for (int l = below ? 1 : 0; l < axis->level; l++)
    n += (size_t)snprintf(text + n, size - n, "auto,");
  snprintf(text + n, size - n, "%s%s", axis->word[word],
           axis->level >= 0 && axis->level + 1 < QK_MG_LEVELS_MAX ? ",auto" : "");
}

qk_status_t qk_tune_put(const qk_tune_axis_t *axis, int word, qk_mg_params_t *params,
                        qk_err_t *err) {
  char text[QK_MG_LEVELS_MAX * 8 + QK_TUNE_WORD];
  qk_mg_params_t p = *params;
  words_of_levels(axis, word, text, sizeof text);
  qk_status_t status = qk_mg_text_set(&p, axis->key, text, err);
  if (status != QK_OK) return status;
  if (memcmp(&p, params, sizeof p) != 0) forget(axis, &p);
  *params = p;
  return QK_OK;
}

void qk_tune_what(const qk_tune_axis_t *axis, int word, char what[QK_TUNE_WHAT]) {
  if (axis->level < 0)
    snprintf(what, QK_TUNE_WHAT, "%s = %s", axis->key, axis->word[word]);
  else
    snprintf(what, QK_TUNE_WHAT, "%s = %s on level %d", axis->key, axis->word[word], axis->level);
}
