/* The policy by itself: who gets the next slot. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/job/sched.h"

typedef struct item {
  qk_sched_item_t queue;
  int user, number;
  bool queued;
  double cost; /* in truth */
} item_t;

static item_t *next_at(qk_sched_t *s, double now) {
  qk_sched_item_t *first = qk_sched_first(s, 0, now), *got = qk_sched_pop(s, 0, now);
  cr_assert_eq(first, got, "first is what pop takes");
  return got ? QK_HOLDER(got, item_t, queue) : NULL;
}

static item_t *next(qk_sched_t *s) {
  return next_at(s, 0);
}

static void hold_one(qk_sched_t *s, qk_sched_user_t **a) {
  qk_sched_init(s);
  qk_sched_user_hold(s, "a", a);
}

static void hold_two(qk_sched_t *s, qk_sched_user_t **a, qk_sched_user_t **b) {
  hold_one(s, a);
  qk_sched_user_hold(s, "b", b);
}

/* What still waits goes. */
static void release_two(qk_sched_t *s, qk_sched_user_t *a, qk_sched_user_t *b) {
  while (next(s)) continue;
  qk_sched_user_release(a);
  qk_sched_user_release(b);
}

static void init(item_t *item, int user, int number) {
  *item = (item_t){.user = user, .number = number, .cost = 1};
  qk_sched_item_init(&item->queue);
  item->queue.cost = 1;
}

static void push(qk_sched_t *s, qk_sched_user_t *u, item_t *item, int user, int number) {
  init(item, user, number);
  qk_sched_push(s, u, &item->queue);
}

Test(sched, keeps_fifo_within_a_user) {
  qk_sched_t s;
  qk_sched_user_t *u;
  item_t item[20];
  qk_sched_init(&s);
  cr_assert_eq(qk_sched_user_hold(&s, "ada", &u), QK_OK);
  for (int i = 0; i < 20; i++) push(&s, u, &item[i], 0, i);
  for (int i = 0; i < 20; i++) cr_assert_eq(next(&s)->number, i);
  cr_assert_null(next(&s));
  qk_sched_user_release(u);
}

Test(sched, users_take_turns_where_work_is_equal) {
  qk_sched_t s;
  qk_sched_user_t *a, *b, *c;
  item_t item[100];
  hold_two(&s, &a, &b);
  qk_sched_user_hold(&s, "c", &c);
  for (int i = 0; i < 90; i++) push(&s, a, &item[i], 0, i); /* a came first, with much work */
  for (int i = 0; i < 5; i++) push(&s, b, &item[90 + i], 1, i);
  for (int i = 0; i < 5; i++) push(&s, c, &item[95 + i], 2, i);
  for (int i = 0; i < 15; i++) cr_assert_eq(next(&s)->user, i % 3, "at %d", i);
  for (int i = 5; i < 90; i++) cr_assert_eq(next(&s)->number, i);
  cr_assert_eq(s.length, 0);
  qk_sched_user_release(a);
  qk_sched_user_release(b);
  qk_sched_user_release(c);
}

Test(sched, a_thousand_of_one_user_do_not_delay_one_of_another) {
  enum { MANY = 1000, SLOTS = 16 };
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  static item_t item[MANY + 1];
  hold_two(&s, &a, &b);
  for (int i = 0; i < MANY; i++) push(&s, a, &item[i], 0, i);
  for (int i = 0; i < 5 * SLOTS; i++) cr_assert_eq(next(&s)->user, 0);
  push(&s, b, &item[MANY], 1, 0);
  cr_assert_eq(next(&s)->user, 1, "the next free slot is b's");
  release_two(&s, a, b);
}

/* a's items cost ten times what b's do, and both are expected to cost the same at first. */
Test(sched, shares_work_and_not_requests) {
  enum { MANY = 2000 };
  qk_sched_t s;
  qk_sched_user_t *u[2];
  static item_t item[2][MANY];
  double work[2] = {0};
  qk_sched_init(&s);
  qk_sched_user_hold(&s, "a", &u[0]);
  qk_sched_user_hold(&s, "b", &u[1]);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < MANY; i++) push(&s, u[k], &item[k][i], k, i);
  for (int i = 0; i < 1100; i++) {
    item_t *x = next(&s);
    double cost = x->user == 0 ? 10 : 1;
    qk_sched_settle(u[x->user], &x->queue, cost);
    work[x->user] += cost;
  }
  cr_expect_float_eq(work[0], work[1], 11, "%g and %g", work[0], work[1]);
  while (next(&s)) continue;
  for (int k = 0; k < 2; k++) qk_sched_user_release(u[k]);
}

static void push_to(qk_sched_t *s, qk_sched_user_t *u, item_t *item, int user, int queue) {
  init(item, user, 0);
  item->queue.index = queue;
  qk_sched_push(s, u, &item->queue);
}

static int user_of(qk_sched_item_t *item) {
  return QK_HOLDER(item, item_t, queue)->user;
}

/* a waits in two queues, b in the second alone. */
Test(sched, what_is_given_in_one_queue_counts_where_one_waits) {
  enum { MANY = 40, OTHER = QK_SETUPS_MAX - 1 };
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  static item_t item[3][MANY];
  int of_a = 0;
  hold_two(&s, &a, &b);
  for (int i = 0; i < MANY; i++) {
    push_to(&s, a, &item[0][i], 0, 0);
    push_to(&s, a, &item[1][i], 0, OTHER);
    push_to(&s, b, &item[2][i], 1, OTHER);
  }
  for (int i = 0; i < 20; i++) { /* both engines are equally fast: a has one, b the other */
    qk_sched_pop(&s, 0, 0);
    of_a += user_of(qk_sched_pop(&s, OTHER, 0)) == 0;
  }
  cr_expect_leq(of_a, 1, "%d of 20", of_a);
  qk_sched_settle(b, &item[2][0].queue, 11); /* it took ten more */
  of_a = 0;
  for (int i = 0; i < 10; i++) of_a += user_of(qk_sched_pop(&s, OTHER, 0)) == 0;
  cr_expect(of_a >= 9, "%d of 10", of_a);
  while (qk_sched_pop(&s, OTHER, 0)) continue;
  release_two(&s, a, b);
}

Test(sched, contractions_and_right_hand_sides_have_shares_of_their_own) {
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  static item_t item[30];
  hold_two(&s, &a, &b);
  for (int i = 0; i < 10; i++) {
    push_to(&s, a, &item[i], 0, 0);
    push_to(&s, a, &item[10 + i], 0, QK_SETUPS_MAX);
    push_to(&s, b, &item[20 + i], 1, QK_SETUPS_MAX);
  }
  for (int i = 0; i < 10; i++) qk_sched_pop(&s, 0, 0);
  for (int i = 0; i < 20; i++) cr_expect_eq(user_of(qk_sched_pop(&s, QK_SETUPS_MAX, 0)), i % 2);
  release_two(&s, a, b);
}

Test(sched, what_was_given_elsewhere_before_does_not_count) {
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  item_t item[100], other[2];
  hold_two(&s, &a, &b);
  for (int i = 0; i < 100; i++) push(&s, a, &item[i], 0, i);
  for (int i = 0; i < 50; i++) next(&s);
  for (int k = 0; k < 2; k++) {
    init(&other[k], k, k);
    other[k].queue.index = QK_SETUPS_MAX - 1;
    qk_sched_push(&s, k == 0 ? a : b, &other[k].queue);
  }
  cr_assert_eq(s.length, 52);
  cr_assert_eq(s.queue[QK_SETUPS_MAX - 1].length, 2);
  cr_assert_null(qk_sched_first(&s, 1, 0), "a queue in which nothing is");
  for (int k = 0; k < 2; k++)
    cr_assert_eq(qk_sched_pop(&s, QK_SETUPS_MAX - 1, 0), &other[k].queue,
                 "in the order of their coming");
  cr_assert_eq(qk_sched_user_queued(a), 50);
  cr_assert_eq(qk_sched_user_given(a), 51);
  cr_assert_eq(qk_sched_user_given(b), 1);
  release_two(&s, a, b);
}

/* Of the next n turns those of user 1. */
static int turns_of_second(qk_sched_t *s, int n) {
  int turns = 0;
  for (int i = 0; i < n; i++) turns += next(s)->user;
  return turns;
}

Test(sched, idleness_earns_nothing) {
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  item_t item[300];
  hold_two(&s, &a, &b);
  push(&s, b, &item[0], 1, 0);
  cr_assert_eq(next(&s)->user, 1);
  for (int i = 0; i < 200; i++) push(&s, a, &item[i], 0, i);
  for (int i = 0; i < 100; i++) cr_assert_eq(next(&s)->user, 0);
  for (int i = 0; i < 100; i++) push(&s, b, &item[200 + i], 1, i); /* back after a long time */
  int of_b = turns_of_second(&s, 100);
  cr_expect(of_b >= 49 && of_b <= 51, "%d of 100", of_b);
  release_two(&s, a, b);
}

Test(sched, what_was_removed_leaves_no_turn_behind) {
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  item_t item[200];
  hold_two(&s, &a, &b);
  push(&s, b, &item[0], 1, 0);
  qk_sched_remove(&s, &item[0].queue);
  for (int i = 0; i < 100; i++) push(&s, a, &item[i], 0, i);
  for (int i = 0; i < 50; i++) cr_assert_eq(next(&s)->user, 0);
  for (int i = 0; i < 100; i++) push(&s, b, &item[100 + i], 1, i);
  int of_b = turns_of_second(&s, 50);
  cr_expect(of_b >= 24 && of_b <= 26, "%d of 50", of_b);
  release_two(&s, a, b);
}

static item_t *push_with(qk_sched_t *s, qk_sched_user_t *u, item_t *item, int priority,
                         double since, double deadline) {
  init(item, 0, 0);
  item->queue.priority = priority;
  item->queue.since = since;
  item->queue.deadline = deadline;
  qk_sched_push(s, u, &item->queue);
  return item;
}

Test(sched, priorities_age) {
  qk_sched_t s;
  qk_sched_user_t *u;
  item_t item[5];
  hold_one(&s, &u);
  item_t *low = push_with(&s, u, &item[0], 2, 0, 0), *high = push_with(&s, u, &item[1], 7, 0, 0);
  item_t *middle = push_with(&s, u, &item[2], 4, 0, 0);
  cr_expect_eq(next_at(&s, 1), high);
  const double late = 3.5 * QK_SCHED_AGE;
  item_t *fresh = push_with(&s, u, &item[3], 7, late, 0);
  cr_expect_eq(next_at(&s, late), middle, "4 and 3.5 are more than 7");
  cr_expect_eq(next_at(&s, late), fresh);
  cr_expect_eq(next_at(&s, late), low);
  qk_sched_user_release(u);
}

Test(sched, priorities_are_a_matter_among_ones_own) {
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  item_t item[20];
  hold_two(&s, &a, &b);
  for (int i = 0; i < 10; i++) {
    push_with(&s, a, &item[i], QK_PRIORITY_MAX, 0, 0);
    push_with(&s, b, &item[10 + i], 0, 0, 0)->user = 1;
  }
  for (int i = 0; i < 20; i++) cr_assert_eq(next(&s)->user, i % 2);
  qk_sched_user_release(a);
  qk_sched_user_release(b);
}

Test(sched, deadlines_go_first_and_in_order) {
  qk_sched_t s;
  qk_sched_user_t *u;
  item_t item[5];
  hold_one(&s, &u);
  item_t *none = push_with(&s, u, &item[0], 4, 0, 0), *late = push_with(&s, u, &item[1], 4, 0, 90);
  item_t *early = push_with(&s, u, &item[2], 4, 0, 50),
         *same = push_with(&s, u, &item[3], 4, 0, 50);
  item_t *more = push_with(&s, u, &item[4], 5, 0, 0);
  item_t *const order[] = {more, early, same, late, none};
  for (int i = 0; i < 5; i++) cr_expect_eq(next(&s), order[i], "at %d", i);
  qk_sched_user_release(u);
}

Test(sched, requests_go_in_the_order_in_which_they_came) {
  qk_sched_t s;
  qk_sched_user_t *u;
  item_t item[6];
  static const double came[6] = {2, 1, 3, 1, 2, 1};
  static const int order[6] = {1, 3, 5, 0, 4, 2};
  hold_one(&s, &u);
  for (int i = 0; i < 6; i++) {
    init(&item[i], 0, i);
    item[i].queue.since = 10 + i;
    item[i].queue.came = came[i];
    qk_sched_push(&s, u, &item[i].queue);
  }
  for (int i = 0; i < 6; i++) cr_expect_eq(next(&s), &item[order[i]], "at %d", i);
  qk_sched_user_release(u);
}

Test(sched, counts_what_each_user_has_and_was_given) {
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  item_t item[6];
  qk_sched_init(&s);
  cr_expect_null(qk_sched_user_after(&s, NULL));
  qk_sched_user_hold(&s, "a", &a);
  for (int i = 0; i < 3; i++) push(&s, a, &item[i], 0, i);
  item_t *x = next(&s);
  cr_expect(qk_sched_user_queued(a) == 2 && qk_sched_user_given(a) == 1);
  qk_sched_settle(a, &x->queue, 7);
  cr_expect_eq(qk_sched_user_given(a), 7);
  next(&s);
  qk_sched_user_hold(&s, "b", &b);
  for (int i = 3; i < 6; i++) push(&s, b, &item[i], 1, i);
  next(&s);
  cr_expect_eq(qk_sched_user_given(b), 1, "not what others were given before");
  qk_sched_remove(&s, &item[2].queue);
  qk_sched_remove(&s, &item[2].queue);
  cr_expect(qk_sched_user_queued(a) == 0 && qk_sched_user_queued(b) == 2);
  cr_expect_eq(qk_sched_user_after(&s, NULL), a);
  cr_expect_eq(qk_sched_user_after(&s, a), b);
  cr_expect_null(qk_sched_user_after(&s, b));
  cr_expect_str_eq(qk_sched_user_name(b), "b");
  release_two(&s, a, b);
}

Test(sched, one_name_is_one_user) {
  qk_sched_t s;
  qk_sched_user_t *a, *again, *b;
  item_t item[3];
  qk_sched_init(&s);
  qk_sched_user_hold(&s, "a", &a);
  qk_sched_user_hold(&s, "a", &again);
  qk_sched_user_hold(&s, "b", &b);
  cr_assert_eq(a, again);
  qk_sched_user_release(again);
  push(&s, a, &item[0], 0, 0);
  push(&s, a, &item[1], 0, 1);
  push(&s, b, &item[2], 1, 0);
  cr_assert_eq(next(&s), &item[0]);
  cr_assert_eq(next(&s), &item[2]);
  cr_assert_eq(next(&s), &item[1]);
  qk_sched_user_release(a);
  qk_sched_user_release(b);
  cr_assert(qk_link_alone(&s.users));
}

static unsigned draw(unsigned *state, unsigned n) {
  *state = *state * 1103515245u + 12345u;
  return (*state >> 8) % n;
}

enum { USERS = 6, ARRIVALS = 3000, SLOTS = 8, DEAREST = 20 };

/* Random users, costs, arrivals and removals on a few slots. */
typedef struct simulation {
  qk_sched_t sched;
  qk_sched_user_t *user[USERS];
  item_t *item, *slot[SLOTS];
  double until[SLOTS], now;
  double work[USERS], base[USERS]; /* given to each; when the last one began or ceased to wait */
  int made, ended, removed, waiting[USERS];
  int last[USERS][QK_PRIORITY_MAX + 1]; /* the newest that was served */
  unsigned state;
} simulation_t;

/* One more of the user waits, or one less. Who begins or ceases to wait opens a new account for
 * everybody who compares with it. */
static void count_waiting(simulation_t *s, int user, int change) {
  const int before = s->waiting[user];
  s->waiting[user] += change;
  if (before == 0 || s->waiting[user] == 0) memcpy(s->base, s->work, sizeof s->base);
}

static void arrive(simulation_t *s) {
  const int u = (int)draw(&s->state, USERS);
  item_t *x = &s->item[s->made];
  init(x, u, s->made++);
  x->cost = 1 + draw(&s->state, u % 2 ? DEAREST : 4);
  x->queue.cost = 1 + draw(&s->state, DEAREST);
  x->queue.priority = (int)draw(&s->state, QK_PRIORITY_MAX + 1);
  x->queue.since = s->now;
  x->queued = true;
  count_waiting(s, u, 1);
  qk_sched_push(&s->sched, s->user[u], &x->queue);
}

static void remove_any(simulation_t *s) {
  item_t *x = &s->item[draw(&s->state, (unsigned)s->made)];
  if (!x->queued) return;
  qk_sched_remove(&s->sched, &x->queue);
  qk_sched_remove(&s->sched, &x->queue); /* no effect */
  x->queued = false;
  s->removed++;
  count_waiting(s, x->user, -1);
}

/* The slot ends what is over, and takes the next. Of one user and priority order holds. */
static void serve(simulation_t *s, int k) {
  if (s->slot[k] && s->until[k] <= s->now) {
    qk_sched_settle(s->user[s->slot[k]->user], &s->slot[k]->queue, s->slot[k]->cost);
    s->slot[k] = NULL;
    s->ended++;
  }
  if (!s->slot[k] && (s->slot[k] = next_at(&s->sched, s->now))) {
    item_t *x = s->slot[k];
    cr_assert(x->queued);
    x->queued = false;
    cr_assert_gt(x->number, s->last[x->user][x->queue.priority]);
    s->last[x->user][x->queue.priority] = x->number;
    s->work[x->user] += x->cost;
    s->until[k] = s->now + x->cost;
    count_waiting(s, x->user, -1);
  }
  cr_assert(s->slot[k] || s->sched.length == 0, "a slot is free and something waits");
}

/* Of two users who wait all the while none is given more than the other by more than slots hold. */
static void expect_fair(const simulation_t *s, unsigned seed) {
  for (int u = 0; u < USERS; u++)
    for (int v = 0; v < USERS; v++)
      if (s->waiting[u] > 0 && s->waiting[v] > 0)
        cr_assert_lt(s->work[u] - s->base[u] - (s->work[v] - s->base[v]), 2.0 * SLOTS * DEAREST,
                     "seed %u, time %g", seed, s->now);
}

/* Nothing is lost or comes twice. */
static void simulate(unsigned seed) {
  simulation_t s = {.item = calloc(ARRIVALS, sizeof *s.item), .state = seed};
  qk_sched_init(&s.sched);
  for (int u = 0; u < USERS; u++) {
    char name[8];
    snprintf(name, sizeof name, "u%d", u);
    qk_sched_user_hold(&s.sched, name, &s.user[u]);
    for (int p = 0; p <= QK_PRIORITY_MAX; p++) s.last[u][p] = -1;
  }
  for (bool any = true; any; s.now += 1) {
    for (unsigned n = draw(&s.state, 8); n > 0 && s.made < ARRIVALS; n--) arrive(&s);
    if (s.made > 0 && draw(&s.state, 10) == 0) remove_any(&s);
    any = s.made < ARRIVALS;
    for (int k = 0; k < SLOTS; k++) {
      serve(&s, k);
      any = any || s.slot[k];
    }
    expect_fair(&s, seed);
  }
  cr_assert_eq(s.ended + s.removed, ARRIVALS);
  cr_assert_gt(s.removed, 10);
  for (int u = 0; u < USERS; u++) qk_sched_user_release(s.user[u]);
  free(s.item);
}

Test(sched, loses_nothing_and_is_fair_to_all) {
  for (unsigned seed = 1; seed <= 50; seed++) simulate(seed);
}

/* A list in which each goes in behind all that it does not overtake. */
typedef struct plain {
  qk_sched_item_t *at[512];
  int length;
} plain_t;

static bool overtakes(const qk_sched_item_t *a, const qk_sched_item_t *b) {
  if (a->deadline != b->deadline)
    return a->deadline > 0 && (b->deadline == 0 || a->deadline < b->deadline);
  return a->came < b->came;
}

static void plain_add(plain_t *p, qk_sched_item_t *item) {
  int i = p->length++;
  for (; i > 0 && overtakes(item, p->at[i - 1]); i--) p->at[i] = p->at[i - 1];
  p->at[i] = item;
}

static void plain_remove(plain_t *p, const qk_sched_item_t *item) {
  int i = 0;
  while (p->at[i] != item) i++;
  for (p->length--; i < p->length; i++) p->at[i] = p->at[i + 1];
}

/* Items of few deadlines and times, so that many rank alike, come, go, and go in their turn. */
static void compare_with_a_list(unsigned seed) {
  enum { ITEMS = 512, ROUNDS = 4000 };
  static item_t item[ITEMS];
  qk_sched_t s;
  qk_sched_user_t *u;
  plain_t plain = {.length = 0};
  unsigned state = seed;
  hold_one(&s, &u);
  for (int i = 0; i < ITEMS; i++) init(&item[i], 0, i);
  for (int round = 0; round < ROUNDS; round++) {
    qk_sched_item_t *x = &item[draw(&state, ITEMS)].queue;
    if (draw(&state, 4) == 0) {
      cr_assert_eq(qk_sched_pop(&s, 0, 0), plain.length > 0 ? plain.at[0] : NULL);
      if (plain.length > 0) plain_remove(&plain, plain.at[0]);
    } else if (qk_sched_item_waits(x)) {
      qk_sched_remove(&s, x);
      plain_remove(&plain, x);
    } else {
      x->deadline = draw(&state, 2) ? 1 + draw(&state, 1 + seed % 30) : 0;
      x->came = draw(&state, 1 + seed % 7);
      qk_sched_push(&s, u, x);
      plain_add(&plain, x);
    }
    cr_assert_eq(qk_sched_first(&s, 0, 0), plain.length > 0 ? plain.at[0] : NULL,
                 "seed %u, round %d", seed, round);
    cr_assert_eq(s.length, plain.length);
  }
  for (int i = 0; i < plain.length; i++) cr_assert_eq(qk_sched_pop(&s, 0, 0), plain.at[i]);
  cr_assert_null(qk_sched_pop(&s, 0, 0));
  qk_sched_user_release(u);
}

Test(sched, takes_the_order_of_a_plain_list) {
  for (unsigned seed = 1; seed <= 50; seed++) compare_with_a_list(seed);
}
