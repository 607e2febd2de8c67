#include "daemon/engine/masses/masses.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/scalars.h"

/* Passes over the parities: what is left of the other one after a correction, if anything. */
enum { ROUNDS = 3 };
static const double share_of_tol = 0.1, coarsest = 0.01; /* of an application's error */

typedef struct parity {
  qk_masses_t *m;
  qk_subset_t subset;
  qk_multishift_t *solver;
  qk_field_t *b; /* of its sites */
} parity_t;

struct qk_masses {
  qk_operator_t *op;
  qk_work_t *work;
  const qk_device_t *dev;
  qk_masses_params_t params;
  parity_t part[2]; /* one that is full, or even and odd */
  int parts;
  qk_field_t *b, *x[QK_MASSES_MAX];
  bool left[QK_MASSES_MAX]; /* x is what the user asks for */
  qk_scalars_t scalars;
  double tol;
  int64_t max_iter, together, corrections;
  bool is[2]; /* b has something there */
  int at, round;
  bool over, correcting;
  double norm_b[QK_MAX_RHS];
  double norm_r[QK_MASSES_MAX][QK_MAX_RHS]; /* of b - M x, where x has not changed since */
  bool measured[QK_MASSES_MAX];
  qk_mass_result_t result[QK_MASSES_MAX][QK_MAX_RHS];
};

static void norms(qk_masses_t *m, qk_spinor_t f, double *norm) {
  qk_scalars_reduce(&m->scalars, 0, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f}});
  qk_scalars_fetch(&m->scalars, 0, 1);
  for (int j = 0; j < m->params.nrhs; j++) norm[j] = sqrt(qk_scalars_host(&m->scalars, 0, j)[0]);
}

/* ---- the system of a parity ------------------------------------------------------------------ */

/* Errors of A add up to the distance of residuals from those of the recursion in proportion to
 * |r|, as those of one mass do (krylov/solver_step.c: choose_accuracy). */
static const double *choose_accuracy(const parity_t *part, double accuracy[QK_MAX_RHS]) {
  const qk_masses_t *m = part->m;
  if (!m->op->inexact || !qk_multishift_is_together(part->solver)) return NULL;
  for (int j = 0; j < m->params.nrhs; j++)
    accuracy[j] = fmin(share_of_tol * m->tol / qk_multishift_residual(part->solver, j), coarsest);
  return accuracy;
}

static void apply_shifted(void *self, qk_field_t *out, const qk_field_t *in, double shift) {
  qk_operator_t *op = ((parity_t *)self)->m->op;
  double accuracy[QK_MAX_RHS];
  if (!qk_dev_ok(op->dev)) return;
  qk_accuracy_set(op, choose_accuracy(self, accuracy));
  qk_dev_note(op->dev, op->masses->apply(op, out, in, shift));
  qk_accuracy_set(op, NULL);
}

static void apply(void *self, qk_field_t *out, const qk_field_t *in) {
  apply_shifted(self, out, in, 0);
}

/* What is left of mass k: full. */
static void residual(qk_masses_t *m, int k, qk_field_t *r) {
  if (qk_dev_ok(m->dev))
    qk_dev_note(m->dev, m->op->masses->residual(m->op, r, m->x[k], m->b, m->params.mass[k]));
}

static void residual_there(void *self, int k, qk_field_t *r) {
  const parity_t *part = self;
  qk_masses_t *m = part->m;
  if (part->subset == QK_FULL) {
    residual(m, k, r);
    norms(m, r->v, m->norm_r[k]);
    m->measured[k] = true;
    if (m->op->masses->keep && qk_dev_ok(m->dev))
      qk_dev_note(m->dev, m->op->masses->keep(m->op, r, m->b));
    return;
  }
  qk_field_t *full = qk_work_take(m->work, QK_DOUBLE, m->params.nrhs, QK_FULL);
  residual(m, k, full);
  if (qk_dev_ok(m->dev))
    qk_dev_blas(m->dev, QK_BLAS_COPY,
                (qk_blas_args_t){.f = {r->v, qk_field_parity(full, part->subset)}});
  qk_work_release(m->work, full);
}

static void add(void *self, int k, const qk_field_t *e) {
  qk_masses_t *m = ((parity_t *)self)->m;
  m->measured[k] = false;
  if (qk_dev_ok(m->dev))
    qk_dev_note(m->dev, m->op->masses->lift(m->op, m->x[k], e, m->params.mass[k]));
}

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t check(const qk_operator_t *op, const qk_masses_params_t *p, qk_err_t *err) {
  if (!op->masses)
    return qk_fail(err, QK_UNSUPPORTED, "masses: the action %s is solved for one mass at a time",
                   op->action);
  if (p->n < 1 || p->n > QK_MASSES_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "masses: there are %d: 1 to %d", p->n, QK_MASSES_MAX);
  for (int k = 0; k < p->n; k++)
    if (!isfinite(p->mass[k]) || !(op->masses->shift(op, p->mass[k]) > 0))
      return qk_fail(err, QK_BAD_ARGUMENT, "masses[%d] = %g: the action has no such mass", k,
                     p->mass[k]);
  return QK_OK;
}

static qk_status_t make_part(qk_masses_t *m, parity_t *part, qk_err_t *err) {
  const qk_masses_params_t *p = &m->params;
  qk_multishift_params_t params = {.system = {.apply = apply,
                                              .apply_shifted = apply_shifted,
                                              .self = part,
                                              .dev = m->dev,
                                              .work = m->work,
                                              .subset = part->subset},
                                   .refiner = {residual_there, add, part},
                                   .inner = p->inner,
                                   .nrhs = p->nrhs,
                                   .nshift = p->n};
  for (int k = 0; k < p->n; k++) params.shift[k] = m->op->masses->shift(m->op, p->mass[k]);
  return qk_multishift_create(&params, &part->solver, err);
}

static qk_status_t make_fields(qk_masses_t *m) {
  qk_status_t status = qk_field_create(m->dev, QK_DOUBLE, m->params.nrhs, QK_FULL, &m->b);
  for (int k = 0; k < m->params.n && status == QK_OK; k++)
    status = qk_field_create(m->dev, QK_DOUBLE, m->params.nrhs, QK_FULL, &m->x[k]);
  return status == QK_OK ? qk_scalars_init(&m->scalars, m->dev, 1, m->params.nrhs) : status;
}

static qk_masses_t *allocate(qk_operator_t *op, qk_work_t *work, const qk_masses_params_t *params) {
  qk_masses_t *m = qk_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->op = op;
  m->work = work;
  m->dev = op->dev;
  m->params = *params;
  m->over = true;
  m->parts = op->masses->by_parity ? 2 : 1;
  for (int i = 0; i < m->parts; i++)
    m->part[i] = (parity_t){.m = m, .subset = m->parts == 1 ? QK_FULL : i == 0 ? QK_EVEN : QK_ODD};
  return m;
}

qk_status_t qk_masses_create(qk_operator_t *op, qk_work_t *work, const qk_masses_params_t *params,
                             qk_masses_t **masses, qk_err_t *err) {
  qk_status_t status = check(op, params, err);
  if (status != QK_OK) return status;
  qk_comm_t *comm = op->dev->geom->comm;
  qk_masses_t *m = allocate(op, work, params);
  status = qk_comm_agree(comm, m ? QK_OK : QK_NO_MEMORY, err);
  if (status != QK_OK) {
    qk_free(m);
    return status;
  }
  status = qk_comm_agree(comm, qk_device_explain(m->dev, make_fields(m), err), err);
  if (status != QK_OK) {
    qk_masses_destroy(m);
    return status;
  }
  *masses = m;
  return QK_OK;
}

static void drop_part(parity_t *part) {
  qk_multishift_destroy(part->solver);
  part->solver = NULL;
  qk_field_destroy(part->b);
  part->b = NULL;
}

void qk_masses_destroy(qk_masses_t *m) {
  if (!m) return;
  for (int i = 0; i < m->parts; i++) drop_part(&m->part[i]);
  qk_scalars_fini(&m->scalars);
  for (int k = m->params.n - 1; k >= 0; k--) qk_field_destroy(m->x[k]);
  qk_field_destroy(m->b);
  qk_free(m);
}

qk_field_t *qk_masses_source(qk_masses_t *m) {
  return m->b;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* What each parity's residual may be, so that that of both is below tol |b|. */
static void share(const qk_masses_t *m, double safety, double *wanted) {
  const double part = m->is[0] && m->is[1] ? sqrt(0.5) : 1;
  for (int j = 0; j < m->params.nrhs; j++) wanted[j] = safety * part * m->tol * m->norm_b[j];
}

/* ---- a solve --------------------------------------------------------------------------------- */

/* The solver of a parity, which stays as long as it is worked on. */
static qk_status_t open_part(qk_masses_t *m, parity_t *part) {
  qk_err_t err = {0};
  qk_status_t status = qk_field_create(m->dev, QK_DOUBLE, m->params.nrhs, part->subset, &part->b);
  status = qk_comm_agree(m->dev->geom->comm, status, &err);
  if (status != QK_OK) return status;
  qk_dev_blas(m->dev, QK_BLAS_COPY,
              (qk_blas_args_t){.f = {part->b->v, qk_field_parity(m->b, part->subset)}});
  return make_part(m, part, &err);
}

/* The parity that is next, if b has something there, or corrections of both; past the last one none
 * is. */
static qk_status_t begin_part(qk_masses_t *m) {
  parity_t *part = &m->part[m->at];
  double wanted[QK_MAX_RHS];
  qk_status_t status = open_part(m, part);
  if (status != QK_OK) return status;
  share(m, m->round == 0 ? 0.99 : 0.5, wanted);
  m->correcting = m->round > 0;
  return m->correcting
             ? qk_multishift_correct(part->solver, wanted, m->max_iter)
             : qk_multishift_begin(part->solver, part->b, NULL, m->tol, wanted, m->max_iter);
}

/* What has been spent on a parity; its fields go. */
static void end_part(qk_masses_t *m) {
  parity_t *part = &m->part[m->at];
  qk_shifted_t *all = qk_calloc((size_t)m->params.n * (size_t)m->params.nrhs, sizeof *all);
  qk_multishift_cost_t cost = {0};
  if (all) {
    qk_multishift_results(part->solver, all, &cost);
    for (int k = 0; k < m->params.n; k++)
      for (int j = 0; j < m->params.nrhs; j++) {
        const qk_shifted_t *of = &all[k * m->params.nrhs + j];
        qk_mass_result_t *r = &m->result[k][j];
        r->iterations += of->iterations;
        r->applications += of->refined + (of->together + m->params.n - 1) / m->params.n;
      }
  }
  m->together += cost.shared;
  m->corrections += cost.refined;
  qk_free(all);
  drop_part(part);
}

/* Residuals of all masses, full and in double. True where all are small enough. */
static bool judge(qk_masses_t *m) {
  bool all = true;
  qk_field_t *r = qk_work_take(m->work, QK_DOUBLE, m->params.nrhs, QK_FULL);
  for (int k = 0; k < m->params.n; k++) {
    const double *norm = m->norm_r[k];
    if (!m->measured[k]) {
      residual(m, k, r);
      norms(m, r->v, m->norm_r[k]);
    }
    for (int j = 0; j < m->params.nrhs; j++) {
      qk_mass_result_t *of = &m->result[k][j];
      const double b = m->norm_b[j];
      of->norm_b = b;
      of->residual = b > 0 ? norm[j] / b : b == 0 ? 0 : NAN;
      of->status = !isfinite(b) ? QK_NAN_INPUT : of->residual <= m->tol ? QK_OK : QK_NOT_CONVERGED;
      all &= of->status != QK_NOT_CONVERGED || of->iterations >= m->max_iter;
    }
  }
  qk_work_release(m->work, r);
  return all;
}

/* The next parity to be worked on; a round more where the last one was not enough. */
static qk_status_t go_on(qk_masses_t *m) {
  for (;;) {
    while (++m->at < m->parts)
      if (m->is[m->at] || m->round > 0) return begin_part(m);
    m->over = judge(m) || ++m->round == ROUNDS;
    if (m->over) return qk_dev_status(m->dev);
    m->at = -1;
  }
}

/* After a failure it is over, and what has failed behind the first cause is forgotten with it. */
static qk_status_t give_up(qk_masses_t *m, qk_status_t status) {
  if (status == QK_OK) return QK_OK;
  qk_dev_status(m->dev);
  for (int i = 0; i < m->parts; i++) drop_part(&m->part[i]);
  m->over = true;
  return status;
}

qk_status_t qk_masses_begin(qk_masses_t *m, double tol, int64_t max_iter) {
  if (!(tol > 0) || !isfinite(tol) || max_iter < 1 || !m->over) return QK_BAD_ARGUMENT;
  m->tol = tol;
  m->max_iter = max_iter;
  m->together = m->corrections = 0;
  m->round = 0;
  memset(m->result, 0, sizeof m->result);
  norms(m, m->b->v, m->norm_b);
  for (int i = 0; i < m->parts; i++) {
    double norm[QK_MAX_RHS] = {0};
    norms(m, qk_field_parity(m->b, m->part[i].subset), norm);
    m->is[i] = false;
    for (int j = 0; j < m->params.nrhs; j++) m->is[i] |= norm[j] != 0;
  }
  for (int k = 0; k < m->params.n; k++) {
    qk_dev_blas(m->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {m->x[k]->v}});
    m->left[k] = false;
    m->measured[k] = false;
  }
  const qk_status_t status = qk_dev_status(m->dev);
  if (status != QK_OK) return status;
  m->over = false;
  m->at = -1;
  return give_up(m, go_on(m));
}

/* The ranks may not agree on what one of them lacks. */
qk_status_t qk_masses_step(qk_masses_t *m, int iterations) {
  if (m->over) return QK_OK;
  parity_t *part = &m->part[m->at];
  qk_status_t status = qk_multishift_step(part->solver, iterations);
  if (status == QK_OK && qk_multishift_is_over(part->solver)) {
    end_part(m);
    status = go_on(m);
  }
  return give_up(m, status);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool qk_masses_is_over(const qk_masses_t *m) {
  return m->over;
}

int64_t qk_masses_iterations(const qk_masses_t *m) {
  const int64_t before = m->together + m->corrections;
  return m->over ? before : before + qk_multishift_iterations(m->part[m->at].solver);
}

double qk_masses_residual(const qk_masses_t *m, int j) {
  return m->over ? m->result[0][j].residual : qk_multishift_residual(m->part[m->at].solver, j);
}

const qk_mass_result_t *qk_masses_result(const qk_masses_t *m, int k, int j) {
  return &m->result[k][j];
}

qk_status_t qk_masses_solution(qk_masses_t *m, int k, qk_field_t **x) {
  const qk_masses_ops_t *ops = m->op->masses;
  qk_status_t status = QK_OK;
  if (ops->leave && !m->left[k]) status = ops->leave(m->op, m->x[k], m->b, m->params.mass[k]);
  m->left[k] = true;
  *x = m->x[k];
  return status;
}
