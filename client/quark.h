/*
 * quark.h: libquark, the client library of quarkd. This header is all of it.
 *
 * A connection carries requests; a request is a set of right-hand sides (RHS) b of M x = b,
 * numbered from 0, with one tolerance. The order of calls:
 *
 *   quark_connect
 *     quark_submit            the daemon has taken the request
 *     quark_upload ...        the bytes of all RHS, one after the other (uploaded sources only)
 *     quark_flush             the daemon has them (only for those who will leave)
 *     quark_wait              for each RHS: how it ended
 *     quark_download          its solution
 *     quark_contract          correlators of solutions that the daemon keeps: another request
 *     quark_release           the daemon and the library forget the request
 *   quark_close
 *
 * Fields     complex, interleaved, little endian, 32 or 64 bit; x fastest of the sites, then y, z,
 *            t; 4 spins x 3 colours at a site, colour fastest. Residual: |b - M x| / |b| of the
 *            full operator in double. M, bases and noise are defined in docs/physics.md.
 * Threads    Every function may be called from any thread at any time, on the same connection too;
 *            only quark_close must be the last. Each connection has one thread of its own that
 *            moves data and keeps the session alive; it blocks all signals and never calls user
 *            code. No globals.
 * Errors     Functions return a code; 0 is success. *err (may be NULL) says what was wrong and
 *            whether the same call may succeed later. Outputs are set only on success. A right-hand
 *            side that misses its tolerance is no error of a call: it is in its result.
 * Loss       A broken connection is restored and nothing is lost while the daemon keeps the session
 *            (its lease, about a minute). A key of an open session that the daemon does not know
 *            any more is tried again for reconnect_ms, 30 s at most. After reconnect_ms without the
 *            daemon, or when it refuses the session, the connection is dead: all calls return the
 *            reason, and only quark_close is left.
 * Throughput The daemon solves fastest while something waits for its slots: submit and upload the
 *            next request before the last one has ended. quark_event_next tells of all of them.
 */
#ifndef QUARK_H
#define QUARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QUARK_API __attribute__((visibility("default")))
#else
#define QUARK_API
#endif

/* ---- how a call or a right-hand side can end; the numbers are those of the protocol ---- */

typedef enum quark_code {
  QUARK_OK = 0,
  /* not carried out, nothing changed */
  QUARK_BAD_ARGUMENT = 100,
  QUARK_BAD_GEOMETRY = 101,
  QUARK_BAD_FORMAT = 102,
  QUARK_TRUNCATED = 103,
  QUARK_BAD_CHECKSUM = 104,
  QUARK_BAD_PLAQUETTE = 105,
  QUARK_NOT_UNITARY = 106,
  QUARK_TOO_LARGE = 107,
  QUARK_UNSUPPORTED = 108,
  QUARK_NOT_FOUND = 109,
  QUARK_BUSY = 110,
  QUARK_DENIED = 111,
  QUARK_BAD_PROTOCOL = 112,
  QUARK_IO_ERROR = 113,
  QUARK_NOT_READY = 114,
  /* this right-hand side ended without a solution to its tolerance */
  QUARK_NOT_CONVERGED = 200,
  QUARK_BREAKDOWN = 201,
  QUARK_NAN_INPUT = 202,
  QUARK_CANCELLED = 203,
  QUARK_DEADLINE = 204,
  QUARK_EXPIRED = 205,
  /* the engine was lost */
  QUARK_DEVICE_MEMORY = 300,
  QUARK_DEVICE_ERROR = 301,
  QUARK_NO_DEVICE = 302,
  QUARK_ENGINE_LOST = 303,
  /* a process cannot go on */
  QUARK_NO_MEMORY = 400,
  QUARK_INTERNAL = 401,
  QUARK_COMM_ERROR = 402,
  QUARK_SHUTTING_DOWN = 403,
  QUARK_TIMEOUT = 404
} quark_code_t;

/* "NAN_INPUT", a sentence, and whether trying again unchanged may help. Static storage. */
QUARK_API const char *quark_code_name(quark_code_t code);
QUARK_API const char *quark_code_text(quark_code_t code);
QUARK_API bool quark_code_retryable(quark_code_t code);

typedef struct quark_error {
  quark_code_t code;
  bool retryable;
  uint32_t retry_after_ms; /* the daemon's advice; 0: none */
  char text[512];
} quark_error_t;

/* "0.1.0" */
QUARK_API const char *quark_version(void);

/* ---- connections ---- */

/* reconnect_ms: 15 minutes where the daemon keeps a journal, so that open work outlives it, else 30
 * s. */
#define QUARK_RECONNECT_AUTO UINT32_MAX

enum { QUARK_CLIENT_ID_BYTES = 16 };

typedef struct quark_connection quark_connection_t;

typedef struct quark_options {
  /* Without any sign from the daemon for so long, connect, submit, status, cancel, shutdown, upload and
   * download end with QUARK_TIMEOUT. Default 10000 */
  uint32_t timeout_ms;
  /* How long a daemon that has vanished is sought. Where it keeps a journal the time limits of
   * submit, attach, upload, flush and download rest meanwhile: they go on with the next daemon at
   * the same endpoint. Default QUARK_RECONNECT_AUTO */
  uint32_t reconnect_ms;
  /* 16 bytes; NULL: random. The id of an earlier connection takes over its session. */
  const uint8_t *client_id;
  bool keep_session;   /* quark_close leaves the session with all requests to its lease */
  const char *user;    /* whose queue the work goes to; NULL: the user of this process */
  const char *program; /* for the daemon's log; NULL: "libquark" */
  /* CURVE, for daemons that want it: both or neither. Copied. */
  const char *server_key; /* the daemon's public key, 40 characters of Z85 */
  const char *key_file;   /* the client's secret key, as quarkctl keygen makes it; mode 0600 */
  /* Hand over fields in shared memory where the daemon is on this machine, runs as this user (or this process as root) and
   * allows it; else, or false, they go by socket. Default true */
  bool local;
  /* The setup that submissions and reports are about where nothing else is said; NULL: whichever is the daemon's default.
   * Copied. */
  const char *setup;
  /* NULL: none. Told by the connection's own thread when a daemon has been sought for 5 s, once a
   * minute after that, and when it is back. text: a sentence without its end. It must not call
   * libquark. */
  void (*sought)(void *arg, const char *text);
  void *sought_arg;
} quark_options_t;

QUARK_API void quark_options_init(quark_options_t *options);

/* endpoint: "tcp://127.0.0.1:5555". options NULL: the defaults. Returns when the daemon has
 * answered. QUARK_TIMEOUT, QUARK_BAD_ARGUMENT (endpoint, keys), QUARK_UNSUPPORTED (another protocol
 * version; libzmq without CURVE), QUARK_DENIED (the keys are not those of daemon and client), QUARK_BUSY. */
QUARK_API quark_code_t quark_connect(const char *endpoint, const quark_options_t *options,
                                     quark_connection_t **conn, quark_error_t *err);
/* NULL-safe. The daemon drops what is left of the session, unless keep_session. */
QUARK_API void quark_close(quark_connection_t *conn);
/* Whether the daemon had a session of this client id before quark_connect. */
QUARK_API bool quark_resumed(const quark_connection_t *conn);
QUARK_API void quark_client_id(const quark_connection_t *conn, uint8_t id[QUARK_CLIENT_ID_BYTES]);

/* Whether fields go by shared memory at the moment. */
QUARK_API bool quark_local(quark_connection_t *conn);

/* ---- requests ---- */

typedef enum quark_dtype { QUARK_F32 = 1, QUARK_F64 = 2 } quark_dtype_t;
typedef enum quark_basis {
  QUARK_DEGRAND_ROSSI = 0,
  QUARK_UKQCD = 1,
  QUARK_DIRAC_PAULI = 2,
  QUARK_OPENQCD = 3
} quark_basis_t;
typedef enum quark_normalisation {
  QUARK_MASS = 0, /* M = (4 + m) - D/2 + ... */
  QUARK_KAPPA = 1 /* 2 kappa M */
} quark_normalisation_t;
typedef enum quark_source {
  QUARK_UPLOAD = 0,
  QUARK_POINT = 1,
  QUARK_WALL = 2,
  QUARK_Z2 = 3,
  QUARK_Z4 = 4,
  QUARK_SEQUENTIAL = 5, /* through a kept solution */
  QUARK_FILE = 6        /* of a file that the daemon opens */
} quark_source_t;

/* "degrand-rossi", "ukqcd", "dirac-pauli", "openqcd"; NULL for others. Static storage. */
QUARK_API const char *quark_basis_name(quark_basis_t basis);
QUARK_API bool quark_basis_parse(const char *name, quark_basis_t *basis);

/* One generated right-hand side. Global coordinates. docs/physics.md has the formulas. */
typedef struct quark_column {
  int32_t x, y, z;      /* point */
  int32_t t;            /* all kinds; -1: every time slice (noise, sequential) */
  int32_t spin, colour; /* -1: all components (noise) */
  uint64_t seed;        /* noise */
  int32_t px, py, pz;   /* times exp(i 2 pi p x / L) (wall, noise, sequential), before smearing */
  uint32_t t_every;     /* noise: on slices t, t + t_every, ...; 0: as t says */
  uint64_t request;     /* sequential: gamma times solution rhs of this kept request on slice t */
  uint32_t rhs, gamma;  /* gamma 0..15: gx^b0 gy^b1 gz^b2 gt^b3; 15 is gamma5 */
} quark_column_t;

typedef enum quark_link_smear {
  QUARK_LINKS_AS_THEY_ARE = 0,
  QUARK_APE = 1,   /* alpha */
  QUARK_STOUT = 2, /* rho */
  QUARK_HYP = 3    /* alpha1, alpha2, alpha3 */
} quark_link_smear_t;

/* Gaussian smearing in space: `steps` times psi <- (psi + alpha sum of 6 neighbours) / (1 + 6 alpha), with
 * smeared links. steps 0: none. */
typedef struct quark_smearing {
  double alpha;
  uint32_t steps;
  quark_link_smear_t links;
  double link_param[3];
  uint32_t link_steps;
  bool link_all; /* APE, stout: time-like links and staples too */
} quark_smearing_t;

/* A file that the daemon opens, below one of its --file-roots: all right-hand sides of the request, one after the other. */
typedef struct quark_file {
  const char *path; /* absolute; NULL: none. Read during quark_submit */
  uint64_t offset;  /* of the first */
  uint64_t size;    /* source: that the file must have; 0: it ends with the last */
} quark_file_t;

typedef struct quark_params {
  const char *setup; /* NULL: that of the connection's options */
  uint32_t nrhs;
  quark_dtype_t dtype;                 /* of uploads and downloads. Default QUARK_F64 */
  quark_basis_t basis;                 /* of sources and solutions. Default QUARK_DEGRAND_ROSSI */
  quark_normalisation_t normalisation; /* Default QUARK_MASS */
  double tol;                          /* relative residual. Default 1e-10 */
  uint64_t max_iter;                   /* Default 10000 */
  uint64_t deadline_ms;                /* 0, the default: none */
  int priority; /* 0 .. 9: among the requests of this user the greater goes first. Default 4 */
  quark_source_t source;
  const quark_column_t *column; /* generated sources: nrhs of them; read during quark_submit */
  bool discard;                 /* no download: only how each right-hand side ended */
  quark_smearing_t smear;       /* of the source, uploaded or generated. Default: none */
  /* Solutions stay with the daemon, also after quark_ack, for later sources and contractions of this
   * client, until quark_release or expiry; they can be downloaded before quark_ack. */
  bool keep;
  uint64_t keep_ms; /* expiry after the last use. 0, the default: the daemon's limit */
  /* The request outlives the connection: it is solved, and waits so long for somebody with this client id to attach to it. 0, the
   * default: it ends with the connection. */
  uint64_t detach_ms;
  quark_file_t source_file; /* QUARK_FILE */
  /* Solutions are written there and cannot be downloaded; a right-hand side without one is zeros. Nothing is replaced. Results
   * come when all have ended and the file is complete; QUARK_NOT_FOUND, _DENIED, _IO_ERROR and _BAD_ARGUMENT tell what is wrong with a
   * file. */
  quark_file_t sink_file;
} quark_params_t;

QUARK_API void quark_params_init(quark_params_t *params);

enum { QUARK_ALL = -1 }; /* in place of the index of a right-hand side */

typedef struct quark_result {
  uint64_t request;
  uint32_t rhs;
  quark_code_t status;               /* QUARK_OK: the tolerance was reached */
  char text[256];                    /* why not */
  double true_residual;              /* |b - M x| / |b|; NaN: there was no solve */
  uint64_t iterations, applications; /* of the operator, all precisions */
  double seconds;                    /* in the solver */
  uint64_t bytes;                    /* of the solution that can be downloaded; 0: there is none */
  double norm_b, norm_x;             /* NaN: not known */
  double queue_seconds; /* from its last byte, or from acceptance, to a slot; NaN: not known */
} quark_result_t;

/* *field_bytes (may be NULL): of one right-hand side and of one solution. Refusals of the daemon
 * are the return value: QUARK_BUSY, QUARK_NOT_READY (retryable), QUARK_TOO_LARGE,
 * QUARK_BAD_ARGUMENT, ... */
QUARK_API quark_code_t quark_submit(quark_connection_t *conn, const quark_params_t *params,
                                    uint64_t *request, uint64_t *field_bytes, quark_error_t *err);

/* The next bytes of the stream of all right-hand sides; any number of bytes a call. data can be
 * reused on return. When every right-hand side has ended the rest is not sent. Calls for one
 * request come from one thread at a time. Also returns QUARK_BAD_ARGUMENT (more than nrhs *
 * field_bytes in all), QUARK_NOT_FOUND (request). */
QUARK_API quark_code_t quark_upload(quark_connection_t *conn, uint64_t request, const void *data,
                                    size_t bytes, quark_error_t *err);

/* Waits until the daemon has the right-hand sides that were uploaded whole: a detached request then needs its client no more.
 * QUARK_NOT_FOUND, QUARK_TIMEOUT. */
QUARK_API quark_code_t quark_flush(quark_connection_t *conn, uint64_t request, quark_error_t *err);

/* How `rhs` ended; waits at most timeout_ms for it (0: looks; negative: for ever). QUARK_TIMEOUT:
 * it has not ended. */
QUARK_API quark_code_t quark_wait(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                  int64_t timeout_ms, quark_result_t *result, quark_error_t *err);

/* The solution of a right-hand side that has ended, with its checksums verified; bytes:
 * field_bytes. It stays with the daemon until quark_ack. Contents of buffer are undefined on error.
 * QUARK_NOT_FOUND: there is no solution; QUARK_BAD_CHECKSUM; QUARK_EXPIRED. */
QUARK_API quark_code_t quark_download(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                      void *buffer, size_t bytes, quark_error_t *err);

/* The daemon may forget the solution of rhs, which has ended, or (QUARK_ALL) of all that have. */
QUARK_API quark_code_t quark_ack(quark_connection_t *conn, uint64_t request, int32_t rhs,
                                 quark_error_t *err);

/* Ends rhs or (QUARK_ALL) all with QUARK_CANCELLED, unless they ended before. Returns when the
 * daemon has taken it. The request may be one of an earlier connection with this client id. */
QUARK_API quark_code_t quark_cancel(quark_connection_t *conn, uint64_t request, int32_t rhs,
                                    quark_error_t *err);

/* Cancels what has not ended, acknowledges the rest and forgets the request, with the solutions that
 * it keeps. What was submitted before and uses them still finds them. */
QUARK_API quark_code_t quark_release(quark_connection_t *conn, uint64_t request,
                                     quark_error_t *err);
/* The same, and waits until the daemon has done it, also over a connection that breaks: for
 * requests that nobody else would ask for (detach_ms). The request may be one of an earlier
 * connection with this client id; one that is not there is no error. */
QUARK_API quark_code_t quark_forget(quark_connection_t *conn, uint64_t request, quark_error_t *err);

/* ---- correlators, computed where the propagators are ---- */

typedef enum quark_channel_kind {
  QUARK_MESON = 0,   /* 1 complex number: sum_x e^{-ip(x-x0)} tr[g5 S_b^+ g5 G_sink S_a G_source] */
  QUARK_NUCLEON = 1, /* 4 x 4: spin matrix; a is the doubled flavour, b the other */
  QUARK_DELTA = 2    /* 3 x 3 x 4 x 4: vector indices, spin matrix; three quarks a */
} quark_channel_kind_t;

typedef struct quark_channel {
  quark_channel_kind_t kind;
  uint32_t sink, source; /* meson: gamma matrices 0..15 */
} quark_channel_t;

/* Propagators are kept requests whose right-hand sides first .. first + 11 are the columns
 * 3 * spin + colour of a source, in the DeGrand-Rossi basis. */
typedef struct quark_contraction {
  uint64_t request_a, request_b; /* request_b 0: a */
  uint32_t first_a, first_b;     /* first_b: only with request_b */
  uint32_t nchannel, nmomentum;
  const quark_channel_t *channel;
  const int32_t (*momentum)[3]; /* nmomentum 0: zero momentum alone */
  int32_t origin[4];            /* x, y, z, t of the source */
  quark_smearing_t sink;        /* of both propagators at x */
  uint64_t deadline_ms;
  int priority;       /* as in quark_params_t */
  uint64_t detach_ms; /* likewise */
} quark_contraction_t;

/* No channels, zero momentum alone, the origin at 0 0 0 0, no smearing, no deadline. */
QUARK_API void quark_contraction_init(quark_contraction_t *contraction);

/* A request with one result, awaited as right-hand side 0 and downloaded as complex doubles
 * [channel][momentum][T][numbers of the channel], *bytes in all; t counts from the origin. bytes may
 * be NULL. Errors as quark_submit; QUARK_NOT_FOUND: a propagator that is not kept (any more). */
QUARK_API quark_code_t quark_contract(quark_connection_t *conn,
                                      const quark_contraction_t *contraction, uint64_t *request,
                                      uint64_t *bytes, quark_error_t *err);

/* ---- requests of an earlier connection ---- */

typedef struct quark_attached {
  bool contraction;      /* then params is unused but for nrhs */
  quark_params_t params; /* as it was submitted; column stays valid until quark_release */
  uint64_t bytes;        /* of one solution */
  uint64_t
      uploaded; /* bytes of the right-hand sides that arrived: what is missing cannot be sent any more */
} quark_attached_t;

/* Takes over a request that an earlier connection with this client id has submitted; then it is like one of our own:
 * quark_wait, quark_download, quark_cancel, quark_ack, quark_release. QUARK_NOT_FOUND: released, expired, or never
 * accepted; QUARK_BAD_ARGUMENT: one of this connection; QUARK_TIMEOUT. */
QUARK_API quark_code_t quark_attach(quark_connection_t *conn, uint64_t request,
                                    quark_attached_t *attached, quark_error_t *err);

/* ---- events, for programs with a loop of their own ---- */

typedef enum quark_event_kind {
  QUARK_EVENT_NONE = 0,
  QUARK_EVENT_PROGRESS, /* at most twice a second for each request; only the latest is kept */
  QUARK_EVENT_RESULT,   /* once for each right-hand side */
  QUARK_EVENT_DEAD      /* once: the connection has ended; `code` says why */
} quark_event_kind_t;

typedef struct quark_event {
  quark_event_kind_t kind;
  uint64_t request;
  uint32_t ended, queued, running; /* right-hand sides of the request */
  uint64_t iterations;             /* PROGRESS: the most of a running one */
  double residual;       /* PROGRESS: the largest of a running one; NaN: none is running */
  quark_result_t result; /* RESULT */
  quark_code_t code;     /* DEAD */
} quark_event_t;

/* Readable while an event waits. For poll, select and the like only. */
QUARK_API int quark_fd(const quark_connection_t *conn);
/* Takes the next event; waits for it at most timeout_ms (0: does not; negative: for ever). QUARK_OK
 * with kind NONE where none came. Results are reported here whether or not quark_wait is used. */
QUARK_API quark_code_t quark_event_next(quark_connection_t *conn, int64_t timeout_ms,
                                        quark_event_t *event, quark_error_t *err);

/* ---- the daemon ---- */

typedef enum quark_state {
  QUARK_STARTING = 0,
  QUARK_LOADING = 1,
  QUARK_READY = 2,
  QUARK_RESTARTING = 3, /* the engine was lost and is coming back */
  QUARK_DRAINING = 4,   /* finishing accepted work, then leaving */
  QUARK_FAILED = 5      /* of a setup that is not the default: it could not be loaded */
} quark_state_t;

/* "starting", "loading", ... Static storage. */
QUARK_API const char *quark_state_name(quark_state_t state);

enum { QUARK_MG_LEVELS = 8, QUARK_MEMORY_SHARES = 16 };

/* One level of multigrid; level 0 is the finest. */
typedef struct quark_mg_level {
  uint32_t dims[4], block[4], vectors; /* the coarsest has no aggregates and no vectors */
  char smoother[16];
  uint32_t pre, post, iterations;
  double orthonormality, galerkin, representation, null_residual, seconds;
} quark_mg_level_t;

/* The setup of multigrid and how it fares; levels 0: there is none. */
typedef struct quark_mg_report {
  uint32_t levels;
  quark_mg_level_t level[QUARK_MG_LEVELS];
  double seconds;
  bool restored; /* from a checkpoint */
  uint32_t attempts, refined, rebuilt;
  double convergence; /* factor of the residual in one outer iteration */
  uint64_t bytes;     /* on the device */
  char checkpoint[1024], checkpoint_trouble[256];
  bool checkpoint_written;
  double iterations_per_digit,
      iterations_per_digit_first; /* of outer iterations: lately, when new */
} quark_mg_report_t;

/* Device memory of one rank as it was planned. */
typedef struct quark_memory_plan {
  uint32_t shares; /* 0: unknown */
  struct {
    char name[32];
    uint64_t bytes;
  } share[QUARK_MEMORY_SHARES];
  uint64_t serving, setup, free; /* sum; the most during setup; there was before, less 3 % */
} quark_memory_plan_t;

/* Numbers that are not known are NaN or 0, texts empty. */
typedef struct quark_report {
  quark_state_t state;
  char version[32];
  uint64_t pid;
  double uptime;        /* seconds */
  double walltime_left; /* seconds until the daemon has to end; NaN: it has no end */
  char phase[64];
  uint64_t phase_done, phase_total;
  struct {
    char name[72], gauge[1024], format[64], solver[32], precision[16];
    double mass, kappa, csw, boundary[8]; /* phases of x, y, z, t as re, im */
    uint32_t link_reals, dims[4];         /* x, y, z, t */
    double plaquette, unitarity, load_seconds;
    uint64_t digest; /* of the links */
    quark_mg_report_t mg;
    bool checksum_ignored; /* of the gauge file, as it was asked for */
  } setup;
  struct {
    uint64_t pid;
    char backend[16], device[128], last_error[256];
    uint32_t ranks, grid[4], restarts, slots, slots_busy;
    uint64_t device_bytes, host_bytes;
    quark_memory_plan_t memory;
  } engine;
  struct {
    uint64_t sessions, requests, queued, running, held; /* now */
    uint64_t accepted, rejected, converged, failed, cancelled, lost, iterations, applications,
        bytes_in, bytes_out, dropped; /* since the start */
    uint64_t kept, kept_bytes;        /* now: solutions kept by handle */
    uint64_t contracted;              /* since the start */
    uint64_t denied, refused;         /* messages over a role, connections with an unknown key */
    uint64_t bytes_local;             /* of bytes_in and bytes_out: by shared memory */
  } counters;
  uint64_t memory_used, memory_limit; /* for uploads and results, bytes */
  /* Since the start, of the seconds in which right-hand sides waited for slots: slot-seconds in the solver, taken with
   * source or solution on the way, and empty. NaN: not known. */
  struct {
    double saturated, solving, moving, idle;
  } occupancy;
  char memory_by[256]; /* what sets memory_limit: a setting, the path of a limit, a variable of
                          Slurm; "": not told */
  char set_aside[512]; /* where what did not fit of the daemon's state folder is; "": nothing */
  char trouble[512];   /* why nothing new is taken although the engine works; "": it is */
} quark_report_t;

QUARK_API quark_code_t quark_status(quark_connection_t *conn, quark_report_t *report,
                                    quark_error_t *err);

enum { QUARK_SLOTS = 146, QUARK_USERS = 256 };

/* A right-hand side that is being solved, or a contraction. Texts are UTF-8 without control characters. */
typedef struct quark_slot {
  bool contraction; /* needs no slot; iterations, residual and tol mean nothing */
  uint32_t slot;
  char setup[72];
  char job[48], user[72]; /* job: begin of the client id, request, as in the daemon's log */
  uint32_t rhs;
  uint64_t iterations;
  double residual, tol; /* relative; the solver's estimate, 1 before the first */
  double seconds;       /* since it got the slot */
} quark_slot_t;

typedef struct quark_user {
  char name[72];
  uint64_t queued, memory; /* right-hand sides and contractions; bytes of its requests */
  uint32_t running;
  double work; /* applications of the operator given so far, expected ones of what runs */
} quark_user_t;

typedef struct quark_activity {
  uint32_t slots, users, users_left_out;
  quark_slot_t slot[QUARK_SLOTS];
  quark_user_t user[QUARK_USERS]; /* who runs the most first, then who waits the most */
} quark_activity_t;

/* quark_status, with what goes on at this moment. */
QUARK_API quark_code_t quark_activity(quark_connection_t *conn, quark_report_t *report,
                                      quark_activity_t *activity, quark_error_t *err);

/* ---- setups of the daemon; all but quark_setups need the role operate ---- */

/* Another configuration or operator, loaded beside those that are there. What is not said is as quarkd was started. */
typedef struct quark_load {
  const char *name;
  const char *gauge;    /* path below one of the daemon's roots, or builtin:...; NULL: not said */
  uint32_t dims[4];     /* for files that do not state them; 0: not said */
  double kappa, mass;   /* at most one of them; NaN: not said */
  double csw;           /* NaN: not said */
  const char *boundary; /* "1,1,1,-1", "0,0,0,0.5pi", "antiperiodic", ...; NULL: not said */
  const char *solver, *precision; /* NULL: not said */
  int slots;                      /* 0: chosen; negative: not said */
  bool make_default;              /* as soon as it is ready */
  bool ignore_checksum; /* of the file: plaquette and unitarity are verified all the same */
} quark_load_t;

/* Nothing is said but a name, which is NULL. */
QUARK_API void quark_load_init(quark_load_t *load);

/* Numbers that are not known are NaN or 0, texts empty. */
typedef struct quark_setup {
  char name[72], gauge[1024], solver[32];
  quark_state_t state;
  bool is_default;
  char phase[64]; /* QUARK_LOADING: what is going on, with phase_done of phase_total */
  uint64_t phase_done, phase_total;
  quark_code_t code; /* QUARK_FAILED: why */
  char text[512];
  double kappa, csw, plaquette;
  uint32_t dims[4];
  uint64_t digest;
  uint32_t slots, slots_busy, restarts;
  uint64_t queued, open; /* right-hand sides that wait for a slot; that have not ended */
  uint64_t device_bytes;
  double idle;           /* seconds since something was open; 0: something is */
  bool checksum_ignored; /* of the gauge file, as it was asked for */
} quark_setup_t;

enum { QUARK_SETUPS = 32 };

QUARK_API quark_code_t quark_setups(quark_connection_t *conn, quark_setup_t setup[QUARK_SETUPS],
                                    uint32_t *count, quark_error_t *err);

/* Returns when the daemon has begun; what comes of it is in quark_setups. The same load again does nothing. Refused:
 * QUARK_BAD_ARGUMENT, QUARK_NOT_FOUND (no such file below the roots), QUARK_BUSY (as many setups as there may be,
 * and none is idle), QUARK_DENIED, ... */
QUARK_API quark_code_t quark_load(quark_connection_t *conn, const quark_load_t *load,
                                  quark_error_t *err);
/* Nothing more is submitted to the setup; what was (now: cancelled) ends, then it goes. Returns when the daemon has begun.
 * The default cannot be dropped. */
QUARK_API quark_code_t quark_drop(quark_connection_t *conn, const char *name, bool now,
                                  quark_error_t *err);
/* The setup, which is ready, serves from now on what names none. */
QUARK_API quark_code_t quark_make_default(quark_connection_t *conn, const char *name,
                                          quark_error_t *err);

/* now false: the daemon finishes what it has accepted, then leaves. */
QUARK_API quark_code_t quark_shutdown(quark_connection_t *conn, bool now, quark_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
