#include "daemon/front/job/sched.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

/* What a user has in one queue. */
typedef struct place {
  qk_node_t node;                       /* in the turns of the queue while there are items */
  qk_tree_t items[QK_PRIORITY_MAX + 1]; /* of each rank the first, with its ring */
  qk_sched_user_t *user;
  uint32_t turn, length; /* turn: of equal work, the lower number goes first */
  double
      /* virtual time: service received, expected cost of running items, service of others during
       * absence */
      work;
} place_t;

struct qk_sched_user {
  qk_link_t all;
  place_t place[QK_SCHED_QUEUES];
  qk_sched_t *sched;
  int holds;
  double given; /* in all queues */
  qk_budget_t memory, kept;
  int64_t open, length;
  int sessions;
  char name[QK_USER_MAX + 1];
};

_Static_assert(sizeof(qk_sched_user_t) <= QK_SESSION_BYTES / 3 * 2,
               "said in the help of --max-sessions");

void qk_sched_init(qk_sched_t *sched) {
  *sched = (qk_sched_t){0};
  qk_link_init(&sched->users);
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
  user->sched = sched;
  for (int k = 0; k < QK_SCHED_QUEUES; k++) user->place[k].user = user;
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

int *qk_sched_user_sessions(qk_sched_user_t *user) {
  return &user->sessions;
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

void qk_sched_user_release(qk_sched_user_t *user) {
  if (!user || --user->holds > 0) return;
  QK_ASSERT(user->length == 0);
  qk_link_remove(&user->all);
  qk_free(user);
}

/* ---- items --------------------------------------------------------------------------------- */

static qk_sched_item_t *item_of(const qk_node_t *rank) {
  return rank ? QK_HOLDER(rank, qk_sched_item_t, rank) : NULL;
}

void qk_sched_item_init(qk_sched_item_t *item) {
  *item = (qk_sched_item_t){0};
  qk_link_init(&item->link);
}

bool qk_sched_item_waits(const qk_sched_item_t *item) {
  return item->user || !qk_link_alone(&item->link);
}

static int compare(double a, double b) {
  return (a > b) - (a < b);
}

/* The order of ranks: deadlines go first, the earliest before the others. */
static int order(const qk_node_t *x, const qk_node_t *y) {
  const qk_sched_item_t *a = item_of(x), *b = item_of(y);
  const bool urgent = a->deadline > 0;
  if (urgent != (b->deadline > 0)) return urgent ? -1 : 1;
  if (urgent && a->deadline != b->deadline) return compare(a->deadline, b->deadline);
  return compare(a->came, b->came);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static place_t *place_of(const qk_node_t *node) {
  return node ? QK_HOLDER(node, place_t, node) : NULL;
}

static int order_turns(const qk_node_t *x, const qk_node_t *y) {
  const place_t *a = place_of(x), *b = place_of(y);
  if (a->work != b->work) return compare(a->work, b->work);
  return (a->turn > b->turn) - (a->turn < b->turn);
}

/* In its place among the turns, with that work. */
static void take_place(qk_sched_queue_t *queue, place_t *place, double work) {
  if (place->node.height > 0) qk_tree_remove(&queue->turns, &place->node);
  place->work = work;
  qk_tree_add(&queue->turns, &place->node, order_turns);
}

/* Whether they are of the same kind: right-hand sides, or contractions. */
static bool alike(int a, int b) {
  return (a < QK_SETUPS_MAX) == (b < QK_SETUPS_MAX);
}

/* What a user was given by one queue counts where it waits in others of the kind, too. */
static void charge_others(qk_sched_user_t *user, int k, double cost) {
  for (int i = 0; i < QK_SCHED_QUEUES; i++) {
    place_t *place = &user->place[i];
    if (i != k && place->length > 0 && alike(i, k))
      take_place(&user->sched->queue[i], place, place->work + cost);
  }
}

/* Behind all of equal work. */
static void go_last(qk_sched_queue_t *queue, place_t *place, double work) {
  if (place->node.height > 0) qk_tree_remove(&queue->turns, &place->node);
  place->turn = ++queue->turn;
  take_place(queue, place, work);
}

void qk_sched_push(qk_sched_t *sched, qk_sched_user_t *user, qk_sched_item_t *item) {
  QK_ASSERT(!qk_sched_item_waits(item));
  QK_ASSERT(item->priority >= 0 && item->priority <= QK_PRIORITY_MAX);
  QK_ASSERT(item->index >= 0 && item->index < QK_SCHED_QUEUES);
  qk_sched_queue_t *queue = &sched->queue[item->index];
  place_t *place = &user->place[item->index];
  item->user = user;
  qk_sched_item_t *alike = item_of(qk_tree_add(&place->items[item->priority], &item->rank, order));
  if (alike) qk_list_append(&alike->link, &item->link); /* the last of the ring */
  sched->length++;
  queue->length++;
  user->length++;
  if (place->length++ > 0) return;
  go_last(queue, place, place->work < queue->level ? queue->level : place->work);
}

/* The next item of a user, by standing; NULL: there is none. */
static qk_sched_item_t *best_of(const place_t *place, double now) {
  qk_sched_item_t *best = NULL;
  double most = 0;
  for (int p = QK_PRIORITY_MAX; p >= 0; p--) {
    qk_sched_item_t *item = item_of(qk_tree_first(&place->items[p]));
    if (!item) continue;
    const double standing = p + (now - item->since) / QK_SCHED_AGE;
    if (best && standing <= most) continue;
    best = item;
    most = standing;
  }
  return best;
}

/* Whose turn it is; NULL: nobody's. */
static place_t *turn(const qk_sched_queue_t *queue) {
  return place_of(qk_tree_first(&queue->turns));
}

qk_sched_item_t *qk_sched_first(const qk_sched_t *sched, int queue, double now) {
  const place_t *place = turn(&sched->queue[queue]);
  return place ? best_of(place, now) : NULL;
}

qk_sched_item_t *qk_sched_pop(qk_sched_t *sched, int k, double now) {
  qk_sched_queue_t *queue = &sched->queue[k];
  place_t *place = turn(queue);
  if (!place) return NULL;
  qk_sched_item_t *item = best_of(place, now);
  if (queue->level < place->work) queue->level = place->work;
  place->user->given += item->cost;
  go_last(queue, place, place->work + item->cost);
  charge_others(place->user, k, item->cost);
  qk_sched_remove(sched, item);
  return item;
}

void qk_sched_remove(qk_sched_t *sched, qk_sched_item_t *item) {
  if (!item->user) return;
  place_t *place = &item->user->place[item->index];
  qk_tree_t *items = &place->items[item->priority];
  if (item->rank.height > 0) {
    if (qk_link_alone(&item->link))
      qk_tree_remove(items, &item->rank);
    else
      qk_tree_replace(items, &item->rank, &QK_HOLDER(item->link.next, qk_sched_item_t, link)->rank);
  }
  qk_link_remove(&item->link);
  sched->length--;
  sched->queue[item->index].length--;
  item->user->length--;
  item->user = NULL;
  if (--place->length == 0) qk_tree_remove(&sched->queue[item->index].turns, &place->node);
}

void qk_sched_settle(qk_sched_user_t *user, const qk_sched_item_t *item, double cost) {
  place_t *place = &user->place[item->index];
  const double work = place->work + cost - item->cost;
  if (place->node.height > 0)
    take_place(&user->sched->queue[item->index], place, work);
  else
    place->work = work;
  charge_others(user, item->index, cost - item->cost);
  user->given += cost - item->cost;
}
