#include "client/libquark/connection/connection.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"

enum {
  HEARTBEAT_IVL = 5000,
  HEARTBEAT_TIMEOUT = 20000,
  TICK_MS = 200,
  BURST = 16,    /* messages read from a socket in one turn */
  DATA_HWM = 32, /* messages in ZeroMQ's queues */
  EVENTS = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED |
           ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
           ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
};

void quark__wake(quark_connection_t *conn) {
  const uint64_t one = 1;
  /* A full counter is readable already, so a failed write loses nothing. */
  const ssize_t n = write(conn->wake, &one, sizeof one);
  (void)n;
}

void quark__signal_events_locked(quark_connection_t *conn, bool waiting) {
  uint64_t value = 1;
  const ssize_t n = waiting ? write(conn->events, &value, sizeof value)
                            : read(conn->events, &value, sizeof value);
  (void)n; /* EAGAIN: it is as it should be */
}

bool quark__wait_locked(quark_connection_t *conn, int64_t deadline) {
  if (deadline < 0) {
    pthread_cond_wait(&conn->changed, &conn->lock);
    return true;
  }
  const struct timespec t = {.tv_sec = (time_t)(deadline / 1000),
                             .tv_nsec = (long)(deadline % 1000) * 1000000};
  return pthread_cond_timedwait(&conn->changed, &conn->lock, &t) == 0;
}

bool quark__wait_on_locked(quark_connection_t *conn, int64_t *deadline) {
  const bool in_time = quark__wait_locked(conn, *deadline);
  if (!conn->was_open || !conn->journal || conn->state == SESSION_OPEN ||
      conn->state == SESSION_DEAD)
    return in_time;
  *deadline = quark__now_ms() + conn->timeout_ms;
  return true;
}

quark_code_t quark__check_alive_locked(const quark_connection_t *conn, quark_error_t *err) {
  return conn->state == SESSION_DEAD ? quark__hand_on(err, &conn->death) : QUARK_OK;
}

bool quark__has_feature(const quark_connection_t *conn, unsigned feature) {
  return feature == 0 || (feature < 64 && (conn->features >> feature & 1));
}

static const char *name_of(unsigned feature) {
  return feature == QK_FEATURE_ACTIONS          ? "action and parameter"
         : feature == QK_FEATURE_JOIN           ? "parts"
         : feature == QK_FEATURE_WORK           ? "work, dagger, parity or schur"
         : feature == QK_FEATURE_STOPPING       ? "tol_abs and tol_hq"
         : feature == QK_FEATURE_SINGLE_RHS     ? "batch_only"
         : feature == QK_FEATURE_FLAVOUR        ? "flavour"
         : feature == QK_FEATURE_EVOLVE         ? "evolve_from"
         : feature == QK_FEATURE_DEFLATE        ? "deflate"
         : feature == QK_FEATURE_DEFLATE_FROM   ? "deflate_from"
         : feature == QK_FEATURE_REPLICAS       ? "replicas and devices"
         : feature == QK_FEATURE_FIX_GAUGE      ? "fix_gauge"
         : feature == QK_FEATURE_MASSES         ? "several masses"
         : feature == QK_FEATURE_SHIFT          ? "shift"
         : feature == QK_FEATURE_FIVE           ? "five_d"
         : feature == QK_FEATURE_EIGEN          ? "eigenvectors"
         : feature == QK_FEATURE_VECTORS        ? "vectors from memory"
         : feature == QK_FEATURE_COMPRESSED     ? "compressed eigenvectors"
         : feature == QK_FEATURE_VALUES         ? "values of eigenvectors that are kept"
         : feature == QK_FEATURE_PROJECT        ? "project"
         : feature == QK_FEATURE_COLUMN_FLAVOUR ? "flavour in the columns"
         : feature == QK_FEATURE_FIELDS         ? "links from memory"
                                                : "what was asked for";
}

quark_code_t quark__too_old(const quark_connection_t *conn, unsigned feature, const char *what,
                            quark_error_t *err) {
  return quark__fail(err, QUARK_UNSUPPORTED,
                     "the quarkd at %.120s is too old for %s of %s: it was not asked, because "
                     "it would ignore %s",
                     conn->endpoint, name_of(feature), what,
                     feature == QK_FEATURE_ACTIONS ? "them" : "it");
}

static quark_code_t queue(quark_connection_t *conn, const uint8_t *data, size_t bytes,
                          unsigned feature, quark_error_t *err) {
  packet_t *p = malloc(sizeof *p + bytes);
  if (!p) return quark__fail(err, QUARK_NO_MEMORY, "no memory for a message of %zu bytes", bytes);
  p->next = NULL;
  p->feature = feature;
  p->bytes = bytes;
  memcpy(p->data, data, bytes);
  *conn->out_end = p;
  conn->out_end = &p->next;
  quark__wake(conn);
  return QUARK_OK;
}

quark_code_t quark__post_bytes_locked(quark_connection_t *conn, const uint8_t *data, size_t bytes,
                                      unsigned feature, quark_error_t *err) {
  return queue(conn, data, bytes, feature, err);
}

quark_code_t quark__post_for_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                    unsigned feature, quark_error_t *err) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&message->base, &bytes);
  if (!data)
    return quark__fail(err, QUARK_NO_MEMORY, "no memory for a message, or it is over %d bytes",
                       QK_CONTROL_MAX);
  const quark_code_t code = queue(conn, data, bytes, feature, err);
  free(data);
  return code;
}

quark_code_t quark__post_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                quark_error_t *err) {
  return quark__post_for_locked(conn, message, 0, err);
}

/* Sends queued messages. Without a session only session.c sends, past the queue. */
static void flush_control(quark_connection_t *conn) {
  while (conn->state == SESSION_OPEN && conn->out) {
    packet_t *p = conn->out;
    if (quark__has_feature(conn, p->feature)) {
      if (zmq_send(conn->control, p->data, p->bytes, ZMQ_DONTWAIT) < 0) return;
      conn->last_sent = quark__now_ms();
    }
    conn->out = p->next;
    if (!conn->out) conn->out_end = &conn->out;
    free(p);
  }
}

static bool set_int(void *socket, int option, int value) {
  return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static void *open_socket(quark_connection_t *conn, const char *endpoint, int64_t max_bytes, int hwm,
                         const char *monitor_name, void **monitor) {
  void *socket = zmq_socket(conn->zmq, ZMQ_DEALER), *pair = NULL;
  if (!socket) return NULL;
  if (*conn->curve.server_key) max_bytes += QK_CURVE_EXTRA;
  const bool ok =
      quark__curve_guard(&conn->curve, socket) &&
      zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes) == 0 &&
      set_int(socket, ZMQ_LINGER, 0) && set_int(socket, ZMQ_SNDHWM, hwm) &&
      set_int(socket, ZMQ_RCVHWM, hwm) && set_int(socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT_IVL) &&
      set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT) &&
      set_int(socket, ZMQ_RECONNECT_IVL, 100) && set_int(socket, ZMQ_RECONNECT_IVL_MAX, 2000) &&
      zmq_socket_monitor(socket, monitor_name, EVENTS) == 0 &&
      (pair = zmq_socket(conn->zmq, ZMQ_PAIR)) != NULL && set_int(pair, ZMQ_LINGER, 0) &&
      zmq_connect(pair, monitor_name) == 0 && zmq_connect(socket, endpoint) == 0;
  if (ok) {
    *monitor = pair;
    return socket;
  }
  const int cause = errno;
  if (pair) zmq_close(pair);
  zmq_close(socket);
  errno = cause;
  return NULL;
}

static void close_socket(void **socket, void **monitor) {
  if (*socket) {
    zmq_socket_monitor(*socket, NULL, 0);
    zmq_close(*socket);
  }
  if (*monitor) zmq_close(*monitor);
  *socket = *monitor = NULL;
}

bool quark__open_control_locked(quark_connection_t *conn) {
  char name[48];
  close_socket(&conn->control, &conn->control_monitor);
  snprintf(name, sizeof name, "inproc://control-%u", conn->sockets++);
  conn->control =
      open_socket(conn, conn->endpoint, QK_CONTROL_MAX, 0, name, &conn->control_monitor);
  return conn->control != NULL;
}

bool quark__open_data_locked(quark_connection_t *conn, const char *endpoint) {
  char name[48];
  close_socket(&conn->data, &conn->data_monitor);
  snprintf(name, sizeof name, "inproc://data-%u", conn->sockets++);
  conn->data = open_socket(conn, endpoint, QK_FRAME_MAX, DATA_HWM, name, &conn->data_monitor);
  return conn->data != NULL;
}

/* The next event of a monitor; 0: none. */
static uint16_t monitor_event(void *monitor, uint32_t *value) {
  uint8_t head[16] = {0};
  uint16_t event = 0;
  char address[256];
  if (!monitor || zmq_recv(monitor, head, sizeof head, ZMQ_DONTWAIT) < 6) return 0;
  memcpy(&event, head, sizeof event);
  memcpy(value, head + sizeof event, sizeof *value);
  zmq_recv(monitor, address, sizeof address, ZMQ_DONTWAIT);
  return event;
}

static void read_monitors(quark_connection_t *conn) {
  uint16_t event;
  uint32_t value;
  while ((event = monitor_event(conn->control_monitor, &value))) {
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
      conn->on->connected(conn);
    else if (event == ZMQ_EVENT_DISCONNECTED)
      conn->on->lost(conn);
    else if (event != ZMQ_EVENT_CONNECT_RETRIED)
      conn->on->refused(conn, event, value);
  }
  while ((event = monitor_event(conn->data_monitor, &value))) {
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) continue;
    if (event == ZMQ_EVENT_CONNECT_RETRIED) {
      if (conn->on->unreachable(conn)) return;
      continue;
    }
    if (event != ZMQ_EVENT_DISCONNECTED) {
      conn->on->refused(conn, event, value);
      continue;
    }
    if (conn->state == SESSION_OPEN || conn->state == SESSION_BINDING) conn->on->connected(conn);
    return; /* the session starts over, with another data socket */
  }
}

static void read_control(quark_connection_t *conn) {
  zmq_msg_t msg;
  zmq_msg_init(&msg);
  for (int i = 0; i < BURST && zmq_msg_recv(&msg, conn->control, ZMQ_DONTWAIT) >= 0; i++) {
    conn->last_heard = quark__now_ms();
    Quark__ServerMessage *m = qk_control_unpack_server(zmq_msg_data(&msg), zmq_msg_size(&msg));
    if (!m) continue; /* of a newer version */
    conn->on->message(conn, m);
    quark__server_message__free_unpacked(m, NULL);
  }
  zmq_msg_close(&msg);
}

static void read_data(quark_connection_t *conn) {
  zmq_msg_t msg;
  zmq_msg_init(&msg);
  for (int i = 0; i < BURST && conn->data && zmq_msg_recv(&msg, conn->data, ZMQ_DONTWAIT) >= 0;
       i++) {
    qk_frame_t frame;
    qk_frame_fault_t fault;
    const uint8_t *payload;
    conn->last_heard = quark__now_ms();
    const qk_status_t status =
        qk_frame_decode(zmq_msg_data(&msg), zmq_msg_size(&msg), &frame, &payload, &fault);
    if (status != QK_OK) {
      char text[128];
      snprintf(text, sizeof text, "data message with %s = %llu, limit %llu", fault.field,
               (unsigned long long)fault.value, (unsigned long long)fault.limit);
      conn->on->damaged(conn, (quark_code_t)status, text);
      break;
    }
    conn->on->frame(conn, &frame, payload);
  }
  zmq_msg_close(&msg);
}

/* Waits without the lock until a socket or the user has something to do. */
static void poll_sockets(quark_connection_t *conn, full_t full) {
  const bool control_full = conn->state == SESSION_OPEN && conn->out;
  zmq_pollitem_t item[6] = {
      {.fd = conn->wake, .events = ZMQ_POLLIN},
      {.socket = conn->control, .events = (short)(ZMQ_POLLIN | (control_full ? ZMQ_POLLOUT : 0))},
      {.socket = conn->control_monitor, .events = ZMQ_POLLIN},
      {.socket = conn->data, .events = (short)(ZMQ_POLLIN | (full.data ? ZMQ_POLLOUT : 0))},
      {.socket = conn->data_monitor, .events = ZMQ_POLLIN},
      {.fd = conn->local, .events = (short)(ZMQ_POLLIN | (full.local ? ZMQ_POLLOUT : 0))},
  };
  const int n_data = conn->local < 0 ? 5 : 6;
  const int n_items = conn->state == SESSION_DEAD ? 1 : conn->data ? n_data : 3;
  pthread_mutex_unlock(&conn->lock);
  zmq_poll(item, n_items, TICK_MS);
  pthread_mutex_lock(&conn->lock);
  uint64_t count;
  const ssize_t n = read(conn->wake, &count, sizeof count);
  (void)n;
}

static void *run(void *arg) {
  quark_connection_t *conn = arg;
  pthread_mutex_lock(&conn->lock);
  while (!conn->stop) {
    flush_control(conn);
    const full_t full = conn->on->send(conn);
    pthread_cond_broadcast(&conn->changed);
    poll_sockets(conn, full);
    if (conn->state == SESSION_DEAD) continue;
    read_control(conn);
    read_data(conn);
    conn->on->readable(conn);
    read_monitors(conn);
    conn->on->tick(conn);
  }
  flush_control(conn);
  conn->on->leave(conn);
  pthread_mutex_unlock(&conn->lock);
  return NULL;
}

quark_connection_t *quark__connection_create(const char *endpoint, uint32_t timeout_ms,
                                             const quark__handlers_t *handlers) {
  quark_connection_t *conn = calloc(1, sizeof *conn);
  if (!conn) return NULL;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&conn->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&conn->lock, NULL);
  conn->on = handlers;
  conn->out_end = &conn->out;
  conn->timeout_ms = timeout_ms;
  conn->local = -1;
  conn->last_heard = quark__now_ms();
  conn->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  conn->events = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  conn->endpoint = strndup(endpoint, strcspn(endpoint, " \t\r\n"));
  if (conn->wake >= 0 && conn->events >= 0 && conn->endpoint) return conn;
  quark__connection_destroy(conn);
  return NULL;
}

bool quark__connection_open(quark_connection_t *conn) {
  conn->zmq = zmq_ctx_new();
  return conn->zmq && quark__open_control_locked(conn);
}

bool quark__connection_start(quark_connection_t *conn) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&conn->thread, NULL, run, conn);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return !failed;
}

void quark__connection_stop(quark_connection_t *conn) {
  pthread_mutex_lock(&conn->lock);
  conn->stop = true;
  quark__wake(conn);
  pthread_mutex_unlock(&conn->lock);
  pthread_join(conn->thread, NULL);
}

void quark__connection_destroy(quark_connection_t *conn) {
  close_socket(&conn->control, &conn->control_monitor);
  close_socket(&conn->data, &conn->data_monitor);
  if (conn->local >= 0) close(conn->local);
  if (conn->zmq) zmq_ctx_term(conn->zmq);
  while (conn->out) {
    packet_t *next = conn->out->next;
    free(conn->out);
    conn->out = next;
  }
  if (conn->wake >= 0) close(conn->wake);
  if (conn->events >= 0) close(conn->events);
  pthread_cond_destroy(&conn->changed);
  pthread_mutex_destroy(&conn->lock);
  free(conn->endpoint);
  quark__curve_fini(&conn->curve);
  free(conn);
}
