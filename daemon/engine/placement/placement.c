#include "daemon/engine/placement/placement.h"

/* ---- in -------------------------------------------------------------------------------------- */

/* An RHS that can begin, and the free slot that it would take. */
typedef struct candidate {
  const qk_waiting_t *rhs;
  int slot;
} candidate_t;

typedef struct candidates {
  int n;
  candidate_t at[QK_SLOTS_MAX];
} candidates_t;

static int count_slots(const qk_placement_view_t *view, qk_slot_state_t state) {
  int n = 0;
  for (int s = 0; s < view->nslot; s++) n += view->slot[s]->state == state;
  return n;
}

static int count_arriving(const qk_placement_view_t *view) {
  int n = 0;
  for (int k = 0; k < view->nwaiting; k++) n += view->waiting[k].arriving;
  return n;
}

static bool is_idle(const qk_placement_view_t *view) {
  if (view->single && view->single->state == QK_SLOT_RUNNING) return false;
  return count_slots(view, QK_SLOT_RUNNING) == 0;
}

/* Bit 0: some of n slots have flavour 1; bit 1: some have -1. */
enum { PLUS = 1, MINUS = 2, BOTH = 3 };

static unsigned bit_of(int flavour) {
  return flavour > 0 ? PLUS : flavour < 0 ? MINUS : 0;
}

static unsigned flavours_in(const int8_t flavour[], int first, int end) {
  unsigned bits = 0;
  for (int s = first; s < end; s++) bits |= bit_of(flavour[s]);
  return bits;
}

static unsigned flavours_of_tile(const int8_t flavour[], int nslot, int slot) {
  const int first = slot - slot % QK_TILE, end = first + QK_TILE;
  return flavours_in(flavour, first, end < nslot ? end : nslot);
}

/* What it costs to put a flavour into a slot: 0: its tile has it; 1: the tile is empty; 2: its
 * matrices would be read twice. */
static int cost_of(const int8_t flavour[], int nslot, int slot, int of) {
  const unsigned bits = flavours_of_tile(flavour, nslot, slot);
  return bits & bit_of(of) ? 0 : bits == 0 ? 1 : 2;
}

/* The free slot for a flavour: the first; while there are both, the first of those that cost least.
 * -1: none is free. */
static int find_slot(const int8_t flavour[], int nslot, bool both, int of) {
  int best = -1, least = 3;
  for (int s = 0; s < nslot && least > 0; s++) {
    if (flavour[s] != 0) continue;
    const int cost = both ? cost_of(flavour, nslot, s, of) : 0;
    if (cost >= least) continue;
    best = s;
    least = cost;
  }
  return best;
}

static bool has_both_flavours(const qk_placement_view_t *view, const int8_t flavour[]) {
  unsigned bits = flavours_in(flavour, 0, view->nslot);
  for (int k = 0; k < view->nwaiting; k++) bits |= bit_of(view->waiting[k].flavour);
  return bits == BOTH;
}

/* Gives free slots to those that are ready, and keeps some for those that come first. */
static void find_candidates(const qk_placement_view_t *view, candidates_t *candidates) {
  int8_t flavour[QK_SLOTS_MAX];
  for (int s = 0; s < view->nslot; s++)
    flavour[s] = view->slot[s]->state == QK_SLOT_FREE ? 0 : view->flavour[s];
  const bool both = has_both_flavours(view, flavour);
  candidates->n = 0;
  for (int k = 0; k < view->nwaiting; k++) {
    const qk_waiting_t *rhs = &view->waiting[k];
    if (!rhs->ready && rhs->order != QK_ORDER_FIRST) continue;
    const int slot = find_slot(flavour, view->nslot, both, rhs->flavour);
    if (slot < 0) return;
    if (rhs->ready) candidates->at[candidates->n++] = (candidate_t){rhs, slot};
    flavour[slot] = (int8_t)rhs->flavour;
  }
}

int qk_place_idle_flavour(const int8_t flavour[], int nslot, int slot) {
  unsigned bits = flavours_of_tile(flavour, nslot, slot);
  if (bits != PLUS && bits != MINUS) bits = flavours_in(flavour, 0, nslot);
  return bits == MINUS ? -1 : 1;
}

/* True if the RHS in slot s ends soon, by what the solve before, `last`, took. */
static bool ends_soon(const qk_slot_t *s, const qk_slot_t *last, double tol) {
  if (s->state == QK_SLOT_ENDED) return true;
  if (s->stopping.tol != tol || last->stopping.tol != tol || last->status != QK_OK) return false;
  if (qk_stopping_asks_more(&s->stopping) || qk_stopping_asks_more(&last->stopping)) return false;
  const int64_t left = last->iterations - s->iterations;
  return -last->iterations / 8 <= left && left <= last->iterations / 4;
}

/* True if the candidate should wait to begin with others of its slot group. */
static bool waits_for_group(const qk_placement_view_t *view, const candidates_t *candidates,
                            const candidate_t *c) {
  const bool crowded = view->nwaiting > count_slots(view, QK_SLOT_FREE);
  const int first = c->slot - c->slot % QK_SLOT_GROUP;
  int left_free = 0;
  for (int s = first; s < first + QK_SLOT_GROUP && s < view->nslot; s++) {
    if (view->slot[s]->state == QK_SLOT_FREE)
      left_free++;
    else if (crowded && ends_soon(view->slot[s], view->slot[c->slot], c->rhs->tol))
      return true;
  }
  for (int k = 0; k < candidates->n; k++)
    left_free -= candidates->at[k].slot / QK_SLOT_GROUP == c->slot / QK_SLOT_GROUP;
  return left_free > 0 && count_arriving(view) >= left_free;
}

static bool waits(const qk_placement_view_t *view, const candidates_t *candidates,
                  const candidate_t *c) {
  if (is_idle(view)) return c->rhs->staged && count_arriving(view) > 0;
  return c->rhs->order != QK_ORDER_FIRST && waits_for_group(view, candidates, c);
}

void qk_place(const qk_placement_view_t *view, qk_placement_t *placement) {
  candidates_t candidates;
  find_candidates(view, &candidates);
  placement->n = 0;
  for (int k = 0; k < candidates.n; k++) {
    if (waits(view, &candidates, &candidates.at[k])) continue;
    placement->entry[placement->n] = candidates.at[k].rhs->entry;
    placement->slot[placement->n++] = candidates.at[k].slot;
  }
  placement->single = view->nwaiting == 1 && placement->n == 1 && view->single &&
                      !view->waiting[0].batch_only && view->single->state == QK_SLOT_FREE &&
                      count_slots(view, QK_SLOT_FREE) == view->nslot;
  if (placement->single) placement->slot[0] = 0;
}

int qk_place_awaited(const qk_arrivals_t *arrivals) {
  int wanted = arrivals->hungry;
  if (arrivals->idle && arrivals->fills == 0) return 0;
  if (!arrivals->idle && arrivals->freed < wanted) wanted = arrivals->freed;
  const int missing = wanted - arrivals->fills;
  if (missing <= 0) return 0;
  return arrivals->backlog < (uint32_t)missing ? (int)arrivals->backlog : missing;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* The slots of the single-RHS solver are a group of their own. */
static int group_of(int slot) {
  return slot == QK_SLOT_SINGLE ? -1 : slot / QK_SLOT_GROUP;
}

/* Those of one group, appended to the n that leave. */
static int leave_group(const qk_ended_t ended[], int nended, int group, int *free_buffers,
                       int buffers, int entry[], int n) {
  int with[QK_SLOT_GROUP], nwith = 0;
  for (int k = 0; k < nended; k++) {
    if (group_of(ended[k].slot) != group) continue;
    if (ended[k].needs_buffer)
      with[nwith++] = ended[k].entry;
    else
      entry[n++] = ended[k].entry;
  }
  if (nwith > *free_buffers) nwith = *free_buffers == buffers ? buffers : 0;
  for (int k = 0; k < nwith; k++) entry[n++] = with[k];
  *free_buffers -= nwith;
  return n;
}

int qk_place_leave(const qk_ended_t ended[], int n, int free_buffers, int buffers, int entry[]) {
  int leaving = 0, groups = 0;
  for (int k = 0; k < n; k++)
    if (group_of(ended[k].slot) >= groups) groups = group_of(ended[k].slot) + 1;
  for (int g = -1; g < groups; g++)
    leaving = leave_group(ended, n, g, &free_buffers, buffers, entry, leaving);
  return leaving;
}
