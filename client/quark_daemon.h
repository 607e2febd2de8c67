/*
 * quark_daemon.h: the part of quark.h about the daemon itself: its state, its load, its setups.
 *
 * Programs include quark.h. What its top says of threads, errors and loss holds here too.
 */
#ifndef QUARK_DAEMON_H
#define QUARK_DAEMON_H

#include "quark.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- its state ---- */

typedef enum quark_state {
  QUARK_STARTING = 0,
  QUARK_LOADING = 1,
  QUARK_READY = 2,
  QUARK_RESTARTING = 3, /* the engine was lost and is started again */
  QUARK_DRAINING = 4,   /* the daemon finishes accepted work, then ends */
  QUARK_FAILED = 5      /* only of setups other than the default: it could not be loaded */
} quark_state_t;

/* "starting", "loading", ... The text is static. */
QUARK_API const char *quark_state_name(quark_state_t state);

enum { QUARK_MG_LEVELS = 8, QUARK_MEMORY_SHARES = 16, QUARK_START_PARTS = 24 };

/* A parameter of a fermion action: "mass", "-0.05". */
typedef struct quark_parameter {
  const char *key, *value;
} quark_parameter_t;

enum { QUARK_ACTION_TEXT = 32, QUARK_PARAMETER_TEXT = 4096 };

/* One level of multigrid; level 0 is the finest. */
typedef struct quark_mg_level {
  uint32_t dims[4], block[4], vectors; /* the coarsest level has no blocks and no vectors */
  char smoother[16];
  uint32_t pre, post, iterations;
  double orthonormality, galerkin, representation, null_residual, seconds;
} quark_mg_level_t;

/* The multigrid hierarchy and how well it converges; levels 0: there is none. */
typedef struct quark_mg_report {
  uint32_t levels;
  quark_mg_level_t level[QUARK_MG_LEVELS];
  double seconds;
  bool restored; /* from a checkpoint */
  uint32_t attempts, refined, rebuilt;
  double convergence; /* factor by which one outer iteration reduces the residual */
  uint64_t bytes;     /* on the device */
  char checkpoint[1024], checkpoint_trouble[256];
  bool checkpoint_written;
  double iterations_per_digit,
      iterations_per_digit_first; /* outer iterations: lately, and after the setup */
  /* Where its null vectors evolved from; "": they were made from noise. Why those of evolve_from
   * are not in use; "": they are, or none were asked for or needed. */
  char origin[1024], origin_trouble[512];
} quark_mg_report_t;

/* Lowest eigenvectors of Mhat^+ Mhat that each solve begins with. vectors 0: there are none. */
typedef struct quark_deflation {
  uint32_t vectors;
  double lowest, highest; /* eigenvalues */
  double seconds;         /* that they took */
  uint64_t bytes;         /* of all ranks */
  bool restored;          /* from a file */
  char origin[160];       /* their name, of deflate_from; "": they were made for this setup */
  char trouble[256];      /* why their file was not read or written; "": it was, or there is none */
} quark_deflation_t;

/* The sign function of overlap fermions, as it was found to be when the setup was loaded. order 0:
 * there is none. */
typedef struct quark_sign {
  uint32_t vectors;       /* eigenvectors of H that are projected */
  double lowest, bound;   /* |h| of the lowest, and of the first that is not projected */
  bool fractions;         /* partial fractions; else a polynomial */
  uint32_t order;         /* of the polynomial; number of fractions */
  double square;          /* |sgn(H)^2 f - f| / |f| of noise */
  double ginsparg_wilson; /* |(gamma_5 D + D gamma_5 - 2 D gamma_5 D) f| / |f| at mass 0 */
} quark_sign_t;

/* The plan of the device memory of one rank. */
typedef struct quark_memory_plan {
  uint32_t shares; /* 0: unknown */
  struct {
    char name[32];
    uint64_t bytes;
  } share[QUARK_MEMORY_SHARES];
  uint64_t serving, setup, free; /* sum of shares; peak during setup; free before, less 3 % */
} quark_memory_plan_t;

/* Unknown numbers are NaN or 0; unknown texts are empty. */
enum { QUARK_REPLICAS = 16 };

/* One of the engines that serve a setup. Texts: "" where there is nothing to say. */
typedef struct quark_replica {
  quark_state_t state;
  char phase[64]; /* while it is loading, or what it waits for */
  char device[160], last_error[256];
  uint64_t pid, solved; /* right-hand sides, since the daemon started */
  uint32_t slots, slots_busy, restarts;
  uint64_t refreshes; /* of multigrid, that the daemon has ordered */
} quark_replica_t;

typedef struct quark_report {
  quark_state_t state;
  char version[32];
  uint64_t pid;
  double uptime;        /* seconds */
  double walltime_left; /* seconds until the daemon has to end; NaN: it need not */
  char phase[64];
  uint64_t phase_done, phase_total;
  struct {
    char name[72], gauge[1024], format[64], solver[32], precision[16];
    double mass, kappa, csw, boundary[8]; /* phases of x, y, z, t as re, im */
    uint32_t link_reals, dims[4];         /* x, y, z, t */
    double plaquette, unitarity, load_seconds;
    uint64_t digest; /* of the links */
    quark_mg_report_t mg;
    bool checksum_ignored; /* that of the gauge file, as the user asked */
    /* The fermion action and "key=value;key=value;...", as they were given. Empty: the daemon does
     * not say. kappa and csw are 0 if the action has none. */
    char action[QUARK_ACTION_TEXT], parameters[QUARK_PARAMETER_TEXT];
    /* Real numbers of a field at a site; RHS of a propagator. 24 and 12 before they are known. */
    uint32_t site_reals, columns;
    /* What load_seconds went on: phases, which follow one another, and what ran beside them. */
    uint32_t start_parts; /* 0: the daemon does not say */
    struct {
      char phase[32];
      double seconds;
      bool beside;
    } start[QUARK_START_PARTS];
    quark_deflation_t deflation; /* in use; deflate: vectors asked for */
    uint32_t deflate;
    char deflate_from[72]; /* as it was asked for */
    char fix_gauge[48];    /* the gauge that the links were brought to, "coulomb:1e-12"; "": none */
    quark_sign_t sign;     /* of overlap fermions */
  } setup;
  struct {
    uint64_t pid;
    char backend[16], device[128], last_error[256];
    uint32_t ranks, grid[4], restarts, slots, slots_busy;
    uint64_t device_bytes, host_bytes;
    quark_memory_plan_t memory;
    char grid_why[256]; /* why the grid of ranks is what it is; "": one rank, or not known */
  } engine;
  struct {
    uint64_t sessions, requests, queued, running, held; /* now */
    uint64_t accepted, rejected, converged, failed, cancelled, lost, iterations, applications,
        bytes_in, bytes_out, dropped; /* since the start */
    uint64_t kept, kept_bytes;        /* now: solutions that requests keep */
    uint64_t contracted;              /* since the start */
    uint64_t denied, refused;         /* messages without the role; connections with unknown keys */
    uint64_t bytes_local;             /* part of bytes_in and bytes_out: through shared memory */
  } counters;
  uint64_t memory_used, memory_limit; /* for uploads and results, bytes */
  /* saturated: seconds since the start in which RHS waited for slots. Of them, in slot-seconds:
   * slots in the solver, slots whose source or solution is on the way, and empty slots. NaN: not
   * known. */
  struct {
    double saturated, solving, moving, idle;
  } occupancy;
  char memory_by[256]; /* what sets memory_limit: a setting, the path of a limit, a variable of
                          Slurm; "": not known */
  char set_aside[512]; /* folder with saved state that could not be restored; "": there is none */
  char trouble[512];   /* why the daemon takes no new work although its engine runs; "": it does */
  uint64_t eigen_used, eigen_limit; /* host memory of eigenvectors that setups keep; 0: not known */
  /* The engines of the setup, where it has several; `engine` has the sums of their numbers, and the
   * texts of one that serves. */
  uint32_t replicas; /* 0: it has one engine */
  quark_replica_t replica[QUARK_REPLICAS];
} quark_report_t;

QUARK_API quark_code_t quark_status(quark_connection_t *conn, quark_report_t *report,
                                    quark_error_t *err);

enum { QUARK_SLOTS = 146, QUARK_USERS = 256 };

/* An RHS that is being solved, or a contraction. Texts are UTF-8 without control characters. */
typedef struct quark_slot {
  bool contraction; /* has no slot, iterations, residual and tol */
  uint32_t slot;
  char setup[72];
  char job[48], user[72]; /* job: first digits of the client id, and the request, as in the log */
  uint32_t rhs;
  uint64_t iterations;
  double residual, tol; /* relative; residual: the solver's estimate, at first 1; tol 0: none */
  double seconds;       /* since it got the slot */
  int32_t flavour;      /* 1 or -1; 0: the action of its setup has none */
  quark_work_t work;    /* QUARK_WORK_SOLVE, or a part of the operator, without residual and tol */
} quark_slot_t;

typedef struct quark_user {
  char name[72];
  uint64_t queued, memory; /* RHS and contractions; bytes of the user's requests */
  uint32_t running;
  double work; /* applications of the operator so far, with those expected of running RHS */
} quark_user_t;

typedef struct quark_activity {
  uint32_t slots, users, users_left_out;
  quark_slot_t slot[QUARK_SLOTS];
  quark_user_t user[QUARK_USERS]; /* sorted by running, then by queued, the largest first */
} quark_activity_t;

/* The same as quark_status, with what runs and waits at this moment. */
QUARK_API quark_code_t quark_activity(quark_connection_t *conn, quark_report_t *report,
                                      quark_activity_t *activity, quark_error_t *err);

/* ---- setups of the daemon; all calls but quark_setups need the role operate, but quark_load and
 * quark_drop of private setups, which users make of their own links ---- */

/* A configuration and an operator, loaded in addition to those that are there. Members that are not
 * set take the values that quarkd was started with; but if `action` is set, so must be all its
 * parameters that have no default. Texts are borrowed until quark_load returns. */
typedef struct quark_load {
  const char *name;
  /* Path below one of the daemon's roots, or builtin:...; "field:NUMBER", the number of a
   * quark_field_open of this connection, or "digest:" and the 16 hexadecimal digits of links that
   * this user has sent or that a public setup has: the setup is private to the user then, needs the
   * role submit only, and cannot be the default. NULL: not set */
  const char *gauge;
  uint32_t dims[4];     /* for files that do not state them; 0: not set */
  double kappa, mass;   /* at most one of them; NaN: not set */
  double csw;           /* NaN: not set */
  const char *boundary; /* "1,1,1,-1", "0,0,0,0.5pi", "antiperiodic", ...; NULL: not set */
  const char *solver, *precision; /* NULL: not set */
  int slots;                      /* 0: the daemon chooses; negative: not set */
  bool make_default;              /* it becomes the default as soon as it is ready */
  bool ignore_checksum; /* that of the file; plaquette and unitarity are verified all the same */
  const char *action;   /* "wilson-clover", ...: quarkctl actions lists them; NULL: not set */
  /* Of the action, each key once. Kappa, mass and csw can be set here or above. */
  const quark_parameter_t *parameter;
  uint32_t nparameter; /* 0: not set */
  /* A setup of the daemon, or one that is gone but for its checkpoint, of the same lattice: its
   * null vectors are the start of multigrid, whatever its configuration and operator. NULL: none */
  const char *evolve_from;
  /* How many lowest eigenvectors of Mhat^+ Mhat are made, for each solve to begin with: 0 to 4096,
   * not with the solver mg. Negative: not set */
  int deflate;
  /* Those of this name, which a setup of the same links and operator keeps (quark_eigen.h), kind
   * normal; deflate: how many of them, the lowest ones; 0 or not set: all. Of overlap fermions:
   * those of kind gamma5 of the action wilson with the mass -M. Its sign function projects as many
   * as its `modes` say, and needs one more. NULL: they are made */
  const char *deflate_from;
  /* Engines that serve the setup, on devices of their own, 1 to 16; 0: not set. Not of a setup of
   * one's own links. */
  int replicas;
  const char *devices; /* GPUs that they use, "0,1,2"; listed twice: shared. NULL: not set */
  /* The gauge that the links are brought to, for wall sources: "none", "landau" or "coulomb", with
   * ":THETA" until theta is at most that (1e-12). Not of one's own links. NULL: not set */
  const char *fix_gauge;
} quark_load_t;

/* Sets no member. The caller must set the name. */
QUARK_API void quark_load_init(quark_load_t *load);

/* Unknown numbers are NaN or 0; unknown texts are empty. */
typedef struct quark_setup {
  char name[72], gauge[1024], solver[32];
  quark_state_t state;
  bool is_default;
  char phase[64]; /* QUARK_LOADING: the step, of which phase_done of phase_total is done */
  uint64_t phase_done, phase_total;
  quark_code_t code; /* QUARK_FAILED: why */
  char text[512];
  double kappa, csw, plaquette;
  uint32_t dims[4];
  uint64_t digest;
  uint32_t slots, slots_busy, restarts;
  uint64_t queued, open; /* RHS that wait for a slot; RHS that have not ended */
  uint64_t device_bytes;
  double idle;           /* seconds since the last RHS ended; 0: one is open */
  bool checksum_ignored; /* that of the gauge file, as the user asked */
  /* These are as in quark_report_t. */
  char action[QUARK_ACTION_TEXT], parameters[QUARK_PARAMETER_TEXT];
  uint32_t site_reals, columns;
  char origin[1024], origin_trouble[512]; /* as in quark_mg_report_t */
  char owner[72];                         /* the user whose private setup it is; "": it is public */
  double boundary[8]; /* phases of x, y, z, t as re, im; NaN: the daemon does not say */
  quark_deflation_t deflation;
} quark_setup_t;

/* Cuts `parameters` of a report or a setup in place into its pairs, which point into the text.
 * Returns how many there are; parameter gets the first `most` of them. */
QUARK_API uint32_t quark_parameters_split(char *parameters, uint32_t most,
                                          quark_parameter_t *parameter);

enum { QUARK_SETUPS = 32 };

/* The first QUARK_SETUPS of them, as far as one answer has room for them. */
QUARK_API quark_code_t quark_setups(quark_connection_t *conn, quark_setup_t setup[QUARK_SETUPS],
                                    uint32_t *count, quark_error_t *err);
/* All of them, asked for until there are no more: the first `room` into setup; *count: how many
 * there are, which may be more. Those that come or go meanwhile may be missed or told twice. */
QUARK_API quark_code_t quark_setup_list(quark_connection_t *conn, quark_setup_t *setup,
                                        uint32_t room, uint32_t *count, quark_error_t *err);

/* Makes the daemon begin to load a setup, and returns; quark_setups tells how it goes. The same
 * load again does nothing. Errors: QUARK_BAD_ARGUMENT, QUARK_NOT_FOUND (no such file below the
 * roots), QUARK_BUSY (the table of setups is full and none is idle), QUARK_DENIED, ...
 * QUARK_UNSUPPORTED: an action, parameters, evolve_from, deflate or deflate_from for a daemon that
 * is too old for them. It was not asked, because it would ignore them. */
QUARK_API quark_code_t quark_load(quark_connection_t *conn, const quark_load_t *load,
                                  quark_error_t *err);
/* Makes the daemon drop a setup, and returns. The setup takes no new requests and goes when its
 * open ones have ended; now: they are cancelled. The default cannot be dropped. */
QUARK_API quark_code_t quark_drop(quark_connection_t *conn, const char *name, bool now,
                                  quark_error_t *err);
/* Makes a setup that is ready the default: it serves requests that name no setup. */
QUARK_API quark_code_t quark_make_default(quark_connection_t *conn, const char *name,
                                          quark_error_t *err);

/* Ends the daemon: at once, or, if now is false, when it has finished all accepted requests. */
QUARK_API quark_code_t quark_shutdown(quark_connection_t *conn, bool now, quark_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
