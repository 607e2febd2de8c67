#include "client/libquark/internal.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum {
  HEARTBEAT_IVL = 5000,
  HEARTBEAT_TIMEOUT = 20000,
  GOODBYE_LINGER = 1000,
  TICK_MS = 200,
  BURST = 16,
  EVENTS = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
           ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
           ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
};

void quark__wake(quark_connection_t *conn) {
  const uint64_t one = 1;
  /* A full counter is readable already, so a failed write loses nothing. */
  const ssize_t n = write(conn->wake, &one, sizeof one);
  (void)n;
}

void quark__update_events_locked(quark_connection_t *conn) {
  uint64_t value = 1;
  const ssize_t n = quark__event_waits_locked(conn) ? write(conn->events, &value, sizeof value)
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

quark_code_t quark__post_bytes_locked(quark_connection_t *conn, const uint8_t *data, size_t bytes,
                                      quark_error_t *err) {
  packet_t *p = malloc(sizeof *p + bytes);
  if (!p) return quark__fail(err, QUARK_NO_MEMORY, "no memory for a message of %zu bytes", bytes);
  p->next = NULL;
  p->bytes = bytes;
  memcpy(p->data, data, bytes);
  *conn->out_end = p;
  conn->out_end = &p->next;
  quark__wake(conn);
  return QUARK_OK;
}

quark_code_t quark__post_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                quark_error_t *err) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&message->base, &bytes);
  if (!data)
    return quark__fail(err, QUARK_NO_MEMORY, "no memory for a message, or it is over %d bytes",
                       QK_CONTROL_MAX);
  const quark_code_t code = quark__post_bytes_locked(conn, data, bytes, err);
  free(data);
  return code;
}

/* Without a session only what session.c sends itself passes. */
static void flush_control(quark_connection_t *conn) {
  while (conn->state == SESSION_OPEN && conn->out) {
    packet_t *p = conn->out;
    if (zmq_send(conn->control, p->data, p->bytes, ZMQ_DONTWAIT) < 0) return;
    conn->last_sent = quark__now_ms();
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
  if (*conn->server_key) max_bytes += QK_CURVE_EXTRA;
  const bool ok =
      quark__curve_guard(conn, socket) &&
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

bool quark__open_control(quark_connection_t *conn) {
  char name[48];
  close_socket(&conn->control, &conn->control_monitor);
  snprintf(name, sizeof name, "inproc://control-%u", conn->sockets++);
  conn->control =
      open_socket(conn, conn->endpoint, QK_CONTROL_MAX, 0, name, &conn->control_monitor);
  return conn->control != NULL;
}

bool quark__open_data(quark_connection_t *conn, const char *endpoint) {
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
      quark__session_connected_locked(conn);
    else if (event == ZMQ_EVENT_DISCONNECTED)
      quark__session_lost_locked(conn);
    else
      quark__curve_failed_locked(conn, event, value);
  }
  while ((event = monitor_event(conn->data_monitor, &value))) {
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) continue;
    if (event != ZMQ_EVENT_DISCONNECTED) {
      quark__curve_failed_locked(conn, event, value);
      continue;
    }
    if (conn->state == SESSION_OPEN || conn->state == SESSION_BINDING)
      quark__session_connected_locked(conn);
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
    quark__session_message_locked(conn, m);
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
      quark__session_die_locked(conn, (quark_code_t)status, text);
      break;
    }
    if (frame.kind == QK_FRAME_BOUND) quark__session_bound_locked(conn);
    if (frame.kind == QK_FRAME_DOWNLOAD) quark__download_chunk_locked(conn, &frame, payload);
  }
  zmq_msg_close(&msg);
}

/* Waits without the lock until a socket or the user has something to do. */
static void poll_sockets(quark_connection_t *conn, bool data_full, bool local_full) {
  const bool control_full = conn->state == SESSION_OPEN && conn->out;
  zmq_pollitem_t item[6] = {
      {.fd = conn->wake, .events = ZMQ_POLLIN},
      {.socket = conn->control, .events = (short)(ZMQ_POLLIN | (control_full ? ZMQ_POLLOUT : 0))},
      {.socket = conn->control_monitor, .events = ZMQ_POLLIN},
      {.socket = conn->data, .events = (short)(ZMQ_POLLIN | (data_full ? ZMQ_POLLOUT : 0))},
      {.socket = conn->data_monitor, .events = ZMQ_POLLIN},
      {.fd = conn->local, .events = (short)(ZMQ_POLLIN | (local_full ? ZMQ_POLLOUT : 0))},
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

static void say_goodbye(quark_connection_t *conn) {
  flush_control(conn);
  if (conn->keep_session || conn->state != SESSION_OPEN) {
    set_int(conn->control, ZMQ_LINGER, conn->state == SESSION_OPEN ? GOODBYE_LINGER : 0);
    return;
  }
  Quark__Goodbye goodbye = QUARK__GOODBYE__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_GOODBYE;
  message.goodbye = &goodbye;
  size_t bytes;
  uint8_t *data = qk_control_pack(&message.base, &bytes);
  if (data) zmq_send(conn->control, data, bytes, ZMQ_DONTWAIT);
  free(data);
  set_int(conn->control, ZMQ_LINGER, GOODBYE_LINGER);
}

static void *run(void *arg) {
  quark_connection_t *conn = arg;
  pthread_mutex_lock(&conn->lock);
  while (!conn->stop) {
    flush_control(conn);
    const bool data_full = conn->state == SESSION_OPEN && !quark__upload_send_locked(conn);
    const bool local_full = !quark__local_send_locked(conn);
    quark__update_events_locked(conn);
    pthread_cond_broadcast(&conn->changed);
    poll_sockets(conn, data_full, local_full);
    if (conn->state == SESSION_DEAD) continue;
    read_control(conn);
    read_data(conn);
    quark__local_read_locked(conn);
    read_monitors(conn);
    quark__session_tick_locked(conn);
    quark__local_tick_locked(conn);
  }
  say_goodbye(conn);
  pthread_mutex_unlock(&conn->lock);
  return NULL;
}

void quark_options_init(quark_options_t *options) {
  *options =
      (quark_options_t){.timeout_ms = 10000, .reconnect_ms = QUARK_RECONNECT_AUTO, .local = true};
}

static bool init_identity(quark_connection_t *conn, const quark_options_t *options) {
  struct passwd entry, *pw = NULL;
  char buffer[1024];
  if (!options->user) getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &pw);
  conn->user = strndup(options->user ? options->user : pw ? pw->pw_name : "", QK_USER_MAX);
  conn->setup = options->setup ? strdup(options->setup) : NULL;
  conn->program = strndup(options->program ? options->program : "libquark", QK_PROGRAM_MAX);
  if (!options->client_id)
    return getrandom(conn->client_id, sizeof conn->client_id, 0) == (ssize_t)sizeof conn->client_id;
  memcpy(conn->client_id, options->client_id, sizeof conn->client_id);
  /* Above every number that this id had before, by whatever process. */
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  conn->last_request = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
  return true;
}

static void destroy(quark_connection_t *conn) {
  close_socket(&conn->control, &conn->control_monitor);
  close_socket(&conn->data, &conn->data_monitor);
  if (conn->local >= 0) close(conn->local);
  if (conn->spare.fd >= 0) close(conn->spare.fd);
  if (conn->zmq) zmq_ctx_term(conn->zmq);
  while (conn->requests) {
    request_t *next = conn->requests->next;
    quark__request_free(conn->requests);
    conn->requests = next;
  }
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
  free(conn->denied);
  free(conn->user);
  free(conn->program);
  free(conn->setup);
  explicit_bzero(conn->secret_key, sizeof conn->secret_key);
  free(conn);
}

static quark_connection_t *create(const char *endpoint, const quark_options_t *options) {
  quark_connection_t *conn = calloc(1, sizeof *conn);
  if (!conn) return NULL;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&conn->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&conn->lock, NULL);
  conn->out_end = &conn->out;
  conn->timeout_ms = options->timeout_ms;
  conn->reconnect_ms = options->reconnect_ms;
  conn->keep_session = options->keep_session;
  conn->sought = options->sought;
  conn->sought_arg = options->sought_arg;
  conn->try_local = options->local;
  conn->local = conn->spare.fd = -1;
  conn->seeking_since = conn->last_heard = quark__now_ms();
  conn->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  conn->events = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  conn->endpoint = strndup(endpoint, strcspn(endpoint, " \t\r\n"));
  if (conn->wake >= 0 && conn->events >= 0 && conn->endpoint && init_identity(conn, options) &&
      conn->user && conn->program && (conn->setup || !options->setup))
    return conn;
  destroy(conn);
  return NULL;
}

static int start_thread(quark_connection_t *conn) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&conn->thread, NULL, run, conn);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

quark_code_t quark_connect(const char *endpoint, const quark_options_t *options,
                           quark_connection_t **conn, quark_error_t *err) {
  quark_options_t defaults;
  quark_options_init(&defaults);
  quark_connection_t *c = create(endpoint, options ? options : &defaults);
  if (!c) return quark__fail(err, QUARK_NO_MEMORY, "no memory or descriptors for a connection");
  quark_code_t code = quark__curve_init(c, options ? options : &defaults, err);
  if (code != QUARK_OK) goto fail;
  c->zmq = zmq_ctx_new();
  if (!c->zmq || !quark__open_control(c)) {
    code =
        quark__fail(err, errno == EMFILE || errno == ENOMEM ? QUARK_NO_MEMORY : QUARK_BAD_ARGUMENT,
                    "endpoint \"%s\": %s", endpoint, zmq_strerror(errno));
    goto fail;
  }
  if (start_thread(c) != 0) {
    code = quark__fail(err, QUARK_NO_MEMORY, "no thread for a connection");
    goto fail;
  }
  const int64_t deadline = quark__now_ms() + c->timeout_ms;
  pthread_mutex_lock(&c->lock);
  while (c->state != SESSION_OPEN && c->state != SESSION_DEAD && quark__wait_locked(c, deadline))
    continue;
  const bool open = c->state == SESSION_OPEN;
  code = QUARK_OK;
  if (c->state == SESSION_DEAD)
    code = quark__hand_on(err, &c->death);
  else if (!open)
    code = quark__fail(err, QUARK_TIMEOUT, "no answer from %s within %u ms%s", c->endpoint,
                       c->timeout_ms, c->broken_handshakes ? ": the handshake breaks off" : "");
  pthread_mutex_unlock(&c->lock);
  if (!open) {
    quark_close(c);
    return code;
  }
  *conn = c;
  return QUARK_OK;
fail:
  destroy(c);
  return code;
}

void quark_close(quark_connection_t *conn) {
  if (!conn) return;
  pthread_mutex_lock(&conn->lock);
  conn->stop = true;
  quark__wake(conn);
  pthread_mutex_unlock(&conn->lock);
  pthread_join(conn->thread, NULL);
  destroy(conn);
}

void quark_client_id(const quark_connection_t *conn, uint8_t id[QUARK_CLIENT_ID_BYTES]) {
  memcpy(id, conn->client_id, QK_CLIENT_ID);
}

bool quark_resumed(const quark_connection_t *conn) {
  return conn->resumed;
}

int quark_fd(const quark_connection_t *conn) {
  return conn->events;
}
