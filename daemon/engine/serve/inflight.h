/*
 * inflight.h: moves right-hand sides (RHS) into the solver's slots, and solutions out of them.
 *
 * Sources come from source.h, solutions go to shared memory through a port. The front numbers
 * in-flight entries, the solver numbers slots of its batch; this module connects them. If fields
 * are staged (staging.h) there are more entries than slots: an RHS has its entry from fill to
 * result, and a slot only while it is solved. RHS take slots in the order in which they came,
 * except those whose source is still under way, and those that do better to begin with their group
 * (placement.h).
 *
 * Fills that are no solves (works.h), or that have a mass (masses.h), have an entry, and no slot.
 *
 * An RHS that finds the engine idle uses the single-RHS solver, if there is one, until its end;
 * later arrivals use the batch. The front sees no difference.
 *
 * All calls except the queries are collective. A status other than QK_OK means that the process
 * cannot continue (DEVICE and PROCESS of status.h); errors of one RHS are in its result.
 */
#ifndef QK_ENGINE_INFLIGHT_H
#define QK_ENGINE_INFLIGHT_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/field_io.h"
#include "daemon/engine/transfer/staging.h"

typedef struct qk_inflight qk_inflight_t;

typedef struct qk_result {
  int entry;
  uint64_t serial;
  bool refused; /* it was never solved, because of err */
  bool worked;  /* it was no solve */
  qk_err_t err; /* code: the slot's status; text: why the solution was not written, or empty */
  qk_stopping_t stopping; /* as asked for */
  double true_residual;   /* |b - M x| / |b| */
  double hq_residual;     /* of factor x; NaN: not asked for, or there was no solve */
  double norm_b, norm_x;  /* of M x = b, before the factor of the fill */
  /* Of the solution, before that factor: [qk_wall_sum_t][times] (operator.h), NaN what is not
   * defined; NULL: there are none. As long as the entry is not filled again. */
  const double *walls;
  int times;
  int64_t iterations, applications;
  double seconds;
  bool written; /* the segment of the fill holds the solution */
} qk_result_t;

/* Borrows setup and port. */
qk_status_t qk_inflight_create(qk_loaded_t *setup, qk_field_io_t *port, qk_inflight_t **inflight,
                               qk_err_t *err);
void qk_inflight_destroy(qk_inflight_t *inflight); /* NULL-safe */

/* The fills name different, free slots. */
qk_status_t qk_inflight_fill(qk_inflight_t *inflight, int n, const qk_fill_t fill[], qk_err_t *err);
/* Before it, in each round: what its head says. */
void qk_inflight_blocks_go(qk_inflight_t *inflight, bool go);
/* It ends with CANCELLED, unless its solution is leaving. */
void qk_inflight_cancel(qk_inflight_t *inflight, int entry);
/* Advances fields under way, fills free slots, and runs the solver for one interval. */
qk_status_t qk_inflight_step(qk_inflight_t *inflight, qk_err_t *err);
/* The stage on which steps poll and begin copies; contractions use it, too. leave_buffers: sources
 * leave n of its buffers free from now on, except those of QK_ORDER_FIRST. lacking: how many
 * sources need a buffer and have none. */
qk_staging_t *qk_inflight_stage(const qk_inflight_t *inflight);
void qk_inflight_leave_buffers(qk_inflight_t *inflight, int n);
int qk_inflight_lacking(const qk_inflight_t *inflight);
/* Frees the slots that have ended: result[0..*n), of room for all slots. */
qk_status_t qk_inflight_retire(qk_inflight_t *inflight, qk_result_t result[], int *n,
                               qk_err_t *err);

int qk_inflight_count(const qk_inflight_t *inflight);
int qk_inflight_running(const qk_inflight_t *inflight);    /* that are not free */
bool qk_inflight_solving(const qk_inflight_t *inflight);   /* whether the next step iterates */
uint64_t qk_inflight_steps(const qk_inflight_t *inflight); /* that have iterated, since the start */
int qk_inflight_hungry(
    const qk_inflight_t *inflight); /* slots of the batch for which no RHS waits */
bool qk_inflight_busy(const qk_inflight_t *inflight, int entry);
/* Of a slot that is being solved; else NULL. */
const qk_slot_t *qk_inflight_state(const qk_inflight_t *inflight, int entry);
uint64_t qk_inflight_serial(const qk_inflight_t *inflight, int entry); /* of a busy one */

#endif
