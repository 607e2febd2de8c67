#include "tests/fuzz/session/session_client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/front/job/bricks.h"
#include "proto/control.h"
#include "tests/fuzz/session/session_field.h"
#include "tests/fuzz/session/session_twist.h"
#include "tests/fuzz/session/world.h"

enum { RAW = 256, BLOCK = 4096, RUN = 9 };

static struct {
  uint8_t *last; /* packed SUBMIT or CONTRACT */
  size_t bytes;
} client[CLIENTS];
static uint8_t message[QK_FRAME_MAX], block[BLOCK];

void clients_begin(void) {
  for (int i = 0; i < CLIENTS; i++) {
    free(client[i].last);
    client[i].last = NULL;
  }
}

/* ---- what a client knows --------------------------------------------------------------------- */

static const qk_session_t *session_of(const qk_server_t *server, int i) {
  uint8_t id[QK_CLIENT_ID];
  memset(id, i + 1, sizeof id);
  return qk_session_by_id(&server->service.sessions, id);
}

/* The n-th of its requests, counted round; NULL: it has none. */
static const qk_job_t *job_of(const qk_session_t *session, int n) {
  if (!session || session->njobs == 0) return NULL;
  const qk_link_t *l = session->jobs.next;
  for (n %= session->njobs; n > 0; n--) l = l->next;
  return QK_HOLDER(l, qk_job_t, link);
}

/* ---- control --------------------------------------------------------------------------------- */

static void say(int peer, const Quark__ClientMessage *m) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&m->base, &bytes);
  if (data) world_say(WORLD_CONTROL, peer, data, bytes, 1);
  free(data);
}

/* The same, kept to be said again. */
static void say_request(int i, const Quark__ClientMessage *m) {
  free(client[i].last);
  client[i].last = qk_control_pack(&m->base, &client[i].bytes);
  if (client[i].last) world_say(WORLD_CONTROL, i, client[i].last, client[i].bytes, 1);
}

static void hello(int i, uint8_t how) {
  static char *const user[] = {"ann", "ann", "bob", "", NULL, "a\nb"};
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Hello h = QUARK__HELLO__INIT;
  uint8_t id[QK_CLIENT_ID];
  const int other = how >= 240 ? (i + 1) % CLIENTS : i;
  memset(id, other + 1, sizeof id);
  h.version = how == 239 ? 2 : QK_PROTOCOL_VERSION;
  h.client_id = (ProtobufCBinaryData){how == 238 ? 15 : sizeof id, id};
  h.user = user[how % 6];
  h.program = "a program";
  uint32_t feature[] = {1000, QK_FEATURE_BLOCK_SUMS};
  h.n_feature = how % 4 == 0 ? 2 : 0;
  h.feature = feature;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_HELLO;
  m.hello = &h;
  say(i, &m);
}

static uint64_t next_request(const qk_session_t *session, uint8_t how) {
  const uint64_t newest = session ? session->newest : 0;
  return how == 255   ? 0
         : how == 254 ? newest
         : how == 253 ? UINT64_MAX - 5
                      : newest + 1 + how / 250;
}

/* JOIN of a request of this client, or of the next one. */
static void join(const qk_server_t *server, const qk_session_t *session, int i, uint8_t which,
                 uint8_t number) {
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Join j = QUARK__JOIN__INIT;
  uint8_t id[QK_CLIENT_ID], token[QK_CLIENT_ID] = {0};
  const int whose = (i + which / 64) % CLIENTS;
  const qk_job_t *job = job_of(session_of(server, whose), which / 4 % 8);
  memset(id, whose + 1, sizeof id);
  if (job && job->bricks) memcpy(token, job->bricks->token, sizeof token);
  token[0] ^= number == 252;
  j.request = next_request(session, number);
  j.owner = (ProtobufCBinaryData){number == 251 ? 15 : sizeof id, id};
  j.owner_request = job ? job->request : which;
  j.token = (ProtobufCBinaryData){number == 250 ? 15 : sizeof token, token};
  j.part = which % 4;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_JOIN;
  m.join = &j;
  say_request(i, &m);
}

static void field_open(const qk_session_t *session, int i, uint8_t how, uint8_t number) {
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  field_open_t open;
  field_open_fill(how, &open);
  open.f.request = next_request(session, number);
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_FIELD_OPEN;
  m.field_open = &open.f;
  say_request(i, &m);
}

/* NULL: the default. */
static char *setup_name(uint8_t how) {
  static char *const name[] = {NULL,      "second", "third",  "main",
                               "default", "fourth", "second", NULL};
  return name[how % 8];
}

static char *eigen_name(uint8_t how) {
  static char *const name[] = {"low", "high", "a", "../x"};
  return name[how % 4];
}

static void set_column(Quark__Column *c, Quark__SourceKind source, uint32_t k,
                       const qk_job_t *kept) {
  const bool vector = source == QUARK__SOURCE_KIND__SOURCE_VECTOR;
  quark__column__init(c);
  c->has_spin = c->has_colour = source != QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  c->spin = vector ? 0 : (int32_t)(k / 3 % 4);
  c->colour = (int32_t)(k % 3);
  c->has_vector = vector;
  c->vector = vector ? k : 0;
  if (source != QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL || !kept) return;
  c->has_request = c->has_rhs = true;
  c->request = kept->request;
  c->rhs = k % kept->nrhs;
}

static void submit(const qk_server_t *server, const qk_session_t *session, int i, tape_t *tape) {
  static const uint32_t counts[] = {1, 2, 3, 12, 12, 24, 5, 12, 1, 4, 7, 40, 100, 1024};
  static Quark__Column column[QK_REQUEST_RHS_MAX];
  static Quark__Column *columns[QK_REQUEST_RHS_MAX];
  const uint8_t kind = tape_byte(tape), much = tape_byte(tape), number = tape_byte(tape);
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Submit s = QUARK__SUBMIT__INIT;
  Quark__Smearing smear = QUARK__SMEARING__INIT;
  const qk_job_t *kept = job_of(session, much / 16);
  if (kind % 8 == 7) {
    field_open(session, i, much, number);
    return;
  }
  if (kind == 38) {
    join(server, session, i, much, number);
    return;
  }
  s.request = next_request(session, number);
  s.setup = setup_name(number);
  s.nrhs = counts[much % 14];
  s.dtype = kind & 128 ? QUARK__DTYPE__DTYPE_F64 : QUARK__DTYPE__DTYPE_F32;
  s.tol = 1e-6;
  s.source = (Quark__SourceKind)(kind % 8 < 6 ? kind % 8 : 0);
  s.sink = (Quark__Sink)(1 + kind / 8 % 4 % 3);
  if (kind % 64 == 46) { /* an eigenvector */
    s.source = QUARK__SOURCE_KIND__SOURCE_VECTOR;
    s.vectors = number == 99 ? NULL : eigen_name(number);
  }
  if (kind % 64 >= 44 && number % 3 == 1) { /* projected, or wrongly so */
    s.sink = QUARK__SINK__SINK_PROJECT;
    s.project = number == 97 ? NULL : eigen_name(much);
    s.has_project_count = number != 94;
    s.project_count = number == 91 ? UINT32_MAX : 1 + much % 8u;
  }
  if (kind & 64 && kind & 32) {
    smear.alpha = 0.5;
    smear.steps = 3;
    s.smear = &smear;
  }
  for (uint32_t k = 0; k < s.nrhs; k++) {
    set_column(&column[k], s.source, k, kept);
    columns[k] = &column[k];
  }
  if (s.source != QUARK__SOURCE_KIND__SOURCE_UPLOAD) {
    s.column = columns;
    s.n_column = s.nrhs;
  }
  uint32_t grid[4];
  if (kind % 8 == 6 || (kind & 64 && !(kind & 32))) {
    s.n_grid = field_grid(number, grid);
    s.grid = grid;
    s.has_part = kind & 128;
    s.part = number == 60 ? 7 : 0;
  }
  client_twist(&s, tape_byte(tape));
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_SUBMIT;
  m.submit = &s;
  say_request(i, &m);
}

/* EIGEN, or EIGEN_DROP. */
static void eigen(const qk_session_t *session, int i, uint8_t which, uint8_t how) {
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Eigen e = QUARK__EIGEN__INIT;
  Quark__EigenDrop drop = QUARK__EIGEN_DROP__INIT;
  Quark__EigenProblem p = QUARK__EIGEN_PROBLEM__INIT;
  Quark__Smearing links = QUARK__SMEARING__INIT;
  char field[32] = "";
  p.name = drop.name = eigen_name(which);
  e.setup = drop.setup = setup_name(which / 4);
  p.kind = (Quark__EigenKind)(which / 32 % 4);
  p.count = which == 255 ? UINT32_MAX : 1u + which % 32;
  p.tol = which == 254 ? (double)NAN : 1e-6;
  p.has_space = which % 16 == 5;
  p.space = which;
  if (which % 16 == 6) p.links = &links;
  if (how >= 208) snprintf(field, sizeof field, "field:%d", how - 208);
  if (how % 16 == 12) snprintf(field, sizeof field, "digest:%016d", how);
  if (*field) p.field = field;
  e.request = next_request(session, how);
  e.problem = &p;
  e.has_deadline_ms = e.has_detach_ms = true;
  e.deadline_ms = how % 16 == 9 ? 500 : 0;
  e.detach_ms = how % 16 == 10 ? 50000 : 0;
  e.has_kept = e.kept = how % 16 == 13;
  if (how < 224) {
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_EIGEN;
    m.eigen = &e;
    say_request(i, &m);
  } else {
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_EIGEN_DROP;
    m.eigen_drop = &drop;
    say(i, &m);
  }
}

static void contract(const qk_session_t *session, int i, tape_t *tape) {
  const uint8_t which = tape_byte(tape), how = tape_byte(tape);
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Contract c = QUARK__CONTRACT__INIT;
  Quark__Contraction x = QUARK__CONTRACTION__INIT;
  Quark__Channel ch = QUARK__CHANNEL__INIT, *channels[1] = {&ch};
  const qk_job_t *a = job_of(session, which % 16), *b = job_of(session, which / 16);
  if (how >= 192 && how < 240) {
    eigen(session, i, which, how);
    return;
  }
  x.request_a = a ? a->request : which;
  x.has_first_a = true;
  x.first_a = how % 8 == 7 ? 12 : 0;
  x.has_request_b = how % 4 == 1;
  x.request_b = b ? b->request : 0;
  ch.kind = (Quark__ChannelKind)(how / 8 % 4);
  x.channel = channels;
  x.n_channel = how < 250;
  c.request = next_request(session, how);
  c.contraction = &x;
  c.has_deadline_ms = c.has_detach_ms = true;
  c.deadline_ms = how % 16 == 9 ? 500 : 0;
  c.detach_ms = how % 16 == 10 ? 50000 : 0;
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_CONTRACT;
  m.contract = &c;
  say_request(i, &m);
}

/* GRANT, ACK, CANCEL, RELEASE, ATTACH of one of its requests, or of none. */
static bool about_request(const qk_session_t *session, int i, int what, tape_t *tape) {
  const uint8_t which = tape_byte(tape), how = tape_byte(tape);
  const qk_job_t *job = job_of(session, which);
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Grant grant = QUARK__GRANT__INIT;
  Quark__Ack ack = QUARK__ACK__INIT;
  Quark__Cancel cancel = QUARK__CANCEL__INIT;
  Quark__Release release = QUARK__RELEASE__INIT;
  Quark__Attach attach = QUARK__ATTACH__INIT;
  const uint64_t request = job && which < 240 ? job->request : which;
  uint32_t rhs[3] = {job ? how % job->nrhs : how, how / 16, how / 16};
  const uint64_t bytes = job ? job->part_bytes : 4096;
  const size_t named = how % 4 < 2 ? 0 : how % 4 == 2 ? 1 : 3;
  switch (what) {
  case 0:
    grant.request = request;
    grant.rhs = how == 255 ? 5000 : rhs[0];
    grant.until = how == 254 ? bytes + 1 : how >= 224 ? bytes / 2 : bytes;
    grant.has_from = how >= 192;
    grant.from = how == 253 ? bytes : how % 2 ? 0 : 100;
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_GRANT;
    m.grant = &grant;
    break;
  case 1:
    ack.request = request;
    ack.rhs = rhs;
    ack.n_rhs = named;
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_ACK;
    m.ack = &ack;
    break;
  case 2:
    cancel.request = request;
    cancel.rhs = rhs;
    cancel.n_rhs = named;
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_CANCEL;
    m.cancel = &cancel;
    break;
  case 3:
    release.request = request;
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_RELEASE;
    m.release = &release;
    break;
  default:
    attach.request = request;
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_ATTACH;
    m.attach = &attach;
    break;
  }
  say(i, &m);
  return what == 4;
}

/* Messages that need nothing. */
static void plain(int peer, uint8_t how) {
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Ping ping = QUARK__PING__INIT;
  Quark__StatusRequest status = QUARK__STATUS_REQUEST__INIT;
  Quark__Shutdown shutdown = QUARK__SHUTDOWN__INIT;
  Quark__Goodbye goodbye = QUARK__GOODBYE__INIT;
  if (how < 100) {
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_PING;
    m.ping = &ping;
  } else if (how < 200) {
    status.has_activity = true;
    status.activity = how % 2;
    status.setup = setup_name(how / 2);
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_STATUS;
    m.status = &status;
  } else if (how < 250) {
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_GOODBYE;
    m.goodbye = &goodbye;
  } else {
    shutdown.has_now = true;
    shutdown.now = how % 2;
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_SHUTDOWN;
    m.shutdown = &shutdown;
  }
  say(peer, &m);
}

/* ---- setups ---------------------------------------------------------------------------------- */

/* The n-th of its requests, or one that is not there. */
static char *field_of(const qk_session_t *session, uint8_t n) {
  static char texts[2][32];
  static int next;
  char *text = texts[next++ % 2];
  const qk_job_t *job = job_of(session, n);
  snprintf(text, sizeof texts[0], "field:%llu", job ? (unsigned long long)job->request : 77ull);
  return text;
}

static void load(const qk_session_t *session, int peer, uint8_t which, uint8_t how) {
  static char *const gauge[] = {NULL, NULL, "builtin:unit", "nowhere"};
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Load l = QUARK__LOAD__INIT;
  uint32_t dims[4] = {2, 2, 2, 4};
  l.name = which < 250 ? setup_name(which) : ".hidden";
  if (!l.name) l.name = "fifth";
  l.has_kappa = how % 4 != 0;
  l.kappa = how % 4 == 3 ? 0.2 : 0.12;
  l.has_mass = how == 255;
  Quark__Setting mu = QUARK__SETTING__INIT, *parameter[1] = {&mu};
  mu.key = "mu";
  mu.value = "0.25";
  if (how % 16 == 6) { /* with flavours */
    l.action = "twisted-clover";
    l.parameter = parameter;
    l.n_parameter = 1;
  }
  l.gauge = how % 32 >= 29 ? field_of(session, how / 32) : gauge[how / 4 % 4];
  if (how % 32 == 28) { /* of a clover term, which may be one of links, or none */
    l.gauge = field_of(session, how / 32);
    l.action = "foreign-clover";
    mu.key = "clover";
    mu.value = which & 32 ? "digest:0000000000000000" : field_of(session, how / 64);
    l.parameter = parameter;
    l.n_parameter = mu.value ? 1 : 0;
  }
  l.n_dims = how >= 250 ? 3 : how >= 200 ? 4 : 0;
  l.dims = dims;
  l.has_make_default = true;
  l.make_default = which & 16;
  if (how / 8 % 8 == 3) { /* with solver mg, or too many, none */
    l.has_deflate = true;
    l.deflate = how == 31 ? UINT32_MAX : how % 8 * (QK_DEFLATE_MAX / 4);
  }
  if (how / 16 % 8 == 6) l.deflate_from = eigen_name(which / 4);
  if (how / 16 % 8 == 5) l.evolve_from = how % 2 ? "main" : setup_name((uint8_t)(which / 2));
  if (how / 16 % 8 == 4) l.fix_gauge = how % 2 ? "coulomb:1e-9" : how % 4 ? "landau:2" : "none";
  m.body_case = QUARK__CLIENT_MESSAGE__BODY_LOAD;
  m.load = &l;
  say(peer, &m);
}

/* LOAD, DROP, MAKE_DEFAULT. */
static void about_setup(const qk_session_t *session, int peer, tape_t *tape) {
  const uint8_t which = tape_byte(tape), how = tape_byte(tape);
  Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
  Quark__Drop drop = QUARK__DROP__INIT;
  Quark__MakeDefault use = QUARK__MAKE_DEFAULT__INIT;
  drop.name = use.name = setup_name(which) ? setup_name(which) : "fifth";
  drop.has_now = true;
  drop.now = how % 2;
  if (which < 64 || which >= 250) {
    load(session, peer, which, how);
  } else if (which < 160) {
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_DROP;
    m.drop = &drop;
    say(peer, &m);
  } else {
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_MAKE_DEFAULT;
    m.make_default = &use;
    say(peer, &m);
  }
}

/* ---- data ------------------------------------------------------------------------------------ */

static void send_frame(int peer, qk_frame_t *frame, uint8_t twisted) {
  qk_frame_fault_t fault;
  if (qk_frame_encode(frame, message + QK_FRAME_HEADER, message, &fault) != QK_OK) return;
  size_t bytes = QK_FRAME_HEADER + qk_frame_payload(frame);
  if (twisted >= 250) message[twisted % 64] ^= 1;
  if (twisted == 249) message[QK_FRAME_HEADER] ^= 1;
  if (twisted == 248) bytes--;
  world_say(WORLD_DATA, peer, message, bytes, twisted == 247 ? 2 : 1);
}

static void bind_data(const qk_session_t *session, int i, uint8_t how) {
  qk_frame_t frame = {.kind = QK_FRAME_BIND, .chunk_bytes = 32, .field_bytes = 32};
  memset(message + QK_FRAME_HEADER, i + 1, 2 * QK_CLIENT_ID);
  uint8_t token[QK_CLIENT_ID];
  if (session) qk_session_token(session, token);
  if (session && how < 245) /* that of the latest WELCOME, or of the first one */
    memcpy(message + QK_FRAME_HEADER + QK_CLIENT_ID, how % 8 == 7 ? session->token : token,
           QK_CLIENT_ID);
  send_frame(CLIENT_PEER_DATA + (how >= 230 ? (i + 1) % CLIENTS : i), &frame, how);
}

/* A run of zeros in place of the chunk: true of the first right-hand side, of the beginning of
 * others by chance, up to its end or half of what is left, or over the end. */
static void make_run(qk_frame_t *frame, uint64_t left, uint8_t how) {
  frame->kind = QK_FRAME_UPLOAD_ZERO;
  frame->chunk_bytes = (uint32_t)(how / 16 % 2 ? left : (left + 1) / 2);
  if (how / 16 == 13) frame->chunk_bytes = QK_ZEROS_MAX;
  if (how / 16 == 14) frame->chunk_bytes = (uint32_t)left + 1;
}

/* The next chunk of an upload, or something like it. */
static void upload(const qk_job_t *job, int i, uint8_t how) {
  if (qk_job_is_beside(job) || job->upload_next >= job->nrhs * job->part_bytes) return;
  const uint64_t offset = job->upload_next % job->part_bytes, left = job->part_bytes - offset;
  qk_frame_t frame = {.kind = how == 246 ? QK_FRAME_DOWNLOAD : QK_FRAME_UPLOAD,
                      .by_blocks = job->request % 2 != (how == 239), /* 239: sometimes the other */
                      .request = how == 245 ? job->request + 1 : job->request,
                      .rhs = (uint32_t)(job->upload_next / job->part_bytes) + (how == 244),
                      .field_bytes = how == 243 ? job->part_bytes + 8 : job->part_bytes,
                      .offset = offset,
                      .chunk_bytes = (uint32_t)(left < QK_CHUNK_MAX ? left : QK_CHUNK_MAX)};
  if (how % 4 == 3 && left > 100) frame.chunk_bytes = 100;
  if (how == 242 && frame.offset >= 100) frame.offset -= 100; /* again, and too much */
  if (how == 241) frame.offset = 0;
  if (how % 16 == RUN) make_run(&frame, left, how);
  field_fill(job, frame.rhs, frame.offset, message + QK_FRAME_HEADER, qk_frame_payload(&frame));
  if (frame.offset + frame.chunk_bytes == frame.field_bytes) {
    qk_field_hash_t *hash = qk_field_hash_create();
    QK_ASSERT(hash);
    qk_field_hash_init(hash, frame.by_blocks);
    for (uint64_t done = 0, n; done < frame.field_bytes; done += n) {
      n = frame.field_bytes - done < BLOCK ? frame.field_bytes - done : BLOCK;
      field_fill(job, frame.rhs, done, block, n);
      qk_field_hash_update(hash, block, n);
    }
    frame.field_checksum = qk_field_hash_digest(hash) + (how == 240);
    qk_field_hash_destroy(hash);
  }
  send_frame(CLIENT_PEER_DATA + i, &frame, how);
}

/* Bytes of the tape as they are. */
static void raw(int i, tape_t *tape) {
  const uint8_t how = tape_byte(tape);
  uint8_t bytes[RAW];
  const size_t n = tape_byte(tape);
  for (size_t k = 0; k < n; k++) bytes[k] = tape_byte(tape);
  if (how % 32 == 31) world_reconnect(WORLD_CONTROL, i);
  if (how % 32 == 30) world_reconnect(WORLD_DATA, CLIENT_PEER_DATA + i);
  if (how % 4 == 0)
    engine_says(i, bytes, n, 1 + how / 128);
  else if (how % 4 == 1)
    world_say(WORLD_DATA, CLIENT_PEER_DATA + i, bytes, n, how / 64);
  else
    world_say(WORLD_CONTROL, how >= 224 ? 9 : i, bytes, n, how >= 8 ? 1 : how / 4 * 2);
}

/* ---- what clients do ------------------------------------------------------------------------- */

bool client_acts(const qk_server_t *server, tape_t *tape) {
  const uint8_t what = tape_byte(tape);
  const int i = what / 64 % CLIENTS;
  const qk_session_t *session = session_of(server, i);
  const qk_job_t *job;
  switch (what % 16) {
  case 0:
    hello(i, tape_byte(tape));
    return false;
  case 1:
    submit(server, session, i, tape);
    return true;
  case 2:
    about_setup(session, i, tape);
    return false;
  case 3:
    if (client[i].last) world_say(WORLD_CONTROL, i, client[i].last, client[i].bytes, 1);
    return true;
  case 4:
    contract(session, i, tape);
    return true;
  case 5:
    bind_data(session, i, tape_byte(tape));
    return false;
  case 6:
  case 7:
  case 8:
    job = job_of(session, tape_byte(tape));
    if (job) upload(job, i, tape_byte(tape));
    return false;
  case 9:
  case 10:
  case 11:
  case 12:
  case 13:
    return about_request(session, i, what % 16 - 9, tape);
  case 14:
    plain(i, tape_byte(tape));
    return false;
  default:
    raw(i, tape);
    return true;
  }
}

void client_leaves(const qk_server_t *server, int i) {
  const qk_session_t *session = session_of(server, i);
  if (!session) return;
  hello(i, 0); /* it may have been away */
  for (int k = 0; k < session->njobs; k++) {
    Quark__ClientMessage m = QUARK__CLIENT_MESSAGE__INIT;
    Quark__Release release = QUARK__RELEASE__INIT;
    release.request = job_of(session, k)->request;
    m.body_case = QUARK__CLIENT_MESSAGE__BODY_RELEASE;
    m.release = &release;
    if (i > 0) say(i, &m); /* client 0 leaves detached requests behind */
  }
  plain(i, 200);
}
