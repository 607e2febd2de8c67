#include "tests/fuzz/session/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/front/host/runtime.h"

enum { TIMERS = 2, SOCKS_MAX = 4 * QK_SETUPS_MAX };

static struct {
  double now;
  qk_loop_t *loop;
  bool stopped;
  struct {
    uv_timer_t *timer;
    uv_timer_cb run;
    double due, every; /* due 0: not running */
  } timer[TIMERS];
  const int *signals; /* 0 behind them */
  qk_signal_fn *on_signal;
  struct {
    uv_handle_t *handle;
    uv_close_cb closed;
  } closing[SOCKS_MAX];
  int nclosing;
} world;

void world_begin(void) {
  world.now = 1000;
  world_disk_begin();
  world_engines_begin();
}

double world_now(void) {
  return world.now;
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
  const double now = world.now;
  *loop = (qk_loop_t){.turn = turn, .arg = arg};
  qk_link_init(&loop->socks);
  memset(&world, 0, sizeof world);
  world.now = now;
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
  world_disk_settle();
}

void qk_loop_run(qk_loop_t *loop) {
  (void)loop;
  play();
}

void qk_loop_stop(qk_loop_t *loop) {
  (void)loop;
  world.stopped = true;
}

/* Time is up after so many looks: an input means the same wherever it is played. */
enum { LOOKS = 64 };

void qk_loop_share(qk_loop_t *loop) {
  loop->until = LOOKS;
}

bool qk_loop_time_is_up(const qk_loop_t *loop) {
  return --((qk_loop_t *)loop)->until == 0;
}

bool qk_loop_is_enough(qk_loop_t *loop, double share, bool wait) {
  (void)share, (void)wait;
  return qk_loop_time_is_up(loop);
}

double qk_loop_seconds(const qk_loop_t *loop) {
  (void)loop;
  return world.now;
}

double qk_loop_awake(qk_loop_t *loop) {
  return qk_loop_seconds(loop);
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

void qk_loop_rest(qk_loop_t *loop, qk_zsock_t *sock) {
  (void)loop, (void)sock;
}

void qk_loop_detach(qk_zsock_t *sock, uv_close_cb closed) {
  if (!sock->attached) return;
  sock->attached = false;
  qk_link_remove(&sock->link);
  QK_ASSERT(world.nclosing < SOCKS_MAX);
  world.closing[world.nclosing].handle = (uv_handle_t *)&sock->poll;
  world.closing[world.nclosing++].closed = closed;
}

void world_receive(void) {
  for (qk_link_t *l = world.loop->socks.next, *next; l != &world.loop->socks; l = next) {
    next = l->next;
    qk_zsock_t *sock = QK_HOLDER(l, qk_zsock_t, link);
    if (!world_readable(sock->socket)) continue;
    qk_loop_share(world.loop);
    sock->readable(sock->arg);
  }
}

void world_turn(void) {
  world_receive();
  world_disk_turn();
  run_closing();
  qk_loop_share(world.loop);
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

qk_status_t qk_loop_signals(qk_loop_t *loop, const int signals[], qk_signal_fn *on_signal,
                            qk_err_t *err) {
  (void)loop, (void)err;
  world.signals = signals;
  world.on_signal = on_signal;
  return QK_OK;
}

void world_signal(int sig) {
  for (const int *s = world.signals; *s != 0; s++)
    if (*s == sig) world.on_signal(world.loop->arg, sig);
}

bool world_stopped(void) {
  return world.stopped;
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

bool qk_runtime_next_endpoint(const char *data, int i, char endpoint[QK_ENDPOINT_MAX]) {
  QK_ASSERT(i == 0);
  snprintf(endpoint, QK_ENDPOINT_MAX, "%s", data);
  return true;
}

bool qk_runtime_any_port(char endpoint[QK_ENDPOINT_MAX]) {
  (void)endpoint;
  return false;
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

qk_status_t qk_runtime_lock(const char *key, const char *dir, char path[QK_PATH_MAX + 1], int *fd,
                            qk_err_t *err) {
  (void)key, (void)err;
  snprintf(path, QK_PATH_MAX + 1, "%s", dir);
  *fd = -1;
  return QK_OK;
}

qk_status_t qk_runtime_path(const char *key, const char *given, char path[QK_PATH_MAX + 1],
                            qk_err_t *err) {
  (void)key, (void)err;
  snprintf(path, QK_PATH_MAX + 1, "%s", given);
  return QK_OK;
}

qk_status_t qk_runtime_checkpoint(const char *given, const char *state, char path[QK_PATH_MAX + 1],
                                  qk_err_t *err) {
  (void)given, (void)state, (void)err;
  path[0] = '\0';
  return QK_OK;
}

qk_status_t qk_runtime_announce(const char *path, const char *endpoint, int *fd, qk_err_t *err) {
  (void)fd;
  return qk_fail(err, QK_IO_ERROR, "%s: no files for \"%s\"", path, endpoint);
}

void qk_runtime_withdraw(const char *path, int fd) {
  (void)path, (void)fd;
}

qk_status_t qk_runtime_write_line(const char *path, const char *line, qk_err_t *err) {
  return qk_fail(err, QK_IO_ERROR, "%s: no files for \"%s\"", path, line);
}
