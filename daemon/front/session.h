/*
 * session.h: what belongs to one client id: its connections, its lease, its requests. Pure
 * bookkeeping.
 */
#ifndef QK_FRONT_SESSION_H
#define QK_FRONT_SESSION_H

#include "daemon/front/job.h"
#include "daemon/front/sched.h"

/* Routing id of a ZeroMQ peer; bytes == 0: none. */
typedef struct qk_peer {
  uint8_t id[255];
  uint8_t bytes;
} qk_peer_t;

bool qk_peer_equal(const qk_peer_t *a, const qk_peer_t *b);

typedef struct qk_session {
  uint8_t client_id[QK_CLIENT_ID], token[QK_CLIENT_ID];
  char name[12]; /* for the log: the first bytes of the client id */
  qk_peer_t control, data;
  qk_sched_user_t *user;
  double lease;    /* seconds, as the client was told */
  double seen;     /* of the loop's clock: last message on either channel */
  uint64_t newest; /* greatest request number accepted */
  qk_link_t jobs;
  int njobs;
  bool away;   /* its client has gone: only what outlives it is here */
  bool doomed; /* to be dropped at the end of this turn of the loop */
} qk_session_t;

typedef struct qk_sessions {
  qk_session_t *at[QK_SESSIONS_MAX];
  int count;
} qk_sessions_t;

/* A new session; token is random. Errors: QK_BUSY (all taken), QK_NO_MEMORY. */
qk_status_t qk_session_create(qk_sessions_t *sessions, qk_sched_t *sched, const uint8_t *client_id,
                              const char *user, double now, qk_session_t **session, qk_err_t *err);
/* Has no jobs any more. */
void qk_session_destroy(qk_sessions_t *sessions, qk_session_t *session);

/* user: as verified; NULL: nobody verifies users, and whoever knows the client id has the session. */
bool qk_session_is_of(const qk_session_t *session, const char *user);

/* NULL where there is none (or it is doomed). */
qk_session_t *qk_session_by_id(const qk_sessions_t *sessions, const uint8_t *client_id);
qk_session_t *qk_session_by_control(const qk_sessions_t *sessions, const qk_peer_t *peer);
qk_session_t *qk_session_by_data(const qk_sessions_t *sessions, const qk_peer_t *peer);

qk_job_t *qk_session_job(const qk_session_t *session, uint64_t request);

#endif
