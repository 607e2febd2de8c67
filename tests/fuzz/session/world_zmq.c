/* world_zmq.c: libzmq as the front uses it, and zap.h; sockets are lists in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "tests/fuzz/session/world.h"

enum { PEER_ID = 5, PEERS = 256 };

typedef struct part {
  uint8_t *data;
  size_t bytes;
  bool more;
  uint8_t peer;
  world_channel_t channel;
  uint64_t connection;
} part_t;
_Static_assert(sizeof(part_t) <= sizeof(zmq_msg_t), "a message has room for a part");

typedef struct letter {
  qk_link_t link;
  part_t part;
} letter_t;

typedef struct mailbox {
  world_channel_t channel;
  qk_link_t letters;
  int to;      /* peer of the message that is being sent; number of the engine */
  bool opened; /* its first part has been */
} mailbox_t;

static mailbox_t *router[2]; /* WORLD_CONTROL, WORLD_DATA */
static mailbox_t *dealer[WORLD_ENGINES];
static int unbound;                   /* dealers that have no endpoint yet */
static uint64_t connection[2][PEERS]; /* of a peer there; those before have ended */

static part_t *part_of(zmq_msg_t *msg) {
  return (part_t *)(void *)msg;
}

static part_t copy_of(const void *data, size_t bytes, bool more) {
  part_t part = {.data = malloc(bytes + (bytes == 0)), .bytes = bytes, .more = more};
  QK_ASSERT(part.data);
  if (bytes > 0) memcpy(part.data, data, bytes);
  return part;
}

uint64_t world_connection(world_channel_t channel, int peer) {
  return 1 + connection[channel][peer];
}

static void post(mailbox_t *box, int peer, const void *data, size_t bytes, bool more) {
  letter_t *l = calloc(1, sizeof *l);
  QK_ASSERT(l);
  l->part = copy_of(data, bytes, more);
  l->part.peer = (uint8_t)peer;
  l->part.channel = box->channel;
  if (box->channel != WORLD_ENGINE) l->part.connection = world_connection(box->channel, peer);
  qk_link_init(&l->link);
  qk_list_append(&box->letters, &l->link);
}

static bool fetch(mailbox_t *box, part_t *part) {
  if (qk_link_alone(&box->letters)) return false;
  letter_t *l = QK_HOLDER(box->letters.next, letter_t, link);
  *part = l->part;
  qk_link_remove(&l->link);
  free(l);
  return true;
}

void world_say(world_channel_t channel, int peer, const void *data, size_t bytes, int parts) {
  mailbox_t *box = channel == WORLD_ENGINE ? dealer[peer] : router[channel];
  const uint8_t id[PEER_ID] = {0, 1, 2, 3, (uint8_t)peer};
  if (!box) return;
  if (channel != WORLD_ENGINE) post(box, peer, id, sizeof id, parts > 0);
  for (int i = 0; i < parts; i++) post(box, peer, data, bytes, i + 1 < parts);
}

void world_reconnect(world_channel_t channel, int peer) {
  connection[channel][peer]++;
}

bool world_readable(const void *socket) {
  const mailbox_t *box = socket;
  return !qk_link_alone(&box->letters);
}

bool world_waiting(void) {
  return router[WORLD_CONTROL] && world_readable(router[WORLD_CONTROL]);
}

bool world_unheard(int engine) {
  return dealer[engine] && world_readable(dealer[engine]);
}

void *zmq_ctx_new(void) {
  return router;
}

int zmq_ctx_set(void *context, int option, int value) {
  (void)context, (void)option, (void)value;
  return 0;
}

/* There are no data threads. */
int zmq_poll(zmq_pollitem_t *items, int nitems, long timeout) {
  (void)items, (void)nitems, (void)timeout;
  QK_ASSERT(!"a thread polls");
  return -1;
}

int zmq_ctx_term(void *context) {
  (void)context;
  QK_ASSERT(!router[0] && !router[1] && unbound == 0);
  for (int e = 0; e < WORLD_ENGINES; e++) QK_ASSERT(!dealer[e]);
  return 0;
}

/* The first ROUTER is that for control, the other one that for data. */
void *zmq_socket(void *context, int type) {
  (void)context;
  mailbox_t *box = calloc(1, sizeof *box);
  QK_ASSERT(box);
  qk_link_init(&box->letters);
  box->to = -1;
  if (type == ZMQ_DEALER) {
    box->channel = WORLD_ENGINE;
    unbound++;
    return box;
  }
  box->channel = router[WORLD_CONTROL] == NULL ? WORLD_CONTROL : WORLD_DATA;
  QK_ASSERT(!router[box->channel]);
  router[box->channel] = box;
  return box;
}

int zmq_close(void *socket) {
  mailbox_t *box = socket;
  for (part_t part; fetch(box, &part);) free(part.data);
  if (box->channel != WORLD_ENGINE) {
    router[box->channel] = NULL;
  } else if (box->to < 0) {
    unbound--;
  } else {
    dealer[box->to] = NULL;
    world_engine_hang_up(box->to);
  }
  free(box);
  return 0;
}

int zmq_setsockopt(void *socket, int option, const void *value, size_t bytes) {
  (void)socket, (void)option, (void)value, (void)bytes;
  return 0;
}

int zmq_getsockopt(void *socket, int option, void *value, size_t *bytes) {
  (void)socket;
  QK_ASSERT(option == ZMQ_LAST_ENDPOINT);
  snprintf(value, *bytes, "inproc://front");
  return 0;
}

int zmq_bind(void *socket, const char *endpoint) {
  mailbox_t *box = socket;
  if (box->channel != WORLD_ENGINE) return 0;
  QK_ASSERT(box->to < 0);
  box->to = world_engine_number(endpoint);
  QK_ASSERT(!dealer[box->to]);
  dealer[box->to] = box;
  unbound--;
  return 0;
}

int zmq_errno(void) {
  return errno;
}

const char *zmq_strerror(int e) {
  return strerror(e);
}

/* As a ROUTER with ZMQ_ROUTER_MANDATORY: the first part names the peer and fails where
 * it cannot be reached. */
int zmq_send(void *socket, const void *data, size_t bytes, int flags) {
  mailbox_t *box = socket;
  const uint8_t *id = data;
  if (box->channel != WORLD_ENGINE && !box->opened) {
    QK_ASSERT(flags & ZMQ_SNDMORE && bytes == PEER_ID);
    errno = takes(box->channel, id[PEER_ID - 1]);
    if (errno != 0) return -1;
    box->to = id[PEER_ID - 1];
    box->opened = true;
    return (int)bytes;
  }
  if (box->channel == WORLD_ENGINE && (errno = takes(WORLD_ENGINE, box->to)) != 0) return -1;
  QK_ASSERT(!(flags & ZMQ_SNDMORE));
  box->opened = false;
  hears(box->channel, box->to, data, bytes);
  return (int)bytes;
}

int zmq_msg_init(zmq_msg_t *msg) {
  *part_of(msg) = (part_t){0};
  return 0;
}

int zmq_msg_init_size(zmq_msg_t *msg, size_t bytes) {
  *part_of(msg) = (part_t){.data = malloc(bytes + (bytes == 0)), .bytes = bytes};
  return part_of(msg)->data ? 0 : -1;
}

int zmq_msg_close(zmq_msg_t *msg) {
  free(part_of(msg)->data);
  part_of(msg)->data = NULL;
  return 0;
}

int zmq_msg_send(zmq_msg_t *msg, void *socket, int flags) {
  const int sent = zmq_send(socket, part_of(msg)->data, part_of(msg)->bytes, flags);
  if (sent >= 0) zmq_msg_close(msg);
  return sent;
}

int zmq_msg_recv(zmq_msg_t *msg, void *socket, int flags) {
  part_t part;
  QK_ASSERT(flags & ZMQ_DONTWAIT);
  if (!fetch(socket, &part)) {
    errno = EAGAIN;
    return -1;
  }
  zmq_msg_close(msg);
  *part_of(msg) = part;
  return (int)part.bytes;
}

int zmq_recv(void *socket, void *data, size_t bytes, int flags) {
  part_t part;
  (void)data, (void)bytes;
  QK_ASSERT(flags & ZMQ_DONTWAIT);
  if (!fetch(socket, &part)) return -1;
  free(part.data);
  return (int)part.bytes;
}

void *zmq_msg_data(zmq_msg_t *msg) {
  return part_of(msg)->data;
}

size_t zmq_msg_size(const zmq_msg_t *msg) {
  return part_of((zmq_msg_t *)msg)->bytes;
}

/* Nor do their connections come and go. */
int zmq_socket_monitor(void *socket, const char *endpoint, int events) {
  (void)socket, (void)endpoint, (void)events;
  errno = ENOTSUP;
  return -1;
}

/* Peers have no descriptors. */
int zmq_msg_get(const zmq_msg_t *msg, int property) {
  (void)msg, (void)property;
  return -1;
}

int zmq_msg_more(const zmq_msg_t *msg) {
  return part_of((zmq_msg_t *)msg)->more;
}

/* ---- zap.h: everybody is let in, by connections that have numbers ---------------------------- */

qk_status_t qk_zap_open(qk_loop_t *loop, void *zmq, const char *key_file, const char *folder,
                        uint64_t *refused, qk_zap_t **zap, qk_err_t *err) {
  (void)loop, (void)zmq, (void)folder, (void)refused, (void)err;
  QK_ASSERT(!key_file);
  *zap = NULL;
  return QK_OK;
}

void qk_zap_close(qk_zap_t *zap) {
  (void)zap;
}

/* Nobody shakes hands. */
void qk_zap_wait_for(qk_zap_t *zap, bool (*ready)(void *arg), void *arg) {
  (void)zap, (void)ready, (void)arg;
}

qk_status_t qk_zap_guard(const qk_zap_t *zap, void *socket, qk_err_t *err) {
  (void)zap, (void)socket, (void)err;
  return QK_OK;
}

bool qk_zap_curve(const qk_zap_t *zap) {
  (void)zap;
  return false;
}

bool qk_zap_who(const qk_zap_t *zap, zmq_msg_t *msg, qk_who_t *who) {
  (void)zap;
  *who = (qk_who_t){.connection = part_of(msg)->connection, .role = QK_ROLE_OPERATE};
  return true;
}

bool qk_zap_allows(const qk_zap_t *zap, const char *key, const char *user, qk_role_t role) {
  (void)zap, (void)key, (void)user, (void)role;
  return true;
}

uint64_t qk_zap_changes(const qk_zap_t *zap) {
  (void)zap;
  return 0;
}
