#include "daemon/engine/eigen/lanczos_params.h"

#include <math.h>

#include "daemon/engine/eigen/lanczos_rotate.h"

enum { B = QK_EIGEN_BLOCK };
static const double sharpness = 3;      /* order of the polynomial over sqrt(top / window) */
static const double laplacian_top = 12; /* of any links */

static int64_t dimension(const qk_geom_t *geom, qk_lanczos_kind_t kind) {
  const int vectors = geom->inner > 1 ? geom->inner : 1;
  if (kind == QK_LANCZOS_LAPLACIAN)
    return (int64_t)3 * geom->global[0] * geom->global[1] * geom->global[2];
  return geom->volume / 2 * (qk_geom_wire_reals(geom) / 2) * vectors * qk_geom_slices(geom);
}

qk_status_t qk_lanczos_has_gamma5(const qk_operator_t *op, qk_err_t *err) {
  const qk_geom_t *geom = op->dev->geom;
  const bool one = qk_geom_slices(geom) == 1 && geom->inner <= 1;
  if (one && op->adjoint == QK_ADJOINT_GAMMA5 && op->twist == 0) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED, "gamma_5 M of the action %s is not hermitian", op->action);
}

/* Of the space that the vectors are in. */
static int64_t dimension_of(const qk_geom_t *geom, const qk_lanczos_params_t *p) {
  return p->within ? qk_coherent_numbers(geom, &p->within->cut) : dimension(geom, p->kind);
}

int qk_lanczos_most(const qk_geom_t *geom, qk_lanczos_kind_t kind) {
  const int64_t most = dimension(geom, kind) / 4;
  return most < QK_EIGEN_MAX ? (int)most : QK_EIGEN_MAX;
}

int qk_lanczos_round_up(int n) {
  return (n + B - 1) / B * B;
}

qk_status_t qk_lanczos_complete(const qk_geom_t *geom, qk_lanczos_params_t *p, qk_err_t *err) {
  const int64_t all = dimension_of(geom, p);
  const int most = all / 4 < QK_EIGEN_MAX ? (int)(all / 4) : QK_EIGEN_MAX;
  if (p->n < 1 || p->n > most)
    return qk_fail(err, QK_BAD_ARGUMENT, "eigenvectors = %d: must be 1 to %d on this lattice", p->n,
                   most);
  int least = qk_lanczos_round_up(p->n) + QK_LANCZOS_EXTRA * B, limit = QK_LANCZOS_SPACE - B;
  if (all - B < limit) limit = (int)(all / B - 1) * B;
  if (p->space == 0) {
    p->space = qk_lanczos_round_up(2 * p->n + 4 * B);
    if (p->space > limit) p->space = limit;
  }
  if (p->space < least || p->space > limit || p->space % B != 0)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "Krylov space = %d: must be a multiple of %d from %d to %d", p->space, B, least,
                   limit);
  if (p->order < 0 || p->order > QK_LANCZOS_ORDER_MAX || p->order % 2 != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "order of the polynomial = %d: must be even, 0 to %d",
                   p->order, QK_LANCZOS_ORDER_MAX);
  if (!(p->top >= 0 && isfinite(p->top)) || !(p->window >= 0) ||
      (p->top > 0 && !(p->window < p->top)))
    return qk_fail(err, QK_BAD_ARGUMENT, "window = %g, top = %g: 0 <= window < top", p->window,
                   p->top);
  if (p->prec != QK_DOUBLE && p->prec != QK_SINGLE)
    return qk_fail(err, QK_BAD_ARGUMENT, "precision = %d of eigenvectors: 0 or 1", (int)p->prec);
  if (p->tol == 0) p->tol = 1e-5;
  double finest = p->prec == QK_DOUBLE ? 1e-13 : 1e-6;
  if (!(p->tol >= finest && p->tol < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "tolerance of eigenvectors = %g: must be %g to 1", p->tol,
                   finest);
  if (p->accept == 0) p->accept = p->tol;
  if (!(p->accept >= p->tol && p->accept < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "accepted tolerance of eigenvectors = %g: must be %g to 1",
                   p->accept, p->tol);
  if (p->kind == QK_LANCZOS_LAPLACIAN && p->top == 0) p->top = laplacian_top;
  if (p->restarts == 0) p->restarts = 40;
  if (p->restarts < 0 || p->restarts > 100000)
    return qk_fail(err, QK_BAD_ARGUMENT, "restarts = %d: must be 1 to 100000", p->restarts);
  return QK_OK;
}

int64_t qk_lanczos_bytes(const qk_geom_t *geom, qk_subset_t system,
                         const qk_lanczos_params_t *params) {
  qk_lanczos_params_t p = *params;
  if (qk_lanczos_complete(geom, &p, NULL) != QK_OK) return 0;
  const int64_t block = (int64_t)qk_field_bytes(geom, p.prec, B, system);
  const int more = qk_geom_slices(geom) > 1 ? 3 : 0; /* on the way between two orders of columns */
  return (p.space / B + 1 + 4 + more) * block +
         qk_lanczos_rotate_room(geom, p.prec, p.space / B,
                                p.kind == QK_LANCZOS_NORMAL ? system : QK_FULL);
}

int64_t qk_lanczos_within_bytes(const qk_geom_t *geom, qk_subset_t system,
                                const qk_lanczos_params_t *params, const qk_coherent_cut_t *cut) {
  const qk_coherent_t within = {.cut = *cut};
  const qk_geom_t small = qk_coherent_geom(geom, cut);
  qk_lanczos_params_t p = *params;
  p.within = &within;
  if (qk_lanczos_complete(geom, &p, NULL) != QK_OK) return 0;
  const int64_t block = (int64_t)qk_field_bytes(&small, p.prec, B, QK_EVEN),
                wide = (int64_t)qk_field_bytes(geom, p.prec, B, system);
  const int more = qk_geom_slices(geom) > 1 ? 3 : 0; /* on the way between two orders of columns */
  return (p.space / B + 2) * block + (2 + 4 + more) * wide +
         qk_lanczos_rotate_room(&small, p.prec, p.space / B, QK_EVEN);
}

int qk_lanczos_order(double window, double top) {
  double order = sharpness * sqrt(top / window);
  if (!(order < QK_LANCZOS_ORDER_MAX)) return QK_LANCZOS_ORDER_MAX;
  return order < 4 ? 4 : (int)(order / 2) * 2;
}
