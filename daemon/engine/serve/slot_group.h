/*
 * slot_group.h: which columns of a block begin, and end, together. Policy without effects.
 *
 * The columns of a GPU's tile stand in pieces of 16 bytes, four of them in the 64 that its memory
 * is read by. What is read of one column alone, directions of a run that the others do not have
 * and the sum of a run, costs as much as of four: 6 % of a solve where all began at different
 * times (docs/performance.md, "Slot groups"). So four columns do best to begin together; solved to
 * the same tolerance they end together, or nearly, and the next four begin so, too.
 */
#ifndef QK_ENGINE_SLOT_GROUP_H
#define QK_ENGINE_SLOT_GROUP_H

#include "daemon/engine/krylov/solver.h"

enum { QK_SLOT_GROUP = 4 };

/* What could begin now. */
typedef struct qk_beginning {
  int column; /* free */
  double tol;
  int beginning; /* that could begin in slots of a group, this one counted */
  int coming;    /* sources that are on their way */
  bool crowded;  /* more wait than columns are free */
} qk_beginning_t;

/* Whether it does better to wait: for sources on their way where they fill the free slots of its
 * group; where it is crowded, for slots of its group that will have ended before a quarter of a
 * solve is over, by what the last solve to the same tolerance took here, or should have ended and
 * are not an eighth late. column: [ncolumn], of a free one what it was last. */
bool qk_slot_group_waits(const qk_slot_t *const column[], int ncolumn, const qk_beginning_t *b);

/* How many of n slots of a group that have ended leave now, with `room` of `most` buffers free:
 * all, or none while buffers come free, or as many as there are. */
int qk_slot_group_leave(int n, int room, int most);

#endif
