/*
 * restore.h: writes the state folder (`--state`) and restores from it: its lock, the journal, the
 * spool, and the requests of the previous front.
 *
 *   DIR/lock        held while a front runs           DIR/journal.db   journal.h
 *   DIR/multigrid   checkpoint of multigrid           DIR/spool/       spool.h
 *
 * Setups of clients, their requests and the choice of the default are restored. Right-hand sides
 * that were in slots are queued again. If a solution in shared memory is lost or damaged, it is
 * computed again if its source survives. An upload continues; if its bytes are lost it begins again
 * with that right-hand side.
 */
#ifndef QK_FRONT_RESTORE_H
#define QK_FRONT_RESTORE_H

#include "daemon/front/service/service.h"

/* Does nothing without --state. Errors: QK_BUSY (another front holds the folder), QK_IO_ERROR,
 * QK_BAD_FORMAT, QK_BAD_ARGUMENT (its requests are for another operator), QK_NO_MEMORY. */
qk_status_t qk_restore_open(qk_service_t *service, qk_err_t *err);
/* Whether the next front is sure to make the solution again if it is lost: not if its client may
 * have let its source go, if its time may be over then, or if other requests use it. */
bool qk_restore_can_make(const qk_rhs_t *rhs);
/* Whether it was accepted on another gauge configuration than its setup had last; if so, nothing of
 * it may be solved. */
bool qk_restore_is_of_another(const qk_job_t *job);
/* Whether requests are left that the next front should go on with, or kept solutions. */
bool qk_restore_needed(const qk_service_t *service);
/* Ends the recording; with `leave` the fields of accepted requests stay. in_order: the front
 * ends regularly, and the next one may run on another machine. Then those fields move from
 * shared memory to the state folder as far as possible. */
void qk_restore_seal(qk_service_t *service, bool leave, bool in_order);
/* After all jobs and the loop have gone. */
void qk_restore_close(qk_service_t *service);

#endif
