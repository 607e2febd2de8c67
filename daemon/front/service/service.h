/*
 * service.h: the requests of all clients, the setups and engines that serve them, and what of both
 * outlives the front. One thread owns everything here; server.c makes it.
 */
#ifndef QK_FRONT_SERVICE_H
#define QK_FRONT_SERVICE_H

#include "daemon/base/room.h"
#include "daemon/front/engines/setup.h"
#include "daemon/front/host/loop.h"
#include "daemon/front/job/kept.h"
#include "daemon/front/job/session.h"
#include "daemon/front/measure/stats.h"
#include "daemon/front/state/spill.h"
#include "daemon/front/storage/aside.h"
#include "daemon/front/storage/file_io.h"

typedef struct qk_counters {
  uint64_t accepted, rejected, converged, failed, cancelled, lost;
  uint64_t contracted; /* contractions, and requests of eigenvectors */
  uint64_t fields;     /* that were taken */
  uint64_t redone;     /* put back into the queue when an engine was lost */
  uint64_t iterations, applications, bytes_in, bytes_out, dropped;
  uint64_t denied;      /* messages over the role of their sender */
  uint64_t refused;     /* connections whose key is not authorised */
  uint64_t bytes_local; /* of bytes_in and bytes_out */
} qk_counters_t;

/* The daemon's own end, as engines bring it about. */
typedef struct qk_life {
  void *arg;
  /* It leaves because of an error: clients are told this. */
  void (*fail)(void *arg, int exit_code, qk_status_t status, const char *text);
  /* It is stopping, and no engine is left. */
  void (*engines_stopped)(void *arg);
} qk_life_t;

/* Uploads that are to be in the spool and are not there yet (upload.h), in the order of their
 * coming. */
enum {
  QK_UNSAVED_DETACHED, /* nobody can send them again: they go first */
  QK_UNSAVED_OTHERS,
  QK_UNSAVED_WRITING,
  QK_UNSAVED_FAILED, /* they wait for spool_at */
  QK_UNSAVED_LISTS
};

typedef struct qk_service {
  qk_settings_t *settings;
  qk_loop_t *loop; /* NULL: there is none yet */
  qk_sessions_t sessions;
  qk_link_t orphans; /* jobs without a session, waiting for their slots and holders */
  qk_link_t leaving; /* jobs of which all that is open ends, in parts */
  qk_sched_t sched;
  qk_budget_t budget;
  char memory_by[QK_ROOM_PATH]; /* what sets its limit */
  int64_t eigen_limit;          /* of host memory of eigenvectors (eigen.h) */
  qk_room_t room;               /* what there was at room_at, seconds of the loop's clock */
  double room_at;
  qk_setup_t *setup[QK_SETUPS_MAX]; /* by index; NULL: free */
  qk_setup_t *primary;              /* of them the one that requests without a name are for */
  qk_setup_t *depot;                /* stands for fields as the setup that they are for; fields.h */
  qk_link_t fields;                 /* jobs of fields, in the order of their coming */
  int setups;                       /* made so far */
  qk_supervisor_site_t site;        /* what engines have in common */
  const qk_supervisor_events_t *engine_events; /* of all setups */
  qk_shm_space_t space;
  qk_spool_t *spool; /* NULL without --state, so is the journal */
  int64_t promised;  /* bytes that accepted uploads will still take of it */
  qk_link_t unsaved[QK_UNSAVED_LISTS];
  char spool_trouble[QK_TEXT_MAX]; /* --spool all: why uploads cannot be written there; "": they
                                      can, or nobody knows better (upload.h) */
  double spool_remind_at;
  qk_link_t unsynced; /* right-hand sides in the spool that are solved once the journal's disk has
                         that (--spool all), in the order of their changes */
  double spool_at; /* when uploads that could not be spooled are tried again; 0: there are none */
  qk_journal_t *journal;
  qk_spill_t *spill;      /* likewise */
  qk_aside_t aside;       /* nothing without --state */
  int lock, journal_lock; /* of the state folder, and of that of its journal; -1: none */
  qk_file_io_t *files;
  qk_counters_t count;
  qk_jobs_t jobs;
  qk_stats_t stats;
  double started;
  double ends;           /* when the walltime does; INFINITY: it does not */
  double resumed;        /* when it last went on after more than a second */
  double waited, looked; /* for how long the journal has waited for its disk; when that was last
                            looked at, of qk_loop_awake */
  double stood, lenient_until; /* for how long clients could not come in all; until then nothing
                                  expires of what they could not come for */
  bool draining, stopping;
  const qk_job_events_t *events;
  const qk_life_t *life;
} qk_service_t;

static inline double qk_service_now(const qk_service_t *service) {
  return qk_loop_seconds(service->loop);
}
/* Of the clock by which clients are silent: qk_loop_awake, but for what the journal has waited for
 * its disk, when they wait for answers. */
static inline double qk_service_awake(const qk_service_t *service) {
  return qk_loop_awake(service->loop) - service->waited;
}
/* Seconds until the walltime ends; INFINITY where there is none. */
static inline double qk_service_left(const qk_service_t *service) {
  return service->ends - qk_service_now(service);
}

#endif
