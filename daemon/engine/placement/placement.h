/*
 * placement.h: which right-hand sides take which slots, and when. Policy without effects.
 *
 * RHS take free slots by ascending order, then as they came; one whose source is still under way
 * is passed over. An RHS that finds the engine idle goes to the single-RHS solver, if there is one
 * and it may.
 *
 * Flavours: coarse matrices are read once for a tile of slots (QK_TILE) that all have the same
 * flavour, and twice for one that has both. So while there are both, an RHS takes the first free
 * slot of a tile that has its flavour, else of an empty one, else any; and free slots have the
 * flavour of the others. With one flavour alone it is always the first free slot.
 *
 * Slot groups: the slots of a GPU's tile stand in pieces of 16 bytes, four of them in the 64 that
 * its memory is read by. Reading what one slot needs alone, directions of a run that the others do
 * not have and the sum of a run, costs as much as reading it for four: 6 % of a solve if all began
 * at different times (docs/performance.md). So RHS wait for a moment to begin together; those that
 * are solved to the same tolerance then end together, or nearly, and so do the next four begin.
 */
#ifndef QK_ENGINE_PLACEMENT_H
#define QK_ENGINE_PLACEMENT_H

#include "daemon/engine/krylov/solver.h"
#include "proto/fill_hint.h"
#include "proto/limits.h"

/* An RHS that has no slot yet. */
typedef struct qk_waiting {
  int entry; /* the caller's name of it */
  /* QK_ORDER_FIRST: a slot is kept for it while its source arrives, and it waits for no others */
  uint64_t order;
  double tol;      /* of the residual alone; 0: it ends by another one */
  int flavour;     /* 1 or -1 */
  bool batch_only; /* not for the single-RHS solver */
  bool staged;     /* its source, or what that is made of, comes through a staging buffer ... */
  bool arriving;   /* ... and is under way; */
  bool ready;      /* ... or is here. True if it is not staged */
} qk_waiting_t;

typedef struct qk_placement_view {
  const qk_slot_t *const *slot; /* [nslot], at most QK_SLOTS_MAX; of a free one what it was last */
  const qk_slot_t *single;      /* of the single-RHS solver; NULL: there is none */
  const qk_waiting_t *waiting;  /* [nwaiting], by order, then as they came */
  int nslot, nwaiting;
  const int8_t *flavour; /* [nslot] of what is in a slot, 1 or -1; 0: nothing */
} qk_placement_view_t;

typedef struct qk_placement {
  int n;
  int entry[QK_SLOTS_MAX], slot[QK_SLOTS_MAX];
  bool single; /* the only entry goes to the single-RHS solver, its slot 0 */
} qk_placement_t;

/* Which RHS begin now. While nothing is solved, staged ones wait for those whose sources are under
 * way: no iteration is lost. Else one that is ready waits if sources under way fill the free slots
 * of its group; or, if more wait than slots are free, if an RHS of its group has ended or will end
 * before a quarter of a solve is over, by the iterations of the last solve to the same tolerance in
 * its slot (or should have ended, and is at most an eighth late). */
void qk_place(const qk_placement_view_t *view, qk_placement_t *placement);

/* Which flavour a free slot is to have, so that no matrices are read for it: that of its tile, else
 * of all slots, else 1. flavour as above. */
int qk_place_idle_flavour(const int8_t flavour[], int nslot, int slot);

/* What has come of the front's backlog when a round could begin. */
typedef struct qk_arrivals {
  bool idle;        /* nothing was in flight before */
  int fills;        /* that have come since the last round */
  int hungry;       /* free slots for which no RHS waited before */
  int freed;        /* entries that the last round has freed */
  uint32_t backlog; /* as the last FILL stated it */
} qk_arrivals_t;

/* How many FILLs the round waits for. If nothing is in flight, as many as fill the slots, once the
 * first is there: an RHS that begins alone costs as much as a block. Else those that take the
 * entries which have become free, if they find free slots: a step without them costs as much as
 * one with them. Never more than the backlog. */
int qk_place_awaited(const qk_arrivals_t *arrivals);

/* An RHS that has ended and still has its slot. */
typedef struct qk_ended {
  int entry;
  int slot;          /* QK_SLOT_SINGLE: of the single-RHS solver */
  bool needs_buffer; /* its solution leaves through a staging buffer */
} qk_ended_t;
enum { QK_SLOT_SINGLE = -1 };

/* Which of n RHS leave their slots now: entry[0 .. result). Those of a slot group that need a
 * buffer leave together; if fewer than they are free, none of them leaves before all `buffers` are
 * free. n: at most QK_SLOTS_MAX + 1. */
int qk_place_leave(const qk_ended_t ended[], int n, int free_buffers, int buffers, int entry[]);

#endif
