/*
 * replica.h: one of the engines that serve a setup, with its in-flight entries and measurements; a
 * setup has one of them, or several (--replicas). The right-hand sides of a setup wait in one
 * queue, and each goes to the replica that qk_replica_choose names. An engine that is lost gives
 * back what it had in flight, and is started again while the others serve.
 *
 * Entries are numbered over all replicas of a setup: of replica r they begin at
 * r * QK_INFLIGHT_MAX. Engines know only their own.
 */
#ifndef QK_FRONT_REPLICA_H
#define QK_FRONT_REPLICA_H

#include "daemon/front/engines/supervisor.h"
#include "daemon/front/measure/history.h"
#include "daemon/front/measure/occupancy.h"

struct qk_setup;

/* Entries of an engine: those of right-hand sides in flight, one for a contraction, and one for
 * eigenvectors. */
enum { QK_CONTRACT_ENTRY = QK_INFLIGHT_MAX, QK_EIGEN_ENTRY, QK_ENTRIES };

/* The right-hand side of an in-flight entry; rhs NULL: the entry is free. */
typedef struct qk_inflight_entry {
  qk_rhs_t *rhs;
  uint64_t serial;
  qk_occupancy_mark_t filled;
} qk_inflight_entry_t;

typedef struct qk_replica {
  struct qk_setup *setup;
  int number; /* 0 .. replicas of its setup - 1 */
  qk_supervisor_t *supervisor;
  bool begun;      /* its engine may start, or one was adopted */
  bool waits;      /* for the files of another one */
  double again_at; /* it was refused while others serve: LOAD is sent again then; 0: it was not */
  uint64_t refreshed; /* number of the last refresh of multigrid that its hierarchy has */
  uint64_t ordered;   /* of the last that its engine was told to do; 0: none */
  uint64_t solved;    /* right-hand sides that have ended in it */
  qk_inflight_entry_t inflight[QK_ENTRIES];
  qk_curve_t curve[QK_INFLIGHT_MAX]; /* of in-flight right-hand sides */
  qk_occupancy_t occupancy;
  bool batch_begun;               /* of fixed batches: it takes no more before this one has ended */
  double busy_since;              /* time when the first entry was filled after all were free */
  struct qk_eigen_set *returning; /* eigenvectors that its engine reads now; NULL: none */
  uint64_t returning_serial;
  Quark__EigenProgress eigen_now; /* of those that it computes */
} qk_replica_t;

bool qk_replica_is_ready(const qk_replica_t *replica);
/* Right-hand sides in the engine; slots in use, or about to be; all entries in use, with the
 * contraction. */
int qk_replica_inflight(const qk_replica_t *replica);
int qk_replica_busy(const qk_replica_t *replica);
int qk_replica_running(const qk_replica_t *replica);

/* What the choice looks at: of one replica. */
typedef struct qk_replica_room {
  bool takes;  /* it is ready, and may have this right-hand side */
  int slots;   /* that its engine iterates on */
  int entries; /* right-hand sides that it may have in flight */
  int there;   /* that it has in flight */
} qk_replica_room_t;

/* Which replica takes the next right-hand side: the one whose slot group it completes, else the one
 * with most free slots, and where no slot is free with most free entries; of equal ones that with
 * the lowest number. -1: none has room. Pure. */
int qk_replica_choose(const qk_replica_room_t room[], int n);
/* Of `waiting` right-hand sides how many will go to replica r, as far as can be said now. With one
 * replica all of them. Pure. */
int64_t qk_replica_share(const qk_replica_room_t room[], int n, int r, int64_t waiting);

#endif
