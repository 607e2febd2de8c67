/*
 * sessions.h: what becomes of sessions: leases, deadlines, progress, and their end. One is dropped
 * in one place, at the end of a turn; whoever finds a reason only marks it.
 */
#ifndef QK_FRONT_SESSIONS_H
#define QK_FRONT_SESSIONS_H

#include "daemon/front/service/service.h"

/* Tells the client why and drops its session at the end of this turn. */
void qk_sessions_close(qk_service_t *service, qk_session_t *session, qk_status_t status,
                       const char *text);
/* The client has gone: its session ends, but for requests that outlive it. */
void qk_sessions_part(qk_service_t *service, qk_session_t *session);
/* Ends it with all that it has. */
void qk_sessions_drop(qk_service_t *service, qk_session_t *session);
/* At the end of a turn: those that are marked go. */
void qk_sessions_sweep(qk_service_t *service);
/* After the sockets have been served, at ticks: who has said something is not silent. True: there
 * was not time for all: again in the next turn. */
bool qk_sessions_tick(qk_service_t *service);
/* A right-hand side of the job has ended. */
void qk_sessions_due(qk_job_t *job);
/* Settings have changed: all is looked at again. */
void qk_sessions_look(qk_service_t *service);
/* Whether no work is left that somebody waits for. */
bool qk_sessions_idle(const qk_service_t *service);

#endif
