/*
 * internal.h: what the files of libquark share.
 *
 * One mutex guards all of a connection. The sockets belong to the connection's thread alone; calls of
 * the user change the state under the mutex, wake the thread through `wake`, and wait on `changed`,
 * which the thread broadcasts after everything it has done.
 *
 *   connection.c  connect, close, the thread's loop
 *   curve.c       keys, and why a handshake fails
 *   session.c     HELLO, WELCOME, BIND, reconnection; hands every other message on
 *   request.c     submit, contract, wait, ack, cancel, release
 *   attach.c      attach
 *   pack.c        SUBMIT and CONTRACT as bytes
 *   event.c       events
 *   transfer.c    uploads and downloads
 *   local.c       the same by descriptors, where the daemon is on this machine
 *   report.c      status and shutdown
 *   setups.c      setups: list, load, drop
 *   words.c       names of codes, bases, states
 *
 * Functions named quark__..._locked are called with the mutex held.
 */
#ifndef QUARK_INTERNAL_H
#define QUARK_INTERNAL_H

#include <pthread.h>

#include "client/quark.h"
#include "proto/control.h"
#include "proto/frame.h"
#include "proto/key.h"
#include "proto/limits.h"

enum {
  RING_BYTES = 2 * QK_UPLOAD_WINDOW, /* sent but perhaps not arrived, and not sent yet */
  DOWNLOAD_WINDOW = 8 * QK_CHUNK_MAX,
  DATA_HWM = 32 /* messages in ZeroMQ's queues */
};

typedef struct rhs {
  bool ended, reported, acked;
  uint32_t attempt;         /* of the result */
  uint64_t upload_checksum; /* once written to the end */
  quark_result_t result;
} rhs_t;

typedef enum download_way {
  DOWNLOAD_CHUNKS, /* by GRANT */
  DOWNLOAD_ASK,    /* a descriptor is to be asked for */
  DOWNLOAD_ASKED,
  DOWNLOAD_HELD /* in a new session, until RESULT has told whether the solution is still the same */
} download_way_t;

/* A download in progress; on the stack of the thread that waits for it. */
typedef struct download {
  struct download *next;
  uint32_t rhs;
  uint8_t *buffer;
  uint64_t bytes, received, granted;
  qk_field_hash_t *hash;
  download_way_t way;
  int fd; /* of the whole solution, once it is done; -1: it is in the buffer */
  bool done;
  quark_code_t code;
  quark_error_t error;
} download_t;

/* The upload stream: bytes [written - capacity, written) are in the ring, on the heap or, shared, in a sealed memfd. That one
 * holds whole fields, and all of those of which a part has not arrived. */
typedef struct upload {
  uint64_t capacity; /* of the ring; 0: nothing is uploaded */
  uint8_t *ring;
  bool shared;
  int fd;
  uint64_t total, written, sent, until;
  uint64_t taken;        /* the daemon has said that it is there up to here */
  qk_field_hash_t *hash; /* of the field being written */
} upload_t;

typedef enum request_state {
  REQUEST_SUBMITTED, /* no answer yet */
  REQUEST_ACCEPTED,
  REQUEST_REJECTED
} request_state_t;

typedef struct request {
  struct request *next;
  uint64_t number;
  request_state_t state;
  uint8_t *submit; /* the packed SUBMIT or CONTRACT, to be sent again after a reconnection */
  size_t submit_bytes;
  quark_error_t error; /* REJECTED: why */
  uint64_t field_bytes;
  uint32_t nrhs, ended, queued, running;
  uint64_t iterations;
  double residual;
  uint32_t unreported; /* ended, but not taken as events */
  bool progress_new, cancel_all;
  bool attaching; /* ATTACH has not been answered */
  bool keep;      /* its solutions stay with the daemon until it is released */
  bool released;  /* by the user: acknowledged as it ends, then freed */
  rhs_t *rhs;
  quark_attached_t *attached; /* NULL: submitted by this connection */
  quark_column_t *column;     /* of attached */
  char *paths[2];             /* likewise */
  upload_t up;
  download_t *downloads;
} request_t;

typedef struct packet {
  struct packet *next;
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

  char *endpoint, *user, *program;
  char *setup; /* NULL: the daemon's default */
  uint8_t client_id[QK_CLIENT_ID], token[QK_CLIENT_ID];
  uint32_t timeout_ms, reconnect_ms, lease_ms, max_rhs;
  bool keep_session, journal; /* journal: of the daemon */
  void (*sought)(void *arg, const char *text);
  void *sought_arg;
  int64_t sought_next;  /* ms of seeking after which that is told */
  char *denied;         /* why the daemon does not know our key any more; NULL: it does */
  int64_t denied_since; /* ms */
  bool reopen;          /* the control socket has given up */

  bool try_local;
  int local; /* the socket for descriptors; -1: none */
  struct {
    int fd; /* -1: none */
    uint64_t bytes;
    int64_t since; /* ms */
  } spare; /* memory of an upload that is over, for the next one: its pages take longer to make than to fill */
  void *zmq, *control, *control_monitor, *data, *data_monitor;
  uint32_t sockets; /* made so far: names the monitors */
  session_state_t state;
  int64_t seeking_since, last_sent, last_heard; /* ms */
  bool was_open, resumed;
  quark_error_t death; /* SESSION_DEAD: why */
  bool death_reported;

  packet_t *out, **out_end; /* control messages that wait for the session or the socket */
  request_t *requests;
  uint64_t last_request;

  uint64_t sessions;                       /* times the session was opened */
  uint64_t reports, activities, shutdowns; /* answers so far; activities: of the reports */
  uint64_t pings, pongs;                   /* since HELLO */
  quark_report_t report;
  quark_activity_t activity;
  quark_setup_t setups[QUARK_SETUPS]; /* of the latest report */
  uint32_t nsetups;
  uint64_t setup_replies;   /* so far */
  quark_error_t last_error; /* the latest ERROR about a request */
  uint64_t last_error_request;
  uint64_t refusals; /* errors about no request so far */

  char server_key[QK_KEY_TEXT], public_key[QK_KEY_TEXT], secret_key[QK_KEY_TEXT]; /* "": no CURVE */
  int broken_handshakes;                                                          /* in a row */
};

int64_t quark__now_ms(void);
/* Fills err (may be NULL) and returns code. */
__attribute__((format(printf, 3, 4))) quark_code_t
quark__fail(quark_error_t *err, quark_code_t code, const char *fmt, ...);
quark_code_t quark__hand_on(quark_error_t *err, const quark_error_t *cause);

/* connection.c */
void quark__wake(quark_connection_t *conn);
/* Waits for `changed` until deadline (ms; negative: for ever). False: the time is over. */
bool quark__wait_locked(quark_connection_t *conn, int64_t deadline);
/* Likewise, of a call that goes on with the next daemon: as long as one with a journal is sought,
 * the deadline is moved ahead. */
bool quark__wait_on_locked(quark_connection_t *conn, int64_t *deadline);
/* Queues a message for the daemon. */
quark_code_t quark__post_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                quark_error_t *err);
quark_code_t quark__post_bytes_locked(quark_connection_t *conn, const uint8_t *data, size_t bytes,
                                      quark_error_t *err);
/* Makes the events descriptor readable or not, as there are events or not. */
void quark__update_events_locked(quark_connection_t *conn);
/* A control socket likewise. */
bool quark__open_control(quark_connection_t *conn);
/* A data socket connected to endpoint, with its monitor, instead of the one there is. */
bool quark__open_data(quark_connection_t *conn, const char *endpoint);

/* curve.c */
quark_code_t quark__curve_init(quark_connection_t *conn, const quark_options_t *options,
                               quark_error_t *err);
/* True where there are no keys. */
bool quark__curve_guard(const quark_connection_t *conn, void *socket);
/* A handshake has failed: event and value are those of the socket's monitor. */
void quark__curve_failed_locked(quark_connection_t *conn, uint16_t event, uint32_t value);

/* session.c: on the connection's thread */
void quark__session_connected_locked(quark_connection_t *conn);
void quark__session_lost_locked(quark_connection_t *conn);
/* The daemon does not know the key, or not for this client: the end, but for a session that was
 * open, for which the key may come back. */
void quark__session_denied_locked(quark_connection_t *conn, const char *text);
void quark__session_die_locked(quark_connection_t *conn, quark_code_t code, const char *text);
void quark__session_message_locked(quark_connection_t *conn, const Quark__ServerMessage *message);
void quark__session_bound_locked(quark_connection_t *conn);
void quark__session_tick_locked(quark_connection_t *conn);

/* request.c */
request_t *quark__request_find_locked(quark_connection_t *conn, uint64_t number);
/* A call ends with this where the connection is dead. */
quark_code_t quark__check_alive_locked(const quark_connection_t *conn, quark_error_t *err);
void quark__request_accepted_locked(quark_connection_t *conn, const Quark__Accepted *m);
void quark__request_attached_locked(quark_connection_t *conn, const Quark__Attached *m);
/* An ERROR about it: the answer to ATTACH. */
void quark__request_refused_locked(quark_connection_t *conn, request_t *r, quark_code_t code,
                                   const char *text);
void quark__request_rejected_locked(quark_connection_t *conn, const Quark__Rejected *m);
void quark__request_progress_locked(quark_connection_t *conn, const Quark__Progress *m);
void quark__request_result_locked(quark_connection_t *conn, const Quark__Result *m);
/* All RHS that have not ended end with code; downloads fail. */
void quark__request_fail_locked(request_t *request, quark_code_t code, const char *text);
/* After the session was opened (again). */
void quark__request_resume_locked(quark_connection_t *conn, request_t *request);
/* Sends a new packed request, which it takes, and waits for the answer; what: its message. */
quark_code_t quark__request_ask_locked(quark_connection_t *conn, request_t *r, const char *what,
                                       uint64_t *request, uint64_t *bytes, quark_error_t *err);
void quark__request_free(request_t *request);
bool quark__event_waits_locked(const quark_connection_t *conn);

/* pack.c: bytes of malloc; NULL without memory, or where the message is over QK_CONTROL_MAX */
uint8_t *quark__pack_submit(uint64_t number, const quark_params_t *params, const char *setup,
                            size_t *bytes);
uint8_t *quark__pack_contract(uint64_t number, const quark_contraction_t *contraction,
                              size_t *bytes);

/* transfer.c */
/* shared: in a memfd, where there can be one. */
bool quark__upload_init_locked(quark_connection_t *conn, upload_t *up, uint32_t nrhs,
                               uint64_t field_bytes);
void quark__upload_fini(upload_t *up);
/* Sends what may be sent; false: the socket takes no more now. */
bool quark__upload_send_locked(quark_connection_t *conn);
void quark__download_chunk_locked(quark_connection_t *conn, const qk_frame_t *frame,
                                  const uint8_t *payload);
/* There is a new session: downloads go on when RESULT has come again. */
void quark__download_hold_locked(request_t *request);
/* RESULT came again and is stored: the download of rhs goes on, from the beginning where the solution is another one. */
void quark__download_result_locked(quark_connection_t *conn, request_t *request, uint32_t rhs,
                                   bool another);
void quark__download_fail_locked(request_t *request, quark_code_t code, const char *text);

/* A descriptor of the whole solution, which it takes, ends the download. */
void quark__download_shared_locked(request_t *request, download_t *download, int fd);
/* Downloads that wait for descriptors go on by chunks. */
void quark__download_by_chunks_locked(quark_connection_t *conn, request_t *request);

/* local.c */
/* Connects to the socket that WELCOME named (NULL: none); without success data go by chunks. */
void quark__local_open_locked(quark_connection_t *conn, const char *path);
/* What was under way goes on by chunks. */
void quark__local_close_locked(quark_connection_t *conn);
/* A memfd whose size is sealed, the spare one where it has these bytes; -1: none. */
int quark__local_memory_locked(quark_connection_t *conn, uint64_t bytes);
/* Takes the memfd of an upload that is over, where the daemon has done with it, for the next 10 s. */
void quark__local_spare_locked(quark_connection_t *conn, upload_t *upload);
void quark__local_tick_locked(quark_connection_t *conn);
/* Whether the next field of the upload goes by descriptor. */
bool quark__local_takes(const quark_connection_t *conn, const request_t *request);
/* Sends what may be sent, from any thread; false: the socket takes no more now. */
bool quark__local_send_locked(quark_connection_t *conn);
void quark__local_read_locked(quark_connection_t *conn);

/* setups.c */
void quark__setups_read_locked(quark_connection_t *conn, const Quark__StatusReport *m);

/* report.c */
/* Sends a message, again after each reconnection, until its answers, counted by *answers, become more. */
quark_code_t quark__ask_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                               const uint64_t *answers, const char *what, quark_error_t *err);
void quark__report_read_locked(quark_connection_t *conn, const Quark__StatusReport *m);

#endif
