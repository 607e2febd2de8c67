#include "daemon/engine/setup/mg_grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct wish {
  const int *dims;
  const qk_mg_params_t *given;
  const qk_tuning_t *tuning;
} wish_t;

/* The parameters on the first rank of a grid; its part is as large as the others. */
static qk_status_t complete_on(const wish_t *w, const int grid[4], qk_mg_params_t *p,
                               qk_err_t *err) {
  static const int first[4] = {0, 0, 0, 0};
  qk_geom_t geom;
  const qk_status_t status = qk_geom_part(w->dims, grid, first, &geom, err);
  if (status != QK_OK) return status;
  *p = *w->given;
  return qk_mg_params_complete(&geom, w->tuning, p, err);
}

static const int *block_of(const qk_mg_params_t *p, int l) {
  static const int none[4] = {1, 1, 1, 1};
  return l + 1 < p->nlevel ? p->level[l].block : none;
}

static int64_t distance(const qk_mg_params_t *a, const qk_mg_params_t *b) {
  int64_t sum = 0;
  for (int l = 0; l + 1 < QK_MG_LEVELS_MAX; l++)
    for (int mu = 0; mu < 4; mu++)
      sum += llround(1e6 * fabs(log((double)block_of(a, l)[mu] / block_of(b, l)[mu])));
  return sum;
}

static int64_t misfit(const void *arg, const int grid[4]) {
  static const int one[4] = {1, 1, 1, 1};
  const wish_t *w = arg;
  qk_mg_params_t whole, here;
  if (complete_on(w, one, &whole, NULL) != QK_OK) return INT64_MAX;
  if (complete_on(w, grid, &here, NULL) != QK_OK) return INT64_MAX;
  return distance(&whole, &here);
}

int64_t qk_mg_grid_misfit(const int dims[4], const int grid[4], const qk_mg_params_t *given,
                          const qk_tuning_t *tuning) {
  const wish_t w = {dims, given, tuning};
  return misfit(&w, grid);
}

/* ---- in words -------------------------------------------------------------------------------- */

typedef struct words {
  char *text;
  size_t n;
} words_t;

__attribute__((format(printf, 2, 3))) static void say(words_t *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(w->text + w->n, QK_MG_GRID_WHY - w->n, format, args);
  va_end(args);
  w->n += n > 0 ? (size_t)n : 0;
  if (w->n >= QK_MG_GRID_WHY) w->n = QK_MG_GRID_WHY - 1;
}

static void say_extents(words_t *w, const int x[4]) {
  say(w, "%dx%dx%dx%d", x[0], x[1], x[2], x[3]);
}

/* The aggregates that differ, of the whole lattice and here. */
static void say_levels(words_t *words, const qk_mg_params_t *whole, const qk_mg_params_t *here) {
  const char *before = ": ";
  for (int l = 0; l + 1 < QK_MG_LEVELS_MAX; l++) {
    const int *wanted = block_of(whole, l), *has = block_of(here, l);
    if (memcmp(wanted, has, 4 * sizeof *wanted) == 0) continue;
    say(words, "%slevel %d ", before, l);
    say_extents(words, has);
    say(words, " in place of ");
    say_extents(words, wanted);
    before = ", ";
  }
}

/* The most ranks up to `most` that carry the hierarchy, and how; 1 at least. */
static int find_carrier(const wish_t *w, int most, int grid[4]) {
  for (int n = most; n > 1; n--) {
    qk_err_t err = {0};
    memset(grid, 0, 4 * sizeof *grid);
    if (qk_comm_choose_grid(n, w->dims, misfit, w, grid, &err) == QK_OK && misfit(w, grid) == 0)
      return n;
  }
  for (int mu = 0; mu < 4; mu++) grid[mu] = 1;
  return 1;
}

void qk_mg_grid_advise(int most, const int dims[4], const qk_mg_params_t *given,
                       const qk_tuning_t *tuning, char text[QK_MG_GRID_ADVICE]) {
  const wish_t w = {dims, given, tuning};
  int g[4] = {1, 1, 1, 1};
  text[0] = '\0';
  if (misfit(&w, g) != 0) return;
  const int n = find_carrier(&w, most, g);
  snprintf(text, QK_MG_GRID_ADVICE, n > 1 ? "%d ranks as %dx%dx%dx%d" : "one rank", n, g[0], g[1],
           g[2], g[3]);
}

static void explain(const wish_t *w, int size, const int grid[4], bool given, qk_mg_grid_fit_t fit,
                    char why[QK_MG_GRID_WHY]) {
  static const int one[4] = {1, 1, 1, 1};
  char advice[QK_MG_GRID_ADVICE];
  words_t words = {why, 0};
  qk_mg_params_t whole, here;
  why[0] = '\0';
  if (size == 1) return;
  say(&words, given ? "as given" : fit == QK_MG_GRID_NEAR ? "for aggregates" : "least surface");
  if (fit == QK_MG_GRID_CARRIES) say(&words, ", aggregates of the whole lattice");
  if (fit != QK_MG_GRID_NEAR) return;
  if (complete_on(w, one, &whole, NULL) != QK_OK || complete_on(w, grid, &here, NULL) != QK_OK)
    return;
  say(&words, ", not those of the whole lattice");
  say_levels(&words, &whole, &here);
  qk_mg_grid_advise(given ? size : size - 1, w->dims, w->given, w->tuning, advice);
  say(&words, "; %s would have them", advice);
}

qk_status_t qk_mg_choose_grid(int size, const int dims[4], const qk_mg_params_t *given,
                              const qk_tuning_t *tuning, int grid[4], qk_mg_grid_fit_t *fit,
                              char why[QK_MG_GRID_WHY], qk_err_t *err) {
  const wish_t w = {dims, given, tuning};
  bool fixed = false;
  for (int mu = 0; mu < 4; mu++) fixed = fixed || grid[mu] > 0;
  const qk_status_t status = qk_comm_choose_grid(size, dims, misfit, &w, grid, err);
  if (status != QK_OK) return status;
  const int64_t far = misfit(&w, grid);
  const qk_mg_grid_fit_t got = far == 0          ? QK_MG_GRID_CARRIES
                               : far < INT64_MAX ? QK_MG_GRID_NEAR
                                                 : QK_MG_GRID_NONE;
  if (fit != NULL) *fit = got;
  if (why != NULL) explain(&w, size, grid, fixed, got, why);
  return QK_OK;
}
