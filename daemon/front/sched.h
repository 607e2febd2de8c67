/*
 * sched.h: which right-hand side gets the next free slot. Users take turns, one right-hand side
 * each; a user's own come first in, first out. Pure policy: no clock, no I/O.
 *
 * A user exists while somebody holds it, so that a push cannot fail. Items are links in the
 * caller's structs, queued at most once.
 */
#ifndef QK_FRONT_SCHED_H
#define QK_FRONT_SCHED_H

#include <stdint.h>

#include "daemon/front/budget.h"
#include "daemon/front/list.h"

typedef struct qk_sched_user qk_sched_user_t;

typedef struct qk_sched {
  qk_link_t users; /* all */
  qk_link_t ring;  /* those whose turn comes; some may have become empty */
  int64_t length;  /* items queued */
} qk_sched_t;

void qk_sched_init(qk_sched_t *sched);

/* Finds or makes the user of that name (copied). Errors: QK_NO_MEMORY. */
qk_status_t qk_sched_user_hold(qk_sched_t *sched, const char *name, qk_sched_user_t **user);
/* One more hold on the same user. */
void qk_sched_user_share(qk_sched_user_t *user);
/* NULL-safe. The last release needs the user's queue to be empty. */
void qk_sched_user_release(qk_sched_user_t *user);
/* What requests of this user keep by handle; the limit is the caller's to set. */
qk_budget_t *qk_sched_user_kept(qk_sched_user_t *user);

void qk_sched_push(qk_sched_t *sched, qk_sched_user_t *user, qk_link_t *item);
/* What pop would take; NULL where nothing is queued. */
qk_link_t *qk_sched_first(qk_sched_t *sched);
/* NULL where nothing is queued. */
qk_link_t *qk_sched_pop(qk_sched_t *sched);
/* No effect on an item that is not queued. */
void qk_sched_remove(qk_sched_t *sched, qk_link_t *item);

#endif
