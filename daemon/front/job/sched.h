/*
 * sched.h: chooses the right-hand side that gets the next free slot.
 *
 * Users    Fair share by work: of the waiting users the one that has received the least service
 *          goes next. The cost of an item is estimated when it starts and corrected when it has
 *          ended. A user that becomes active starts at the current virtual time; idle time earns no
 *          credit. (Start-time fair queueing: P. Goyal, H. M. Vin and H. Cheng, IEEE/ACM Trans.
 *          Netw. 5 (1997) 690. Deficit round-robin has the same aim, but must know a cost before
 *          the item starts.)
 * Within   a user the highest priority goes first; the head of each priority gains one for every
 *          QK_SCHED_AGE that it has waited. Of equal priority, items with a deadline go first, the
 *          earliest deadline before the others; then requests in the order of their arrival. So
 *          one request ends and its client sends the next one while others are solved, instead of
 *          all ending together. Items of equal rank, such as the right-hand sides of one request,
 *          go in the order in which they were pushed.
 *
 * Rank     The place of an item among those of one user and priority: its deadline, then the
 *          arrival of its request. Each user has a tree of ranks for each priority, and a node of
 *          it is the ring of items that have the same rank. A rank does not change while its item
 *          is queued: what changes (counts, times, work) cannot be part of it.
 * Standing The number that is compared among the heads of a user's priorities: the priority and
 *          what age adds to it. It is computed at each pop.
 * Where    Each rule is one function of sched.c: among users turn(), among the priorities of a user
 *          best_of(), within a priority order(). Which items there are, and with which deadline,
 *          cost and arrival, is the caller's business (service/queue.c).
 *
 * Queues   There are two for each setup: right-hand sides; contractions and eigenvectors. What a
 *          user is given in a queue counts in all queues of the kind in which it waits at that
 *          time: who uses several setups at once has the share of one user in each. What was given
 *          before does not: who comes to a queue starts level with those that wait there.
 *
 * Costs    A push or removal takes O(log n) for n different ranks of a user and priority, in any
 *          order; a pop or a correction takes O(log n) for n users in the queue, for each queue
 *          that the user waits in.
 *
 * Pure policy: no clock, no I/O; the caller gives times. A user exists while somebody holds it, so
 * that a push cannot fail. Items are part of the caller's structs and are queued at most once.
 */
#ifndef QK_FRONT_SCHED_H
#define QK_FRONT_SCHED_H

#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/base/tree.h"
#include "daemon/front/job/budget.h"
#include "proto/limits.h"

#define QK_SCHED_AGE 60.0 /* seconds */
enum { QK_SCHED_QUEUES = 2 * QK_SETUPS_MAX };

typedef struct qk_sched_user qk_sched_user_t;

typedef struct qk_sched_item {
  qk_link_t link;        /* among items of equal rank; for the caller while it is not queued here */
  qk_node_t rank;        /* in the tree of ranks; of the first of these only */
  qk_sched_user_t *user; /* while it is queued; else NULL */
  int index;             /* 0 .. QK_SCHED_QUEUES - 1 */
  int priority;          /* 0 .. QK_PRIORITY_MAX */
  double since;          /* seconds: time of its arrival */
  double came;           /* seconds: arrival time of its request */
  double deadline;       /* seconds; 0: none */
  double cost;           /* expected, in any unit that is the same for all */
} qk_sched_item_t;

typedef struct qk_sched_queue {
  qk_tree_t turns; /* users with items: by their work, of equal ones who has waited longer first */
  uint32_t turn;   /* number of the last turn that was given; begins again after 2^32 */
  int64_t length;  /* items queued */
  double level;    /* virtual time: work of the user served last, before its turn */
} qk_sched_queue_t;

typedef struct qk_sched {
  qk_link_t users; /* all */
  qk_sched_queue_t queue[QK_SCHED_QUEUES];
  int64_t length; /* items queued in all queues */
} qk_sched_t;

void qk_sched_init(qk_sched_t *sched);

/* Finds or makes the user of that name (copied). Errors: QK_NO_MEMORY. */
qk_status_t qk_sched_user_hold(qk_sched_t *sched, const char *name, qk_sched_user_t **user);
/* One more hold on the same user. */
void qk_sched_user_share(qk_sched_user_t *user);
const char *qk_sched_user_name(const qk_sched_user_t *user);
/* NULL-safe. The last release needs the user's queue to be empty. */
void qk_sched_user_release(qk_sched_user_t *user);
/* Accounts of the user for the caller: memory of its requests, memory of kept solutions (the
 * caller sets both limits), its right-hand sides that have not ended, and its sessions. */
qk_budget_t *qk_sched_user_memory(qk_sched_user_t *user);
qk_budget_t *qk_sched_user_kept(qk_sched_user_t *user);
int64_t *qk_sched_user_open(qk_sched_user_t *user);
int *qk_sched_user_sessions(qk_sched_user_t *user);

/* The user after `user` in the list of all, the first after NULL; NULL: there are no more. */
const qk_sched_user_t *qk_sched_user_after(const qk_sched_t *sched, const qk_sched_user_t *user);
int64_t qk_sched_user_queued(const qk_sched_user_t *user);
/* Service received so far: measured if known, else estimated. */
double qk_sched_user_given(const qk_sched_user_t *user);

void qk_sched_item_init(qk_sched_item_t *item);
/* True if it is queued, or in a list of the caller. */
bool qk_sched_item_waits(const qk_sched_item_t *item);
void qk_sched_push(qk_sched_t *sched, qk_sched_user_t *user, qk_sched_item_t *item);
/* The item that pop would take; NULL if that queue is empty. */
qk_sched_item_t *qk_sched_first(const qk_sched_t *sched, int queue, double now);
/* NULL if that queue is empty. Charges the user with the item's cost. */
qk_sched_item_t *qk_sched_pop(qk_sched_t *sched, int queue, double now);
/* No effect on an item that is not queued. */
void qk_sched_remove(qk_sched_t *sched, qk_sched_item_t *item);
/* Corrects the charge for an item that was popped: this instead of item->cost. */
void qk_sched_settle(qk_sched_user_t *user, const qk_sched_item_t *item, double cost);

#endif
