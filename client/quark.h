/*
 * quark.h: libquark, the client library of quarkd. This header is the whole interface;
 * it includes quark_buffer.h, uploads without a copy, quark_wall.h, sums of domain wall fermions,
 * and quark_daemon.h, the daemon itself: its state and its setups.
 *
 * The daemon solves M x = b for fields b, the right-hand sides (RHS). A request is a set of RHS,
 * numbered from 0, with one tolerance. A connection carries many requests. The order of calls:
 *
 *   quark_connect
 *     quark_submit            announces a request; the daemon accepts or refuses it
 *     quark_upload ...        sends the bytes of all RHS, one after the other (uploaded sources)
 *     quark_flush             waits until the daemon has them (only if the program is to end now)
 *     quark_wait              for each RHS: waits until it is solved, and tells how it ended
 *     quark_download          fetches its solution
 *     quark_contract          correlators of solutions that the daemon keeps; a request of its own
 *     quark_release           the daemon and the library forget the request
 *   quark_close
 *
 * Fields     Complex numbers, real part first, little endian, 32 or 64 bit. Of the sites x runs
 *            fastest, then y, z, t. A site has 4 spins x 3 colours; colour runs fastest. The
 *            residual is |b - M x| / |b| of the full operator in double precision.
 *            docs/physics.md defines M, the spin bases and the noise.
 * Threads    Every function may be called from any thread at any time, on one connection too. Only
 *            quark_close must be the last call. Each connection has a thread of its own that moves
 *            data and keeps the session alive. It blocks all signals, and of the user's code it
 *            calls nothing but `sought`. There are no globals.
 * Errors     Functions return a code; 0 is success. *err says what was wrong, and whether the same
 *            call may succeed later; err may be NULL. Outputs are set only on success. An RHS that
 *            misses its tolerance is not an error of a call: its result says so.
 * Loss       The library restores a broken connection. Nothing is lost as long as the daemon keeps
 *            the session, which it does for about a minute (the lease). If the daemon no longer
 *            knows the key of an open session, the key is tried again for reconnect_ms, at most
 *            30 s. The connection is dead after reconnect_ms without the daemon, or if the daemon
 *            refuses the session. All calls then return the reason; only quark_close is left.
 * Throughput The daemon is fastest if work always waits for it. Submit and upload the next request
 *            before the last one has ended. quark_event_next reports on all requests.
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

/* ---- how a call or an RHS can end; the numbers are those of the protocol ---- */

typedef enum quark_code {
  QUARK_OK = 0,
  /* the call was not carried out; nothing changed */
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
  /* this RHS ended without a solution to its tolerance */
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

/* The name ("NAN_INPUT"), a sentence, and whether the same call may succeed later. The texts are
 * static. */
QUARK_API const char *quark_code_name(quark_code_t code);
QUARK_API const char *quark_code_text(quark_code_t code);
QUARK_API bool quark_code_retryable(quark_code_t code);

typedef struct quark_error {
  quark_code_t code;
  bool retryable;
  uint32_t retry_after_ms; /* the daemon's advice when to try again; 0: none */
  char text[512];
} quark_error_t;

/* The version of the library, "0.1.0". */
QUARK_API const char *quark_version(void);

/* ---- connections ---- */

/* For reconnect_ms: 15 minutes if the daemon keeps a journal, so that open requests survive its
 * restart; else 30 s. */
#define QUARK_RECONNECT_AUTO UINT32_MAX

enum { QUARK_CLIENT_ID_BYTES = 16 };

typedef struct quark_connection quark_connection_t;

typedef struct quark_options {
  /* Connect, submit, status, cancel, shutdown, upload and download end with QUARK_TIMEOUT if
   * nothing comes from the daemon for so long. Default 10000 */
  uint32_t timeout_ms;
  /* How long the library tries to reach a daemon that has vanished. If the daemon keeps a journal,
   * submit, attach, upload, flush and download do not time out meanwhile: they go on with the next
   * daemon at the same endpoint. Default QUARK_RECONNECT_AUTO */
  uint32_t reconnect_ms;
  /* 16 bytes; NULL: random. With the id of an earlier connection this one takes over its session.
   */
  const uint8_t *client_id;
  bool keep_session;   /* after quark_close the session and its requests live on for the lease */
  const char *user;    /* the work goes to this user's queue; NULL: the user of this process */
  const char *program; /* for the daemon's log; NULL: "libquark" */
  /* Encryption by CURVE, for daemons that ask for it: both keys or neither. Copied. */
  const char *server_key; /* the daemon's public key, 40 characters of Z85 */
  const char *key_file;   /* the client's secret key, as quarkctl keygen makes it; mode 0600 */
  /* Fields go through shared memory if the daemon is on this machine, allows it, and runs as this
   * user (or if this process is root's). Else, or if false, they go by socket. Default true */
  bool local;
  /* The setup of all requests and reports that do not name one; NULL: the daemon's default setup.
   * Copied. */
  const char *setup;
  /* The connection's thread calls this when it has tried to reach the daemon for 5 s, once a minute
   * after that, and when the daemon is back. text: a sentence without a full stop. The function
   * must not call libquark. NULL: none. */
  void (*sought)(void *arg, const char *text);
  void *sought_arg;
} quark_options_t;

QUARK_API void quark_options_init(quark_options_t *options);

/* Connects and waits for the daemon's answer. endpoint: "tcp://127.0.0.1:5555". options NULL: the
 * defaults. Errors: QUARK_TIMEOUT, QUARK_BAD_ARGUMENT (endpoint, keys), QUARK_UNSUPPORTED (another
 * version of the protocol; libzmq without CURVE), QUARK_DENIED (a wrong key), QUARK_BUSY. */
QUARK_API quark_code_t quark_connect(const char *endpoint, const quark_options_t *options,
                                     quark_connection_t **conn, quark_error_t *err);
/* NULL-safe. The daemon drops the session and its requests, unless keep_session is set. */
QUARK_API void quark_close(quark_connection_t *conn);
/* True if the daemon had a session of this client id before quark_connect. */
QUARK_API bool quark_resumed(const quark_connection_t *conn);
QUARK_API void quark_client_id(const quark_connection_t *conn, uint8_t id[QUARK_CLIENT_ID_BYTES]);

/* True if fields go through shared memory at the moment. */
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
  QUARK_MASS = 0,  /* M = (4 + m) - D/2 + ..., of staggered fermions m + D/2 */
  QUARK_KAPPA = 1, /* 2 kappa M */
  QUARK_TWICE = 2  /* 2 M = 2m + D, of staggered fermions */
} quark_normalisation_t;
typedef enum quark_source {
  QUARK_UPLOAD = 0,
  QUARK_POINT = 1,
  QUARK_WALL = 2,
  QUARK_Z2 = 3,
  QUARK_Z4 = 4,
  QUARK_SEQUENTIAL = 5, /* made from a kept solution */
  QUARK_FILE = 6,       /* read from a file that the daemon opens */
  QUARK_VECTOR = 7      /* an eigenvector (quark_eigen.h) */
} quark_source_t;

/* "degrand-rossi", "ukqcd", "dirac-pauli", "openqcd"; NULL for others. The text is static. */
QUARK_API const char *quark_basis_name(quark_basis_t basis);
QUARK_API bool quark_basis_parse(const char *name, quark_basis_t *basis);

/* What a request asks for: to solve, or a part of the operator M = A - H/2 applied to its sources
 * (docs/physics.md). Results are solutions then, with true_residual 0, norm_b of the source and
 * norm_x of the result; tol and max_iter do not count. */
typedef enum quark_work {
  QUARK_WORK_SOLVE = 0,
  QUARK_WORK_M = 1,
  QUARK_WORK_HOP = 2,  /* H */
  QUARK_WORK_DIAG = 3, /* A */
  QUARK_WORK_DIAG_INVERSE = 4,
  QUARK_WORK_DIAG_INVERSE_HOP = 5, /* A^-1 H; of the adjoint A^-1+ H^+ */
  QUARK_WORK_SCHUR = 6,            /* Mhat = 1 - A^-1 H A^-1 H / 4 on a parity */
  QUARK_WORK_SMEAR = 7             /* the source as a solve would see it */
} quark_work_t;

/* Sites by x + y + z + t, in global coordinates. */
typedef enum quark_parity {
  QUARK_PARITY_ALL = 0,
  QUARK_PARITY_EVEN = 1,
  QUARK_PARITY_ODD = 2
} quark_parity_t;

typedef enum quark_schur {
  QUARK_SCHUR_NONE = 0,
  QUARK_SCHUR_SYMMETRIC = 1, /* Mhat */
  QUARK_SCHUR_ASYMMETRIC = 2 /* A Mhat */
} quark_schur_t;

/* One generated RHS, in global coordinates. docs/physics.md has the formulas. */
typedef struct quark_column {
  int32_t x, y, z;      /* point: the site */
  int32_t t;            /* the time slice; -1: every one (noise, sequential) */
  int32_t spin, colour; /* the component; -1: all (noise) */
  uint64_t seed;        /* noise */
  int32_t px, py, pz;   /* factor exp(i 2 pi p x / L) (wall, noise, sequential), before smearing */
  uint32_t t_every;     /* noise: on slices t, t + t_every, ...; 0: as t says */
  uint64_t request;     /* sequential: gamma times solution rhs of this kept request on slice t */
  uint32_t rhs, gamma;  /* gamma 0..15, bits b: gx^b0 gy^b1 gz^b2 gt^b3; 15 is gamma5 */
  /* Doublets, whose right-hand sides are fields of two flavours: 1, the source is in the upper one;
   * -1: in the lower one; 0, the default: noise is in both, a point or wall in the upper one. The
   * other flavour is zero. -1 needs a daemon that knows it (QUARK_UNSUPPORTED) and a doublet
   * (QUARK_BAD_ARGUMENT). */
  int32_t flavour;
  uint32_t vector, slice; /* QUARK_VECTOR: its number, and the slice of a fifth dimension */
} quark_column_t;

typedef enum quark_link_smear {
  QUARK_LINKS_AS_THEY_ARE = 0,
  QUARK_APE = 1,   /* alpha */
  QUARK_STOUT = 2, /* rho */
  QUARK_HYP = 3    /* alpha1, alpha2, alpha3 */
} quark_link_smear_t;

/* Gaussian smearing in space with smeared links: `steps` times
 *   psi <- (psi + alpha sum of the 6 neighbours) / (1 + 6 alpha).
 * steps 0: none. */
typedef struct quark_smearing {
  double alpha;
  uint32_t steps;
  quark_link_smear_t links;
  double link_param[3];
  uint32_t link_steps;
  bool link_all;  /* APE, stout: time-like links and staples as well */
  uint32_t shift; /* of sources with colour alone, bits 1, 2, 4 for x, y, z: PROTOCOL.md 5 */
} quark_smearing_t;

/* A file with all RHS or all solutions of a request, one after the other. The daemon opens it; it
 * must be below one of the daemon's --file-roots. */
typedef struct quark_file {
  const char *path; /* absolute; NULL: no file. Copied by quark_submit */
  uint64_t offset;  /* of the first field, bytes */
  uint64_t size;    /* that a source file must have, bytes; 0: it ends with the last field */
} quark_file_t;

typedef struct quark_params {
  const char *setup; /* NULL: the one in the options of the connection */
  uint32_t nrhs;
  quark_dtype_t dtype;                 /* of uploads and downloads. Default QUARK_F64 */
  quark_basis_t basis;                 /* of sources and solutions. Default QUARK_DEGRAND_ROSSI */
  quark_normalisation_t normalisation; /* Default QUARK_MASS */
  /* 1 or -1: which of the two operators of the setup, if its action has flavours (twisted mass).
   * Default 1, which 0 stands for. Others than 1 need a daemon that knows them
   * (QUARK_UNSUPPORTED) and an action that has them (QUARK_BAD_ARGUMENT). */
  int32_t flavour;
  bool five_d; /* M x = b of five dimensions, [s] before [t]. Default false. Errors: as flavour */
  /* Others than the defaults need a daemon that knows them (QUARK_UNSUPPORTED). */
  quark_work_t work;     /* Default QUARK_WORK_SOLVE */
  bool dagger;           /* of the adjoint M^+. Default false */
  quark_parity_t parity; /* sources and solutions are fields of these sites alone, half as large */
  quark_schur_t schur;   /* QUARK_WORK_SOLVE and QUARK_WORK_SCHUR, with a parity */
  /* When an RHS has converged. What is 0 is not asked for; at least one must be greater, and all
   * that are given must hold, for each RHS by itself: tol: |b - M x| / |b|; default 1e-10. tol_abs:
   * |b - M x|. tol_hq: the heavy-quark residual sqrt(sum_n |r(n)|^2 / |x(n)|^2 / V), r = b - M x, a
   * site with x(n) = 0 counts 1; of the operator and solution in this normalisation. The two need a
   * daemon that knows them (QUARK_UNSUPPORTED); where residuals do not fall any more the RHS ends
   * soon, with QUARK_NOT_CONVERGED. */
  double tol, tol_abs, tol_hq;
  uint64_t max_iter;    /* Default 10000 */
  uint64_t deadline_ms; /* from acceptance on. 0, the default: none */
  int priority;         /* 0 to 9: of one user's requests the greatest goes first. Default 4 */
  quark_source_t source;
  const quark_column_t *column; /* generated sources: nrhs of them. Copied by quark_submit */
  const double *mass; /* nmass of them (libquark(3)); 0, the default: that of the setup. Copied */
  uint32_t nmass;
  const char *vectors; /* QUARK_VECTOR: the name that columns count in */
  /* Not by the solver for an RHS that is alone: the solution is then the same function of the
   * source whatever else is solved, to the last bit. Needs a daemon that knows it
   * (QUARK_UNSUPPORTED). */
  bool batch_only;
  bool discard; /* no download: the results alone are of interest */
  /* In place of solutions their products with so many eigenvectors of a name: quark_eigen.h */
  const char *project;
  uint32_t project_count;
  quark_smearing_t smear; /* of the source, uploaded or generated. Default: none */
  /* The daemon keeps the solutions for later sources and contractions of this client, until
   * quark_release or expiry. After quark_ack they cannot be downloaded any more. */
  bool keep;
  uint64_t keep_ms; /* they expire so long after their last use; 0: the daemon's limit */
  /* The request outlives the connection. Its results wait so long for a connection with this client
   * id to attach to it. 0, the default: the request ends with the connection. */
  uint64_t detach_ms;
  quark_file_t source_file; /* QUARK_FILE */
  /* The daemon writes the solutions to this new file, and they cannot be downloaded. An RHS without
   * a solution is written as zeros. Results come when all RHS have ended and the file is complete.
   * Errors of a file: QUARK_NOT_FOUND, QUARK_DENIED, QUARK_IO_ERROR, QUARK_BAD_ARGUMENT. */
  quark_file_t sink_file;
  /* Sources and solutions go in parts (quark_join): so many in x, y, z, t; zeros, the default:
   * whole. part: that of this connection itself; -1, the default: none. Not with sink_file. */
  uint32_t grid[4];
  int32_t part;
} quark_params_t;

QUARK_API void quark_params_init(quark_params_t *params);

enum { QUARK_ALL = -1 }; /* in place of the index of an RHS */

typedef struct quark_result {
  uint64_t request;
  uint32_t rhs;
  quark_code_t status;               /* QUARK_OK: the tolerance was reached */
  char text[256];                    /* why it was not */
  double true_residual;              /* |b - M x| / |b|; NaN: there was no solve */
  double hq_residual;                /* NaN: no tol_hq, or there was no solve */
  uint64_t iterations, applications; /* applications of the operator in all precisions */
  double seconds;                    /* in the solver */
  uint64_t bytes;                    /* of the solution; 0: there is none to download */
  double norm_b, norm_x;             /* NaN: not known */
  double queue_seconds; /* from its last byte, or else from acceptance, to a slot; NaN: unknown */
  uint64_t digest;      /* quark_field_open: of the links */
  double unitarity;     /* likewise: largest element of |U^+ U - 1|; NaN: they were there already */
} quark_result_t;

/* Submits a request and waits until the daemon accepts or refuses it. *field_bytes (may be NULL):
 * bytes of one RHS, and of one solution. Errors: QUARK_BUSY and QUARK_NOT_READY (try again later),
 * QUARK_TOO_LARGE, QUARK_BAD_ARGUMENT, ... */
QUARK_API quark_code_t quark_submit(quark_connection_t *conn, const quark_params_t *params,
                                    uint64_t *request, uint64_t *field_bytes, quark_error_t *err);

/* Sends the next bytes of the stream of all RHS, any number of bytes a call. data may be reused on
 * return. Once every RHS has ended, the rest is not sent. 64 KiB of zeros or more in one call take
 * none of the connection, if the daemon knows how (-0.0 is not zero). Only one thread at a time may
 * upload to one request. Errors: QUARK_BAD_ARGUMENT (more than nrhs * field_bytes in all),
 * QUARK_NOT_FOUND (no such request), QUARK_TIMEOUT. */
QUARK_API quark_code_t quark_upload(quark_connection_t *conn, uint64_t request, const void *data,
                                    size_t bytes, quark_error_t *err);

/* Waits until the daemon has every RHS that was uploaded to its end. A detached request needs its
 * client no longer then. Errors: QUARK_NOT_FOUND, QUARK_TIMEOUT. */
QUARK_API quark_code_t quark_flush(quark_connection_t *conn, uint64_t request, quark_error_t *err);

/* Waits until `rhs` has ended, at most timeout_ms (0: does not wait; negative: for ever), and tells
 * how. QUARK_TIMEOUT: it has not ended. */
QUARK_API quark_code_t quark_wait(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                  int64_t timeout_ms, quark_result_t *result, quark_error_t *err);

/* The residuals of an RHS that the daemon told while it was solved, at most twice a second, thinned
 * to QUARK_HISTORY: the first `room` of them into iteration and residual, *count: how many there
 * are. Until quark_release. Errors: QUARK_NOT_FOUND (no such request), QUARK_BAD_ARGUMENT (rhs). */
enum { QUARK_HISTORY = 256 };
QUARK_API quark_code_t quark_history(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                     uint64_t *iteration, double *residual, uint32_t room,
                                     uint32_t *count, quark_error_t *err);

/* Fetches the solution of an RHS that has ended, and verifies its checksums. bytes: field_bytes.
 * The daemon holds the solution until quark_ack. After an error the contents of buffer are
 * undefined. Errors: QUARK_NOT_FOUND (there is no solution), QUARK_BAD_CHECKSUM, QUARK_EXPIRED. */
QUARK_API quark_code_t quark_download(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                      void *buffer, size_t bytes, quark_error_t *err);

/* A solution to be read where it is. */
typedef struct quark_view {
  const void *data; /* as quark_download writes it */
  size_t bytes;
  bool mapped; /* data is memory of the daemon; false: the buffer of the caller */
} quark_view_t;

/* As quark_download, but without a copy if fields go through shared memory and the daemon is root's
 * or runs as this user: *view is then a mapping of its memory, which can only be read. Else *view
 * is buffer, which is written only then. The view is valid until quark_view_close, also after
 * quark_ack, quark_release and quark_close, and holds the memory so long. It is to be closed before
 * quark_ack: the daemon can then use the memory again. */
QUARK_API quark_code_t quark_view_open(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                       void *buffer, size_t bytes, quark_view_t *view,
                                       quark_error_t *err);
/* Ends a view, which is then empty; an empty one stays as it is. The buffer is the caller's. */
QUARK_API void quark_view_close(quark_view_t *view);

/* Lets the daemon forget the solution of rhs, which has ended; QUARK_ALL: of all RHS that have. */
QUARK_API quark_code_t quark_ack(quark_connection_t *conn, uint64_t request, int32_t rhs,
                                 quark_error_t *err);

/* Ends rhs with QUARK_CANCELLED, unless it has ended; QUARK_ALL: all RHS. Returns when the daemon
 * knows. The request may be one of an earlier connection with this client id. */
QUARK_API quark_code_t quark_cancel(quark_connection_t *conn, uint64_t request, int32_t rhs,
                                    quark_error_t *err);

/* Forgets the request and the solutions kept by it. RHS that have not ended are cancelled. Requests
 * that use the solutions, and were submitted before, still find them. */
QUARK_API quark_code_t quark_release(quark_connection_t *conn, uint64_t request,
                                     quark_error_t *err);
/* The same, but waits until the daemon has done it, even if the connection breaks meanwhile. It is
 * for detached requests (detach_ms), which would else wait in vain. The request may be one of an
 * earlier connection with this client id. A request that does not exist is no error. */
QUARK_API quark_code_t quark_forget(quark_connection_t *conn, uint64_t request, quark_error_t *err);

/* ---- correlators, computed by the daemon from kept propagators ---- */

typedef enum quark_channel_kind {
  QUARK_MESON = 0,   /* 1 complex number: sum_x e^{-ip(x-x0)} tr[g5 S_b^+ g5 G_sink S_a G_source] */
  QUARK_NUCLEON = 1, /* 4 x 4 spin matrix; a is the doubled flavour, b the other */
  QUARK_DELTA = 2,   /* 3 x 3 x 4 x 4: two vector indices, then a spin matrix; three quarks a */
  QUARK_CORNER = 3   /* 1 number: the local nucleon of fields with colour alone */
} quark_channel_kind_t;

typedef struct quark_channel {
  quark_channel_kind_t kind;
  uint32_t sink, source; /* meson: gamma matrices 0..15; with colour alone spin and taste */
} quark_channel_t;

/* A propagator is 12 kept solutions of one request: RHS first + 3 * spin + colour is the column of
 * that source component, in the DeGrand-Rossi basis. */
typedef struct quark_contraction {
  uint64_t request_a, request_b;                  /* request_b 0: both propagators are a */
  uint32_t first_a, first_b, nchannel, nmomentum; /* first_b: only with request_b */
  const quark_channel_t *channel;
  const int32_t (*momentum)[3]; /* nmomentum 0: zero momentum alone */
  int32_t origin[4];            /* x, y, z, t of the source */
  quark_smearing_t sink;        /* of both propagators at the sink x */
  uint64_t deadline_ms;
  int priority;       /* as in quark_params_t */
  uint64_t detach_ms; /* as in quark_params_t */
} quark_contraction_t;

/* Sets no channels, zero momentum alone, the origin 0 0 0 0, no smearing and no deadline. */
QUARK_API void quark_contraction_init(quark_contraction_t *contraction);

/* Submits a contraction: a request with one result, which is waited for and downloaded as RHS 0.
 * The download has *bytes bytes (bytes may be NULL): complex doubles [channel][momentum][T][numbers
 * of the channel], with t counted from the origin. Errors: those of quark_submit; QUARK_NOT_FOUND
 * (a propagator is not kept). */
QUARK_API quark_code_t quark_contract(quark_connection_t *conn,
                                      const quark_contraction_t *contraction, uint64_t *request,
                                      uint64_t *bytes, quark_error_t *err);

/* ---- links from memory ---- */

typedef enum quark_field_kind {
  QUARK_FIELD_GAUGE = 1, /* SU(3) links */
  QUARK_FIELD_CLOVER,    /* a clover term */
  QUARK_FIELD_VECTORS    /* for quark_eigen (quark_eigen.h) */
} quark_field_kind_t;

/* Links as a setup is made of them; or its clover term, whatever made it: T of M = T - 1/2 hop,
 * with mass and all, for the action "foreign-clover". */
typedef struct quark_field_params {
  quark_field_kind_t kind; /* Default QUARK_FIELD_GAUGE */
  uint32_t dims[4];        /* x, y, z, t: even */
  quark_dtype_t dtype;     /* Default QUARK_F64 */
  uint32_t reals;          /* of a link: 18, the default, or 12, the first two rows */
  /* Of the field (quark_gauge_digest, _clover_, _vectors_). If the daemon has it, nothing is to be
   * sent; if another one comes it is refused with QUARK_BAD_CHECKSUM. */
  bool has_digest;
  uint64_t digest;
  double plaquette; /* that the setup must find; NaN, the default: not said */
  uint64_t keep_ms; /* they stay so long after their last use. 0, the default: the daemon's limit */
  uint32_t grid[4]; /* as in quark_params_t: it comes in parts */
  int32_t part;     /* that this connection sends; -1, the default: none */
  uint32_t count;   /* VECTORS: of each time slice */
} quark_field_params_t;

QUARK_API void quark_field_params_init(quark_field_params_t *params);

/* Announces a field: a request with one result, *field. Unless *present, all *bytes of it are to be
 * sent with quark_upload. Links: complex numbers [t][z][y][x][mu = x,y,z,t][row][column]. A clover
 * term: real numbers [t][z][y][x][2][36], in the basis of DeGrand and Rossi two hermitian 6x6
 * matrices (spins 0 and 1, spins 2 and 3; index 3 spin + colour), each as its 6 diagonal elements,
 * then the 15 complex ones below the diagonal, column by column. quark_wait (RHS 0) then tells that
 * it was taken, with digest and, of links, unitarity, or why not: QUARK_NOT_UNITARY names the worst
 * link, QUARK_BAD_ARGUMENT the first number of a clover term that is NaN or Inf. Fields belong to
 * the user, not to the connection, and stay while a setup is made of them (quark_load with gauge
 * "field:NUMBER"), or for keep_ms; quark_release lets them go when no setup needs them. Links that
 * are *present keep their plaquette. Errors: also QUARK_BAD_GEOMETRY, QUARK_UNSUPPORTED. */
QUARK_API quark_code_t quark_field_open(quark_connection_t *conn,
                                        const quark_field_params_t *params, uint64_t *field,
                                        uint64_t *bytes, bool *present, quark_error_t *err);

/* Adds the digest of some sites to *sum, which begins as 0: links [sites][mu][row][column] as they
 * would be sent, of that dtype and 18 or 12 reals a link; site[i] is their global index with x
 * fastest, NULL: 0, 1, 2, ... The sums of parts of a lattice add up to that of the whole, in any
 * order. Pure. The second one: of a clover term [sites][72]. */
QUARK_API void quark_gauge_digest(const void *links, quark_dtype_t dtype, uint32_t reals,
                                  const uint64_t *site, size_t sites, uint64_t *sum);
QUARK_API void quark_clover_digest(const void *term, quark_dtype_t dtype, const uint64_t *site,
                                   size_t sites, uint64_t *sum);

/* ---- a field, a source, a solution in parts ----
 *
 * With a grid, part ((ct gz + cz) gy + cy) gx + cx of a field is the sub-lattice of extents
 * dims / grid at the coordinates c of the grid. Its sites, x fastest, are all that goes over the
 * connection that has the part; sites of one parity (quark_params_t.parity) need even extents. The
 * owner submits the request or opens the field, and hands on its client id, the request and the
 * token; others, also of other processes and machines, but of the same user, join. What is not
 * said here is as for a request of one's own.
 *
 * A right-hand side is solved, a field is checked, once all its parts are there. Results come to
 * all; the solution is freed when the owner and all who have joined have acknowledged it. The end
 * of the owner, or quark_release by it, ends the request for all: QUARK_CANCELLED. quark_release of
 * a part, or the end of who has joined, ends nothing: the part can be joined again. */

/* The token of a quark_submit or quark_field_open with a grid. QUARK_NOT_FOUND: no such request;
 * QUARK_BAD_ARGUMENT: it has no grid, or the links were there already. */
QUARK_API quark_code_t quark_join_token(quark_connection_t *conn, uint64_t request,
                                        uint8_t join[QUARK_CLIENT_ID_BYTES], quark_error_t *err);

/* Takes a part of a request: *request is its number on this connection, for uploads, results and
 * downloads. *part_bytes (may be NULL): of a part of one RHS. *uploaded (may be NULL): bytes of its
 * stream that the daemon has already, of whole RHS; the upload goes on there. Whoever had the part
 * before loses it: its request ends with QUARK_EXPIRED. Errors: QUARK_NOT_FOUND (no such request:
 * over, or never accepted), QUARK_DENIED (token, or another user's), QUARK_BAD_ARGUMENT (part; or
 * the owner has it itself), QUARK_BUSY, QUARK_UNSUPPORTED. */
QUARK_API quark_code_t quark_join(quark_connection_t *conn,
                                  const uint8_t owner[QUARK_CLIENT_ID_BYTES],
                                  uint64_t owner_request, const uint8_t join[QUARK_CLIENT_ID_BYTES],
                                  uint32_t part, uint64_t *request, uint64_t *part_bytes,
                                  uint64_t *uploaded, quark_error_t *err);

/* The next bytes of the stream are zero. They take none of the connection, whatever their number,
 * if the daemon knows how; else they are sent. Errors: those of quark_upload. */
QUARK_API quark_code_t quark_upload_zeros(quark_connection_t *conn, uint64_t request,
                                          uint64_t bytes, quark_error_t *err);

/* ---- requests of an earlier connection ---- */

typedef struct quark_attached {
  bool contraction;      /* then only nrhs of params has a meaning */
  quark_params_t params; /* as it was submitted; column stays valid until quark_release */
  uint64_t bytes;        /* of one solution */
  uint64_t uploaded;     /* bytes of the RHS that arrived; the rest can be sent no longer */
  bool field;            /* links (quark_field_open); params has no meaning then */
  bool eigen;            /* eigenvectors (quark_eigen); likewise */
} quark_attached_t;

/* Takes over a request that an earlier connection with this client id has submitted. It can then be
 * waited for, downloaded, cancelled, acknowledged and released like one of this connection. Errors:
 * QUARK_NOT_FOUND (released, expired or never accepted), QUARK_BAD_ARGUMENT (a request of this
 * connection), QUARK_TIMEOUT. */
QUARK_API quark_code_t quark_attach(quark_connection_t *conn, uint64_t request,
                                    quark_attached_t *attached, quark_error_t *err);

/* ---- events, for programs with a loop of their own ---- */

typedef enum quark_event_kind {
  QUARK_EVENT_NONE = 0,
  QUARK_EVENT_PROGRESS, /* at most twice a second for each request; only the latest is kept */
  QUARK_EVENT_RESULT,   /* once for each RHS */
  QUARK_EVENT_DEAD      /* once: the connection has ended; `code` says why */
} quark_event_kind_t;

typedef struct quark_event {
  quark_event_kind_t kind;
  uint64_t request;
  uint32_t ended, queued, running; /* RHS of the request */
  uint64_t iterations;             /* PROGRESS: the largest number among running RHS */
  double residual;       /* PROGRESS: the largest among running RHS; NaN: none is running */
  quark_result_t result; /* RESULT */
  quark_code_t code;     /* DEAD */
} quark_event_t;

/* A descriptor that is readable while an event waits. Only for poll, select and the like. */
QUARK_API int quark_fd(const quark_connection_t *conn);
/* Takes the next event. Waits for it at most timeout_ms (0: does not wait; negative: for ever). If
 * none comes, returns QUARK_OK with kind QUARK_EVENT_NONE. Results are reported here even if
 * quark_wait has returned them. */
QUARK_API quark_code_t quark_event_next(quark_connection_t *conn, int64_t timeout_ms,
                                        quark_event_t *event, quark_error_t *err);

#ifdef __cplusplus
}
#endif

#include "quark_buffer.h"
#include "quark_daemon.h"
#include "quark_eigen.h"
#include "quark_wall.h"

#endif
