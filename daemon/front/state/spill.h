/*
 * spill.h: evicts solutions that nobody has fetched from memory to the state folder (DIR/spool)
 * when a request finds no room, and reads them back when they are asked for. It first takes
 * solutions whose clients are away, oldest first, then those of requests from which nothing has
 * been fetched for the time of the lease; up to --spill bytes.
 *
 * A solution leaves memory only when it is on disk and the journal says so. Only threads of its own
 * touch disk and memory. The file stays until ACK or expiry, so that the solution can be evicted
 * again without writing. A solution whose file is missing or damaged has expired, and so has one
 * whose disk has failed five times within some 15 s. If there is no memory for it, it stays on disk
 * and is tried again.
 *
 * One solution for each client is read back even if there is no room. Others of the same client
 * wait for room, or until that one has been fetched.
 */
#ifndef QK_FRONT_SPILL_H
#define QK_FRONT_SPILL_H

#include "daemon/front/host/loop.h"
#include "daemon/front/job/session.h"
#include "daemon/front/state/journal.h"

enum { QK_SPILL_LEAVE_SECONDS = 10 };

/* Where solutions are, and where they go; borrowed. */
typedef struct qk_spill_site {
  qk_loop_t *loop;
  qk_spool_t *spool;
  qk_journal_t *journal;
  const qk_sessions_t *sessions;
  const qk_link_t *orphans;
  const qk_budget_t *budget; /* of all requests */
  qk_shm_space_t *space;
  const int64_t *limit; /* bytes on the disk */
  const qk_job_events_t *events;
} qk_spill_site_t;

/* *spill is NULL without a state folder: all functions accept that, and nothing is spilled.
 * QK_NO_MEMORY. */
qk_status_t qk_spill_open(const qk_spill_site_t *site, qk_spill_t **spill, qk_err_t *err);
/* Ends its threads; what they have begun is over then. Before the loop ends. */
void qk_spill_stop(qk_spill_t *spill);
/* After qk_spill_stop. */
void qk_spill_close(qk_spill_t *spill);

/* A request of so many bytes was refused for now: begins to make room. */
void qk_spill_make_room(qk_spill_t *spill, const qk_session_t *session, int64_t bytes);
/* Goes on with what clients have asked for, and with what can leave memory. Every tick. */
void qk_spill_tick(qk_spill_t *spill);
/* For the end of the front, if the next one may run elsewhere: writes solutions that may still
 * be wanted to disk, as many as there is room for and as can be written in
 * QK_SPILL_LEAVE_SECONDS. Those that cannot be computed again (can_make is false) go first.
 * Blocks; the loop has ended. Returns how many were written. */
int qk_spill_leave(qk_spill_t *spill, bool (*can_make)(const qk_rhs_t *rhs));
/* Whether the solution that the journal says is on the disk is there; row has its checksum. */
bool qk_spill_restore(qk_spill_t *spill, qk_rhs_t *rhs, const qk_rhs_t *row);
/* Reads such a solution into memory at once, as one that is kept by handle must be there; its room
 * is charged. Blocks.
 * QK_NOT_FOUND: it cannot be read, and is forgotten; QK_NO_MEMORY: nothing has changed. */
qk_status_t qk_spill_load(qk_spill_t *spill, qk_rhs_t *rhs, qk_err_t *err);
/* It is not needed any more; its file goes. */
void qk_spill_forget(qk_rhs_t *rhs);
/* Bytes on the disk. */
int64_t qk_spill_bytes(const qk_spill_t *spill);

#endif
