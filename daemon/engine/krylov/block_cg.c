/*
 * Block conjugate gradients, on the normal equations, A = Mhat^+ Mhat, with orthonormal residuals:
 * BCGrQ (A. A. Dubrulle, Electron. Trans. Numer. Anal. 12 (2001) 216). The right-hand sides of a
 * group (solver.h) share one Krylov space. Capitals are the columns of a group, S = Mhat^+ R the
 * residuals of the normal equations, R those of Mhat, which are known by their norms only:
 *
 *   S = Q C,  Q^+ Q = 1
 *   P = Q + P rho^+,  T = Mhat P,  W = Mhat^+ T,  alpha = (T^+ T)^-1
 *   X += P alpha C,  |R_j|^2 -= (C^+ alpha C)_jj,  Q rho = Q - W alpha,  C = rho C
 *
 * Where Mhat is hermitian and positive (operator.h: QK_ADJOINT_ANTI), A = Mhat: one application an
 * iteration, S = R, whose norms are those of the columns of C, no T, alpha = (P^+ W)^-1.
 *
 * Else two applications, and the norms follow from T^+ R = P^+ S = C. As differences they have an
 * error of 1e-16 of the first |R|^2 in double and 1e-7 in single, so that r is recomputed after
 * smaller falls than with CG. Four passes for products or combinations of columns beside those of
 * rho, which is Cholesky's factor of the products of Q, made twice where much was lost. Columns
 * that depend on others, down to rounding, leave the space: they are 0 in Q, and so in P.
 *
 * Where r was recomputed in double, S is made anew of it, and P is conjugate to the last directions
 * as before: P = Q - P_old alpha (W^+ Q). Columns that have ended stay, with S of the recursion:
 * without them the space would lose what it knows, and the others their speed. As P_old^+ Q is not
 * 0 now, nor B = P^+ Q one, the iteration that follows has alpha B C and Q - W alpha B for its
 * steps, and its directions are made conjugate by products, too.
 *
 * Groups are blocks on the diagonal of the matrices. Other columns are combined with 0, so what a
 * group holds changes no bit of others, once columns with NaN are cleared. In half the operator
 * works on copies; all combinations are in single.
 */
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/block_columns.h"

/* By the precision of the operator: a column of T, or of P in the norm of Mhat, of which less than
 * this of the square is left beside others takes no step. */
static const double lost_in_step[] = {[QK_DOUBLE] = 1e-15, [QK_SINGLE] = 1e-9, [QK_HALF] = 1e-9};
_Static_assert(sizeof lost_in_step == QK_PRECS * sizeof *lost_in_step, "each precision has one");

/* ---- life ------------------------------------------------------------------------------------ */

/* What the operator is applied to, and, where that is not the same memory, what is combined. */
static qk_status_t create_fields(qk_solver_t *s, qk_prec_t wide, bool apart) {
  qk_block_cg_t *m = s->method_state;
  const bool sliced = m->block.slices > 1;
  qk_field_t **in[] = {&m->w_in, &m->t_in, &m->p_in};
  const bool has[] = {true, !m->plain, apart};
  qk_block_field_t *own[] = {&m->q, &m->p, &m->t, &m->x};
  const bool owns[] = {true, true, sliced || (apart && !m->plain), sliced};
  for (int i = 0; i < 3; i++) {
    const qk_status_t status = has[i] ? qk_solver_field(s, in[i]) : QK_OK;
    if (status) return status;
  }
  for (int i = 0; i < 4; i++) {
    const qk_status_t status = owns[i] ? qk_block_field_init(&m->block, wide, own[i]) : QK_OK;
    if (status) return status;
  }
  return QK_OK;
}

/* Fields that share the memory of others. */
static void share_fields(qk_solver_t *s, bool apart) {
  qk_block_cg_t *m = s->method_state;
  const qk_block_t *b = &m->block;
  if (!apart) {
    if (!m->plain) qk_block_field_of(b, m->t_in, &m->t);
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

enum { MATRICES = 6 };

static qk_status_t create_matrices(qk_block_cg_t *m) {
  double complex **matrix[] = {&m->c, &m->alpha, &m->beta, &m->overlap, &m->product, &m->turn};
  const size_t n = (size_t)m->block.width * (size_t)m->block.width;
  double complex *all = qk_calloc((MATRICES + QK_BLOCK_WORK) * n, sizeof *all);
  if (!all) return QK_NO_MEMORY;
  for (int i = 0; i < MATRICES; i++) *matrix[i] = all + (size_t)i * n;
  m->work = all + MATRICES * n;
  return QK_OK;
}

static qk_status_t block_cg_create(qk_solver_t *s) {
  const qk_prec_t wide = qk_prec_scaled(s->params.inner) ? QK_SINGLE : s->params.inner;
  qk_block_cg_t *m = s->method_state = qk_calloc(1, sizeof *m);
  if (!m) return QK_NO_MEMORY;
  m->plain = s->method == &qk_method_block_cg_plain;
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
  qk_block_cg_t *m = s->method_state;
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

/* ---- directions ------------------------------------------------------------------------------ */

static void clear_column(const qk_block_cg_t *m, int i, double complex *a) {
  for (int k = 0; k < m->block.width; k++) a[k * m->block.width + i] = 0;
}

/* P = Q + P beta for the slots that wait for it, which are all that matter; others have P = Q. */
static void direct(qk_solver_t *s) {
  qk_block_cg_t *m = s->method_state;
  const int width = m->block.width;
  memset(m->turn, 0, qk_block_bytes(m));
  for (int j = 0; j < s->nslot; j++)
    for (int i = 0; i < width && m->waits[j]; i++) m->turn[i * width + j] = m->beta[i * width + j];
  qk_block_turn(&m->block, QK_BLOCK_TURN, &m->p, m->turn, &m->q);
  memset(m->waits, 0, sizeof m->waits);
}

/* v^+ y, in `product`. */
static void fetch(qk_block_cg_t *m, const qk_block_field_t *v, const qk_block_field_t *y) {
  qk_block_ask(&m->block, v, y);
  qk_block_fetch(&m->block, m->product);
}

/* beta = -alpha (W^+ Q) for the slots of the mask, from the last directions of their groups. */
static void conjugate(qk_solver_t *s, const uint8_t *mask) {
  qk_block_cg_t *m = s->method_state;
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
  qk_block_cg_t *m = s->method_state;
  qk_block_group_t g;
  fetch(m, &m->q, &m->p);
  qk_block_times(m->block.width, m->product, m->beta, false, m->work);
  for (int i = 0; i < s->nslot; i++) {
    qk_block_group_of(s, i, mask, &g);
    for (int k = 0; k < g.n; k++) {
      const double complex z = m->work[g.slot[k] * m->block.width + i];
      m->overlap[i * m->block.width + g.slot[k]] = (i == g.slot[k]) + conj(z);
      m->skew[i] = 1;
    }
  }
}

/* B = 1 for slot i. */
static void set_straight(qk_block_cg_t *m, int i) {
  qk_block_forget(m, i, m->overlap);
  m->overlap[i * (m->block.width + 1)] = 1;
  m->skew[i] = 0;
}

/* The groups of the mask are now these slots. */
static void take_over(qk_solver_t *s, const uint8_t *mask) {
  qk_block_cg_t *m = s->method_state;
  for (int i = 0; i < s->nslot; i++)
    for (int j = 0; j < s->nslot && mask[i]; j++)
      if (m->owner[j] == s->w[i].group && !mask[j]) m->owner[j] = -1;
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) m->owner[i] = s->w[i].group;
}

/* Q = S, not orthonormal yet, for the slots of `with`: of r for those that are in `on`, else of the
 * recursion. */
static void take_residuals(qk_solver_t *s, const uint8_t *on, const uint8_t *with) {
  qk_block_cg_t *m = s->method_state;
  const int width = m->block.width;
  double norm2[QK_MAX_RHS];
  bool others = false;
  qk_block_set_unit(m, m->turn);
  for (int j = 0; j < s->nslot; j++) {
    if (!with[j] || on[j]) continue;
    others = true;
    for (int i = 0; i < width; i++) m->turn[i * width + j] = m->c[i * width + j];
  }
  if (others) qk_block_turn(&m->block, QK_BLOCK_TURN, &m->q, m->turn, NULL);
  if (!memchr(on, 1, QK_MAX_RHS)) return;
  if (!m->plain) qk_solver_mhat(s, m->t_in, s->r, true);
  qk_block_import(&m->block, &m->q, m->plain ? s->r : m->t_in, on);
  qk_solver_norm2(s, s->r->v, norm2);
  for (int i = 0; i < s->nslot; i++) {
    if (!on[i]) continue;
    s->slot[i].applications += !m->plain;
    m->r2[i] = norm2[i];
    m->broken[i] = 0;
  }
}

/* S, Q and C of the slots of `with`, which are whole groups; keep: P stays conjugate to the last
 * directions. */
static void renew(qk_solver_t *s, const uint8_t *on, const uint8_t *with, bool keep) {
  qk_block_cg_t *m = s->method_state;
  const size_t n = (size_t)m->block.width * (size_t)m->block.width;
  take_residuals(s, on, with);
  for (int i = 0; i < s->nslot; i++) {
    if (!with[i]) continue;
    clear_column(m, i, m->beta);
    set_straight(m, i);
  }
  double complex *total = m->work + 4 * n;
  qk_block_orthonormalise(s, with, false, total);
  if (keep) {
    conjugate(s, with);
    find_overlap(s, with);
  }
  for (int i = 0; i < s->nslot; i++)
    if (with[i]) qk_block_forget(m, i, m->c);
  for (int i = 0; i < s->nslot; i++) {
    qk_block_group_t g;
    if (with[i] && !m->broken[i]) m->waits[i] = 1;
    if (!qk_block_group_of(s, i, with, &g) || m->broken[i]) continue;
    qk_block_take(m, &g, total, m->work);
    qk_block_put(m, &g, m->work, m->c);
  }
  take_over(s, with);
  for (int i = 0; i < s->nslot; i++)
    if (with[i]) qk_block_forget(m, i, m->alpha); /* W is not that of the P that comes now */
}

/* ---- columns that have ended ----------------------------------------------------------------- */

/* Slot i has a column of a group that runs: its own or, where it has ended, still that of then. */
static bool is_live(const qk_solver_t *s, int i) {
  const qk_block_cg_t *m = s->method_state;
  if (s->slot[i].state == QK_SLOT_RUNNING) return true;
  if (m->broken[i] || m->owner[i] != s->w[i].group) return false;
  for (int k = 0; k < s->nslot; k++)
    if (s->slot[k].state == QK_SLOT_RUNNING && qk_solver_shares(s, i, k)) return true;
  return false;
}

static void find_live(const qk_solver_t *s, uint8_t *live) {
  for (int i = 0; i < s->nslot; i++) live[i] = is_live(s, i);
}

/* Groups of which a slot was filled anew begin anew without it, from their recursion. */
static void leave_groups(qk_solver_t *s) {
  qk_block_cg_t *m = s->method_state;
  const uint8_t none[QK_MAX_RHS] = {0};
  uint8_t live[QK_MAX_RHS] = {0}, shrunk[QK_MAX_RHS] = {0};
  find_live(s, live);
  for (int i = 0; i < s->nslot; i++)
    for (int k = 0; k < s->nslot && m->owner[i] != s->w[i].group; k++)
      if (live[k] && m->owner[k] == m->owner[i] && m->owner[k] == s->w[k].group) shrunk[k] = 1;
  if (memchr(shrunk, 1, sizeof shrunk)) renew(s, none, shrunk, false);
}

static void block_cg_start(qk_solver_t *s, const uint8_t *mask) {
  uint8_t on[QK_MAX_RHS] = {0};
  memcpy(on, mask, (size_t)s->nslot);
  leave_groups(s);
  renew(s, on, on, false);
}

static void block_cg_replaced(qk_solver_t *s, const uint8_t *mask) {
  uint8_t on[QK_MAX_RHS] = {0}, with[QK_MAX_RHS] = {0}, live[QK_MAX_RHS] = {0};
  memcpy(on, mask, (size_t)s->nslot);
  leave_groups(s);
  find_live(s, live);
  for (int i = 0; i < s->nslot; i++)
    for (int k = 0; k < s->nslot; k++)
      if (on[i] && live[k] && qk_solver_shares(s, i, k)) with[k] = 1;
  renew(s, on, with, true);
}

/* ---- the solution ---------------------------------------------------------------------------- */

static void block_cg_gather(qk_solver_t *s, const uint8_t *mask) {
  const qk_block_cg_t *m = s->method_state;
  if (m->block.slices > 1) qk_block_export(&m->block, s->xi, &m->x, mask);
}

static void block_cg_clear(qk_solver_t *s, const uint8_t *mask) {
  qk_block_cg_t *m = s->method_state;
  qk_block_blas(&m->block, QK_BLAS_ZERO, &m->x, NULL, mask);
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* W of P, and their products, which stand in `product`. They are hermitian but for rounding: the
 * inverse is made of one half of them. */
static void apply_plain(qk_solver_t *s, const qk_field_t *p_in, const uint8_t *moved, bool last) {
  qk_block_cg_t *m = s->method_state;
  qk_solver_mhat(s, m->w_in, p_in, false);
  if (m->block.slices > 1) qk_block_import(&m->block, &m->w, m->w_in, moved);
  qk_block_ask(&m->block, &m->w, &m->p);
  if (last) qk_dev_note(s->dev, qk_solver_await(s));
  qk_block_fetch(&m->block, m->product);
}

/* T, W, and the products of T, which stand in `product`. */
static void apply(qk_solver_t *s, const uint8_t *live, bool last) {
  qk_block_cg_t *m = s->method_state;
  qk_block_t *b = &m->block;
  qk_field_t *p_in = m->p_in ? m->p_in : &m->p_view;
  const uint8_t *moved = b->slices > 1 ? live : NULL; /* else a mask is dearer than columns */
  if (m->p_in) qk_block_export(b, m->p_in, &m->p, live);
  if (m->plain) {
    apply_plain(s, p_in, moved, last);
    return;
  }
  qk_solver_mhat(s, m->t_in, p_in, false);
  if (m->p_in) qk_block_import(b, &m->t, m->t_in, moved);
  qk_block_ask(b, &m->t, &m->t);
  qk_solver_mhat(s, m->w_in, m->t_in, true);
  if (b->slices > 1) qk_block_import(b, &m->w, m->w_in, moved);
  if (last) qk_dev_note(s->dev, qk_solver_await(s));
  qk_block_fetch(b, m->product);
}

/* Groups whose products or W are not finite. The latter matter to others alone. */
static void find_broken(qk_solver_t *s, const uint8_t *live) {
  qk_block_cg_t *m = s->method_state;
  const int width = m->block.width;
  double norm2[QK_MAX_RHS] = {0};
  uint8_t lost[QK_MAX_RHS] = {0};
  if (qk_block_count_groups(s, live) > 1) qk_solver_norm2(s, m->w_in->v, norm2);
  for (int i = 0; i < s->nslot; i++) {
    qk_block_group_t g;
    bool finite = true;
    if (!qk_block_group_of(s, i, live, &g)) continue;
    for (int k = 0; k < g.n; k++) {
      const int slot = g.slot[k];
      finite = finite && isfinite(norm2[slot]) && isfinite(creal(m->product[slot * (width + 1)]));
    }
    if (!finite) qk_block_break_group(m, &g, lost);
  }
  qk_block_clear_lost(m, lost);
}

/* alpha of all groups; the steps alpha B of Q, in `turn`, and alpha B C; and |R|^2 after it. */
static void find_step(qk_solver_t *s, const uint8_t *live, double complex *step) {
  qk_block_cg_t *m = s->method_state;
  memset(step, 0, qk_block_bytes(m));
  memset(m->turn, 0, qk_block_bytes(m));
  memset(m->alpha, 0, qk_block_bytes(m));
  for (int i = 0; i < s->nslot; i++) {
    qk_block_group_t g;
    double least[QK_MAX_RHS] = {0};
    if (!qk_block_group_of(s, i, live, &g) || m->broken[i]) continue;
    const size_t size = (size_t)g.n * (size_t)g.n;
    double complex *a = m->work, *alpha = a + size, *work = alpha + size;
    qk_block_take(m, &g, m->product, a);
    for (int j = 0; j < g.n; j++) least[j] = lost_in_step[s->params.inner] * creal(a[j * g.n + j]);
    if (!qk_block_inverse(g.n, a, least, alpha, work)) {
      for (int j = 0; j < g.n; j++) m->r2[g.slot[j]] = NAN;
      continue;
    }
    qk_block_put(m, &g, alpha, m->alpha);
    qk_block_take(m, &g, m->overlap, a);
    qk_block_times(g.n, alpha, a, false, work);
    qk_block_put(m, &g, work, m->turn);
    double complex *c = alpha, *bc = work, *abc = work + size;
    qk_block_take(m, &g, m->c, c);
    qk_block_times(g.n, work, c, false, abc);
    qk_block_put(m, &g, abc, step);
    qk_block_times(g.n, a, c, false, bc);
    for (int j = 0; j < g.n && !m->plain; j++)
      for (int k = 0; k < g.n; k++)
        m->r2[g.slot[j]] -= creal(conj(bc[k * g.n + j]) * abc[k * g.n + j]);
  }
}

/* |R|^2 of a group of the plain form, whose R is Q C. */
static void take_norms(qk_block_cg_t *m, const qk_block_group_t *g, const double complex *c) {
  for (int j = 0; j < g->n; j++) {
    double sum = 0;
    for (int i = 0; i < g->n; i++) sum += creal(c[i * g->n + j] * conj(c[i * g->n + j]));
    m->r2[g->slot[j]] = sum;
  }
}

/* C = rho C and beta = rho^+ of all groups. */
static void take_rho(qk_solver_t *s, const uint8_t *live, const double complex *rho) {
  qk_block_cg_t *m = s->method_state;
  for (int i = 0; i < s->nslot; i++) {
    qk_block_group_t g;
    if (!qk_block_group_of(s, i, live, &g) || m->broken[i]) continue;
    const size_t size = (size_t)g.n * (size_t)g.n;
    double complex *r = m->work, *a = r + size, *out = a + size;
    qk_block_take(m, &g, rho, r);
    qk_block_take(m, &g, m->c, a);
    qk_block_times(g.n, r, a, false, out);
    qk_block_put(m, &g, out, m->c);
    if (m->plain) take_norms(m, &g, out);
    for (int k = 0; k < g.n; k++)
      for (int j = 0; j < g.n; j++) out[j * g.n + k] = conj(r[k * g.n + j]);
    qk_block_put(m, &g, out, m->beta);
    for (int k = 0; k < g.n; k++) m->waits[g.slot[k]] = 1;
  }
}

static void iteration(qk_solver_t *s, const uint8_t *live, bool last) {
  qk_block_cg_t *m = s->method_state;
  double complex *matrix = m->work + 4 * (size_t)m->block.width * (size_t)m->block.width;
  direct(s);
  apply(s, live, last);
  find_broken(s, live);
  find_step(s, live, matrix);
  for (int i = 0; i < s->nslot; i++)
    if (s->slot[i].state != QK_SLOT_RUNNING) clear_column(m, i, matrix);
  qk_block_add(&m->block, QK_BLOCK_SOLUTION, &m->x, 1, &m->p, matrix);
  qk_block_add(&m->block, QK_BLOCK_DIRECTION, &m->q, -1, &m->w, m->turn);
  qk_block_orthonormalise(s, live, true, matrix);
  take_rho(s, live, matrix);
  if (memchr(m->skew, 1, sizeof m->skew)) conjugate(s, m->skew);
  for (int i = 0; i < s->nslot; i++)
    if (m->skew[i]) set_straight(m, i);
}

/* Whether the normal equations still have a residual in slot i. */
static bool has_gradient(const qk_solver_t *s, int i) {
  const qk_block_cg_t *m = s->method_state;
  const int width = m->block.width;
  double sum = 0;
  for (int k = 0; k < width; k++) sum += cabs(m->c[k * width + i]);
  return isfinite(sum) && sum > 0;
}

static qk_status_t block_cg_iterate(qk_solver_t *s) {
  const qk_block_cg_t *m = s->method_state;
  uint8_t live[QK_MAX_RHS] = {0};
  leave_groups(s);
  find_live(s, live);
  for (int k = 0; k < s->check; k++) {
    iteration(s, live, k == s->check - 1);
    for (int i = 0; i < s->nslot; i++) s->trace[k * s->nslot + i] = m->r2[i] < 0 ? 0 : m->r2[i];
  }
  for (int i = 0; i < s->nslot; i++)
    s->broken[i] = s->slot[i].state == QK_SLOT_RUNNING && (m->broken[i] || !has_gradient(s, i));
  return qk_dev_status(s->dev);
}

/* What both have; solver.c takes the plain one where Mhat is hermitian and positive. */
#define BLOCK_CG                                                                                   \
  .name = "block-cg", .check = 4, .wide_solution = true, .grouped = true, .of_one = &qk_method_cg, \
  .create = block_cg_create, .destroy = block_cg_destroy, .start = block_cg_start,                 \
  .clear = block_cg_clear, .replaced = block_cg_replaced, .gather = block_cg_gather,               \
  .iterate = block_cg_iterate

const qk_method_t qk_method_block_cg = {BLOCK_CG, .applications_per_iteration = 2,
                                        .least_fall = {[QK_DOUBLE] = 1e-5, [QK_SINGLE] = 1e-2}};
const qk_method_t qk_method_block_cg_plain = {BLOCK_CG, .applications_per_iteration = 1,
                                              .least_fall = {[QK_SINGLE] = 1e-2}};
