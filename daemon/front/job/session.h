/*
 * session.h: the state of one client id: its connections, its lease, its requests. Pure
 * bookkeeping.
 *
 * Room     There are at most --max-sessions sessions, and a quarter of that for one user, at least
 *          QK_SESSIONS_SHARE. At either limit a session without requests makes room, the one that
 *          was silent longest: of the same user, or else of a user with as many sessions. So a user
 *          with few sessions does not lose them to one with many.
 * Finding  Client ids and the routing ids of both connections are found through hash tables with a
 *          random seed, because peers choose ids and may choose many. An entry may be stale (the
 *          session has lost its connection): the result is compared.
 */
#ifndef QK_FRONT_SESSION_H
#define QK_FRONT_SESSION_H

#include "daemon/front/job/job.h"
#include "daemon/front/job/sched.h"
#include "proto/key.h"

/* A ZeroMQ peer by its routing id; bytes == 0: none. Peers may choose their ids, and reuse that
 * of an ended connection; the number identifies the connection. */
typedef struct qk_peer {
  uint8_t id[255];
  uint8_t bytes;
  uint8_t thread;        /* of a data connection: number of its socket */
  char key[QK_KEY_TEXT]; /* verified key; "": none */
  uint64_t connection;
  bool
      /* the connection has ended: its messages may still be read, but nothing is sent to it */
      ended;
} qk_peer_t;

/* True if messages can be sent to it. */
bool qk_peer_reachable(const qk_peer_t *peer);

/* True if the routing ids, and the sockets that they are of, are equal. */
bool qk_peer_equal(const qk_peer_t *a, const qk_peer_t *b);
/* True if it is also the same connection. */
bool qk_peer_same(const qk_peer_t *a, const qk_peer_t *b);

/* What sessions are found by. */
typedef enum qk_session_key {
  QK_BY_ID,
  QK_BY_CONTROL,
  QK_BY_DATA,
  QK_SESSION_KEYS
} qk_session_key_t;

enum { QK_SESSION_BUCKETS = 1024 };

typedef struct qk_session {
  uint8_t client_id[QK_CLIENT_ID];
  uint8_t token[QK_CLIENT_ID]; /* of the first HELLO; others differ in their last bytes */
  bool greeted;
  bool by_blocks;  /* its client understands checksums of blocks */
  uint32_t hellos; /* after the first one */
  uint32_t bound;  /* number of the HELLO whose token the data connection has */
  char name[12];   /* for the log: the first bytes of the client id */
  qk_peer_t control, data;
  uint64_t full;  /* its data connection took no more: number of that pause (net.h) */
  int control_fd; /* descriptor of its control connection; -1: not known */
  qk_sched_user_t *user;
  double lease;    /* seconds, as the client was told */
  double seen;     /* of qk_loop_awake: last message on any channel */
  uint64_t newest; /* greatest request number accepted */
  uint64_t change; /* what it is told waits until the journal holds this one (marks.h) */
  qk_link_t jobs;
  int njobs;
  bool away;    /* its client has left: only detached requests are here */
  bool closing; /* to be dropped at the end of this turn of the loop */
  struct qk_session *next[QK_SESSION_KEYS]; /* in its bucket */
  uint32_t bucket[QK_SESSION_KEYS];
} qk_session_t;

/* Zeros: none. */
typedef struct qk_sessions {
  qk_session_t **at;
  int count, room;
  uint64_t seed; /* of the hashes; 0: not chosen yet */
  qk_session_t *bucket[QK_SESSION_KEYS][QK_SESSION_BUCKETS];
} qk_sessions_t;

/* A new session; token is random. However many there are: what the journal holds comes back.
 * Errors: QK_NO_MEMORY. */
qk_status_t qk_session_create(qk_sessions_t *sessions, qk_sched_t *sched, const uint8_t *client_id,
                              const char *user, double now, qk_session_t **session, qk_err_t *err);
/* Opens a session, at most `most` at a time. *gone: NULL, or the idle session that makes room.
 * The caller drops it without a message: its client is told to send HELLO when it comes back.
 * Errors: QK_BUSY (all in use, or the user's share is), QK_NO_MEMORY. */
qk_status_t qk_session_open(qk_sessions_t *sessions, qk_sched_t *sched, const uint8_t *client_id,
                            const char *user, double now, int most, qk_session_t **session,
                            qk_session_t **gone, qk_err_t *err);
/* Has no jobs any more. The last one frees the table. */
void qk_session_destroy(qk_sessions_t *sessions, qk_session_t *session);
/* Number of sessions, out of `most`, that one user may have. */
int qk_session_share(int most);
/* Its connections are these from now on. To let one go: bytes = 0. */
void qk_session_set_control(qk_sessions_t *sessions, qk_session_t *session, const qk_peer_t *peer);
void qk_session_set_data(qk_sessions_t *sessions, qk_session_t *session, const qk_peer_t *peer);

/* Each HELLO makes another token. One of an earlier HELLO binds no data connection any more once
 * one of a later HELLO has: a client that has given up a connection may still have a BIND on its
 * way there. */
void qk_session_greet(qk_session_t *session);
/* That of the latest HELLO. */
void qk_session_token(const qk_session_t *session, uint8_t token[QK_CLIENT_ID]);
/* True if the session has made that token. */
bool qk_session_has_token(const qk_session_t *session, const uint8_t *token);
/* A data connection is to be bound with a token of the session. False: it comes too late. */
bool qk_session_bind(qk_session_t *session, const uint8_t *token);

/* user: as verified; NULL: users are not verified, and anyone who knows the client id may use
 * the session. */
bool qk_session_is_of(const qk_session_t *session, const char *user);

/* NULL where there is none (or it is closing). */
qk_session_t *qk_session_by_id(const qk_sessions_t *sessions, const uint8_t *client_id);
qk_session_t *qk_session_by_control(const qk_sessions_t *sessions, const qk_peer_t *peer);
qk_session_t *qk_session_by_data(const qk_sessions_t *sessions, const qk_peer_t *peer);

qk_job_t *qk_session_job(const qk_session_t *session, uint64_t request);
/* The job belongs to the session now. */
void qk_session_adopt(qk_session_t *session, qk_job_t *job);
/* Jobs of sessions and orphans (may be NULL); none may be added or removed meanwhile. */
typedef void qk_session_job_fn(qk_job_t *job, void *arg);
void qk_session_each_job(const qk_sessions_t *sessions, const qk_link_t *orphans,
                         qk_session_job_fn *each, void *arg);

/* What the clients of jobs are told. Whoever reaches them implements it (net/net.c); service/ and
 * state/ call it. An event may mark its session as one to be dropped, and destroys nothing. */
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
