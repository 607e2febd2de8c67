/*
 * setup.h: a named setup, which requests are for: what it is made of, the engine that has it
 * loaded, the engine's slots, and what is measured of them. Setups side by side share nothing but
 * the front: each has an engine process, and a lane of the scheduler.
 *
 * Jobs hold the setup that they are for. It goes when it is in no table (service.h) and nobody
 * holds it: after its engine, so that results outlive the engine they came from.
 */
#ifndef QK_FRONT_SETUP_H
#define QK_FRONT_SETUP_H

#include "daemon/front/engines/worker.h"
#include "daemon/front/job/history.h"
#include "daemon/front/job/occupancy.h"
#include "daemon/front/job/pace.h"

struct qk_service;

/* Places in an engine: those of right-hand sides in flight, and the one of the contraction that it
 * works on. */
enum { QK_CONTRACT_PLACE = QK_INFLIGHT_MAX, QK_PLACES };

/* The right-hand side in a slot; rhs NULL: the slot is free. */
typedef struct qk_slot_use {
  qk_rhs_t *rhs;
  uint64_t ticket;
  qk_occupancy_mark_t filled;
} qk_slot_use_t;

typedef struct qk_setup {
  struct qk_service *service;
  char name[QK_SETUP_NAME_MAX + 1];
  int lane; /* of the scheduler for slots, and place in the service's table; -1: in none */
  struct qk_setup *next; /* for whoever holds it while it is in none */
  int holds;
  int64_t id;                  /* in the journal; 0: the one that quarkd was started with */
  qk_settings_t settings;      /* the daemon's, with what is special to this setup */
  char gauge[QK_PATH_MAX + 1]; /* of settings, where it is no other's */
  uint8_t *load;               /* packed LOAD; NULL: it is that of the command line */
  size_t load_bytes;
  uint32_t dims[4]; /* as it was loaded, by this front or the one before; zeros: never */
  uint64_t digest;  /* likewise */
  qk_worker_t *worker;
  bool started;      /* the engine may run */
  bool again;        /* it was refused for want of memory, and will try again */
  bool make_default; /* as soon as it is ready */
  bool dropping;     /* takes nothing new; goes when nothing is open */
  bool ending;       /* its engine leaves; then it goes */
  qk_status_t
      /* not QK_OK: rejected, or no engine starts; it stays listed until its table entry is
       * needed */
      failed;
  char text[QK_TEXT_MAX]; /* why */
  int64_t open;           /* right-hand sides that have not ended */
  double used_at;         /* when the last of them ended, or it was loaded */
  qk_link_t quarantined;  /* right-hand sides that were in slots when an engine was lost */
  qk_link_t waiting;      /* those that found no shared memory for their solutions */
  qk_slot_use_t slot[QK_PLACES];
  qk_curve_t curve[QK_INFLIGHT_MAX]; /* of what is in the slots */
  qk_occupancy_t occupancy;
  uint64_t ticket;
  double cost_per_digit; /* applications that right-hand sides took lately */
  double open_digits;    /* that right-hand sides which have not ended were asked for */
  qk_pace_t pace;
  double busy_since; /* when the first slot was filled after none was in use */
} qk_setup_t;

/* The scheduler's lane for contractions. */
static inline int qk_setup_contract_lane(const qk_setup_t *setup) {
  return QK_SETUPS_MAX + setup->lane;
}

/* now: seconds of the loop's clock. settings are copied, their strings borrowed. Held once, by the
 * caller. QK_NO_MEMORY. */
qk_status_t qk_setup_create(struct qk_service *service, const char *name,
                            const qk_settings_t *settings, double now, qk_setup_t **setup,
                            qk_err_t *err);
/* NULL-safe, both. */
qk_setup_t *qk_setup_hold(qk_setup_t *setup);
void qk_setup_release(qk_setup_t *setup);

/* Whether it takes work, now or once its engine is back. */
bool qk_setup_serves(const qk_setup_t *setup);
/* As the engine chose it, once that is known. */
const char *qk_setup_solver(const qk_setup_t *setup);
/* Right-hand sides that the engine has; slots that are solved in, or about to be; what it has,
 * with the contraction. */
int qk_setup_inflight(const qk_setup_t *setup);
int qk_setup_busy(const qk_setup_t *setup);
int qk_setup_running(const qk_setup_t *setup);

#endif
