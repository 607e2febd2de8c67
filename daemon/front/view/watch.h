/*
 * watch.h: what the page of --http shows, as JSON: the StatusReport of quark.proto with its activity, and
 *
 *   "curves"   for each entry of activity.slot: [iterations, log10 of the residual] ...
 *   "history"  {"columns": [...], "rows": [[...] ...]}, oldest first; "time" is seconds before now
 */
#ifndef QK_FRONT_WATCH_H
#define QK_FRONT_WATCH_H

#include "daemon/front/view/view.h"

/* At every tick. */
void qk_watch_tick(qk_view_t *view, double now);
/* Malloc'd; NULL: no memory. Half a second old at most: with all slots deep in long solves it takes tens of milliseconds to
 * make, however many look. */
char *qk_watch_json(qk_view_t *view);
void qk_watch_fini(qk_view_t *view);

#endif
