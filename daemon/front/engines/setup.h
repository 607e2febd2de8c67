/*
 * setup.h: a named setup: its configuration and operator, the engine that has it loaded, the
 * engine's in-flight entries, and measurements. Setups share only the front: each has its own
 * engine process and its own queues in the scheduler.
 *
 * Reference-counted by jobs. A setup is freed when it is listed in no table (service.h) and nobody
 * holds it, after its engine, so that results outlive their engine.
 */
#ifndef QK_FRONT_SETUP_H
#define QK_FRONT_SETUP_H

#include "daemon/front/engines/supervisor.h"
#include "daemon/front/measure/history.h"
#include "daemon/front/measure/occupancy.h"
#include "daemon/front/measure/pace.h"
#include "daemon/front/settings/operator.h"

struct qk_service;

/* Entries of an engine: those of right-hand sides in flight, one for a contraction, and one for
 * eigenvectors. */
enum { QK_CONTRACT_ENTRY = QK_INFLIGHT_MAX, QK_EIGEN_ENTRY, QK_ENTRIES };

/* The right-hand side of an in-flight entry; rhs NULL: the entry is free. */
typedef struct qk_inflight_entry {
  qk_rhs_t *rhs;
  uint64_t serial;
  qk_occupancy_mark_t filled;
} qk_inflight_entry_t;

typedef struct qk_setup {
  struct qk_service *service;
  char name[QK_SETUP_NAME_MAX + 1];
  char site_name[QK_SETUP_NAME_MAX + 12]; /* for log and files: private ones have names of users */
  /* number of its slot queue in the scheduler, and index in the service's table; -1: not listed */
  int index;
  struct qk_setup *next; /* for the holder while it is not listed */
  int holds;
  int64_t id;                  /* in the journal; 0: the one that quarkd was started with */
  qk_operator_fields_t shown;  /* the operator as it was given */
  qk_settings_t settings;      /* the daemon's settings with those of this setup */
  char gauge[QK_PATH_MAX + 1]; /* memory of settings.gauge, if it is not the daemon's */
  uint8_t *load;               /* packed LOAD; NULL: it is that of the command line */
  size_t load_bytes;
  qk_shape_t shape; /* as it was loaded, by this front or the one before; zeros: never */
  uint64_t digest;  /* likewise */
  /* LOAD's evolve_from: that setup, as long as its checkpoint is waited for; its name; the
   * checkpoint. "": none, or not known. */
  struct qk_setup *source;
  char evolve_from[QK_SETUP_NAME_MAX + 1], evolve_path[QK_PATH_MAX + 1];
  char vectors[QK_PATH_MAX + 1];            /* file of those that solves begin with; "": none */
  char deflate_from[QK_EIGEN_NAME_MAX + 1]; /* memory of settings.deflate_from, likewise */
  char owner[QK_USER_MAX + 1];       /* the user whose private setup it is; "": it is public */
  char owner_shown[QK_USER_MAX + 1]; /* the same for others to read */
  bool has_wanted;                   /* what digest the links must have is known */
  uint64_t wanted;
  qk_job_t *links;  /* the field that it is made of, held; NULL: of a file */
  char memory[160]; /* where the engine finds that; "": of a file */
  qk_job_t *term;   /* likewise the clover term; NULL: the action has none */
  char term_memory[160];
  qk_engine_start_t start; /* these, for the supervisor */
  qk_supervisor_t *supervisor;
  /* What takes its place, its engine and, but for that of another name, its name, once what was
   * accepted for this one has ended: it is in no table before. NULL: none. */
  struct qk_setup *successor;
  bool started;      /* its engine may run */
  bool again;        /* it was rejected for lack of memory, and will be tried again */
  bool make_default; /* make it the default as soon as it is ready */
  bool dropping;     /* accepts nothing new; ends when no request is open */
  bool ending;       /* its engine is ending; then the setup ends */
  qk_status_t
      /* not QK_OK: rejected, or no engine starts; it stays listed until its table entry is
       * needed */
      failed;
  char text[QK_TEXT_MAX]; /* why; else what was dropped to make room for it */
  int64_t open;           /* right-hand sides that have not ended */
  double used_at;         /* when the last of them ended, or the setup was loaded */
  qk_link_t quarantined;  /* right-hand sides that were in flight when an engine was lost */
  qk_link_t waiting;      /* right-hand sides whose solutions found no shared memory */
  qk_inflight_entry_t inflight[QK_ENTRIES];
  qk_curve_t curve[QK_INFLIGHT_MAX]; /* of in-flight right-hand sides */
  qk_occupancy_t occupancy;
  uint64_t serial;
  qk_link_t eigen;                /* its eigenvectors (service/eigen.h) */
  qk_link_t eigen_away;           /* those in its files that are of another operator */
  struct qk_eigen_set *returning; /* of them those that its engine reads now; NULL: none */
  uint64_t returning_serial;
  Quark__EigenProgress eigen_now; /* of those that it computes */
  double cost_per_digit;          /* applications per digit of recent right-hand sides */
  double open_digits;             /* digits requested by right-hand sides that have not ended */
  qk_pace_t pace;
  double busy_since; /* time when the first slot was filled after all were free */
} qk_setup_t;

/* The one that its place in the table stands for. */
static inline const qk_setup_t *qk_setup_current(const qk_setup_t *setup) {
  return setup->successor ? setup->successor : setup;
}

/* The scheduler's queue for contractions and eigenvectors. */
static inline int qk_setup_contract_queue(const qk_setup_t *setup) {
  return QK_SETUPS_MAX + setup->index;
}

/* now: seconds of the loop's clock. settings are copied, their strings borrowed. Held once, by the
 * caller. QK_NO_MEMORY. */
qk_status_t qk_setup_create(struct qk_service *service, const char *name,
                            const qk_settings_t *settings, double now, qk_setup_t **setup,
                            qk_err_t *err);
/* The name for log and files of a setup of this owner; "": it is public. */
void qk_setup_site_name(const char *name, const char *owner, char site[QK_SETUP_NAME_MAX + 12]);
/* It is private to this user; NULL: public, as it is at first. */
void qk_setup_set_owner(qk_setup_t *setup, const char *owner);
/* NULL-safe, both. */
qk_setup_t *qk_setup_hold(qk_setup_t *setup);
void qk_setup_release(qk_setup_t *setup);

/* True if it accepts work, now or once its engine is back. */
bool qk_setup_serves(const qk_setup_t *setup);
/* The solver that the engine chose, once that is known. */
const char *qk_setup_solver(const qk_setup_t *setup);
/* Right-hand sides in the engine; slots in use, or about to be; all entries in use, with the
 * contraction. */
int qk_setup_inflight(const qk_setup_t *setup);
int qk_setup_busy(const qk_setup_t *setup);
int qk_setup_running(const qk_setup_t *setup);

#endif
