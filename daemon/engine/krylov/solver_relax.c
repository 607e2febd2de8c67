#include <math.h>

#include "daemon/engine/krylov/solver_impl.h"

/* A relaxation under way. Columns of the mask are at work until they reach tol or break down. */
typedef struct relaxation {
  qk_solver_t *s;
  qk_field_t *x, *scratch;
  double first[QK_MAX_RHS]; /* |Mhat x| at the start */
  double last[QK_MAX_RHS];  /* |r| when it was last computed from x */
  double now[QK_MAX_RHS];   /* |r| by the recursion; NaN where it broke down */
} relaxation_t;

/* r = Mhat x and xi = 0 for the columns of the mask. */
static void renew(relaxation_t *a, const uint8_t *mask) {
  qk_solver_t *s = a->s;
  double norm2[QK_MAX_RHS];
  qk_solver_mhat(s, a->scratch, a->x, false);
  qk_solver_norm2(s, a->scratch->v, norm2);
  const uint8_t *on = qk_solver_upload_mask(s, mask);
  qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {s->r->v, a->scratch->v}, .mask = on});
  qk_solver_clear_correction(s, mask);
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) a->last[i] = a->now[i] = sqrt(norm2[i]);
}

/* x -= xi for the columns of the mask. */
static void take(relaxation_t *a, const uint8_t *mask) {
  qk_solver_t *s = a->s;
  const qk_spinor_t x = a->x->v, t = a->scratch->v;
  qk_solver_gather(s, mask);
  const uint8_t *on = qk_solver_upload_mask(s, mask);
  qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {t, s->xi->v}, .mask = on});
  qk_solver_blas(s, QK_BLAS_SUB, (qk_blas_args_t){.f = {x, x, t}, .mask = on});
}

static qk_status_t begin(relaxation_t *a, const uint8_t *mask) {
  qk_solver_t *s = a->s;
  renew(a, mask);
  for (int i = 0; i < s->nslot; i++) {
    a->first[i] = a->last[i];
    bool sound = mask[i] && isfinite(a->first[i]) && a->first[i] > 0;
    s->slot[i].state = sound ? QK_SLOT_RUNNING : QK_SLOT_ENDED;
    s->w[i].group = i + 1;
    if (!sound) a->now[i] = NAN;
  }
  qk_solver_set_running(s);
  s->method->start(s, mask);
  return qk_dev_status(s->dev);
}

/* xi is added to x repeatedly, because x becomes small compared to it: otherwise only the
 * rounding of xi would be left. */
static qk_status_t advance(relaxation_t *a, double tol) {
  qk_solver_t *s = a->s;
  uint8_t sound[QK_MAX_RHS] = {0};
  bool due = false;
  qk_status_t status = s->method->iterate(s);
  if (status) return status;
  for (int i = 0; i < s->nslot; i++) {
    if (s->slot[i].state != QK_SLOT_RUNNING) continue;
    double r = sqrt(s->trace[(s->check - 1) * s->nslot + i]);
    a->now[i] = isfinite(r) ? r : NAN;
    sound[i] = isfinite(r) && !s->broken[i] && r > tol * a->first[i];
    if (!sound[i]) s->slot[i].state = QK_SLOT_ENDED;
    due = due || (sound[i] && r <= s->params.reliable * a->last[i]);
  }
  qk_solver_set_running(s);
  if (due) {
    take(a, sound);
    renew(a, sound);
    s->method->replaced(s, sound);
  }
  return qk_dev_status(s->dev);
}

/* What has improved is kept. */
static qk_status_t end(relaxation_t *a, const uint8_t *mask, double *fall) {
  const qk_device_t *dev = a->s->dev;
  uint8_t keep[QK_MAX_RHS];
  for (int i = 0; i < a->s->nslot; i++) {
    fall[i] = mask[i] && a->now[i] < a->first[i] ? a->now[i] / a->first[i] : NAN;
    keep[i] = isfinite(fall[i]);
  }
  take(a, keep);
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

qk_status_t qk_solver_relax(qk_operator_t *op, qk_work_t *work, const qk_solver_params_t *params,
                            const uint8_t *mask, const qk_relax_limit_t *limit, qk_field_t *x,
                            qk_field_t *scratch, double *fall, qk_err_t *err) {
  relaxation_t a = {.x = x, .scratch = scratch};
  qk_status_t status = qk_solver_make(op, work, params, false, &a.s, err);
  if (status) return status;
  status = begin(&a, mask);
  for (int64_t n = 0; !status && n < limit->iterations && qk_solver_running(a.s); n += a.s->check) {
    if (limit->progress) limit->progress(limit->arg, "null vectors", n, limit->iterations);
    status = advance(&a, limit->tol);
  }
  if (!status) status = end(&a, mask, fall);
  status = qk_comm_agree(op->dev->geom->comm, status, err);
  qk_solver_destroy(a.s);
  return status;
}
