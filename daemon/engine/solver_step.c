/*
 * What happens to slots at check points: the recursion's word is weighed, solution and residual are
 * brought up to date in double where it is time, and slots end. All thresholds compare numbers of one
 * slot with each other.
 */
#include <math.h>
#include <string.h>

#include "daemon/engine/solver_impl.h"

enum {
  MAX_STALLS = 6, /* recomputations without gain before a slot is given up */
  PACE = 2,       /* see in_step */
  PATIENCE = 400  /* iterations without a new low of |r| before the recursion starts anew */
};
static const double divergence = 1e8; /* growth of |r| that no later iteration mends */
static const double disbelief = 10;   /* true |r| over that of the recursion that ends its use */
/* What is left of the residual by a recomputation that counts as a gain; by one that only ends a run of preconditioned
 * iterations: as slow as a setup may be that passes its checks. */
static const double gain = 0.5, gain_of_run = 0.95;

/* What a check point has decided. All masks are [nslot]. */
typedef struct plan {
  uint8_t act[QK_MAX_RHS];   /* r is computed anew */
  uint8_t add[QK_MAX_RHS];   /* with xi added to the solution, not dropped */
  uint8_t fresh[QK_MAX_RHS]; /* and the recursion starts from it */
  uint8_t due[QK_MAX_RHS];   /* for no other reason than that it is time */
  uint8_t done[QK_MAX_RHS];  /* perhaps the end */
} plan_t;

static bool any(const uint8_t *mask) {
  return memchr(mask, 1, QK_MAX_RHS) != NULL;
}

static void record(qk_solver_t *s, int i, double r) {
  qk_slot_t *slot = &s->slot[i];
  qk_slot_work_t *w = &s->w[i];
  const int capacity = (int)(sizeof slot->history / sizeof *slot->history);
  slot->residual = (isfinite(r) ? r : w->best) * s->op->diag_scale / w->norm_b;
  if (w->checks++ % w->history_stride) return;
  if (slot->nhistory == capacity) {
    for (int k = 0; k < capacity / 2; k++) slot->history[k] = slot->history[2 * k];
    slot->nhistory = capacity / 2;
    w->history_stride *= 2;
  }
  slot->history[slot->nhistory++] = (float)slot->residual;
}

/* With a preconditioner iterations are few and dear, and what ends a slot are passes over the whole block: of several
 * slots those that were filled together end together, in iterations of their own that are multiples of PACE. */
static bool in_step(const qk_solver_t *s, const qk_slot_t *slot) {
  return s->nslot == 1 || !s->params.precond.apply || slot->iterations % PACE == 0;
}

static void judge(qk_solver_t *s, int i, plan_t *plan) {
  qk_slot_t *slot = &s->slot[i];
  qk_slot_work_t *w = &s->w[i];
  int64_t first = slot->iterations + 1;
  for (int k = 0; k < s->check; k++) {
    double r = sqrt(s->trace[k * s->nslot + i]);
    if (r < 0.99 * w->lowest) {
      w->lowest = r;
      w->lowest_at = first + k;
    }
  }
  double r = sqrt(s->trace[(s->check - 1) * s->nslot + i]);
  slot->iterations += s->check;
  slot->applications +=
      s->check * (s->method->applications_per_iteration + s->params.precond.applications);
  record(s, i, r);
  w->said = r;

  bool lost = !(r <= divergence * w->best);
  bool reached = (r <= w->target && in_step(s, slot)) || r <= s->params.reliable * w->best;
  bool stuck = slot->iterations - w->lowest_at >= PATIENCE;
  bool old = s->params.inner != QK_DOUBLE && slot->iterations - w->recomputed_at >= s->refresh &&
             r < w->best;
  if (lost || (s->broken[i] && !reached)) w->breakdown = true;
  plan->act[i] =
      lost || reached || s->broken[i] || stuck || old || slot->iterations >= slot->max_iter;
  plan->due[i] = old && !(lost || reached || s->broken[i] || stuck);
  plan->add[i] = plan->act[i] && !lost;
  plan->fresh[i] = plan->act[i] && (lost || s->broken[i] || (stuck && !reached));
}

static qk_status_t masked(qk_solver_t *s, qk_blas_op_t op, const qk_field_t *f0,
                          const qk_field_t *f1, const uint8_t *mask) {
  const uint8_t *on;
  if (!any(mask)) return QK_OK;
  qk_status_t status = qk_solver_upload_mask(s, mask, &on);
  if (status) return status;
  qk_blas_args_t args = {.f = {f0->v}, .mask = on};
  if (f1) args.f[1] = f1->v;
  return qk_solver_blas(s, op, &args);
}

/* bhat - Mhat x in double. */
static qk_status_t residual(qk_solver_t *s, qk_field_t *r, const qk_field_t *x) {
  return s->op->ops->apply_eo(s->op, r, x, false, s->bhat);
}

/* Brings the books of a slot up to date after r was recomputed; norm: of the residual of xe + xi. */
static void account(qk_solver_t *s, int i, bool taken, double norm, const plan_t *plan) {
  qk_slot_t *slot = &s->slot[i];
  qk_slot_work_t *w = &s->w[i];
  const bool paid = s->params.precond.apply != NULL; /* an update is a whole run then */
  const bool gained = taken && norm < (paid && plan->due[i] ? gain_of_run : gain) * w->best;
  slot->applications += (plan->add[i] && !taken ? 2 : 1) + (s->params.deflation ? 2 : 0);
  if (gained)
    w->stalls = 0;
  else if (!taken || !plan->due[i] || paid)
    w->stalls++;
  if (gained) w->breakdown = false;
  if (taken) w->best = norm;
  w->lowest = w->best;
  w->lowest_at = w->recomputed_at = slot->iterations;
}

/* x += xi where that is an improvement, r = bhat - Mhat x in double, xi = 0. */
static qk_status_t recompute(qk_solver_t *s, plan_t *plan) {
  uint8_t take[QK_MAX_RHS] = {0}, keep[QK_MAX_RHS] = {0}, reject[QK_MAX_RHS] = {0};
  double norm2[QK_MAX_RHS];
  qk_field_t *x, *r = NULL;
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, s->nslot, QK_EVEN, &x);
  if (status) return status;
  status = qk_work_reserve(s->work, QK_DOUBLE, s->nslot, QK_EVEN, &r);
  if (!status) status = qk_solver_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {x->v, s->xe->v}});
  if (!status) status = qk_solver_gather(s, plan->add);
  if (!status) status = masked(s, QK_BLAS_ADD, x, s->xi, plan->add);
  if (!status) status = residual(s, r, x);
  if (!status) status = qk_solver_deflate(s, x, r);
  if (!status) status = qk_solver_norm2(s, r->v, norm2);
  if (status) goto done;
  for (int i = 0; i < s->nslot; i++) {
    if (!plan->act[i]) continue;
    double norm = sqrt(norm2[i]);
    bool moved = plan->add[i] || s->params.deflation; /* x is not xe */
    take[i] = moved && norm < s->w[i].best;
    reject[i] = moved && !take[i];
    keep[i] = !reject[i];
    if (reject[i] || norm > disbelief * s->w[i].said) plan->fresh[i] = 1;
    account(s, i, take[i], norm, plan);
  }
  status = masked(s, QK_BLAS_COPY, s->xe, x, take);
  if (!status) status = masked(s, QK_BLAS_COPY, s->r, r, keep);
  if (!status && any(reject)) {
    status = residual(s, r, s->xe);
    if (!status) status = masked(s, QK_BLAS_COPY, s->r, r, reject);
  }
  if (!status) status = masked(s, QK_BLAS_ZERO, s->xi, NULL, plan->act);
done:
  qk_work_release(s->work, r);
  qk_work_release(s->work, x);
  return status;
}

/* The full solution of all slots from xe and b; |b - M x|^2; then x in the units of the source. */
static qk_status_t solutions(qk_solver_t *s, double *norm2) {
  qk_field_t *r;
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, s->nslot, QK_FULL, &r);
  if (status) return status;
  status = s->op->ops->reconstruct_eo(s->op, s->x, s->xe, s->b);
  if (!status) status = s->op->ops->apply(s->op, r, s->x, false, s->b, -1);
  if (!status) status = qk_solver_norm2(s, r->v, norm2);
  qk_work_release(s->work, r);
  if (status) return status;
  int up[QK_MAX_RHS];
  for (int i = 0; i < s->nslot; i++) up[i] = s->w[i].exponent;
  return qk_solver_scale(s, s->x->v, up, NULL);
}

qk_status_t qk_solver_finish(qk_solver_t *s, const uint8_t *mask, const qk_status_t *otherwise) {
  double norm2[QK_MAX_RHS];
  qk_status_t status = solutions(s, norm2);
  if (status) return status;
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    qk_slot_t *slot = &s->slot[i];
    qk_slot_work_t *w = &s->w[i];
    slot->applications++;
    slot->residual = sqrt(norm2[i]) / w->norm_b;
    if (slot->residual <= slot->tol)
      qk_solver_end_slot(s, i, QK_OK);
    else if (otherwise[i] || !isfinite(slot->residual))
      qk_solver_end_slot(s, i, otherwise[i] ? otherwise[i] : QK_BREAKDOWN);
    else
      w->target = 0.9 * w->best * slot->tol / slot->residual;
  }
  return QK_OK;
}

/* Slots that have reached their target, or must end without. */
static qk_status_t end_slots(qk_solver_t *s, plan_t *plan) {
  qk_status_t otherwise[QK_MAX_RHS] = {QK_OK};
  for (int i = 0; i < s->nslot; i++) {
    if (!plan->act[i]) continue;
    const qk_slot_work_t *w = &s->w[i];
    if (w->stalls >= MAX_STALLS)
      otherwise[i] = w->breakdown ? QK_BREAKDOWN : QK_NOT_CONVERGED;
    else if (s->slot[i].iterations >= s->slot[i].max_iter)
      otherwise[i] = QK_NOT_CONVERGED;
    plan->done[i] = otherwise[i] || w->best <= w->target;
  }
  return any(plan->done) ? qk_solver_finish(s, plan->done, otherwise) : QK_OK;
}

/* Tells the method which of the slots that go on have a new r. */
static qk_status_t resume(qk_solver_t *s, const plan_t *plan) {
  uint8_t fresh[QK_MAX_RHS] = {0}, replaced[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++) {
    if (!plan->act[i] || s->slot[i].state != QK_SLOT_RUNNING) continue;
    fresh[i] = plan->fresh[i];
    replaced[i] = !plan->fresh[i];
  }
  qk_status_t status = any(replaced) ? s->method->replaced(s, replaced) : QK_OK;
  if (!status && any(fresh)) status = s->method->start(s, fresh);
  return status;
}

qk_status_t qk_solver_step(qk_solver_t *s) {
  plan_t plan = {0};
  if (s->failed || qk_solver_running(s) == 0) return s->failed;
  qk_status_t status = s->method->iterate(s);
  if (status) return status;
  for (int i = 0; i < s->nslot; i++)
    if (s->slot[i].state == QK_SLOT_RUNNING) judge(s, i, &plan);
  if (!any(plan.act)) return QK_OK;
  status = recompute(s, &plan);
  if (!status) status = end_slots(s, &plan);
  if (!status) status = resume(s, &plan);
  return status ? status : qk_solver_set_running(s);
}
