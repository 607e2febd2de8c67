/*
 * events.h: what the clients of jobs are told. Whoever reaches them implements it (net/net.c);
 * service/ and state/ call it. An event may mark its session as one to be dropped, and destroys
 * nothing.
 */
#ifndef QK_FRONT_EVENTS_H
#define QK_FRONT_EVENTS_H

#include "daemon/front/job/session.h"

typedef struct qk_job_events {
  void *arg;
  /* repeated: it was accepted before. */
  void (*accepted)(void *arg, qk_session_t *session, qk_job_t *job, bool repeated);
  /* It has ended. */
  void (*result)(void *arg, qk_session_t *session, qk_rhs_t *rhs);
  /* There is more room for its upload. */
  void (*credit)(void *arg, qk_session_t *session, qk_job_t *job);
  void (*progress)(void *arg, qk_session_t *session, const qk_job_t *job);
  /* Its solution may have become one that can be sent. */
  void (*sendable)(void *arg, qk_rhs_t *rhs);
  /* request: 0, or the one that it is about. */
  void (*error)(void *arg, const qk_session_t *session, qk_status_t status, const char *text,
                bool fatal, uint64_t request);
  /* The session has ended, or its client has gone. */
  void (*closed)(void *arg, const qk_session_t *session);
} qk_job_events_t;

#endif
