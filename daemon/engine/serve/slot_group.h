/*
 * slot_group.h: which slots of the batch begin, and end, together. Pure policy.
 *
 * The columns of a GPU's tile are in pieces of 16 bytes, four of them in the 64 bytes of a memory
 * access. Reading data of one column alone (directions of a run that the others do not have, the
 * sum of a run) costs as much as reading four: 6 % of a solve if all began at different times
 * (docs/performance.md, "Slot groups"). So four slots do best to begin together; solved to the same
 * tolerance they end almost together, and the next four begin together.
 */
#ifndef QK_ENGINE_SLOT_GROUP_H
#define QK_ENGINE_SLOT_GROUP_H

#include "daemon/engine/krylov/solver.h"

enum { QK_SLOT_GROUP = 4 };

/* The state when an RHS could begin. */
typedef struct qk_beginning {
  int column; /* free */
  double tol;
  int beginning; /* RHS that could begin in slots of this group, including this one */
  int coming;    /* sources that are under way */
  bool crowded;  /* more RHS wait than slots are free */
} qk_beginning_t;

/* True if the RHS should wait for its slot group: sources under way will fill it; or slots are
 * scarce and one of the group ends within 25 % of a solve (or is at most 12.5 % overdue),
 * estimated from the last solve to the same tolerance. column: [ncolumn]; for a free slot the
 * state of its last solve. */
bool qk_slot_group_waits(const qk_slot_t *const column[], int ncolumn, const qk_beginning_t *b);

/* How many of n ended slots of a group leave now, if `room` of `most` buffers are free: all; or
 * none while buffers are being freed; or as many as there are buffers. */
int qk_slot_group_leave(int n, int room, int most);

#endif
