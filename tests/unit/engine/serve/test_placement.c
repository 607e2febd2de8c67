/* Which right-hand sides take which slots, and which leave. */
#include <criterion/criterion.h>

#include "daemon/engine/serve/placement.h"

enum { NSLOT = 6, CASES = 100000 };

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
                             .tol = 1e-8,
                             .iterations = at[s] < 0 ? 40 : at[s]};
    b->at[s] = &b->slot[s];
  }
}

static qk_waiting_t ready(void) {
  return (qk_waiting_t){.order = 1, .tol = 1e-8, .staged = true, .ready = true};
}

static qk_waiting_t arriving(void) {
  return (qk_waiting_t){.order = 1, .tol = 1e-8, .staged = true, .arriving = true};
}

static void add(block_t *b, qk_waiting_t what) {
  what.entry = 10 + b->nwaiting;
  b->waiting[b->nwaiting++] = what;
}

static qk_placement_t place(const block_t *b) {
  qk_placement_t placement;
  qk_place(
      &(qk_placement_view_t){
          .slot = b->at, .waiting = b->waiting, .nslot = NSLOT, .nwaiting = b->nwaiting},
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
  b.slot[2].tol = 1e-6;
  cr_expect_eq(begin(&b), 1, "with one to another tolerance");
  b.slot[2].tol = 1e-8;
  b.slot[1].tol = 1e-6;
  cr_expect_eq(begin(&b), 1, "the last one in its slot was to another tolerance");
  b.slot[1].tol = 1e-8;
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
  qk_placement_view_t view = {
      .slot = b.at, .single = &single, .waiting = b.waiting, .nslot = NSLOT, .nwaiting = 1};
  qk_place(&view, &p);
  cr_expect(p.single && p.n == 1 && p.slot[0] == 0 && p.entry[0] == 10);
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
  qk_placement_view_t view;
} random_case_t;

static qk_slot_t random_slot(uint64_t *seed, bool idle) {
  static const double tol[] = {1e-8, 1e-8, 1e-8, 1e-6};
  const int state = idle ? 0 : below(seed, 7);
  return (qk_slot_t){.state = state < 3   ? QK_SLOT_FREE
                              : state < 6 ? QK_SLOT_RUNNING
                                          : QK_SLOT_ENDED,
                     .status = below(seed, 8) ? QK_OK : QK_CANCELLED,
                     .tol = tol[below(seed, 4)],
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
  }
  c->single = random_slot(seed, idle && below(seed, 3));
  c->view = (qk_placement_view_t){.slot = c->at,
                                  .single = below(seed, 2) ? &c->single : NULL,
                                  .waiting = c->waiting,
                                  .nslot = nslot,
                                  .nwaiting = n < QK_INFLIGHT_MAX ? n : QK_INFLIGHT_MAX};
  for (int k = 0; k < c->view.nwaiting; k++) {
    const int at = made ? 2 : below(seed, 5); /* of its source */
    c->waiting[k] = (qk_waiting_t){.entry = k,
                                   .order = k < first ? QK_ORDER_FIRST : 1,
                                   .tol = below(seed, 4) ? 1e-8 : 1e-6,
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

/* ---- the policy before ----------------------------------------------------------------------- */

/* What could begin now. */
typedef struct qk_beginning {
  int column; /* free */
  double tol;
  int beginning; /* that could begin in slots of a group, this one counted */
  int coming;    /* sources that are on their way */
  bool crowded;  /* more wait than columns are free */
} qk_beginning_t;

/* Whether a column ends a solve to that tolerance before long; last: of one that has been solved. Others take a little longer,
 * or less. */
static bool ends_soon(const qk_slot_t *column, const qk_slot_t *last, double tol) {
  if (column->state == QK_SLOT_ENDED) return true;
  if (column->tol != tol || last->tol != tol || last->status != QK_OK) return false;
  const int64_t left = last->iterations - column->iterations;
  return -last->iterations / 8 <= left && left <= last->iterations / 4;
}

static bool qk_slot_group_waits(const qk_slot_t *const column[], int ncolumn,
                                const qk_beginning_t *b) {
  const int first = b->column - b->column % QK_SLOT_GROUP;
  int room = -b->beginning;
  for (int c = first; c < first + QK_SLOT_GROUP && c < ncolumn; c++) {
    if (column[c]->state == QK_SLOT_FREE)
      room++;
    else if (b->crowded && ends_soon(column[c], column[b->column], b->tol))
      return true;
  }
  return room > 0 && b->coming >= room;
}

static int qk_slot_group_leave(int n, int room, int most) {
  if (n <= room) return n;
  return room == most ? room : 0;
}

/* Of slots.c, as it was, on a view. */
typedef struct group {
  int n, slot[QK_SLOTS_MAX], column[QK_SLOTS_MAX];
  bool single;
} group_t;

static bool column_is_free(const random_case_t *c, int column) {
  return c->slot[column].state == QK_SLOT_FREE;
}

static int free_columns(const random_case_t *c) {
  int n = 0;
  for (int i = 0; i < c->view.nslot; i++) n += column_is_free(c, i);
  return n;
}

static int coming(const random_case_t *c) {
  int n = 0;
  for (int k = 0; k < c->view.nwaiting; k++) n += c->waiting[k].arriving;
  return n;
}

static bool solving(const random_case_t *c) {
  int n = 0;
  for (int i = 0; i < c->view.nslot; i++) n += c->slot[i].state == QK_SLOT_RUNNING;
  return n + (c->view.single ? c->single.state == QK_SLOT_RUNNING : 0) > 0;
}

static int count_solving(const random_case_t *c) {
  int n = 0;
  for (int i = 0; i < c->view.nslot; i++) n += c->slot[i].state != QK_SLOT_FREE;
  return n + (c->view.single ? c->single.state != QK_SLOT_FREE : 0);
}

static bool waits(const random_case_t *c, const group_t *ready, int k) {
  const qk_waiting_t *slot = &c->waiting[ready->slot[k]];
  if (!solving(c)) return slot->staged && coming(c) > 0;
  if (slot->order == QK_ORDER_FIRST) return false;
  const qk_slot_t *column[QK_SLOTS_MAX];
  qk_beginning_t b = {.column = ready->column[k],
                      .tol = slot->tol,
                      .coming = coming(c),
                      .crowded = c->view.nwaiting > free_columns(c)};
  for (int i = 0; i < c->view.nslot; i++) column[i] = &c->slot[i];
  for (int j = 0; j < ready->n; j++)
    b.beginning += ready->column[j] / QK_SLOT_GROUP == b.column / QK_SLOT_GROUP;
  return qk_slot_group_waits(column, c->view.nslot, &b);
}

static void choose(const random_case_t *c, group_t *group) {
  group_t ready = {0};
  int column = 0;
  for (int k = 0; k < c->view.nwaiting; k++) {
    const bool has_source = c->waiting[k].ready;
    if (!has_source && c->waiting[k].order != QK_ORDER_FIRST) continue;
    while (column < c->view.nslot && !column_is_free(c, column)) column++;
    if (column == c->view.nslot) break;
    if (has_source) {
      ready.slot[ready.n] = k;
      ready.column[ready.n++] = column;
    }
    column++;
  }
  *group = (group_t){0};
  for (int k = 0; k < ready.n; k++) {
    if (waits(c, &ready, k)) continue;
    group->slot[group->n] = ready.slot[k];
    group->column[group->n++] = ready.column[k];
  }
  if (c->view.single != NULL && c->view.nwaiting == 1 && group->n == 1 && count_solving(c) == 0) {
    group->single = true;
    group->column[0] = 0;
  }
}

Test(placement, chooses_as_the_policy_before) {
  uint64_t seed = 11;
  for (int k = 0; k < CASES; k++) {
    random_case_t c;
    qk_placement_t p;
    group_t g;
    make_case(&seed, &c);
    qk_place(&c.view, &p);
    choose(&c, &g);
    cr_assert(p.n == g.n && p.single == g.single, "case %d: %d %d, %d %d", k, p.n, g.n, p.single,
              g.single);
    for (int i = 0; i < p.n; i++)
      cr_assert(p.entry[i] == g.slot[i] && p.slot[i] == g.column[i], "case %d", k);
  }
}

/* Entries in the order of their numbers. */
typedef struct leaving_case {
  qk_ended_t ended[QK_SLOTS_MAX + 1];
  int n, nslot, room, most;
} leaving_case_t;

static int join(const leaving_case_t *c, bool single, int first, int end, int *room, int leaving[],
                int n) {
  int with[QK_SLOT_GROUP] = {0}, nwith = 0;
  for (int i = 0; i < c->n; i++) {
    const qk_ended_t *e = &c->ended[i];
    if ((e->slot == QK_SLOT_SINGLE) != single) continue;
    if (!single && (e->slot < first || e->slot >= end)) continue;
    if (e->needs_buffer)
      with[nwith++] = e->entry;
    else
      leaving[n++] = e->entry;
  }
  nwith = qk_slot_group_leave(nwith, *room, c->most);
  for (int k = 0; k < nwith; k++) leaving[n++] = with[k];
  *room -= nwith;
  return n;
}

static void make_leaving(uint64_t *seed, leaving_case_t *c) {
  const int part = 1 + below(seed, 3);
  c->nslot = 1 + below(seed, QK_SLOTS_MAX);
  c->most = below(seed, 17);
  c->room = c->most ? below(seed, c->most + 1) : 0;
  c->n = 0;
  for (int s = -1; s < c->nslot; s++)
    if (below(seed, 3) < part)
      c->ended[c->n++] = (qk_ended_t){.slot = s, .needs_buffer = c->most > 0 && below(seed, 4)};
  for (int i = 0; i < c->n; i++) { /* entries are not in the order of slots */
    const int j = i + below(seed, c->n - i);
    const qk_ended_t t = c->ended[i];
    c->ended[i] = c->ended[j];
    c->ended[j] = t;
    c->ended[i].entry = i;
  }
}

Test(placement, lets_leave_as_the_policy_before) {
  uint64_t seed = 13;
  for (int k = 0; k < CASES; k++) {
    leaving_case_t c;
    int before[QK_SLOTS_MAX + 1], now[QK_SLOTS_MAX + 1];
    make_leaving(&seed, &c);
    int room = c.room, n = join(&c, true, 0, 1, &room, before, 0);
    for (int s = 0; s < c.nslot; s += QK_SLOT_GROUP)
      n = join(&c, false, s, s + QK_SLOT_GROUP, &room, before, n);
    cr_assert_eq(qk_place_leave(c.ended, c.n, c.room, c.most, now), n, "case %d", k);
    for (int i = 0; i < n; i++) cr_assert_eq(before[i], now[i], "case %d", k);
  }
}
