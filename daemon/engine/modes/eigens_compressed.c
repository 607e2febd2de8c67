#include "daemon/engine/modes/eigens_compressed.h"

#include <math.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/engine/eigen/lanczos_params.h"
#include "daemon/engine/modes/eigens_file.h"

enum { B = QK_EIGEN_BLOCK };
/* The window of that iteration at its beginning, over the largest eigenvalue that is guessed. */
static const double ahead = 2.5;

static const qk_coherent_cut_t *cut_of(const qk_eigens_t *s) {
  return &s->job.order.problem.cut;
}

/* Of the iteration in the space of a basis. */
static qk_lanczos_params_t params_within(const qk_eigens_t *s) {
  const qk_eigen_problem_t *p = &s->job.order.problem;
  qk_lanczos_params_t q = s->job.params;
  q.n = p->count;
  q.space = p->space;
  return q;
}

/* What does not fit is known before the basis is made. */
static qk_status_t check_within(const qk_eigens_t *s, qk_err_t *err) {
  const qk_coherent_t within = {.cut = *cut_of(s)};
  qk_lanczos_params_t q = params_within(s);
  q.within = &within;
  const qk_status_t status = qk_lanczos_complete(&s->setup->geom, &q, err);
  if (status != QK_OK) qk_err_prefix(err, "within the basis of %d", cut_of(s)->n);
  return status;
}

qk_status_t qk_eigens_choose_basis(qk_eigens_t *s, qk_err_t *err) {
  qk_lanczos_params_t *q = &s->job.params;
  q->n = cut_of(s)->n;
  q->space = 0; /* what is asked for is that of all vectors */
  const qk_status_t status = qk_coherent_check(&s->setup->geom, cut_of(s), err);
  if (status == QK_BAD_GEOMETRY &&
      s->job.order.restore) { /* made on another grid, where they stay good */
    const qk_err_t why = *err;
    return qk_fail(err, QK_NOT_FOUND, "%s", why.text);
  }
  if (status != QK_OK) return status;
  if (s->setup->op->system == QK_EVEN) return check_within(s, err);
  return qk_fail(err, QK_UNSUPPORTED, "basis = %d: of a system on even sites alone", q->n);
}

int64_t qk_eigens_compressed_bytes(const qk_eigens_t *s) {
  const qk_operator_t *op = s->setup->op;
  const qk_geom_t *geom = op->dev->geom;
  const qk_lanczos_params_t *p = &s->job.params, q = params_within(s);
  const int64_t work = 3 * (int64_t)qk_field_bytes(geom, p->prec, B, op->system),
                basis = cut_of(s)->n / B * (int64_t)qk_field_bytes(geom, p->prec, B, op->system),
                small = (q.n + B) / B * (qk_eigens_coefficient_floats(s) * (int64_t)sizeof(float)),
                first = qk_lanczos_bytes(geom, op->system, p),
                second = basis + qk_lanczos_within_bytes(geom, op->system, &q, cut_of(s)),
                third =
                    basis + small + qk_compressed_bytes(geom, op->system, p->prec, cut_of(s), q.n);
  const int64_t most = first > second ? first : second;
  return work + (most > third ? most : third);
}

int64_t qk_eigens_coefficient_floats(const qk_eigens_t *s) {
  qk_eigen_header_t h;
  qk_eigens_describe(s, &h);
  h.based = true;
  return qk_eigen_part_floats(&s->setup->geom, &h, cut_of(s)->n / B);
}

/* ---- the basis ------------------------------------------------------------------------------- */

/* Host memory of what will be kept. */
static qk_status_t begin_made(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  const int count = j->order.problem.count;
  qk_eigen_header_t h;
  qk_eigens_describe(s, &h);
  h.complete = true;
  h.nblock = (count + B - 1) / B;
  h.numbers = 2 * count;
  qk_eigens_describe_basis(s, &h);
  return qk_kept_create(&s->setup->geom, &j->order, &h, &j->made, err);
}

static qk_status_t make_basis(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_eigen_t *e = j->eigen;
  qk_status_t status = qk_coherent_create_from(s->setup->op->dev, cut_of(s), e->block, &j->basis);
  status = qk_comm_agree(qk_eigens_comm(s), status, err);
  if (status != QK_OK) return status;
  j->smoother = qk_compressed_polynomial(e->top);
  j->guess = ahead * e->value[e->n - 1] * j->order.problem.count / e->n;
  e->nblock = 0;
  qk_eigen_destroy(e);
  j->eigen = NULL;
  return qk_coherent_pass_create(j->basis, &j->pass, err);
}

qk_status_t qk_eigens_begin_basis(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_status_t status = qk_lanczos_vectors(j->lanczos, &j->eigen, err);
  if (status != QK_OK) return status;
  qk_lanczos_destroy(j->lanczos);
  j->lanczos = NULL;
  status = make_basis(s, err);
  if (status != QK_OK) return status;
  j->stage = CUT;
  return begin_made(s, err);
}

qk_status_t qk_eigens_cut_basis(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  bool over = false;
  const qk_status_t status = qk_coherent_pass_step(j->pass, &over, err);
  if (status != QK_OK || !over) return status;
  qk_coherent_pass_destroy(j->pass);
  j->pass = NULL;
  j->block = 0;
  j->cost = 0; /* the first state with the basis is written at once, whatever the last one took */
  j->stage = BASE;
  return QK_OK;
}

/* j->params become those of the iteration in the space of the basis. */
static qk_status_t create_within(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  j->params = params_within(s);
  j->params.top = j->smoother.top;
  j->params.window = fmin(j->guess, 0.5 * j->smoother.top);
  j->params.within = j->basis;
  return qk_lanczos_create(s->setup->op, j->work, &j->params, &j->lanczos, err);
}

qk_status_t qk_eigens_take_basis(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  const int b = j->block++;
  const qk_status_t status = qk_eigen_part_get(&j->made->h, j->basis->v[b], j->made->part[b]);
  if (status != QK_OK || j->block < j->basis->nblock) return status;
  if (qk_eigens_is_first(s))
    qk_info("eigen", "%s: a basis of %d vectors is made", j->order.name, cut_of(s)->n);
  j->stage = ITERATE;
  return create_within(s, err);
}

qk_status_t qk_eigens_go_on_within(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  const qk_operator_t *op = s->setup->op;
  qk_status_t status =
      qk_coherent_create(op->dev, op->system, j->params.prec, cut_of(s), &j->basis);
  status = qk_comm_agree(qk_eigens_comm(s), status, err);
  if (status != QK_OK) return status;
  j->smoother = j->h.smoother;
  j->guess = j->h.state.window;
  status = begin_made(s, err);
  return status == QK_OK ? create_within(s, err) : status;
}

/* ---- Ritz vectors ---------------------------------------------------------------------------- */

/* The coefficients that the iteration has found go over to the set. */
static qk_status_t hand_over(qk_eigens_t *s) {
  qk_eigens_job_t *j = &s->job;
  const qk_device_t *dev = s->setup->op->dev;
  for (int b = 0; b < j->eigen->nblock; b++)
    qk_dev_blas(
        dev, QK_BLAS_COPY,
        (qk_blas_args_t){.f = {qk_compressed_block(j->compressed, b)->v, j->eigen->block[b]->v}});
  qk_dev_sync(dev);
  qk_eigen_destroy(j->eigen);
  j->eigen = NULL;
  return qk_comm_agree(qk_eigens_comm(s), qk_dev_status(dev), NULL);
}

qk_status_t qk_eigens_begin_refining(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  qk_status_t status = qk_lanczos_vectors(j->lanczos, &j->eigen, err);
  if (status != QK_OK) return status;
  j->made->restarts = j->eigen->restarts;
  qk_lanczos_destroy(j->lanczos);
  j->lanczos = NULL;
  status = qk_compressed_create(s->setup->op, j->work, j->basis, &j->smoother, j->eigen->n,
                                &j->compressed, err);
  if (status != QK_OK) return status;
  j->basis = NULL;
  j->stage = REFINE;
  return hand_over(s);
}

qk_status_t qk_eigens_refine(qk_eigens_t *s, qk_err_t *err) {
  qk_eigens_job_t *j = &s->job;
  bool over = false;
  const qk_status_t status = qk_compressed_step(j->compressed, &over, err);
  if (status != QK_OK || !over) return status;
  const double *value = qk_compressed_values(j->compressed),
               *residual = qk_compressed_residuals(j->compressed);
  for (int i = 0; i < j->order.problem.count; i++) {
    j->made->number[2 * i] = value[i];
    j->made->number[2 * i + 1] = residual[i];
  }
  j->h = j->made->h;
  j->block = cut_of(s)->n / B;
  j->stage = COLLECT;
  return QK_OK;
}

qk_status_t qk_eigens_collect_coefficients(qk_eigens_t *s, int b) {
  qk_eigens_job_t *j = &s->job;
  const qk_field_t *block = qk_compressed_block(j->compressed, b - cut_of(s)->n / B);
  return qk_eigen_part_get_coefficients(&j->h, block, j->made->part[b]);
}
