/*
 * session_promise.h: what a front with a state folder has promised when it ends, and whether
 * the next one knows of it.
 */
#ifndef QK_FUZZ_SESSION_PROMISE_H
#define QK_FUZZ_SESSION_PROMISE_H

#include "daemon/front/server.h"

/* What is in the journal now, which must be clean, or will be, is what is promised. */
void promise_note(const qk_server_t *server);
/* Nothing is promised any more. */
void promise_nothing(void);
/* The next front has it all: sessions go on. forgetful: solutions may have gone, and are made
 * again; stale: more may have been promised since. */
void promise_check(const qk_server_t *server, bool forgetful, bool stale);

#endif
