#include "daemon/engine/tune/search.h"

#include <math.h>
#include <string.h>

/* Trials after which the best is measured again, and how often a search begins another round as the
 * machine was found slower. */
enum { TRIED_MOST = 6, SLOWER_MOST = 2 };

/* One axis under way. */
typedef struct walk {
  const qk_tune_search_t *s;
  const qk_tune_axis_t *axis;
  const qk_mg_params_t *from;
  qk_mg_params_t winner;
  double least; /* cost of the winner */
  int tried;
} walk_t;

/* Cost of `from` with a word; INFINITY, too, where nothing is left to try. */
static double try_word(walk_t *w, int word) {
  qk_mg_params_t p = *w->from;
  qk_err_t err = {0};
  char what[QK_TUNE_WHAT];
  if (!w->s->time_left(w->s->arg) || qk_tune_put(w->axis, word, &p, &err) != QK_OK ||
      memcmp(&p, w->from, sizeof p) == 0)
    return INFINITY;
  qk_tune_what(w->axis, word, what);
  const double cost = w->s->cost(w->s->arg, &p, what, w->least);
  w->tried++;
  if (cost < w->least) {
    w->least = cost;
    w->winner = p;
  }
  return cost;
}

/* The word that the point has; -1: none of the axis. */
static int word_of(const qk_tune_axis_t *axis, const qk_mg_params_t *point) {
  for (int i = 0; i < axis->nword; i++) {
    qk_mg_params_t p = *point;
    qk_err_t err = {0};
    if (qk_tune_put(axis, i, &p, &err) == QK_OK && memcmp(&p, point, sizeof p) == 0) return i;
  }
  return -1;
}

/* Costs within the margin are taken for equal: noise is no reason to turn back. */
static void walk_one_way(walk_t *w, int from, int step) {
  double before = w->least;
  for (int i = from + step; i >= 0 && i < w->axis->nword; i += step) {
    const double cost = try_word(w, i);
    if (!(cost < before * (1 + w->s->margin))) return;
    if (cost < before) before = cost;
  }
}

/* A search under way. tried: trials since the best was measured. */
typedef struct state {
  qk_mg_params_t *best;
  double least;
  int tried, slower;
} state_t;

/* Machines get slower, too: what was tried meanwhile lost against a cost that is no longer true.
 * True where it is worth another round. */
static bool measure_again(const qk_tune_search_t *s, state_t *st) {
  const double now = s->again(s->arg, st->best);
  const bool slower = now > (1 + s->margin) * st->least && st->slower < SLOWER_MOST;
  st->tried = 0;
  if (!isfinite(now)) return false;
  st->least = now;
  st->slower += slower;
  return slower;
}

/* True where the best point moved. */
static bool try_axis(const qk_tune_search_t *s, const qk_tune_axis_t *axis, state_t *st) {
  walk_t w = {.s = s, .axis = axis, .from = st->best, .winner = *st->best, .least = st->least};
  const int at = axis->ordered ? word_of(axis, st->best) : -1;
  if (at < 0) {
    for (int i = 0; i < axis->nword; i++) try_word(&w, i);
  } else {
    walk_one_way(&w, at, 1);
    if (!(w.least < (1 - s->margin) * st->least)) walk_one_way(&w, at, -1);
  }
  st->tried += w.tried;
  if (!(w.least < (1 - s->margin) * st->least)) return false;
  if (isfinite(st->least)) st->least = fmin(st->least, s->again(s->arg, st->best));
  if (!(w.least < (1 - s->margin) * st->least)) return false;
  *st->best = w.winner;
  st->least = w.least;
  st->tried = 0;
  return true;
}

double qk_tune_run(const qk_tune_search_t *search, qk_mg_params_t *best, double least) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  state_t st = {.best = best, .least = least};
  for (bool moved = true; moved && search->time_left(search->arg);) {
    const int nlevel = best->nlevel;
    moved = false;
    for (int i = 0; best->nlevel == nlevel && search->time_left(search->arg); i++) {
      /* anew each time: aggregates of a level depend on those of the one before */
      if (i >= qk_tune_axes(search->geom, best, search->twisted, axis)) break;
      if (st.tried >= TRIED_MOST && isfinite(st.least)) moved |= measure_again(search, &st);
      moved |= try_axis(search, &axis[i], &st);
    }
  }
  return st.least;
}
