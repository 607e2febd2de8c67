/*
 * smoother_impl.h: what the kinds of smoother.h share. Private to them.
 */
#ifndef QK_ENGINE_SMOOTHER_IMPL_H
#define QK_ENGINE_SMOOTHER_IMPL_H

#include "daemon/engine/lattice/scalars.h"
#include "daemon/engine/smoother/smoother.h"

/* The ellipse of chebyshev: centre, and the squared distance of its foci from it (negative: the
 * foci are on a line parallel to the imaginary axis). Its longest polynomial. */
typedef struct qk_ellipse {
  double centre, focus2;
} qk_ellipse_t;
enum { QK_CHEBYSHEV_STEPS = 8 };

typedef struct qk_smoother_kind_ops {
  const char *name;
  int nscalar;
  qk_status_t (*prepare)(qk_smoother_t *s, qk_err_t *err); /* may be NULL */
  bool sets_x; /* run is told whether x is 0 and need not be read; else it has been set to 0 */
  void (*run)(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero, bool last);
} qk_smoother_kind_ops_t;

struct qk_smoother {
  const qk_smoother_kind_ops_t *kind;
  qk_operator_t *op;
  qk_work_t *work;
  const qk_device_t *dev;
  qk_smoother_params_t params;
  qk_prec_t prec;
  int nrhs;
  qk_scalars_t scalars, products; /* products: while learning */
  qk_ellipse_t ellipse;
  qk_polynomial_t polynomial;
  qk_learning_t *learning;                                          /* NULL: not now */
  double factor[QK_CHEBYSHEV_STEPS * (QK_CHEBYSHEV_STEPS + 1) / 2]; /* as the scalars */
};

extern const qk_smoother_kind_ops_t qk_smoother_mr, qk_smoother_schwarz, qk_smoother_cagcr,
    qk_smoother_chebyshev, qk_smoother_polynomial;

/* Scalars of ca-gcr, CAGCR_STEPS steps at a time: (v_i,v_j) column by column, then y. */
enum {
  QK_CAGCR_STEPS = 4, /* as many as one pass over the fields takes */
  QK_CAGCR_Y = (QK_CAGCR_STEPS + 1) * (QK_CAGCR_STEPS + 2) / 2,
  QK_CAGCR_SCALARS = QK_CAGCR_Y + QK_CAGCR_STEPS
};

/* What op->rough allows, as far as the smoother may take it. */
static inline void qk_smoother_set_rough(qk_smoother_t *s, bool on) {
  const bool rough = on && !s->params.exact;
  s->op->rough = rough;
  if (s->op->base) s->op->base->rough = rough;
}

void qk_smoother_sample(qk_smoother_t *s, const qk_field_t *r, int steps);

/* w = Mhat v */
static inline void qk_smoother_mhat(qk_smoother_t *s, qk_field_t *w, const qk_field_t *v) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->apply_system(s->op, w, v, false, NULL));
}

static inline qk_field_t *qk_smoother_field(qk_smoother_t *s) {
  return qk_work_take(s->work, s->prec, s->nrhs, s->op->system);
}

#endif
