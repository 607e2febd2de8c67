#include "daemon/front/sched.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

struct qk_sched_user {
  qk_link_t all, ring;
  qk_link_t items[QK_PRIORITY_MAX + 1];
  int holds;
  double
      work; /* what turns go by: given, or expected of what is out, and what others were given in its absence */
  double given; /* alone what it was given */
  qk_budget_t memory, kept;
  int64_t open, length;
  char name[QK_USER_MAX + 1];
};

void qk_sched_init(qk_sched_t *sched) {
  qk_link_init(&sched->users);
  qk_link_init(&sched->ring);
  sched->length = 0;
  sched->level = 0;
}

/* ---- users --------------------------------------------------------------------------------- */

qk_status_t qk_sched_user_hold(qk_sched_t *sched, const char *name, qk_sched_user_t **out) {
  for (qk_link_t *l = sched->users.next; l != &sched->users; l = l->next) {
    qk_sched_user_t *user = QK_HOLDER(l, qk_sched_user_t, all);
    if (strcmp(user->name, name) != 0) continue;
    user->holds++;
    *out = user;
    return QK_OK;
  }
  qk_sched_user_t *user = qk_calloc(1, sizeof *user);
  if (!user) return QK_NO_MEMORY;
  QK_ASSERT(strlen(name) < sizeof user->name);
  strcpy(user->name, name);
  qk_link_init(&user->all);
  qk_link_init(&user->ring);
  for (int p = 0; p <= QK_PRIORITY_MAX; p++) qk_link_init(&user->items[p]);
  qk_list_append(&sched->users, &user->all);
  user->memory = (qk_budget_t){.what = "user-memory"};
  user->kept = (qk_budget_t){.what = "keep-memory of a user", .advice = "release kept requests"};
  user->holds = 1;
  *out = user;
  return QK_OK;
}

const char *qk_sched_user_name(const qk_sched_user_t *user) {
  return user->name;
}

void qk_sched_user_share(qk_sched_user_t *user) {
  user->holds++;
}

qk_budget_t *qk_sched_user_memory(qk_sched_user_t *user) {
  return &user->memory;
}

int64_t *qk_sched_user_open(qk_sched_user_t *user) {
  return &user->open;
}

qk_budget_t *qk_sched_user_kept(qk_sched_user_t *user) {
  return &user->kept;
}

const qk_sched_user_t *qk_sched_user_after(const qk_sched_t *sched, const qk_sched_user_t *user) {
  const qk_link_t *next = user ? user->all.next : sched->users.next;
  return next == &sched->users ? NULL : QK_HOLDER(next, qk_sched_user_t, all);
}

int64_t qk_sched_user_queued(const qk_sched_user_t *user) {
  return user->length;
}

double qk_sched_user_given(const qk_sched_user_t *user) {
  return user->given;
}

static bool waits(const qk_sched_user_t *user) {
  return user->length > 0;
}

void qk_sched_user_release(qk_sched_user_t *user) {
  if (!user || --user->holds > 0) return;
  QK_ASSERT(!waits(user));
  qk_link_remove(&user->all);
  qk_link_remove(&user->ring);
  qk_free(user);
}

/* ---- items --------------------------------------------------------------------------------- */

static qk_sched_item_t *item_of(qk_link_t *link) {
  return QK_HOLDER(link, qk_sched_item_t, link);
}

void qk_sched_item_init(qk_sched_item_t *item) {
  *item = (qk_sched_item_t){0};
  qk_link_init(&item->link);
}

/* Whether a goes before b, which came earlier. */
static bool overtakes(const qk_sched_item_t *a, const qk_sched_item_t *b) {
  return a->deadline > 0 && (b->deadline == 0 || a->deadline < b->deadline);
}

void qk_sched_push(qk_sched_t *sched, qk_sched_user_t *user, qk_sched_item_t *item) {
  QK_ASSERT(qk_link_alone(&item->link));
  QK_ASSERT(item->priority >= 0 && item->priority <= QK_PRIORITY_MAX);
  item->user = user;
  qk_link_t *list = &user->items[item->priority], *after = list->prev;
  while (after != list && overtakes(item, item_of(after))) after = after->prev;
  qk_list_append(after->next, &item->link);
  sched->length++;
  user->length++;
  if (!qk_link_alone(&user->ring)) return;
  qk_list_append(&sched->ring, &user->ring);
  if (user->work < sched->level) user->work = sched->level;
}

/* The next item of a user, or NULL. */
static qk_sched_item_t *best_of(const qk_sched_user_t *user, double now) {
  qk_sched_item_t *best = NULL;
  double most = 0;
  for (int p = QK_PRIORITY_MAX; p >= 0; p--) {
    if (qk_link_alone(&user->items[p])) continue;
    qk_sched_item_t *item = item_of(user->items[p].next);
    const double rank = p + (now - item->since) / QK_SCHED_AGE;
    if (best && rank <= most) continue;
    best = item;
    most = rank;
  }
  return best;
}

/* Whose turn it is; NULL: nobody's. */
static qk_sched_user_t *turn(const qk_sched_t *sched) {
  qk_sched_user_t *least = NULL;
  for (qk_link_t *l = sched->ring.next; l != &sched->ring; l = l->next) {
    qk_sched_user_t *user = QK_HOLDER(l, qk_sched_user_t, ring);
    if (!least || user->work < least->work) least = user;
  }
  return least;
}

qk_sched_item_t *qk_sched_first(const qk_sched_t *sched, double now) {
  const qk_sched_user_t *user = turn(sched);
  return user ? best_of(user, now) : NULL;
}

qk_sched_item_t *qk_sched_pop(qk_sched_t *sched, double now) {
  qk_sched_user_t *user = turn(sched);
  if (!user) return NULL;
  qk_sched_item_t *item = best_of(user, now);
  if (sched->level < user->work) sched->level = user->work;
  user->work += item->cost;
  user->given += item->cost;
  qk_list_append(&sched->ring, &user->ring); /* who is level goes behind the others */
  qk_sched_remove(sched, item);
  return item;
}

void qk_sched_remove(qk_sched_t *sched, qk_sched_item_t *item) {
  if (qk_link_alone(&item->link)) return;
  qk_link_remove(&item->link);
  sched->length--;
  item->user->length--;
  if (!waits(item->user)) qk_link_remove(&item->user->ring);
}

void qk_sched_settle(qk_sched_user_t *user, const qk_sched_item_t *item, double cost) {
  user->work += cost - item->cost;
  user->given += cost - item->cost;
}
