/*
 * BiCGStab (H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631) with residual
 * replacement (G. L. G. Sleijpen and H. A. van der Vorst, Computing 56 (1996) 141). Per iteration:
 * two applications, five fields to read or write in BLAS passes, and three reductions.
 *
 * The direction is updated at the beginning of an iteration, so that it uses a replaced r:
 *   p = r + beta (p - omega v),  v = Mhat p,    alpha = rho / (r0,v)
 *   s = r - alpha v,             t = Mhat s,    omega = (t,s) / (t,t)
 *   xi += alpha p + omega s,     r = s - omega t,  rho' = (r0,r),  beta = (rho'/rho) (alpha/omega)
 */
#include <math.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/solver_impl.h"

/* Scalars; from RING on pairs (rho, |r|^2), one per iteration of a step and the one before it. */
enum { R0V = QK_SOLVER_OWN, SS, TS, TT, SCRATCH, RING };

typedef struct bicgstab {
  qk_field_t *r0, *p, *v, *t;
  int last; /* entry of the ring that the last iteration wrote */
} bicgstab_t;

/* Scalar of the entry `steps` after (or before) the last one. */
static int ring(const qk_solver_t *s, int steps) {
  const bicgstab_t *m = s->method_state;
  int entries = s->check + 1;
  return RING + 2 * ((m->last + steps + entries) % entries);
}

static qk_status_t bicgstab_create(qk_solver_t *s) {
  bicgstab_t *m = s->method_state = qk_calloc(1, sizeof *m);
  if (!m) return QK_NO_MEMORY;
  qk_field_t **field[] = {&m->r0, &m->p, &m->v, &m->t};
  for (int i = 0; i < 4; i++) {
    qk_status_t status = qk_solver_field(s, field[i]);
    if (status) return status;
  }
  return qk_scalars_init(&s->scalars, s->dev, RING + 2 * (s->check + 1), s->nslot);
}

static void bicgstab_destroy(qk_solver_t *s) {
  bicgstab_t *m = s->method_state;
  if (!m) return;
  qk_field_destroy(m->t);
  qk_field_destroy(m->v);
  qk_field_destroy(m->p);
  qk_field_destroy(m->r0);
  qk_free(m);
}

/* Entry of the mirror that becomes `from`, or 0. */
static void set(qk_solver_t *s, int k, int slot, const double *from) {
  double *to = qk_scalars_host(&s->scalars, k, slot);
  for (int i = 0; i < 2; i++) to[i] = from ? from[i] : 0;
}

static void bicgstab_start(qk_solver_t *s, const uint8_t *mask) {
  bicgstab_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  const uint8_t *on = qk_solver_upload_mask(s, mask);
  qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->r0->v, s->r->v}, .mask = on});
  qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->p->v}, .mask = on});
  qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->v->v}, .mask = on});
  qk_scalars_reduce(c, SCRATCH, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {s->r->v}, .mask = on});
  qk_scalars_fetch(c, 0, c->n);
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    /* no earlier rho, alpha or omega: beta comes out as zero */
    const int cleared[] = {R0V, TS, TT, ring(s, -1)};
    const double rho[2] = {qk_scalars_host(c, SCRATCH, i)[0], 0};
    for (int k = 0; k < 4; k++) set(s, cleared[k], i, NULL);
    set(s, ring(s, 0), i, rho);
  }
  qk_scalars_store(c, 0, c->n);
}

static void bicgstab_replaced(qk_solver_t *s, const uint8_t *mask) {
  const bicgstab_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  qk_scalars_reduce(c, SCRATCH, 1, QK_BLAS_CDOT, (qk_blas_args_t){.f = {m->r0->v, s->r->v}});
  qk_scalars_fetch(c, 0, c->n);
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) set(s, ring(s, 0), i, qk_scalars_host(c, SCRATCH, i));
  qk_scalars_store(c, 0, c->n);
}

static void bicgstab_iteration(qk_solver_t *s) {
  bicgstab_t *m = s->method_state;
  qk_scalars_t *c = &s->scalars;
  const uint8_t *on = qk_solver_running_mask(s);
  const qk_spinor_t xi = s->xi->v, r = s->r->v;
  const qk_spinor_t r0 = m->r0->v, p = m->p->v, v = m->v->v, t = m->t->v;
  const double *rho = qk_scalars_at(c, ring(s, 0)), *rho_old = qk_scalars_at(c, ring(s, -1));
  const double *r0v = qk_scalars_at(c, R0V), *ts = qk_scalars_at(c, TS), *tt = qk_scalars_at(c, TT);

  /* p = r + beta (p - omega v),  beta = (rho / rho_old) (alpha / omega) */
  qk_solver_blas(s, QK_BLAS_BICGSTAB_P,
                 (qk_blas_args_t){.f = {p, r, v}, .c = {rho, rho_old, r0v, ts, tt}, .mask = on});
  /* v = Mhat p,  alpha = rho / (r0,v) */
  qk_solver_mhat(s, m->v, m->p, false);
  qk_scalars_reduce(c, R0V, 1, QK_BLAS_CDOT, (qk_blas_args_t){.f = {r0, v}, .mask = on});
  /* s = r - alpha v, in the place of r */
  qk_solver_blas(
      s, QK_BLAS_BICGSTAB_S,
      (qk_blas_args_t){.f = {r, v}, .c = {rho, r0v}, .mask = on, .red = qk_scalars_at(c, SS)});
  /* t = Mhat s,  omega = (t,s) / (t,t) */
  qk_solver_mhat(s, m->t, s->r, false);
  qk_scalars_reduce(c, TS, 2, QK_BLAS_CDOT_NORM2, (qk_blas_args_t){.f = {t, r}, .mask = on});
  /* xi += alpha p + omega s,  r = s - omega t,  the next rho = (r0,r),  |r|^2 */
  qk_scalars_reduce(c, ring(s, 1), 2, QK_BLAS_BICGSTAB_XR,
                    (qk_blas_args_t){.f = {xi, r, p, t, r0}, .c = {rho, r0v, ts, tt}, .mask = on});
  m->last = (m->last + 1) % (s->check + 1);
}

static bool vanishes(const double c[2]) {
  double size = hypot(c[0], c[1]);
  return size == 0 || !isfinite(size);
}

static qk_status_t bicgstab_iterate(qk_solver_t *s) {
  for (int i = 0; i < s->check; i++) bicgstab_iteration(s);
  qk_status_t status = qk_solver_await(s);
  if (status) return status;
  for (int slot = 0; slot < s->nslot; slot++) {
    for (int i = 0; i < s->check; i++)
      s->trace[i * s->nslot + slot] =
          qk_scalars_host(&s->scalars, ring(s, i + 1 - s->check) + 1, slot)[0];
    s->broken[slot] = vanishes(qk_scalars_host(&s->scalars, ring(s, 0), slot)) ||
                      vanishes(qk_scalars_host(&s->scalars, R0V, slot)) ||
                      vanishes(qk_scalars_host(&s->scalars, TT, slot));
  }
  return QK_OK;
}

const qk_method_t qk_method_bicgstab = {.name = "bicgstab",
                                        .check = 4,
                                        .applications_per_iteration = 2,
                                        .create = bicgstab_create,
                                        .destroy = bicgstab_destroy,
                                        .start = bicgstab_start,
                                        .replaced = bicgstab_replaced,
                                        .iterate = bicgstab_iterate};
