#include "tests/support/fake_daemon.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "proto/control.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/support/fake_daemon_impl.h"
#include "tests/support/fake_status.h"

const uint8_t fake_token[QK_CLIENT_ID] = "0123456789abcde";

/* First to a free port, later to the same one, once the socket that had it is closed. */
static void *bind_socket(state_t *s, char *endpoint, size_t bytes) {
  const int linger = 0;
  void *socket = zmq_socket(s->zmq, ZMQ_ROUTER);
  zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
  while (zmq_bind(socket, *endpoint ? endpoint : "tcp://127.0.0.1:*") != 0) zmq_poll(NULL, 0, 1);
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &bytes);
  return socket;
}

static void bind_sockets(state_t *s) {
  s->control = bind_socket(s, s->d->endpoint, sizeof s->d->endpoint);
  s->data = bind_socket(s, s->data_endpoint, sizeof s->data_endpoint);
  s->control_peer.bytes = s->data_peer.bytes = 0;
}

static void break_connections(state_t *s) {
  fake_local_drop(s);
  s->d->script.feature = (int)s->d->script.later_feature;
  zmq_close(s->control);
  zmq_close(s->data);
  bind_sockets(s);
  if (s->d->script.remake) {
    s->attempt++;
    for (uint64_t i = 0; i < s->nrhs * s->field_bytes; i++) s->stream[i] ^= 0xff;
  }
  for (uint32_t i = 0; s->d->script.lose && i < s->nrhs; i++)
    if (s->ended[i]) s->ended[i] = 1 + QK_EXPIRED;
  if (s->d->script.gone || s->d->script.forget) s->number = 0;
  if (s->d->script.forget) s->session = 0;
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void reply(state_t *s, const Quark__ServerMessage *m) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&m->base, &bytes);
  zmq_send(s->control, s->control_peer.id, s->control_peer.bytes, ZMQ_SNDMORE);
  zmq_send(s->control, data, bytes, 0);
  free(data);
}

#define REPLY(s, CASE, member, type, init, ...)                                                    \
  do {                                                                                             \
    type body_ = init;                                                                             \
    type *b = &body_;                                                                              \
    __VA_ARGS__;                                                                                   \
    Quark__ServerMessage m_ = QUARK__SERVER_MESSAGE__INIT;                                         \
    m_.body_case = QUARK__SERVER_MESSAGE__BODY_##CASE;                                             \
    m_.member = b;                                                                                 \
    reply(s, &m_);                                                                                 \
  } while (0)

static void reply_error(state_t *s, uint32_t status, char *text, int fatal, uint64_t request) {
  REPLY(s, ERROR, error, Quark__Error, QUARK__ERROR__INIT, b->status = status; b->text = text;
        b->fatal = fatal; b->has_request = request > 0; b->request = request);
}

bool fake_takes_zeros(const state_t *s) {
  return s->d->script.feature == QK_FEATURE_ZEROS;
}

static void hello(state_t *s, int resumed) {
  uint32_t feature[] = {63, (uint32_t)s->d->script.feature, 4000000000u, QK_FEATURE_BLOCK_SUMS};
  const bool zeros = fake_takes_zeros(s);
  s->session = 1;
  REPLY(s, WELCOME, welcome, Quark__Welcome, QUARK__WELCOME__INIT, b->version = QK_PROTOCOL_VERSION;
        b->server = "fake"; b->token.data = (uint8_t *)(uintptr_t)fake_token;
        b->token.len = sizeof fake_token; b->data_endpoint = s->data_endpoint;
        b->has_journal = true; b->journal = s->d->script.journal != 0;
        b->lease_ms = (uint32_t)s->d->script.lease_ms; b->n_feature = feature[1] ? 3 + zeros : 0;
        b->feature = feature; b->max_chunk = QK_CHUNK_MAX; b->max_rhs = 8; b->resumed = resumed;
        b->local_path = s->d->script.local ? s->local_address.sun_path : NULL);
}

enum { FAKE_TIMES = 8 };

static void send_result(state_t *s, uint32_t rhs, uint32_t status) {
  double sums[FAKE_TIMES];
  Quark__WallSums wall = QUARK__WALL_SUMS__INIT;
  const size_t times = (size_t)s->d->script.wall;
  for (size_t t = 0; t < times && t < FAKE_TIMES; t++) sums[t] = (double)(rhs + t) + s->attempt;
  wall.quark = wall.midpoint = sums;
  wall.n_quark = wall.n_midpoint = times;
  REPLY(s, RESULT, result, Quark__Result, QUARK__RESULT__INIT, b->request = s->number; b->rhs = rhs;
        b->status = status; b->true_residual = 1e-12; b->iterations = 7 + rhs; b->applications = 14;
        b->seconds = 0.5; b->bytes = status == QK_OK ? s->field_bytes : 0; b->has_attempt = 1;
        b->attempt = s->attempt; b->wall = times ? &wall : NULL);
}

void fake_end_rhs(state_t *s, uint32_t rhs, uint32_t status) {
  if (s->ended[rhs]) return;
  s->ended[rhs] = 1 + (int)status;
  send_result(s, rhs, status);
}

static void repeat_results(state_t *s) {
  for (uint32_t i = 0; i < s->nrhs; i++)
    if (s->ended[i]) send_result(s, i, (uint32_t)s->ended[i] - 1);
  s->repeat_at = 0;
}

void fake_give_credit(state_t *s) {
  const uint64_t until = s->arrived + (uint64_t)s->d->script.credit_chunks * QK_CHUNK_MAX;
  s->credit = until < s->upload_total ? until : s->upload_total;
}

/* The token of requests in parts. */
static uint8_t TOKEN[QK_CLIENT_ID] = "to be joined by";

static void accepted(state_t *s, int again) {
  const Quark__ClientMessage *m = s->d->last;
  const int in_parts =
      m && ((m->body_case == QUARK__CLIENT_MESSAGE__BODY_SUBMIT && m->submit->n_grid) ||
            (m->body_case == QUARK__CLIENT_MESSAGE__BODY_FIELD_OPEN && m->field_open->n_grid &&
             m->field_open->digest != 7));
  REPLY(s, ACCEPTED, accepted, Quark__Accepted, QUARK__ACCEPTED__INIT, b->request = s->number;
        b->field_bytes = s->field_bytes; b->upload_next = s->arrived; b->upload_until = s->credit;
        b->repeated_submit = again; b->has_join = in_parts;
        b->join = (ProtobufCBinaryData){sizeof TOKEN, TOKEN}; b->has_nrhs = 1; b->nrhs = s->nrhs);
}

static void submit(state_t *s, uint64_t number, uint32_t nrhs, int uploads) {
  const int again = number == s->number, status = s->d->script.reject;
  if (status) {
    REPLY(s, REJECTED, rejected, Quark__Rejected, QUARK__REJECTED__INIT, b->request = number;
          b->status = (uint32_t)status; b->text = "as the test wants"; b->has_retry_after_ms = 1;
          b->retry_after_ms = 123);
    return;
  }
  if (!again) {
    free(s->stream);
    s->number = number;
    s->nrhs = nrhs;
    s->arrived = 0;
    s->upload_total = uploads ? nrhs * s->field_bytes : 0;
    s->stream = calloc(nrhs, s->field_bytes);
    memset(s->granted, 0, sizeof s->granted);
    memset(s->sent, 0, sizeof s->sent);
    memset(s->ended, 0, sizeof s->ended);
  }
  fake_give_credit(s);
  accepted(s, again);
  if (again && s->d->script.late_results)
    s->repeat_at = now_ms() + s->d->script.late_results;
  else if (again)
    repeat_results(s);
  for (int k = 1; !again && k <= s->d->script.hold; k++) {
    Quark__RhsProgress one = QUARK__RHS_PROGRESS__INIT, *list = &one;
    one.iterations = 40 * (uint64_t)k;
    one.residual = 0.25 / k;
    REPLY(s, PROGRESS, progress, Quark__Progress, QUARK__PROGRESS__INIT, b->request = s->number;
          b->queued = s->nrhs - 1; b->running = &list; b->n_running = 1);
  }
  for (uint32_t i = 0; s->upload_total == 0 && !s->d->script.hold && i < s->nrhs; i++)
    fake_end_rhs(s, i, QK_OK);
}

static void bad_session(state_t *s, const Quark__ClientMessage *m) {
  if (m->body_case != QUARK__CLIENT_MESSAGE__BODY_GOODBYE)
    reply_error(s, QK_NOT_FOUND, "say HELLO", 1, 0);
}

static void attach(state_t *s, uint64_t number) {
  if (number != s->number || number == 0) {
    reply_error(s, QK_NOT_FOUND, "request is not here", 0, number);
    return;
  }
  Quark__Accepted a = QUARK__ACCEPTED__INIT;
  a.request = number;
  a.field_bytes = s->field_bytes;
  a.upload_next = s->arrived;
  a.upload_until = s->credit;
  a.repeated_submit = 1;
  REPLY(s, ATTACHED, attached, Quark__Attached, QUARK__ATTACHED__INIT, b->accepted = &a;
        b->submit = s->d->last->submit);
  repeat_results(s);
}

static void grant(state_t *s, const Quark__Grant *m) {
  if (m->request != s->number || m->rhs >= s->nrhs || s->ended[m->rhs] != 1 + QK_OK) {
    reply_error(s, QK_NOT_FOUND, "no such solution", 0, m->request);
    return;
  }
  if (m->has_from) s->sent[m->rhs] = m->from;
  s->granted[m->rhs] = m->until;
  if (m->until > s->field_bytes) s->d->violations++;
}

static void cancel(state_t *s, const Quark__Cancel *m) {
  s->d->cancels++;
  if (m->request != s->number) {
    reply_error(s, QK_NOT_FOUND, "no such request", 0, m->request);
    return;
  }
  for (uint32_t i = 0; i < s->nrhs; i++)
    if (m->n_rhs == 0 || m->rhs[0] == i) fake_end_rhs(s, i, QK_CANCELLED);
}

static void setup_reply(state_t *s, const char *name) {
  Quark__SetupState *setup = fake_setups()[0];
  setup->name = (char *)name;
  if (s->d->script.reject)
    reply_error(s, (uint32_t)s->d->script.reject, "as the test wants", 0, 0);
  else
    REPLY(s, SETUP, setup, Quark__SetupReply, QUARK__SETUP_REPLY__INIT, b->setup = setup);
}

static void remember(fake_daemon_t *d, const Quark__ClientMessage *m) {
  if (d->last) quark__client_message__free_unpacked(d->last, NULL);
  d->last = (Quark__ClientMessage *)qk_control_copy(&m->base);
}

/* What a STATUS has room for of many setups. */
static void tell_part(state_t *s, uint32_t first, Quark__StatusReport *status) {
  enum { PART = 20 };
  static Quark__SetupState setup[PART], *list[PART];
  static char name[PART][8];
  const uint32_t all = (uint32_t)s->d->script.setups, left = first < all ? all - first : 0;
  status->n_setups = left < PART ? left : PART;
  status->setups = list;
  status->has_setups_left_out = true;
  status->setups_left_out = left - (uint32_t)status->n_setups;
  for (uint32_t i = 0; i < status->n_setups; i++) {
    setup[i] = *fake_setups()[0];
    snprintf(name[i], sizeof name[i], "%u", first + i);
    setup[i].name = name[i];
    list[i] = &setup[i];
  }
}

static void status_request(state_t *s, const Quark__ClientMessage *m) {
  const int fatal = atomic_exchange(&s->d->script.fatal, 0);
  if (fatal) {
    reply_error(s, (uint32_t)fatal, "as the test wants", 1, 0);
    if (s->d->script.late_welcome) hello(s, 1);
    return;
  }
  if (m->status->setup) remember(s->d, m);
  Quark__ServerMessage status = QUARK__SERVER_MESSAGE__INIT;
  status.body_case = QUARK__SERVER_MESSAGE__BODY_STATUS;
  status.status = fake_status(m->status->activity);
  Quark__StatusReport part = *status.status;
  if (s->d->script.setups > 0) {
    tell_part(s, m->status->first_setup, &part);
    status.status = &part;
  }
  reply(s, &status);
}

/* False: it is about something else. */
static bool setup_message(state_t *s, const Quark__ClientMessage *m) {
  fake_daemon_t *d = s->d;
  if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_LOAD) {
    d->loads++;
    remember(d, m);
    if (atomic_exchange(&d->script.drop_load, 0))
      break_connections(s);
    else
      setup_reply(s, m->load->name);
  } else if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_DROP) {
    d->drops += m->drop->now ? 100 : 1;
    setup_reply(s, m->drop->name);
  } else if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_MAKE_DEFAULT) {
    d->defaults++;
    setup_reply(s, m->make_default->name);
  } else {
    return false;
  }
  return true;
}

static void contract(state_t *s, const Quark__ClientMessage *m) {
  s->d->contracts++;
  remember(s->d, m);
  submit(s, m->contract->request, 1, 0);
}

/* Links of the digest 7 are here. */
static void field_open(state_t *s, const Quark__ClientMessage *m) {
  remember(s->d, m);
  submit(s, m->field_open->request, 1, m->field_open->digest != 7);
}

/* Of three right-hand sides. */
static void join(state_t *s, const Quark__ClientMessage *m) {
  remember(s->d, m);
  submit(s, m->join->request, 3, 1);
}

static void ping(state_t *s) {
  s->d->pings++;
  if (atomic_exchange(&s->d->script.drop_ping, 0))
    break_connections(s);
  else
    REPLY(s, PONG, pong, Quark__Pong, QUARK__PONG__INIT, (void)b);
}

static void control_message(state_t *s, const Quark__ClientMessage *m) {
  fake_daemon_t *d = s->d;
  if (setup_message(s, m)) return;
  switch (m->body_case) {
  case QUARK__CLIENT_MESSAGE__BODY_HELLO:
    d->hellos++;
    hello(s, s->session);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_SUBMIT:
    d->submits++;
    remember(d, m);
    submit(s, m->submit->request, m->submit->nrhs,
           m->submit->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_CONTRACT:
    contract(s, m);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_FIELD_OPEN:
    field_open(s, m);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_JOIN:
    join(s, m);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_ATTACH:
    d->attaches++;
    attach(s, m->attach->request);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_RELEASE:
    d->releases++;
    if (m->release->request == s->number) s->number = 0;
    break;
  case QUARK__CLIENT_MESSAGE__BODY_GRANT:
    grant(s, m->grant);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_ACK:
    d->acks++;
    break;
  case QUARK__CLIENT_MESSAGE__BODY_CANCEL:
    cancel(s, m->cancel);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_STATUS:
    status_request(s, m);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_SHUTDOWN:
    REPLY(s, SHUTDOWN, shutdown, Quark__ShutdownReply, QUARK__SHUTDOWN_REPLY__INIT,
          b->now = m->shutdown->now);
    reply_error(s, QK_SHUTTING_DOWN, "good night", 1, 0);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_PING:
    ping(s);
    break;
  default:
    d->goodbyes++;
    s->session = 0;
  }
}

static void read_control(state_t *s) {
  peer_t from;
  zmq_msg_t msg;
  const int n = zmq_recv(s->control, from.id, ID_MAX, ZMQ_DONTWAIT);
  if (n <= 0) return;
  from.bytes = (size_t)n;
  zmq_msg_init(&msg);
  zmq_msg_recv(&msg, s->control, 0);
  Quark__ClientMessage *m = qk_control_unpack_client(zmq_msg_data(&msg), zmq_msg_size(&msg));
  if (!m) {
    s->d->violations++;
  } else if (!s->d->script.mute) {
    const int known =
        s->control_peer.bytes == from.bytes && memcmp(s->control_peer.id, from.id, from.bytes) == 0;
    s->control_peer = from;
    if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_HELLO || (known && s->session))
      control_message(s, m);
    else {
      bad_session(s, m);
      s->control_peer.bytes = 0;
    }
  }
  if (m) quark__client_message__free_unpacked(m, NULL);
  zmq_msg_close(&msg);
}

static void send_data(state_t *s, qk_frame_t *frame, const uint8_t *payload) {
  uint8_t *message = calloc(1, QK_FRAME_HEADER + QK_CHUNK_MAX);
  qk_frame_fault_t fault;
  if (frame->chunk_bytes) memcpy(message + QK_FRAME_HEADER, payload, frame->chunk_bytes);
  cr_assert_eq(qk_frame_encode(frame, message + QK_FRAME_HEADER, message, &fault), QK_OK);
  if (frame->chunk_bytes && s->d->script.corrupt_chunk) message[QK_FRAME_HEADER] ^= 1;
  zmq_send(s->data, s->data_peer.id, s->data_peer.bytes, ZMQ_SNDMORE);
  zmq_send(s->data, message, QK_FRAME_HEADER + frame->chunk_bytes, 0);
  free(message);
}

void fake_reply_credit(state_t *s) {
  REPLY(s, CREDIT, credit, Quark__Credit, QUARK__CREDIT__INIT, b->request = s->number;
        b->until = s->credit; b->has_next = 1; b->next = s->arrived);
}

static bool by_blocks(const state_t *s) {
  return s->d->script.feature == QK_FEATURE_BLOCK_SUMS || fake_takes_zeros(s);
}

uint64_t fake_sum(const uint8_t *field, size_t bytes, bool blocks) {
  qk_field_hash_t *hash = qk_field_hash_create();
  qk_field_hash_init(hash, blocks);
  qk_field_hash_update(hash, field, bytes);
  const uint64_t sum = qk_field_hash_digest(hash);
  qk_field_hash_destroy(hash);
  return sum;
}

static void upload_chunk(state_t *s, const qk_frame_t *f, const uint8_t *payload) {
  fake_daemon_t *d = s->d;
  const uint64_t at = f->rhs * s->field_bytes + f->offset, end = at + f->chunk_bytes;
  if (f->request != s->number || end <= s->arrived) return;
  const bool run = f->kind == QK_FRAME_UPLOAD_ZERO;
  if (f->rhs >= s->nrhs || f->field_bytes != s->field_bytes || at != s->arrived ||
      (end > s->credit && !run) || (run && !fake_takes_zeros(s))) {
    d->violations++;
    return;
  }
  if (run)
    memset(s->stream + at, 0, f->chunk_bytes);
  else
    memcpy(s->stream + at, payload, f->chunk_bytes);
  d->runs += run;
  d->moved += qk_frame_payload(f);
  s->arrived = end;
  d->uploaded = end;
  if (qk_frame_is_last(f)) {
    if (f->by_blocks != by_blocks(s) || fake_sum(s->stream + f->rhs * s->field_bytes,
                                                 s->field_bytes, f->by_blocks) != f->field_checksum)
      d->violations++;
    if (!d->script.hold) fake_end_rhs(s, f->rhs, QK_OK);
  }
  if (++s->upload_chunks == d->script.drop_upload) {
    break_connections(s);
    return;
  }
  fake_give_credit(s);
  fake_reply_credit(s);
}

static void read_data(state_t *s) {
  peer_t from;
  zmq_msg_t msg;
  qk_frame_t frame;
  qk_frame_fault_t fault;
  const uint8_t *payload;
  const int n = zmq_recv(s->data, from.id, ID_MAX, ZMQ_DONTWAIT);
  if (n <= 0) return;
  from.bytes = (size_t)n;
  zmq_msg_init(&msg);
  zmq_msg_recv(&msg, s->data, 0);
  if (qk_frame_decode(zmq_msg_data(&msg), zmq_msg_size(&msg), &frame, &payload, &fault) != QK_OK) {
    s->d->violations++;
  } else if (frame.kind == QK_FRAME_BIND) {
    s->data_peer = from;
    qk_frame_t bound = {.kind = QK_FRAME_BOUND};
    if (memcmp(payload + QK_CLIENT_ID, fake_token, sizeof fake_token) != 0) s->d->violations++;
    send_data(s, &bound, NULL);
  } else if ((frame.kind == QK_FRAME_UPLOAD || frame.kind == QK_FRAME_UPLOAD_ZERO) &&
             s->data_peer.bytes == from.bytes && memcmp(s->data_peer.id, from.id, from.bytes) == 0)
    upload_chunk(s, &frame, payload);
  zmq_msg_close(&msg);
}

/* One chunk of a download that is granted; 0: there is none. */
static int send_download(state_t *s) {
  for (uint32_t i = 0; s->number && s->data_peer.bytes && i < s->nrhs; i++) {
    if (s->sent[i] >= s->granted[i]) continue;
    const uint64_t left = s->granted[i] - s->sent[i];
    qk_frame_t f = {.kind = QK_FRAME_DOWNLOAD,
                    .by_blocks = by_blocks(s),
                    .request = s->number,
                    .rhs = i,
                    .chunk_bytes = (uint32_t)(left < QK_CHUNK_MAX ? left : QK_CHUNK_MAX),
                    .field_bytes = s->field_bytes,
                    .offset = s->sent[i]};
    const uint8_t *field = s->stream + i * s->field_bytes;
    if (qk_frame_is_last(&f))
      f.field_checksum =
          fake_sum(field, s->field_bytes, f.by_blocks) + (uint64_t)s->d->script.corrupt_field;
    send_data(s, &f, field + f.offset);
    s->sent[i] += f.chunk_bytes;
    if (++s->download_chunks == s->d->script.drop_download) break_connections(s);
    return 1;
  }
  return 0;
}

static void *serve(void *arg) {
  state_t *s = arg;
  while (!s->stop) {
    const int more = send_download(s);
    zmq_pollitem_t item[4] = {{.socket = s->control, .events = ZMQ_POLLIN},
                              {.socket = s->data, .events = ZMQ_POLLIN},
                              {.fd = s->local_listen, .events = ZMQ_POLLIN},
                              {.fd = s->local, .events = ZMQ_POLLIN}};
    zmq_poll(item, s->local < 0 ? 3 : 4, more ? 0 : 10);
    read_control(s);
    read_data(s);
    fake_local_read(s);
    if (atomic_exchange(&s->d->script.drop_now, 0)) break_connections(s);
    if (s->repeat_at > 0 && now_ms() >= s->repeat_at) repeat_results(s);
  }
  zmq_close(s->control);
  zmq_close(s->data);
  return NULL;
}

void fake_daemon_start(fake_daemon_t *d, uint64_t field_bytes) {
  memset(d, 0, sizeof *d);
  d->script.credit_chunks = 8;
  d->script.lease_ms = 60000;
  d->script.feature = d->script.later_feature = QK_FEATURE_ACTIONS;
  state_t *s = d->state = calloc(1, sizeof *s);
  s->d = d;
  s->field_bytes = field_bytes;
  s->zmq = zmq_ctx_new();
  bind_sockets(s);
  fake_local_open(s);
  cr_assert_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

void fake_daemon_stop(fake_daemon_t *d) {
  state_t *s = d->state;
  s->stop = 1;
  pthread_join(s->thread, NULL);
  fake_local_close(s);
  zmq_ctx_term(s->zmq);
  if (d->last) quark__client_message__free_unpacked(d->last, NULL);
  free(s->stream);
  free(s);
}
