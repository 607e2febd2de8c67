/* Which columns begin and end together. */
#include <criterion/criterion.h>

#include "daemon/engine/serve/slot_group.h"

enum { NCOLUMN = 6 };

typedef struct block {
  qk_slot_t slot[NCOLUMN];
  const qk_slot_t *column[NCOLUMN];
} block_t;

/* Columns 0 to 3 are a group, and 4 and 5. Each is in the `at`th of what were 40
 * iterations last; at < 0: free. */
static void set(block_t *b, const int at[NCOLUMN]) {
  for (int c = 0; c < NCOLUMN; c++) {
    b->slot[c] = (qk_slot_t){.state = at[c] < 0 ? QK_SLOT_FREE : QK_SLOT_RUNNING,
                             .tol = 1e-8,
                             .iterations = at[c] < 0 ? 40 : at[c]};
    b->column[c] = &b->slot[c];
  }
}

static qk_beginning_t beginning(int column) {
  return (qk_beginning_t){.column = column, .tol = 1e-8, .beginning = 1};
}

static bool waits(const block_t *b, qk_beginning_t what) {
  return qk_slot_group_waits(b->column, NCOLUMN, &what);
}

Test(slot_group, waits_for_sources_that_fill_the_columns_beside_it) {
  block_t b;
  set(&b, (int[]){-1, -1, -1, 3, -1, -1});
  qk_beginning_t what = beginning(1);
  cr_expect(!waits(&b, what), "nothing comes");
  what.coming = 1;
  cr_expect(!waits(&b, what), "one comes for two columns");
  what.coming = 2;
  cr_expect(waits(&b, what), "two come for two");
  what.beginning = 3;
  cr_expect(!waits(&b, what), "all three are taken");
  cr_expect(!waits(&b, (qk_beginning_t){.column = 5, .tol = 1e-8, .beginning = 2, .coming = 2}));
  cr_expect(waits(&b, (qk_beginning_t){.column = 5, .tol = 1e-8, .beginning = 1, .coming = 1}),
            "of the two columns at the end of the block one is free");
}

Test(slot_group, waits_for_columns_that_end_soon) {
  block_t b;
  qk_beginning_t what = beginning(1);
  what.crowded = true;
  set(&b, (int[]){5, -1, 30, 12, 31, 31});
  cr_expect(waits(&b, what), "a quarter is left");
  set(&b, (int[]){5, -1, 39, 12, 31, 31});
  cr_expect(waits(&b, what), "one iteration is left");
  set(&b, (int[]){5, -1, 29, 12, 31, 31});
  cr_expect(!waits(&b, what), "more than a quarter is left; others are not of the group");
  set(&b, (int[]){5, -1, 12, 45, 31, 31});
  cr_expect(waits(&b, what), "an eighth late");
  set(&b, (int[]){5, -1, 46, 47, 31, 31});
  cr_expect(!waits(&b, what), "they take longer than the last one did");
}

Test(slot_group, does_not_wait_for_columns_that_would_not_stay_together) {
  block_t b;
  const int at[] = {5, -1, 35, 12, 31, 31};
  qk_beginning_t what = beginning(1);
  set(&b, at);
  cr_expect(!waits(&b, what), "nobody waits who could begin there");
  what.crowded = true;
  cr_expect(waits(&b, what));
  what.tol = 1e-6;
  cr_expect(!waits(&b, what), "to another tolerance");
  what.tol = 1e-8;
  b.slot[2].tol = 1e-6;
  cr_expect(!waits(&b, what), "beside one to another tolerance");
  set(&b, at);
  b.slot[1].tol = 1e-6;
  cr_expect(!waits(&b, what), "where the last one was to another tolerance");
  set(&b, at);
  b.slot[1].status = QK_CANCELLED;
  cr_expect(!waits(&b, what), "where the last one did not come to its end");
}

Test(slot_group, waits_for_what_has_ended_and_cannot_leave_yet) {
  block_t b;
  qk_beginning_t what = beginning(1);
  what.crowded = true;
  set(&b, (int[]){5, -1, 12, 12, 31, 31});
  b.slot[3].state = QK_SLOT_ENDED;
  cr_expect(waits(&b, what));
  what.crowded = false;
  cr_expect(!waits(&b, what));
}

Test(slot_group, leave_together_where_there_is_room) {
  cr_expect_eq(qk_slot_group_leave(3, 8, 8), 3);
  cr_expect_eq(qk_slot_group_leave(3, 3, 8), 3);
  cr_expect_eq(qk_slot_group_leave(3, 2, 8), 0);
  cr_expect_eq(qk_slot_group_leave(3, 2, 2), 2, "there are no more buffers than two");
  cr_expect_eq(qk_slot_group_leave(3, 1, 2), 0);
  cr_expect_eq(qk_slot_group_leave(0, 0, 8), 0);
}
