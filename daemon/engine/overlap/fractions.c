#include "daemon/engine/overlap/fractions.h"

#include <math.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/krylov/multishift/multishift.h"
#include "daemon/engine/lattice/scalars.h"

enum { ITERATIONS = 20000 };
static const double coarsest = 0.1; /* whatever else is asked for */

struct qk_fractions {
  qk_operator_t *d;
  const qk_device_t *dev;
  int n;
  qk_multishift_t *solver;
  qk_field_t *in, *out, *x[QK_ZOLOTAREV_MAX]; /* one right-hand side, double */
  qk_scalars_t r;
};

/* out = D^+ D in */
static void square(void *self, qk_field_t *out, const qk_field_t *in) {
  qk_operator_t *d = self;
  qk_field_t *t = qk_work_take(d->work, in->v.prec, in->v.nrhs, QK_FULL);
  if (qk_dev_ok(d->dev)) qk_dev_note(d->dev, d->ops->apply(d, t, in, false, NULL, 0));
  if (qk_dev_ok(d->dev)) qk_dev_note(d->dev, d->ops->apply(d, out, t, true, NULL, 0));
  qk_work_release(d->work, t);
}

static qk_status_t make_solver(qk_fractions_t *f, const qk_zolotarev_t *z, qk_err_t *err) {
  qk_multishift_params_t p = {.system = {.apply = square,
                                         .self = f->d,
                                         .dev = f->dev,
                                         .work = f->d->work,
                                         .subset = QK_FULL},
                              .inner = QK_DOUBLE,
                              .nrhs = 1,
                              .nshift = z->n};
  for (int j = 0; j < z->n; j++) p.shift[j] = z->q[j];
  return qk_multishift_create(&p, &f->solver, err);
}

static qk_status_t make_fields(qk_fractions_t *f, const qk_zolotarev_t *z) {
  qk_field_t **field[QK_ZOLOTAREV_MAX + 2] = {&f->in, &f->out};
  for (int j = 0; j < f->n; j++) field[2 + j] = &f->x[j];
  for (int j = 0; j < f->n + 2; j++) {
    const qk_status_t status = qk_field_create(f->dev, QK_DOUBLE, 1, QK_FULL, field[j]);
    if (status != QK_OK) return status;
  }
  const qk_status_t status = qk_scalars_init(&f->r, f->dev, QK_ZOLOTAREV_MAX, 1);
  if (status != QK_OK) return status;
  for (int j = 0; j < f->n; j++) qk_scalars_set(&f->r, j, 0, z->r[j], 0);
  qk_scalars_store(&f->r, 0, f->n);
  return qk_dev_status(f->dev);
}

qk_status_t qk_fractions_create(qk_operator_t *d, const qk_zolotarev_t *z, qk_fractions_t **f,
                                qk_err_t *err) {
  qk_comm_t *comm = d->dev->geom->comm;
  qk_fractions_t *made = qk_calloc(1, sizeof *made);
  qk_status_t status = qk_comm_agree(comm, made ? QK_OK : QK_NO_MEMORY, err);
  if (status == QK_OK) {
    *made = (qk_fractions_t){.d = d, .dev = d->dev, .n = z->n};
    status = qk_comm_agree(comm, make_fields(made, z), err);
  }
  const qk_status_t ready = status == QK_OK ? make_solver(made, z, err) : status;
  if (ready == QK_OK)
    *f = made;
  else
    qk_fractions_destroy(made);
  return ready;
}

void qk_fractions_destroy(qk_fractions_t *f) {
  if (!f) return;
  qk_multishift_destroy(f->solver);
  if (f->dev) qk_scalars_fini(&f->r);
  for (int j = f->n - 1; j >= 0; j--) qk_field_destroy(f->x[j]);
  qk_field_destroy(f->out);
  qk_field_destroy(f->in);
  qk_free(f);
}

int qk_fractions_count(const qk_fractions_t *f) {
  return f->n;
}

/* A right-hand side that is not finite stays so: slots do not look at each other. */
static void solve(const qk_fractions_t *f, double tol) {
  qk_shifted_t result[QK_SHIFTS_MAX];
  if (!qk_dev_ok(f->dev)) return;
  qk_dev_note(f->dev, qk_multishift_solve(f->solver, f->in, f->x, tol, ITERATIONS, result, NULL));
  for (int j = 0; j < f->n && qk_dev_ok(f->dev); j++) {
    if (result[j].status == QK_OK || result[j].status == QK_NAN_INPUT) continue;
    qk_error("overlap", "partial fraction %d of %d: residual %.3g, above %.3g", j, f->n,
             result[j].residual, tol);
    qk_dev_note(f->dev, QK_BREAKDOWN);
  }
}

static void move(const qk_fractions_t *f, const qk_field_t *to, int to_rhs, const qk_field_t *from,
                 int from_rhs) {
  const qk_rhs_copy_args_t args = {
      .to = to->v, .from = from->v, .to_rhs = to_rhs, .from_rhs = from_rhs};
  if (qk_dev_ok(f->dev)) qk_dev_note(f->dev, f->dev->ops->rhs_copy(f->dev->ctx, &args));
}

void qk_fractions_apply(const qk_fractions_t *f, const double *tol, qk_field_t *out,
                        const qk_field_t *in) {
  qk_multi_args_t sum = {.n = f->n, .y = f->out->v, .c = qk_scalars_at(&f->r, 0), .sign = 1};
  for (int j = 0; j < f->n; j++) sum.f[j] = f->x[j]->v;
  for (int k = 0; k < in->v.nrhs; k++) {
    move(f, f->in, 0, in, k);
    solve(f, fmin(tol[k], coarsest));
    qk_dev_blas(f->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {f->out->v}});
    if (qk_dev_ok(f->dev)) qk_dev_note(f->dev, f->dev->ops->multi_axpy(f->dev->ctx, &sum));
    move(f, out, k, f->out, 0);
  }
}

int64_t qk_fractions_bytes(const qk_geom_t *geom, int poles) {
  const int64_t field = (int64_t)qk_field_bytes(geom, QK_DOUBLE, 1, QK_FULL);
  const int64_t factors = 2 * (1 + QK_SHIFT_RESIDUALS), norms = 2 * QK_SHIFT_RESIDUALS + 4;
  const int64_t scalars =
      (QK_ZOLOTAREV_MAX + norms + poles * factors) * 2 * (int64_t)sizeof(double);
  return (2 + poles + 2 + QK_SHIFT_RESIDUALS + 2 * poles) * field + scalars + 1;
}
