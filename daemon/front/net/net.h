/*
 * net.h: the clients of the daemon: sockets, connections, and messages to them.
 */
#ifndef QK_FRONT_NET_H
#define QK_FRONT_NET_H

#include "daemon/front/host/runtime.h"
#include "daemon/front/net/backlog.h"
#include "daemon/front/net/guests.h"
#include "daemon/front/net/outbox.h"
#include "daemon/front/net/peers.h"
#include "daemon/front/net/zap.h"
#include "daemon/front/service/service.h"
#include "daemon/front/wire/data_thread.h"

typedef struct qk_local qk_local_t; /* local.h */

/* Whose message is being served. */
typedef struct qk_asker {
  const qk_peer_t *peer; /* sender of the message that is being handled */
  int fd;                /* of its connection; -1: not known */
} qk_asker_t;

typedef struct qk_net {
  qk_service_t *service;
  void *zmq;       /* context; borrowed, as is dir */
  const char *dir; /* private directory for sockets */
  /* A client asks the daemon to end: now, or when its work is done. */
  void (*shutdown)(void *arg, bool now);
  void *shutdown_arg;
  void *control;
  qk_zsock_t control_sock;
  qk_data_thread_t data[QK_DATA_THREADS_MAX]; /* data sockets */
  int ndata, welcomes;                        /* of WELCOME, so far */
  qk_zap_t *zap;
  char endpoint[QK_ENDPOINT_MAX];                           /* as it is bound */
  char data_endpoint[QK_DATA_THREADS_MAX][QK_ENDPOINT_MAX]; /* as clients are told */
  qk_local_t *local;                                        /* NULL: none */
  const char *local_path;                                   /* likewise */
  qk_guests_t *guests;                                      /* NULL: connections are not watched */
  qk_peers_t peers;
  qk_asker_t asker;
  qk_outbox_t outbox;
  qk_backlog_t backlog;
  qk_link_t downloads; /* right-hand sides with something to send, taking turns */
  qk_link_t paused;    /* those that wait for `retry`, because their clients do not read */
  uv_timer_t retry;
  bool pausing;
  uint64_t pause; /* number of the pause that is going on or comes next */
  bool owes;      /* messages are pending for requests: reply.c */
  bool rest;      /* more parts are left of a control message of which everything needed was read */
  qk_job_events_t events;
} qk_net_t;

/* What clients of the service are told goes by net from now on. The rest of *net is zeros, but for
 * what the caller sets: zmq, dir, shutdown. */
void qk_net_init(qk_net_t *net, qk_service_t *service);
/* Opens and binds the sockets, on the service's loop. Errors: as of router.h, zap.h and local.h. */
qk_status_t qk_net_open(qk_net_t *net, qk_err_t *err);
/* Every tick. now: seconds of the loop's clock. */
void qk_net_tick(qk_net_t *net, double now);
/* At the end of a turn: sends the pending messages, and some chunks unless `stopping`. True
 * while more could be sent now. */
bool qk_net_turn(qk_net_t *net, bool stopping);
/* Before the loop ends: nothing is received or sent any more. */
void qk_net_close(qk_net_t *net);
/* After it. */
void qk_net_fini(qk_net_t *net);

#endif
