/*
 * cycle_impl.h: what the parts of a cycle share: cycle*.c and coarsest.c. Private to them.
 */
#ifndef QK_ENGINE_CYCLE_IMPL_H
#define QK_ENGINE_CYCLE_IMPL_H

#include "daemon/engine/lattice/scalars.h"
#include "daemon/engine/multigrid/cycle.h"

/* Scalars of a level's GCR: inner products of a step, squares of directions, |r|^2. */
enum {
  QK_CYCLE_DOTS = 0,
  QK_CYCLE_NORMS = QK_MULTI_MAX,
  QK_CYCLE_RR = QK_CYCLE_NORMS + QK_GCR_MAX,
  QK_CYCLE_SCALARS
};

typedef struct qk_cycle_level {
  const qk_mg_level_params_t *params;
  qk_mg_level_t *mg;
  qk_smoother_t *smoother; /* NULL on the last level */
  qk_prec_t prec;          /* of all fields but what apply is given */
  qk_scalars_t scalars;    /* not on level 0 */
  /* Where tol > 0: right-hand sides that are not solved yet, and |r|^2 at which they are. */
  uint8_t *running, *running_host;
  double target[QK_MAX_RHS];
} qk_cycle_level_t;

/* Of an application from one field to another, of right-hand sides whose flavours stand in one
 * place: a graph is bound to them. As many as an outer solver has directions. */
enum { QK_CYCLE_RECORDINGS = QK_GCR_MAX };
typedef struct qk_recording {
  const void *in, *out;
  const uint8_t *minus; /* qk_flavours_t */
  qk_graph_t *graph;    /* NULL: none */
} qk_recording_t;

struct qk_cycle {
  qk_mg_t *mg;
  qk_prec_t prec;
  int nrhs, nlevel;
  qk_cycle_level_t level[QK_MG_LEVELS_MAX];
  double *schur_factor; /* device scalars: 1 / op->schur.scale; NULL: there is none */
  /* Of level 0 and the smoother's precision, where what apply is given will not do; else NULL. */
  qk_field_t *in, *out;
  qk_field_t *wide; /* where the last smoothing of level 0 leaves z, in single; NULL: in z */
  bool graphs;      /* nothing in an application needs the host */
  bool warm;        /* one has run with idle work stacks: a recording allocates nothing */
  qk_recording_t recording[QK_CYCLE_RECORDINGS];
  int nrecording;                 /* all there have been: the oldest makes room */
  int64_t applications[QK_PRECS]; /* of Mhat on level 0 by an application, by precision */
  int64_t bytes;

  bool timed;
  int now;      /* level that time is spent on */
  double since; /* monotonic seconds */
  double seconds[QK_MG_LEVELS_MAX];
};

/* What follows are calls of an iteration (lattice/device.h). */

/* Time from here on is that of level l. Waits while time is taken. */
void qk_cycle_enter(qk_cycle_t *c, int l);

/* z = B_l r, even fields; r is left alone. w, if it is given: Mhat z. */
typedef void qk_cycle_precond_fn(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r,
                                 qk_field_t *w);
qk_cycle_precond_fn qk_cycle_precondition;
/* Reduces r = r - Mhat x by `iterations` of GCR on level l >= 1, adding to x (x_zero: x is set).
 * precond: NULL for none. Where the level has a tol it waits for the device and ends by it. */
void qk_cycle_gcr(qk_cycle_t *c, int l, qk_cycle_precond_fn *precond, qk_field_t *x, qk_field_t *r,
                  bool x_zero);
/* e = S_l b, full fields. */
void qk_cycle_solve_level(qk_cycle_t *c, int l, qk_field_t *e, const qk_field_t *b);

static inline void qk_cycle_blas(const qk_cycle_level_t *v, qk_blas_op_t op, qk_blas_args_t args) {
  qk_dev_blas(&v->mg->dev, op, args);
}

/* out = Mhat in; x given: out = x - Mhat in. */
static inline void qk_cycle_mhat(const qk_cycle_level_t *v, qk_field_t *out, const qk_field_t *in,
                                 const qk_field_t *x) {
  const qk_device_t *dev = &v->mg->dev;
  if (qk_dev_ok(dev)) qk_dev_note(dev, v->mg->op->ops->apply_system(v->mg->op, out, in, false, x));
}

/* A field of the system of level l. */
static inline qk_field_t *qk_cycle_take(qk_cycle_t *c, int l) {
  const qk_cycle_level_t *v = &c->level[l];
  return qk_work_take(v->mg->work, v->prec, c->nrhs, v->mg->op->system);
}

static inline qk_field_t *qk_cycle_take_full(qk_cycle_t *c, int l) {
  const qk_cycle_level_t *v = &c->level[l];
  return qk_work_take(v->mg->work, v->prec, c->nrhs, QK_FULL);
}

static inline void qk_cycle_give(qk_cycle_t *c, int l, qk_field_t *field) {
  qk_work_release(c->level[l].mg->work, field);
}

#endif
