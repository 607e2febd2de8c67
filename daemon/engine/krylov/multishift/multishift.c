/*
 * With sigma_k = shift_k - shift_0 >= 0, alpha, beta and r of CG on A + shift_0 (x += alpha p,
 * p = r + beta p), the residual of shift k is r / u_k, where
 *
 *   u_k' = (1 + c + alpha sigma_k) u_k - c u_k_old,   c = alpha beta / alpha_old
 *   x_k += (alpha / u_k') p_k,   p_k = r + (beta u_k / u_k') p_k
 *
 * p_k is the direction of shift k times u_k: so one scalar each suffices.
 */
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/multishift/multishift_impl.h"

/* What rounding leaves of the residuals of shifts, as parts of |r| where the precision begins. */
static const double noise_of[] = {[QK_DOUBLE] = 1e-13, [QK_SINGLE] = 1e-6, [QK_HALF] = 0};
_Static_assert(sizeof noise_of == QK_PRECS * sizeof *noise_of, "each precision has its limit");

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

static void drop_fields(qk_multishift_t *m) {
  for (int k = m->params.nshift - 1; k >= 0; k--) {
    qk_field_destroy(m->ps[k]);
    qk_field_destroy(m->x[k]);
    m->ps[k] = m->x[k] = NULL;
  }
  if (m->factors.dev) qk_scalars_fini(&m->factors);
  m->factors.dev = NULL;
  qk_shift_cg_fini(&m->cg);
}

/* The same on all ranks; if it fails, there are none. */
static qk_status_t make_fields(qk_multishift_t *m, qk_prec_t prec) {
  const qk_multishift_params_t *p = &m->params;
  const int factors = p->nshift * 2 * (1 + QK_SHIFT_RESIDUALS);
  qk_status_t status = qk_shift_cg_init(&m->cg, p, prec, p->nrhs, QK_SHIFT_RESIDUALS);
  if (!m->factors.dev && status == QK_OK)
    status = qk_scalars_init(&m->factors, m->dev, factors, p->nrhs);
  for (int k = 0; k < p->nshift && status == QK_OK; k++) {
    if (!m->x[k]) status = qk_field_create(m->dev, QK_DOUBLE, p->nrhs, p->system.subset, &m->x[k]);
    if (status == QK_OK)
      status = qk_field_create(m->dev, prec, p->nrhs, p->system.subset, &m->ps[k]);
  }
  status = qk_comm_agree(m->dev->geom->comm, status, NULL);
  m->prec = prec;
  if (status == QK_OK) m->nsites = m->cg.p->v.nsites;
  if (status != QK_OK) drop_fields(m);
  return status;
}

/* Those of another precision in their place. */
static qk_status_t remake_fields(qk_multishift_t *m, qk_prec_t prec) {
  if (m->cg.dev && m->prec == prec) return QK_OK;
  drop_fields(m);
  return make_fields(m, prec);
}

qk_status_t qk_multishift_create(const qk_multishift_params_t *params, qk_multishift_t **solver,
                                 qk_err_t *err) {
  qk_status_t status = check(params, err);
  if (status) return status;
  qk_comm_t *comm = params->system.dev->geom->comm;
  qk_multishift_t *m = qk_calloc(1, sizeof *m);
  status = qk_comm_agree(comm, m ? QK_OK : QK_NO_MEMORY, err);
  if (status) goto fail;
  m->params = *params;
  m->dev = params->system.dev;
  for (int k = 1; k < params->nshift; k++)
    if (params->shift[k] < params->shift[m->base]) m->base = k;
  status = make_fields(m, params->inner);
  if (status) goto fail;
  *solver = m;
  return QK_OK;

fail:
  qk_multishift_destroy(m);
  return qk_fail(err, status, "%d shifts of %d right-hand sides: %s", params->nshift, params->nrhs,
                 qk_status_text(status));
}

void qk_multishift_destroy(qk_multishift_t *m) {
  if (!m) return;
  qk_shift_refine_end(m);
  drop_fields(m);
  qk_free(m);
}

/* ---- all shifts together --------------------------------------------------------------------- */

/* Which |r| of column j is small enough, of b with norm 1; half of what is wanted is left to noise,
 * if it began in double. */
static double reach_of(const qk_multishift_t *m, int j) {
  const double noise = noise_of[m->wide ? QK_DOUBLE : m->params.inner];
  return fmax(0.5 * m->wanted[j] / m->norm_b[j], noise);
}

/* Above this |r| column j is worked on in double, so that the noise of single, which is a part of
 * |r| there, does not matter. */
static double pause_of(const qk_multishift_t *m, int j) {
  if (m->prec == m->params.inner) return 0;
  return 0.5 * m->wanted[j] / m->norm_b[j] / noise_of[m->params.inner];
}

/* What a step of n iterations makes of x_k and p_k in column j: both as sums over p_k as it was, in
 * [0], and the residuals of the step. */
typedef struct moves {
  double x[1 + QK_SHIFT_RESIDUALS], p[1 + QK_SHIFT_RESIDUALS];
} moves_t;

/* x += step p, p = r_i+1 + back p */
static void move(moves_t *to, int i, double step, double back) {
  for (int l = 0; l <= i; l++) {
    to->x[l] += step * to->p[l];
    to->p[l] *= back;
  }
  to->p[i + 1] = 1;
}

/* Iterations of shift k as long as its residual is too large. */
static moves_t moves_of(qk_multishift_t *m, int n, int k, int j) {
  const double reach = reach_of(m, j);
  const double sigma = m->params.shift[k] - m->params.shift[m->base];
  double alpha_old = m->alpha_old[j], beta_old = m->beta_old[j];
  moves_t to = {.p = {1}};
  for (int i = 0; i < n; i++) {
    const double alpha = m->cg.alpha[i][j], u = m->u[k][j],
                 c = alpha_old > 0 ? alpha * beta_old / alpha_old : 0,
                 next = (1 + c + alpha * sigma) * u - c * m->u_old[k][j],
                 beta = m->cg.rr[i + 1][j] / m->cg.rr[i][j];
    m->live[k][j] &= alpha > 0 && sqrt(m->cg.rr[i][j]) / u > reach && isfinite(beta);
    if (!m->live[k][j]) break;
    move(&to, i, alpha / next, beta * u / next);
    m->u_old[k][j] = u;
    m->u[k][j] = next;
    alpha_old = alpha;
    beta_old = beta;
    m->steps[k][j]++;
  }
  return to;
}

static void put_moves(qk_multishift_t *m, int at, int n, int j, const moves_t *to) {
  for (int i = 0; i <= n; i++) {
    qk_scalars_set(&m->factors, 2 * at * (1 + n) + i, j, to->x[i], 0);
    qk_scalars_set(&m->factors, (2 * at + 1) * (1 + n) + i, j, to->p[i], 0);
  }
}

/* The shifts of which a column is live follow n iterations of the smallest one. */
static void follow(qk_multishift_t *m, int n) {
  static const moves_t none = {.p = {1}};
  qk_shift_args_t args = {.nr = n, .c = qk_scalars_at(&m->factors, 0)};
  for (int k = 0; k < m->params.nshift; k++) {
    if (!memchr(m->live[k], 1, (size_t)m->params.nrhs)) continue;
    for (int j = 0; j < m->params.nrhs; j++) {
      const moves_t to = m->live[k][j] && m->cg.on[j] ? moves_of(m, n, k, j) : none;
      put_moves(m, args.n, n, j, &to);
    }
    args.x[args.n] = m->x[k]->v;
    args.p[args.n++] = m->ps[k]->v;
  }
  for (int i = 0; i < n; i++) args.r[i] = qk_shift_residual(&m->cg, n, i + 1)->v;
  qk_scalars_store(&m->factors, 0, args.n * 2 * (1 + n));
  if (args.n > 0 && qk_dev_ok(m->dev))
    qk_dev_note(m->dev, m->dev->ops->shift_step(m->dev->ctx, &args));
}

/* Columns of b become 1 in norm. */
static void begin_together(qk_multishift_t *m) {
  qk_shift_cg_t *cg = &m->cg;
  qk_work_t *work = m->params.system.work;
  qk_field_t *b = qk_work_take(work, QK_DOUBLE, m->params.nrhs, m->params.system.subset);
  qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {b->v, m->b->v}});
  qk_shift_scale(cg, b, m->norm_b, true);
  qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {cg->r[0]->v, b->v}});
  qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {cg->p->v, b->v}});
  memset(cg->on, 1, sizeof cg->on);
  qk_shift_start(cg);
  for (int k = 0; k < m->params.nshift; k++) {
    qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->ps[k]->v, b->v}});
    qk_dev_blas(m->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->x[k]->v}});
    for (int j = 0; j < m->params.nrhs; j++) {
      m->live[k][j] = cg->on[j];
      m->u[k][j] = m->u_old[k][j] = 1;
    }
  }
  memcpy(m->now, cg->rr[0], sizeof m->now);
  memset(m->alpha_old, 0, sizeof m->alpha_old);
  memset(m->beta_old, 0, sizeof m->beta_old);
  memset(m->steps, 0, sizeof m->steps);
  qk_work_release(work, b);
}

static void apply_base(void *self, qk_field_t *q, const qk_field_t *p) {
  qk_multishift_t *m = self;
  qk_shift_apply(m, q, p, m->params.shift[m->base]);
}

/* As many iterations as a step has; how many. */
static int iterate_together(qk_multishift_t *m) {
  qk_shift_cg_t *cg = &m->cg;
  const int64_t left = m->max_iter - m->cost.shared;
  const int n = left < QK_SHIFT_RESIDUALS ? (int)left : QK_SHIFT_RESIDUALS;
  qk_shift_advance(cg, n, apply_base, m);
  follow(m, n);
  for (int j = 0; j < m->params.nrhs; j++) {
    if (!cg->on[j]) continue;
    m->alpha_old[j] = cg->alpha[n - 1][j];
    m->beta_old[j] = cg->rr[n][j] / cg->rr[n - 1][j];
    m->now[j] = cg->rr[n][j];
    m->live[m->base][j] &= sqrt(m->now[j]) > reach_of(m, j);
    for (int k = 0; k < m->params.nshift; k++) m->live[k][j] &= m->live[m->base][j];
    cg->on[j] = m->live[m->base][j] && sqrt(m->now[j]) > pause_of(m, j);
  }
  m->cost.shared += n;
  return n;
}

/* From double to single, all but x. Steps were whole ones, behind which r is always in the same
 * field, also that of columns that have waited. The same on all ranks. */
static qk_status_t narrow(qk_multishift_t *m) {
  qk_shift_cg_t old = m->cg;
  qk_field_t *ps[QK_SHIFTS_MAX];
  memcpy(ps, m->ps, sizeof ps);
  memset(m->ps, 0, sizeof m->ps);
  m->cg = (qk_shift_cg_t){.dev = NULL};
  const qk_status_t status = make_fields(m, m->params.inner);
  if (status == QK_OK) {
    qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->cg.p->v, old.p->v}});
    qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->cg.r[0]->v, old.r[old.at]->v}});
    for (int j = 0; j < m->params.nrhs; j++) m->cg.on[j] = m->live[m->base][j];
    qk_shift_start(&m->cg);
  }
  for (int k = 0; k < m->params.nshift; k++) {
    if (status == QK_OK)
      qk_dev_blas(m->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {m->ps[k]->v, ps[k]->v}});
    qk_field_destroy(ps[k]);
  }
  qk_shift_cg_fini(&old);
  return status;
}

/* Nothing is left to do together in this precision: on in the other one, or to refining. */
static qk_status_t go_on(qk_multishift_t *m) {
  if (m->prec != m->params.inner && m->cost.shared < m->max_iter) {
    for (int j = 0; j < m->params.nrhs; j++)
      if (m->live[m->base][j]) return narrow(m);
  }
  for (int k = 0; k < m->params.nshift; k++) {
    qk_shift_scale(&m->cg, m->x[k], m->norm_b, false);
    qk_shift_add(m, k, m->x[k]);
  }
  m->phase = QK_SHIFT_REFINING;
  qk_shift_refine_begin(m);
  return QK_OK;
}

/* ---- a solve --------------------------------------------------------------------------------- */

static bool fits(const qk_multishift_t *m, const qk_field_t *f) {
  return f->v.prec == QK_DOUBLE && f->v.subset == m->params.system.subset &&
         qk_field_nrhs(f) == m->params.nrhs && f->v.nsites == m->nsites;
}

static void begin(qk_multishift_t *m, double tol, const double *wanted, int64_t max_iter) {
  qk_multishift_leave(m);
  m->tol = tol;
  m->max_iter = max_iter;
  m->cost = (qk_multishift_cost_t){0};
  memset(m->result, 0, sizeof m->result);
  for (int j = 0; j < m->params.nrhs; j++) m->wanted[j] = wanted ? wanted[j] : tol * m->norm_b[j];
}

/* Double, if noise of single would matter and there is room. */
static qk_status_t choose_precision(qk_multishift_t *m) {
  m->wide = m->params.inner == QK_DOUBLE;
  for (int j = 0; j < m->params.nrhs; j++)
    m->wide |= 0.5 * m->wanted[j] / m->norm_b[j] < noise_of[m->params.inner];
  const qk_status_t status = remake_fields(m, m->wide ? QK_DOUBLE : m->params.inner);
  if (status != QK_DEVICE_MEMORY || !m->wide) return status;
  m->wide = false;
  return remake_fields(m, m->params.inner);
}

qk_status_t qk_multishift_begin(qk_multishift_t *m, const qk_field_t *b, qk_field_t *const *x,
                                double tol, const double *wanted, int64_t max_iter) {
  const bool refines = m->params.refiner.residual != NULL;
  bool good = fits(m, b) && tol > 0 && isfinite(tol) && max_iter >= 1;
  for (int k = 0; k < m->params.nshift && !refines; k++) good = good && fits(m, x[k]) && x[k] != b;
  if (!good) return QK_BAD_ARGUMENT;
  qk_status_t status = m->cg.dev ? QK_OK : make_fields(m, m->params.inner);
  if (status != QK_OK) return status;
  m->b = b;
  qk_shift_norms(&m->cg, b, m->norm_b);
  begin(m, tol, wanted, max_iter);
  status = choose_precision(m);
  if (status != QK_OK) return status;
  for (int k = 0; k < m->params.nshift && !refines; k++) {
    m->to[k] = x[k];
    qk_dev_blas(m->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x[k]->v}});
  }
  begin_together(m);
  m->phase = QK_SHIFT_TOGETHER;
  return qk_dev_status(m->dev);
}

qk_status_t qk_multishift_correct(qk_multishift_t *m, const double *wanted, int64_t max_iter) {
  if (!m->params.refiner.residual || max_iter < 1) return QK_BAD_ARGUMENT;
  const qk_status_t status = m->cg.dev ? QK_OK : make_fields(m, m->params.inner);
  if (status != QK_OK) return status;
  begin(m, m->tol, wanted, max_iter);
  memset(m->steps, 0, sizeof m->steps);
  m->phase = QK_SHIFT_REFINING;
  qk_shift_refine_begin(m);
  return QK_OK;
}

/* The lowest residuals of the block are looked at in between; a failure ends it. */
qk_status_t qk_multishift_step(qk_multishift_t *m, int iterations) {
  bool over = false;
  int n = 0;
  while (m->phase == QK_SHIFT_TOGETHER && n < iterations && qk_dev_ok(m->dev)) {
    if (m->cost.shared < m->max_iter && qk_shift_any(&m->cg)) {
      n += iterate_together(m);
    } else {
      qk_dev_note(m->dev, go_on(m));
    }
  }
  qk_status_t status = qk_dev_status(m->dev);
  if (status == QK_OK && m->phase == QK_SHIFT_REFINING && n < iterations)
    status = qk_shift_refine_step(m, iterations - n, &over);
  if (status != QK_OK || over) qk_multishift_leave(m);
  return status;
}

bool qk_multishift_is_over(const qk_multishift_t *m) {
  return m->phase == QK_SHIFT_OVER;
}

bool qk_multishift_is_together(const qk_multishift_t *m) {
  return m->phase == QK_SHIFT_TOGETHER;
}

void qk_multishift_leave(qk_multishift_t *m) {
  qk_shift_refine_end(m);
  m->phase = QK_SHIFT_OVER;
}

int64_t qk_multishift_iterations(const qk_multishift_t *m) {
  return m->cost.shared + m->cost.refined;
}

double qk_multishift_residual(const qk_multishift_t *m, int j) {
  double most = 0;
  if (m->phase == QK_SHIFT_TOGETHER) return sqrt(m->now[j]);
  for (int k = 0; k < m->params.nshift; k++) most = fmax(most, m->result[k][j].residual);
  return most;
}

void qk_multishift_results(const qk_multishift_t *m, qk_shifted_t *result,
                           qk_multishift_cost_t *cost) {
  for (int k = 0; k < m->params.nshift; k++)
    memcpy(result + (size_t)k * (size_t)m->params.nrhs, m->result[k],
           (size_t)m->params.nrhs * sizeof *result);
  if (cost) *cost = m->cost;
}

qk_status_t qk_multishift_solve(qk_multishift_t *m, const qk_field_t *b, qk_field_t *const *x,
                                double tol, int64_t max_iter, qk_shifted_t *result,
                                qk_multishift_cost_t *cost) {
  enum { AT_A_TIME = 1 << 20 };
  qk_status_t status = qk_multishift_begin(m, b, x, tol, NULL, max_iter);
  while (status == QK_OK && !qk_multishift_is_over(m)) status = qk_multishift_step(m, AT_A_TIME);
  if (status == QK_OK) qk_multishift_results(m, result, cost);
  return status;
}
