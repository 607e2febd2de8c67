#include "daemon/front/zap.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"

static const char DOMAIN[] = "quarkd";

enum { LOOK_MS = 1000, PART_BYTES = 256, REFUSALS_LOGGED_MS = 1000 };
/* Parts of a request for CURVE. */
enum { VERSION, REQUEST_ID, OF_DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, PARTS };

struct qk_zap {
  qk_loop_t *loop;
  void *socket;
  qk_zsock_t sock;
  uv_timer_t look;
  int handles; /* that are not closed yet */
  char secret[QK_KEY_TEXT];
  qk_clients_t clients;
  uint64_t refused, unlogged; /* unlogged: since the last line about it */
  double logged_at;
};

typedef struct part {
  char data[PART_BYTES];
  int bytes;
} part_t;

/* A request whose parts are more, or longer, than those of CURVE's is no request of libzmq. */
static bool receive(void *socket, part_t part[PARTS]) {
  bool good = true;
  for (int i = 0, more = 1; more; i++) {
    part_t rest, *to = i < PARTS ? &part[i] : &rest;
    size_t size = sizeof more;
    to->bytes = zmq_recv(socket, to->data, PART_BYTES - 1, ZMQ_DONTWAIT);
    if (to->bytes < 0) return false;
    good = good && i < PARTS && to->bytes < PART_BYTES;
    to->data[to->bytes < PART_BYTES ? to->bytes : 0] = '\0';
    if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0) return false;
    if (!more) good = good && i == PARTS - 1;
  }
  return good;
}

static void answer(void *socket, const part_t part[PARTS], const char *code, const char *text,
                   const char *user_id) {
  zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
  zmq_send(socket, part[REQUEST_ID].data, (size_t)part[REQUEST_ID].bytes, ZMQ_SNDMORE);
  zmq_send(socket, code, strlen(code), ZMQ_SNDMORE);
  zmq_send(socket, text, strlen(text), ZMQ_SNDMORE);
  zmq_send(socket, user_id, strlen(user_id), ZMQ_SNDMORE);
  zmq_send(socket, "", 0, 0);
}

/* Peers that try again and again do not fill the log. */
static void log_refusal(qk_zap_t *zap, const char *address) {
  const double now = qk_loop_seconds(zap->loop);
  zap->refused++;
  if (zap->refused > 1 && now - zap->logged_at < REFUSALS_LOGGED_MS * 1e-3) {
    zap->unlogged++;
    return;
  }
  qk_warn("zap", "refused a connection from %s: its key is not in %s (%llu more refused before)",
          address, zap->clients.folder, (unsigned long long)zap->unlogged);
  zap->unlogged = 0;
  zap->logged_at = now;
}

static void on_request(void *arg) {
  qk_zap_t *zap = arg;
  part_t part[PARTS] = {{.bytes = 0}};
  char key[QK_KEY_TEXT] = "";
  const qk_client_t *client = NULL;
  const bool whole = receive(zap->socket, part) && strcmp(part[VERSION].data, "1.0") == 0 &&
                     strcmp(part[OF_DOMAIN].data, DOMAIN) == 0 &&
                     strcmp(part[MECHANISM].data, "CURVE") == 0 &&
                     part[CREDENTIALS].bytes == QK_KEY_BYTES &&
                     zmq_z85_encode(key, (const uint8_t *)part[CREDENTIALS].data, QK_KEY_BYTES);
  if (whole) {
    qk_clients_refresh(&zap->clients);
    client = qk_clients_find(&zap->clients, key);
  }
  if (client) {
    answer(zap->socket, part, "200", "OK", key);
    return;
  }
  log_refusal(zap, part[ADDRESS].data);
  answer(zap->socket, part, "400", "not authorised", "");
}

static void on_look(uv_timer_t *timer) {
  qk_zap_t *zap = timer->data;
  qk_clients_refresh(&zap->clients);
}

/* ---- life ---------------------------------------------------------------------------------- */

static qk_status_t read_key(qk_zap_t *zap, const char *key_file, qk_err_t *err) {
  char public[QK_KEY_TEXT], why[400];
  if (qk_key_read_secret(key_file, zap->secret, why, sizeof why) != QK_OK)
    return qk_fail(err, QK_BAD_ARGUMENT, "curve-key: %s", why);
  if (zmq_curve_public(public, zap->secret) != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "curve-key: %.300s: no secret key", key_file);
  return QK_OK;
}

qk_status_t qk_zap_open(qk_loop_t *loop, void *zmq, const char *key_file, const char *folder,
                        qk_zap_t **out, qk_err_t *err) {
  if (!zmq_has("curve"))
    return qk_fail(err, QK_UNSUPPORTED,
                   "curve-key: this libzmq was built without CURVE: listen on ipc:// or loopback");
  qk_zap_t *zap = qk_calloc(1, sizeof *zap);
  if (!zap) return qk_fail(err, QK_NO_MEMORY, "no memory for authentication");
  zap->loop = loop;
  qk_clients_init(&zap->clients, folder);
  qk_status_t status = read_key(zap, key_file, err);
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
  qk_clients_refresh(&zap->clients);
  uv_timer_init(&loop->uv, &zap->look);
  zap->look.data = zap;
  uv_timer_start(&zap->look, on_look, LOOK_MS, LOOK_MS);
  zap->handles = 2;
  *out = zap;
  return QK_OK;
fail:
  if (zap->socket) zmq_close(zap->socket);
  explicit_bzero(zap->secret, sizeof zap->secret);
  qk_free(zap);
  return status;
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

qk_status_t qk_zap_guard(const qk_zap_t *zap, void *socket, qk_err_t *err) {
  int one = 1;
  if (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &one, sizeof one) == 0 &&
      zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, zap->secret, QK_KEY_TEXT) == 0 &&
      zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, DOMAIN, strlen(DOMAIN)) == 0)
    return QK_OK;
  return qk_fail(err, QK_INTERNAL, "CURVE: %s", zmq_strerror(zmq_errno()));
}

bool qk_zap_who(const qk_zap_t *zap, zmq_msg_t *msg, qk_who_t *who) {
  *who = (qk_who_t){.role = QK_ROLE_OPERATE};
  if (!zap) return true;
  /* Without a handler libzmq lets any key in, but then there is no such property. */
  const char *key = zmq_msg_gets(msg, "User-Id");
  const qk_client_t *client = key ? qk_clients_find(&zap->clients, key) : NULL;
  if (!client) return false;
  *who = (qk_who_t){.role = client->role, .user = client->user};
  return true;
}

uint64_t qk_zap_refused(const qk_zap_t *zap) {
  return zap ? zap->refused : 0;
}
