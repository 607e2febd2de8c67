#include "daemon/front/process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"

struct qk_process {
  uv_process_t child;
  uv_pipe_t err;
  int open; /* handles not closed yet */
  bool running;
  qk_exit_fn *exited;
  void *arg;
  char buffer[4096];
};

static void on_closed(uv_handle_t *handle) {
  qk_process_t *p = handle->data;
  if (--p->open == 0) qk_free(p);
}

static void on_exit_of_child(uv_process_t *child, int64_t code, int sig) {
  qk_process_t *p = child->data;
  char how[96];
  if (sig != 0)
    snprintf(how, sizeof how, "signal %d (%s)", sig, strsignal(sig));
  else
    snprintf(how, sizeof how, "exit code %lld", (long long)code);
  p->running = false;
  if (p->exited) p->exited(p->arg, how);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  (void)suggested;
  qk_process_t *p = handle->data;
  *buf = uv_buf_init(p->buffer, sizeof p->buffer);
}

static void on_stderr(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  if (n < 0) {
    uv_read_stop(stream);
    return;
  }
  for (ssize_t done = 0, w; done < n; done += w) {
    w = write(STDERR_FILENO, buf->base + done, (size_t)(n - done));
    if (w <= 0) return;
  }
}

static void close_handles(qk_process_t *p) {
  uv_close((uv_handle_t *)&p->child, on_closed);
  uv_close((uv_handle_t *)&p->err, on_closed);
}

qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], qk_exit_fn *exited, void *arg,
                             qk_process_t **out, qk_err_t *err) {
  qk_process_t *p = qk_calloc(1, sizeof *p);
  if (!p) return qk_fail(err, QK_NO_MEMORY, "no memory for a process");
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
