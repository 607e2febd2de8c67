/*
 * Whole sessions: the bytes are what three clients and engines do, in any order, right and wrong,
 * and how time passes. All of the front runs but for what world.h stands for. After each turn
 * session_check.h looks at the front. With a state folder a front may end at any time, and another
 * one goes on where session_promise.h says. In the end everybody leaves, and nothing may be held.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/front/restore/restore.h"
#include "daemon/front/view/pages.h"
#include "proto/control.h"
#include "tests/fuzz/session/session_check.h"
#include "tests/fuzz/session/session_client.h"
#include "tests/fuzz/session/session_promise.h"
#include "tests/fuzz/session/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __real_qk_queue_open(qk_job_t *job);
void __wrap_qk_queue_open(qk_job_t *job);

enum { ACTIONS = 400, FRONTS = 6, PATIENCE = 4000 };

static qk_server_t server;
static tape_t tape;
static int mood[256]; /* of peers of clients: 0, EAGAIN, EHOSTUNREACH */
static int engine_mood;
static bool repeats;      /* somebody asks for results that were told before */
static int actions;       /* so far */
static bool dead;         /* the front: nobody hears what it says while it is taken down */
static bool served;       /* it has come to its loop */
static bool loses_memory; /* with this front */
static bool stale;        /* what is promised was noted while the disk could still be written */
static bool forgetful; /* solutions that the journal knew of may have gone with the front before */

/* ---- what the world asks --------------------------------------------------------------------- */

void __wrap_qk_queue_open(qk_job_t *job) {
  if (!job->joined) check_accepted(job->nrhs - job->ended);
  __real_qk_queue_open(job);
}

int takes(world_channel_t channel, int peer) {
  if (dead) return 0;
  if (channel != WORLD_ENGINE) return mood[peer];
  return engine_is_ready(peer) ? engine_mood : 0;
}

void starts(int engine) {
  engine_starts(engine);
}

void hears(world_channel_t channel, int peer, const uint8_t *data, size_t bytes) {
  if (dead) return;
  if (channel == WORLD_ENGINE) {
    engine_hears(peer, data, bytes);
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

/* Peers whose connection the front has ended come back by another. */
static void reconnect(void) {
  for (int peer = 0; peer < 2 * CLIENT_PEER_DATA; peer++) {
    const world_channel_t channel = peer < CLIENT_PEER_DATA ? WORLD_CONTROL : WORLD_DATA;
    const qk_peer_t now = {.connection = world_connection(channel, peer)};
    if (qk_peers_is_cut(&server.net, &now)) world_reconnect(channel, peer);
  }
}

static void turn(void) {
  check_unheard(&server); /* before a client comes back */
  world_turn();
  reconnect();
  check_state(&server,
              world_fields() - qk_marks_released_bytes(qk_journal_marks(server.service.journal)),
              world_disk_busy());
  engines_check(&server);
  if (qk_journal_clean(server.service.journal) && !world_waiting() && !server.net.owes)
    repeats = false;
}

static void pass(uint8_t how) {
  static const double seconds[] = {0.1, 0.1, 0.5, 1, 5, 15, 31, 100};
  if (how & 8) {
    engines_beat();
    turn();
  }
  if (how & 16) engines_exit(true);
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
  qk_page_t page = qk_pages_show(&server.view, path[how % 4]);
  QK_ASSERT(page.body);
  free(page.body);
}

/* A crash, before or behind the messages of a turn, or in place of what it says; with the machine,
 * with the engines, or alone. */
static void crash(uint8_t how) {
  if (!server.service.journal || server.service.stopping) return;
  dead = true;
  if (how % 4 == 1) world_turn();
  stale = !qk_journal_clean(server.service.journal);
  if (!stale)
    promise_note(&server);
  else if (!qk_journal_trouble(server.service.journal)) /* else it is as when the disk broke */
    promise_nothing();
  if (how % 4 == 2) world_receive();
  forgetful =
      how & 4 || !qk_journal_clean(server.service.journal); /* which frees what is acknowledged */
  server.service.space.leave = true;
  qk_journal_seal(server.service.journal);
  if (how & 8 && !(how & 4) && !server.service.stopping) /* else they have been told to stop */
    engines_outlive();
  qk_server_stop(&server, 0);
  engines_exit(false);
  QK_ASSERT(world_stopped());
  loses_memory = how & 4;
}

static void break_disk(bool broken) {
  if (broken && server.service.journal && qk_journal_clean(server.service.journal))
    promise_note(&server);
  if (!broken) promise_nothing(); /* what waits may be written at any time, also before a crash */
  world_disk_broken(broken);
}

static void act(uint8_t what) {
  const uint8_t how = what % 16, whom = what / 16 % 4;
  if (how < 9) {
    if (client_acts(&server, &tape)) repeats = true;
  } else if (how < 13) {
    engine_acts(whom, &tape);
  } else if (how == 13) {
    pass(tape_byte(&tape));
  } else if (how == 14) {
    const uint8_t more = tape_byte(&tape);
    if (more < 160) change_mood(more);
    if (more >= 160 && more < 176) world_fill_memory(more % 2);
    if (more >= 176 && more < 200) look(more);
    if (more >= 200 && more < 210) world_disk_slow(more % 2);
    if (more >= 210 && more < 220) break_disk(more % 2);
    if (more >= 220 && more < 250) crash(more - 220);
    if (more == 250) world_signal(SIGTERM);
    if (more == 251) world_signal(SIGUSR1);
  } else {
    engines_help(&server);
  }
  if (what < 192 && !dead) turn(); /* else it is one turn with what follows */
}

/* Everybody leaves, what was accepted ends, and nothing is left. */
static void leave(void) {
  memset(mood, 0, sizeof mood);
  engine_mood = 0;
  world_disk_slow(false);
  world_disk_broken(false);
  world_fill_memory(false); /* else a thousand right-hand sides try twelve times each */
  turn();
  world_pass(1); /* the journal tries again */
  turn();
  for (int i = 0; i < CLIENTS; i++) client_leaves(&server, i);
  turn();
  for (int i = 0; i < PATIENCE && !world_stopped(); i++) {
    engines_finish();
    const bool busy = engines_help(&server);
    turn();
    if (!busy && server.service.sessions.count == 0 && qk_link_alone(&server.service.orphans))
      break;
    world_pass(busy && qk_setup_state(server.service.primary) == QK_SUPERVISOR_READY ? 0.1 : 10);
    engines_beat();
  }
  if (!world_stopped()) check_empty(&server);
}

void play(void) {
  served = true;
  world_front_begins();
  promise_check(&server, forgetful, stale);
  forgetful = stale = false;
  world_pass(0);
  for (; actions < ACTIONS && tape.at < tape.end && !world_stopped(); actions++)
    act(tape_byte(&tape));
  if (dead) return;
  if (!world_stopped()) turn();
  if (!server.service.stopping && tape.end[-1] % 4 != 3) leave();
  if (!world_stopped()) {
    qk_server_stop(&server, 0);
    engines_exit(false);
    QK_ASSERT(world_stopped());
  }
  stale = qk_journal_trouble(server.service.journal);
  forgetful = stale || server.service.journal; /* what the next one can make again has gone */
  if (stale) return;
  promise_nothing();
  if (server.service.journal && (server.exit_code != 0 || qk_restore_needed(&server.service)))
    promise_note(&server);
}

/* Front after front, where there is a state folder. */
static void run(qk_settings_t *settings) {
  for (int i = 0; i < FRONTS; i++) {
    dead = served = loses_memory = false;
    check_front(stale);
    qk_server_run(&server, settings);
    QK_ASSERT(world_fields() == 0);
    if (!served) { /* it could not read what is promised, or had no room for it: the next one can */
      QK_ASSERT(world_mend() && server.exit_code != 0 && qk_mem_bytes() == 0);
      i--;
      continue;
    }
    check_over(&server);
    if (!settings->state || tape.at == tape.end) return;
    if (loses_memory) world_forget_memory();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  const uint8_t how = data[0];
  qk_settings_t settings = {.gauge = "a file",
                            .mg_checkpoint = how & 8 ? "off" : "/nowhere/multigrid",
                            .listen = "inproc",
                            .setup_name = "main",
                            .max_sessions = how & 4 ? 2 : 1024,
                            .max_setups = how & 64 ? 3 : 1,
                            .user_setups = 1,
                            .gauge_roots = "/dev/null",
                            .state = how & 128 ? world_disk_folder() : NULL,
                            .spill = 1 << 20,
                            .ranks = 1,
                            .batching = how & 1,
                            .max_memory = how & 2 ? 64 << 20 : 256 << 10,
                            .user_memory = how & 4 ? 128 << 10 : 0,
                            .user_rhs = how & 8 ? 40 : 0,
                            .walltime = how & 16 ? 2000 : 0,
                            .lease = 30,
                            .fetch_time = 20,
                            .keep_time = 40,
                            .detach_time = 60,
                            .drain_timeout = how & 32 ? 0 : 60,
                            .start_timeout = 25,
                            .engine_timeout = 25,
                            .engine_grace = 30};
  char why[QK_WHY];
  qk_values_read(&settings.op, NULL, &(qk_setting_t){"kappa", "0.125"}, 1, why);
  tape = (tape_t){data + 1, data + size};
  memset(mood, 0, sizeof mood);
  engine_mood = 0;
  repeats = false;
  actions = 0;
  forgetful = stale = false;
  world_begin();
  engines_begin();
  check_begin();
  promise_nothing();
  clients_begin();
  run(&settings);
  return 0;
}
