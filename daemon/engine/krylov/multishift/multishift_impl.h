/*
 * multishift_impl.h: what multishift.c and multishift_refine.c share. Private to them.
 */
#ifndef QK_ENGINE_MULTISHIFT_IMPL_H
#define QK_ENGINE_MULTISHIFT_IMPL_H

#include "daemon/engine/krylov/multishift/multishift.h"
#include "daemon/engine/lattice/scalars.h"

/* Scalars: of passes alone; then (p, Ap) and |r|^2 of the iterations of a step. */
enum {
  QK_SHIFT_NORM,
  QK_SHIFT_SHIFT,
  QK_SHIFT_FACTOR,
  QK_SHIFT_PQ,
  QK_SHIFT_RR = QK_SHIFT_PQ + QK_SHIFT_RESIDUALS,
  QK_SHIFT_SCALARS = QK_SHIFT_RR + QK_SHIFT_RESIDUALS + 1
};

typedef enum qk_shift_phase {
  QK_SHIFT_OVER,
  QK_SHIFT_TOGETHER,
  QK_SHIFT_REFINING
} qk_shift_phase_t;

/* q = A p of a step. */
typedef void (*qk_shift_apply_fn)(void *self, qk_field_t *q, const qk_field_t *p);

/*
 * CG of a block of columns, x += alpha p, p = r + beta p, up to QK_SHIFT_RESIDUALS iterations a
 * step, in which nothing is waited for. With one field for r x is updated with it. With several of
 * them x is somebody else's: r_i stays until the step is done, in r[(at + i) % fields].
 */
typedef struct qk_shift_cg {
  const qk_device_t *dev;
  qk_scalars_t scalars;
  qk_field_t *r[QK_SHIFT_RESIDUALS], *p, *q, *x; /* x: of its own, or NULL */
  int fields, at;                                /* how many of r; where the last one is */
  int first;                                     /* where |r|^2 of the last one is */
  int width;
  uint8_t *mask, *mask_host; /* on, of columns */
  bool on[QK_MAX_RHS];
  /* Of the step that is done: iteration i took r_i to r_i+1. */
  double alpha[QK_SHIFT_RESIDUALS][QK_MAX_RHS], rr[QK_SHIFT_RESIDUALS + 1][QK_MAX_RHS];
} qk_shift_cg_t;

/* Corrections of the shifts first .. first + n - 1, column k * nrhs + j that of column j. */
typedef struct qk_shift_refine {
  qk_shift_cg_t cg;
  int first, n, most; /* most: that there was room for */
  bool correcting;
  double common; /* shift of all columns, to which some add more */
  bool differ;
  int stalls[QK_MAX_RHS];
  double target[QK_MAX_RHS], norm[QK_MAX_RHS], best[QK_MAX_RHS];
  int64_t spent[QK_MAX_RHS];
} qk_shift_refine_t;

struct qk_multishift {
  qk_multishift_params_t params;
  const qk_device_t *dev;
  qk_shift_cg_t cg;                                 /* of the smallest shift */
  qk_field_t *x[QK_SHIFTS_MAX], *ps[QK_SHIFTS_MAX]; /* of each shift */
  qk_scalars_t factors;                             /* of shift_step */
  qk_prec_t prec;                                   /* of these fields, now */
  bool wide;                                        /* it began with double */
  int64_t nsites;                                   /* of each */
  int base;                                         /* the smallest shift */
  double norm_b[QK_MAX_RHS], wanted[QK_MAX_RHS];
  bool live[QK_SHIFTS_MAX][QK_MAX_RHS]; /* the residual is not small enough yet */
  double u[QK_SHIFTS_MAX][QK_MAX_RHS], u_old[QK_SHIFTS_MAX][QK_MAX_RHS];
  /* Of a solve. */
  qk_shift_phase_t phase;
  const qk_field_t *b;
  qk_field_t *to[QK_SHIFTS_MAX];
  double tol;
  int64_t max_iter;
  qk_multishift_cost_t cost;
  double alpha_old[QK_MAX_RHS], beta_old[QK_MAX_RHS]; /* of the iteration before a step */
  double now[QK_MAX_RHS];                             /* |r|^2 behind it */
  int64_t steps[QK_SHIFTS_MAX][QK_MAX_RHS];           /* of each column, together */
  qk_shift_refine_t refine;
  qk_shifted_t result[QK_SHIFTS_MAX][QK_MAX_RHS];
};

/* `fields` for r. Not collective. */
qk_status_t qk_shift_cg_init(qk_shift_cg_t *cg, const qk_multishift_params_t *params,
                             qk_prec_t prec, int width, int fields);
void qk_shift_cg_fini(qk_shift_cg_t *cg);

/* Scalar `at` of the columns, or of all of them, on the device. */
const double *qk_shift_put(qk_shift_cg_t *cg, int at, const double *value);
/* Norms of the columns. Waits. */
void qk_shift_norms(qk_shift_cg_t *cg, const qk_field_t *f, double *norm);
/* f *= value of the columns, which may be far from the range of single; 1 in place of none. */
void qk_shift_scale(qk_shift_cg_t *cg, const qk_field_t *f, const double *value, bool invert);
/* r[0] and p are what it begins with. Columns of which |r| is not more than 0 are not on. */
void qk_shift_start(qk_shift_cg_t *cg);
/* n iterations of the columns that are on; the others keep what they have. alpha is 0 where it has
 * no sense. Waits once. */
void qk_shift_advance(qk_shift_cg_t *cg, int n, qk_shift_apply_fn apply, void *self);
/* r_i of the step that is done, 1 .. n. */
const qk_field_t *qk_shift_residual(const qk_shift_cg_t *cg, int n, int i);
bool qk_shift_any(const qk_shift_cg_t *cg);
/* out = (A + shift) in, blocks of nrhs columns. */
void qk_shift_apply(qk_multishift_t *m, qk_field_t *out, const qk_field_t *in, double shift);

/* The solutions of all shifts, in double, are refined: about `iterations` of it. *over: nothing is
 * left to do, and all results are there. QK_DEVICE_MEMORY: no room for one shift. */
void qk_shift_refine_begin(qk_multishift_t *m);
/* e is added to x_k. */
void qk_shift_add(qk_multishift_t *m, int k, const qk_field_t *e);
qk_status_t qk_shift_refine_step(qk_multishift_t *m, int iterations, bool *over);
void qk_shift_refine_end(qk_multishift_t *m);

#endif
