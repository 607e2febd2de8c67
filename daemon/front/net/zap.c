#include "daemon/front/net/zap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"

static const char DOMAIN[] = "quarkd";
/* Of metadata that connections get; what a peer says under this name does not replace it. */
static const char CONNECTION[] = "X-Connection";
/* The folder is not looked at, nor asked for its time, again before so many times what that
 * took. */
static const double REST = 20;

enum { LOOK_MS = 1000, PART_BYTES = 256, REFUSALS_LOGGED_MS = 1000 };
/* Parts of a request; NULL has no credentials. */
enum { VERSION, REQUEST_ID, OF_DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, PARTS };

struct qk_zap {
  qk_loop_t *loop;
  void *socket;
  qk_zsock_t sock;
  uv_timer_t look;
  int handles;              /* that are not closed yet */
  bool (*ready)(void *arg); /* NULL: always */
  void *ready_arg;
  bool curve;
  char secret[QK_KEY_TEXT];
  uint64_t connections; /* so far */
  qk_clients_t clients;
  double look_from, ask_from;  /* seconds of CLOCK_MONOTONIC */
  uint64_t *refused, unlogged; /* unlogged: since the last line about it */
  double logged_at;
};

typedef struct part {
  char data[PART_BYTES];
  int bytes;
} part_t;

/* A request whose parts are more, or longer, is no request of libzmq. */
static bool receive(void *socket, int parts, part_t part[PARTS]) {
  bool good = true;
  for (int i = 0, more = 1; more; i++) {
    part_t rest, *to = i < PARTS ? &part[i] : &rest;
    size_t size = sizeof more;
    to->bytes = zmq_recv(socket, to->data, PART_BYTES - 1, ZMQ_DONTWAIT);
    if (to->bytes < 0) return false;
    good = good && i < parts && to->bytes < PART_BYTES;
    to->data[to->bytes < PART_BYTES ? to->bytes : 0] = '\0';
    if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0) return false;
    if (!more) good = good && i == parts - 1;
  }
  return good;
}

/* As ZMTP has it: a byte with the length of the name, four with that of the value. */
static size_t put_property(char *to, const char *name, const char *value) {
  const size_t n = strlen(name), v = strlen(value);
  const char head[4] = {0, 0, 0, (char)v};
  to[0] = (char)n;
  memcpy(to + 1, name, n);
  memcpy(to + 1 + n, head, sizeof head);
  memcpy(to + 1 + n + sizeof head, value, v);
  return 1 + n + sizeof head + v;
}

static void answer(void *socket, const part_t part[PARTS], const char *code, const char *text,
                   const char *user_id, uint64_t connection) {
  char number[24], metadata[64];
  size_t bytes = 0;
  snprintf(number, sizeof number, "%" PRIu64, connection);
  if (connection > 0) bytes = put_property(metadata, CONNECTION, number);
  zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
  zmq_send(socket, part[REQUEST_ID].data, (size_t)part[REQUEST_ID].bytes, ZMQ_SNDMORE);
  zmq_send(socket, code, strlen(code), ZMQ_SNDMORE);
  zmq_send(socket, text, strlen(text), ZMQ_SNDMORE);
  zmq_send(socket, user_id, strlen(user_id), ZMQ_SNDMORE);
  zmq_send(socket, metadata, bytes, 0);
}

/* Peers that try again and again do not fill the log. */
static void log_refusal(qk_zap_t *zap, const char *address) {
  const double now = qk_loop_seconds(zap->loop);
  ++*zap->refused;
  if (*zap->refused > 1 && now - zap->logged_at < REFUSALS_LOGGED_MS * 1e-3) {
    zap->unlogged++;
    return;
  }
  qk_warn("zap", "refused a connection from %s: its key is not in %s (%llu more refused before)",
          address, zap->clients.folder, (unsigned long long)zap->unlogged);
  zap->unlogged = 0;
  zap->logged_at = now;
}

static void look(qk_zap_t *zap) {
  const double begin = qk_clock_now();
  qk_clients_refresh(&zap->clients);
  const double end = qk_clock_now();
  zap->look_from = end + REST * (end - begin);
}

/* Looks at the folder if something has come or gone, which strangers cannot bring about, so that
 * there is no rest: who has just been added comes in at once. */
static void follow(qk_zap_t *zap) {
  const double begin = qk_clock_now();
  if (begin < zap->ask_from) return;
  const bool moved = qk_clients_moved(&zap->clients);
  const double end = qk_clock_now();
  zap->ask_from = end + REST * (end - begin);
  if (moved) look(zap);
}

/* "": it has none that is authorised. */
static void find_key(qk_zap_t *zap, const part_t *credentials, char key[QK_KEY_TEXT]) {
  char text[QK_KEY_TEXT];
  key[0] = '\0';
  if (credentials->bytes != QK_KEY_BYTES ||
      !zmq_z85_encode(text, (const uint8_t *)credentials->data, QK_KEY_BYTES))
    return;
  follow(zap);
  if (qk_clients_find(&zap->clients, text)) memcpy(key, text, QK_KEY_TEXT);
}

static void handle(qk_zap_t *zap) {
  part_t part[PARTS] = {{.bytes = 0}};
  char key[QK_KEY_TEXT] = "";
  const bool whole = receive(zap->socket, zap->curve ? PARTS : CREDENTIALS, part) &&
                     strcmp(part[VERSION].data, "1.0") == 0 &&
                     strcmp(part[OF_DOMAIN].data, DOMAIN) == 0 &&
                     strcmp(part[MECHANISM].data, zap->curve ? "CURVE" : "NULL") == 0;
  if (whole && zap->curve) find_key(zap, &part[CREDENTIALS], key);
  if (whole && (key[0] || !zap->curve)) {
    answer(zap->socket, part, "200", "OK", key, ++zap->connections);
    return;
  }
  log_refusal(zap, part[ADDRESS].data);
  answer(zap->socket, part, "400", "not authorised", "", 0);
}

static void on_request(void *arg) {
  qk_zap_t *zap = arg;
  do {
    if (zap->ready && !zap->ready(zap->ready_arg)) return;
    handle(zap);
  } while (qk_loop_readable(&zap->sock) && !qk_loop_time_is_up(zap->loop));
}

static void on_look(uv_timer_t *timer) {
  qk_zap_t *zap = timer->data;
  if (qk_clock_now() >= zap->look_from) look(zap);
}

/* ---- life ---------------------------------------------------------------------------------- */

static qk_status_t read_key(qk_zap_t *zap, const char *key_file, qk_err_t *err) {
  char public[QK_KEY_TEXT], why[400];
  if (qk_key_read_secret(key_file, zap->secret, why, sizeof why) != QK_OK)
    return qk_fail(err, QK_BAD_ARGUMENT, "curve-key: %s", why);
  if (zmq_curve_public(public, zap->secret) != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "curve-key: %.300s: not a secret key", key_file);
  return QK_OK;
}

qk_status_t qk_zap_open(qk_loop_t *loop, void *zmq, const char *key_file, const char *folder,
                        uint64_t *refused, qk_zap_t **out, qk_err_t *err) {
  if (key_file && !zmq_has("curve"))
    return qk_fail(err, QK_UNSUPPORTED,
                   "curve-key: this libzmq was built without CURVE: listen on ipc:// or loopback");
  qk_zap_t *zap = qk_calloc(1, sizeof *zap);
  if (!zap) return qk_fail(err, QK_NO_MEMORY, "no memory for authentication");
  zap->loop = loop;
  zap->refused = refused;
  zap->curve = key_file != NULL;
  qk_clients_init(&zap->clients, folder);
  qk_status_t status = zap->curve ? read_key(zap, key_file, err) : QK_OK;
  if (status != QK_OK) goto fail;
  int linger = 0;
  zap->socket = zmq_socket(zmq, ZMQ_REP);
  if (!zap->socket || zmq_setsockopt(zap->socket, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
      zmq_bind(zap->socket, ZAP_ENDPOINT) != 0) {
    status = qk_fail(err, QK_INTERNAL, "%s: %s", ZAP_ENDPOINT, zmq_strerror(zmq_errno()));
    goto fail;
  }
  status = qk_loop_attach(loop, &zap->sock, zap->socket, on_request, zap, err);
  if (status != QK_OK) goto fail;
  uv_timer_init(&loop->uv, &zap->look);
  zap->look.data = zap;
  if (zap->curve) {
    look(zap);
    uv_timer_start(&zap->look, on_look, LOOK_MS, LOOK_MS);
  }
  zap->handles = 2;
  *out = zap;
  return QK_OK;
fail:
  if (zap->socket) zmq_close(zap->socket);
  explicit_bzero(zap->secret, sizeof zap->secret);
  qk_free(zap);
  return status;
}

void qk_zap_wait_for(qk_zap_t *zap, bool (*ready)(void *arg), void *arg) {
  zap->ready = ready;
  zap->ready_arg = arg;
}

static void on_closed(uv_handle_t *handle) {
  qk_zap_t *zap = handle->data;
  if (--zap->handles == 0) qk_free(zap);
}

void qk_zap_close(qk_zap_t *zap) {
  if (!zap) return;
  explicit_bzero(zap->secret, sizeof zap->secret);
  zap->sock.poll.data = zap;
  qk_loop_detach(&zap->sock, on_closed);
  uv_close((uv_handle_t *)&zap->look, on_closed);
  zmq_close(zap->socket);
}

/* ---- sockets and messages ------------------------------------------------------------------ */

static bool set_curve(const qk_zap_t *zap, void *socket) {
  const int one = 1;
  return zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &one, sizeof one) == 0 &&
         zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, zap->secret, QK_KEY_TEXT) == 0;
}

qk_status_t qk_zap_guard(const qk_zap_t *zap, void *socket, qk_err_t *err) {
  if (zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, DOMAIN, strlen(DOMAIN)) == 0 &&
      (!zap->curve || set_curve(zap, socket)))
    return QK_OK;
  return qk_fail(err, QK_INTERNAL, "authentication: %s", zmq_strerror(zmq_errno()));
}

bool qk_zap_curve(const qk_zap_t *zap) {
  return zap->curve;
}

bool qk_zap_who(const qk_zap_t *zap, zmq_msg_t *msg, qk_who_t *who) {
  const char *number = zmq_msg_gets(msg, CONNECTION);
  *who = (qk_who_t){.connection = number ? strtoull(number, NULL, 10) : 0, .role = QK_ROLE_OPERATE};
  if (!number) return false; /* where there is no handler libzmq lets everybody in */
  if (!zap->curve) return true;
  const char *key = zmq_msg_gets(msg, "User-Id");
  const qk_client_t *client = key ? qk_clients_find(&zap->clients, key) : NULL;
  if (!client) return false;
  who->role = client->role;
  who->user = client->user;
  who->key = client->key;
  return true;
}

bool qk_zap_allows(const qk_zap_t *zap, const char *key, const char *user, qk_role_t role) {
  if (!zap->curve) return true;
  const qk_client_t *client = qk_clients_find(&zap->clients, key);
  return client && client->role >= role && strcmp(client->user, user) == 0;
}

uint64_t qk_zap_changes(const qk_zap_t *zap) {
  return zap->clients.changes;
}
