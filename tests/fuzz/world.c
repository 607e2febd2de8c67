#include "tests/fuzz/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/front/process.h"
#include "daemon/front/runtime.h"

enum { TIMERS = 2, SOCKS_MAX = 8 };

static struct {
  double now;
  qk_loop_t *loop;
  bool stopped;
  struct {
    uv_timer_t *timer;
    uv_timer_cb run;
    double due, every; /* due 0: not running */
  } timer[TIMERS];
  uv_signal_t *signal[QK_SIGNALS];
  uv_signal_cb on_signal[QK_SIGNALS];
  int signals;
  struct {
    uv_handle_t *handle;
    uv_close_cb closed;
  } closing[SOCKS_MAX];
  int nclosing;
  qk_process_t *process; /* the last one */
  int64_t fields;
  bool full;
} world;

void world_begin(void) {
  memset(&world, 0, sizeof world);
  world.now = 1000;
}

/* ---- log ----------------------------------------------------------------------------------- */

void qk_log_set_level(qk_level_t level) {
  (void)level;
}

const char *qk_log_format_name(qk_log_format_t format) {
  return format == QK_LOG_JSON ? "json" : "text";
}

int qk_log_parse_format(const char *word, qk_log_format_t *format) {
  (void)word, (void)format;
  return -1;
}

int qk_log_parse_level(const char *word, qk_level_t *level) {
  (void)word, (void)level;
  return -1;
}

/* Made, so that what it quotes is looked at; shown where QK_FUZZ_LOG is set. */
void qk_log(qk_level_t level, const char *subsystem, const char *job, const char *fmt, ...) {
  char line[2048];
  va_list list;
  va_start(list, fmt);
  vsnprintf(line, sizeof line, fmt, list);
  va_end(list);
  if (getenv("QK_FUZZ_LOG"))
    fprintf(stderr, "%.1f %d %s %s: %s\n", world.now, (int)level, subsystem, job ? job : "", line);
}

void qk_log_init(const char *program, int rank, qk_level_t level) {
  (void)program, (void)rank, (void)level;
}

void qk_log_use(qk_log_format_t format) {
  (void)format;
}

/* ---- loop ---------------------------------------------------------------------------------- */

qk_status_t qk_loop_init(qk_loop_t *loop, qk_turn_fn *turn, void *arg, qk_err_t *err) {
  (void)err;
  *loop = (qk_loop_t){.turn = turn, .arg = arg};
  qk_link_init(&loop->socks);
  world.loop = loop;
  return QK_OK;
}

static void run_closing(void) {
  for (int i = 0; i < world.nclosing; i++)
    if (world.closing[i].closed) world.closing[i].closed(world.closing[i].handle);
  world.nclosing = 0;
}

void qk_loop_fini(qk_loop_t *loop) {
  QK_ASSERT(qk_link_alone(&loop->socks));
  run_closing();
}

void qk_loop_run(qk_loop_t *loop) {
  (void)loop;
  play();
}

void qk_loop_stop(qk_loop_t *loop) {
  (void)loop;
  world.stopped = true;
}

double qk_loop_seconds(const qk_loop_t *loop) {
  (void)loop;
  return world.now;
}

qk_status_t qk_loop_attach(qk_loop_t *loop, qk_zsock_t *sock, void *socket,
                           qk_readable_fn *readable, void *arg, qk_err_t *err) {
  (void)err;
  sock->socket = socket;
  sock->readable = readable;
  sock->arg = arg;
  sock->attached = true;
  qk_link_init(&sock->link);
  qk_list_append(&loop->socks, &sock->link);
  return QK_OK;
}

void qk_loop_detach(qk_zsock_t *sock, uv_close_cb closed) {
  if (!sock->attached) return;
  sock->attached = false;
  qk_link_remove(&sock->link);
  QK_ASSERT(world.nclosing < SOCKS_MAX);
  world.closing[world.nclosing].handle = (uv_handle_t *)&sock->poll;
  world.closing[world.nclosing++].closed = closed;
}

void world_turn(void) {
  for (qk_link_t *l = world.loop->socks.next, *next; l != &world.loop->socks; l = next) {
    next = l->next;
    qk_zsock_t *sock = QK_HOLDER(l, qk_zsock_t, link);
    if (world_readable(sock->socket)) sock->readable(sock->arg);
  }
  run_closing();
  world.loop->more = world.loop->turn(world.loop->arg);
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer) {
  (void)loop;
  int i = 0;
  while (world.timer[i].timer) i++;
  QK_ASSERT(i < TIMERS);
  world.timer[i].timer = timer;
  return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb run, uint64_t timeout, uint64_t repeat) {
  for (int i = 0; i < TIMERS; i++) {
    if (world.timer[i].timer != timer) continue;
    world.timer[i].run = run;
    world.timer[i].due = world.now + (double)timeout * 1e-3;
    world.timer[i].every = (double)repeat * 1e-3;
  }
  return 0;
}

void world_pass(double seconds) {
  world.now += seconds;
  for (int i = 0; i < TIMERS; i++) {
    if (world.timer[i].due == 0 || world.timer[i].due > world.now) continue;
    world.timer[i].due = world.timer[i].every > 0 ? world.now + world.timer[i].every : 0;
    world.timer[i].run(world.timer[i].timer);
  }
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *handle) {
  (void)loop;
  handle->signum = 0;
  return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb run, int sig) {
  QK_ASSERT(world.signals < QK_SIGNALS);
  handle->signum = sig;
  world.signal[world.signals] = handle;
  world.on_signal[world.signals++] = run;
  return 0;
}

void world_signal(int sig) {
  for (int i = 0; i < world.signals; i++)
    if (world.signal[i]->signum == sig) world.on_signal[i](world.signal[i], sig);
}

bool world_stopped(void) {
  return world.stopped;
}

/* ---- the engine's process -------------------------------------------------------------------- */

struct qk_process {
  qk_exit_fn *exited;
  void *arg;
  bool running, killed;
};

qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **process, qk_err_t *err) {
  (void)loop, (void)argv, (void)json, (void)err;
  QK_ASSERT(!world.process && !fifo);
  qk_process_t *p = calloc(1, sizeof *p);
  QK_ASSERT(p);
  *p = (qk_process_t){.exited = exited, .arg = arg, .running = true};
  *process = world.process = p;
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
  QK_ASSERT(process == world.process);
  world.process = NULL;
  free(process);
}

bool world_engine_lives(void) {
  return qk_process_running(world.process);
}

bool world_engine_killed(void) {
  return world_engine_lives() && world.process->killed;
}

void world_engine_exits(void) {
  if (!world_engine_lives()) return;
  world.process->running = false;
  world.process->exited(world.process->arg, "exit code 3");
}

/* ---- shared memory --------------------------------------------------------------------------- */

void qk_shm_space_init(qk_shm_space_t *space, const char *state) {
  QK_ASSERT(!state);
  *space = (qk_shm_space_t){.prefix = "fuzz-"};
  qk_link_init(&space->live);
}

qk_status_t qk_shm_create(qk_shm_space_t *space, size_t bytes, qk_shm_t **out, qk_err_t *err) {
  if (world.full) return qk_fail(err, QK_NO_MEMORY, "shared memory of %zu bytes: full", bytes);
  qk_shm_t *shm = qk_calloc(1, sizeof *shm);
  uint8_t *data = qk_calloc(1, bytes);
  QK_ASSERT(shm && data);
  *shm = (qk_shm_t){.data = data, .bytes = bytes, .space = space};
  snprintf(shm->name, sizeof shm->name, "/%s%llu", space->prefix,
           (unsigned long long)space->next++);
  qk_link_init(&shm->link);
  qk_list_append(&space->live, &shm->link);
  world.fields += (int64_t)bytes;
  *out = shm;
  return QK_OK;
}

qk_status_t qk_shm_create_bare(qk_shm_space_t *space, size_t bytes, qk_shm_t **shm, qk_err_t *err) {
  return qk_shm_create(space, bytes, shm, err);
}

qk_status_t qk_shm_adopt(qk_shm_space_t *space, const char *name, size_t bytes, qk_shm_t **shm,
                         qk_err_t *err) {
  (void)space, (void)shm;
  return qk_fail(err, QK_NOT_FOUND, "%s of %zu bytes", name, bytes);
}

int qk_shm_open(const qk_shm_t *shm, int flags) {
  (void)shm, (void)flags;
  errno = ENOENT;
  return -1;
}

qk_status_t qk_shm_write(int fd, const void *data, size_t bytes, size_t offset, qk_err_t *err) {
  (void)data, (void)bytes, (void)offset;
  return qk_fail(err, QK_IO_ERROR, "descriptor %d", fd);
}

void qk_shm_destroy(qk_shm_t *shm) {
  if (!shm) return;
  world.fields -= (int64_t)shm->bytes;
  qk_link_remove(&shm->link);
  qk_free(shm->data);
  qk_free(shm);
}

void qk_shm_tick(qk_shm_space_t *space) {
  (void)space;
}

void qk_shm_space_close(qk_shm_space_t *space) {
  (void)space;
}

int64_t qk_shm_free_bytes(const qk_shm_space_t *space) {
  (void)space;
  return 1ll << 40;
}

int qk_shm_sweep(const qk_shm_space_t *space) {
  (void)space;
  return 0;
}

int64_t world_fields(void) {
  return world.fields;
}

void world_fill_memory(bool full) {
  world.full = full;
}

/* ---- paths ----------------------------------------------------------------------------------- */

qk_status_t qk_runtime_endpoints(const char *listen, const char *listen_data,
                                 char control[QK_ENDPOINT_MAX], char data[QK_ENDPOINT_MAX],
                                 qk_err_t *err) {
  (void)listen, (void)listen_data, (void)err;
  snprintf(control, QK_ENDPOINT_MAX, "inproc://control");
  snprintf(data, QK_ENDPOINT_MAX, "inproc://data");
  return QK_OK;
}

bool qk_runtime_local(const char *endpoint) {
  (void)endpoint;
  return true;
}

void qk_runtime_any_host(char endpoint[QK_ENDPOINT_MAX]) {
  (void)endpoint;
}

void qk_runtime_this_host(char endpoint[QK_ENDPOINT_MAX]) {
  (void)endpoint;
}

qk_status_t qk_runtime_engine_path(const char *given, char *path, size_t size, qk_err_t *err) {
  (void)given, (void)err;
  snprintf(path, size, "engine");
  return QK_OK;
}

/* A folder that cannot be: what is unlinked in it was never there. */
qk_status_t qk_runtime_dir(char *dir, size_t size, qk_err_t *err) {
  (void)err;
  snprintf(dir, size, "/dev/null/quarkd");
  return QK_OK;
}

qk_status_t qk_runtime_lock(const char *dir, char path[QK_PATH_MAX + 1], int *fd, qk_err_t *err) {
  (void)path, (void)fd;
  return qk_fail(err, QK_IO_ERROR, "%s: no files here", dir);
}

qk_status_t qk_runtime_checkpoint(const char *given, const char *state, char path[QK_PATH_MAX + 1],
                                  qk_err_t *err) {
  (void)given, (void)state, (void)err;
  path[0] = '\0';
  return QK_OK;
}

qk_status_t qk_runtime_write_line(const char *path, const char *line, qk_err_t *err) {
  return qk_fail(err, QK_IO_ERROR, "%s: no files for \"%s\"", path, line);
}
