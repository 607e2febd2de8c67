/*
 * report.h: how the daemon is: the StatusReport of quark.proto, for STATUS and for the page.
 */
#ifndef QK_FRONT_REPORT_H
#define QK_FRONT_REPORT_H

#include "daemon/front/session.h"

struct qk_server;

/* Places in the engine: its slots, and the one of the contraction that it works on. */
enum { QK_CONTRACT_PLACE = QK_SEATS_MAX, QK_PLACES };

/* The root is `status`. Points into the server: good until the loop goes on. */
typedef struct qk_report {
  Quark__StatusReport status;
  Quark__SetupReport setup;
  Quark__EngineReport engine;
  Quark__CounterReport counters;
  Quark__ActivityReport activity;
  Quark__OccupancyReport occupancy;
  Quark__SlotReport slot[QK_PLACES], *slot_list[QK_PLACES];
  Quark__UserReport user[QK_USERS_SHOWN], *user_list[QK_USERS_SHOWN];
  char name[QK_PLACES + QK_USERS_SHOWN][QK_USER_MAX + 1];
  int names;
} qk_report_t;

/* activity: with slots and users, QK_USERS_SHOWN of them at most. */
void qk_report_make(const struct qk_server *server, bool activity, qk_report_t *report);
void qk_report_counters(const struct qk_server *server, Quark__CounterReport *report);
/* Users for whom a message has no room are left out, and counted. */
void qk_report_send(struct qk_server *server, const qk_peer_t *peer, bool activity);

#endif
