/*
 * request.h: the requests of a connection, and what the daemon's messages make of them.
 *
 * A request is submitted, then accepted or rejected. Each of its right-hand sides ends once, with a
 * result. A request leaves the list when the user releases it and the daemon has ended all of it.
 *
 * Threads  The caller holds the mutex of the connection. The functions that take a message are
 *          called on the connection's thread.
 * Errors   Functions that return a code fill in *err (may be NULL).
 */
#ifndef QUARK_REQUEST_H
#define QUARK_REQUEST_H

#include "client/libquark/connection/connection.h"
#include "client/libquark/request/download.h"
#include "client/libquark/request/upload.h"

/* Residuals that PROGRESS told, thinned. */
typedef struct history {
  uint32_t n;
  uint64_t iteration[QUARK_HISTORY];
  double residual[QUARK_HISTORY];
} history_t;

typedef struct rhs {
  bool ended, reported, acked;
  uint32_t attempt;         /* of the result */
  uint64_t upload_checksum; /* once written to the end, or put */
  quark_buffer_t *buffer;   /* that was put, while the daemon may need it */
  uint64_t buffer_at;       /* where in it */
  bool sparse;              /* it has holes, and a checksum of blocks */
  quark_result_t result;
  history_t *history;    /* NULL: no PROGRESS yet */
  Quark__WallSums *wall; /* of the result; NULL: none */
} rhs_t;

typedef enum request_state {
  REQUEST_SUBMITTED, /* no answer yet */
  REQUEST_ACCEPTED,
  REQUEST_REJECTED
} request_state_t;

typedef struct request {
  struct request *next;
  uint64_t number;
  request_state_t state;
  uint8_t *submit; /* the packed SUBMIT, CONTRACT or ATTACH; sent again in a new session */
  size_t submit_bytes;
  unsigned feature;    /* that a daemon must have to understand it; 0: none */
  quark_error_t error; /* REJECTED: why */
  uint64_t field_bytes;
  uint32_t nrhs, ended, queued, running;
  uint64_t iterations;
  double residual;
  uint32_t unreported; /* ended, but not taken as events */
  bool progress_new, cancel_all;
  bool attaching;   /* ATTACH has not been answered */
  bool keep;        /* its solutions stay with the daemon until it is released */
  bool joined;      /* a part of the request of another client id */
  uint64_t begun;   /* of that: bytes of its stream that the daemon had at first */
  uint32_t dropped; /* right-hand sides whose buffers, if they had any, are not held any more */
  bool has_token;   /* others can join it, with: */
  uint8_t token[QK_CLIENT_ID];
  bool released; /* by the user: acknowledged as it ends, then freed */
  rhs_t *rhs;
  quark_attached_t *attached; /* NULL: submitted by this connection */
  quark_column_t *column;     /* of attached */
  double *mass;               /* likewise */
  char *paths[2];             /* likewise */
  char *vectors, *project;    /* likewise */
  upload_t up;
  download_t *downloads;
  quark_eigen_progress_t eigen; /* of an EIGEN, as told last */
} request_t;

/* All requests of a connection, in the order of submission. */
typedef struct requests {
  request_t *first;
  uint64_t last_number;
  spare_t spare;
} requests_t;

/* NULL: no memory. known_id: the client id had requests before, so numbers begin above theirs. */
requests_t *quark__requests_create(bool known_id);
/* NULL-safe. Nobody waits for a download. */
void quark__requests_destroy(requests_t *requests);
/* NULL-safe. The request is in no list. */
void quark__request_free(request_t *request);

/* NULL: there is none. */
request_t *quark__request_find_locked(const quark_connection_t *conn, uint64_t number);
/* The same, but NULL and QUARK_NOT_FOUND if the user has released it. */
request_t *quark__request_known_locked(const quark_connection_t *conn, uint64_t number,
                                       quark_error_t *err);
/* Takes r to the end of the list and sends its packed message; frees it on error.
 * QUARK_UNSUPPORTED: the daemon lacks its feature. */
quark_code_t quark__request_add_locked(quark_connection_t *conn, request_t *r, quark_error_t *err);
/* Lets go of the buffers of those right-hand sides whose uploads end before that byte. */
void quark__request_drop_buffers(request_t *request, uint64_t end);
/* Fails its downloads, takes it out of the list and frees it. */
void quark__request_remove_locked(quark_connection_t *conn, request_t *r);
/* Does what quark_release says; frees r at once or when the daemon has ended it. */
void quark__request_release_locked(quark_connection_t *conn, request_t *r);
/* Ends all right-hand sides that have not ended, the upload and the downloads. */
void quark__request_fail_locked(request_t *request, quark_code_t code, const char *text);
/* Repeats the packed message in a new session, if something is still open. */
void quark__request_resume_locked(quark_connection_t *conn, request_t *request);

/* Messages of the daemon. Those about a request that is not in the list are left out. */
void quark__request_accepted_locked(quark_connection_t *conn, const Quark__Accepted *m);
void quark__request_rejected_locked(quark_connection_t *conn, const Quark__Rejected *m);
void quark__request_credit_locked(quark_connection_t *conn, const Quark__Credit *m);
void quark__request_progress_locked(quark_connection_t *conn, const Quark__Progress *m);
void quark__request_result_locked(quark_connection_t *conn, const Quark__Result *m);
/* An ERROR that is not fatal. Fails the downloads; refuses an ATTACH. */
void quark__request_error_locked(quark_connection_t *conn, const Quark__Error *m);

#endif
