/*
 * fake_daemon.h: a daemon in a thread, for tests of libquark. It speaks the protocol of one session
 * and one request at a time, "solves" M = 1 (each solution is its source), answers contractions
 * like generated sources, and misbehaves as it is told.
 *
 * The script is read while the daemon runs; the test sets it before the calls that it is meant for.
 * What the client does against the protocol (order of chunks, more than its credit) is counted in
 * `violations`.
 */
#ifndef QK_TESTS_FAKE_DAEMON_H
#define QK_TESTS_FAKE_DAEMON_H

#include <stdatomic.h>
#include <stdint.h>

#include "proto/quark.pb-c.h"

typedef struct fake_script {
  atomic_int mute;   /* answers nothing */
  atomic_int reject; /* SUBMIT: REJECTED with this status */
  atomic_int hold;   /* right-hand sides never end, unless cancelled; PROGRESS comes so often */
  atomic_int drop_upload;   /* after so many chunks of upload all connections break, once */
  atomic_int drop_download; /* likewise of download */
  atomic_int
      remake; /* a broken connection loses all solutions: others are made, every bit another one */
  atomic_int lose;          /* a broken connection loses all solutions: they have EXPIRED */
  atomic_int late_results;  /* RESULTs that are told again come so many ms after ACCEPTED */
  atomic_int drop_ping;     /* the next PING breaks all connections, once */
  atomic_int gone;          /* a broken connection ends the request, not the session */
  atomic_int forget;        /* a broken connection ends the session, too */
  atomic_int corrupt_field; /* the last chunk of a download has a wrong field checksum */
  atomic_int corrupt_chunk; /* a chunk of a download has a wrong checksum */
  atomic_int credit_chunks; /* upload credit beyond what has arrived, in chunks of 1 MiB */
  atomic_int fatal;         /* the next STATUS gets this fatal error, once */
  atomic_int late_welcome;  /* and then WELCOME */
  atomic_int journal;       /* what WELCOME says of it */
  /* the one that WELCOME names, zeros beside checksums of blocks; 0: none, as of an old daemon */
  atomic_int feature;
  atomic_int later_feature; /* from the first break of connections on: another daemon is there */
  atomic_int drop_now;      /* all connections break, once */
  atomic_int drop_load;     /* the next LOAD breaks all connections, once */
  atomic_int lease_ms;
  atomic_int local;       /* has a local socket */
  atomic_int local_waits; /* takes no connections there */
  atomic_int drop_put;    /* it closes its connection at the n-th PUT, once */
  atomic_int drop_fetch;  /* likewise at the n-th FETCH */
  atomic_int empty_fetch; /* FETCH gets no descriptor */
  /* so many setups, named 0, 1, ..., which STATUS tells 20 at a time; 0: two of other names */
  atomic_int setups;
  atomic_int wall; /* results have sums of so many time slices: rhs + t, without an axial current */
} fake_script_t;

typedef struct fake_daemon {
  fake_script_t script;
  atomic_int loads, drops, defaults;
  atomic_int hellos, submits, contracts, attaches, acks, cancels, releases, goodbyes, pings,
      violations;
  atomic_int binds, puts, fetches; /* of the local socket */
  atomic_ullong uploaded;          /* bytes of the request's stream */
  atomic_ullong moved;             /* of them those that came, in chunks or from descriptors */
  atomic_int runs;                 /* of zeros */
  Quark__ClientMessage
      *last; /* the latest SUBMIT, CONTRACT, LOAD or STATUS; the test reads it after the answer */
  char endpoint[96];
  char local_path[108];
  struct fake_state *state;
} fake_daemon_t;

/* field_bytes of every request. */
void fake_daemon_start(fake_daemon_t *daemon, uint64_t field_bytes);
void fake_daemon_stop(fake_daemon_t *daemon);

#endif
