/*
 * With sigma_k = shift_k - shift_0 >= 0, alpha, beta and r of CG on A + shift_0 (x += alpha p,
 * p = r + beta p), the residual of shift k is r / u_k, where
 *
 *   u_k' = (1 + c + alpha sigma_k) u_k - c u_k_old,   c = alpha beta / alpha_old
 *   x_k += (alpha / u_k') p_k,   p_k = r + (beta u_k / u_k') p_k
 *
 * p_k is the direction of shift k times u_k: so one scalar each suffices.
 */
#include "daemon/engine/krylov/multishift.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/scalars.h"

/* Scalars: products; factors of r and of shifts. */
enum { RR, OLD, PQ, SHIFT, FACTOR, SCALARS };
enum { STALLS = 3 };

/* Where the shared iterations end, and how far one correction goes: what rounding leaves of |r|. */
static const double floor_of[] = {[QK_DOUBLE] = 1e-13, [QK_SINGLE] = 1e-5, [QK_HALF] = 0};
static const double fall_of[] = {[QK_DOUBLE] = 1e-8, [QK_SINGLE] = 1e-4, [QK_HALF] = 0};
_Static_assert(sizeof floor_of == QK_PRECS * sizeof *floor_of && sizeof fall_of == sizeof floor_of,
               "each precision has its limits");

struct qk_multishift {
  qk_multishift_params_t params;
  const qk_device_t *dev;
  qk_scalars_t scalars;
  qk_field_t *r, *p, *q;
  qk_field_t *x[QK_SHIFTS_MAX], *ps[QK_SHIFTS_MAX]; /* of each shift; ps[base] is p */
  int base;                                         /* the smallest shift */
  double norm_b[QK_MAX_RHS];
  double u[QK_SHIFTS_MAX][QK_MAX_RHS], u_old[QK_SHIFTS_MAX][QK_MAX_RHS];
  double alpha[QK_MAX_RHS], beta[QK_MAX_RHS], rr[QK_MAX_RHS];
};

static void apply_normal(void *self, qk_field_t *out, const qk_field_t *in) {
  qk_operator_t *op = self;
  qk_field_t *t = qk_work_take(op->work, in->v.prec, qk_field_nrhs(in), op->system);
  if (qk_dev_ok(op->dev)) qk_dev_note(op->dev, op->ops->apply_system(op, t, in, false, NULL));
  if (qk_dev_ok(op->dev)) qk_dev_note(op->dev, op->ops->apply_system(op, out, t, true, NULL));
  qk_work_release(op->work, t);
}

qk_hermitian_system_t qk_normal_system(qk_operator_t *op) {
  return (qk_hermitian_system_t){
      .apply = apply_normal, .self = op, .dev = op->dev, .work = op->work, .subset = op->system};
}

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t check(const qk_multishift_params_t *p, qk_err_t *err) {
  const int room = QK_COLUMNS_MAX / qk_geom_slices(p->system.dev->geom);
  const int most = room < QK_MAX_RHS ? room : QK_MAX_RHS;
  if ((unsigned)p->inner >= QK_PRECS || qk_prec_scaled(p->inner))
    return qk_fail(err, QK_BAD_ARGUMENT, "inner precision %d: double or single", (int)p->inner);
  if (p->nrhs < 1 || p->nrhs > most)
    return qk_fail(err, QK_BAD_ARGUMENT, "right-hand sides = %d: must be 1 to %d", p->nrhs, most);
  if (p->nshift < 1 || p->nshift > QK_SHIFTS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "shifts = %d: must be 1 to %d", p->nshift, QK_SHIFTS_MAX);
  for (int k = 0; k < p->nshift; k++)
    if (!(p->shift[k] >= 0) || !isfinite(p->shift[k]))
      return qk_fail(err, QK_BAD_ARGUMENT, "shift %d = %g: must be finite, and not negative", k,
                     p->shift[k]);
  return QK_OK;
}

static qk_status_t make_fields(qk_multishift_t *m) {
  const qk_multishift_params_t *p = &m->params;
  qk_field_t **field[3 + 2 * QK_SHIFTS_MAX] = {&m->r, &m->p, &m->q};
  int n = 3;
  for (int k = 0; k < p->nshift; k++) {
    field[n++] = &m->x[k];
    if (k != m->base) field[n++] = &m->ps[k];
  }
  for (int i = 0; i < n; i++) {
    const qk_status_t status =
        qk_field_create(m->dev, p->inner, p->nrhs, p->system.subset, field[i]);
    if (status) return status;
  }
  return qk_scalars_init(&m->scalars, m->dev, SCALARS, p->nrhs);
}

qk_status_t qk_multishift_create(const qk_multishift_params_t *params, qk_multishift_t **solver,
                                 qk_err_t *err) {
  qk_status_t status = check(params, err);
  if (status) return status;
  qk_comm_t *comm = params->system.dev->geom->comm;
  qk_multishift_t *m = qk_calloc(1, sizeof *m);
  status = QK_NO_MEMORY;
  if (m) {
    m->params = *params;
    m->dev = params->system.dev;
    for (int k = 1; k < params->nshift; k++)
      if (params->shift[k] < params->shift[m->base]) m->base = k;
    status = make_fields(m);
  }
  status = qk_comm_agree(comm, status, err);
  if (status) {
    qk_multishift_destroy(m);
    return qk_fail(err, status, "%d shifts of %d right-hand sides: %s", params->nshift,
                   params->nrhs, qk_status_text(status));
  }
  *solver = m;
  return QK_OK;
}

void qk_multishift_destroy(qk_multishift_t *m) {
  if (!m) return;
  qk_scalars_fini(&m->scalars);
  for (int k = m->params.nshift - 1; k >= 0; k--) {
    qk_field_destroy(m->ps[k]);
    qk_field_destroy(m->x[k]);
  }
  qk_field_destroy(m->q);
  qk_field_destroy(m->p);
  qk_field_destroy(m->r);
  qk_free(m);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void blas(const qk_multishift_t *m, qk_blas_op_t op, qk_blas_args_t args) {
  qk_dev_blas(m->dev, op, args);
}

/* Scalar `at` of the columns, on the device. */
static const double *put(qk_multishift_t *m, int at, const double *value) {
  for (int j = 0; j < m->params.nrhs; j++) qk_scalars_set(&m->scalars, at, j, value[j], 0);
  qk_scalars_store(&m->scalars, at, 1);
  return qk_scalars_at(&m->scalars, at);
}

static const double *put_one(qk_multishift_t *m, int at, double value) {
  qk_scalars_fill(&m->scalars, at, value);
  return qk_scalars_at(&m->scalars, at);
}

/* A reduction, over the ranks, of the columns. Waits. */
static void reduce(qk_multishift_t *m, int at, qk_blas_op_t op, qk_blas_args_t args,
                   double *result) {
  qk_scalars_reduce(&m->scalars, at, 1, op, args);
  qk_scalars_fetch(&m->scalars, at, 1);
  for (int j = 0; j < m->params.nrhs; j++) result[j] = qk_scalars_host(&m->scalars, at, j)[0];
}

/* out = (A + shift) in */
static void apply(qk_multishift_t *m, qk_field_t *out, const qk_field_t *in, double shift) {
  const qk_hermitian_system_t *a = &m->params.system;
  a->apply(a->self, out, in);
  if (shift == 0) return;
  const double *c = put_one(m, SHIFT, shift);
  blas(m, QK_BLAS_AXPY, (qk_blas_args_t){.f = {out->v, in->v}, .c = {c}});
}

/* ---- CG on A + shift, with what follows it --------------------------------------------------- */

/* alpha of the columns that go on, 0 for the others, and x += alpha p, r -= alpha q, |r|^2 with it,
 * beta. x: of the shift itself. */
static void advance(qk_multishift_t *m, const bool *on, double *rr) {
  double pq[QK_MAX_RHS] = {0}, now[QK_MAX_RHS];
  reduce(m, PQ, QK_BLAS_CDOT, (qk_blas_args_t){.f = {m->p->v, m->q->v}}, pq);
  for (int j = 0; j < m->params.nrhs; j++) {
    const double alpha = on[j] ? m->rr[j] / pq[j] : 0;
    m->alpha[j] = isfinite(alpha) && alpha > 0 ? alpha : 0;
    now[j] = m->alpha[j] > 0 ? m->rr[j] : 0;
  }
  const double *c = put(m, OLD, now), *d = qk_scalars_at(&m->scalars, PQ);
  reduce(m, RR, QK_BLAS_CG_XR,
         (qk_blas_args_t){.f = {m->x[m->base]->v, m->r->v, m->p->v, m->q->v}, .c = {c, d}}, rr);
  for (int j = 0; j < m->params.nrhs; j++) m->beta[j] = m->alpha[j] > 0 ? rr[j] / m->rr[j] : 0;
}

/* p = r + beta p */
static void turn(qk_multishift_t *m, const double *beta, const qk_field_t *p) {
  const double *c = put(m, FACTOR, beta);
  blas(m, QK_BLAS_XPAY, (qk_blas_args_t){.f = {p->v, m->r->v}, .c = {c}});
}

/* f *= value of the columns, which may be far from the range of single; 1 in place of none. */
static void scale(qk_multishift_t *m, const qk_field_t *f, const double *value, bool invert) {
  double factor[QK_MAX_RHS];
  for (int j = 0; j < m->params.nrhs; j++) {
    const bool is = value[j] > 0 && isfinite(value[j]);
    factor[j] = !is ? 1 : invert ? 1 / value[j] : value[j];
  }
  const double *c = put(m, FACTOR, factor);
  blas(m, QK_BLAS_SCALE, (qk_blas_args_t){.f = {f->v}, .c = {c}});
}

static bool any(const qk_multishift_t *m, const bool *on) {
  return memchr(on, 1, (size_t)m->params.nrhs) != NULL;
}

/* ---- all shifts together --------------------------------------------------------------------- */

/* The columns of shift k whose residual is above `reach` move on. */
static void shift_step(qk_multishift_t *m, int k, const double *alpha_old, const double *beta_old,
                       double reach) {
  double step[QK_MAX_RHS], back[QK_MAX_RHS];
  bool on = false;
  for (int j = 0; j < m->params.nrhs; j++) {
    const double alpha = m->alpha[j], c = alpha_old[j] > 0 ? alpha * beta_old[j] / alpha_old[j] : 0;
    const double sigma = m->params.shift[k] - m->params.shift[m->base], u = m->u[k][j];
    const bool goes_on = alpha > 0 && sqrt(m->rr[j]) / u > reach;
    const double next = (1 + c + alpha * sigma) * u - c * m->u_old[k][j];
    step[j] = goes_on ? alpha / next : 0;
    back[j] = goes_on ? u / next : 0;
    if (goes_on) {
      m->u_old[k][j] = u;
      m->u[k][j] = next;
      on = true;
    }
  }
  if (!on) return;
  const double *c = put(m, FACTOR, step);
  blas(m, QK_BLAS_AXPY, (qk_blas_args_t){.f = {m->x[k]->v, m->ps[k]->v}, .c = {c}});
  for (int j = 0; j < m->params.nrhs; j++) back[j] *= m->beta[j];
  turn(m, back, m->ps[k]);
}

/* x_k in the inner precision, of b with columns of norm 1. */
static int64_t solve_together(qk_multishift_t *m, const qk_field_t *b, double tol,
                              int64_t max_iter) {
  const int nrhs = m->params.nrhs;
  const double reach = fmax(0.5 * tol, floor_of[m->params.inner]);
  double alpha_old[QK_MAX_RHS] = {0}, beta_old[QK_MAX_RHS] = {0};
  bool on[QK_MAX_RHS] = {false};
  int64_t n = 0;
  blas(m, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->r->v, b->v}});
  for (int k = 0; k < m->params.nshift; k++) {
    const qk_field_t *p = k == m->base ? m->p : m->ps[k];
    blas(m, QK_BLAS_COPY, (qk_blas_args_t){.f = {p->v, b->v}});
    blas(m, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->x[k]->v}});
    for (int j = 0; j < nrhs; j++) m->u[k][j] = m->u_old[k][j] = 1;
  }
  reduce(m, RR, QK_BLAS_NORM2, (qk_blas_args_t){.f = {m->r->v}}, m->rr);
  for (int j = 0; j < nrhs; j++) {
    on[j] = m->rr[j] > 0 && isfinite(m->rr[j]);
  }
  for (; n < max_iter && any(m, on) && qk_dev_ok(m->dev); n++) {
    double rr[QK_MAX_RHS];
    apply(m, m->q, m->p, m->params.shift[m->base]);
    advance(m, on, rr);
    for (int k = 0; k < m->params.nshift; k++)
      if (k != m->base) shift_step(m, k, alpha_old, beta_old, reach);
    turn(m, m->beta, m->p);
    memcpy(alpha_old, m->alpha, sizeof alpha_old);
    memcpy(beta_old, m->beta, sizeof beta_old);
    for (int j = 0; j < nrhs; j++) {
      if (!on[j]) continue;
      m->rr[j] = rr[j];
      on[j] = m->alpha[j] > 0 && isfinite(rr[j]) && sqrt(rr[j]) > reach;
    }
  }
  return n;
}

/* ---- one shift alone ------------------------------------------------------------------------- */

/* A correction of r, of norm 1, by CG, as far as the inner precision goes, in x[base]. */
static int64_t correct(qk_multishift_t *m, double shift, const bool *wanted, const double *target,
                       int64_t max_iter) {
  bool on[QK_MAX_RHS] = {false};
  int64_t n = 0;
  blas(m, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->p->v, m->r->v}});
  blas(m, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->x[m->base]->v}});
  reduce(m, RR, QK_BLAS_NORM2, (qk_blas_args_t){.f = {m->r->v}}, m->rr);
  for (int j = 0; j < m->params.nrhs; j++) on[j] = wanted[j] && isfinite(m->rr[j]) && m->rr[j] > 0;
  for (; n < max_iter && any(m, on) && qk_dev_ok(m->dev); n++) {
    double rr[QK_MAX_RHS];
    apply(m, m->q, m->p, shift);
    advance(m, on, rr);
    turn(m, m->beta, m->p);
    memcpy(m->rr, rr, (size_t)m->params.nrhs * sizeof *rr);
    for (int j = 0; j < m->params.nrhs; j++) {
      const double least = fmax(target[j], fall_of[m->params.inner]);
      on[j] = on[j] && m->alpha[j] > 0 && isfinite(rr[j]) && sqrt(rr[j]) > least;
    }
  }
  return n;
}

/* r = b - (A + shift) x in double, in a work field, and its norms. */
static void residual(qk_multishift_t *m, qk_field_t *r, const qk_field_t *b, const qk_field_t *x,
                     double shift, double *norm) {
  apply(m, r, x, shift);
  blas(m, QK_BLAS_SUB, (qk_blas_args_t){.f = {r->v, b->v, r->v}});
  reduce(m, RR, QK_BLAS_NORM2, (qk_blas_args_t){.f = {r->v}}, norm);
  for (int j = 0; j < m->params.nrhs; j++) norm[j] = sqrt(norm[j]);
}

/* x_k, in double, until its residual in double is small enough or does not fall any more. */
static int64_t refine(qk_multishift_t *m, const qk_field_t *b, qk_field_t *x, int k, double tol,
                      int64_t max_iter, qk_shifted_t *result) {
  const int nrhs = m->params.nrhs;
  double target[QK_MAX_RHS], norm[QK_MAX_RHS], before[QK_MAX_RHS];
  int stalls[QK_MAX_RHS] = {0};
  int64_t n = 0;
  qk_field_t *r = qk_work_take(m->params.system.work, QK_DOUBLE, nrhs, m->params.system.subset);
  for (int j = 0; j < nrhs; j++) before[j] = INFINITY;
  for (;;) {
    bool on[QK_MAX_RHS] = {false};
    residual(m, r, b, x, m->params.shift[k], norm);
    for (int j = 0; j < nrhs; j++) {
      if (norm[j] > 0.5 * before[j]) stalls[j]++;
      before[j] = fmin(before[j], norm[j]);
      target[j] = 0.9 * tol * m->norm_b[j] / norm[j];
      on[j] = norm[j] > tol * m->norm_b[j] && stalls[j] < STALLS && isfinite(norm[j]);
    }
    if (!any(m, on) || n >= max_iter || !qk_dev_ok(m->dev)) break;
    scale(m, r, norm, true);
    blas(m, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->r->v, r->v}});
    n += correct(m, m->params.shift[k], on, target, max_iter - n);
    blas(m, QK_BLAS_COPY, (qk_blas_args_t){.f = {r->v, m->x[m->base]->v}});
    scale(m, r, norm, false);
    blas(m, QK_BLAS_ADD, (qk_blas_args_t){.f = {x->v, r->v}});
  }
  for (int j = 0; j < nrhs; j++) {
    const double b_j = m->norm_b[j];
    result[j].residual = b_j > 0 ? norm[j] / b_j : b_j == 0 ? 0 : NAN;
    result[j].status = !isfinite(b_j)              ? QK_NAN_INPUT
                       : result[j].residual <= tol ? QK_OK
                                                   : QK_NOT_CONVERGED;
  }
  qk_work_release(m->params.system.work, r);
  return n;
}

static bool fits(const qk_multishift_t *m, const qk_field_t *f) {
  return f->v.prec == QK_DOUBLE && f->v.subset == m->params.system.subset &&
         f->v.nrhs == m->r->v.nrhs && f->v.nsites == m->r->v.nsites;
}

qk_status_t qk_multishift_solve(qk_multishift_t *m, const qk_field_t *b, qk_field_t *const *x,
                                double tol, int64_t max_iter, qk_shifted_t *result,
                                qk_multishift_cost_t *cost) {
  const int nrhs = m->params.nrhs;
  bool good = fits(m, b) && tol > 0 && isfinite(tol) && max_iter >= 1;
  for (int k = 0; k < m->params.nshift; k++) good = good && fits(m, x[k]) && x[k] != b;
  if (!good) return QK_BAD_ARGUMENT;
  qk_multishift_cost_t spent = {0};
  reduce(m, RR, QK_BLAS_NORM2, (qk_blas_args_t){.f = {b->v}}, m->norm_b);
  for (int j = 0; j < nrhs; j++) m->norm_b[j] = sqrt(m->norm_b[j]);
  blas(m, QK_BLAS_COPY, (qk_blas_args_t){.f = {x[0]->v, b->v}});
  scale(m, x[0], m->norm_b, true);
  spent.shared = solve_together(m, x[0], tol, max_iter);
  for (int k = 0; k < m->params.nshift; k++) {
    blas(m, QK_BLAS_COPY, (qk_blas_args_t){.f = {x[k]->v, m->x[k]->v}});
    scale(m, x[k], m->norm_b, false);
  }
  for (int k = 0; k < m->params.nshift; k++)
    spent.refined += refine(m, b, x[k], k, tol, max_iter, result + (size_t)k * (size_t)nrhs);
  if (cost) *cost = spent;
  return qk_dev_status(m->dev);
}
