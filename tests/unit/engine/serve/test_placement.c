/* Which right-hand sides take which slots, and which leave. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/engine/placement/placement.h"

enum { NSLOT = 6, CASES = 100000 };

static const int8_t ONE_FLAVOUR[QK_SLOTS_MAX] = {[0 ... QK_SLOTS_MAX - 1] = 1};

/* ---- a block of six slots -------------------------------------------------------------------- */

/* Slots 0 to 3 are a group, and 4 and 5. */
typedef struct block {
  qk_slot_t slot[NSLOT];
  const qk_slot_t *at[NSLOT];
  qk_waiting_t waiting[NSLOT];
  int nwaiting;
} block_t;

/* Each slot is in iteration at[s] of what were 40 last; at < 0: free. */
static void set(block_t *b, const int at[NSLOT]) {
  b->nwaiting = 0;
  for (int s = 0; s < NSLOT; s++) {
    b->slot[s] = (qk_slot_t){.state = at[s] < 0 ? QK_SLOT_FREE : QK_SLOT_RUNNING,
                             .stopping = {.tol = 1e-8},
                             .iterations = at[s] < 0 ? 40 : at[s]};
    b->at[s] = &b->slot[s];
  }
}

static qk_waiting_t ready(void) {
  return (qk_waiting_t){.order = 1, .tol = 1e-8, .flavour = 1, .staged = true, .ready = true};
}

static qk_waiting_t arriving(void) {
  return (qk_waiting_t){.order = 1, .tol = 1e-8, .flavour = 1, .staged = true, .arriving = true};
}

static void add(block_t *b, qk_waiting_t what) {
  what.entry = 10 + b->nwaiting;
  b->waiting[b->nwaiting++] = what;
}

static qk_placement_t place(const block_t *b) {
  qk_placement_t placement;
  qk_place(&(qk_placement_view_t){.slot = b->at,
                                  .waiting = b->waiting,
                                  .nslot = NSLOT,
                                  .nwaiting = b->nwaiting,
                                  .flavour = ONE_FLAVOUR},
           &placement);
  return placement;
}

static int begin(const block_t *b) {
  return place(b).n;
}

/* ---- to begin together ----------------------------------------------------------------------- */

Test(placement, waits_for_sources_that_fill_the_slots_of_its_group) {
  block_t b;
  set(&b, (int[]){3, -1, -1, 3, 3, 3});
  add(&b, ready());
  cr_expect_eq(begin(&b), 1, "nothing is under way");
  set(&b, (int[]){-1, -1, -1, 3, 3, 3});
  add(&b, ready());
  add(&b, arriving());
  cr_expect_eq(begin(&b), 1, "one source for two slots");
  add(&b, arriving());
  cr_expect_eq(begin(&b), 0, "two sources for two slots");
  set(&b, (int[]){-1, -1, -1, 3, 3, 3});
  for (int k = 0; k < 3; k++) add(&b, ready());
  add(&b, arriving());
  cr_expect_eq(begin(&b), 3, "all three are taken");
  set(&b, (int[]){3, 3, 3, 3, -1, -1});
  add(&b, ready());
  add(&b, arriving());
  cr_expect_eq(begin(&b), 0, "of the two slots at the end of the block one is free");
}

/* How many of two begin, one of which takes the free slot. */
static int begin_crowded(const int at[NSLOT], double tol) {
  block_t b;
  set(&b, at);
  add(&b, ready());
  add(&b, ready());
  b.waiting[0].tol = tol;
  return begin(&b);
}

Test(placement, waits_for_solves_of_its_group_that_end_soon) {
  cr_expect_eq(begin_crowded((int[]){5, -1, 30, 12, 31, 31}, 1e-8), 0, "a quarter is left");
  cr_expect_eq(begin_crowded((int[]){5, -1, 39, 12, 31, 31}, 1e-8), 0, "one iteration is left");
  cr_expect_eq(begin_crowded((int[]){5, -1, 29, 12, 31, 31}, 1e-8), 1,
               "more than a quarter is left; others are not of the group");
  cr_expect_eq(begin_crowded((int[]){5, -1, 12, 45, 31, 31}, 1e-8), 0, "an eighth late");
  cr_expect_eq(begin_crowded((int[]){5, -1, 46, 47, 31, 31}, 1e-8), 1,
               "they take longer than the last one did");
}

Test(placement, does_not_wait_for_what_would_not_stay_together) {
  block_t b;
  const int at[] = {5, -1, 35, 12, 31, 31};
  set(&b, at);
  add(&b, ready());
  cr_expect_eq(begin(&b), 1, "nobody else waits");
  cr_expect_eq(begin_crowded(at, 1e-8), 0);
  cr_expect_eq(begin_crowded(at, 1e-6), 1, "to another tolerance");
  add(&b, ready());
  cr_expect_eq(begin(&b), 0);
  b.slot[2].stopping.tol = 1e-6;
  cr_expect_eq(begin(&b), 1, "with one to another tolerance");
  b.slot[2].stopping.tol = 1e-8;
  b.slot[1].stopping.tol = 1e-6;
  cr_expect_eq(begin(&b), 1, "the last one in its slot was to another tolerance");
  b.slot[1].stopping.tol = 1e-8;
  b.slot[1].status = QK_CANCELLED;
  cr_expect_eq(begin(&b), 1, "the last one in its slot did not converge");
}

Test(placement, waits_for_what_has_ended_and_cannot_leave_yet) {
  block_t b;
  set(&b, (int[]){5, -1, 12, 12, 31, 31});
  b.slot[3].state = QK_SLOT_ENDED;
  add(&b, ready());
  cr_expect_eq(begin(&b), 1, "nobody else waits");
  add(&b, ready());
  cr_expect_eq(begin(&b), 0);
}

Test(placement, of_a_user_with_nothing_in_flight_comes_first) {
  block_t b;
  set(&b, (int[]){5, -1, 35, 12, 31, 31});
  add(&b, arriving());
  b.waiting[0].order = QK_ORDER_FIRST;
  add(&b, ready());
  cr_expect_eq(begin(&b), 0, "the free slot is kept until its source is there");
  b.waiting[0].arriving = false;
  b.waiting[0].ready = true;
  const qk_placement_t p = place(&b);
  cr_expect(p.n == 1 && p.entry[0] == 10 && p.slot[0] == 1, "then it waits for no others");
}

Test(placement, while_nothing_is_solved_sources_are_waited_for) {
  block_t b;
  set(&b, (int[]){-1, -1, -1, -1, -1, -1});
  add(&b, ready());
  add(&b, arriving());
  cr_expect_eq(begin(&b), 0);
  b.waiting[0].order = QK_ORDER_FIRST;
  cr_expect_eq(begin(&b), 0, "whatever its order");
  b.waiting[0].staged = false;
  cr_expect_eq(begin(&b), 1, "but for one that is made on the device");
  b.waiting[1].arriving = false;
  b.waiting[0].staged = true;
  cr_expect_eq(begin(&b), 1, "or if none is under way for want of buffers");
}

Test(placement, what_is_alone_goes_to_the_single_rhs_solver) {
  block_t b;
  qk_slot_t single = {.state = QK_SLOT_FREE};
  qk_placement_t p;
  set(&b, (int[]){-1, -1, -1, -1, -1, -1});
  add(&b, ready());
  qk_placement_view_t view = {.slot = b.at,
                              .single = &single,
                              .waiting = b.waiting,
                              .nslot = NSLOT,
                              .nwaiting = 1,
                              .flavour = ONE_FLAVOUR};
  qk_place(&view, &p);
  cr_expect(p.single && p.n == 1 && p.slot[0] == 0 && p.entry[0] == 10);
  b.waiting[0].batch_only = true;
  qk_place(&view, &p);
  cr_expect(!p.single && p.n == 1, "it may not");
  b.waiting[0].batch_only = false;
  single.state = QK_SLOT_RUNNING;
  qk_place(&view, &p);
  cr_expect(!p.single && p.n == 1, "it has another one");
  single.state = QK_SLOT_FREE;
  b.slot[5].state = QK_SLOT_ENDED;
  qk_place(&view, &p);
  cr_expect(!p.single && p.n == 1, "the block has one");
  b.slot[5].state = QK_SLOT_FREE;
  add(&b, arriving());
  view.nwaiting = 2;
  b.waiting[0].staged = false;
  qk_place(&view, &p);
  cr_expect(!p.single && p.n == 1, "another one waits");
}

/* ---- what the front has waiting -------------------------------------------------------------- */

Test(placement, an_idle_engine_waits_for_a_backlog_that_fills_its_slots) {
  qk_arrivals_t a = {.idle = true, .hungry = 6, .backlog = 9, .freed = 6};
  cr_expect_eq(qk_place_awaited(&a), 0, "nothing to begin with");
  a.fills = 1;
  cr_expect_eq(qk_place_awaited(&a), 5, "slots are the limit");
  a.backlog = 2;
  cr_expect_eq(qk_place_awaited(&a), 2, "the backlog is the limit");
  a.backlog = 0;
  cr_expect_eq(qk_place_awaited(&a), 0, "it is alone");
  a.fills = 7;
  a.backlog = UINT32_MAX;
  cr_expect_eq(qk_place_awaited(&a), 0, "all slots have one");
}

Test(placement, while_others_run_those_are_awaited_that_take_what_became_free) {
  qk_arrivals_t a = {.hungry = 3, .backlog = 9};
  cr_expect_eq(qk_place_awaited(&a), 0, "nothing became free");
  a.freed = 2;
  cr_expect_eq(qk_place_awaited(&a), 2);
  a.fills = 1;
  cr_expect_eq(qk_place_awaited(&a), 1);
  a.fills = 2;
  cr_expect_eq(qk_place_awaited(&a), 0);
  a = (qk_arrivals_t){.hungry = 0, .freed = 2, .backlog = 9};
  cr_expect_eq(qk_place_awaited(&a), 0, "an RHS waits for every free slot");
  a = (qk_arrivals_t){.hungry = 3, .freed = 2, .backlog = 1};
  cr_expect_eq(qk_place_awaited(&a), 1);
}

/* ---- to leave -------------------------------------------------------------------------------- */

Test(placement, a_group_leaves_together_if_there_is_room) {
  const qk_ended_t ended[] = {{1, 0, true}, {2, 1, true}, {3, 3, true}};
  int entry[3];
  cr_expect_eq(qk_place_leave(ended, 3, 8, 8, entry), 3);
  cr_expect_eq(qk_place_leave(ended, 3, 3, 8, entry), 3);
  cr_expect_eq(qk_place_leave(ended, 3, 2, 8, entry), 0);
  cr_expect_eq(qk_place_leave(ended, 3, 2, 2, entry), 2, "there are no more buffers than two");
  cr_expect_eq(qk_place_leave(ended, 3, 1, 2, entry), 0);
  cr_expect_eq(qk_place_leave(ended, 0, 0, 8, entry), 0);
}

Test(placement, groups_leave_by_themselves_and_at_once_without_a_buffer) {
  const qk_ended_t ended[] = {{1, 0, true}, {2, 1, true},  {3, 4, true},
                              {4, 3, true}, {5, 2, false}, {6, QK_SLOT_SINGLE, true}};
  int entry[6];
  cr_assert_eq(qk_place_leave(ended, 6, 3, 8, entry), 3);
  cr_expect(entry[0] == 6 && entry[1] == 5 && entry[2] == 3,
            "the single one, what needs no buffer, and group 1; three of group 0 have no room");
}

/* ---- random cases ---------------------------------------------------------------------------- */

static int below(uint64_t *seed, int n) {
  *seed = 6364136223846793005u * *seed + 1442695040888963407u;
  return (int)((*seed >> 33) % (uint64_t)n);
}

typedef struct random_case {
  qk_slot_t slot[QK_SLOTS_MAX], single;
  const qk_slot_t *at[QK_SLOTS_MAX];
  qk_waiting_t waiting[QK_INFLIGHT_MAX];
  int8_t flavour[QK_SLOTS_MAX];
  qk_placement_view_t view;
} random_case_t;

static qk_slot_t random_slot(uint64_t *seed, bool idle) {
  static const double tol[] = {1e-8, 1e-8, 1e-8, 1e-6};
  const int state = idle ? 0 : below(seed, 7);
  return (qk_slot_t){.state = state < 3   ? QK_SLOT_FREE
                              : state < 6 ? QK_SLOT_RUNNING
                                          : QK_SLOT_ENDED,
                     .status = below(seed, 8) ? QK_OK : QK_CANCELLED,
                     .stopping = {.tol = tol[below(seed, 4)]},
                     .iterations = below(seed, 50)};
}

static void make_case(uint64_t *seed, random_case_t *c) {
  static const int slots[] = {1, 2, 3, 4, 5, 8, 12, 16, 64};
  const bool idle = below(seed, 4) == 0, made = below(seed, 4) == 0;
  const int nslot = slots[below(seed, 9)];
  const int n = below(seed, 3) ? below(seed, 2 * nslot + 1) : below(seed, 3),
            first = below(seed, 4);
  for (int s = 0; s < nslot; s++) {
    c->slot[s] = random_slot(seed, idle);
    c->at[s] = &c->slot[s];
    c->flavour[s] = 1;
  }
  c->single = random_slot(seed, idle && below(seed, 3));
  c->view = (qk_placement_view_t){.slot = c->at,
                                  .single = below(seed, 2) ? &c->single : NULL,
                                  .waiting = c->waiting,
                                  .nslot = nslot,
                                  .nwaiting = n < QK_INFLIGHT_MAX ? n : QK_INFLIGHT_MAX,
                                  .flavour = c->flavour};
  for (int k = 0; k < c->view.nwaiting; k++) {
    const int at = made ? 2 : below(seed, 5); /* of its source */
    c->waiting[k] = (qk_waiting_t){.entry = k,
                                   .order = k < first ? QK_ORDER_FIRST : 1,
                                   .tol = below(seed, 4) ? 1e-8 : 1e-6,
                                   .flavour = 1,
                                   .staged = at != 2,
                                   .arriving = at == 1,
                                   .ready = at >= 2};
  }
}

static void check_placement(const random_case_t *c, const qk_placement_t *p, int k) {
  bool taken[QK_SLOTS_MAX] = {0};
  cr_expect(p->n >= 0 && p->n <= c->view.nslot, "case %d", k);
  for (int i = 0; i < p->n; i++) {
    cr_expect(c->waiting[p->entry[i]].ready, "case %d: entry %d has no source", k, p->entry[i]);
    cr_expect(i == 0 || p->entry[i] > p->entry[i - 1], "case %d: not by order", k);
    if (p->single) continue;
    cr_expect(c->slot[p->slot[i]].state == QK_SLOT_FREE, "case %d: slot %d", k, p->slot[i]);
    cr_expect(!taken[p->slot[i]], "case %d: slot %d twice", k, p->slot[i]);
    taken[p->slot[i]] = true;
  }
}

/* True if there is nothing whose end or arrival a placement could wait for. */
static bool nothing_moves(const random_case_t *c) {
  bool moves = c->view.single && c->single.state != QK_SLOT_FREE;
  for (int s = 0; s < c->view.nslot; s++) moves |= c->slot[s].state != QK_SLOT_FREE;
  for (int k = 0; k < c->view.nwaiting; k++)
    moves |= c->waiting[k].arriving ||
             (c->waiting[k].order == QK_ORDER_FIRST && !c->waiting[k].ready); /* gets a buffer */
  return !moves;
}

Test(placement, random_cases_take_free_slots_in_order_and_never_wait_for_ever) {
  uint64_t seed = 7;
  int waited = 0, alone = 0;
  for (int k = 0; k < CASES; k++) {
    random_case_t c;
    qk_placement_t p;
    int nready = 0;
    make_case(&seed, &c);
    qk_place(&c.view, &p);
    check_placement(&c, &p, k);
    for (int i = 0; i < c.view.nwaiting; i++) nready += c.waiting[i].ready;
    waited += p.n < nready;
    alone += p.single;
    if (nothing_moves(&c) && nready > 0) cr_expect_gt(p.n, 0, "case %d", k);
  }
  cr_expect(waited > CASES / 100 && alone > CASES / 1000, "%d waited, %d alone", waited, alone);
}

/* ---- flavours -------------------------------------------------------------------------------- */

static void make_flavours(uint64_t *seed, random_case_t *c, int only) {
  for (int s = 0; s < c->view.nslot; s++)
    c->flavour[s] = (int8_t)(only ? only : below(seed, 2) ? 1 : -1);
  for (int k = 0; k < c->view.nwaiting; k++)
    c->waiting[k].flavour = only ? only : below(seed, 2) ? 1 : -1;
}

Test(placement, with_one_flavour_alone_the_first_free_slots_are_taken) {
  uint64_t seed = 11;
  int taken = 0;
  for (int k = 0; k < CASES; k++) {
    random_case_t c;
    qk_placement_t p;
    int of[QK_INFLIGHT_MAX], slot = 0;
    make_case(&seed, &c);
    make_flavours(&seed, &c, below(&seed, 2) ? 1 : -1);
    for (int i = 0; i < c.view.nwaiting; i++) {
      of[i] = -1;
      if (!c.waiting[i].ready && c.waiting[i].order != QK_ORDER_FIRST) continue;
      while (slot < c.view.nslot && c.slot[slot].state != QK_SLOT_FREE) slot++;
      if (slot < c.view.nslot) of[i] = slot++;
    }
    qk_place(&c.view, &p);
    for (int i = 0; i < p.n && !p.single; i++)
      cr_expect_eq(p.slot[i], of[p.entry[i]], "case %d: slot %d", k, p.slot[i]);
    taken += p.n;
  }
  cr_expect_gt(taken, CASES);
}

/* Of the slots of a tile; free ones do not count. */
static int count_flavour(const int8_t flavour[], int nslot, int slot, int of) {
  int n = 0;
  for (int s = slot - slot % QK_TILE; s < nslot && s / QK_TILE == slot / QK_TILE; s++)
    n += flavour[s] == of;
  return n;
}

static int worth(const int8_t flavour[], int nslot, int slot, int of) {
  if (count_flavour(flavour, nslot, slot, of) > 0) return 2;
  return count_flavour(flavour, nslot, slot, -of) == 0;
}

Test(placement, while_there_are_both_flavours_tiles_keep_to_one_where_they_can) {
  uint64_t seed = 13;
  int apart = 0;
  for (int k = 0; k < CASES; k++) {
    random_case_t c;
    qk_placement_t p, again;
    int8_t flavour[QK_SLOTS_MAX];
    make_case(&seed, &c);
    for (int i = 0; i < c.view.nwaiting; i++) c.waiting[i].ready = true;
    make_flavours(&seed, &c, 0);
    c.view.single = NULL;
    qk_place(&c.view, &p);
    check_placement(&c, &p, k);
    qk_place(&c.view, &again);
    cr_expect(p.n == again.n && memcmp(p.slot, again.slot, (size_t)p.n * sizeof *p.slot) == 0);
    unsigned both = 0;
    for (int s = 0; s < c.view.nslot; s++) {
      flavour[s] = c.slot[s].state == QK_SLOT_FREE ? 0 : c.flavour[s];
      both |= flavour[s] > 0 ? 1 : flavour[s] < 0 ? 2 : 0;
    }
    for (int i = 0; i < c.view.nwaiting; i++) both |= c.waiting[i].flavour > 0 ? 1 : 2;
    if (both != 3 || p.n < c.view.nwaiting) continue; /* those that wait keep their places, too */
    for (int i = 0; i < p.n; i++) {
      const int of = c.waiting[p.entry[i]].flavour;
      const int got = worth(flavour, c.view.nslot, p.slot[i], of);
      for (int s = 0; s < c.view.nslot; s++) {
        if (flavour[s] != 0 || s == p.slot[i]) continue;
        const int other = worth(flavour, c.view.nslot, s, of);
        cr_expect(other < got || (other == got && s > p.slot[i]), "case %d: slot %d, not %d", k,
                  p.slot[i], s);
      }
      flavour[p.slot[i]] = (int8_t)of;
      apart += got > 0;
    }
  }
  cr_expect_gt(apart, CASES / 10);
}

Test(placement, a_free_slot_has_the_flavour_of_its_tile) {
  int8_t flavour[20] = {-1};
  cr_expect_eq(qk_place_idle_flavour(flavour, 20, 1), -1);
  cr_expect_eq(qk_place_idle_flavour(flavour, 20, 8), -1, "no other matrices are read at all");
  flavour[19] = 1;
  cr_expect_eq(qk_place_idle_flavour(flavour, 20, 7), -1);
  cr_expect_eq(qk_place_idle_flavour(flavour, 20, 18), 1);
  cr_expect_eq(qk_place_idle_flavour(flavour, 20, 8), 1, "both are there");
  flavour[2] = 1;
  cr_expect_eq(qk_place_idle_flavour(flavour, 20, 1), 1, "its tile has both");
  flavour[0] = flavour[2] = flavour[19] = 0;
  cr_expect_eq(qk_place_idle_flavour(flavour, 20, 1), 1, "nothing is solved");
}
