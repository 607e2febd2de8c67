/*
 * Check points of slots: compares the recursive residual with the true one, updates solution and
 * residual in double when necessary, and ends slots. All thresholds compare numbers of the same
 * slot.
 */
#include <math.h>
#include <string.h>

#include "daemon/engine/krylov/solver_impl.h"

enum {
  MAX_STALLS = 6, /* recomputations without gain before a slot is given up */
  MAX_FLAT = 3,   /* the same of a slot that asks for more than tol: without a quarter */
  PATIENCE = 400  /* iterations without a new low of |r| before the recursion starts anew */
};
static const double divergence = 1e8; /* growth of |r| from which no later iteration recovers */
static const double max_residual_gap =
    10; /* true |r| over that of the recursion that ends its use */
/* A recomputation counts as a gain if the residual is reduced by this factor; `gain_of_run` for
 * one that only ends a run of preconditioned iterations: as slow as a setup that just passes its
 * checks. */
static const double gain = 0.5, gain_of_run = 0.95;

/* What errors of an inexact operator may make of the residual that is aimed at, and the largest of
 * them: smaller ones cost more than the iterations that they save (docs/performance.md). */
static const double share_of_error = 0.1, coarsest = 0.01;

/* What a check point has decided. All masks are [nslot]. */
typedef struct plan {
  uint8_t act[QK_MAX_RHS];     /* r is computed anew */
  uint8_t add[QK_MAX_RHS];     /* with xi added to the solution, not dropped */
  uint8_t fresh[QK_MAX_RHS];   /* and the recursion starts from it */
  uint8_t due[QK_MAX_RHS];     /* for no other reason than that it is time */
  uint8_t last[QK_MAX_RHS];    /* with the full operator: the recursion says that this is the end */
  uint8_t checked[QK_MAX_RHS]; /* so it was, and the residuals of the slot are those at x */
  uint8_t done[QK_MAX_RHS];    /* perhaps the end */
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
  bool reached = r <= w->target || r <= s->params.reliable * w->best;
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

/* Slots of a group are updated, and begin anew, together. */
static void share(const qk_solver_t *s, plan_t *plan) {
  for (int i = 0; i < s->nslot && s->method->grouped; i++) {
    if (!plan->act[i]) continue;
    for (int k = 0; k < s->nslot; k++) {
      if (s->slot[k].state != QK_SLOT_RUNNING || !qk_solver_shares(s, i, k)) continue;
      if (!plan->act[k]) plan->act[k] = plan->add[k] = plan->due[k] = 1;
      if (plan->fresh[i]) plan->fresh[k] = 1;
    }
  }
}

/* Brings the books of a slot up to date after r was recomputed. */
static void account(qk_solver_t *s, int i, const qk_update_t *update, const plan_t *plan) {
  qk_slot_t *slot = &s->slot[i];
  qk_slot_work_t *w = &s->w[i];
  const bool paid = s->params.precond.apply != NULL; /* an update is a whole run then */
  const bool gained =
      update->taken && update->norm < (paid && plan->due[i] ? gain_of_run : gain) * w->best;
  slot->applications += !plan->last[i]; /* that of a check is counted there */
  slot->applications += (plan->add[i] && !update->taken) + (qk_solver_deflation(s, i) ? 2 : 0);
  const bool counts = !update->taken || !plan->due[i] || paid;
  if (gained)
    w->stalls = 0;
  else if (counts)
    w->stalls++;
  if (gained) w->breakdown = false;
  if (update->taken) w->best = update->norm;
  qk_stop_refreshed(slot, w, counts);
  if (update->checked) qk_stop_measured_at(slot, w);
  w->lowest = w->best;
  w->lowest_at = w->recomputed_at = slot->iterations;
}

/* x += xi where that is an improvement, r = bhat - Mhat x in double, xi = 0. Slots that the last
 * update was enough for end. */
static void recompute(qk_solver_t *s, plan_t *plan) {
  qk_update_t update[QK_MAX_RHS];
  double residual[QK_MAX_RHS] = {0}, hq_residual[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++) {
    residual[i] = s->slot[i].residual;
    hq_residual[i] = s->slot[i].hq_residual;
  }
  qk_solver_gather(s, plan->add);
  qk_system_update(s, plan->act, plan->add, plan->last, update);
  for (int i = 0; i < s->nslot; i++) {
    if (!plan->act[i] || update[i].ended) continue;
    plan->checked[i] = update[i].checked;
    if (update[i].rejected) { /* and what was found with it */
      s->slot[i].residual = residual[i];
      s->slot[i].hq_residual = hq_residual[i];
    }
    if (update[i].rejected || update[i].norm > max_residual_gap * s->w[i].said) plan->fresh[i] = 1;
    account(s, i, &update[i], plan);
  }
  share(s, plan);
  qk_solver_clear_correction(s, plan->act);
}

bool qk_solver_reached(qk_solver_t *s, int i, double norm2) {
  s->slot[i].applications++;
  s->slot[i].residual = sqrt(norm2) / s->w[i].norm_b;
  return qk_stop_reached(&s->slot[i]);
}

static void end_slot(qk_solver_t *s, int i, qk_status_t status) {
  qk_system_end(s, i);
  qk_solver_end_slot(s, i, s->slot[i].why.code ? s->slot[i].why.code : status);
}

void qk_solver_end_reached(qk_solver_t *s, int i) {
  end_slot(s, i, QK_OK);
}

void qk_solver_finish(qk_solver_t *s, const uint8_t *mask, const qk_status_t *otherwise) {
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    const double norm2 = qk_system_reconstruct(s, i);
    if (!qk_dev_ok(s->dev)) return;
    qk_slot_t *slot = &s->slot[i];
    qk_slot_work_t *w = &s->w[i];
    const bool good = qk_solver_reached(s, i, norm2);
    qk_stop_measured_at(slot, w);
    const qk_status_t verdict =
        !otherwise[i] && w->flat >= MAX_FLAT ? QK_NOT_CONVERGED : otherwise[i];
    if (!good && !verdict && isfinite(slot->residual)) {
      w->target = qk_stop_target(slot, w->best);
      continue;
    }
    end_slot(s, i, good ? QK_OK : verdict ? verdict : QK_BREAKDOWN);
  }
}

/* Slots that have reached their target, or must end without. What the full operator has said of
 * those that were checked holds: they go on, with the target that follows, or end without. */
static void end_slots(qk_solver_t *s, plan_t *plan) {
  qk_status_t otherwise[QK_MAX_RHS] = {QK_OK};
  for (int i = 0; i < s->nslot; i++) {
    if (!plan->act[i] || s->slot[i].state != QK_SLOT_RUNNING) continue;
    qk_slot_work_t *w = &s->w[i];
    const qk_stopping_t *asked = &s->slot[i].stopping;
    if (w->stalls >= MAX_STALLS && !qk_stopping_asks_more(asked))
      otherwise[i] = w->breakdown ? QK_BREAKDOWN : QK_NOT_CONVERGED;
    else if (s->slot[i].iterations >= s->slot[i].max_iter)
      otherwise[i] = QK_NOT_CONVERGED;
    const bool perhaps = w->best <= w->target || asked->tol_hq > 0;
    plan->done[i] = otherwise[i] || w->flat >= MAX_FLAT || (perhaps && !plan->checked[i]);
    if (plan->checked[i] && !plan->done[i]) w->target = qk_stop_target(&s->slot[i], w->best);
  }
  if (any(plan->done)) qk_solver_finish(s, plan->done, otherwise);
}

/* Tells the method which of the slots that go on have a new r. */
static void resume(qk_solver_t *s, const plan_t *plan) {
  uint8_t fresh[QK_MAX_RHS] = {0}, replaced[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++) {
    if (!plan->act[i] || s->slot[i].state != QK_SLOT_RUNNING) continue;
    fresh[i] = plan->fresh[i];
    replaced[i] = !plan->fresh[i];
  }
  if (any(replaced)) s->method->replaced(s, replaced);
  if (any(fresh)) s->method->start(s, fresh);
}

/* Slots that end if the recursion is right, and those whose heavy-quark residual only the full
 * operator tells. */
static void foresee_ends(const qk_solver_t *s, plan_t *plan) {
  for (int i = 0; i < s->nslot; i++) {
    const qk_slot_work_t *w = &s->w[i];
    plan->last[i] =
        plan->act[i] && plan->add[i] && (w->said <= w->target || s->slot[i].stopping.tol_hq > 0);
  }
}

static void check_point(qk_solver_t *s, plan_t *plan) {
  for (int i = 0; i < s->nslot; i++)
    if (s->slot[i].state == QK_SLOT_RUNNING) judge(s, i, plan);
  if (!any(plan->act)) return;
  share(s, plan);
  foresee_ends(s, plan);
  recompute(s, plan);
  end_slots(s, plan);
  resume(s, plan);
  qk_solver_set_running(s);
}

/* The errors that applications of a step may have (J. van den Eshof, G. L. G. Sleijpen, SIAM J.
 * Matrix Anal. Appl. 26 (2004) 125; N. Cundy et al., hep-lat/0405003): they add up to the distance
 * of the true r from that of the recursion, in proportion to |r|. So that distance stays a part of
 * the |r| at which r is next computed in double, and the errors grow as |r| falls. Columns of a
 * group are mixed. */
static void choose_accuracy(const qk_solver_t *s, double *accuracy) {
  double least = INFINITY;
  for (int i = 0; i < s->nslot; i++) {
    const qk_slot_work_t *w = &s->w[i];
    const bool moved = s->slot[i].iterations > w->recomputed_at;
    const double now = moved ? w->said : w->best,
                 goal = fmax(w->target, s->params.reliable * w->best);
    const bool runs = s->slot[i].state == QK_SLOT_RUNNING;
    accuracy[i] = !runs ? INFINITY : now > 0 ? fmin(share_of_error * goal / now, coarsest) : 0;
    least = fmin(least, accuracy[i]);
  }
  for (int i = 0; i < s->nslot && s->method->grouped; i++) accuracy[i] = least;
}

qk_status_t qk_solver_step(qk_solver_t *s) {
  plan_t plan = {0};
  double accuracy[QK_MAX_RHS];
  if (s->failed || qk_solver_running(s) == 0) return s->failed;
  qk_solver_for_block(s);
  choose_accuracy(s, accuracy);
  qk_accuracy_set(s->op, accuracy);
  qk_status_t status = s->method->iterate(s);
  qk_accuracy_set(s->op, NULL);
  if (status == QK_OK) check_point(s, &plan);
  qk_solver_no_flavours(s);
  return status ? status : qk_dev_status(s->dev);
}
