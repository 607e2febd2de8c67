/*
 * slots.h: right-hand sides into the solver's slots and solutions out of them.
 *
 * Sources come from source.h, solutions go to shared memory through a port. The solver knows
 * columns, the front knows slots and tickets; here they meet. There are more slots than columns
 * where fields are staged (stage.h): a right-hand side has its slot from fill to result, and a
 * column of the solver only while it is solved. Those that wait for one take it in the order in
 * which they came, but for those whose source is still on its way, and for what does better to
 * begin together (slot_group.h).
 *
 * One that finds nothing else there goes to the setup's solver of one column, where there is one,
 * and stays; what comes meanwhile goes to the block. The front does not know: slots are slots.
 *
 * All calls but the queries are collective. A status other than QK_OK means that the process
 * cannot go on (DEVICE and PROCESS of status.h); what concerns one right-hand side is in its
 * result.
 */
#ifndef QK_ENGINE_SLOTS_H
#define QK_ENGINE_SLOTS_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/port.h"
#include "daemon/engine/transfer/stage.h"

typedef struct qk_slots qk_slots_t;

typedef struct qk_result {
  int slot;
  uint64_t ticket;
  bool refused; /* it was never solved, for err */
  qk_err_t err; /* code: the slot's status; text: why the solution was not written, or empty */
  double tol;   /* as asked for */
  double true_residual;  /* |b - M x| / |b| */
  double norm_b, norm_x; /* of M x = b, before the factor of the fill */
  int64_t iterations, applications;
  double seconds;
  bool written; /* the solution stands in the segment of the fill */
} qk_result_t;

/* Borrows setup and port. */
qk_status_t qk_slots_create(qk_loaded_t *setup, qk_port_t *port, qk_slots_t **slots, qk_err_t *err);
void qk_slots_destroy(qk_slots_t *slots); /* NULL-safe */

/* The fills name different, free slots. */
qk_status_t qk_slots_fill(qk_slots_t *slots, int n, const qk_fill_t fill[], qk_err_t *err);
/* It ends with CANCELLED, unless its solution is leaving. */
void qk_slots_cancel(qk_slots_t *slots, int slot);
/* Fields on their way move on, free columns are taken, and the solver runs for one interval. */
qk_status_t qk_slots_step(qk_slots_t *slots, qk_err_t *err);
/* What steps poll and begin copies of; for whoever else has fields to move beside the slots.
 * Sources leave so many of its buffers free from now on, but for those that are ahead. Lacking:
 * sources that have no buffer and want one. */
qk_stage_t *qk_slots_stage(const qk_slots_t *slots);
void qk_slots_leave_buffers(qk_slots_t *slots, int n);
int qk_slots_lacking(const qk_slots_t *slots);
/* Frees the slots that have ended: result[0..*n), of room for all slots. */
qk_status_t qk_slots_retire(qk_slots_t *slots, qk_result_t result[], int *n, qk_err_t *err);

int qk_slots_count(const qk_slots_t *slots);
int qk_slots_running(const qk_slots_t *slots);    /* that are not free */
bool qk_slots_solving(const qk_slots_t *slots);   /* whether the next step iterates */
uint64_t qk_slots_steps(const qk_slots_t *slots); /* that have iterated, since the start */
int qk_slots_hungry(const qk_slots_t *slots);     /* columns that nothing waits for */
bool qk_slots_busy(const qk_slots_t *slots, int slot);
/* Of a slot that is being solved; else NULL. */
const qk_slot_t *qk_slots_state(const qk_slots_t *slots, int slot);
uint64_t qk_slots_ticket(const qk_slots_t *slots, int slot); /* of a busy one */

#endif
