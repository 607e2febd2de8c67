#include "tests/fuzz/session/session_engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/assert.h"
#include "daemon/front/service/dispatch.h"
#include "daemon/front/service/queue.h"
#include "proto/control.h"
#include "tests/fuzz/session/world.h"

typedef struct engine {
  uint64_t pid;        /* of no other before; 0: it has not said HELLO */
  bool ready, refused; /* what it has said of the last LOAD */
  bool stopped;        /* it has been told to leave */
  bool asked;          /* by ADOPT, with the nonce, and has not answered */
  bool loaded;         /* as it has answered, and READY has not followed */
  uint64_t nonce;
  uint64_t fingerprint;          /* of the last LOAD */
  uint8_t how;                   /* of the last READY */
  uint64_t inflight[QK_ENTRIES]; /* serials; 0: free */
  double tol[QK_ENTRIES];
  char out[QK_ENTRIES][QK_SHM_NAME_MAX]; /* where the solution goes; "": nowhere */
} engine_t;

static engine_t engines[WORLD_ENGINES];
static uint64_t last_pid;

void engines_begin(void) {
  memset(engines, 0, sizeof engines);
  last_pid = 0;
}

void engine_starts(int e) {
  engines[e] = (engine_t){0};
}

bool engine_is_ready(int e) {
  return engines[e].ready;
}

static bool speaks(int e) {
  return world_engine_lives(e) && !world_engine_killed(e);
}

/* The n-th of those that speak, counted round; -1: none does. */
static int one_of(int n) {
  int list[WORLD_ENGINES], count = 0;
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (speaks(e)) list[count++] = e;
  return count > 0 ? list[n % count] : -1;
}

/* ---- what it is told ------------------------------------------------------------------------- */

static void on_fill(engine_t *engine, const Quark__Engine__Fill *fill) {
  QK_ASSERT(fill->entry < QK_INFLIGHT_MAX && fill->serial > 0);
  QK_ASSERT(engine->inflight[fill->entry] == 0);
  QK_ASSERT(fill->source != QUARK__SOURCE_KIND__SOURCE_UPLOAD || fill->shm_in);
  QK_ASSERT(fill->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD || fill->column);
  QK_ASSERT(fill->order == QK_ORDER_FIRST || fill->order == QK_ORDER_OTHERS);
  QK_ASSERT(fill->backlog <= INT32_MAX);
  QK_ASSERT(fill->has_slab_first == fill->has_slab_count);
  QK_ASSERT(!fill->has_slab_count || fill->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD);
  QK_ASSERT(fill->slab_first <= INT32_MAX && fill->slab_count < INT32_MAX);
  QK_ASSERT(fill->flavour == 1 || fill->flavour == -1);
  QK_ASSERT((unsigned)fill->parity <= QUARK__PARITY__PARITY_ODD);
  QK_ASSERT((unsigned)fill->in_parity <= QUARK__PARITY__PARITY_ODD);
  QK_ASSERT(fill->schur == QUARK__SCHUR__SCHUR_NONE || fill->parity != QUARK__PARITY__PARITY_ALL);
  QK_ASSERT((unsigned)fill->work <= QUARK__WORK__WORK_SMEAR);
  QK_ASSERT(!fill->column || (fill->column->flavour >= -1 && fill->column->flavour <= 1));
  engine->inflight[fill->entry] = fill->serial;
  QK_ASSERT(fill->tol >= 0 && fill->tol < 1 && fill->tol_hq >= 0 && fill->tol_abs >= 0);
  QK_ASSERT(fill->work != QUARK__WORK__WORK_SOLVE || fill->tol > 0 || fill->tol_hq > 0 ||
            fill->tol_abs > 0);
  engine->tol[fill->entry] = fill->tol;
  snprintf(engine->out[fill->entry], QK_SHM_NAME_MAX, "%s", fill->shm_out ? fill->shm_out : "");
}

/* What it had been given is forgotten. */
static void on_adopt(engine_t *engine, const Quark__Engine__Adopt *adopt) {
  memset(engine->inflight, 0, sizeof engine->inflight);
  engine->asked = true;
  engine->nonce = adopt->nonce;
}

/* The first one, or one in place: nothing is in flight. */
static void on_load(engine_t *engine, const Quark__Engine__Load *load) {
  for (int k = 0; k < QK_ENTRIES; k++) QK_ASSERT(engine->inflight[k] == 0);
  QK_ASSERT(load->has_fingerprint && !engine->stopped);
  if (load->deflate_from) QK_ASSERT(load->deflate_file && access(load->deflate_file, R_OK) == 0);
  engine->fingerprint = load->fingerprint;
  engine->ready = engine->refused = false;
}

/* What LOAD may name. */
static void keep(const char *path) {
  FILE *f = fopen(path, "w");
  if (f) fclose(f);
}

void engine_hears(int e, const uint8_t *data, size_t bytes) {
  engine_t *engine = &engines[e];
  Quark__Engine__FrontMessage *m = qk_control_unpack_front(data, bytes);
  QK_ASSERT(m);
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_LOAD) on_load(engine, m->load);
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_STOP) engine->stopped = true;
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_ADOPT) on_adopt(engine, m->adopt);
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_FILL) on_fill(engine, m->fill);
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_CONTRACT) {
    const size_t n = m->contract->n_shm_a;
    QK_ASSERT(n == QK_PROPAGATOR_COLUMNS || n == QK_COLOUR_COLUMNS);
    QK_ASSERT(engine->inflight[QK_CONTRACT_ENTRY] == 0);
    engine->inflight[QK_CONTRACT_ENTRY] = m->contract->serial;
  }
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_EIGEN) {
    QK_ASSERT(engine->inflight[QK_EIGEN_ENTRY] == 0 && engine->ready);
    QK_ASSERT(m->eigen->restore || m->eigen->shm_out);
    const char *field = m->eigen->problem->field;
    QK_ASSERT(!field || strncmp(field, "digest:", 7) == 0);
    QK_ASSERT((m->eigen->memory != NULL) == (field && !m->eigen->restore));
    engine->inflight[QK_EIGEN_ENTRY] = m->eigen->serial;
    if (m->eigen->file && !m->eigen->restore) keep(m->eigen->file);
  }
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_CANCEL)
    QK_ASSERT(m->cancel->entry < QK_INFLIGHT_MAX && m->cancel->serial > 0);
  quark__engine__front_message__free_unpacked(m, NULL);
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* The answer to ADOPT tells what is so; any other HELLO is of one that begins anew. */
static void note_hello(engine_t *engine, Quark__Engine__EngineHello *hello) {
  if (engine->asked && hello->has_nonce && hello->nonce == engine->nonce) {
    engine->asked = false;
    hello->has_loaded = true;
    hello->loaded = engine->loaded = engine->ready;
    if (engine->pid == 0) engine->pid = ++last_pid;
  } else {
    *engine = (engine_t){.pid = ++last_pid, .asked = engine->asked, .nonce = engine->nonce};
  }
  hello->pid = engine->pid;
}

/* The engine's view of what it says; it holds for any bytes that happen to say so. */
static void note(engine_t *engine, Quark__Engine__EngineMessage *m) {
  switch (m->body_case) {
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_HELLO:
    note_hello(engine, m->hello);
    break;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_READY:
    engine->ready = true;
    engine->loaded = false;
    break;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_FAILED:
    engine->refused = true;
    break;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_FILL_DONE:
    if (m->fill_done->entry < QK_INFLIGHT_MAX && m->fill_done->serial > 0 &&
        engine->inflight[m->fill_done->entry] == m->fill_done->serial) {
      engine->inflight[m->fill_done->entry] = 0;
      world_stamp(engine->out[m->fill_done->entry]);
    }
    break;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_CONTRACTED:
    if (engine->inflight[QK_CONTRACT_ENTRY] == m->contracted->serial)
      engine->inflight[QK_CONTRACT_ENTRY] = 0;
    break;
  case QUARK__ENGINE__ENGINE_MESSAGE__BODY_EIGEN_DONE:
    if (engine->inflight[QK_EIGEN_ENTRY] == m->eigen_done->serial)
      engine->inflight[QK_EIGEN_ENTRY] = 0;
    break;
  default:
    break;
  }
}

static void say(int e, Quark__Engine__EngineMessage *m) {
  size_t bytes;
  note(&engines[e], m);
  uint8_t *data = qk_control_pack(&m->base, &bytes);
  QK_ASSERT(data);
  world_say(WORLD_ENGINE, e, data, bytes, 1);
  free(data);
}

void engine_says(int n, const void *data, size_t bytes, int parts) {
  const int e = one_of(n);
  if (e < 0) return;
  Quark__Engine__EngineMessage *m = parts == 1 ? qk_control_unpack_engine(data, bytes) : NULL;
  if (m)
    say(e, m);
  else
    world_say(WORLD_ENGINE, e, data, bytes, parts);
  quark__engine__engine_message__free_unpacked(m, NULL);
}

static void hello(int e, uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__EngineHello h = QUARK__ENGINE__ENGINE_HELLO__INIT;
  h.version = how == 255 ? 2 : QK_PROTOCOL_VERSION;
  h.ranks = 1;
  h.has_nonce = engines[e].asked && how != 254;
  h.nonce = engines[e].nonce + (how == 253);
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_HELLO;
  m.hello = &h;
  say(e, &m);
}

static void load_progress(int e) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__LoadProgress p = QUARK__ENGINE__LOAD_PROGRESS__INIT;
  p.phase = "clover";
  p.done = 1;
  p.total = 2;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_PROGRESS;
  m.load_progress = &p;
  say(e, &m);
}

/* 64 lattices and numbers of slots; some of them not possible. */
static void ready(int e, uint8_t how) {
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
  r.has_inflight = how % 16 >= 8;
  r.inflight = how == 200 ? 500 : r.slots + 4;
  r.digest = how >= 192;
  r.has_fingerprint = how != 202;
  r.fingerprint = engines[e].fingerprint + (how == 201);
  r.has_site_reals = r.has_columns = how % 64 >= 56;
  r.site_reals = how == 250 ? 7 : how % 2 ? 6 : 48; /* 7: an engine that is lost */
  r.columns = how == 186 ? 0 : r.site_reals / 2;
  Quark__DeflationReport deflation = QUARK__DEFLATION_REPORT__INIT;
  deflation.vectors = how % 4 ? how : how == 188 ? UINT32_MAX : QK_DEFLATE_MAX;
  deflation.trouble = how % 2 ? "the disk is full" : NULL;
  if (how / 16 % 4 == 3) r.deflation = &deflation;
  Quark__SignReport sign = QUARK__SIGN_REPORT__INIT;
  sign.square = how;
  if (how % 8 == 5) r.sign = &sign;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_READY;
  m.ready = &r;
  engines[e].how = how;
  say(e, &m);
}

/* HELLO, and READY again where ADOPT is answered so. */
static void answer(int e) {
  const uint8_t how = engines[e].how;
  hello(e, 0);
  if (engines[e].ready) ready(e, how);
}

static void load_failed(int e, uint8_t how) {
  static const uint32_t list[] = {QK_OK, QK_BAD_CHECKSUM, QK_DEVICE_MEMORY, QK_NO_MEMORY};
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__LoadFailed f = QUARK__ENGINE__LOAD_FAILED__INIT;
  f.status = how < sizeof list / sizeof list[0] ? list[how] : how;
  f.text = "a file";
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_LOAD_FAILED;
  m.load_failed = &f;
  say(e, &m);
}

static void fatal(int e) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__Fatal f = QUARK__ENGINE__FATAL__INIT;
  f.status = QK_DEVICE_ERROR;
  f.text = "a device error";
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_FATAL;
  m.fatal = &f;
  say(e, &m);
}

static void heartbeat(int e) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__Heartbeat h = QUARK__ENGINE__HEARTBEAT__INIT;
  h.steps = 1;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_HEARTBEAT;
  m.heartbeat = &h;
  say(e, &m);
}

/* The n-th entry that is taken, counted round; -1: none is. */
static int taken(const engine_t *engine, int n) {
  int list[QK_INFLIGHT_MAX], count = 0;
  for (int k = 0; k < QK_INFLIGHT_MAX; k++)
    if (engine->inflight[k] > 0) list[count++] = k;
  return count > 0 ? list[n % count] : -1;
}

static void fill_progress(int e, uint8_t which, uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__FillProgress p = QUARK__ENGINE__FILL_PROGRESS__INIT;
  const engine_t *engine = &engines[e];
  const int k = taken(engine, which);
  p.entry = k >= 0 && how < 240 ? (uint32_t)k : how;
  p.serial = k >= 0 && how % 8 ? engine->inflight[k] : how;
  p.iterations = how;
  p.residual = how == 1 ? (double)NAN : 0.5;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_FILL_PROGRESS;
  m.fill_progress = &p;
  say(e, &m);
}

static void fill_done(int e, uint8_t which, uint8_t how, uint8_t status) {
  static const uint32_t list[] = {QK_OK,        QK_OK,          QK_OK,        QK_NOT_CONVERGED,
                                  QK_BREAKDOWN, QK_CANCELLED,   QK_NAN_INPUT, QK_DEVICE_MEMORY,
                                  QK_DEADLINE,  QK_ENGINE_LOST, 9999,         UINT32_MAX};
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__FillDone d = QUARK__ENGINE__FILL_DONE__INIT;
  const engine_t *engine = &engines[e];
  const int k = taken(engine, which);
  d.entry = k >= 0 && how != 255 ? (uint32_t)k : which;
  d.serial = k >= 0 && how < 248 ? engine->inflight[k] : which;
  d.status = list[status % (sizeof list / sizeof list[0])];
  d.text = how % 16 == 5 ? "a text" : NULL;
  d.true_residual = k < 0 || how % 16 == 3 ? 1 : how % 16 == 4 ? (double)NAN : engine->tol[k] / 2;
  d.has_hq_residual = how % 32 != 9;
  d.hq_residual = how % 32 == 10 ? (double)NAN : how % 32 == 11 ? 1 : 1e-4;
  d.has_norm_b = how % 32 != 12;
  d.norm_b = 1e-2;
  d.iterations = how;
  d.applications = how % 16 == 6 ? UINT64_MAX : how;
  d.seconds = how % 16 == 7 ? (double)INFINITY : 0.1;
  d.written = how % 16 != 8;
  static double sums[QK_WALL_TIMES_MAX + 1] = {1, 2, 3, 4};
  Quark__WallSums wall = QUARK__WALL_SUMS__INIT;
  wall.quark = wall.midpoint = wall.axial = sums;
  wall.n_quark = how % 8 == 1 ? QK_WALL_TIMES_MAX + 1 : how % 8 == 2 ? 0 : 4;
  wall.n_midpoint = how % 8 == 3 ? 3 : how % 8 == 4 ? 0 : 4;
  wall.n_axial = how % 8 == 4 ? 0 : 4;
  sums[3] = how % 8 == 5 ? (double)NAN : 4;
  d.wall = how % 8 ? &wall : NULL;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_FILL_DONE;
  m.fill_done = &d;
  say(e, &m);
}

static void contracted(int e, uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__Contracted c = QUARK__ENGINE__CONTRACTED__INIT;
  c.serial = how == 255 ? 1 : engines[e].inflight[QK_CONTRACT_ENTRY];
  c.status = how % 4 == 3 ? QK_DEVICE_MEMORY : QK_OK;
  c.seconds = 0.5;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_CONTRACTED;
  m.contracted = &c;
  say(e, &m);
}

/* Progress, or the end. */
static void eigen(int e, uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__EigenProgress p = QUARK__ENGINE__EIGEN_PROGRESS__INIT;
  Quark__Engine__EigenDone d = QUARK__ENGINE__EIGEN_DONE__INIT;
  p.serial = d.serial = how == 255 ? 1 : engines[e].inflight[QK_EIGEN_ENTRY];
  p.restart = how;
  p.converged = how == 251 ? UINT32_MAX : how / 2;
  p.seconds = d.seconds = how == 250 ? (double)NAN : 0.5;
  d.status = how % 8 == 3 ? QK_NOT_FOUND : how % 8 == 7 ? 9999 : QK_OK;
  d.has_lowest = d.has_highest = true;
  d.lowest = how == 249 ? (double)INFINITY : 1e-3;
  d.highest = 1;
  d.text = how % 8 == 3 ? "a text" : NULL;
  if (how % 4 == 2) {
    m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_EIGEN_PROGRESS;
    m.eigen_progress = &p;
  } else {
    m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_EIGEN_DONE;
    m.eigen_done = &d;
  }
  say(e, &m);
}

static void multigrid(int e, uint8_t how) {
  Quark__Engine__EngineMessage m = QUARK__ENGINE__ENGINE_MESSAGE__INIT;
  Quark__Engine__MultigridNews news = QUARK__ENGINE__MULTIGRID_NEWS__INIT;
  Quark__MultigridReport report = QUARK__MULTIGRID_REPORT__INIT;
  report.has_checkpoint_writing = true;
  report.checkpoint_writing = how % 2;
  if (how & 8) report.checkpoint = "/nowhere/multigrid";
  if (how & 16) report.origin = "evolved from main";
  news.multigrid = &report;
  news.has_wish = news.has_refresh = how & 32;
  news.wish = how / 64;
  news.refresh = how % 8;
  m.body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_MULTIGRID;
  m.multigrid = &news;
  say(e, &m);
}

/* ---- what they do ---------------------------------------------------------------------------- */

void engine_acts(int n, tape_t *tape) {
  const int e = one_of(n);
  const uint8_t what = tape_byte(tape), how = tape_byte(tape);
  const uint8_t status = what % 16 < 5 ? tape_byte(tape) : 0;
  if (e < 0) return;
  switch (what % 16) {
  case 0:
  case 1:
  case 2:
  case 3:
  case 4:
    fill_done(e, what / 16, how, status);
    break;
  case 5:
    fill_progress(e, what / 16, how);
    break;
  case 6:
    contracted(e, how);
    break;
  case 7:
    eigen(e, how);
    break;
  case 8:
    hello(e, how);
    break;
  case 9:
    ready(e, how);
    break;
  case 10:
    heartbeat(e);
    break;
  case 11:
    load_progress(e);
    break;
  case 12:
    multigrid(e, how);
    break;
  case 13:
    if (how % 4 == 0) load_failed(e, how / 4);
    if (how % 4 == 1) fatal(e);
    break;
  default:
    if (how % 4 == 0) world_engine_exits(e);
    break;
  }
}

void engines_beat(void) {
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (speaks(e)) heartbeat(e);
}

void engines_exit(bool killed) {
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (!killed || world_engine_killed(e)) world_engine_exits(e);
}

void engines_outlive(void) {
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (speaks(e) && !engines[e].stopped) world_engine_outlives(e);
}

/* True where there was something to do. */
static bool help(int e) {
  const engine_t *engine = &engines[e];
  const int k = taken(engine, 0);
  if (engine->stopped)
    world_engine_exits(e);
  else if (engine->pid == 0 || engine->asked)
    answer(e);
  else if (engine->loaded)
    ready(e, engine->how);
  else if (!engine->ready && !engine->refused)
    ready(e, 8);
  else if (k >= 0)
    fill_done(e, 0, 0, 0);
  else if (engine->inflight[QK_CONTRACT_ENTRY] > 0)
    contracted(e, 0);
  else if (engine->inflight[QK_EIGEN_ENTRY] > 0)
    eigen(e, 0);
  else
    return false;
  return true;
}

void engines_finish(void) {
  for (int e = 0; e < WORLD_ENGINES; e++)
    while (speaks(e) && taken(&engines[e], 0) >= 0) fill_done(e, 0, 0, 0);
}

bool engines_help(const qk_server_t *server) {
  bool busy = false;
  engines_exit(true);
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (speaks(e)) busy |= help(e);
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = server->service.setup[m];
    if (setup && setup->failed == QK_OK) QK_EACH_REPLICA(r, setup) busy |= !qk_replica_is_ready(r);
  }
  return busy || qk_queue_running(&server->service) > 0;
}

static void check(const qk_replica_t *replica) {
  const uint64_t pid = qk_supervisor_info(replica->supervisor)->pid;
  int e = 0;
  while (e < WORLD_ENGINES && !(world_engine_lives(e) && engines[e].pid == pid)) e++;
  QK_ASSERT(e < WORLD_ENGINES);
  if (world_unheard(e)) return; /* more than the front takes in a turn */
  for (int k = 0; k < QK_ENTRIES; k++) {
    const uint64_t reads =
        k == QK_EIGEN_ENTRY && replica->returning ? replica->returning_serial : 0;
    QK_ASSERT(engines[e].inflight[k] ==
              (replica->inflight[k].rhs ? replica->inflight[k].serial : reads));
  }
}

void engines_check(const qk_server_t *server) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->service.setup[m]) QK_EACH_REPLICA(r, server->service.setup[m])
  if (qk_replica_is_ready(r)) check(r);
}
