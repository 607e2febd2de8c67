/*
 * supervisor.h: supervises one engine: starts the process, sends it the setup, watches it, and
 * restarts it if it is lost. PROTOCOL.md, section 11.
 *
 *   DOWN --start--> STARTING --HELLO--> LOADING --READY--> READY
 *     ^________________|___________________|_________________|   lost: ended, bad message, silent
 *   LOADING --LOAD_FAILED--> REFUSED, until it is stopped or lost
 *   READY, REFUSED --handed over--> LOADING   (in place: of another setup)
 *   DOWN --take over--> LOADING --HELLO, READY--> READY   (ADOPT: of an earlier front)
 *   any --stop--> STOPPING --> STOPPED
 *
 * A new process starts only after the old one has been waited for, after a pause that doubles from
 * 0.2 s to 30 s while no engine becomes ready. All calls are made from the loop's thread. Events
 * come from the loop and from qk_supervisor_tick; `stopped` also comes from qk_supervisor_stop
 * itself if nothing runs.
 */
#ifndef QK_FRONT_SUPERVISOR_H
#define QK_FRONT_SUPERVISOR_H

#include "daemon/front/engines/adopt.h"
#include "daemon/front/engines/engine_encode.h"
#include "daemon/front/engines/engine_info.h"
#include "daemon/front/host/loop.h"
#include "daemon/front/job/job.h"
#include "daemon/front/settings/settings.h"
#include "proto/engine.pb-c.h"
#include "proto/fill_hint.h"

typedef enum qk_supervisor_state {
  QK_SUPERVISOR_DOWN,
  QK_SUPERVISOR_STARTING,
  QK_SUPERVISOR_LOADING,
  QK_SUPERVISOR_READY,
  QK_SUPERVISOR_REFUSED,
  QK_SUPERVISOR_STOPPING,
  QK_SUPERVISOR_STOPPED
} qk_supervisor_state_t;

typedef struct qk_supervisor_events {
  void (*ready)(void *arg);
  void (*refused)(void *arg, qk_status_t status, const char *text);
  void (*progress)(void *arg, const Quark__Engine__FillProgress *progress);
  void (*done)(void *arg, const Quark__Engine__FillDone *done);
  void (*multigrid)(void *arg, const Quark__Engine__MultigridNews *news);
  void (*contracted)(void *arg, const Quark__Engine__Contracted *contracted);
  void (*eigen_progress)(void *arg, const Quark__Engine__EigenProgress *progress);
  void (*eigen_done)(void *arg, const Quark__Engine__EigenDone *done);
  /* The engine is lost, with all that was in flight. failures: consecutive engines, with this
   * one, that did not become ready. */
  void (*lost)(void *arg, const char *why, int failures);
  void (*stopped)(void *arg);
} qk_supervisor_events_t;

typedef struct qk_supervisor qk_supervisor_t;

/* Where an engine is started; borrowed. */
typedef struct qk_supervisor_site {
  qk_loop_t *loop;
  void *zmq;
  const char *program; /* path of quark-engine */
  const char *dir;     /* private directory for the sockets */
  const char *
      /* setup name, for the log and the name of its checkpoint; "": the daemon's own setup */
      setup;
  int replica, replicas; /* number of this engine of the setup's; how many it has; 0, 0: as 0, 1 */
  int number;            /* unique in this process; part of socket names */
  const int64_t *id;     /* of the setup in the journal, when an engine is started */
  qk_journal_t *journal; /* where the engine is recorded for the next front; NULL: not recorded */
  /* budget of uploads and results, which the engine does not use; NULL: none */
  const qk_budget_t *memory;
  const qk_engine_start_t *start; /* beside the settings, when an engine loads; NULL: nothing */
} qk_supervisor_site_t;

/* settings and events are borrowed. */
qk_status_t qk_supervisor_create(const qk_supervisor_site_t *site, const qk_settings_t *settings,
                                 const qk_supervisor_events_t *events, void *arg,
                                 qk_supervisor_t **supervisor, qk_err_t *err);
void qk_supervisor_destroy(qk_supervisor_t *supervisor); /* NULL-safe */

/* Call before the first tick: adopts the engine that the previous front has left for this setup,
 * or ends it if it differs from the one that would be started now. A new engine starts only
 * after its end. */
void qk_supervisor_take_over(qk_supervisor_t *supervisor, const qk_adopted_t *adopted);

qk_supervisor_state_t qk_supervisor_state(const qk_supervisor_t *supervisor);
const qk_engine_info_t *qk_supervisor_info(const qk_supervisor_t *supervisor);
int qk_supervisor_restarts(const qk_supervisor_t *supervisor);
/* Consecutive engines that did not become ready. */
int qk_supervisor_failures(const qk_supervisor_t *supervisor);
/* it adopted its engine from the previous front */
bool qk_supervisor_adopted(const qk_supervisor_t *supervisor);
/* True if the engine was lost because it did not start in start-timeout. */
bool qk_supervisor_late(const qk_supervisor_t *supervisor);
const char *
qk_supervisor_last_error(const qk_supervisor_t *supervisor); /* "" where there was none */

/* True while the engine writes a checkpoint. */
bool qk_supervisor_saving(const qk_supervisor_t *supervisor);

/* To be called a few times a second: starts, pings, times out. */
void qk_supervisor_tick(qk_supervisor_t *supervisor, double now);
void qk_supervisor_stop(qk_supervisor_t *supervisor, double now); /* answered by stopped() */

/* While it is held no engine is started; one that runs goes on. writes: of several replicas it is
 * the one that writes the files that they share, if it loads now. */
void qk_supervisor_hold(qk_supervisor_t *supervisor, bool held, bool writes);
/* Where its engine keeps multigrid; "": nowhere. */
const char *qk_supervisor_checkpoint(const qk_supervisor_t *supervisor);
/* Only if READY and nothing is in flight: it is not used. Then as after LOAD_FAILED. */
void qk_supervisor_refuse(qk_supervisor_t *supervisor, const char *why);
/* Only if REFUSED: sends the same LOAD once more. */
void qk_supervisor_load_again(qk_supervisor_t *supervisor);

/* Whether it could load another setup now: no engine runs, or one that is not busy, and which
 * writes no checkpoint. */
bool qk_supervisor_is_free(const qk_supervisor_t *supervisor);
/* Only if it is free, and nothing is in flight: the engine, with its process, is for the setup of
 * `to` from now on, and loads that. `to` has not been ticked yet; it is freed, and the supervisor
 * has its place. */
void qk_supervisor_hand_over(qk_supervisor_t *supervisor, qk_supervisor_t *to);

/* Only if READY. False: the message was not sent; nothing happened, try again later. */
bool qk_supervisor_fill(qk_supervisor_t *supervisor, uint32_t entry, uint64_t serial,
                        const qk_rhs_t *rhs, qk_fill_hint_t hint);
/* rhs: of a contraction. */
bool qk_supervisor_contract(qk_supervisor_t *supervisor, uint64_t serial, const qk_rhs_t *rhs);
/* One of engine_encode.h, which is freed; NULL: there was no memory for it. */
bool qk_supervisor_send(qk_supervisor_t *supervisor, uint8_t *message, size_t bytes);
bool qk_supervisor_cancel(qk_supervisor_t *supervisor, uint32_t entry, uint64_t serial);

#endif
