#include "daemon/engine/tune/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/engine/multigrid/mg_text.h"

static const double MIN_GAIN = 0.02; /* less is noise */

/* ---- axes ------------------------------------------------------------------------------------ */

static qk_tune_axis_t *add(qk_tune_axis_t *axis, int *n, const char *key, int level,
                           const char *words) {
  qk_tune_axis_t *a = &axis[(*n)++];
  *a = (qk_tune_axis_t){.key = key, .level = level};
  while (*words && a->nword < QK_TUNE_WORDS) {
    size_t length = strcspn(words, " ");
    snprintf(a->word[a->nword++], QK_TUNE_WORD, "%.*s", (int)length, words);
    words += length + (words[length] == ' ');
  }
  return a;
}

/* Blocks near each of a few sizes that cut every extent into an even number of aggregates. */
static void add_blocks(qk_tune_axis_t *axis, int *n, const int extent[4], int level) {
  static const int sizes[] = {4, 2, 3, 6, 8};
  qk_tune_axis_t *a = add(axis, n, "mg-blocks", level, "");
  for (int i = 0; i < 5 && a->nword < QK_TUNE_WORDS; i++) {
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
  if (a->nword < 2) --*n;
}

int qk_tune_axes(const qk_geom_t *geom, const qk_mg_params_t *start, bool twisted,
                 qk_tune_axis_t *axis) {
  int n = 0, last = start->nlevel - 1, extent[4];
  for (int l = 0; l < last; l++) add(axis, &n, "mg-post", l, "2 4 6 8 12");
  for (int l = 0; l < last; l++) add(axis, &n, "mg-pre", l, "none 2 4");
  for (int l = 1; l < last; l++) add(axis, &n, "mg-iterations", l, "1 2 3 4 6 8");
  add(axis, &n, "mg-iterations", last, "4 8 12 16 24 32");
  for (int l = 0; l < last; l++) add(axis, &n, "mg-omega", l, "0.7 0.85 1.0 1.15");
  for (int l = 0; l < last; l++) add(axis, &n, "mg-smoother", l, "mr ca-gcr chebyshev");
  add(axis, &n, "mg-setup-iterations", 0, "50 100 200 400");
  add(axis, &n, "mg-setup-passes", 0, "none 1 2 4");
  if (twisted) add(axis, &n, "mg-twist", last, "1 2 4 6 8 10");
  if (last > 1) add(axis, &n, "mg-deflate", -1, "none 16 32 64");
  for (int l = 0; l < last; l++) add(axis, &n, "mg-vectors", l, "16 24 32");
  for (int mu = 0; mu < 4; mu++) extent[mu] = geom->lat.l[mu];
  for (int l = 0; l < last; l++) {
    add_blocks(axis, &n, extent, l);
    for (int mu = 0; mu < 4; mu++) extent[mu] /= start->level[l].block[mu];
  }
  add(axis, &n, "mg-levels", -1, "2 3 4");
  return n;
}

qk_status_t qk_tune_put(const qk_tune_axis_t *axis, int word, qk_mg_params_t *params,
                        qk_err_t *err) {
  char text[QK_MG_LEVELS_MAX * 8 + QK_TUNE_WORD] = "";
  /* what was chosen for other levels or aggregates is chosen anew */
  if (strcmp(axis->key, "mg-levels") == 0)
    for (int l = 1; l < QK_MG_LEVELS_MAX; l++) {
      params->level[l].iterations = 0;
      params->level[l].twist = 0;
    }
  if (axis->level < 0) return qk_mg_text_set(params, axis->key, axis->word[word], err);
  const bool below = strcmp(axis->key, "mg-iterations") == 0 || strcmp(axis->key, "mg-twist") == 0;
  const int first = below ? 1 : 0;
  size_t n = 0;
  for (int l = first; l < axis->level; l++)
    n += (size_t)snprintf(text + n, sizeof text - n, "auto,");
  snprintf(text + n, sizeof text - n, "%s%s", axis->word[word],
           axis->level + 1 < QK_MG_LEVELS_MAX ? ",auto" : "");
  if (strcmp(axis->key, "mg-blocks") == 0)
    for (int l = axis->level; l < QK_MG_LEVELS_MAX; l++) {
      qk_mg_level_params_t *p = &params->level[l];
      memset(p->smoother.block, 0, sizeof p->smoother.block);
      if (l > axis->level) memset(p->block, 0, sizeof p->block);
    }
  return qk_mg_text_set(params, axis->key, text, err);
}

/* ---- search ---------------------------------------------------------------------------------- */

/* All words of one axis; true where the best point moved. */
static bool try_axis(const qk_tune_search_t *s, const qk_tune_axis_t *axis, qk_mg_params_t *best,
                     double *lowest) {
  qk_mg_params_t winner = *best;
  double least = *lowest;
  for (int w = 0; w < axis->nword && s->time_left(s->arg); w++) {
    qk_mg_params_t p = *best;
    qk_err_t err = {0};
    if (qk_tune_put(axis, w, &p, &err) != QK_OK || memcmp(&p, best, sizeof p) == 0) continue;
    double cost = s->cost(s->arg, &p, axis, w);
    if (cost < least) {
      least = cost;
      winner = p;
    }
  }
  if (!(least < (1 - MIN_GAIN) * *lowest)) return false;
  *best = winner;
  *lowest = least;
  return true;
}

double qk_tune_run(const qk_tune_search_t *search, const qk_tune_axis_t *axis, int naxis,
                   qk_mg_params_t *best) {
  double lowest = search->cost(search->arg, best, NULL, 0);
  for (bool moved = true; moved && search->time_left(search->arg);) {
    moved = false;
    for (int i = 0; i < naxis && search->time_left(search->arg); i++)
      moved |= try_axis(search, &axis[i], best, &lowest);
  }
  return lowest;
}
