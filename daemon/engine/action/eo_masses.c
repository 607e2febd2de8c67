#include "daemon/engine/action/eo_masses.h"

#include "daemon/engine/action/eo.h"

static double shift_of(const qk_operator_t *op, double mass) {
  (void)op;
  return mass * mass;
}

static bool holds(const qk_operator_t *op, const qk_field_t *f) {
  return qk_eo_parts(op)->want[f->v.prec];
}

static bool alike(const qk_field_t *a, const qk_field_t *b) {
  return a != b && a->v.prec == b->v.prec && a->v.nrhs == b->v.nrhs;
}

static qk_subset_t other(qk_subset_t parity) {
  return parity == QK_EVEN ? QK_ODD : QK_EVEN;
}

static qk_status_t apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double shift) {
  const qk_subset_t parity = in->v.subset;
  if (!alike(out, in) || !holds(op, in) || parity == QK_FULL || out->v.subset != parity)
    return QK_BAD_ARGUMENT;
  const qk_eo_pass_t first = {.c_hop = 1};
  const qk_eo_pass_t second = {.c_hop = -0.25, .c_x = shift, .x = in->v};
  qk_field_t *t = qk_work_take(op->work, in->v.prec, in->v.nrhs, other(parity));
  op->applications[in->v.prec]++;
  qk_eo_pass(op, &first, t->v, in->v);
  qk_eo_pass(op, &second, out->v, t->v);
  qk_work_release(op->work, t);
  return qk_dev_status(op->dev);
}

/* M^+ = m + 1/2 hop */
static qk_status_t lift(qk_operator_t *op, qk_field_t *x, const qk_field_t *y, double mass) {
  const qk_subset_t parity = y->v.subset;
  if (!alike(x, y) || !holds(op, y) || parity == QK_FULL || x->v.subset != QK_FULL)
    return QK_BAD_ARGUMENT;
  const qk_spinor_t here = qk_field_parity(x, parity), there = qk_field_parity(x, other(parity));
  const qk_eo_pass_t local = {.c_x = 1, .x = here, .c_y = mass, .y = y->v};
  const qk_eo_pass_t hop = {.c_hop = 0.5, .c_x = 1, .x = there};
  qk_eo_pass(op, &local, here, y->v);
  qk_eo_pass(op, &hop, there, y->v);
  return qk_dev_status(op->dev);
}

static qk_status_t residual(qk_operator_t *op, qk_field_t *r, const qk_field_t *x,
                            const qk_field_t *b, double mass) {
  if (!alike(r, x) || !alike(r, b) || !holds(op, x) || r->v.subset != QK_FULL ||
      x->v.subset != QK_FULL || b->v.subset != QK_FULL)
    return QK_BAD_ARGUMENT;
  const qk_eo_pass_t p = {.c_hop = 0.5, .c_x = 1, .x = b->v, .c_y = -mass, .y = x->v};
  op->applications[x->v.prec]++;
  qk_eo_pass(op, &p, r->v, x->v);
  return qk_dev_status(op->dev);
}

const qk_masses_ops_t qk_eo_masses = {
    .by_parity = true, .shift = shift_of, .apply = apply, .lift = lift, .residual = residual};
