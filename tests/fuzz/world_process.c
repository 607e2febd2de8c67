/* world_process.c: processes of engines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/front/process.h"
#include "tests/fuzz/world.h"

enum { ENDPOINT = 160 };

struct qk_process {
  qk_exit_fn *exited;
  void *arg;
  int engine;
  bool running, killed;
};

/* Free where there is neither endpoint nor process. */
static struct {
  char endpoint[ENDPOINT]; /* "": its socket is closed */
  qk_process_t *process;
} engine[WORLD_ENGINES];

static int find(const char *endpoint) {
  for (int e = 0; e < WORLD_ENGINES; e++)
    if (strcmp(engine[e].endpoint, endpoint) == 0) return e;
  return -1;
}

int world_engine_number(const char *endpoint) {
  int e = find(endpoint);
  if (e >= 0) return e;
  for (e = 0; e < WORLD_ENGINES && (engine[e].endpoint[0] || engine[e].process);) e++;
  QK_ASSERT(e < WORLD_ENGINES);
  snprintf(engine[e].endpoint, ENDPOINT, "%s", endpoint);
  return e;
}

void world_engine_hang_up(int e) {
  engine[e].endpoint[0] = '\0';
}

/* ---- process.h ----------------------------------------------------------------------------- */

qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **process, qk_err_t *err) {
  (void)loop, (void)json, (void)err;
  int i = 0;
  QK_ASSERT(!fifo);
  while (strcmp(argv[i], "--front") != 0) i++;
  const int e = find(argv[i + 1]);
  QK_ASSERT(e >= 0 && !engine[e].process);
  qk_process_t *p = calloc(1, sizeof *p);
  QK_ASSERT(p);
  *p = (qk_process_t){.exited = exited, .arg = arg, .engine = e, .running = true};
  *process = engine[e].process = p;
  starts(e);
  return QK_OK;
}

/* No front before this one has left an engine. */
qk_status_t qk_process_adopt(qk_loop_t *loop, const qk_procid_t *id, const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **process, qk_err_t *err) {
  (void)loop, (void)fifo, (void)json, (void)exited, (void)arg, (void)process;
  return qk_fail(err, QK_NOT_FOUND, "process %ld", (long)id->pid);
}

pid_t qk_process_pid(const qk_process_t *process) {
  (void)process;
  return 0;
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
