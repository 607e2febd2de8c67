/*
 * watch.h: data of the status page of --http as JSON: the StatusReport of quark.proto with its
 * activity, and
 *
 *   "curves"   for each entry of activity.slot: [iterations, log10 of the residual] ...
 *   "history"  {"columns": [...], "rows": [[...] ...]}, oldest first; "time" is seconds before now
 */
#ifndef QK_FRONT_WATCH_H
#define QK_FRONT_WATCH_H

#include "daemon/front/view/view.h"

/* At every tick. */
void qk_watch_tick(qk_view_t *view, double now);
/* Malloc'd; NULL: no memory. At most half a second old: with all slots in long solves it takes
 * tens of milliseconds to make, so it is shared by all readers. */
char *qk_watch_json(qk_view_t *view);
void qk_watch_fini(qk_view_t *view);

#endif
