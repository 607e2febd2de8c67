#include "client/files/wall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void qk_wall_init(qk_wall_t *wall, int64_t nrhs, int nt, int t0) {
  *wall = (qk_wall_t){.nrhs = nrhs, .nt = nt, .t0 = t0};
}

void qk_wall_fini(qk_wall_t *wall) {
  for (int kind = 0; kind < QK_WALL_KINDS; kind++) free(wall->sum[kind]);
  *wall = (qk_wall_t){.t0 = -1};
}

bool qk_wall_set(qk_wall_t *w, int64_t rhs, int kind, const double *sum) {
  const size_t n = (size_t)w->nrhs * (size_t)w->nt;
  if (!w->sum[kind]) {
    w->sum[kind] = malloc(n * sizeof **w->sum);
    if (!w->sum[kind]) return false;
    for (size_t i = 0; i < n; i++) w->sum[kind][i] = NAN;
  }
  memcpy(w->sum[kind] + rhs * w->nt, sum, (size_t)w->nt * sizeof *sum);
  return true;
}

bool qk_wall_has(const qk_wall_t *w, int kind) {
  return w->sum[kind] != NULL;
}

double qk_wall_total(const qk_wall_t *w, int kind, int t) {
  double total = 0;
  bool any = false;
  for (int64_t rhs = 0; rhs < w->nrhs && w->sum[kind]; rhs++) {
    const double one = w->sum[kind][rhs * w->nt + t];
    if (isnan(one)) continue;
    total += one;
    any = true;
  }
  return any ? total : NAN;
}

double qk_wall_ratio(const qk_wall_t *w, int t) {
  const double quark = qk_wall_total(w, QK_WALL_QUARK, t);
  return quark > 0 ? qk_wall_total(w, QK_WALL_MIDPOINT, t) / quark : NAN;
}

bool qk_wall_plateau(const qk_wall_t *w, qk_plateau_t *p) {
  if (w->t0 < 0 || w->nt == 0) return false;
  *p = (qk_plateau_t){.first = (w->nt + 3) / 4, .last = w->nt - (w->nt + 3) / 4};
  p->least = INFINITY;
  p->most = -INFINITY;
  double sum = 0;
  for (int d = p->first; d <= p->last; d++) {
    const double r = qk_wall_ratio(w, (w->t0 + d) % w->nt);
    if (isnan(r)) return false;
    sum += r;
    p->least = fmin(p->least, r);
    p->most = fmax(p->most, r);
  }
  p->mean = sum / (p->last - p->first + 1);
  return true;
}
