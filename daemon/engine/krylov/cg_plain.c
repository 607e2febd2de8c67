/*
 * Conjugate gradients for a hermitian and positive Mhat (M. R. Hestenes, E. Stiefel, J. Res. Natl.
 * Bur. Stand. 49 (1952) 409): staggered fermions (operator.h: QK_ADJOINT_ANTI). One application per
 * iteration, where the normal equations take two and square the condition number.
 *
 *   p = r + (rho / rho_old) p,  rho = |r|^2
 *   alpha = rho / (p, Mhat p)
 *   xi += alpha p,  r -= alpha Mhat p
 *
 * xi is changed together with p, in the next iteration. Where Mhat = 1 + A^+ A of two passes
 * (operator.h: half_system), the first of them gives (p, Mhat p) = |p|^2 + |A p|^2, so that the
 * second can change r: beside both, an iteration reads and writes five fields. Of other operators
 * Mhat p is a field, q, and (p,q) complex by rounding; alpha is what it is divided by, so that r
 * stays the residual of xi.
 */
#include <complex.h>
#include <math.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/solver_impl.h"

/* Scalars: (p, Mhat p), 0 where xi has what it gets of p; |p|^2 of this rank, or for one use; from
 * RING on |r|^2 of the last iterations. */
enum { PQ = QK_SOLVER_OWN, PP, RING };

typedef struct plain {
  qk_field_t *p, *q;                /* q: NULL where it is not needed */
  int last;                         /* place of the latest |r|^2 in the ring */
  double complex alpha[QK_MAX_RHS]; /* of the last iteration of a slot */
} plain_t;

/* |r|^2 some iterations later, or earlier, than now. */
static int ring(const qk_solver_t *s, int later) {
  const plain_t *m = s->method_state;
  const int n = s->check + 2;
  return RING + (m->last + later + n) % n;
}

static qk_status_t plain_create(qk_solver_t *s) {
  plain_t *m = s->method_state = qk_calloc(1, sizeof *m);
  if (!m) return QK_NO_MEMORY;
  qk_status_t status = qk_solver_field(s, &m->p);
  if (status) return status;
  status = s->op->ops->half_system ? QK_OK : qk_solver_field(s, &m->q);
  if (status) return status;
  return qk_scalars_init(&s->scalars, s->dev, RING + s->check + 2, s->nslot);
}

static void plain_destroy(qk_solver_t *s) {
  plain_t *m = s->method_state;
  if (!m) return;
  qk_field_destroy(m->q);
  qk_field_destroy(m->p);
  qk_free(m);
}

/* Slots of the mask have a new r and xi = 0, those of `anew` begin a new space. */
static void take_residual(qk_solver_t *s, const uint8_t *mask, const uint8_t *anew) {
  plain_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  const uint8_t *on = qk_solver_upload_mask(s, anew);
  qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->p->v}, .mask = on});
  on = qk_solver_upload_mask(s, mask);
  qk_scalars_reduce(c, PP, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {s->r->v}, .mask = on});
  qk_scalars_fetch(c, 0, c->n);
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    qk_scalars_set(c, ring(s, 0), i, qk_scalars_host(c, PP, i)[0], 0);
    qk_scalars_set(c, PQ, i, 0, 0);
    m->alpha[i] = 0;
    if (anew[i]) qk_scalars_set(c, ring(s, -1), i, 0, 0);
  }
  qk_scalars_store(c, 0, c->n);
}

static void plain_start(qk_solver_t *s, const uint8_t *mask) {
  take_residual(s, mask, mask);
}

/* An update keeps the space, but of deflated slots: an update deflates r, too, and p is not
 * conjugate to what changes r by more than rounding. */
static void plain_replaced(qk_solver_t *s, const uint8_t *mask) {
  uint8_t anew[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++) anew[i] = mask[i] && qk_solver_deflation(s, i);
  take_residual(s, mask, anew);
}

/* xi += alpha p of the last iteration, which the next one would do. The slots get a new r, or are
 * not asked any more. */
static void plain_gather(qk_solver_t *s, const uint8_t *mask) {
  const plain_t *m = s->method_state;
  const uint8_t *on = qk_solver_upload_mask(s, mask);
  for (int i = 0; i < s->nslot; i++)
    qk_scalars_set(&s->scalars, PP, i, creal(m->alpha[i]), cimag(m->alpha[i]));
  qk_scalars_store(&s->scalars, PP, 1);
  const qk_multi_args_t args = {.n = 1,
                                .f = {m->p->v},
                                .y = s->xi->v,
                                .c = qk_scalars_at(&s->scalars, PP),
                                .mask = on,
                                .sign = 1};
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->multi_axpy(s->dev->ctx, &args));
}

/* r -= alpha q, q = Mhat p. */
static void descend(qk_solver_t *s, const uint8_t *on) {
  const plain_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  const qk_spinor_t p = m->p->v, q = m->q->v, r = s->r->v;
  const double *rho = qk_scalars_at(c, ring(s, 0)), *pq = qk_scalars_at(c, PQ);
  qk_solver_mhat(s, m->q, m->p, false);
  qk_scalars_reduce(c, PQ, 1, QK_BLAS_CDOT, (qk_blas_args_t){.f = {p, q}, .mask = on});
  qk_scalars_reduce(c, ring(s, 1), 1, QK_BLAS_CG_R,
                    (qk_blas_args_t){.f = {r, r, q}, .c = {rho, pq}, .mask = on});
}

/* The same by the two passes of Mhat. */
static void descend_by_halves(qk_solver_t *s, const uint8_t *on) {
  const plain_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  const qk_operator_ops_t *ops = s->op->ops;
  const qk_spinor_t *p = &m->p->v;
  const qk_subset_t others = p->subset == QK_EVEN ? QK_ODD : QK_EVEN;
  const qk_ratio_t alpha = {qk_scalars_at(c, ring(s, 0)), qk_scalars_at(c, PQ)};
  qk_field_t *ap = qk_work_take(s->op->work, p->prec, p->nrhs, others);
  if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev,
                ops->half_system(s->op, ap, m->p, qk_scalars_at(c, PP), on, qk_scalars_at(c, PQ)));
  qk_scalars_sum(c, PQ, 1);
  if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev,
                ops->step_system(s->op, s->r, m->p, ap, &alpha, on, qk_scalars_at(c, ring(s, 1))));
  qk_scalars_sum(c, ring(s, 1), 1);
  qk_work_release(s->op->work, ap);
}

static void plain_iteration(qk_solver_t *s, const uint8_t *on) {
  plain_t *m = s->method_state;
  const qk_scalars_t *c = &s->scalars;
  const qk_blas_args_t xp = {
      .f = {s->xi->v, m->p->v, s->r->v},
      .c = {qk_scalars_at(c, ring(s, -1)), qk_scalars_at(c, PQ), qk_scalars_at(c, ring(s, 0))},
      .red = qk_scalars_at(c, PP),
      .mask = on};
  qk_solver_blas(s, QK_BLAS_CG_XP, xp);
  if (m->q)
    descend(s, on);
  else
    descend_by_halves(s, on);
  m->last = (m->last + 1) % (s->check + 2);
}

/* Of the iterations of this step. */
static void keep_trace(qk_solver_t *s) {
  for (int i = 0; i < s->check; i++) {
    const int at = ring(s, i + 1 - s->check);
    for (int slot = 0; slot < s->nslot; slot++)
      s->trace[i * s->nslot + slot] = qk_scalars_host(&s->scalars, at, slot)[0];
  }
}

static qk_status_t plain_iterate(qk_solver_t *s) {
  plain_t *m = s->method_state;
  const uint8_t *on = qk_solver_running_mask(s);
  for (int i = 0; i < s->check; i++) plain_iteration(s, on);
  const qk_status_t status = qk_solver_await(s);
  if (status) return status;
  keep_trace(s);
  for (int slot = 0; slot < s->nslot; slot++) {
    const double *pq = qk_scalars_host(&s->scalars, PQ, slot);
    s->broken[slot] = !(pq[0] > 0) || !isfinite(pq[0]);
    if (s->slot[slot].state != QK_SLOT_RUNNING) continue;
    const double complex alpha =
        qk_scalars_host(&s->scalars, ring(s, -1), slot)[0] / (pq[0] + pq[1] * I);
    m->alpha[slot] = isfinite(creal(alpha)) && isfinite(cimag(alpha)) ? alpha : 0;
  }
  return QK_OK;
}

/* In half the directions lose what they have of each other sooner than those of normal equations:
 * 8^4 of MILC (l8888), mass 0.01, to 1e-10 takes 432 iterations in double, in half 880 with an
 * update at 0.1, 552 at 0.3 and 472 at 0.5, where updates soon cost more than they save. */
const qk_method_t qk_method_cg_plain = {.name = "cg",
                                        .check = 8,
                                        .applications_per_iteration = 1,
                                        .reliable = {[QK_HALF] = 0.4},
                                        .create = plain_create,
                                        .destroy = plain_destroy,
                                        .start = plain_start,
                                        .replaced = plain_replaced,
                                        .gather = plain_gather,
                                        .iterate = plain_iterate};
