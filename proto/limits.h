/*
 * limits.h: every limit of the protocol, in one place. Bytes unless the name says otherwise. All
 * are checked by the receiver before anything is allocated for what they limit.
 */
#ifndef QK_PROTO_LIMITS_H
#define QK_PROTO_LIMITS_H

#define QK_PROTOCOL_VERSION 1u

enum {
  QK_CONTROL_MAX = 64 * 1024, /* one control message */
  QK_CHUNK_MAX = 1024 * 1024, /* payload of one data message */
  QK_FRAME_HEADER = 64,       /* header of one data message */
  QK_FRAME_MAX = QK_FRAME_HEADER + QK_CHUNK_MAX,
  QK_CURVE_EXTRA = 64, /* by which a message may be longer where it is encrypted */

  QK_CLIENT_ID = 16,         /* client id, and session token */
  QK_USER_MAX = 64,          /* user name in HELLO */
  QK_PROGRAM_MAX = 128,      /* program name in HELLO */
  QK_SETUP_NAME_MAX = 64,    /* name of a setup */
  QK_SETUP_GAUGE_MAX = 1023, /* gauge in LOAD of a client */
  QK_TEXT_MAX = 512,         /* sentence in REJECTED, RESULT, ERROR */
  QK_PATH_MAX = 4096,        /* gauge path in LOAD */
  QK_SHM_NAME_MAX = 64,      /* shared-memory name in FILL */

  QK_REQUEST_RHS_MAX = 1024, /* right-hand sides of one request */
  QK_MASSES_MAX = 16,        /* of one request */
  QK_MASSES_TOGETHER = 24,   /* right-hand sides of several masses that are solved together */
  QK_MASSES_SOURCES = 8,     /* and their sources */
  QK_PRIORITY_MAX = 9,       /* of a request; the greater goes first */
  QK_PRIORITY_DEFAULT = 4,
  QK_CLIENT_REQUESTS_MAX = 256, /* requests of one client at a time */
  QK_SESSIONS_MAX = 65536,      /* clients at a time, as far as --max-sessions allows */
  QK_SESSION_BYTES = 26624,     /* memory of one, with its user, beside its requests */
  QK_SESSIONS_SHARE = 256,      /* of them that one user may have in any case */
  QK_USERS_SHOWN = 256,         /* users in a STATUS report */
  QK_CLIENTS_MAX = 1024,        /* authorised keys */
  QK_SETUPS_MAX = 64,           /* setups of a daemon */
  QK_SLOTS_MAX = 64,            /* slots of an engine */
  QK_SLOT_GROUP = 4,            /* slots whose data share a line of 64 bytes */
  QK_DEVICES_MAX = 64,          /* devices that replicas are given, one after the other */
  QK_REPLICAS_MAX = 16,         /* engines of a setup */
  QK_STAGING_MAX = 8,           /* sources that come beside slots; twice as many solutions leave */
  QK_INFLIGHT_MAX =
      QK_SLOTS_MAX + 3 * QK_STAGING_MAX, /* right-hand sides that an engine has at a time */
  QK_SLOTS_CHOSEN = 16,                  /* most slots of an engine that may choose */
  QK_PROPAGATOR_COLUMNS = 12,            /* right-hand sides of a propagator: spin, colour */
  QK_SITE_REALS = 24,                    /* of a field with spin and colour */
  QK_COLOUR_COLUMNS = 3,                 /* of a propagator of fields with colour alone */
  QK_COLOUR_REALS = 6,                   /* of a field with colour alone */
  QK_SITE_REALS_MAX = 1152,              /* of a field of any action */
  QK_MOMENTA_MAX = 128,                  /* of a contraction */
  QK_CHANNELS_MAX = 512,                 /* of a contraction */
  QK_WALL_TIMES_MAX = 512,               /* time slices of WALL_SUMS */
  QK_SMEAR_STEPS_MAX = 1000,             /* Gaussian smearing */
  QK_SHIFT_MAX = 7,                      /* bits of x, y and z */
  QK_LINK_STEPS_MAX = 100,               /* link smearing */

  QK_EIGEN_NAME_MAX = 64,       /* name of eigenvectors */
  QK_EIGEN_COUNT_MAX = 4096,    /* vectors of a name; LAPLACIAN: of a time slice */
  QK_EIGEN_BASIS_MAX = 512,     /* vectors of the basis of compressed ones */
  QK_EIGEN_SLICES_MAX = 96,     /* of a vector of five dimensions */
  QK_EIGEN_SPACE_MAX = 16384,   /* of the Krylov space */
  QK_EIGEN_ORDER_MAX = 4096,    /* of the polynomial */
  QK_EIGEN_RESTARTS_MAX = 1000, /* of one EIGEN */
  QK_EIGEN_NAMES_MAX = 16,      /* of a setup */
  QK_USER_EIGEN_MAX = 4,        /* of them of one user */
  QK_DEFLATE_MAX = 4096,        /* vectors that solves begin with */

  QK_FILE_NAME_MAX = 1023, /* path in SUBMIT */
  QK_FILE_LAST_MAX = 200,  /* its last part: room for that of a temporary name */
  QK_FILE_ROOTS_MAX = 16,  /* folders that such paths may be in */
  QK_FILE_TASKS = 2,       /* of them at a time that are read or written */

  QK_LOCAL_MAX = 256,  /* one message of the local socket */
  QK_LOCAL_SPARE = 64, /* connections of the local socket beyond one a session */
  QK_LOCAL_PUTS = 8,   /* fields that a client has handed over and that have not arrived */

  QK_DATA_THREADS_MAX = 8, /* data endpoints of a daemon */

  QK_USER_FIELDS_MAX = 64,             /* fields of one user (FIELD_OPEN) */
  QK_PARTS_MAX = 1024,                 /* of a request with a grid */
  QK_UPLOAD_WINDOW = 8 * QK_CHUNK_MAX, /* upload credit beyond what has arrived */
  QK_PROGRESS_MS = 500,                /* least time between two PROGRESS of one request */
  QK_HEARTBEAT_MS = 1000,              /* engine heartbeat, and front ping */
  QK_ENGINE_SILENCE_MS = 30000         /* front silent for so long: the engine leaves */
};

/* `feature` of WELCOME, and of HELLO. Numbers are never used twice. */
enum {
  QK_FEATURE_FIELDS = 1,   /* FIELD_OPEN; LOAD from a field or a digest */
  QK_FEATURE_JOIN = 2,     /* JOIN; grid and part of FIELD_OPEN and SUBMIT */
  QK_FEATURE_ZEROS = 3,    /* UPLOAD_ZERO; sparse of a local put */
  QK_FEATURE_WORK = 4,     /* work, dagger, parity, schur of SUBMIT */
  QK_FEATURE_STOPPING = 5, /* tol_hq and tol_abs of SUBMIT */
  QK_FEATURE_ACTIONS = 6,
  QK_FEATURE_DATA_ENDPOINTS = 7,
  QK_FEATURE_BLOCK_SUMS = 8,
  QK_FEATURE_FLAVOUR = 9,
  QK_FEATURE_EVOLVE = 10, /* evolve_from of LOAD */
  QK_FEATURE_COLUMN_FLAVOUR = 11,
  QK_FEATURE_SINGLE_RHS = 12, /* single_rhs of SUBMIT */
  QK_FEATURE_EIGEN = 13,      /* EIGEN, EIGEN_DROP; sources that are eigenvectors */
  QK_FEATURE_DEFLATE = 14,    /* deflate of LOAD */
  QK_FEATURE_PROJECT = 16,    /* SINK_PROJECT */
  QK_FEATURE_VECTORS = 17,    /* FIELD_VECTORS; field of EIGEN */
  QK_FEATURE_DEFLATE_FROM = 18,
  QK_FEATURE_FIVE = 19,       /* five_d of SUBMIT */
  QK_FEATURE_COMPRESSED = 20, /* basis and block of EIGEN */
  QK_FEATURE_REPLICAS = 21,   /* replicas and devices of LOAD */
  QK_FEATURE_VALUES = 22,     /* kept of EIGEN */
  QK_FEATURE_FIX_GAUGE = 23,  /* fix_gauge of LOAD */
  QK_FEATURE_MASSES = 24,     /* masses of SUBMIT */
  QK_FEATURE_SHIFT = 25       /* shift of a smearing; tastes of CONTRACT */
};

#define QK_ZEROS_MAX (1u << 31)         /* bytes of one UPLOAD_ZERO */
#define QK_SMEAR_ALPHA_MAX 10.0         /* Gaussian smearing: |alpha| */
#define QK_SMEAR_LEAST 1e-6             /* and |1 + 6 alpha| at least */
#define QK_ITERATIONS_MAX 1000000000ull /* max_iter */
#define QK_EIGEN_TOL_MIN 1e-15          /* residual of an eigenvector */
#define QK_EIGEN_TOL_MAX 0.1
#define QK_FILE_BYTES_MAX (1ull << 60)    /* offset in a file */
#define QK_DEADLINE_MS_MAX 31536000000ull /* deadline: a year */

#endif
