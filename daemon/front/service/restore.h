/*
 * restore.h: what goes into the state folder and what comes back out of it (`--state`): the folder's lock, the journal, the spool,
 * and the requests of the front before.
 *
 *   DIR/lock        held while a front lives          DIR/journal.db   journal.h
 *   DIR/multigrid   checkpoint of multigrid           DIR/spool/       spool.h
 *
 * Setups that clients have loaded come back with the requests for them, and so does the choice of the default. A request comes back as it was, but for what was in slots, which is queued again, and for what went with the machine: a
 * solution that is not in shared memory any more, or not as it was, is made again where its source still is; an upload goes on, or, where
 * its bytes are lost, begins anew with that right-hand side.
 */
#ifndef QK_FRONT_RESTORE_H
#define QK_FRONT_RESTORE_H

#include "daemon/front/service/service.h"

/* Nothing without --state. Errors: QK_BUSY (another front holds the folder), QK_IO_ERROR, QK_BAD_FORMAT,
 * QK_BAD_ARGUMENT (its requests are for another operator), QK_NO_MEMORY. */
qk_status_t qk_restore_open(qk_service_t *service, qk_err_t *err);
/* Whether the next front is sure to make the solution again if it is lost: not if its client may
 * have let its source go, if its time may be over then, or if other requests use it. */
bool qk_restore_can_make(const qk_rhs_t *rhs);
/* Whether it was accepted on another gauge configuration than its setup had last; if so, nothing of
 * it may be solved. */
bool qk_restore_is_of_another(const qk_job_t *job);
/* Whether requests are left that the next front should go on with, or kept solutions. */
bool qk_restore_needed(const qk_service_t *service);
/* Ends the recording; what is promised stays where `leave` says so. in_order: the front has served and ends as it was told, so that
 * the next one may run on another machine: then what is promised is in the state folder as far as it can be, and leaves shared memory. */
void qk_restore_seal(qk_service_t *service, bool leave, bool in_order);
/* After all jobs and the loop have gone. */
void qk_restore_close(qk_service_t *service);

#endif
