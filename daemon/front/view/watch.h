/*
 * watch.h: what the page of --http shows, as JSON: the StatusReport of quark.proto with its activity, and
 *
 *   "curves"   for each entry of activity.slot: [iterations, log10 of the residual] ...
 *   "history"  {"columns": [...], "rows": [[...] ...]}, oldest first; "time" is seconds before now
 */
#ifndef QK_FRONT_WATCH_H
#define QK_FRONT_WATCH_H

struct qk_server;

/* At every tick. */
void qk_watch_tick(struct qk_server *server, double now);
/* Malloc'd; NULL: no memory. Half a second old at most: with all slots deep in long solves it takes tens of milliseconds to
 * make, however many look. */
char *qk_watch_json(struct qk_server *server);
void qk_watch_fini(struct qk_server *server);

#endif
