/*
 * report.h: how the daemon is: the StatusReport of quark.proto, for STATUS and for the page.
 */
#ifndef QK_FRONT_REPORT_H
#define QK_FRONT_REPORT_H

#include "daemon/front/service/eigen.h"

enum { QK_SLOTS_SHOWN = 2 * QK_ENTRIES };

/* The root is `status`. Points into the service: good until the loop goes on. */
typedef struct qk_report {
  Quark__StatusReport status;
  Quark__SetupReport setup;
  Quark__StartClock clock[QK_START_CLOCKS_MAX], *clock_list[QK_START_CLOCKS_MAX];
  Quark__EigenReport eigen[QK_EIGEN_NAMES_MAX], *eigen_list[QK_EIGEN_NAMES_MAX];
  uint32_t eigen_block[QK_EIGEN_NAMES_MAX][4];
  Quark__EngineReport engine;
  Quark__ReplicaReport replica[QK_REPLICAS_MAX], *replica_list[QK_REPLICAS_MAX];
  char device[QK_REPLICAS_MAX][160];
  Quark__CounterReport counters;
  Quark__ActivityReport activity;
  Quark__OccupancyReport occupancy;
  Quark__SlotReport slot[QK_SLOTS_SHOWN], *slot_list[QK_SLOTS_SHOWN];
  const qk_curve_t *curve[QK_SLOTS_SHOWN]; /* of each in the list; NULL: it has none */
  Quark__UserReport user[QK_USERS_SHOWN], *user_list[QK_USERS_SHOWN];
  char name[QK_SLOTS_SHOWN + QK_USERS_SHOWN][QK_USER_MAX + 1];
  int names;
  Quark__SetupState setup_state[QK_SETUPS_MAX], *setup_list[QK_SETUPS_MAX];
} qk_report_t;

/* Report of this setup and of the daemon, with the setups that the viewer sees. activity: with
 * slots and at most QK_USERS_SHOWN users. */
void qk_report_make(const qk_setup_t *setup, const qk_viewer_t *viewer, bool activity,
                    qk_report_t *report);
/* Right-hand sides and contractions that wait for a slot of the setup. */
uint64_t qk_report_queued(const qk_setup_t *setup);
void qk_report_counters(const qk_service_t *service, Quark__CounterReport *report);
/* One of the setups. Points into it. */
void qk_report_setup(const qk_setup_t *setup, Quark__SetupState *report);

#endif
