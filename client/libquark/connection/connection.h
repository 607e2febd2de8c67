/*
 * connection.h: the sockets of a connection to the daemon, and the thread that owns them.
 *
 * The thread sends what is queued, hands everything it receives upward through a table of handlers,
 * and wakes the callers that wait. It knows neither requests nor transfers.
 *
 * Threads  One mutex, `lock`, guards all of a connection. Functions named quark__..._locked are
 *          called with it held. The ZeroMQ sockets belong to the connection's thread alone. Calls
 *          of the user change the state under the mutex, wake the thread through `wake` and wait on
 *          `changed`. The thread broadcasts `changed` once in each turn of its loop.
 * Errors   A function that returns a code fills in *err (may be NULL). If it fails, nothing was
 *          queued and the state is unchanged.
 */
#ifndef QUARK_CONNECTION_H
#define QUARK_CONNECTION_H

#include <pthread.h>
#include <sys/un.h>

#include "client/libquark/connection/curve.h"
#include "client/quark.h"
#include "proto/control.h"
#include "proto/frame.h"
#include "proto/limits.h"

/* Sockets that took no more in this turn: the loop waits until they can be written again. */
typedef struct full {
  bool data, local;
} full_t;

/* The reactions to what happens to a connection; handlers.c has the table. Every handler is called
 * with the mutex held, on the connection's thread. */
typedef struct quark__handlers {
  /* connection.c calls these. */
  void (*connected)(quark_connection_t *conn); /* control is connected anew, or data was lost */
  void (*lost)(quark_connection_t *conn);      /* control was lost */
  void (*refused)(quark_connection_t *conn, uint16_t event, uint32_t value); /* see curve.h */
  bool (*unreachable)(quark_connection_t *conn); /* the data endpoint; true: another is tried */
  void (*message)(quark_connection_t *conn, const Quark__ServerMessage *message);
  void (*frame)(quark_connection_t *conn, const qk_frame_t *frame, const uint8_t *payload);
  void (*damaged)(quark_connection_t *conn, quark_code_t code, const char *text); /* data message */
  void (*readable)(quark_connection_t *conn); /* the local socket may be */
  full_t (*send)(quark_connection_t *conn);   /* once a turn, before the thread sleeps */
  void (*tick)(quark_connection_t *conn);     /* once a turn, at least every 200 ms */
  void (*leave)(quark_connection_t *conn);    /* the last call */
  /* session.c calls these. */
  void (*binding)(quark_connection_t *conn, const char *local_path); /* NULL: no local socket */
  void (*opened)(quark_connection_t *conn);    /* before messages that waited are sent */
  void (*suspended)(quark_connection_t *conn); /* the session is not open any more */
  void (*forgotten)(quark_connection_t *conn, quark_code_t code, const char *text); /* by daemon */
  void (*ended)(quark_connection_t *conn, quark_code_t code, const char *text);     /* for good */
} quark__handlers_t;

typedef struct packet {
  struct packet *next;
  unsigned feature; /* goes only to a daemon that has it; 0: to any */
  size_t bytes;
  uint8_t data[];
} packet_t;

typedef enum session_state {
  SESSION_SEEKING,  /* no connection */
  SESSION_GREETING, /* HELLO sent */
  SESSION_BINDING,  /* BIND sent */
  SESSION_OPEN,
  SESSION_DEAD
} session_state_t;

struct quark_connection {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
  bool stop;
  int wake, events; /* eventfds */
  const quark__handlers_t *on;
  char *endpoint;
  uint32_t timeout_ms;
  curve_t curve;
  void *zmq, *control, *control_monitor, *data, *data_monitor;
  uint32_t sockets; /* made so far: names the monitors */
  int local;        /* the socket for descriptors; -1: none */
  bool local_ours;  /* its daemon is root's or runs as our user */
  bool local_full;  /* it had no room for one more client */
  struct sockaddr_un local_address;
  packet_t *out, **out_end;      /* control messages that wait for the session or the socket */
  int64_t last_sent, last_heard; /* ms */

  /* session.c */
  session_state_t state;
  char *user, *program;
  char *setup; /* NULL: the daemon's default */
  uint8_t client_id[QK_CLIENT_ID], token[QK_CLIENT_ID];
  uint32_t reconnect_ms, lease_ms, max_rhs;
  bool keep_session, try_local;
  bool journal;         /* the daemon keeps one */
  uint64_t features;    /* of the daemon (WELCOME): bit n is feature n */
  bool extra_data;      /* the data socket goes to another than the first endpoint of the daemon */
  bool first_data_only; /* such a one did not answer */
  bool was_open, resumed;
  uint64_t sessions;     /* times the session was opened */
  int64_t seeking_since; /* ms */
  void (*sought)(void *arg, const char *text);
  void *sought_arg;
  int64_t sought_next;      /* ms of seeking after which `sought` is called */
  char *denied;             /* why the daemon does not know our key any more; NULL: it does */
  int64_t denied_since;     /* ms */
  bool reopen;              /* the control socket has given up */
  quark_error_t death;      /* SESSION_DEAD: why */
  bool death_reported;      /* as an event */
  uint64_t pings, pongs;    /* since HELLO */
  quark_error_t last_error; /* the latest ERROR that was not fatal */
  uint64_t last_error_request;
  uint64_t refusals; /* errors about no request so far */

  struct requests *requests; /* request.h */
  struct answers *answers;   /* ask.h */
};

/* A connection without sockets and without a thread. NULL: no memory or no descriptors. */
quark_connection_t *quark__connection_create(const char *endpoint, uint32_t timeout_ms,
                                             const quark__handlers_t *handlers);
/* Opens the control socket. False: errno says why. */
bool quark__connection_open(quark_connection_t *conn);
/* Starts the thread, which blocks all signals. */
bool quark__connection_start(quark_connection_t *conn);
/* Ends the thread, after it has sent what is queued. */
void quark__connection_stop(quark_connection_t *conn);
/* Closes the sockets and frees what connection.c owns, and conn itself. The thread has ended. */
void quark__connection_destroy(quark_connection_t *conn);

/* Ends the thread's sleep. From any thread. */
void quark__wake(quark_connection_t *conn);
/* Makes the descriptor of quark_fd readable or not. */
void quark__signal_events_locked(quark_connection_t *conn, bool waiting);
/* Waits for `changed` until deadline (ms; negative: for ever). False: the time is over. */
bool quark__wait_locked(quark_connection_t *conn, int64_t deadline);
/* The same for a call that goes on with the next daemon: the deadline moves ahead as long as a
 * daemon with a journal is sought. */
bool quark__wait_on_locked(quark_connection_t *conn, int64_t *deadline);
/* QUARK_OK; the cause of death if the connection is dead. */
quark_code_t quark__check_alive_locked(const quark_connection_t *conn, quark_error_t *err);

/* Queues a message for the daemon. It is sent when the session is open. QUARK_NO_MEMORY. */
quark_code_t quark__post_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                quark_error_t *err);
/* The same for one that has fields which a daemon without this feature would ignore. It is dropped
 * if the session is with such a daemon. */
quark_code_t quark__post_for_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                    unsigned feature, quark_error_t *err);
/* Whether the daemon has it, as far as is known. 0: every one has. */
bool quark__has_feature(const quark_connection_t *conn, unsigned feature);
/* Returns QUARK_UNSUPPORTED: it does not have it, and was not sent `what`. */
quark_code_t quark__too_old(const quark_connection_t *conn, unsigned feature, const char *what,
                            quark_error_t *err);
quark_code_t quark__post_bytes_locked(quark_connection_t *conn, const uint8_t *data, size_t bytes,
                                      unsigned feature, quark_error_t *err);

/* Replaces the control socket. On the connection's thread. */
bool quark__open_control_locked(quark_connection_t *conn);
/* Replaces the data socket by one connected to endpoint. On the connection's thread. */
bool quark__open_data_locked(quark_connection_t *conn, const char *endpoint);

#endif
