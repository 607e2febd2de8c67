/*
 * server.h: the front as a whole, for the files that make it up. One thread owns everything here.
 *
 *   server.c    life and death: sockets, turns of the loop, ticks, draining
 *   control.c   messages of clients        data.c      chunks in and out
 *   admit.c     SUBMIT and CONTRACT        dispatch.c  right-hand sides to slots and back
 *   reply.c     messages to clients        report.h    STATUS
 *   leave.c     what ends in parts
 *   pages.c     what HTTP shows            watch.h     the page's numbers
 *   restore.c   what outlives the front    zap.h       who clients are
 *   peers.h     which connection is whose
 *   limits.c    what settings limit, and SIGHUP
 *   setups.h    which setups there are, LOAD and DROP
 *   local.h     whole fields, to and from clients on this machine
 *   filing.h    sources and solutions that are files
 */
#ifndef QK_FRONT_SERVER_H
#define QK_FRONT_SERVER_H

#include <zmq.h>

#include "daemon/base/room.h"
#include "daemon/front/engines/mount.h"
#include "daemon/front/host/http.h"
#include "daemon/front/host/notify.h"
#include "daemon/front/host/runtime.h"
#include "daemon/front/job/keep.h"
#include "daemon/front/job/session.h"
#include "daemon/front/net/backlog.h"
#include "daemon/front/net/guests.h"
#include "daemon/front/net/outbox.h"
#include "daemon/front/net/peers.h"
#include "daemon/front/net/zap.h"
#include "daemon/front/storage/files.h"
#include "daemon/front/view/metrics.h"
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
  qk_metrics_t metrics;
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
/* The client has gone: its session ends, but for requests that outlive it. */
void qk_server_part(qk_server_t *server, qk_session_t *session);
/* The job belongs to the session now. */
void qk_server_adopt(qk_session_t *session, qk_job_t *job);
/* Tells the client why and drops its session at the end of this turn. */
void qk_server_doom(qk_server_t *server, qk_session_t *session, qk_status_t status,
                    const char *text);

/* The next message; msg is initialised by the caller and closed by it after true.
 * whole: it had one part behind the routing id. The others are thrown away: where they are
 * thousands the next calls do so, as long as their time lasts, and until then rest[door] is set.
 * False: nothing to read. */
bool qk_server_receive(qk_server_t *server, qk_door_t door, qk_peer_t *peer, zmq_msg_t *msg,
                       bool *whole);
/* A message of a socket has been dealt with: whether the rest waits for the next turn. work: it
 * was somebody's. */
bool qk_server_has_enough(qk_server_t *server, bool work);
/* Who sent msg: fills in the rest of peer. False: by a key that is not authorised any more. */
bool qk_server_who(const qk_server_t *server, zmq_msg_t *msg, qk_peer_t *peer, qk_who_t *who);
/* Downloads pause for a few milliseconds. */
void qk_server_retry_downloads(qk_server_t *server);

/* ---- control.c, data.c: one turn of a socket ---- */
void qk_control_readable(void *server);
void qk_data_readable(void *server);
/* Sends some chunks; true while there are more that could go now. */
bool qk_data_send(qk_server_t *server);
/* A part of the job's upload has come: what is complete is queued and spooled, what has failed is told, and the credit
 * raised; told in any case where `tell`. ready, failed: NULL or of qk_job_upload, qk_job_put. */
void qk_data_arrived(qk_server_t *server, qk_session_t *session, qk_job_t *job, qk_rhs_t *ready,
                     qk_rhs_t *failed, bool tell);
/* Puts rhs into the list of downloads where there is something to send. */
void qk_data_offer(qk_server_t *server, qk_rhs_t *rhs);

/* ---- admit.c ---- */
/* Of all jobs. */
extern const qk_ties_t QK_SERVER_TIES;
void qk_admit_submit(qk_server_t *server, qk_session_t *session, const Quark__Submit *submit);
void qk_admit_contract(qk_server_t *server, qk_session_t *session, const Quark__Contract *contract);
void qk_admit_attach(qk_server_t *server, qk_session_t *session, qk_job_t *job);
/* A request that could not be recorded, and of which nothing has been told, is rejected after
 * all. */
void qk_admit_take_back(qk_server_t *server, qk_job_t *job);

/* ---- dispatch.c ---- */
extern const qk_worker_events_t QK_SERVER_WORKER_EVENTS;
/* Counts the right-hand sides of a job that is new, or back, which have not ended. */
void qk_dispatch_open(qk_job_t *job);
/* Seconds until all that is open for its setup, and this job, will be done; 0 where nothing has been measured. */
double qk_dispatch_expect(const qk_job_t *job);
void qk_dispatch_queue(qk_server_t *server, qk_rhs_t *rhs);
/* Right-hand sides in slots of all engines, and contractions. */
int qk_dispatch_running(const qk_server_t *server);
/* Fills free slots of the setup's engine, and notes how many are left empty while something waits. */
void qk_dispatch_feed(qk_mount_t *mount);
/* Ends rhs with that status: at once, or at the engine's next check point where it is in a
 * slot. */
void qk_dispatch_cancel(qk_server_t *server, qk_rhs_t *rhs, qk_status_t verdict, const char *text);
/* Counts, logs and reports an RHS that has ended. */
void qk_dispatch_ended(qk_server_t *server, qk_rhs_t *rhs);
/* Takes a job from its session, to be freed when all has ended. */
void qk_dispatch_orphan(qk_server_t *server, qk_job_t *job);
/* Forgets a job: frees it now, or as an orphan when its slots have ended and nobody holds it. */
void qk_dispatch_forget(qk_server_t *server, qk_job_t *job);
/* Frees the solutions of a kept job that nobody holds; forgets it where its client is done with it. */
void qk_dispatch_expire(qk_server_t *server, qk_job_t *job);

/* Cancels all that is open for the setup; expires all that is kept of it. */
void qk_dispatch_cancel_all(qk_mount_t *mount, const char *why);
void qk_dispatch_expire_all(qk_mount_t *mount);

/* Ends whatever is in slots; nobody is told. For the end of the server, when the engine is
 * gone. */
void qk_dispatch_abandon(qk_mount_t *mount);

/* ---- leave.c ---- */
/* Ends all that is open of the job with that verdict, before long. why is static. */
void qk_leave_job(qk_server_t *server, qk_job_t *job, qk_status_t verdict, const char *why);
/* Takes the job from its session at once, and forgets it before long. */
void qk_leave_behind(qk_server_t *server, qk_job_t *job);
/* As much of that as there is time for, and at least a little; true while something is left. */
bool qk_leave_some(qk_server_t *server);

/* ---- reply.c ---- */
typedef enum qk_sent { QK_SENT, QK_SENT_FULL, QK_SENT_GONE } qk_sent_t;
qk_sent_t qk_reply_send(qk_server_t *server, const qk_peer_t *peer, Quark__ServerMessage *message);
/* Brings the journal up to date and then sends what waits for that. Where it cannot be written new
 * requests are taken back, and what says nothing of a request is sent. */
void qk_reply_waiting(qk_server_t *server);
void qk_reply_error(qk_server_t *server, const qk_peer_t *peer, qk_status_t status,
                    const char *text, bool fatal, uint64_t request);
void qk_reply_welcome(qk_server_t *server, const qk_session_t *session, bool resumed);
/* What is said of a request waits until the journal holds it. */
void qk_reply_accepted(qk_server_t *server, qk_session_t *session, qk_job_t *job, bool repeated);
/* False: it could not be said. */
bool qk_reply_attached(qk_server_t *server, qk_session_t *session, qk_job_t *job);
void qk_reply_rejected(qk_server_t *server, const qk_peer_t *peer, uint64_t request,
                       const qk_err_t *err);
void qk_reply_credit(qk_server_t *server, qk_session_t *session, qk_job_t *job);
void qk_reply_progress(qk_server_t *server, qk_session_t *session, const qk_job_t *job);
/* Dooms the session where its queue is full. */
void qk_reply_result(qk_server_t *server, qk_session_t *session, qk_rhs_t *rhs);
void qk_reply_shutdown(qk_server_t *server, const qk_peer_t *peer, bool now);
void qk_reply_pong(qk_server_t *server, const qk_peer_t *peer);

/* ---- limits.c ---- */
/* Memory for uploads and results as settings have it. */
void qk_limits_memory(qk_server_t *server);
/* Bytes that can be given to uploads and results now without anybody being killed for it, and what
 * sets that: /dev/shm, or a cgroup as it was within the last second. */
int64_t qk_limits_free(qk_server_t *server, const char **by);
/* What a client and its user may have, from now on. */
void qk_limits_session(qk_server_t *server, qk_session_t *session);
/* When the walltime ends, by the settings or the file that they name. QK_IO_ERROR, QK_BAD_FORMAT:
 * as it was. */
qk_status_t qk_limits_walltime(qk_server_t *server, qk_err_t *err);
/* Reads the settings again, tells what has changed, and lets that take effect which can. */
void qk_limits_reread(qk_server_t *server);

/* ---- pages.c ---- */
qk_page_t qk_pages_show(void *server, const char *path);

#endif
