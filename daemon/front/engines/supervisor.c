#include "daemon/front/engines/supervisor.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/base/room.h"
#include "daemon/front/engines/checkpoint_path.h"
#include "daemon/front/engines/engine_argv.h"
#include "daemon/front/engines/engine_encode.h"
#include "daemon/front/host/process.h"
#include "daemon/front/host/runtime.h"
#include "proto/control.h"

enum { MESSAGES_A_TURN = 64 };

static const double PAUSE_FIRST = 0.2, PAUSE_MAX = 30, KILL_AFTER = 5;

struct qk_supervisor {
  qk_supervisor_site_t site;
  const qk_settings_t *settings;
  const qk_supervisor_events_t *events;
  void *arg;
  qk_supervisor_state_t state;
  qk_engine_info_t info;
  qk_process_t *process;
  void *socket;
  qk_zsock_t *sock; /* of its own, as it outlives a detach by one turn of the loop */
  int generation, failures;
  int adopted;          /* the generation that was taken over from the front before; 0: none */
  uint64_t fingerprint; /* of what the engine is for */
  bool told;            /* it has got the LOAD of that */
  bool adopting,
      asked;         /* it is one of the front before, and has not answered ADOPT; ADOPT is out */
  uint64_t nonce;    /* of ADOPT */
  double adopted_at; /* when that began */
  double heard;      /* of qk_loop_awake */
  double ping_at, start_at;
  double kill_at;           /* 0: not waiting for the process to end */
  char group[QK_ROOM_PATH]; /* the cgroup of the engine */
  int64_t kills; /* processes of it that were killed for want of memory, before this one */
  char endpoint[QK_SOCKET_MAX];
  char checkpoint[QK_PATH_MAX + 1]; /* of multigrid; "": none */
  bool late;                        /* it did not say HELLO in time */
  char last_error[512];
  bool held, writes; /* qk_supervisor_hold */
  char label[QK_ENGINE_LABEL];
};

static double now_of(const qk_supervisor_t *w) {
  return qk_loop_seconds(w->site.loop);
}

/* Of the clock by which the engine is silent. */
static double awake(const qk_supervisor_t *w) {
  return qk_loop_awake(w->site.loop);
}

qk_supervisor_state_t qk_supervisor_state(const qk_supervisor_t *w) {
  return w->state;
}
const qk_engine_info_t *qk_supervisor_info(const qk_supervisor_t *w) {
  return &w->info;
}
int qk_supervisor_restarts(const qk_supervisor_t *w) {
  return w->generation > 0 ? w->generation - 1 : 0;
}
int qk_supervisor_failures(const qk_supervisor_t *w) {
  return w->failures;
}
bool qk_supervisor_adopted(const qk_supervisor_t *w) {
  return w->adopted > 0 && w->adopted == w->generation;
}
bool qk_supervisor_late(const qk_supervisor_t *w) {
  return w->late;
}
const char *qk_supervisor_last_error(const qk_supervisor_t *w) {
  return w->last_error;
}

static uint64_t fingerprint_of(const qk_supervisor_t *w) {
  return qk_engine_argv_fingerprint(w->settings, w->site.program, w->checkpoint, w->site.replica);
}

/* ---- socket -------------------------------------------------------------------------------- */

static bool send_message(qk_supervisor_t *w, uint8_t *data, size_t bytes) {
  const bool sent = data && w->socket && zmq_send(w->socket, data, bytes, ZMQ_DONTWAIT) >= 0;
  free(data);
  return sent;
}

static void free_sock(uv_handle_t *handle) {
  qk_free(handle->data);
}

static void remove_socket(const qk_supervisor_t *w) {
  unlink(w->endpoint + strlen("ipc://"));
}

static void close_socket(qk_supervisor_t *w) {
  if (!w->socket) return;
  qk_loop_detach(w->sock, free_sock);
  zmq_close(w->socket);
  remove_socket(w); /* libzmq leaves it */
  w->socket = NULL;
  w->sock = NULL;
}

static void on_readable(void *arg);

static qk_status_t open_socket(qk_supervisor_t *w, qk_err_t *err) {
  int linger = 0;
  int64_t max = QK_CONTROL_MAX;
  w->sock = qk_calloc(1, sizeof *w->sock);
  if (!w->sock) return qk_fail(err, QK_NO_MEMORY, "no memory for a socket");
  w->socket = zmq_socket(w->site.zmq, ZMQ_DEALER);
  if (!w->socket) goto fail;
  zmq_setsockopt(w->socket, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(w->socket, ZMQ_MAXMSGSIZE, &max, sizeof max);
  if (zmq_bind(w->socket, w->endpoint) != 0) goto fail;
  if (qk_loop_attach(w->site.loop, w->sock, w->socket, on_readable, w, err) != QK_OK) goto fail;
  w->sock->poll.data = w->sock;
  return QK_OK;

fail:
  qk_fail(err, QK_IO_ERROR, "%s: %s", w->endpoint, zmq_strerror(zmq_errno()));
  if (w->socket) zmq_close(w->socket);
  w->socket = NULL;
  qk_free(w->sock);
  w->sock = NULL;
  return err->code;
}

/* ---- being lost ---------------------------------------------------------------------------- */

static void end_process(qk_supervisor_t *w) {
  if (!qk_process_running(w->process)) return;
  /* mpirun must live long enough to end its ranks */
  qk_process_signal(w->process, w->settings->ranks > 1 ? SIGTERM : SIGKILL);
  w->kill_at = now_of(w) + KILL_AFTER;
}

static void lose(qk_supervisor_t *w, const char *why) {
  if (w->state == QK_SUPERVISOR_DOWN || w->state == QK_SUPERVISOR_STOPPED) return;
  const bool stopping = w->state == QK_SUPERVISOR_STOPPING, adopting = w->adopting;
  close_socket(w);
  end_process(w);
  w->adopting = false;
  if (stopping) {
    w->state = QK_SUPERVISOR_STOPPED;
    w->events->stopped(w->arg);
    return;
  }
  if (adopting) { /* nothing is lost with it */
    qk_warn("worker", "%sthe engine of the previous front is not adopted: %s", w->label, why);
    w->state = QK_SUPERVISOR_DOWN;
    return;
  }
  snprintf(w->last_error, sizeof w->last_error, "%s", why);
  double pause = fmin(PAUSE_MAX, PAUSE_FIRST * pow(2, fmin(w->failures, 16)));
  w->failures++;
  w->state = QK_SUPERVISOR_DOWN;
  w->start_at = now_of(w) + pause;
  qk_error("worker", "%sengine lost: %s; starting it again in %.1f s", w->label, why, pause);
  w->events->lost(w->arg, why, w->failures);
}

/* ---- messages ------------------------------------------------------------------------------ */

static bool send_load(qk_supervisor_t *w) {
  size_t bytes;
  const qk_budget_t *memory = w->site.memory;
  const int64_t left = memory && memory->limit > memory->used ? memory->limit - memory->used : 0;
  uint8_t *load =
      qk_engine_encode_load(w->settings, (qk_engine_replica_t){w->site.replica, w->writes},
                            w->checkpoint, w->site.start, w->fingerprint, left, &bytes);
  w->told = true;
  return send_message(w, load, bytes);
}

bool qk_supervisor_fill(qk_supervisor_t *w, uint32_t entry, uint64_t serial, const qk_rhs_t *rhs,
                        qk_fill_hint_t hint) {
  size_t bytes;
  uint8_t *fill = qk_engine_encode_fill(entry, serial, rhs, hint, &bytes);
  return send_message(w, fill, bytes);
}

bool qk_supervisor_contract(qk_supervisor_t *w, uint64_t serial, const qk_rhs_t *rhs) {
  size_t bytes;
  uint8_t *contract = qk_engine_encode_contract(serial, rhs, &bytes);
  return send_message(w, contract, bytes);
}

bool qk_supervisor_send(qk_supervisor_t *w, uint8_t *message, size_t bytes) {
  return send_message(w, message, bytes);
}

bool qk_supervisor_cancel(qk_supervisor_t *w, uint32_t entry, uint64_t serial) {
  size_t bytes;
  uint8_t *cancel = qk_engine_encode_cancel(entry, serial, &bytes);
  return send_message(w, cancel, bytes);
}

static const char *on_hello(qk_supervisor_t *w, const Quark__Engine__EngineHello *hello) {
  if (w->state != QK_SUPERVISOR_STARTING && !w->adopting) return "a second HELLO";
  if (hello->version != QK_PROTOCOL_VERSION) return "it speaks another version of the protocol";
  w->info.pid = hello->pid;
  w->info.ranks = hello->ranks;
  w->info.done = w->info.total = 0;
  w->info.phase[0] = '\0';
  w->state = QK_SUPERVISOR_LOADING;
  const bool told = (w->adopting && hello->loaded) || send_load(w);
  w->adopting = false;
  return told ? NULL : "it takes no LOAD";
}

/* Of an adopted engine it may be of another LOAD: it has not got the one of this setup. */
static const char *on_ready(qk_supervisor_t *w, const Quark__Engine__Ready *r) {
  if (w->state != QK_SUPERVISOR_LOADING) return "READY without LOAD";
  if (r->fingerprint != w->fingerprint) {
    if (w->told) return "READY of another LOAD";
    qk_info("worker", "%sits engine has another setup loaded", w->label);
    return send_load(w) ? NULL : "it takes no LOAD";
  }
  const char *wrong = qk_engine_info_ready(&w->info, w->settings, r);
  if (wrong) return wrong;
  if (!w->told)
    qk_info("worker", "%sengine adopted in %.3f s, nothing was loaded again", w->label,
            now_of(w) - w->adopted_at);
  w->told = true;
  w->failures = 0;
  w->state = QK_SUPERVISOR_READY;
  w->events->ready(w->arg);
  return NULL;
}

static const char *on_load_failed(qk_supervisor_t *w, const Quark__Engine__LoadFailed *failed) {
  if (w->state != QK_SUPERVISOR_LOADING) return "LOAD_FAILED without LOAD";
  w->state = QK_SUPERVISOR_REFUSED;
  w->events->refused(w->arg, (qk_status_t)failed->status, failed->text);
  return NULL;
}

/* Until the engine answers ADOPT what comes was meant for the front before. */
static const char *on_early_message(qk_supervisor_t *w, const Quark__Engine__EngineMessage *m) {
  if (m->body_case == QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_PROGRESS)
    qk_engine_info_progress(&w->info, m->load_progress);
  if (m->body_case == QUARK__ENGINE__ENGINE_MESSAGE__BODY_FATAL) return m->fatal->text;
  if (m->body_case != QUARK__ENGINE__ENGINE_MESSAGE__BODY_HELLO || !m->hello->has_nonce ||
      m->hello->nonce != w->nonce)
    return NULL;
  const char *fault = on_hello(w, m->hello);
  if (!fault) w->generation = w->adopted = 1;
  if (!fault && !m->hello->loaded)
    qk_info("worker", "%sengine adopted: nothing is loaded yet", w->label);
  return fault;
}

/* What was wrong with the message, or NULL. */
static const char *on_message(qk_supervisor_t *w, const Quark__Engine__EngineMessage *m) {
  bool ready = w->state == QK_SUPERVISOR_READY;
  w->heard = awake(w);
  if (w->adopting) return on_early_message(w, m);
  switch (m->body_case) {
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_HELLO:
    return on_hello(w, m->hello);
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_PROGRESS:
    qk_engine_info_progress(&w->info, m->load_progress);
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_READY:
    return on_ready(w, m->ready);
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_FAILED:
    return on_load_failed(w, m->load_failed);
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_FILL_PROGRESS:
    if (!ready || m->fill_progress->entry >= w->info.inflight)
      return "progress of an in-flight entry that does not exist";
    w->events->progress(w->arg, m->fill_progress);
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_FILL_DONE:
    if (!ready || m->fill_done->entry >= w->info.inflight)
      return "result of an in-flight entry that does not exist";
    w->events->done(w->arg, m->fill_done);
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_CONTRACTED:
    if (!ready) return "a contraction before READY";
    w->events->contracted(w->arg, m->contracted);
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_EIGEN_PROGRESS:
    if (!ready) return "eigenvectors before READY";
    w->events->eigen_progress(w->arg, m->eigen_progress);
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_EIGEN_DONE:
    if (!ready) return "eigenvectors before READY";
    w->events->eigen_done(w->arg, m->eigen_done);
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_HEARTBEAT:
    qk_engine_info_heartbeat(&w->info, m->heartbeat, now_of(w));
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_MULTIGRID:
    qk_engine_info_multigrid(&w->info, m->multigrid->multigrid);
    if (ready && w->info.multigrid) w->events->multigrid(w->arg, m->multigrid);
    return NULL;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_FATAL:
    return m->fatal->text;
  default:
    return "a message of no known kind";
  }
}

/* Takes up to n messages. A message that does not make sense, or FATAL, loses the engine. */
static void receive(qk_supervisor_t *w, int n) {
  for (; n > 0 && w->socket && w->state != QK_SUPERVISOR_STOPPING; n--) {
    zmq_msg_t msg;
    zmq_msg_init(&msg);
    if (zmq_msg_recv(&msg, w->socket, ZMQ_DONTWAIT) < 0) break;
    Quark__Engine__EngineMessage *m =
        zmq_msg_more(&msg) ? NULL
                           : qk_control_unpack_engine(zmq_msg_data(&msg), zmq_msg_size(&msg));
    zmq_msg_close(&msg);
    const char *fault = m ? on_message(w, m) : "bytes that are no message";
    if (fault) lose(w, fault);
    if (m) quark__engine__engine_message__free_unpacked(m, NULL);
  }
}

static void discard(qk_supervisor_t *w) {
  char byte;
  while (zmq_recv(w->socket, &byte, sizeof byte, ZMQ_DONTWAIT) >= 0) {
  }
}

static void on_readable(void *arg) {
  qk_supervisor_t *w = arg;
  if (w->state == QK_SUPERVISOR_STOPPING)
    discard(w);
  else
    receive(w, MESSAGES_A_TURN);
}

/* ---- process ------------------------------------------------------------------------------- */

static void forget_process(const qk_supervisor_t *w) {
  if (w->site.journal) qk_adopt_forget(w->site.journal, *w->site.id, w->site.replica);
}

/* pid: of the engine; 0: it is a child that is in our group still. */
static void note_kills(qk_supervisor_t *w, long pid) {
  qk_room_group("", pid, w->group);
  w->kills = qk_room_kills(w->group);
}

static void on_exit_of_engine(void *arg, const char *how) {
  qk_supervisor_t *w = arg;
  char killed[QK_ROOM_PATH + 256];
  w->kill_at = 0;
  forget_process(w);
  receive(w, QK_SLOTS_MAX * 4); /* its last words */
  snprintf(killed, sizeof killed,
           "killed by the kernel because cgroup %s ran out of memory: give it more, or lower "
           "--slots or --max-memory",
           w->group);
  lose(w, qk_room_kills(w->group) > w->kills ? killed : how);
}

/* Of an engine that the next front may take over. */
static void note_process(qk_supervisor_t *w) {
  qk_err_t err = {0};
  qk_adopted_t adopted = {
      .setup = *w->site.id, .replica = w->site.replica, .fingerprint = w->fingerprint};
  snprintf(adopted.endpoint, sizeof adopted.endpoint, "%s", w->endpoint);
  if (qk_procid_of(qk_process_pid(w->process), &adopted.process, &err) == QK_OK)
    qk_adopt_note(w->site.journal, &adopted);
  else
    qk_warn("worker", "%sthe next front will not know of this engine: %s", w->label, err.text);
}

static qk_status_t start(qk_supervisor_t *w, qk_err_t *err) {
  const bool lasts = qk_engine_argv_lasts(w->settings);
  char fifo[QK_SOCKET_MAX];
  qk_engine_argv_t command;
  w->generation++;
  snprintf(w->endpoint, sizeof w->endpoint, "ipc://%s/engine-%ld-%d-%d", w->site.dir,
           (long)getpid(), w->site.number, w->generation);
  qk_status_t s = open_socket(w, err);
  if (s != QK_OK) return s;
  qk_adopt_fifo(w->endpoint, fifo);
  qk_engine_argv_make(w->settings, w->site.program, w->endpoint, &command);
  w->fingerprint = fingerprint_of(w);
  note_kills(w, 0);
  s = qk_process_spawn(w->site.loop, command.argv, lasts ? fifo : NULL,
                       w->settings->log_format == QK_LOG_JSON, on_exit_of_engine, w, &w->process,
                       err);
  if (s != QK_OK)
    close_socket(w);
  else if (lasts)
    note_process(w);
  return s;
}

static void try_start(qk_supervisor_t *w, double now) {
  qk_err_t err = {0};
  qk_process_release(w->process);
  w->process = NULL;
  w->heard = awake(w);
  w->ping_at = now;
  w->state = QK_SUPERVISOR_STARTING;
  w->late = w->told = false;
  if (start(w, &err) != QK_OK)
    lose(w, err.text);
  else
    qk_info("worker", "%sengine started", w->label);
}

/* ---- taking over --------------------------------------------------------------------------- */

void qk_supervisor_take_over(qk_supervisor_t *w, const qk_adopted_t *adopted) {
  qk_err_t err = {0};
  char fifo[QK_SOCKET_MAX];
  qk_adopt_fifo(adopted->endpoint, fifo);
  snprintf(w->endpoint, sizeof w->endpoint, "%s", adopted->endpoint);
  w->heard = awake(w);
  w->ping_at = w->adopted_at = now_of(w);
  if (qk_process_adopt(w->site.loop, &adopted->process, fifo,
                       w->settings->log_format == QK_LOG_JSON, on_exit_of_engine, w, &w->process,
                       &err) != QK_OK) {
    remove_socket(w);
    forget_process(w);
    qk_info("worker", "%sthe engine of the previous front is gone: %s", w->label, err.text);
    return;
  }
  const char *why = qk_adopt_misfit(adopted, w->site.dir, w->settings, fingerprint_of(w));
  note_kills(w, (long)adopted->process.pid);
  w->adopting = true;
  w->state = QK_SUPERVISOR_LOADING;
  w->fingerprint = adopted->fingerprint;
  w->nonce = uv_hrtime();
  snprintf(w->info.phase, sizeof w->info.phase, "adoption");
  if (!why && open_socket(w, &err) == QK_OK) return;
  remove_socket(w);
  lose(w, why ? why : err.text);
}

/* Seconds that it may say nothing. */
static double patience(const qk_supervisor_t *w) {
  return w->state == QK_SUPERVISOR_STARTING ? w->settings->start_timeout
                                            : w->settings->engine_timeout;
}

static void lose_silent(qk_supervisor_t *w) {
  char why[sizeof w->last_error], words[sizeof why / 2];
  w->late = w->state == QK_SUPERVISOR_STARTING;
  if (w->late) {
    qk_process_recount(w->process, words, sizeof words);
    snprintf(why, sizeof why, "it did not start within %g s (start-timeout)%s%s", patience(w),
             words[0] ? "; the last lines of its output: " : "; it has written nothing", words);
  } else {
    snprintf(why, sizeof why, "silent for %.1f s", awake(w) - w->heard);
  }
  lose(w, why);
}

void qk_supervisor_tick(qk_supervisor_t *w, double now) {
  if (w->kill_at > 0 && now >= w->kill_at) {
    qk_process_signal(w->process, SIGKILL);
    w->kill_at = now + KILL_AFTER;
  }
  if (w->state == QK_SUPERVISOR_STOPPED) return;
  if (w->state == QK_SUPERVISOR_DOWN) {
    if (now >= w->start_at && !w->held && !qk_process_running(w->process)) try_start(w, now);
    return;
  }
  if (w->state != QK_SUPERVISOR_STOPPING && awake(w) - w->heard > patience(w)) {
    lose_silent(w);
    return;
  }
  size_t bytes;
  if (w->adopting && !w->asked) { /* as soon as the engine has connected again */
    uint8_t *adopt = qk_engine_encode_adopt(w->nonce, &bytes);
    w->asked = send_message(w, adopt, bytes);
  }
  if (now >= w->ping_at) {
    uint8_t *ping = w->state != QK_SUPERVISOR_STARTING ? qk_engine_encode_ping(&bytes) : NULL;
    send_message(w, ping, bytes);
    w->ping_at = now + QK_HEARTBEAT_MS * 1e-3;
  }
}

bool qk_supervisor_is_free(const qk_supervisor_t *w) {
  switch (w->state) {
  case QK_SUPERVISOR_DOWN:
  case QK_SUPERVISOR_STARTING:
  case QK_SUPERVISOR_REFUSED:
    return true;
  case QK_SUPERVISOR_READY:
    return !qk_supervisor_saving(w);
  default:
    return false;
  }
}

/* In the journal it is the new setup's before it has got the LOAD. */
void qk_supervisor_hand_over(qk_supervisor_t *w, qk_supervisor_t *to) {
  QK_ASSERT(qk_supervisor_is_free(w) && !to->process && !to->socket);
  const int64_t before = *w->site.id;
  w->site = to->site;
  w->settings = to->settings;
  w->events = to->events;
  w->arg = to->arg;
  memcpy(w->checkpoint, to->checkpoint, sizeof w->checkpoint);
  memcpy(w->label, to->label, sizeof w->label);
  qk_supervisor_destroy(to);
  qk_engine_info_clear(&w->info);
  w->fingerprint = fingerprint_of(w);
  w->generation = w->state == QK_SUPERVISOR_DOWN ? 0 : 1;
  w->adopted = w->failures = 0;
  w->last_error[0] = '\0';
  w->late = false;
  if (qk_process_running(w->process) && qk_engine_argv_lasts(w->settings)) {
    note_process(w);
    qk_adopt_forget(w->site.journal, before, 0);
  }
  if (w->state == QK_SUPERVISOR_READY) w->state = QK_SUPERVISOR_REFUSED;
  qk_supervisor_load_again(w);
}

void qk_supervisor_hold(qk_supervisor_t *w, bool held, bool writes) {
  w->held = held;
  w->writes = writes;
}

const char *qk_supervisor_checkpoint(const qk_supervisor_t *w) {
  return w->checkpoint;
}

void qk_supervisor_refuse(qk_supervisor_t *w, const char *why) {
  if (w->state != QK_SUPERVISOR_READY) return;
  snprintf(w->last_error, sizeof w->last_error, "%s", why);
  w->state = QK_SUPERVISOR_REFUSED;
}

void qk_supervisor_load_again(qk_supervisor_t *w) {
  if (w->state != QK_SUPERVISOR_REFUSED) return;
  w->state = QK_SUPERVISOR_LOADING;
  if (!send_load(w)) lose(w, "it takes no LOAD");
}

bool qk_supervisor_saving(const qk_supervisor_t *w) {
  return w->state == QK_SUPERVISOR_READY && w->info.multigrid &&
         w->info.multigrid->checkpoint_writing;
}

void qk_supervisor_stop(qk_supervisor_t *w, double now) {
  if (w->state == QK_SUPERVISOR_STOPPING || w->state == QK_SUPERVISOR_STOPPED) return;
  if (!qk_process_running(w->process)) {
    w->state = QK_SUPERVISOR_STOPPED;
    w->events->stopped(w->arg);
    return;
  }
  size_t bytes;
  uint8_t *stop = w->state == QK_SUPERVISOR_READY ? qk_engine_encode_stop(&bytes) : NULL;
  const bool told = stop && send_message(w, stop, bytes);
  w->state = QK_SUPERVISOR_STOPPING;
  w->kill_at = now + KILL_AFTER;
  if (!told) end_process(w); /* busy loading: it would not listen */
}

qk_status_t qk_supervisor_create(const qk_supervisor_site_t *site, const qk_settings_t *settings,
                                 const qk_supervisor_events_t *events, void *arg,
                                 qk_supervisor_t **out, qk_err_t *err) {
  qk_supervisor_t *w = qk_calloc(1, sizeof *w);
  if (!w) return qk_fail(err, QK_NO_MEMORY, "no memory for the engine's supervisor");
  w->site = *site;
  w->settings = settings;
  w->events = events;
  w->arg = arg;
  qk_engine_label(site->setup, site->replica, site->replicas, w->label);
  const qk_status_t status = qk_checkpoint_path(settings, site->setup, w->checkpoint, err);
  if (status != QK_OK) {
    qk_free(w);
    return status;
  }
  *out = w;
  return QK_OK;
}

void qk_supervisor_destroy(qk_supervisor_t *w) {
  if (!w) return;
  close_socket(w);
  if (qk_process_running(w->process)) forget_process(w);
  qk_process_release(w->process);
  qk_engine_info_clear(&w->info);
  qk_free(w);
}
