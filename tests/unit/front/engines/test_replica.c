/* Which replica takes the next right-hand side. */
#include <criterion/criterion.h>

#include "daemon/front/engines/replica.h"

static qk_replica_room_t room(int slots, int entries, int there) {
  return (qk_replica_room_t){.takes = true, .slots = slots, .entries = entries, .there = there};
}

Test(replica, with_most_free_slots_goes_first) {
  const qk_replica_room_t r[] = {room(16, 20, 6), room(16, 20, 5), room(16, 20, 8)};
  cr_expect_eq(qk_replica_choose(r, 3), 1);
}

Test(replica, whose_group_it_completes_goes_before_that) {
  const qk_replica_room_t r[] = {room(16, 20, 0), room(16, 20, 11), room(16, 20, 2)};
  cr_expect_eq(qk_replica_choose(r, 3), 1);
  const qk_replica_room_t full[] = {room(16, 20, 12), room(3, 9, 3)}; /* no slot is left for it */
  cr_expect_eq(qk_replica_choose(full, 2), 0);
}

Test(replica, of_equal_ones_the_first_goes) {
  const qk_replica_room_t r[] = {room(8, 8, 2), room(8, 8, 2)};
  cr_expect_eq(qk_replica_choose(r, 2), 0);
}

Test(replica, without_a_free_slot_has_its_entries) {
  const qk_replica_room_t r[] = {room(4, 7, 6), room(4, 7, 5), room(4, 7, 7)};
  cr_expect_eq(qk_replica_choose(r, 3), 1);
}

Test(replica, that_is_full_or_takes_nothing_is_passed_over) {
  qk_replica_room_t r[] = {room(4, 4, 4), room(4, 4, 0)};
  cr_expect_eq(qk_replica_choose(r, 2), 1);
  r[1].takes = false;
  cr_expect_eq(qk_replica_choose(r, 2), -1);
  cr_expect_eq(qk_replica_choose(r, 0), -1);
}

/* What comes together fills all of them, group by group, and all in the end. */
Test(replica, pools_are_filled_evenly) {
  qk_replica_room_t r[3];
  for (int i = 0; i < 3; i++) r[i] = room(16, 16, 0);
  for (int k = 0; k < 48; k++) {
    const int i = qk_replica_choose(r, 3);
    cr_assert(i >= 0 && i < 3);
    r[i].there++;
    for (int a = 0; a < 3; a++)
      for (int b = 0; b < 3; b++) cr_expect_leq(r[a].there - r[b].there, 2, "after %d", k + 1);
  }
  cr_expect_eq(qk_replica_choose(r, 3), -1);
}

Test(replica, alone_is_told_of_all_that_waits) {
  const qk_replica_room_t r[] = {room(4, 7, 2)}, full[] = {room(4, 4, 4)};
  for (int64_t n = 0; n < 20; n++) {
    cr_expect_eq(qk_replica_share(r, 1, 0, n), n);
    cr_expect_eq(qk_replica_share(full, 1, 0, n), n);
  }
}

/* None is told of more than can come to it, so none waits in vain. */
Test(replica, shares_are_no_more_than_what_waits) {
  const qk_replica_room_t r[] = {room(4, 4, 1), room(4, 4, 3), room(4, 4, 4)};
  for (int64_t n = 0; n <= 4; n++) {
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) sum += qk_replica_share(r, 3, i, n);
    cr_expect_leq(sum, n);
  }
  cr_expect_eq(qk_replica_share(r, 3, 0, 4), 3);
  cr_expect_eq(qk_replica_share(r, 3, 0, 10), 9); /* the other entry takes one */
}
