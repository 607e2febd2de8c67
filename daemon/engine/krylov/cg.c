/*
 * Conjugate gradients on the normal equations Mhat^+ Mhat xi = Mhat^+ r, in the form that carries
 * the residual r of Mhat itself (CGLS; A. Bjorck, Numerical Methods for Least Squares Problems,
 * SIAM 1996, sec. 7.4). So |r| decreases monotonically and needs no extra product. Two applications
 * per iteration.
 *
 *   p = s + (gamma'/gamma) p,  q = Mhat p,  alpha = gamma' / |q|^2
 *   xi += alpha p,  r -= alpha q,  s = Mhat^+ r,  gamma = |s|^2
 */
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/solver_impl.h"

/* Scalars; from TRACE on |r|^2 after each iteration of a step. GAMMA and GAMMA + 1 take turns. */
enum { QQ = QK_SOLVER_OWN, GAMMA, TRACE = GAMMA + 2 };

typedef struct cg {
  qk_field_t *p, *q, *g; /* g = Mhat^+ r */
  int now;               /* which of the two gammas is the latest */
} cg_t;

static qk_status_t cg_create(qk_solver_t *s) {
  cg_t *m = s->method_state = qk_calloc(1, sizeof *m);
  if (!m) return QK_NO_MEMORY;
  qk_field_t **field[] = {&m->p, &m->q, &m->g};
  for (int i = 0; i < 3; i++) {
    qk_status_t status = qk_solver_field(s, field[i]);
    if (status) return status;
  }
  return qk_scalars_init(&s->scalars, s->dev, TRACE + s->check, s->nslot);
}

static void cg_destroy(qk_solver_t *s) {
  cg_t *m = s->method_state;
  if (!m) return;
  qk_field_destroy(m->g);
  qk_field_destroy(m->q);
  qk_field_destroy(m->p);
  qk_free(m);
}

/* g = Mhat^+ r and its norm, into gamma `to`. */
static void gradient(qk_solver_t *s, int to) {
  cg_t *m = s->method_state;
  qk_solver_mhat(s, m->g, s->r, true);
  qk_scalars_reduce(&s->scalars, GAMMA + to, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {m->g->v}});
}

/* For slots outside of the mask r is what it was, and so are the bits of g and gamma. */
static void follow(qk_solver_t *s, const uint8_t *mask) {
  cg_t *m = s->method_state;
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) s->slot[i].applications++;
  gradient(s, m->now);
}

/* Slots of the mask have a new r, those of `anew` begin a new space with it. */
static void take_residual(qk_solver_t *s, const uint8_t *mask, const uint8_t *anew) {
  cg_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  const uint8_t *on = qk_solver_upload_mask(s, anew);
  qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->p->v}, .mask = on});
  follow(s, mask);
  qk_scalars_fetch(c, 0, c->n);
  for (int i = 0; i < s->nslot; i++)
    if (anew[i]) qk_scalars_set(c, GAMMA + 1 - m->now, i, 0, 0);
  qk_scalars_store(c, 0, c->n);
}

static void cg_start(qk_solver_t *s, const uint8_t *mask) {
  take_residual(s, mask, mask);
}

/* An update keeps the space, but of slots whose deflation is by compressed vectors: p, which is
 * conjugate to those before, is not so to what has changed r by more than rounding. On a
 * thermalised 8^4 (16 vectors and 32 compressed ones) a solve then takes 84 iterations in place of
 * 136. */
static void cg_replaced(qk_solver_t *s, const uint8_t *mask) {
  uint8_t anew[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++) {
    const qk_deflation_t *d = mask[i] ? qk_solver_deflation(s, i) : NULL;
    anew[i] = d && qk_deflation_is_compressed(d);
  }
  if (memchr(anew, 1, sizeof anew))
    take_residual(s, mask, anew);
  else
    follow(s, mask);
}

static void cg_iteration(qk_solver_t *s, int i) {
  cg_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  const uint8_t *on = qk_solver_running_mask(s);
  const double *now = qk_scalars_at(c, GAMMA + m->now);
  const double *before = qk_scalars_at(c, GAMMA + 1 - m->now), *qq = qk_scalars_at(c, QQ);

  /* p = g + (now / before) p,  q = Mhat p,  alpha = now / |q|^2 */
  qk_solver_blas(s, QK_BLAS_CG_P,
                 (qk_blas_args_t){.f = {m->p->v, m->g->v}, .c = {now, before}, .mask = on});
  qk_solver_mhat(s, m->q, m->p, false);
  qk_scalars_reduce(c, QQ, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {m->q->v}, .mask = on});
  /* xi += alpha p,  r -= alpha q,  |r|^2 */
  qk_scalars_reduce(
      c, TRACE + i, 1, QK_BLAS_CG_XR,
      (qk_blas_args_t){.f = {s->xi->v, s->r->v, m->p->v, m->q->v}, .c = {now, qq}, .mask = on});
  gradient(s, 1 - m->now);
  m->now = 1 - m->now;
}

static qk_status_t cg_iterate(qk_solver_t *s) {
  const cg_t *m = s->method_state;
  for (int i = 0; i < s->check; i++) cg_iteration(s, i);
  qk_status_t status = qk_solver_await(s);
  if (status) return status;
  for (int slot = 0; slot < s->nslot; slot++) {
    for (int i = 0; i < s->check; i++)
      s->trace[i * s->nslot + slot] = qk_scalars_host(&s->scalars, TRACE + i, slot)[0];
    double gamma = qk_scalars_host(&s->scalars, GAMMA + m->now, slot)[0];
    s->broken[slot] =
        !isfinite(gamma) || gamma == 0 || qk_scalars_host(&s->scalars, QQ, slot)[0] == 0;
  }
  return QK_OK;
}

const qk_method_t qk_method_cg = {.name = "cg",
                                  .check = 4,
                                  .applications_per_iteration = 2,
                                  .create = cg_create,
                                  .destroy = cg_destroy,
                                  .start = cg_start,
                                  .replaced = cg_replaced,
                                  .iterate = cg_iterate};
