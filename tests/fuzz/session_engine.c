#include "tests/fuzz/session_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "proto/control.h"
#include "tests/fuzz/world.h"

static struct {
  uint64_t slot[QK_PLACES]; /* tickets; 0: free */
  double tol[QK_PLACES];
} engine;

void engine_begin(void) {
  memset(&engine, 0, sizeof engine);
}

/* ---- what it is told ------------------------------------------------------------------------- */

static void on_fill(const Quark__Engine__Fill *fill) {
  QK_ASSERT(fill->slot < QK_SEATS_MAX && fill->ticket > 0);
  QK_ASSERT(engine.slot[fill->slot] == 0 && engine.slot[QK_CONTRACT_PLACE] == 0);
  QK_ASSERT(fill->source != QUARK__SOURCE_KIND__SOURCE_UPLOAD || fill->shm_in);
  QK_ASSERT(fill->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD || fill->column);
  engine.slot[fill->slot] = fill->ticket;
  engine.tol[fill->slot] = fill->tol;
}

void engine_hears(const uint8_t *data, size_t bytes) {
  Quark__Engine__FrontMessage *m = qk_control_unpack_front(data, bytes);
  QK_ASSERT(m);
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_FILL) on_fill(m->fill);
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_CONTRACT) {
    QK_ASSERT(m->contract->n_shm_a == QK_PROPAGATOR_COLUMNS);
    QK_ASSERT(engine.slot[QK_CONTRACT_PLACE] == 0);
    engine.slot[QK_CONTRACT_PLACE] = m->contract->ticket;
  }
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_CANCEL)
    QK_ASSERT(m->cancel->slot < QK_SEATS_MAX && m->cancel->ticket > 0);
  quark__engine__front_message__free_unpacked(m, NULL);
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* The engine's view of what it says; it holds for any bytes that happen to say so. */
static void note(const Quark__Engine__EngineMessage *m) {
  if (m->body_case == QUARK__ENGINE__ENGINE_MESSAGE__BODY_HELLO) engine_begin();
  if (m->body_case == QUARK__ENGINE__ENGINE_MESSAGE__BODY_SLOT_DONE &&
      m->slot_done->slot < QK_SEATS_MAX && engine.slot[m->slot_done->slot] == m->slot_done->ticket)
    engine.slot[m->slot_done->slot] = 0;
  if (m->body_case == QUARK__ENGINE__ENGINE_MESSAGE__BODY_CONTRACTED &&
      engine.slot[QK_CONTRACT_PLACE] == m->contracted->ticket)
    engine.slot[QK_CONTRACT_PLACE] = 0;
}

void engine_says(const void *data, size_t bytes, int parts) {
  if (!world_engine_lives() || world_engine_killed()) return;
  Quark__Engine__EngineMessage *m = parts == 1 ? qk_control_unpack_engine(data, bytes) : NULL;
  if (m) note(m);
  quark__engine__engine_message__free_unpacked(m, NULL);
  world_say(WORLD_ENGINE, 0, data, bytes, parts);
}

static void say(const Quark__Engine__EngineMessage *m) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&m->base, &bytes);
  QK_ASSERT(data);
  engine_says(data, bytes, 1);
  free(data);
}

static void hello(uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__EngineHello h = QUARK__ENGINE__ENGINE_HELLO__INIT;
  h.version = how == 255 ? 2 : QK_PROTOCOL_VERSION;
  h.pid = 7;
  h.ranks = 1;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_HELLO;
  m.hello = &h;
  say(&m);
}

static void load_progress(void) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__LoadProgress p = QUARK__ENGINE__LOAD_PROGRESS__INIT;
  p.phase = "clover";
  p.done = 1;
  p.total = 2;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_PROGRESS;
  m.load_progress = &p;
  say(&m);
}

/* 64 lattices and numbers of slots; some of them not possible. */
static void ready(uint8_t how) {
  static const uint32_t slots[] = {4, 1, 16, 64, 2, 3, 0, 65}, extent[] = {2, 4, 4, 70000};
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__Ready r = QUARK__ENGINE__READY__INIT;
  uint32_t grid[4] = {1, 1, 1, 1}, dims[4] = {2, 2, 2, 4};
  if (how >= 248) dims[3] = extent[how % 4];
  if (how % 32 >= 24) dims[0] = dims[1] = dims[2] = 4;
  r.backend = "cpu";
  r.device = "a device";
  r.format = "weak";
  r.ranks = 1;
  r.n_grid = how == 247 ? 3 : 4;
  r.grid = grid;
  r.n_dims = 4;
  r.dims = dims;
  r.slots = slots[how % 8];
  r.has_seats = how % 16 >= 8;
  r.seats = how == 200 ? 500 : r.slots + 4;
  r.digest = how >= 192;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_READY;
  m.ready = &r;
  say(&m);
}

static void load_failed(uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__LoadFailed f = QUARK__ENGINE__LOAD_FAILED__INIT;
  f.status = how % 2 ? QK_BAD_CHECKSUM : how;
  f.text = "a file";
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_FAILED;
  m.load_failed = &f;
  say(&m);
}

static void fatal(void) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__Fatal f = QUARK__ENGINE__FATAL__INIT;
  f.status = QK_DEVICE_ERROR;
  f.text = "a device error";
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_FATAL;
  m.fatal = &f;
  say(&m);
}

void engine_heartbeat(void) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__Heartbeat h = QUARK__ENGINE__HEARTBEAT__INIT;
  h.steps = 1;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_HEARTBEAT;
  m.heartbeat = &h;
  say(&m);
}

/* The n-th slot that is taken, counted round; -1: none is. */
static int taken(int n) {
  int list[QK_SEATS_MAX], count = 0;
  for (int k = 0; k < QK_SEATS_MAX; k++)
    if (engine.slot[k] > 0) list[count++] = k;
  return count > 0 ? list[n % count] : -1;
}

static void slot_progress(uint8_t which, uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__SlotProgress p = QUARK__ENGINE__SLOT_PROGRESS__INIT;
  const int k = taken(which);
  p.slot = k >= 0 && how < 240 ? (uint32_t)k : how;
  p.ticket = k >= 0 && how % 8 ? engine.slot[k] : how;
  p.iterations = how;
  p.residual = how == 1 ? (double)NAN : 0.5;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_SLOT_PROGRESS;
  m.slot_progress = &p;
  say(&m);
}

static void slot_done(uint8_t which, uint8_t how, uint8_t status) {
  static const uint32_t list[] = {QK_OK,        QK_OK,          QK_OK,        QK_NOT_CONVERGED,
                                  QK_BREAKDOWN, QK_CANCELLED,   QK_NAN_INPUT, QK_DEVICE_MEMORY,
                                  QK_DEADLINE,  QK_ENGINE_LOST, 9999,         UINT32_MAX};
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__SlotDone d = QUARK__ENGINE__SLOT_DONE__INIT;
  const int k = taken(which);
  d.slot = k >= 0 && how != 255 ? (uint32_t)k : which;
  d.ticket = k >= 0 && how < 248 ? engine.slot[k] : which;
  d.status = list[status % (sizeof list / sizeof list[0])];
  d.text = how % 16 == 5 ? "a text" : NULL;
  d.true_residual = k < 0 || how % 16 == 3 ? 1 : how % 16 == 4 ? (double)NAN : engine.tol[k] / 2;
  d.iterations = how;
  d.applications = how % 16 == 6 ? UINT64_MAX : how;
  d.seconds = how % 16 == 7 ? (double)INFINITY : 0.1;
  d.written = how % 16 != 8;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_SLOT_DONE;
  m.slot_done = &d;
  say(&m);
}

static void contracted(uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__Contracted c = QUARK__ENGINE__CONTRACTED__INIT;
  c.ticket = how == 255 ? 1 : engine.slot[QK_CONTRACT_PLACE];
  c.status = how % 4 == 3 ? QK_DEVICE_MEMORY : QK_OK;
  c.seconds = 0.5;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_CONTRACTED;
  m.contracted = &c;
  say(&m);
}

static void multigrid(uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__MultigridNews news = QUARK__ENGINE__MULTIGRID_NEWS__INIT;
  Quark__MultigridReport report = QUARK__MULTIGRID_REPORT__INIT;
  report.has_checkpoint_writing = true;
  report.checkpoint_writing = how % 2;
  news.multigrid = &report;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_MULTIGRID;
  m.multigrid = &news;
  say(&m);
}

/* ---- what it does ---------------------------------------------------------------------------- */

void engine_acts(tape_t *tape) {
  const uint8_t what = tape_byte(tape), how = tape_byte(tape);
  switch (what % 16) {
  case 0:
  case 1:
  case 2:
  case 3:
  case 4:
    slot_done(what / 16, how, tape_byte(tape));
    break;
  case 5:
    slot_progress(what / 16, how);
    break;
  case 6:
  case 7:
    contracted(how);
    break;
  case 8:
    hello(how);
    break;
  case 9:
    ready(how);
    break;
  case 10:
    engine_heartbeat();
    break;
  case 11:
    load_progress();
    break;
  case 12:
    multigrid(how);
    break;
  case 13:
    if (how % 4 == 0) load_failed(how / 4);
    if (how % 4 == 1) fatal();
    break;
  default:
    if (how % 4 == 0) world_engine_exits();
    break;
  }
}

bool engine_helps(const qk_server_t *server) {
  const qk_worker_state_t state = qk_worker_state(server->primary->worker);
  if (world_engine_killed()) world_engine_exits();
  if (state == QK_WORKER_STARTING) hello(0);
  if (state == QK_WORKER_LOADING) ready(8);
  if (state != QK_WORKER_READY) return true;
  const int k = taken(0);
  if (k >= 0) slot_done(0, 0, 0);
  if (engine.slot[QK_CONTRACT_PLACE] > 0) contracted(0);
  return k >= 0 || qk_dispatch_running(server) > 0;
}

void engine_check(const qk_server_t *server) {
  const qk_slot_use_t *slot = server->primary->slot;
  if (qk_worker_state(server->primary->worker) != QK_WORKER_READY) return;
  for (int k = 0; k < QK_PLACES; k++)
    QK_ASSERT(engine.slot[k] == (slot[k].rhs ? slot[k].ticket : 0));
}
