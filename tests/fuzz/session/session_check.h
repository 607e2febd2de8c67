/*
 * session_check.h: what must hold of the front between two turns of its loop, whatever was said to
 * it. Each check ends the process where it does not.
 */
#ifndef QK_FUZZ_SESSION_CHECK_H
#define QK_FUZZ_SESSION_CHECK_H

#include "daemon/front/server.h"

void check_begin(void);
/* Another front; stale: it knows an older state of the one before. */
void check_front(bool stale);
/* Right-hand sides that were accepted from now on. */
void check_accepted(uint32_t nrhs);
/* A RESULT is on its way to that peer. repeats: results may be told again now. */
void check_told(const qk_server_t *server, int peer, const Quark__Result *result, bool repeats);
/* Messages may have been lost: from now on what was not told is not missed. */
void check_lossy(void);
/* What has ended without a client who could hear of it counts as told. */
void check_unheard(const qk_server_t *server);
/* Nobody remembers what was told. */
void check_untold(void);
/* What stands for a session, and goes on in the next front as another one; -1: nothing. */
int check_life(const qk_session_t *session);
void check_goes_on(int life, const qk_session_t *session);
/* Counts, budgets, queues, slots. moving: threads hold fields, too. */
void check_state(const qk_server_t *server, int64_t fields, bool moving);
/* Everybody has gone, and nothing runs. */
void check_empty(const qk_server_t *server);
/* The front has left. */
void check_over(const qk_server_t *server);

#endif
