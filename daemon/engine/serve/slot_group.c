#include "daemon/engine/serve/slot_group.h"

/* True if a slot will soon end a solve to that tolerance; last: the last ended solve. Others
 * take a little longer, or less. */
static bool ends_soon(const qk_slot_t *column, const qk_slot_t *last, double tol) {
  if (column->state == QK_SLOT_ENDED) return true;
  if (column->tol != tol || last->tol != tol || last->status != QK_OK) return false;
  const int64_t left = last->iterations - column->iterations;
  return -last->iterations / 8 <= left && left <= last->iterations / 4;
}

bool qk_slot_group_waits(const qk_slot_t *const column[], int ncolumn, const qk_beginning_t *b) {
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

int qk_slot_group_leave(int n, int room, int most) {
  if (n <= room) return n;
  return room == most ? room : 0;
}
