/*
 * server.h: the front as a whole: start, turns of the loop, ticks, draining, end. One thread owns
 * everything.
 */
#ifndef QK_FRONT_SERVER_H
#define QK_FRONT_SERVER_H

#include "daemon/front/host/http.h"
#include "daemon/front/host/notify.h"
#include "daemon/front/net/net.h"
#include "daemon/front/view/view.h"

typedef struct qk_server {
  qk_loop_t loop;
  uv_timer_t tick;
  qk_service_t service;
  qk_net_t net;
  qk_view_t view;
  qk_life_t life;
  void *zmq;
  qk_http_t *http; /* NULL: none */
  qk_notify_t notify;
  char program[4096];              /* quark-engine */
  char dir[108];                   /* private directory for ipc sockets */
  bool announced;                  /* the pid file is ours */
  int endpoint_fd;                 /* of the endpoint file; -1: none */
  char multigrid[QK_PATH_MAX + 1]; /* qk_checkpoint_claim */
  int multigrid_lock;              /* -1: none */
  double drain_until;
  bool ticked; /* leases are judged in this turn */
  double told; /* when SIGTERM or SIGINT last counted; 0: never */
  int exit_code;
} qk_server_t;

/* Opens the endpoints, starts the engine, serves until it is told to leave. settings are read again
 * on SIGHUP. The return value is the exit code: 0, 65 (the gauge file was refused), 69 (no engine,
 * endpoint or device), 75, 78. */
int qk_server_run(qk_server_t *server, qk_settings_t *settings);

/* Leaves at once: clients are told SHUTTING_DOWN. */
void qk_server_stop(qk_server_t *server, int exit_code);

#endif
