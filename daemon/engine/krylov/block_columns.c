#include "daemon/engine/krylov/block_columns.h"

#include <math.h>
#include <string.h>

enum { PASSES = 6 };

/* By the precision of the operator. A column is 0 where its norm falls below `zero` of what it was.
 * What is left of a column beside others is not known from their products where its square is below
 * `weak` of the whole: the next pass tells. */
static const struct {
  double zero, weak;
} limit[] = {[QK_DOUBLE] = {1e-13, 1e-11}, [QK_SINGLE] = {1e-6, 1e-5}, [QK_HALF] = {1e-6, 1e-5}};
_Static_assert(sizeof limit == QK_PRECS * sizeof *limit, "each precision has its limits");
/* Columns are orthonormal enough after a pass that has left them this much of their squares. */
static const double plenty = 1e-2;

/* ---- groups ---------------------------------------------------------------------------------- */

bool qk_block_group_of(const qk_solver_t *s, int i, const uint8_t *mask, qk_block_group_t *group) {
  group->n = 0;
  if (!mask[i]) return false;
  for (int k = 0; k < s->nslot; k++)
    if (mask[k] && qk_solver_shares(s, i, k)) group->slot[group->n++] = k;
  return group->slot[0] == i;
}

int qk_block_count_groups(const qk_solver_t *s, const uint8_t *mask) {
  qk_block_group_t group;
  int n = 0;
  for (int i = 0; i < s->nslot; i++) n += qk_block_group_of(s, i, mask, &group);
  return n;
}

void qk_block_take(const qk_block_cg_t *m, const qk_block_group_t *g, const double complex *from,
                   double complex *to) {
  for (int i = 0; i < g->n; i++)
    for (int j = 0; j < g->n; j++)
      to[i * g->n + j] = from[g->slot[i] * m->block.width + g->slot[j]];
}

void qk_block_put(const qk_block_cg_t *m, const qk_block_group_t *g, const double complex *from,
                  double complex *to) {
  for (int i = 0; i < g->n; i++)
    for (int j = 0; j < g->n; j++)
      to[g->slot[i] * m->block.width + g->slot[j]] = from[i * g->n + j];
}

size_t qk_block_bytes(const qk_block_cg_t *m) {
  return (size_t)m->block.width * (size_t)m->block.width * sizeof(double complex);
}

void qk_block_set_unit(const qk_block_cg_t *m, double complex *a) {
  memset(a, 0, qk_block_bytes(m));
  for (int i = 0; i < m->block.width; i++) a[i * m->block.width + i] = 1;
}

void qk_block_forget(const qk_block_cg_t *m, int slot, double complex *a) {
  const int width = m->block.width;
  for (int i = 0; i < width; i++) a[i * width + slot] = a[slot * width + i] = 0;
}

void qk_block_break_group(qk_block_cg_t *m, const qk_block_group_t *g, uint8_t *lost) {
  for (int i = 0; i < g->n; i++) {
    const int slot = g->slot[i];
    m->broken[slot] = lost[slot] = 1;
    m->r2[slot] = NAN;
    double complex *matrix[] = {m->c, m->alpha, m->beta};
    for (int k = 0; k < 3; k++) qk_block_forget(m, slot, matrix[k]);
  }
}

void qk_block_clear_lost(qk_block_cg_t *m, const uint8_t *lost) {
  const qk_block_field_t *field[] = {&m->q, &m->p, &m->w};
  if (!memchr(lost, 1, QK_MAX_RHS)) return;
  for (int i = 0; i < 3; i++) qk_block_blas(&m->block, QK_BLAS_ZERO, field[i], NULL, lost);
}

/* ---- orthonormal columns --------------------------------------------------------------------- */

/* One pass for a group by the products of its columns: its part of `turn`, and total = r total.
 * True: another pass is needed. False with *finite unset: not finite. */
static bool reduce(const qk_solver_t *s, const qk_block_group_t *g, bool last,
                   double complex *total, bool *finite) {
  qk_block_cg_t *m = s->method_state;
  const int n = g->n;
  const size_t size = (size_t)n * (size_t)n;
  double complex *a = m->work, *r = a + size, *t = r + size;
  double least[QK_MAX_RHS] = {0};
  uint8_t weak[QK_MAX_RHS] = {0}, zero[QK_MAX_RHS] = {0};
  bool again = false;
  qk_block_take(m, g, m->product, a);
  for (int j = 0; j < n; j++) {
    const double square = creal(a[j * n + j]), small = limit[s->params.inner].zero;
    least[j] = limit[s->params.inner].weak * square;
    zero[j] = square <= small * small * m->was[g->slot[j]];
    for (int i = 0; i < n && zero[j]; i++) a[i * n + j] = a[j * n + i] = 0;
    if (zero[j]) least[j] = 0;
  }
  *finite = qk_block_cholesky(n, a, least, r, weak);
  if (!*finite) return false;
  for (int j = 0; j < n; j++) {
    const double left = creal(r[j * n + j]);
    again = again || (!zero[j] && (weak[j] || left * left < plenty * creal(a[j * n + j])));
    zero[j] = zero[j] || (last && weak[j]);
  }
  qk_block_invert(n, r, t);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n && zero[j]; i++) t[i * n + j] = 0;
  qk_block_put(m, g, t, m->turn);
  qk_block_take(m, g, total, a);
  qk_block_times(n, r, a, false, t);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n && zero[i]; j++) t[i * n + j] = 0;
  qk_block_put(m, g, t, total);
  return again && !last;
}

void qk_block_orthonormalise(qk_solver_t *s, const uint8_t *mask, bool were_unit,
                             double complex *total) {
  qk_block_cg_t *m = s->method_state;
  const int width = m->block.width;
  uint8_t open[QK_MAX_RHS];
  memcpy(open, mask, sizeof open);
  qk_block_set_unit(m, total);
  for (int pass = 0; pass < PASSES && memchr(open, 1, sizeof open); pass++) {
    uint8_t lost[QK_MAX_RHS] = {0}, left[QK_MAX_RHS] = {0};
    qk_block_ask(&m->block, &m->q, &m->q);
    qk_block_fetch(&m->block, m->product);
    qk_block_set_unit(m, m->turn);
    for (int i = 0; i < s->nslot && pass == 0; i++)
      m->was[i] = were_unit ? 1 : creal(m->product[i * (width + 1)]);
    for (int i = 0; i < s->nslot; i++) {
      qk_block_group_t g;
      bool finite = true;
      if (!qk_block_group_of(s, i, open, &g)) continue;
      const bool again = reduce(s, &g, pass == PASSES - 1, total, &finite);
      if (!finite) qk_block_break_group(m, &g, lost);
      for (int k = 0; k < g.n; k++) left[g.slot[k]] = again;
    }
    qk_block_clear_lost(m, lost);
    qk_block_turn(&m->block, QK_BLOCK_STEP, &m->q, m->turn, NULL);
    memcpy(open, left, sizeof open);
  }
}
