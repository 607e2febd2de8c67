/*
 * solver_stop.c: when the residuals of a slot are small enough, and when they do not fall any more.
 *
 * The heavy-quark residual is sqrt(sum_n |r(n)|^2 / |x(n)|^2 / V) over the V sites n of the
 * lattice, a site with x(n) = 0 counts 1; of a doublet each of its two vectors has V sites. On an
 * open boundary the outer slices, where fields are 0, do not take part. It is that of the solution
 * that is handed out, stopping.factor x, with r = b - M x.
 */
#include <float.h>
#include <math.h>

#include "daemon/engine/krylov/solver_impl.h"

/* How far the heavy-quark residual lets the target fall at once: it need not fall as |r| does, and
 * what a target below rounding costs is known only when it has been tried. */
static const double largest_reach = 0.01;
/* What counts as falling, for a slot that asks for more than tol. */
static const double quarter = 0.75;

static double least(double a, double b) {
  return a < b ? a : b;
}

double qk_stop_relative(const qk_stopping_t *p, double norm_b) {
  double wanted = INFINITY;
  if (p->tol > 0) wanted = p->tol;
  if (p->tol_abs > 0) wanted = least(wanted, least(DBL_MAX, p->tol_abs / norm_b));
  return wanted;
}

double qk_stop_first(const qk_stopping_t *p, double norm_b) {
  const double wanted = qk_stop_relative(p, norm_b), scale = p->factor != 0 ? fabs(p->factor) : 1;
  return isfinite(wanted) ? wanted : least(0.1, p->tol_hq * scale);
}

bool qk_stop_reached(const qk_slot_t *slot) {
  const qk_stopping_t *p = &slot->stopping;
  if (!isfinite(slot->residual)) return false;
  if (p->tol > 0 && !(slot->residual <= p->tol)) return false;
  if (p->tol_abs > 0 && !(slot->residual * slot->norm_b <= p->tol_abs)) return false;
  return !(p->tol_hq > 0) || slot->hq_residual <= p->tol_hq;
}

double qk_stop_target(const qk_slot_t *slot, double best) {
  const qk_stopping_t *p = &slot->stopping;
  double target = INFINITY;
  if (p->tol > 0) target = 0.9 * best * p->tol / slot->residual;
  if (p->tol_abs > 0)
    target = least(target, 0.9 * best * (p->tol_abs / slot->norm_b) / slot->residual);
  if (p->tol_hq > 0 && !(slot->hq_residual <= p->tol_hq)) {
    const double reach = p->tol_hq / slot->hq_residual;
    target = least(target, 0.9 * best * (reach > largest_reach ? reach : largest_reach));
  }
  return target;
}

void qk_stop_begin(qk_slot_t *slot, qk_slot_work_t *w) {
  slot->hq_residual = NAN;
  w->flat = 0;
  w->flat_norm = w->flat_hq = INFINITY;
}

void qk_stop_refreshed(const qk_slot_t *slot, qk_slot_work_t *w, bool counts) {
  if (!qk_stopping_asks_more(&slot->stopping)) return;
  if (w->best < quarter * w->flat_norm) {
    w->flat_norm = w->best;
    w->flat = 0;
  } else if (counts) {
    w->flat++;
  }
}

void qk_stop_measured(qk_slot_t *slot, double ratios, double zeros, double sites) {
  const double factor = slot->stopping.factor != 0 ? fabs(slot->stopping.factor) : 1;
  slot->hq_residual = sqrt((ratios / factor / factor + zeros) / sites);
}

void qk_stop_measured_at(const qk_slot_t *slot, qk_slot_work_t *w) {
  if (slot->hq_residual < quarter * w->flat_hq) {
    w->flat_hq = slot->hq_residual;
    w->flat = 0;
  }
}
