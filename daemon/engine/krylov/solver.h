/*
 * solver.h: Krylov solvers that work on slots.
 *
 * A solver owns a batch of nslot slots, one column of the block that it iterates on each. fill()
 * gives a slot a right-hand side with its own tolerance and limits; step() moves all running slots
 * on by one check interval; a slot that has ended can be read, cleared and filled again while the
 * others run. What a slot holds, even NaN, changes no bit of the others; only slots of one group of
 * block-cg depend on each other.
 *
 * Each solver (bicgstab.c, cg.c, block_cg.c, gcr.c) iterates in params.inner precision on op's
 * system (Mhat), with all slots in one block; source, solution and residual are kept in double, in
 * fields of each slot's own, and brought up to date when the residual has fallen by params.reliable
 * (reliable updates). Convergence is |b - M x| <= tol |b| of the full operator, in double, or what
 * else a slot asks for (qk_stopping_t); nothing else is called converged. Calls are collective.
 */
#ifndef QK_ENGINE_SOLVER_H
#define QK_ENGINE_SOLVER_H

#include <math.h>

#include "daemon/base/progress.h"
#include "daemon/engine/eigen/deflation.h"

typedef enum qk_slot_state { QK_SLOT_FREE, QK_SLOT_RUNNING, QK_SLOT_ENDED } qk_slot_state_t;

/* When a solve is good enough. What is 0 is not asked for; one at least is, and all that are must
 * hold. Finite, and not negative. */
typedef struct qk_stopping {
  double tol;     /* of |b - M x| / |b| */
  double tol_abs; /* of |b - M x| */
  double tol_hq;  /* of the heavy-quark residual (solver_stop.c) of factor x */
  double factor;  /* of the solution that is handed out; 0 says 1 */
} qk_stopping_t;

static inline bool qk_stopping_is_valid(const qk_stopping_t *p) {
  const bool asked = p->tol > 0 || p->tol_abs > 0 || p->tol_hq > 0;
  return asked && p->tol >= 0 && p->tol_abs >= 0 && p->tol_hq >= 0 && isfinite(p->tol) &&
         isfinite(p->tol_abs) && isfinite(p->tol_hq) && isfinite(p->factor);
}
/* Residuals are looked at otherwise than where only tol is given. */
static inline bool qk_stopping_asks_more(const qk_stopping_t *stopping) {
  return stopping->tol_abs > 0 || stopping->tol_hq > 0;
}

typedef struct qk_slot {
  qk_slot_state_t state;
  qk_status_t status; /* of an ended slot: OK, NOT_CONVERGED, BREAKDOWN, NAN_INPUT, CANCELLED, and
                         BAD_ARGUMENT for what a double does not hold */
  qk_err_t why;       /* of NAN_INPUT and BAD_ARGUMENT: which number, and where */
  qk_stopping_t stopping; /* residuals are those of the full operator */
  int64_t max_iter;
  int64_t iterations;   /* inner iterations so far */
  int64_t applications; /* operator applications charged to this slot (all precisions) */
  double residual;      /* last known estimate of |b - M x| / |b|; exact once ended */
  double hq_residual;   /* as last measured, in double; NaN: never. Only where tol_hq > 0 */
  double norm_b;
  double seconds; /* wall time between fill and end */
  int nhistory;
  float history[256]; /* relative residual at check points, thinned by two when full */
} qk_slot_t;

typedef struct qk_solver qk_solver_t;

/* A preconditioner z = K r for GCR, on fields of the operator's system in the inner precision
 * (multigrid plugs in here). room: a field like r that apply may use, with undefined contents
 * before and after. */
typedef struct qk_precond {
  qk_status_t (*apply)(void *self, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                       const uint8_t *mask);
  void *self;
  bool narrow; /* r may be in half where the iteration is in single, and there is no room then */
  int64_t applications; /* of Mhat in a call, which slots are charged with */
} qk_precond_t;

/* Directions of a run of GCR. With a preconditioner: one pass of eight fields has the inner
 * products of a new one with those before it and r. */
enum { QK_GCR_KEEP = 8, QK_GCR_KEEP_PRECONDITIONED = 7 };

typedef struct qk_solver_params {
  const char *method;   /* "bicgstab", "gcr", and "cg" and "block-cg", on the normal equations
                           where Mhat is not hermitian and positive */
  qk_prec_t inner;      /* QK_DOUBLE, QK_SINGLE or QK_HALF */
  int nslot;            /* 1 .. QK_MAX_RHS */
  double reliable;      /* residual drop that triggers an update; 0: default of the precision */
  int check;            /* iterations per step; 0: default (with a preconditioner 1) */
  int gcr_keep;         /* directions of a run of gcr; 0: the above */
  qk_precond_t precond; /* apply NULL: none; gcr only */
  /* Borrowed; NULL: none. Used at the start and at each update. minus: of right-hand sides of
   * flavour -1, of an operator with a twist; NULL: they have none. */
  qk_deflation_t *deflation, *deflation_minus;
  /* Less memory for the same bits: slots begin, are updated and end one by one. */
  bool compact;
} qk_solver_params_t;

qk_status_t qk_solver_create(qk_operator_t *op, qk_work_t *work, const qk_solver_params_t *params,
                             qk_solver_t **solver, qk_err_t *err);
void qk_solver_destroy(qk_solver_t *solver); /* NULL-safe */

/* The field that the right-hand side of a slot is written into before fill (full, double, one
 * column), while the slot is free. It is the solver's from fill() on, and may be another field when
 * the slot is free again. */
qk_field_t *qk_solver_rhs(qk_solver_t *solver, int slot);
/* The solution of a slot, valid from its end until it is cleared (full, double, one column). */
const qk_field_t *qk_solver_solution(qk_solver_t *solver, int slot);
/* Of it, as long: sums [qk_wall_sum_t][T] (operator.h: wall_sums), NaN without a solve. NULL: there
 * are none, or T is over QK_WALL_TIMES_MAX. */
const double *qk_solver_wall_sums(const qk_solver_t *solver, int slot);

/* The flavour of what a free slot is filled with next, 1 or -1 (operator.h); every slot begins with
 * 1. QK_BAD_ARGUMENT changes nothing: another number, or a slot that is not free. */
qk_status_t qk_solver_set_flavour(qk_solver_t *solver, int slot, int flavour);

/* Which residual a slot has. FULL: |b - M x| / |b|. The others are of the system on one parity that
 * x solves there, for b that is 0 on the other one; with r = b - M x on both, p the parity:
 *   SCHUR   T Mhat x_p = b_p      |s| / |b|,  s = r_p + 1/2 hop T^-1 r_q
 *   UNIT    Mhat x_p = T^-1 b_p   |T^-1 s| / (|b| / unit) */
typedef enum qk_measure_kind {
  QK_MEASURE_FULL,
  QK_MEASURE_SCHUR,
  QK_MEASURE_UNIT
} qk_measure_kind_t;
typedef struct qk_measure {
  qk_measure_kind_t kind;
  qk_subset_t parity; /* even or odd; not FULL */
  double unit;        /* UNIT: |b_p| / |T^-1 b_p|; positive */
} qk_measure_t;

/* Of what a free slot is filled with next, as the flavour; every slot begins with FULL. Not of
 * fields of several vectors. QK_BAD_ARGUMENT changes nothing. */
qk_status_t qk_solver_set_measure(qk_solver_t *solver, int slot, const qk_measure_t *measure);

/* Of an operator with `outer`: what a free slot is filled with next is b of M x = b, its solution
 * x, in this field of the operator (full, double, one right-hand side), which is borrowed until the
 * slot is cleared; there are no wall sums. QK_BAD_ARGUMENT changes nothing. */
qk_status_t qk_solver_set_five(qk_solver_t *solver, int slot, qk_field_t *five);

/* A method that shares ("block-cg") has one space for slots that one call fills with the same
 * group, not 0, and flavour, in the order of their numbers; others ignore it. Of what a free slot
 * is filled with next, as the flavour; every slot begins with 0, alone. QK_BAD_ARGUMENT changes
 * nothing. A slot that has ended, or was cancelled, still helps its group until it is filled anew;
 * then the group goes on without it, in a new space. */
qk_status_t qk_solver_set_group(qk_solver_t *solver, int slot, uint64_t group);

/* What stands in qk_solver_rhs is taken up. A zero source ends at once with x = 0; NaN or Inf with
 * NAN_INPUT; with BAD_ARGUMENT one whose norm overflows, or times tol underflows, and at its end
 * one whose solution overflows. tol > 0; max_iter >= 1 is looked at every `check` iterations.
 * QK_BAD_ARGUMENT (also for a slot that is not free) changes nothing. */
qk_status_t qk_solver_fill(qk_solver_t *solver, int slot, double tol, int64_t max_iter);
/* Several slots at once. */
qk_status_t qk_solver_fill_many(qk_solver_t *solver, const int *slot, int n, const double *tol,
                                const int64_t *max_iter);
/* The same for any qk_stopping_t. Where tol_abs or tol_hq is given, a slot whose residuals have not
 * fallen by a quarter over three updates in double ends with NOT_CONVERGED. */
qk_status_t qk_solver_fill_until(qk_solver_t *solver, const int *slot, int n,
                                 const qk_stopping_t *stopping, const int64_t *max_iter);
/* One check interval for all running slots. Returns QK_OK also when slots end badly. */
qk_status_t qk_solver_step(qk_solver_t *solver);
/* What else is to run while a step does. begin is called when the device has been given the
 * iterations of a step, before they are waited for: what it puts on other queues runs beside them
 * and takes no time of the host that the device waits for. Another status than QK_OK is that of
 * the step. */
typedef struct qk_beside {
  qk_status_t (*begin)(void *self); /* NULL: nothing */
  void *self;
} qk_beside_t;
void qk_solver_set_beside(qk_solver_t *solver, qk_beside_t beside);
/* A free slot shows what it was last. */
const qk_slot_t *qk_solver_slot(const qk_solver_t *solver, int slot);
int qk_solver_running(const qk_solver_t *solver);
/* Ends a running slot with CANCELLED (its best solution stands); on an ended slot nothing. A
 * failing device shows at the next fill or step. */
void qk_solver_cancel(qk_solver_t *solver, int slot);
/* An ended slot becomes free. */
void qk_solver_clear(qk_solver_t *solver, int slot);

/* Where a relaxation ends; progress (may be NULL) is called at every check point. */
typedef struct qk_relax_limit {
  int64_t iterations;
  double tol;
  qk_progress_fn *progress; /* phase "null vectors", iterations of limit */
  void *arg;
} qk_relax_limit_t;

/* Relaxation of Mhat x = 0 from what x holds (of the system, single): the columns of the mask are
 * improved by limit->iterations of the method on Mhat e = Mhat x, x -= e, or fewer where |Mhat x|
 * has fallen by limit->tol. Nothing is in double. scratch: like x, overwritten. params: method,
 * inner (single or half), check. fall: |Mhat x| after over before by the word of the recursion; NaN
 * for a column that broke down. Collective. */
qk_status_t qk_solver_relax(qk_operator_t *op, qk_work_t *work, const qk_solver_params_t *params,
                            const uint8_t *mask, const qk_relax_limit_t *limit, qk_field_t *x,
                            qk_field_t *scratch, double *fall, qk_err_t *err);

#endif
