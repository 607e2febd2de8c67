#include "daemon/front/sched.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "proto/limits.h"

struct qk_sched_user {
  qk_link_t all, ring, items;
  int holds;
  qk_budget_t kept;
  char name[QK_USER_MAX + 1];
};

void qk_sched_init(qk_sched_t *sched) {
  qk_link_init(&sched->users);
  qk_link_init(&sched->ring);
  sched->length = 0;
}

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
  qk_link_init(&user->items);
  qk_list_append(&sched->users, &user->all);
  user->holds = 1;
  *out = user;
  return QK_OK;
}

void qk_sched_user_share(qk_sched_user_t *user) {
  user->holds++;
}

qk_budget_t *qk_sched_user_kept(qk_sched_user_t *user) {
  return &user->kept;
}

void qk_sched_user_release(qk_sched_user_t *user) {
  if (!user || --user->holds > 0) return;
  QK_ASSERT(qk_link_alone(&user->items));
  qk_link_remove(&user->all);
  qk_link_remove(&user->ring);
  qk_free(user);
}

void qk_sched_push(qk_sched_t *sched, qk_sched_user_t *user, qk_link_t *item) {
  QK_ASSERT(qk_link_alone(item));
  qk_list_append(&user->items, item);
  sched->length++;
  if (qk_link_alone(&user->ring)) qk_list_append(&sched->ring, &user->ring);
}

/* Whose turn it is; NULL: nobody's. */
static qk_sched_user_t *turn(qk_sched_t *sched) {
  while (!qk_link_alone(&sched->ring)) {
    qk_sched_user_t *user = QK_HOLDER(sched->ring.next, qk_sched_user_t, ring);
    if (!qk_link_alone(&user->items)) return user;
    qk_link_remove(&user->ring);
  }
  return NULL;
}

qk_link_t *qk_sched_first(qk_sched_t *sched) {
  qk_sched_user_t *user = turn(sched);
  return user ? user->items.next : NULL;
}

qk_link_t *qk_sched_pop(qk_sched_t *sched) {
  qk_sched_user_t *user = turn(sched);
  if (!user) return NULL;
  qk_link_t *item = user->items.next;
  qk_sched_remove(sched, item);
  qk_list_append(&sched->ring, &user->ring);
  return item;
}

void qk_sched_remove(qk_sched_t *sched, qk_link_t *item) {
  if (qk_link_alone(item)) return;
  qk_link_remove(item);
  sched->length--;
}
