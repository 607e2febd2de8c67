/*
 * slots.h: right-hand sides into the solver's slots and solutions out of them.
 *
 * Sources come from source.h, solutions go to shared memory through a port. The solver knows slots, the
 * front knows tickets; here they meet. A fill that cannot be carried out leaves its slot free and touches no other.
 *
 * A single fill that finds nothing running goes to the setup's solver of one column, where there is one, and stays there; what
 * comes meanwhile goes to the block. The front does not know: slots are slots.
 *
 * All calls but the queries are collective. A status other than QK_OK means that the process cannot
 * go on (DEVICE and PROCESS of status.h); what concerns one right-hand side is in verdicts and results.
 */
#ifndef QK_ENGINE_SLOTS_H
#define QK_ENGINE_SLOTS_H

#include "daemon/engine/port.h"

typedef struct qk_slots qk_slots_t;

typedef struct qk_result {
  int slot;
  uint64_t ticket;
  qk_err_t err; /* code: the slot's status; text: why the solution was not written, or empty */
  double tol;   /* as asked for */
  double true_residual;  /* |b - M x| / |b| */
  double norm_b, norm_x; /* of M x = b, before the factor of the fill */
  int64_t iterations, applications;
  double seconds;
  bool written; /* the solution stands in the segment of the fill */
} qk_result_t;

/* Borrows the port. */
qk_status_t qk_slots_create(qk_port_t *port, qk_slots_t **slots, qk_err_t *err);
void qk_slots_destroy(qk_slots_t *slots); /* NULL-safe */

/* The fills name different, free slots. verdict[i].code is QK_OK where fill i was taken up. */
qk_status_t qk_slots_fill(qk_slots_t *slots, int n, const qk_fill_t fill[], qk_err_t verdict[],
                          qk_err_t *err);
/* A running slot ends with CANCELLED. */
void qk_slots_cancel(qk_slots_t *slots, int slot);
/* One interval of the solver for all running slots. */
qk_status_t qk_slots_step(qk_slots_t *slots, qk_err_t *err);
/* Writes out and frees the slots that have ended: result[0..*n), of room for all slots. */
qk_status_t qk_slots_retire(qk_slots_t *slots, qk_result_t result[], int *n, qk_err_t *err);

int qk_slots_running(const qk_slots_t *slots);
bool qk_slots_busy(const qk_slots_t *slots, int slot);
const qk_slot_t *qk_slots_state(const qk_slots_t *slots, int slot); /* of a busy one */
uint64_t qk_slots_ticket(const qk_slots_t *slots, int slot);        /* of a busy one */

#endif
