/*
 * setup.h: a named setup: its configuration and operator, the engines that have it loaded
 * (replica.h), and measurements. Setups share only the front: each has engine processes and queues
 * in the scheduler of its own.
 *
 * Reference-counted by jobs. A setup is freed when it is listed in no table (service.h) and nobody
 * holds it, after its engines, so that results outlive them.
 */
#ifndef QK_FRONT_SETUP_H
#define QK_FRONT_SETUP_H

#include "daemon/front/engines/replica.h"
#include "daemon/front/measure/pace.h"
#include "daemon/front/settings/operator.h"

struct qk_service;

/* Refreshes of multigrid in all replicas (service/setups/setups_refresh.c). */
typedef struct qk_refresh_state {
  uint64_t number; /* of the last; 0: there was none */
  uint32_t kind;   /* of it, as in REFRESH; 0: not known, it was ordered by the front before */
  int writer;      /* replica that was told to write the checkpoint; -1: none yet */
  uint64_t saved;  /* the one that the checkpoint has */
} qk_refresh_state_t;

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
  char fix_gauge[QK_FIX_TEXT_MAX + 1];      /* of settings.fix; "": none */
  char owner[QK_USER_MAX + 1];       /* the user whose private setup it is; "": it is public */
  char owner_shown[QK_USER_MAX + 1]; /* the same for others to read */
  bool has_wanted;                   /* what digest the links must have is known */
  uint64_t wanted;
  qk_job_t *links;  /* the field that it is made of, held; NULL: of a file */
  char memory[160]; /* where the engine finds that; "": of a file */
  qk_job_t *term;   /* likewise the clover term; NULL: the action has none */
  char term_memory[160];
  qk_engine_start_t start; /* these, for the supervisors */
  int replicas;
  qk_replica_t *replica; /* as many; they stay where they are */
  /* What takes its place, its engine and, but for that of another name, its name, once what was
   * accepted for this one has ended: it is in no table before. NULL: none. */
  struct qk_setup *successor;
  bool started;      /* its engines may run */
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
  qk_refresh_state_t refresh;
  uint64_t serial;       /* of the last message that has one, to any of its engines */
  qk_link_t eigen;       /* its eigenvectors (service/eigen.h) */
  qk_link_t eigen_away;  /* those in its files that are of another operator */
  double cost_per_digit; /* applications per digit of recent right-hand sides */
  double open_digits;    /* digits requested by right-hand sides that have not ended */
  qk_pace_t pace;
} qk_setup_t;

#define QK_EACH_REPLICA(r, setup)                                                                  \
  for (qk_replica_t * (r) = (setup)->replica; (r) < (setup)->replica + (setup)->replicas; (r)++)

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
/* The replica that stands for all: the first that is ready, else the first that loads, else the
 * first; what its engine says of the setup; its supervisor's state. */
const qk_replica_t *qk_setup_lead(const qk_setup_t *setup);
const qk_engine_info_t *qk_setup_info(const qk_setup_t *setup);
qk_supervisor_state_t qk_setup_state(const qk_setup_t *setup);
/* Of all replicas: slots of those that are ready, or if none is of all; slots in use, or about to
 * be; all entries in use, with contractions; engines that were lost and started again. */
int qk_setup_slots(const qk_setup_t *setup);
int qk_setup_busy(const qk_setup_t *setup);
int qk_setup_running(const qk_setup_t *setup);
int qk_setup_restarts(const qk_setup_t *setup);
/* Sums over its replicas; `saturated` is their mean. */
qk_occupancy_t qk_setup_occupancy(const qk_setup_t *setup);
/* Whether all its engines are stopped; whether one of them writes a checkpoint. */
bool qk_setup_stopped(const qk_setup_t *setup);
bool qk_setup_saving(const qk_setup_t *setup);
void qk_setup_stop(qk_setup_t *setup, double now);

#endif
