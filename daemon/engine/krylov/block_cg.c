/*
 * Block conjugate gradients on the normal equations, A = Mhat^+ Mhat, with orthonormal residuals:
 * BCGrQ (A. A. Dubrulle, Electron. Trans. Numer. Anal. 12 (2001) 216). The right-hand sides of a
 * group (solver.h) share one Krylov space. Capitals are the columns of a group, S = Mhat^+ R the
 * residuals of the normal equations, R those of Mhat, which are known by their norms only:
 *
 *   S = Q C,  Q^+ Q = 1
 *   P = Q + P rho^+,  T = Mhat P,  W = Mhat^+ T,  alpha = (T^+ T)^-1
 *   X += P alpha C,  |R_j|^2 -= (C^+ alpha C)_jj,  Q rho = Q - W alpha,  C = rho C
 *
 * The norms follow from T^+ R = P^+ S = C. As differences they have an error of 1e-16 of the first
 * |R|^2 in double and 1e-7 in single, so that r is recomputed after smaller falls than with CG.
 * Two applications an iteration; three passes over pairs of blocks for products or combinations of
 * columns beside those of rho, which is Cholesky's factor of the products of Q, made twice where
 * much was lost. Columns that depend on others, down to rounding, leave the space: they are 0 in Q,
 * and so in P.
 *
 * Where r was recomputed in double, S is made anew of it, and P is conjugate to the last directions
 * as before: P = Q - P_old alpha (W^+ Q). Columns that have ended are left out then. As P_old^+ Q
 * is not 0 now, nor B = P^+ Q one, the iteration that follows has alpha B C and Q - W alpha B for
 * its steps, and its directions are made conjugate by products, too.
 *
 * Groups are blocks on the diagonal of the matrices. Other columns are combined with 0, so what a
 * group holds changes no bit of others, once columns with NaN are cleared. In half the operator
 * works on copies; all combinations are in single.
 */
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/block_fields.h"
#include "daemon/engine/krylov/block_matrix.h"

enum { PASSES = 6 };

/* By the precision of the operator. A column is 0 where its norm falls below `zero` of what it was.
 * What is left of a column beside others is not known from their products where its square is below
 * `weak` of the whole: the next pass tells. A column of T of which less than `lost` of the square
 * is left beside others takes no step. */
static const struct {
  double zero, weak, lost;
} limit[] = {[QK_DOUBLE] = {1e-13, 1e-11, 1e-15},
             [QK_SINGLE] = {1e-6, 1e-5, 1e-9},
             [QK_HALF] = {1e-6, 1e-5, 1e-9}};
_Static_assert(sizeof limit == QK_PRECS * sizeof *limit, "each precision has its limits");
/* Columns are orthonormal enough after a pass that has left them this much of their squares. */
static const double plenty = 1e-2;

typedef struct group {
  int n;
  int slot[QK_MAX_RHS];
} group_t;

/* Matrices of the block, [width][width], 0 between groups, in the memory of c; `work` has room for
 * WORK more. overlap: B = P^+ Q. */
typedef struct block_cg {
  qk_block_t block;
  qk_block_field_t q, p, x, w, t; /* t: in the precision of combinations */
  qk_field_t *p_in, *t_in, *w_in; /* what the operator is applied to */
  qk_field_t p_view;              /* p_in where it is p */
  double complex *c, *alpha, *beta, *overlap, *product, *turn, *work;
  double r2[QK_MAX_RHS];      /* |R|^2 */
  double was[QK_MAX_RHS];     /* squares of columns that are being made orthonormal, at first */
  int64_t owner[QK_MAX_RHS];  /* the group whose direction stands in a column of P and W */
  uint8_t waits[QK_MAX_RHS];  /* P is still that of the last iteration */
  uint8_t skew[QK_MAX_RHS];   /* B is not 1: r was replaced before this iteration */
  uint8_t broken[QK_MAX_RHS]; /* not finite */
} block_cg_t;

/* ---- life ------------------------------------------------------------------------------------ */

/* What the operator is applied to, and, where that is not the same memory, what is combined. */
static qk_status_t create_fields(qk_solver_t *s, qk_prec_t wide, bool apart) {
  block_cg_t *m = s->method_state;
  qk_field_t **in[] = {&m->t_in, &m->w_in, &m->p_in};
  qk_block_field_t *own[] = {&m->q, &m->p, &m->t, &m->x};
  const int nown = m->block.slices > 1 ? 4 : apart ? 3 : 2;
  for (int i = 0; i < (apart ? 3 : 2); i++) {
    const qk_status_t status = qk_solver_field(s, in[i]);
    if (status) return status;
  }
  for (int i = 0; i < nown; i++) {
    const qk_status_t status = qk_block_field_init(&m->block, wide, own[i]);
    if (status) return status;
  }
  return QK_OK;
}

/* Fields that share the memory of others. */
static void share_fields(qk_solver_t *s, bool apart) {
  block_cg_t *m = s->method_state;
  const qk_block_t *b = &m->block;
  if (!apart) {
    qk_block_field_of(b, m->t_in, &m->t);
    m->p_view = *m->p.own;
    m->p_view.v.nrhs = s->nslot;
  }
  if (b->slices > 1) {
    m->w = m->t;
  } else {
    qk_block_field_of(b, m->w_in, &m->w);
    qk_block_field_of(b, s->xi, &m->x);
  }
}

enum { MATRICES = 6, WORK = 5 };

static qk_status_t create_matrices(block_cg_t *m) {
  double complex **matrix[] = {&m->c, &m->alpha, &m->beta, &m->overlap, &m->product, &m->turn};
  const size_t n = (size_t)m->block.width * (size_t)m->block.width;
  double complex *all = qk_calloc((MATRICES + WORK) * n, sizeof *all);
  if (!all) return QK_NO_MEMORY;
  for (int i = 0; i < MATRICES; i++) *matrix[i] = all + (size_t)i * n;
  m->work = all + MATRICES * n;
  return QK_OK;
}

static qk_status_t block_cg_create(qk_solver_t *s) {
  const qk_prec_t wide = qk_prec_scaled(s->params.inner) ? QK_SINGLE : s->params.inner;
  block_cg_t *m = s->method_state = qk_calloc(1, sizeof *m);
  if (!m) return QK_NO_MEMORY;
  qk_status_t status = qk_block_init(&m->block, s);
  if (status) return status;
  status = create_matrices(m);
  if (status) return status;
  const bool apart = m->block.slices > 1 || wide != s->params.inner;
  status = create_fields(s, wide, apart);
  if (status) return status;
  share_fields(s, apart);
  return qk_scalars_init(&s->scalars, s->dev, QK_SOLVER_OWN, s->nslot);
}

static void block_cg_destroy(qk_solver_t *s) {
  block_cg_t *m = s->method_state;
  if (!m) return;
  qk_block_field_t *field[] = {&m->x, &m->t, &m->p, &m->q};
  for (int i = 0; i < 4; i++) qk_block_field_fini(field[i]);
  qk_field_destroy(m->p_in);
  qk_field_destroy(m->w_in);
  qk_field_destroy(m->t_in);
  qk_block_fini(&m->block);
  qk_free(m->c);
  qk_free(m);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The slots of the mask that share a space with slot i, of it too; false: an earlier one did. */
static bool group_of(const qk_solver_t *s, int i, const uint8_t *mask, group_t *group) {
  group->n = 0;
  if (!mask[i]) return false;
  for (int k = 0; k < s->nslot; k++)
    if (mask[k] && qk_solver_shares(s, i, k)) group->slot[group->n++] = k;
  return group->slot[0] == i;
}

static int count_groups(const qk_solver_t *s, const uint8_t *mask) {
  group_t group;
  int n = 0;
  for (int i = 0; i < s->nslot; i++) n += group_of(s, i, mask, &group);
  return n;
}

/* The matrix of a group, n x n, and back. */
static void take(const block_cg_t *m, const group_t *g, const double complex *from,
                 double complex *to) {
  for (int i = 0; i < g->n; i++)
    for (int j = 0; j < g->n; j++)
      to[i * g->n + j] = from[g->slot[i] * m->block.width + g->slot[j]];
}

static void put(const block_cg_t *m, const group_t *g, const double complex *from,
                double complex *to) {
  for (int i = 0; i < g->n; i++)
    for (int j = 0; j < g->n; j++)
      to[g->slot[i] * m->block.width + g->slot[j]] = from[i * g->n + j];
}

static size_t bytes_of(const block_cg_t *m) {
  return (size_t)m->block.width * (size_t)m->block.width * sizeof(double complex);
}

static void set_unit(const block_cg_t *m, double complex *a) {
  memset(a, 0, bytes_of(m));
  for (int i = 0; i < m->block.width; i++) a[i * m->block.width + i] = 1;
}

/* Column and row of a slot become 0. */
static void forget(const block_cg_t *m, int slot, double complex *a) {
  const int width = m->block.width;
  for (int i = 0; i < width; i++) a[i * width + slot] = a[slot * width + i] = 0;
}

/* A group with numbers that are not finite is out, with nothing left of them. */
static void break_group(block_cg_t *m, const group_t *g, uint8_t *lost) {
  for (int i = 0; i < g->n; i++) {
    const int slot = g->slot[i];
    m->broken[slot] = lost[slot] = 1;
    m->r2[slot] = NAN;
    double complex *matrix[] = {m->c, m->alpha, m->beta};
    for (int k = 0; k < 3; k++) forget(m, slot, matrix[k]);
  }
}

static void clear_lost(block_cg_t *m, const uint8_t *lost) {
  const qk_block_field_t *field[] = {&m->q, &m->p, &m->w};
  if (!memchr(lost, 1, QK_MAX_RHS)) return;
  for (int i = 0; i < 3; i++) qk_block_blas(&m->block, QK_BLAS_ZERO, field[i], NULL, lost);
}

/* ---- orthonormal columns --------------------------------------------------------------------- */

/* One pass for a group by the products of its columns: its part of `turn`, and total = r total.
 * True: another pass is needed. False with *finite unset: not finite. */
static bool reduce(const qk_solver_t *s, const group_t *g, bool last, double complex *total,
                   bool *finite) {
  block_cg_t *m = s->method_state;
  const int n = g->n;
  const size_t size = (size_t)n * (size_t)n;
  double complex *a = m->work, *r = a + size, *t = r + size;
  double least[QK_MAX_RHS] = {0};
  uint8_t weak[QK_MAX_RHS] = {0}, zero[QK_MAX_RHS] = {0};
  bool again = false;
  take(m, g, m->product, a);
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
  put(m, g, t, m->turn);
  take(m, g, total, a);
  qk_block_times(n, r, a, false, t);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n && zero[i]; j++) t[i * n + j] = 0;
  put(m, g, t, total);
  return again && !last;
}

/* The columns of Q of the groups of the mask become orthonormal, or 0: Q = Q' total, where total is
 * set for these groups. were_unit: they had norm 1 not long ago. */
static void orthonormalise(qk_solver_t *s, const uint8_t *mask, bool were_unit,
                           double complex *total) {
  block_cg_t *m = s->method_state;
  const int width = m->block.width;
  uint8_t open[QK_MAX_RHS];
  memcpy(open, mask, sizeof open);
  set_unit(m, total);
  for (int pass = 0; pass < PASSES && memchr(open, 1, sizeof open); pass++) {
    uint8_t lost[QK_MAX_RHS] = {0}, left[QK_MAX_RHS] = {0};
    qk_block_ask(&m->block, &m->q, &m->q);
    qk_block_fetch(&m->block, m->product);
    set_unit(m, m->turn);
    for (int i = 0; i < s->nslot && pass == 0; i++)
      m->was[i] = were_unit ? 1 : creal(m->product[i * (width + 1)]);
    for (int i = 0; i < s->nslot; i++) {
      group_t g;
      bool finite = true;
      if (!group_of(s, i, open, &g)) continue;
      const bool again = reduce(s, &g, pass == PASSES - 1, total, &finite);
      if (!finite) break_group(m, &g, lost);
      for (int k = 0; k < g.n; k++) left[g.slot[k]] = again;
    }
    clear_lost(m, lost);
    qk_block_turn(&m->block, QK_BLOCK_STEP, &m->q, m->turn);
    memcpy(open, left, sizeof open);
  }
}

/* ---- directions ------------------------------------------------------------------------------ */

/* P = Q + P beta for the slots that wait for it. */
static void direct(qk_solver_t *s) {
  block_cg_t *m = s->method_state;
  const int width = m->block.width;
  if (!memchr(m->waits, 1, sizeof m->waits)) return;
  set_unit(m, m->turn);
  for (int j = 0; j < s->nslot; j++)
    for (int i = 0; i < width && m->waits[j]; i++) m->turn[i * width + j] = m->beta[i * width + j];
  qk_block_turn(&m->block, QK_BLOCK_TURN, &m->p, m->turn);
  qk_block_blas(&m->block, QK_BLAS_ADD, &m->p, &m->q, m->waits);
  memset(m->waits, 0, sizeof m->waits);
}

/* v^+ y, in `product`. */
static void fetch(block_cg_t *m, const qk_block_field_t *v, const qk_block_field_t *y) {
  qk_block_ask(&m->block, v, y);
  qk_block_fetch(&m->block, m->product);
}

/* beta = -alpha (W^+ Q) for the slots of the mask, from the last directions of their groups. */
static void conjugate(qk_solver_t *s, const uint8_t *mask) {
  block_cg_t *m = s->method_state;
  const int width = m->block.width;
  fetch(m, &m->w, &m->q);
  qk_block_times(width, m->alpha, m->product, false, m->work);
  for (int j = 0; j < s->nslot; j++)
    for (int i = 0; i < s->nslot && mask[j]; i++) {
      const double complex beta = -m->work[i * width + j];
      if (m->owner[i] == s->w[j].group)
        m->beta[i * width + j] = isfinite(creal(beta)) && isfinite(cimag(beta)) ? beta : 0;
    }
}

/* B = P^+ Q for the slots of the mask, where P = Q + P_old beta is still to come. */
static void find_overlap(qk_solver_t *s, const uint8_t *mask) {
  block_cg_t *m = s->method_state;
  group_t g;
  fetch(m, &m->q, &m->p);
  qk_block_times(m->block.width, m->product, m->beta, false, m->work);
  for (int i = 0; i < s->nslot; i++) {
    group_of(s, i, mask, &g);
    for (int k = 0; k < g.n; k++) {
      const double complex z = m->work[g.slot[k] * m->block.width + i];
      m->overlap[i * m->block.width + g.slot[k]] = (i == g.slot[k]) + conj(z);
      m->skew[i] = 1;
    }
  }
}

/* B = 1 for slot i. */
static void set_straight(block_cg_t *m, int i) {
  forget(m, i, m->overlap);
  m->overlap[i * (m->block.width + 1)] = 1;
  m->skew[i] = 0;
}

/* The groups of the mask are now these slots: what has ended is no part of them. */
static void take_over(qk_solver_t *s, const uint8_t *mask) {
  block_cg_t *m = s->method_state;
  for (int i = 0; i < s->nslot; i++)
    for (int j = 0; j < s->nslot && mask[i]; j++)
      if (m->owner[j] == s->w[i].group && !mask[j]) m->owner[j] = -1;
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) m->owner[i] = s->w[i].group;
}

/* S, Q and C of the slots of the mask, which are whole groups, from r. */
static void renew(qk_solver_t *s, const uint8_t *mask, bool keep) {
  block_cg_t *m = s->method_state;
  const int width = m->block.width;
  double norm2[QK_MAX_RHS];
  uint8_t on[QK_MAX_RHS] = {0};
  memcpy(on, mask, (size_t)s->nslot);
  qk_solver_mhat(s, m->t_in, s->r, true);
  qk_block_import(&m->block, &m->q, m->t_in, on);
  qk_solver_norm2(s, s->r->v, norm2);
  for (int i = 0; i < s->nslot; i++) {
    if (!on[i]) continue;
    s->slot[i].applications++;
    m->r2[i] = norm2[i];
    m->broken[i] = 0;
    for (int k = 0; k < width; k++) m->beta[k * width + i] = 0;
    set_straight(m, i);
  }
  double complex *total = m->work + 4 * (size_t)width * (size_t)width;
  orthonormalise(s, on, false, total);
  if (keep) {
    conjugate(s, on);
    find_overlap(s, on);
  }
  for (int i = 0; i < s->nslot; i++)
    if (on[i]) forget(m, i, m->c);
  for (int i = 0; i < s->nslot; i++) {
    group_t g;
    if (on[i] && !m->broken[i]) m->waits[i] = 1;
    if (!group_of(s, i, on, &g) || m->broken[i]) continue;
    take(m, &g, total, m->work);
    put(m, &g, m->work, m->c);
  }
  take_over(s, on);
  /* at once: the columns of slots that have ended may be filled anew */
  direct(s);
}

static void block_cg_start(qk_solver_t *s, const uint8_t *mask) {
  renew(s, mask, false);
}

static void block_cg_replaced(qk_solver_t *s, const uint8_t *mask) {
  renew(s, mask, true);
}

/* ---- the solution ---------------------------------------------------------------------------- */

static void block_cg_gather(qk_solver_t *s, const uint8_t *mask) {
  const block_cg_t *m = s->method_state;
  if (m->block.slices > 1) qk_block_export(&m->block, s->xi, &m->x, mask);
}

static void block_cg_clear(qk_solver_t *s, const uint8_t *mask) {
  block_cg_t *m = s->method_state;
  qk_block_blas(&m->block, QK_BLAS_ZERO, &m->x, NULL, mask);
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* T, W, and the products of T, which stand in `product`. */
static void apply(qk_solver_t *s, const uint8_t *running, bool last) {
  block_cg_t *m = s->method_state;
  qk_block_t *b = &m->block;
  qk_field_t *p_in = m->p_in ? m->p_in : &m->p_view;
  const uint8_t *moved = b->slices > 1 ? running : NULL; /* else a mask is dearer than columns */
  if (m->p_in) qk_block_export(b, m->p_in, &m->p, running);
  qk_solver_mhat(s, m->t_in, p_in, false);
  if (m->p_in) qk_block_import(b, &m->t, m->t_in, moved);
  qk_block_ask(b, &m->t, &m->t);
  qk_solver_mhat(s, m->w_in, m->t_in, true);
  if (b->slices > 1) qk_block_import(b, &m->w, m->w_in, moved);
  if (last) qk_dev_note(s->dev, qk_solver_await(s));
  qk_block_fetch(b, m->product);
}

/* Groups whose products or W are not finite. The latter matter to others alone. */
static void find_broken(qk_solver_t *s, const uint8_t *running) {
  block_cg_t *m = s->method_state;
  const int width = m->block.width;
  double norm2[QK_MAX_RHS] = {0};
  uint8_t lost[QK_MAX_RHS] = {0};
  if (count_groups(s, running) > 1) qk_solver_norm2(s, m->w_in->v, norm2);
  for (int i = 0; i < s->nslot; i++) {
    group_t g;
    bool finite = true;
    if (!group_of(s, i, running, &g)) continue;
    for (int k = 0; k < g.n; k++) {
      const int slot = g.slot[k];
      finite = finite && isfinite(norm2[slot]) && isfinite(creal(m->product[slot * (width + 1)]));
    }
    if (!finite) break_group(m, &g, lost);
  }
  clear_lost(m, lost);
}

/* alpha of all groups; the steps alpha B of Q, in `turn`, and alpha B C; and |R|^2 after it. */
static void find_step(qk_solver_t *s, const uint8_t *running, double complex *step) {
  block_cg_t *m = s->method_state;
  memset(step, 0, bytes_of(m));
  memset(m->turn, 0, bytes_of(m));
  memset(m->alpha, 0, bytes_of(m));
  for (int i = 0; i < s->nslot; i++) {
    group_t g;
    double least[QK_MAX_RHS] = {0};
    if (!group_of(s, i, running, &g) || m->broken[i]) continue;
    const size_t size = (size_t)g.n * (size_t)g.n;
    double complex *a = m->work, *alpha = a + size, *work = alpha + size;
    take(m, &g, m->product, a);
    for (int j = 0; j < g.n; j++) least[j] = limit[s->params.inner].lost * creal(a[j * g.n + j]);
    if (!qk_block_inverse(g.n, a, least, alpha, work)) {
      for (int j = 0; j < g.n; j++) m->r2[g.slot[j]] = NAN;
      continue;
    }
    put(m, &g, alpha, m->alpha);
    take(m, &g, m->overlap, a);
    qk_block_times(g.n, alpha, a, false, work);
    put(m, &g, work, m->turn);
    double complex *c = alpha, *bc = work, *abc = work + size;
    take(m, &g, m->c, c);
    qk_block_times(g.n, work, c, false, abc);
    put(m, &g, abc, step);
    qk_block_times(g.n, a, c, false, bc);
    for (int j = 0; j < g.n; j++)
      for (int k = 0; k < g.n; k++)
        m->r2[g.slot[j]] -= creal(conj(bc[k * g.n + j]) * abc[k * g.n + j]);
  }
}

/* C = rho C and beta = rho^+ of all groups. */
static void take_rho(qk_solver_t *s, const uint8_t *running, const double complex *rho) {
  block_cg_t *m = s->method_state;
  for (int i = 0; i < s->nslot; i++) {
    group_t g;
    if (!group_of(s, i, running, &g) || m->broken[i]) continue;
    const size_t size = (size_t)g.n * (size_t)g.n;
    double complex *r = m->work, *a = r + size, *out = a + size;
    take(m, &g, rho, r);
    take(m, &g, m->c, a);
    qk_block_times(g.n, r, a, false, out);
    put(m, &g, out, m->c);
    for (int k = 0; k < g.n; k++)
      for (int j = 0; j < g.n; j++) out[j * g.n + k] = conj(r[k * g.n + j]);
    put(m, &g, out, m->beta);
    for (int k = 0; k < g.n; k++) m->waits[g.slot[k]] = 1;
  }
}

static void iteration(qk_solver_t *s, const uint8_t *running, bool last) {
  block_cg_t *m = s->method_state;
  double complex *matrix = m->work + 4 * (size_t)m->block.width * (size_t)m->block.width;
  direct(s);
  apply(s, running, last);
  find_broken(s, running);
  find_step(s, running, matrix);
  qk_block_add(&m->block, QK_BLOCK_SOLUTION, &m->x, 1, &m->p, matrix);
  qk_block_add(&m->block, QK_BLOCK_DIRECTION, &m->q, -1, &m->w, m->turn);
  orthonormalise(s, running, true, matrix);
  take_rho(s, running, matrix);
  if (memchr(m->skew, 1, sizeof m->skew)) conjugate(s, m->skew);
  for (int i = 0; i < s->nslot; i++)
    if (m->skew[i]) set_straight(m, i);
}

/* Whether the normal equations still have a residual in slot i. */
static bool has_gradient(const qk_solver_t *s, int i) {
  const block_cg_t *m = s->method_state;
  const int width = m->block.width;
  double sum = 0;
  for (int k = 0; k < width; k++) sum += cabs(m->c[k * width + i]);
  return isfinite(sum) && sum > 0;
}

static qk_status_t block_cg_iterate(qk_solver_t *s) {
  const block_cg_t *m = s->method_state;
  uint8_t running[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++) running[i] = s->slot[i].state == QK_SLOT_RUNNING;
  for (int k = 0; k < s->check; k++) {
    iteration(s, running, k == s->check - 1);
    for (int i = 0; i < s->nslot; i++) s->trace[k * s->nslot + i] = m->r2[i] < 0 ? 0 : m->r2[i];
  }
  for (int i = 0; i < s->nslot; i++)
    s->broken[i] = running[i] && (m->broken[i] || !has_gradient(s, i));
  return qk_dev_status(s->dev);
}

const qk_method_t qk_method_block_cg = {.name = "block-cg",
                                        .check = 4,
                                        .applications_per_iteration = 2,
                                        .wide_solution = true,
                                        .grouped = true,
                                        .of_one = &qk_method_cg,
                                        .least_fall = {[QK_DOUBLE] = 1e-5, [QK_SINGLE] = 1e-2},
                                        .create = block_cg_create,
                                        .destroy = block_cg_destroy,
                                        .start = block_cg_start,
                                        .clear = block_cg_clear,
                                        .replaced = block_cg_replaced,
                                        .gather = block_cg_gather,
                                        .iterate = block_cg_iterate};
