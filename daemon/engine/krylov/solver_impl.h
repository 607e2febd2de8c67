/*
 * solver_impl.h: interface between solver.c and the Krylov methods. Private to the solvers.
 *
 * solver.c and solver_step.c own the slots and all decisions. solver_system.c owns the
 * double-precision source, solution and residual of each slot; a method owns the recursion. A
 * method sees the system Mhat xi = r in the inner precision, on the sites of op->system, all slots
 * as columns of one block: it reduces r and accumulates xi. Between two runs, columns of both are
 * replaced for some slots.
 *
 * Independence of slots: what a method or solver.c does to a slot depends only on that slot's
 * numbers and on the number of its own iterations. Block-wide passes for other slots do not change
 * its bits.
 *
 * Scalars: lattice/scalars.h; those of a method begin at QK_SOLVER_OWN. Masks are bytes [nslot].
 *
 * Functions that return nothing are calls of an iteration (lattice/device.h). iterate asks for the
 * status afterwards, and so do fill, step, cancel and relaxation at their ends.
 */
#ifndef QK_ENGINE_SOLVER_IMPL_H
#define QK_ENGINE_SOLVER_IMPL_H

#include "daemon/engine/krylov/solver.h"
#include "daemon/engine/lattice/scalars.h"

typedef struct qk_method {
  const char *name;
  int check;                      /* default iterations per step */
  int applications_per_iteration; /* of Mhat or its adjoint */
  bool wide_solution;             /* xi is single where the inner precision is half */
  /* Slots of a group share what the method has: they are updated together, and start, replaced
   * and clear are given whole groups. */
  bool grouped;
  const struct qk_method *of_one; /* does the same for one slot, at less cost; NULL: itself */
  double reliable[QK_PRECS];      /* params.reliable by default; 0: that of all methods */
  double least_fall[QK_PRECS];    /* of |r|, that it can tell between two updates; 0: any */
  /* Reserves s->method_state, fields, s->scalars. */
  qk_status_t (*create)(qk_solver_t *s);
  void (*destroy)(qk_solver_t *s); /* also after a create that failed half way */
  /* Slots of the mask begin anew from r (xi = 0): search directions are forgotten. */
  void (*start)(qk_solver_t *s, const uint8_t *mask);
  /* xi = 0, for the slots of the mask. NULL: by a pass over xi. */
  void (*clear)(qk_solver_t *s, const uint8_t *mask);
  /* r of these slots was recomputed: nearly the same vector, directions are kept. */
  void (*replaced)(qk_solver_t *s, const uint8_t *mask);
  /* Adds pending contributions to xi for the slots of the mask; called before r is recomputed.
   * NULL: xi is always up to date. */
  void (*gather)(qk_solver_t *s, const uint8_t *mask);
  /* s->check iterations of all running slots. Sets s->trace[i][slot] = |r|^2 after iteration i,
   * and s->broken[slot] if the recursion cannot continue. Waits by qk_solver_await. */
  qk_status_t (*iterate)(qk_solver_t *s);
} qk_method_t;

extern const qk_method_t qk_method_bicgstab, qk_method_cg, qk_method_cg_plain, qk_method_block_cg,
    qk_method_block_cg_plain, qk_method_gcr;

/* What decides about a slot. Norms are those of vectors of the system, in units of the
 * scaled source. */
typedef struct qk_slot_work {
  int exponent;          /* the source was multiplied by 2^-exponent ... */
  int lifted;            /* ... and by 2^-lifted to measure it */
  double norm_b;         /* of the scaled source */
  double target;         /* |r| that should give the wanted residual of the full system */
  double best;           /* |bhat - Mhat xe| in double */
  double said;           /* |r| of the recursion at the last check point */
  double lowest;         /* smallest |r| that the recursion saw since r was last recomputed ... */
  int64_t lowest_at;     /* ... and the iteration of it */
  int64_t recomputed_at; /* iteration at which r was last computed in double */
  int stalls;            /* recomputations in a row that gained less than a factor of two */
  bool breakdown;        /* the recursion broke down in one of them */
  int flat;              /* of a slot that asks for more than tol: recomputations in a row without
                            a quarter less than ... */
  double flat_norm;      /* ... this |r| in double */
  double flat_hq;        /* ... or this heavy-quark residual */
  int64_t checks;        /* check points so far */
  int history_stride;    /* check points per entry of the history */
  double filled_at;      /* monotonic seconds */
  int64_t group;         /* the same for slots that were filled together to share a space */
} qk_slot_work_t;

/* The system of a slot, in double, one column. */
typedef struct qk_system {
  qk_field_t *b;    /* full: the source; of a slot that has ended the solution; of op->outer */
  qk_field_t *five; /* the same where it is of op, borrowed (qk_solver_set_five); NULL: it is b */
  qk_field_t *xs;   /* what r belongs to, on the sites of the system */
  bool nothing;     /* it is 0, whatever stands there */
  int made;         /* the number of the field `full` that its solution stands in, when it ends */
  qk_field_t part;  /* xs of the only slot: in the field where its solution is made */
  qk_measure_t measure;
} qk_system_t;

struct qk_solver {
  qk_operator_t *op;
  qk_work_t *work;
  const qk_device_t *dev;
  const qk_method_t *method;
  void *method_state;
  qk_solver_params_t params;
  qk_beside_t beside;
  int nslot, check;
  int refresh; /* iterations after which r is recomputed in double */

  qk_system_t system[QK_MAX_RHS];
  /* In double: solutions are made here, and change places with their sources. One, or as many as
   * right-hand sides are checked at a time; others are NULL. */
  qk_field_t *full[QK_RHS_TOGETHER];
  qk_field_t *r, *xi; /* of the system, inner precision; xi: see wide_solution */

  qk_scalars_t scalars;
  uint8_t *mask, *mask_host; /* running slots; a mask for one use; those of flavour -1 */

  qk_status_t failed; /* in cancel, which has no status to return: the next call does */

  double *trace; /* [check][nslot] */
  double *walls; /* [nslot][QK_WALL_SUMS][T]; NULL: there are no such sums */
  bool broken[QK_MAX_RHS];
  qk_slot_t slot[QK_MAX_RHS];
  qk_slot_work_t w[QK_MAX_RHS];
  uint64_t wanted[QK_MAX_RHS]; /* qk_solver_set_group */
  int64_t groups;              /* so far */
};

/* The source of a slot, and its solution. */
static inline qk_field_t *qk_system_source(const qk_system_t *y) {
  return y->five ? y->five : y->b;
}

/* Scalars of solver.c: norms, factors; as many of the method follow. */
enum { QK_SOLVER_NORM, QK_SOLVER_FACTOR, QK_SOLVER_OWN };

/* qk_solver_create; without `system` there are no fields in double, for relaxation. */
qk_status_t qk_solver_make(qk_operator_t *op, qk_work_t *work, const qk_solver_params_t *params,
                           bool system, qk_solver_t **solver, qk_err_t *err);

/* Of slot i. */
static inline double *qk_solver_walls(const qk_solver_t *s, int i) {
  return s->walls ? s->walls + (ptrdiff_t)i * QK_WALL_SUMS * s->dev->geom->global[3] : NULL;
}

static inline void qk_solver_gather(qk_solver_t *s, const uint8_t *mask) {
  if (s->method->gather) s->method->gather(s, mask);
}

/* A field of the system in the inner precision. */
qk_status_t qk_solver_field(qk_solver_t *s, qk_field_t **field);

/* All scalars to the mirror at the end of iterations, with what runs beside them begun first.
 * Returns what has failed. */
qk_status_t qk_solver_await(qk_solver_t *s);

/* Device copies of masks: the mask of the running slots, or one of the caller (valid until the
 * next call). */
const uint8_t *qk_solver_running_mask(const qk_solver_t *s);
const uint8_t *qk_solver_upload_mask(qk_solver_t *s, const uint8_t *mask);

/* Calls of the operator that follow are for the block of the slots, or for fields of slot i alone:
 * for right-hand sides of their flavours. Whoever is called from outside begins with the block, and
 * ends with no_flavours. */
void qk_solver_for_block(const qk_solver_t *s);
void qk_solver_for_slot(const qk_solver_t *s, int i);
void qk_solver_no_flavours(const qk_solver_t *s);
/* The deflation of slot i; NULL: none. */
qk_deflation_t *qk_solver_deflation(const qk_solver_t *s, int i);

static inline void qk_solver_blas(const qk_solver_t *s, qk_blas_op_t op, qk_blas_args_t args) {
  qk_dev_blas(s->dev, op, args);
}

/* |v|^2 of all slots, over the ranks. Waits. */
void qk_solver_norm2(qk_solver_t *s, qk_spinor_t v, double *norm2);

/* Sums over the ranks of QK_SOLVER_NORM, which was written for some slots. Waits. */
void qk_solver_norms(qk_solver_t *s, double *norm2);

/* A real factor for slot i alone, on the device until the next one. */
const double *qk_solver_factor(qk_solver_t *s, int i, double value);

/* Slots i and k, both in use, are of one group. */
static inline bool qk_solver_shares(const qk_solver_t *s, int i, int k) {
  return i == k || (s->w[i].group == s->w[k].group && s->w[i].group != 0);
}

/* xi = 0 for the slots of the mask. */
void qk_solver_clear_correction(qk_solver_t *s, const uint8_t *mask);

/* After the states of slots have changed. */
void qk_solver_set_running(qk_solver_t *s);

void qk_solver_end_slot(qk_solver_t *s, int slot, qk_status_t status);

/* ---- solver_system.c. norm2: [nslot]; only the slots of the mask are set. ---- */

qk_status_t qk_system_create(qk_solver_t *s);
void qk_system_destroy(qk_solver_t *s);

/* |b|^2. */
void qk_system_source_norms(qk_solver_t *s, const uint8_t *mask, double *norm2);
/* |b|^2 of sources of any size (NaN: not finite), where exponent[i], 0 so far, is not 0 after b was
 * multiplied by 2^-exponent[i]; s->slot[i].why, empty so far, of those that cannot be solved for.
 * solver_range.c. */
void qk_system_measure(qk_solver_t *s, const uint8_t *mask, double *norm2, int *exponent);
/* f *= 2^exponent. */
void qk_system_scale(qk_solver_t *s, int i, const qk_field_t *f, int exponent);
/* The solution is 0. */
void qk_system_clear(qk_solver_t *s, const uint8_t *mask);
/* Sets b in the units of s->w, and xs = 0 or the first guess of deflation; then r and |r|^2. The
 * caller sets xi. */
void qk_system_begin(qk_solver_t *s, const uint8_t *mask, double *norm2);

typedef struct qk_update {
  double norm;   /* of bhat - Mhat (x_e + xi) */
  bool taken;    /* xi is part of x_e now */
  bool rejected; /* it would have made the residual larger: r belongs to x_e without it */
  bool checked;  /* taken, and the residuals of the slot are those of the full operator at x_e */
  bool ended;    /* by that check; nothing else is set then */
} qk_update_t;

/* x_e += xi for the slots of the mask where that is an improvement (add; otherwise xi is
 * discarded), and r = bhat - Mhat x_e in double: a pass over each parity. last: of those with add,
 * which seem to be at their target: x_o and b - M x of the full operator in place of that, three
 * passes. A slot that this is enough for ends; r of the others is made of b - M x.
 * result: [nslot], of the slots of the mask. */
void qk_system_update(qk_solver_t *s, const uint8_t *mask, const uint8_t *add, const uint8_t *last,
                      qk_update_t result[]);
/* x of slot i from xs, and |b - M x|^2, in the units of s->w; of another measure the number that
 * gives its residual in place of that. Waits. */
double qk_system_reconstruct(qk_solver_t *s, int i);
/* That x is the solution of slot i, in the place of its source, in whose units it is put;
 * s->slot[i].why where it overflows. */
void qk_system_end(qk_solver_t *s, int i);
/* solver_range.c */
void qk_system_rescale(qk_solver_t *s, int i);

/* Ends the slots in `mask`: solution and true residual of the full operator. Slots with a good
 * residual end with OK. The others end with the status in `otherwise`, or continue with a
 * tighter target if that is QK_OK. solver_step.c. */
void qk_solver_finish(qk_solver_t *s, const uint8_t *mask, const qk_status_t *otherwise);

/* What qk_system_reconstruct has found for slot i is its residual; true if all that is asked for
 * holds. Then: it ends, with the solution that stands in `full`. solver_step.c. */
bool qk_solver_reached(qk_solver_t *s, int i, double norm2);
void qk_solver_end_reached(qk_solver_t *s, int i);

/* ---- solver_stop.c ---- */

/* The relative residual that tol and tol_abs ask for; INFINITY: neither is given. norm_b: |b| in
 * the units of tol_abs. */
double qk_stop_relative(const qk_stopping_t *stopping, double norm_b);
/* The one to look at the heavy-quark residual at, where neither is given. */
double qk_stop_first(const qk_stopping_t *stopping, double norm_b);
/* All that is asked for holds, by the residuals that were measured. */
bool qk_stop_reached(const qk_slot_t *slot);
/* |r| of the system that should do, where `best` has given these residuals. */
double qk_stop_target(const qk_slot_t *slot, double best);

void qk_stop_begin(qk_slot_t *slot, qk_slot_work_t *work);
/* r was recomputed; counts: for another reason than that it was time. */
void qk_stop_refreshed(const qk_slot_t *slot, qk_slot_work_t *work, bool counts);
/* Sets hq_residual by the sum of |r|^2 / |x|^2 over sites with x != 0, the number of those with
 * x = 0, and that of all, of the solution before factor. */
void qk_stop_measured(qk_slot_t *slot, double ratios, double zeros, double sites);
/* hq_residual is that of what the slot goes on from. */
void qk_stop_measured_at(const qk_slot_t *slot, qk_slot_work_t *work);

static inline void qk_solver_mhat(qk_solver_t *s, qk_field_t *out, const qk_field_t *in,
                                  bool dagger) {
  if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev, s->op->ops->apply_system(s->op, out, in, dagger, NULL));
}

#endif
