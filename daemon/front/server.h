/*
 * server.h: the front as a whole, for the files that make it up. One thread owns everything here.
 */
#ifndef QK_FRONT_SERVER_H
#define QK_FRONT_SERVER_H

#include <zmq.h>

#include "daemon/base/room.h"
#include "daemon/front/engines/mount.h"
#include "daemon/front/host/http.h"
#include "daemon/front/host/notify.h"
#include "daemon/front/host/runtime.h"
#include "daemon/front/job/events.h"
#include "daemon/front/job/keep.h"
#include "daemon/front/job/session.h"
#include "daemon/front/job/stats.h"
#include "daemon/front/net/backlog.h"
#include "daemon/front/net/guests.h"
#include "daemon/front/net/outbox.h"
#include "daemon/front/net/peers.h"
#include "daemon/front/net/zap.h"
#include "daemon/front/storage/files.h"
#include "daemon/front/view/report.h"

enum { QK_CHUNKS_A_TURN = 16 };

typedef struct qk_counters {
  uint64_t accepted, rejected, converged, failed, cancelled, lost, contracted;
  uint64_t redone; /* put back into the queue when an engine was lost */
  uint64_t iterations, applications, bytes_in, bytes_out, dropped;
  uint64_t denied;      /* messages over the role of their sender */
  uint64_t bytes_local; /* of bytes_in and bytes_out */
} qk_counters_t;

/* Whose message is being served. */
typedef struct qk_asker {
  const qk_peer_t *peer; /* NULL: none is */
  int fd;                /* of its connection; -1: not known */
} qk_asker_t;

typedef struct qk_server {
  qk_settings_t *settings;
  char program[4096]; /* quark-engine */
  char dir[108];      /* private directory for ipc sockets */
  char data_endpoint[QK_ENDPOINT_MAX];
  qk_loop_t loop;
  uv_timer_t tick, retry;
  bool loop_ready;
  bool announced; /* the pid file is ours */
  void *zmq, *control, *data;
  qk_zsock_t control_sock, data_sock;
  qk_zap_t *zap;
  qk_mount_t *mount[QK_SETUPS_MAX]; /* by lane; NULL: free */
  qk_mount_t *primary;              /* of them the one that requests without a name are for */
  int mounts;                       /* made so far */
  qk_sessions_t sessions;
  qk_peers_t peers;
  qk_link_t orphans;   /* jobs without a session, waiting for their slots and holders */
  qk_link_t leaving;   /* jobs of which all that is open ends, in parts */
  qk_link_t downloads; /* right-hand sides with something to send, taking turns */
  qk_sched_t sched;
  qk_budget_t budget;
  char memory_by[QK_ROOM_PATH]; /* what sets its limit */
  qk_room_t room;               /* what there was at room_at, seconds of the loop's clock */
  double room_at;
  qk_counters_t count;
  qk_stats_t stats;
  qk_http_t *http;        /* NULL: none */
  struct qk_local *local; /* local.h; NULL: none */
  qk_history_t history;   /* where there is HTTP */
  char *watched;          /* the last /status.json; NULL: none was asked for */
  double watched_at;
  qk_notify_t notify;
  int lock;        /* of the state folder; -1: none */
  int endpoint_fd; /* likewise, of the endpoint file */
  qk_shm_space_t space;
  qk_spool_t *spool; /* NULL without --state, so is the journal */
  int64_t promised;  /* bytes that accepted uploads will still take of it */
  qk_journal_t *journal;
  qk_spill_t *spill; /* likewise */
  double spool_at;   /* when uploads that could not be spooled are tried again; 0: there are none */
  qk_aside_t aside;  /* nothing without --state */
  qk_files_t *files;
  qk_outbox_t outbox;
  qk_job_events_t events;                  /* net.h */
  const qk_worker_events_t *engine_events; /* of all setups */
  qk_asker_t asker;
  qk_backlog_t backlog;
  qk_guests_t *guests; /* NULL: connections are not watched */
  double started, drain_until;
  double ends;                 /* when the walltime does; INFINITY: it does not */
  double resumed;              /* when it last went on after more than a second */
  double stood, lenient_until; /* for how long the loop stood still in all; until then nothing
                                  expires of what clients could not come for */
  bool ticked;                 /* leases are judged in this turn */
  double told;                 /* when SIGTERM or SIGINT last counted; 0: never */
  bool rest[QK_DOORS];         /* more parts of a message of which all that counts was read */
  bool send_blocked;           /* downloads wait for `retry`: the socket was full */
  bool owes;                   /* requests are owed messages: reply.c */
  bool draining, stopping;
  int exit_code;
} qk_server_t;

/* Opens the endpoints, starts the engine, serves until it is told to leave. settings are read again on SIGHUP. The return
 * value is the exit code: 0, 65 (the gauge file was refused), 69 (no engine, endpoint or device),
 * 75, 78. */
int qk_server_run(qk_server_t *server, qk_settings_t *settings);

double qk_server_now(const qk_server_t *server);
/* Of the clock by which clients are silent: qk_loop_awake. */
double qk_server_awake(qk_server_t *server);
/* Seconds until the walltime ends; INFINITY where there is none. */
double qk_server_left(const qk_server_t *server);
/* Refuse new work, finish, leave; or leave at once. Called twice, the second means at once. */
void qk_server_drain(qk_server_t *server);
void qk_server_stop(qk_server_t *server, int exit_code);
/* Leaves because of an error: clients are told this instead of SHUTTING_DOWN. */
void qk_server_fail(qk_server_t *server, int exit_code, qk_status_t status, const char *text);
#endif
