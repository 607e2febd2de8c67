/* world_process.c: processes of engines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/assert.h"
#include "daemon/front/host/process.h"
#include "tests/fuzz/session/world.h"

enum { ENDPOINT = 160 };

struct qk_process {
  qk_exit_fn *exited;
  void *arg;
  int engine;
  bool running, killed;
};

typedef struct engine {
  char endpoint[ENDPOINT];
  bool bound; /* the front has its socket open */
  qk_process_t *process;
  bool left; /* by the front before, and not taken over */
  pid_t pid;
} engine_t;

static engine_t engine[WORLD_ENGINES];
static pid_t last_pid, front; /* of engines; of the front */

static bool is_free(const engine_t *e) {
  return !e->bound && !e->process && !e->left;
}

static int find(const char *endpoint) {
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (!is_free(&engine[e]) && strcmp(engine[e].endpoint, endpoint) == 0) return e;
  return -1;
}

static int find_left(pid_t pid) {
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (engine[e].left && engine[e].pid == pid) return e;
  return -1;
}

int world_engine_number(const char *endpoint) {
  int e = find(endpoint);
  if (e < 0) {
    for (e = 0; e < WORLD_ENGINES && !is_free(&engine[e]);) e++;
    QK_ASSERT(e < WORLD_ENGINES);
    snprintf(engine[e].endpoint, ENDPOINT, "%s", endpoint);
  }
  engine[e].bound = true;
  return e;
}

void world_engine_hang_up(int e) {
  engine[e].bound = false;
}

void world_engines_begin(void) {
  for (int e = 0; e < WORLD_ENGINES; e++) {
    QK_ASSERT(!engine[e].bound && !engine[e].process);
    engine[e].left = false;
  }
  last_pid = front = 0;
}

void world_front_begins(void) {
  for (int e = 0; e < WORLD_ENGINES; e++) engine[e].left = false;
  front++;
}

/* The target's sources call it so (meson.build). */
pid_t getpid(void) {
  return front;
}

/* ---- process.h ----------------------------------------------------------------------------- */

static qk_process_t *make(int e, qk_exit_fn *exited, void *arg) {
  qk_process_t *p = calloc(1, sizeof *p);
  QK_ASSERT(p && !engine[e].process);
  *p = (qk_process_t){.exited = exited, .arg = arg, .engine = e, .running = true};
  return engine[e].process = p;
}

qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **process, qk_err_t *err) {
  (void)loop, (void)fifo, (void)json, (void)err;
  int i = 0;
  while (strcmp(argv[i], "--front") != 0) i++;
  const int e = find(argv[i + 1]);
  QK_ASSERT(e >= 0);
  *process = make(e, exited, arg);
  engine[e].pid = ++last_pid;
  starts(e);
  return QK_OK;
}

qk_status_t qk_process_adopt(qk_loop_t *loop, const qk_procid_t *id, const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **process, qk_err_t *err) {
  (void)loop, (void)fifo, (void)json;
  const int e = find_left(id->pid);
  if (e < 0) return qk_fail(err, QK_NOT_FOUND, "process %ld", (long)id->pid);
  engine[e].left = false;
  *process = make(e, exited, arg);
  return QK_OK;
}

pid_t qk_process_pid(const qk_process_t *process) {
  return engine[process->engine].pid;
}

void qk_process_recount(const qk_process_t *process, char *text, size_t size) {
  (void)process;
  snprintf(text, size, "%s", "");
}

bool qk_process_running(const qk_process_t *process) {
  return process && process->running;
}

void qk_process_signal(qk_process_t *process, int sig) {
  (void)sig;
  if (qk_process_running(process)) process->killed = true;
}

void qk_process_release(qk_process_t *process) {
  if (!process) return;
  engine[process->engine].process = NULL;
  free(process);
}

/* ---- procid.h ------------------------------------------------------------------------------ */

qk_status_t qk_procid_of(pid_t pid, qk_procid_t *id, qk_err_t *err) {
  (void)err;
  *id = (qk_procid_t){.pid = pid, .start = 1, .boot = "this"};
  return QK_OK;
}

bool qk_procid_end(const qk_procid_t *id) {
  const int e = find_left(id->pid);
  if (e >= 0) engine[e].left = false;
  return true;
}

/* ---- what becomes of them -------------------------------------------------------------------- */

bool world_engine_lives(int e) {
  return qk_process_running(engine[e].process);
}

bool world_engine_killed(int e) {
  return world_engine_lives(e) && engine[e].process->killed;
}

void world_engine_exits(int e) {
  if (!world_engine_lives(e)) return;
  engine[e].process->running = false;
  engine[e].process->exited(engine[e].process->arg, "exit code 3");
}

void world_engine_outlives(int e) {
  engine[e].process->running = false;
  engine[e].left = true;
}
