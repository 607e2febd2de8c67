#include "daemon/front/host/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/host/stderr_tail.h"

enum { FIFO_BYTES = 1 << 18 };

struct qk_process {
  pid_t pid; /* and of its group */
  uv_process_t child;
  uv_poll_t watch;   /* of pidfd, where it is no child */
  uv_handle_t *body; /* the one of the two that is in use; NULL: none yet */
  int pidfd;         /* -1: it is a child */
  uv_pipe_t err;
  int open; /* handles not closed yet */
  bool running;
  char *fifo; /* NULL: none */
  qk_exit_fn *exited;
  void *arg;
  bool json; /* every line of ours is an object */
  qk_stderr_tail_t last;
  size_t filled; /* bytes of a line that has not ended */
  char buffer[4096];
};

static void on_closed(uv_handle_t *handle) {
  qk_process_t *p = handle->data;
  if (--p->open > 0) return;
  if (p->pidfd >= 0) close(p->pidfd);
  free(p->fifo);
  qk_free(p);
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
  qk_stderr_tail_add(&p->last, line, n);
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
static void read_the_rest(qk_process_t *p) {
  uv_os_fd_t fd;
  ssize_t n;
  if (uv_fileno((uv_handle_t *)&p->err, &fd) != 0) return;
  while ((n = read(fd, p->buffer + p->filled, sizeof p->buffer - p->filled)) > 0)
    take(p, (size_t)n);
  end_line(p);
}

/* ---- its end ------------------------------------------------------------------------------- */

static void end(qk_process_t *p, const char *what) {
  char how[96 + QK_STDERR_LINE_MAX];
  read_the_rest(p);
  const char *last = qk_stderr_tail_cause(&p->last);
  snprintf(how, sizeof how, "%s%s%s", what, last[0] ? ": " : "", last);
  p->running = false;
  if (p->fifo) unlink(p->fifo);
  if (p->exited) p->exited(p->arg, how);
}

static void on_exit_of_child(uv_process_t *child, int64_t code, int sig) {
  char what[96];
  if (sig != 0)
    snprintf(what, sizeof what, "signal %d (%s)", sig, strsignal(sig));
  else
    snprintf(what, sizeof what, "exit code %lld", (long long)code);
  end(child->data, what);
}

static void on_exit_of_other(uv_poll_t *watch, int status, int events) {
  (void)status, (void)events;
  uv_poll_stop(watch);
  end(watch->data, "it ended, and its exit code is not known");
}

/* ---- life ---------------------------------------------------------------------------------- */

static void close_handles(qk_process_t *p) {
  if (p->body) uv_close(p->body, on_closed);
  uv_close((uv_handle_t *)&p->err, on_closed);
}

static qk_process_t *make(qk_loop_t *loop, const char *fifo, bool json, qk_exit_fn *exited,
                          void *arg) {
  qk_process_t *p = qk_calloc(1, sizeof *p);
  if (p && fifo && !(p->fifo = strdup(fifo))) {
    qk_free(p);
    return NULL;
  }
  if (!p) return NULL;
  p->json = json;
  p->exited = exited;
  p->arg = arg;
  p->child.data = p->watch.data = p->err.data = p;
  p->pidfd = -1;
  p->open = 1;
  uv_pipe_init(&loop->uv, &p->err, 0);
  return p;
}

/* body: the handle by which its end is heard of. */
static void begin(qk_process_t *p, void *body, pid_t pid) {
  p->body = body;
  p->open++;
  p->pid = pid;
  p->running = pid > 0;
}

static void read_stderr(qk_process_t *p) {
  uv_read_start((uv_stream_t *)&p->err, on_alloc, on_stderr);
}

/* Our end of the FIFO. */
static qk_status_t open_fifo(qk_process_t *p, qk_err_t *err) {
  const int fd = open(p->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  const int e = fd < 0 ? -errno : uv_pipe_open(&p->err, fd);
  if (e == 0) return QK_OK;
  if (fd >= 0) close(fd);
  return qk_fail(err, QK_IO_ERROR, "%s: %s", p->fifo, uv_strerror(e));
}

/* fd: the end of the process. */
static qk_status_t make_fifo(qk_process_t *p, int *fd, qk_err_t *err) {
  unlink(p->fifo);
  if (mkfifo(p->fifo, 0600) != 0)
    return qk_fail(err, QK_IO_ERROR, "%s: %s", p->fifo, strerror(errno));
  qk_status_t status = open_fifo(p, err);
  if (status != QK_OK) return status;
  *fd = open(p->fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (*fd < 0) return qk_fail(err, QK_IO_ERROR, "%s: %s", p->fifo, strerror(errno));
  fcntl(*fd, F_SETPIPE_SZ, FIFO_BYTES); /* or what the system lets us have */
  return QK_OK;
}

/* fd: of the FIFO; -1: a pipe is made for stderr. */
static qk_status_t spawn(qk_loop_t *loop, qk_process_t *p, char *const argv[], int fd,
                         qk_err_t *err) {
  const uv_stdio_container_t fifo = {.flags = UV_INHERIT_FD, .data.fd = fd};
  uv_stdio_container_t stdio[3] = {
      {.flags = UV_IGNORE},
      {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
      {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->err}};
  if (fd >= 0) stdio[1] = stdio[2] = fifo;
  uv_process_options_t options = {.exit_cb = on_exit_of_child,
                                  .file = argv[0],
                                  .args = (char **)argv,
                                  .flags = UV_PROCESS_DETACHED,
                                  .stdio_count = 3,
                                  .stdio = stdio};
  const int e = uv_spawn(&loop->uv, &p->child, &options);
  begin(p, &p->child, e == 0 ? p->child.pid : 0);
  /* libuv has made it blocking for the child, which shares what the descriptor stands for */
  if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  if (e != 0) return qk_fail(err, QK_IO_ERROR, "starting %s: %s", argv[0], uv_strerror(e));
  read_stderr(p);
  return QK_OK;
}

qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **out, qk_err_t *err) {
  int fd = -1;
  qk_process_t *p = make(loop, fifo, json, exited, arg);
  if (!p) return qk_fail(err, QK_NO_MEMORY, "no memory for a process");
  qk_status_t status = fifo ? make_fifo(p, &fd, err) : QK_OK;
  if (status == QK_OK) status = spawn(loop, p, argv, fd, err);
  if (fd >= 0) close(fd);
  if (status != QK_OK)
    qk_process_release(p);
  else
    *out = p;
  return status;
}

qk_status_t qk_process_adopt(qk_loop_t *loop, const qk_procid_t *id, const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **out, qk_err_t *err) {
  qk_err_t deaf = {0};
  qk_process_t *p = make(loop, fifo, json, exited, arg);
  if (!p) return qk_fail(err, QK_NO_MEMORY, "no memory for a process");
  qk_status_t status = qk_procid_open(id, &p->pidfd, err);
  if (status == QK_OK && uv_poll_init(&loop->uv, &p->watch, p->pidfd) != 0)
    status = qk_fail(err, QK_IO_ERROR, "process %ld cannot be watched", (long)id->pid);
  if (status != QK_OK) {
    qk_process_release(p);
    return status;
  }
  begin(p, &p->watch, id->pid);
  uv_poll_start(&p->watch, UV_READABLE, on_exit_of_other);
  if (open_fifo(p, &deaf) == QK_OK)
    read_stderr(p);
  else
    qk_warn("engine", "what it says is lost: %s", deaf.text);
  *out = p;
  return QK_OK;
}

pid_t qk_process_pid(const qk_process_t *p) {
  return p->pid;
}

bool qk_process_running(const qk_process_t *p) {
  return p && p->running;
}

void qk_process_recount(const qk_process_t *p, char *text, size_t size) {
  text[0] = '\0';
  if (p) qk_stderr_tail_lines(&p->last, text, size);
}

void qk_process_signal(qk_process_t *p, int sig) {
  /* the pid of one that is no child may be another's as soon as it has ended */
  if (p->running && (p->pidfd < 0 || qk_procid_lives(p->pidfd))) kill(-p->pid, sig);
}

void qk_process_release(qk_process_t *p) {
  if (!p) return;
  qk_process_signal(p, SIGKILL);
  if (p->fifo) unlink(p->fifo);
  p->exited = NULL;
  close_handles(p);
}
