/* The policy by itself: who gets the next slot. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/sched.h"

typedef struct item {
  qk_link_t link;
  int user, number;
  bool queued;
} item_t;

static item_t *next(qk_sched_t *s) {
  qk_link_t *l = qk_sched_pop(s);
  return l ? QK_HOLDER(l, item_t, link) : NULL;
}

static void push(qk_sched_t *s, qk_sched_user_t *u, item_t *item, int user, int number) {
  item->user = user;
  item->number = number;
  qk_link_init(&item->link);
  qk_sched_push(s, u, &item->link);
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

Test(sched, lets_users_take_turns) {
  qk_sched_t s;
  qk_sched_user_t *a, *b, *c;
  item_t item[100];
  qk_sched_init(&s);
  qk_sched_user_hold(&s, "a", &a);
  qk_sched_user_hold(&s, "b", &b);
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

Test(sched, first_is_what_pop_takes) {
  qk_sched_t s;
  qk_sched_user_t *a, *b;
  item_t item[4];
  qk_sched_init(&s);
  cr_assert_null(qk_sched_first(&s));
  qk_sched_user_hold(&s, "a", &a);
  qk_sched_user_hold(&s, "b", &b);
  for (int i = 0; i < 2; i++) push(&s, a, &item[i], 0, i);
  for (int i = 0; i < 2; i++) push(&s, b, &item[2 + i], 1, i);
  qk_sched_remove(&s, &item[0].link);
  for (int i = 0; i < 3; i++) {
    qk_link_t *first = qk_sched_first(&s);
    cr_assert_eq(first, qk_sched_first(&s));
    cr_assert_eq(first, qk_sched_pop(&s));
  }
  cr_assert_null(qk_sched_first(&s));
  qk_sched_user_release(a);
  qk_sched_user_release(b);
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

/* Random pushes, pops and removals: nothing is lost, nothing comes twice, order within a user
 * holds, and a user with work waits for at most one turn of each other user. */
Test(sched, loses_nothing_and_starves_nobody) {
  enum { USERS = 5, ITEMS = 4000 };
  qk_sched_t s;
  qk_sched_user_t *user[USERS];
  item_t *item = calloc(ITEMS, sizeof *item);
  int made = 0, seen = 0, removed = 0, last[USERS], waited[USERS] = {0}, waiting[USERS] = {0};
  unsigned state = 12345;
  qk_sched_init(&s);
  for (int u = 0; u < USERS; u++) {
    char name[8];
    snprintf(name, sizeof name, "u%d", u);
    qk_sched_user_hold(&s, name, &user[u]);
    last[u] = -1;
  }
  while (made < ITEMS || s.length > 0) {
    state = state * 1103515245u + 12345u;
    unsigned what = state >> 16 & 7, who = (state >> 20) % USERS;
    if (what < 4 && made < ITEMS) {
      push(&s, user[who], &item[made], (int)who, made);
      item[made++].queued = true;
      waiting[who]++;
    } else if (what == 4 && made > 0) {
      item_t *x = &item[(state >> 8) % (unsigned)made];
      if (!x->queued) continue;
      qk_sched_remove(&s, &x->link);
      qk_sched_remove(&s, &x->link); /* no effect */
      x->queued = false;
      waiting[x->user]--;
      removed++;
    } else {
      item_t *x = next(&s);
      if (!x) continue;
      cr_assert(x->queued);
      cr_assert_gt(x->number, last[x->user]);
      last[x->user] = x->number;
      x->queued = false;
      waiting[x->user]--;
      seen++;
      for (int u = 0; u < USERS; u++) {
        waited[u] = u == x->user || waiting[u] == 0 ? 0 : waited[u] + 1;
        cr_assert_lt(waited[u], USERS);
      }
    }
  }
  cr_assert_eq(seen + removed, ITEMS);
  cr_assert_gt(removed, 100);
  for (int u = 0; u < USERS; u++) qk_sched_user_release(user[u]);
  free(item);
}
