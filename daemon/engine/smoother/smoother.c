#include "daemon/engine/smoother/smoother.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/smoother/smoother_impl.h"

static const qk_smoother_kind_ops_t *const kinds[QK_SMOOTHER_COUNT] = {
    [QK_SMOOTHER_MR] = &qk_smoother_mr,
    [QK_SMOOTHER_CAGCR] = &qk_smoother_cagcr,
    [QK_SMOOTHER_CHEBYSHEV] = &qk_smoother_chebyshev,
    [QK_SMOOTHER_SCHWARZ] = &qk_smoother_schwarz,
    [QK_SMOOTHER_POLYNOMIAL] = &qk_smoother_polynomial,
};

static const double default_omega = 0.85;

const char *qk_smoother_name(qk_smoother_kind_t kind) {
  return kinds[kind] ? kinds[kind]->name : "auto";
}

bool qk_smoother_parse(const char *name, qk_smoother_kind_t *kind) {
  for (int k = 0; k < QK_SMOOTHER_COUNT; k++)
    if (kinds[k] && !strcmp(kinds[k]->name, name)) {
      *kind = (qk_smoother_kind_t)k;
      return true;
    }
  return false;
}

/* ---- mr, schwarz ----------------------------------------------------------------------------- */

enum { WR, WW, OMEGA, RR, NSCALAR };

/* (w,r) and |w|^2 over the ranks. */
static void products(qk_smoother_t *s, const qk_field_t *w, const qk_field_t *r) {
  qk_scalars_reduce(&s->scalars, WR, 2, QK_BLAS_CDOT_NORM2, (qk_blas_args_t){.f = {w->v, r->v}});
}

/* One step with w = Mhat r, or that without hops between blocks. */
static void mr_step(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, qk_field_t *w) {
  const qk_scalars_t *c = &s->scalars;
  const double *wr = qk_scalars_at(c, WR), *ww = qk_scalars_at(c, WW);
  products(s, w, r);
  qk_dev_blas(s->dev, QK_BLAS_MR_XR,
              (qk_blas_args_t){.f = {x->v, r->v, w->v}, .c = {wr, ww, qk_scalars_at(c, OMEGA)}});
}

static qk_status_t mr_prepare(qk_smoother_t *s, qk_err_t *err) {
  double omega = s->params.omega == 0 ? default_omega : s->params.omega;
  if (!(omega > 0 && omega < 2))
    return qk_fail(err, QK_BAD_ARGUMENT, "smoother omega %g: must be above 0, below 2", omega);
  qk_scalars_fill(&s->scalars, OMEGA, omega);
  return qk_dev_status(s->dev);
}

static void mr_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero,
                   bool last) {
  (void)x_zero;
  (void)last;
  qk_field_t *w = qk_smoother_field(s);
  for (int i = 0; i < steps; i++) {
    qk_smoother_mhat(s, w, r);
    mr_step(s, x, r, w);
  }
  qk_work_release(s->work, w);
}

const qk_smoother_kind_ops_t qk_smoother_mr = {
    .name = "mr", .nscalar = NSCALAR, .prepare = mr_prepare, .run = mr_run};

static qk_status_t schwarz_prepare(qk_smoother_t *s, qk_err_t *err) {
  const int *l = s->dev->geom->lat.l, *block = s->params.block;
  for (int mu = 0; mu < 4; mu++)
    if (block[mu] < 1 || l[mu] % block[mu])
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "smoother block %dx%dx%dx%d: extent %d does not divide the local extent %d",
                     block[0], block[1], block[2], block[3], block[mu], l[mu]);
  return mr_prepare(s, err);
}

static void apply_blocks(qk_smoother_t *s, qk_field_t *w, const qk_field_t *v) {
  if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev, s->op->ops->apply_blocks(s->op, w, v, s->params.block));
}

/* x += c d, r -= c Mhat d with c that makes |r| least. */
static void along(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, const qk_field_t *d,
                  qk_field_t *w) {
  const qk_scalars_t *c = &s->scalars;
  qk_smoother_mhat(s, w, d);
  products(s, w, r);
  qk_dev_blas(s->dev, QK_BLAS_GCR_XR,
              (qk_blas_args_t){.f = {x->v, r->v, d->v, w->v},
                               .c = {qk_scalars_at(c, WR), qk_scalars_at(c, WW)},
                               .red = qk_scalars_at(c, RR)});
}

/* All steps except one make d, which approximately solves the blocks; the last one uses it as
 * direction. */
static void schwarz_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero,
                        bool last) {
  if (steps < 2) {
    mr_run(s, x, r, steps, x_zero, last);
    return;
  }
  qk_field_t *d = qk_smoother_field(s), *inner = qk_smoother_field(s), *w = qk_smoother_field(s);
  qk_dev_blas(s->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {d->v}});
  qk_dev_blas(s->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {inner->v, r->v}});
  for (int i = 1; i < steps; i++) {
    apply_blocks(s, w, inner);
    mr_step(s, d, inner, w);
  }
  along(s, x, r, d, w);
  qk_work_release(s->work, w);
  qk_work_release(s->work, inner);
  qk_work_release(s->work, d);
}

const qk_smoother_kind_ops_t qk_smoother_schwarz = {
    .name = "schwarz", .nscalar = NSCALAR, .prepare = schwarz_prepare, .run = schwarz_run};

/* ---- life ------------------------------------------------------------------------------------ */

qk_status_t qk_smoother_create(qk_operator_t *op, qk_work_t *work,
                               const qk_smoother_params_t *params, qk_prec_t prec, int nrhs,
                               qk_smoother_t **smoother, qk_err_t *err) {
  if ((unsigned)params->kind >= QK_SMOOTHER_COUNT || !kinds[params->kind])
    return qk_fail(err, QK_BAD_ARGUMENT, "smoother kind %d: 1 .. %d", (int)params->kind,
                   QK_SMOOTHER_COUNT - 1);
  if (nrhs < 1 || nrhs > QK_MAX_RHS)
    return qk_fail(err, QK_BAD_ARGUMENT, "smoother for %d right-hand sides: 1 .. %d", nrhs,
                   QK_MAX_RHS);
  qk_smoother_t *s = qk_calloc(1, sizeof *s);
  if (!s) return qk_fail(err, QK_NO_MEMORY, "no memory for a smoother");
  s->kind = kinds[params->kind];
  s->op = op;
  s->work = work;
  s->dev = op->dev;
  s->params = *params;
  s->prec = prec;
  s->nrhs = nrhs;
  qk_status_t status = qk_scalars_init(&s->scalars, s->dev, s->kind->nscalar, nrhs);
  status = qk_comm_agree(s->dev->geom->comm, status, err);
  if (!status && s->kind->prepare) status = s->kind->prepare(s, err);
  if (!status) {
    *smoother = s;
    return QK_OK;
  }
  qk_smoother_destroy(s);
  return qk_fail(err, status, "smoother %s: %s", kinds[params->kind]->name, qk_status_text(status));
}

void qk_smoother_destroy(qk_smoother_t *s) {
  if (!s) return;
  qk_scalars_fini(&s->products);
  qk_scalars_fini(&s->scalars);
  qk_free(s);
}

void qk_smoother_set_polynomial(qk_smoother_t *s, const qk_polynomial_t *p) {
  s->polynomial = *p;
}

qk_status_t qk_smoother_learn(qk_smoother_t *s, qk_learning_t *to) {
  enum { PAIRS = QK_LEARNED * (QK_LEARNED + 1) / 2 };
  s->learning = to;
  qk_scalars_fini(&s->products);
  return to ? qk_scalars_init(&s->products, s->dev, PAIRS, s->nrhs) : QK_OK;
}

void qk_smoother_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero,
                     bool last) {
  if (s->learning && last && steps > 0) qk_smoother_sample(s, r, steps);
  if (x_zero && (steps < 1 || !s->kind->sets_x))
    qk_dev_blas(s->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x->v}});
  if (steps < 1) return;
  qk_smoother_set_rough(s, true);
  s->kind->run(s, x, r, steps, x_zero, last);
  qk_smoother_set_rough(s, false);
}
