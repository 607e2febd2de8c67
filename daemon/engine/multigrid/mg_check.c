/*
 * Checks of a hierarchy: its invariants on random vectors, how well the prolongators represent
 * freshly relaxed vectors, and the reduction of an outer iteration.
 */
#include <math.h>

#include "daemon/base/log.h"
#include "daemon/engine/krylov/solver.h"
#include "daemon/engine/multigrid/cycle.h"
#include "daemon/engine/multigrid/mg_polynomial.h"
#include "daemon/engine/multigrid/mg_vectors.h"
#include "daemon/engine/multigrid/nullspace.h"

enum { OUTER = 8 }; /* iterations that the convergence factor is measured over */

static const double worst_convergence = 0.95;
/* A polynomial is dropped if its rate of convergence is less than this part of ca-gcr's. */
static const double least_rate = 0.75;

/* Rounding of what is stored, with room for the condition of A_c (galerkin). */
static double orthonormality_limit(const qk_mg_level_params_t *p) {
  return p->prolongator == QK_HALF ? 2e-3 : 1e-5;
}
static double galerkin_limit(qk_prec_t store) {
  return store == QK_HALF ? 2e-2 : 1e-3;
}

/* |a - b| / |b|; a is overwritten. A call of an iteration (device.h). */
static double distance(qk_field_t *a, const qk_field_t *b) {
  double diff = 0, norm = 0;
  qk_dev_blas(a->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {a->v, a->v, b->v}});
  qk_mg_norm2(a, &diff);
  qk_mg_norm2(b, &norm);
  return sqrt(diff / norm);
}

/* The fields that invariants are looked at with: one column each. */
typedef struct probe {
  qk_field_t *fine, *image;           /* of level l */
  qk_field_t *phi, *coarse, *product; /* of level l+1 */
  /* With a twist, which the levels have with factors of their own: the invariants are those of the
   * sum over both flavours, where it is no more. minus: the flavour of the column. */
  qk_field_t *other; /* of level l+1 */
  void *minus;
  double *weight; /* device; of coarse operators of each flavour in that sum; NULL: 1 */
  bool finest;    /* level l has no weights */
} probe_t;

static void probe_destroy(const qk_device_t *dev, probe_t *p) {
  if (p->weight) dev->ops->free(dev->ctx, p->weight);
  if (p->minus) dev->ops->free(dev->ctx, p->minus);
  qk_field_destroy(p->other);
  qk_field_destroy(p->product);
  qk_field_destroy(p->coarse);
  qk_field_destroy(p->phi);
  qk_field_destroy(p->image);
  qk_field_destroy(p->fine);
}

/* w_+ M_+ + w_- M_- has no twist, and w_+ + w_- = 2. */
static qk_status_t weigh(const qk_operator_t *op, double **weight) {
  const qk_device_t *dev = op->dev;
  const double s = op->schur.twist, w[2][2] = {{2 * s / (1 + s)}, {2 / (1 + s)}};
  void *memory = NULL;
  if (!op->schur.is) return QK_OK;
  const qk_status_t status = dev->ops->alloc(dev->ctx, sizeof w, &memory);
  if (status) return status;
  *weight = memory;
  qk_dev_copy(dev, memory, w, sizeof w, QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

static qk_status_t probe_create(const qk_mg_level_t *level, probe_t *p) {
  qk_field_t **fine[] = {&p->fine, &p->image}, **coarse[] = {&p->phi, &p->coarse, &p->product};
  qk_status_t status = QK_OK;
  for (int i = 0; !status && i < 2; i++)
    status = qk_field_create(&level[0].dev, QK_SINGLE, 1, QK_FULL, fine[i]);
  for (int i = 0; !status && i < 3; i++)
    status = qk_field_create(&level[1].dev, QK_SINGLE, 1, QK_FULL, coarse[i]);
  if (status || level[0].op->twist == 0) return status;
  status = qk_field_create(&level[1].dev, QK_SINGLE, 1, QK_FULL, &p->other);
  if (status) return status;
  status = weigh(level[1].op, &p->weight);
  return status ? status : qk_mg_all_minus(&level[0].dev, 1, &p->minus);
}

static void scale(qk_field_t *f, const double *factor) {
  qk_dev_blas(f->dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {f->v}, .c = {factor}});
}

/* plus + minus, with weights if there are any; minus is overwritten then. */
static void add(qk_field_t *plus, qk_field_t *minus, const double *weight) {
  if (weight) {
    scale(plus, weight);
    scale(minus, weight + 2);
  }
  qk_dev_blas(plus->dev, QK_BLAS_ADD, (qk_blas_args_t){.f = {plus->v, minus->v}});
}

/* What the other flavour adds to P^+ M P phi and M_c phi; fine = P phi. */
static void add_other_flavour(qk_mg_level_t *level, const probe_t *p) {
  if (!p->minus) return;
  qk_flavours_set(level[0].op, p->minus);
  qk_operator_apply(level[0].op, p->image, p->fine);
  qk_prolongator_restrict(level[0].down, p->other, p->image);
  add(p->coarse, p->other, p->finest ? NULL : p->weight);
  qk_operator_apply(level[1].op, p->other, p->phi);
  add(p->product, p->other, p->weight);
  qk_flavours_set(level[0].op, NULL);
}

/* P^+ P phi = phi and P^+ M P phi = M_c phi. */
static qk_status_t invariants(qk_mg_level_t *level, const probe_t *p, uint64_t seed) {
  qk_mg_level_health_t *health = &level[0].health;
  qk_dev_note(&level[1].dev, qk_nullspace_random(&level[1].dev, seed, p->phi));
  qk_prolongator_prolong(level[0].down, p->fine, p->phi, false);
  qk_operator_apply(level[0].op, p->image, p->fine);
  qk_prolongator_restrict(level[0].down, p->coarse, p->fine);
  health->orthonormality = distance(p->coarse, p->phi);
  qk_prolongator_restrict(level[0].down, p->coarse, p->image);
  qk_operator_apply(level[1].op, p->product, p->phi);
  add_other_flavour(level, p);
  health->galerkin = distance(p->coarse, p->product);
  return qk_dev_status(&level[0].dev);
}

/* |v - P P^+ v| / |v| of a vector that was not there when the prolongator was made. */
static qk_status_t representation(const qk_mg_making_t *making, int l, const probe_t *p,
                                  qk_err_t *err) {
  qk_mg_level_t *level = &making->mg->level[l];
  qk_status_t status = qk_mg_relax(making, l, 0, p->fine, err);
  if (status) return status;
  qk_prolongator_restrict(level->down, p->coarse, p->fine);
  qk_prolongator_prolong(level->down, p->image, p->coarse, false);
  level->health.representation = distance(p->image, p->fine);
  return qk_dev_status(&level->dev);
}

static qk_status_t measure_level(const qk_mg_making_t *making, int l, probe_t *p, qk_err_t *err) {
  qk_mg_level_t *level = &making->mg->level[l];
  qk_status_t status = qk_comm_agree(level->geom.comm, probe_create(level, p), err);
  if (status) return status;
  status = invariants(level, p, making->seed);
  return status || making->effort == 0 ? status : representation(making, l, p, err);
}

static qk_status_t check_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  probe_t p = {.finest = l == 0};
  qk_mg_making_t making = *m;
  making.seed = m->mg->params.seed + 7919 * (uint64_t)(l + 1);
  qk_status_t status = measure_level(&making, l, &p, err);
  probe_destroy(&m->mg->level[0].dev, &p);
  return qk_comm_agree(m->mg->level[0].geom.comm, status, err);
}

static qk_status_t judge_level(const qk_mg_t *mg, int l, qk_err_t *err) {
  const qk_mg_level_health_t *h = &mg->level[l].health;
  const double ortho = orthonormality_limit(&mg->params.level[l]);
  const double galerkin = galerkin_limit(mg->params.level[l + 1].store);
  if (!(h->orthonormality <= ortho))
    return qk_fail(err, QK_BREAKDOWN, "multigrid: level %d: |P^+ P - 1| = %.3g: at most %.3g", l,
                   h->orthonormality, ortho);
  if (!(h->galerkin <= galerkin))
    return qk_fail(err, QK_BREAKDOWN, "multigrid: level %d: |P^+ M P - M_c| = %.3g: at most %.3g",
                   l, h->galerkin, galerkin);
  if (!isfinite(h->representation) || !isfinite(h->null_residual))
    return qk_fail(err, QK_BREAKDOWN, "multigrid: level %d: null vectors are not finite", l);
  return QK_OK;
}

/* A few outer iterations on a random right-hand side. */
static qk_status_t run_outer(const qk_mg_making_t *m, qk_solver_t *solver) {
  qk_mg_t *mg = m->mg;
  const qk_device_t *dev = &mg->level[0].dev;
  qk_noise_args_t noise = {.lat = dev->geom->lat,
                           .field = qk_solver_rhs(solver, 0)->v,
                           .rhs = -1,
                           .seed = mg->params.seed + 104729};
  qk_status_t status = dev->ops->noise(dev->ctx, &noise);
  if (status) return status;
  status = qk_solver_fill(solver, 0, 1e-6, OUTER);
  if (status) return status;
  const qk_slot_t *slot = qk_solver_slot(solver, 0);
  while (qk_solver_running(solver)) {
    if (m->progress) m->progress(m->arg, "convergence", slot->iterations, OUTER);
    status = qk_solver_step(solver);
    if (status) return status;
  }
  mg->convergence =
      slot->iterations > 0 ? pow(slot->residual, 1 / (double)slot->iterations) : INFINITY;
  return QK_OK;
}

static qk_status_t measure_convergence(const qk_mg_making_t *m, qk_err_t *err) {
  qk_mg_t *mg = m->mg;
  qk_mg_level_t *finest = &mg->level[0];
  qk_cycle_t *cycle;
  qk_solver_t *solver = NULL;
  qk_status_t status = qk_cycle_create(mg, QK_SINGLE, 1, &cycle, err);
  if (status) return status;
  qk_solver_params_t params = {.method = "gcr",
                               .inner = QK_SINGLE,
                               .nslot = 1,
                               .check = 1,
                               .precond = qk_cycle_precond(cycle)};
  status = qk_solver_create(finest->op, finest->work, &params, &solver, err);
  if (!status) status = qk_comm_agree(finest->geom.comm, run_outer(m, solver), err);
  qk_solver_destroy(solver);
  qk_cycle_destroy(cycle);
  return status;
}

/* The smoother of level 0 learns what the corrections leave; then the convergence is measured. A
 * polynomial with which that is clearly slower than with ca-gcr is dropped. */
static qk_status_t learn_and_measure(const qk_mg_making_t *m, qk_err_t *err) {
  qk_mg_t *mg = m->mg;
  double rate = 0;
  qk_status_t status = qk_mg_learn_polynomial(mg, &rate, m->progress, m->arg, err);
  if (status) return status;
  status = measure_convergence(m, err);
  if (status || mg->level[0].polynomial.n == 0 || log(mg->convergence) <= least_rate * rate)
    return status;
  if (qk_comm_rank(mg->level[0].geom.comm) == 0)
    qk_warn("multigrid",
            "level 0 is smoothed by ca-gcr: with the polynomial an iteration leaves %.3g of the "
            "residual of a random source, %.3g without",
            mg->convergence, exp(rate));
  mg->level[0].polynomial.n = 0;
  return measure_convergence(m, err);
}

static qk_status_t measure(const qk_mg_making_t *making, qk_err_t *err) {
  for (int l = 0; l + 1 < making->mg->nlevel; l++) {
    qk_status_t status = check_level(making, l, err);
    if (status) return status;
    status = judge_level(making->mg, l, err);
    if (status) return status;
  }
  return learn_and_measure(making, err);
}

static qk_status_t check(const qk_mg_making_t *making, qk_err_t *err) {
  qk_mg_t *mg = making->mg;
  qk_status_t status = measure(making, err);
  for (int l = 0; l < mg->nlevel; l++) qk_work_trim(mg->level[l].work);
  if (status) return status;
  if (!(mg->convergence <= worst_convergence))
    return qk_fail(err, QK_BREAKDOWN,
                   "multigrid: an iteration leaves %.3g of the residual of a random source: at "
                   "most %.3g",
                   mg->convergence, worst_convergence);
  return QK_OK;
}

qk_status_t qk_mg_check(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  return check(&(qk_mg_making_t){.mg = mg, .progress = progress, .arg = arg, .effort = 1}, err);
}

qk_status_t qk_mg_check_restored(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  return check(&(qk_mg_making_t){.mg = mg, .progress = progress, .arg = arg}, err);
}
