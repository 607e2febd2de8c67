/*
 * Whole sessions: the bytes are what three clients and an engine do, in any order, right and wrong, and how time passes. All of the
 * front runs but for what world.h stands for. After each turn session_check.h looks at the front; in the end everybody
 * leaves, and nothing may be held.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "proto/control.h"
#include "tests/fuzz/session_check.h"
#include "tests/fuzz/session_client.h"
#include "tests/fuzz/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __real_qk_dispatch_open(const qk_job_t *job);
void __wrap_qk_dispatch_open(const qk_job_t *job);

enum { ACTIONS = 400, PATIENCE = 4000 };

static qk_server_t server;
static tape_t tape;
static int mood[256]; /* of peers of clients: 0, EAGAIN, EHOSTUNREACH */
static int engine_mood;
static bool repeats; /* somebody asks for results that were told before */

/* ---- what the world asks --------------------------------------------------------------------- */

void __wrap_qk_dispatch_open(const qk_job_t *job) {
  check_accepted(job->nrhs - job->ended);
  __real_qk_dispatch_open(job);
}

int takes(world_channel_t channel, int peer) {
  return channel == WORLD_ENGINE ? engine_mood : mood[peer];
}

void hears(world_channel_t channel, int peer, const uint8_t *data, size_t bytes) {
  if (channel == WORLD_ENGINE) {
    engine_hears(data, bytes);
  } else if (channel == WORLD_DATA) {
    qk_frame_t frame;
    qk_frame_fault_t fault;
    const uint8_t *payload;
    QK_ASSERT(qk_frame_decode(data, bytes, &frame, &payload, &fault) == QK_OK);
    QK_ASSERT(frame.kind == QK_FRAME_BOUND || frame.kind == QK_FRAME_DOWNLOAD);
  } else {
    Quark__ServerMessage *m = qk_control_unpack_server(data, bytes);
    QK_ASSERT(m);
    if (m->body_case == QUARK__SERVER_MESSAGE__BODY_RESULT)
      check_told(&server, peer, m->result, repeats);
    quark__server_message__free_unpacked(m, NULL);
  }
}

/* ---- the session ----------------------------------------------------------------------------- */

static void turn(void) {
  world_turn();
  check_state(&server, world_fields());
  engine_check(&server);
  repeats = false;
}

static void pass(uint8_t how) {
  static const double seconds[] = {0.1, 0.1, 0.5, 1, 5, 15, 31, 100};
  if (how & 8) {
    engine_heartbeat();
    turn();
  }
  if (how & 16 && world_engine_killed()) world_engine_exits();
  world_pass(seconds[how % 8]);
}

static void change_mood(uint8_t how) {
  static const int list[] = {0, 0, EAGAIN, EHOSTUNREACH};
  const int now = list[how % 4];
  if (how >= 128) {
    engine_mood = now == EAGAIN ? EAGAIN : 0;
    return;
  }
  mood[how / 4 % 2 * CLIENT_PEER_DATA + how / 8 % CLIENTS] = now;
  if (now != 0) check_lossy();
}

static void look(uint8_t how) {
  static const char *const path[] = {"/metrics", "/status.json", "/readyz", "/healthz"};
  qk_page_t page = qk_pages_show(&server, path[how % 4]);
  QK_ASSERT(page.body);
  free(page.body);
}

static void act(uint8_t what) {
  const uint8_t how = what % 16;
  if (how < 9) {
    if (client_acts(&server, &tape)) repeats = true;
  } else if (how < 13) {
    engine_acts(&tape);
  } else if (how == 13) {
    pass(tape_byte(&tape));
  } else if (how == 14) {
    const uint8_t more = tape_byte(&tape);
    if (more < 160) change_mood(more);
    if (more >= 160 && more < 176) world_fill_memory(more % 2);
    if (more >= 176 && more < 250) look(more);
    if (more == 250) world_signal(SIGTERM);
    if (more == 251) world_signal(SIGUSR1);
  } else {
    engine_helps(&server);
  }
  if (what < 192) turn(); /* else it is one turn with what follows */
}

/* Everybody leaves, what was accepted ends, and nothing is left. */
static void leave(void) {
  memset(mood, 0, sizeof mood);
  engine_mood = 0;
  turn();
  for (int i = 0; i < CLIENTS; i++) client_leaves(&server, i);
  turn();
  for (int i = 0; i < PATIENCE && !world_stopped(); i++) {
    const bool busy = engine_helps(&server);
    turn();
    if (!busy && server.sessions.count == 0 && qk_link_alone(&server.orphans)) break;
    if (!busy || qk_worker_state(server.primary->worker) != QK_WORKER_READY) world_pass(10);
    engine_heartbeat();
  }
  if (!world_stopped()) check_empty(&server);
}

void play(void) {
  world_pass(0);
  for (int i = 0; i < ACTIONS && tape.at < tape.end && !world_stopped(); i++) act(tape_byte(&tape));
  if (world_stopped()) return;
  turn();
  if (server.stopping) return;
  if (tape.end[-1] % 4 != 3) leave();
  if (world_stopped()) return;
  qk_server_stop(&server, 0);
  world_engine_exits();
  QK_ASSERT(world_stopped());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  const uint8_t how = data[0];
  qk_settings_t settings = {.gauge = "a file",
                            .kappa = 0.125,
                            .mg_checkpoint = "off",
                            .listen = "inproc",
                            .local = 1,
                            .setup_name = "main",
                            .max_setups = 1,
                            .ranks = 1,
                            .batching = how & 1,
                            .max_memory = how & 2 ? 64 << 20 : 256 << 10,
                            .user_memory = how & 4 ? 128 << 10 : 0,
                            .user_rhs = how & 8 ? 40 : 0,
                            .walltime = how & 16 ? 2000 : 0,
                            .lease = 30,
                            .keep = 20,
                            .keep_time = 40,
                            .detach_time = 60,
                            .drain_timeout = how & 32 ? 0 : 60,
                            .engine_timeout = 25};
  tape = (tape_t){data + 1, data + size};
  memset(mood, 0, sizeof mood);
  engine_mood = 0;
  repeats = false;
  world_begin();
  engine_begin();
  check_begin();
  clients_begin();
  qk_server_run(&server, &settings);
  check_over(&server);
  QK_ASSERT(world_fields() == 0);
  return 0;
}
