/*
 * session_check.h: what must hold of the front between two turns of its loop, whatever was said to it. Each check ends the
 * process where it does not.
 */
#ifndef QK_FUZZ_SESSION_CHECK_H
#define QK_FUZZ_SESSION_CHECK_H

#include "daemon/front/server.h"

void check_begin(void);
/* Right-hand sides that were accepted from now on. */
void check_accepted(uint32_t nrhs);
/* A RESULT is on its way to that peer. repeats: results may be told again now. */
void check_told(const qk_server_t *server, int peer, const Quark__Result *result, bool repeats);
/* Messages may have been lost: from now on what was not told is not missed. */
void check_lossy(void);
/* Counts, budgets, queues, slots. */
void check_state(const qk_server_t *server, int64_t fields);
/* Everybody has gone, and nothing runs. */
void check_empty(const qk_server_t *server);
/* The front has left. */
void check_over(const qk_server_t *server);

#endif
