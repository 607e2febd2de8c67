/*
 * spill.h: solutions that nobody has fetched leave memory for the state folder (DIR/spool) when a request finds no room, and come
 * back when they are asked for. Those go whose clients are away, longest first, then those of requests from which nothing has been
 * fetched for as long as the lease; up to --spill bytes.
 *
 * A solution is on the disk, and the journal says so, before it leaves memory. Disk and memory are touched by libuv's
 * threads only. Its file stays until ACK or expiry, so that it can leave again for nothing. A solution that cannot be read
 * back has expired.
 *
 * One comes back for each client whatever room there is; others of the same client wait for room, or until that one has been
 * fetched.
 */
#ifndef QK_FRONT_SPILL_H
#define QK_FRONT_SPILL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

struct qk_server;
struct qk_session;
struct qk_rhs;
typedef struct qk_spill qk_spill_t;
typedef struct qk_spill_task qk_spill_task_t;

/* NULL-safe pointers: without a state folder there is none, and nothing is spilled. QK_NO_MEMORY. */
qk_status_t qk_spill_open(struct qk_server *server, qk_spill_t **spill, qk_err_t *err);
void qk_spill_close(qk_spill_t *spill);

/* A request of so many bytes was refused for now: begins to make room. */
void qk_spill_make_room(qk_spill_t *spill, const struct qk_session *session, int64_t bytes);
/* Goes on with what clients have asked for, and with what can leave memory. Every tick. */
void qk_spill_tick(qk_spill_t *spill);
/* The journal says that a solution was on the disk. Whether it is. */
bool qk_spill_restore(qk_spill_t *spill, struct qk_rhs *rhs);
/* It is not needed any more; its file goes. */
void qk_spill_forget(struct qk_rhs *rhs);
/* Bytes on the disk. */
int64_t qk_spill_bytes(const qk_spill_t *spill);

#endif
