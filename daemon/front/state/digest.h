/*
 * digest.h: checksums of solutions, so that the front that adopts one from shared memory knows that
 * it is still what the engine has left there. Small ones are read at once, others on a thread of
 * libuv; until that is done the row has none, and the solution would be adopted as it is.
 */
#ifndef QK_FRONT_DIGEST_H
#define QK_FRONT_DIGEST_H

#include <uv.h>

#include "daemon/front/job/job.h"

/* Of an RHS that has ended with a solution; nothing without a journal. Its row is marked when the
 * checksum is there. */
void qk_digest_begin(uv_loop_t *loop, qk_rhs_t *rhs);
/* The solution goes, or its RHS. */
void qk_digest_abandon(qk_rhs_t *rhs);

#endif
