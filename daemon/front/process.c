#include "daemon/front/process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/lastwords.h"

struct qk_process {
  uv_process_t child;
  uv_pipe_t err;
  int open; /* handles not closed yet */
  bool running;
  qk_exit_fn *exited;
  void *arg;
  bool json; /* every line of ours is an object */
  qk_last_words_t last;
  size_t filled; /* bytes of a line that has not ended */
  char buffer[4096];
};

static void on_closed(uv_handle_t *handle) {
  qk_process_t *p = handle->data;
  if (--p->open == 0) qk_free(p);
}

/* ---- its stderr ---------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  qk_process_t *p = handle->data;
  *buf = uv_buf_init(p->buffer + p->filled, (unsigned)(sizeof p->buffer - p->filled));
}

/* What is no line of qk_log, such as the words of mpirun, of a library or of the system. */
static bool foreign(const char *line, size_t n) {
  static const char begin[] = "{\"time\":\"";
  return n <= strlen(begin) || memcmp(line, begin, strlen(begin)) != 0 || line[n - 1] != '}';
}

/* Whole lines, so that ours do not come in between; n without the newline. */
static void pass_on(qk_process_t *p, char *line, size_t n) {
  qk_last_words_hear(&p->last, line, n);
  if (p->json && foreign(line, n)) {
    if (n > 0) qk_warn("engine", "%.*s", (int)n, line);
    return;
  }
  const struct iovec parts[] = {{line, n}, {"\n", 1}};
  ssize_t written = writev(STDERR_FILENO, parts, 2);
  (void)written; /* there is nowhere to report to */
}

/* n bytes more are in the buffer. */
static void take(qk_process_t *p, size_t n) {
  char *line = p->buffer, *end = p->buffer + p->filled + n;
  for (char *next; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1)
    pass_on(p, line, (size_t)(next - line));
  if (line == p->buffer && end == p->buffer + sizeof p->buffer) {
    pass_on(p, line, sizeof p->buffer);
    line = end;
  }
  p->filled = (size_t)(end - line);
  memmove(p->buffer, line, p->filled);
}

static void end_line(qk_process_t *p) {
  if (p->filled > 0) pass_on(p, p->buffer, p->filled);
  p->filled = 0;
}

static void on_stderr(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  qk_process_t *p = stream->data;
  (void)buf;
  if (n >= 0) {
    take(p, (size_t)n);
  } else {
    uv_read_stop(stream);
    end_line(p);
  }
}

/* What is still in the pipe when the process has ended. */
static void hear_the_rest(qk_process_t *p) {
  uv_os_fd_t fd;
  ssize_t n;
  if (uv_fileno((uv_handle_t *)&p->err, &fd) != 0) return;
  while ((n = read(fd, p->buffer + p->filled, sizeof p->buffer - p->filled)) > 0)
    take(p, (size_t)n);
  end_line(p);
}

static void on_exit_of_child(uv_process_t *child, int64_t code, int sig) {
  qk_process_t *p = child->data;
  char how[96 + QK_LAST_WORDS_MAX];
  hear_the_rest(p);
  const char *last = qk_last_words_tell(&p->last), *colon = last[0] ? ": " : "";
  if (sig != 0)
    snprintf(how, sizeof how, "signal %d (%s)%s%s", sig, strsignal(sig), colon, last);
  else
    snprintf(how, sizeof how, "exit code %lld%s%s", (long long)code, colon, last);
  p->running = false;
  if (p->exited) p->exited(p->arg, how);
}

static void close_handles(qk_process_t *p) {
  uv_close((uv_handle_t *)&p->child, on_closed);
  uv_close((uv_handle_t *)&p->err, on_closed);
}

qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], bool json, qk_exit_fn *exited,
                             void *arg, qk_process_t **out, qk_err_t *err) {
  qk_process_t *p = qk_calloc(1, sizeof *p);
  if (!p) return qk_fail(err, QK_NO_MEMORY, "no memory for a process");
  p->json = json;
  p->exited = exited;
  p->arg = arg;
  p->child.data = p->err.data = p;
  p->open = 2;
  uv_pipe_init(&loop->uv, &p->err, 0);
  uv_stdio_container_t stdio[3] = {
      {.flags = UV_IGNORE},
      {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
      {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->err}};
  uv_process_options_t options = {.exit_cb = on_exit_of_child,
                                  .file = argv[0],
                                  .args = (char **)argv,
                                  .flags = UV_PROCESS_DETACHED,
                                  .stdio_count = 3,
                                  .stdio = stdio};
  int e = uv_spawn(&loop->uv, &p->child, &options);
  if (e != 0) {
    qk_status_t s = qk_fail(err, QK_IO_ERROR, "starting %s: %s", argv[0], uv_strerror(e));
    close_handles(p);
    return s;
  }
  p->running = true;
  uv_read_start((uv_stream_t *)&p->err, on_alloc, on_stderr);
  *out = p;
  return QK_OK;
}

bool qk_process_running(const qk_process_t *p) {
  return p && p->running;
}

void qk_process_signal(qk_process_t *p, int sig) {
  if (p->running) kill(-p->child.pid, sig);
}

void qk_process_release(qk_process_t *p) {
  if (!p) return;
  qk_process_signal(p, SIGKILL);
  p->exited = NULL;
  close_handles(p);
}
