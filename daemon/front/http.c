#include "daemon/front/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

enum { CONNECTIONS = 32, SECONDS = 10, MEMORY = 16 * 1024, TICK_MS = 1000, BACKLOG = 16 };

struct qk_http {
  struct MHD_Daemon *daemon;
  uv_poll_t poll;
  uv_timer_t timer;
  int handles; /* that are not closed yet */
  int port;
  qk_page_fn *page;
  void *arg;
};

static enum MHD_Result answer(struct MHD_Connection *connection, qk_page_t page) {
  if (!page.body) page = (qk_page_t){500, "text/plain", strdup("no memory\n"), NULL};
  if (!page.body) return MHD_NO;
  struct MHD_Response *response =
      MHD_create_response_from_buffer(strlen(page.body), page.body, MHD_RESPMEM_MUST_FREE);
  if (!response) {
    free(page.body);
    return MHD_NO;
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, "Content-Security-Policy",
                          page.policy ? page.policy : "default-src 'none'; frame-ancestors 'none'");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  enum MHD_Result result = MHD_queue_response(connection, page.code, response);
  MHD_destroy_response(response);
  return result;
}

/* Called with the head of a request first, which `state` tells; what a body there may be is thrown away. */
static enum MHD_Result handle(void *self, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *bytes, void **state) {
  static char seen;
  qk_http_t *h = self;
  (void)version, (void)data;
  if (!*state) {
    *state = &seen;
    return MHD_YES;
  }
  if (*bytes > 0) {
    *bytes = 0;
    return MHD_YES;
  }
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
    return answer(connection, (qk_page_t){405, "text/plain", strdup("GET and HEAD alone\n"), NULL});
  return answer(connection, h->page(h->arg, url));
}

/* ---- on the loop --------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void run(qk_http_t *h) {
  MHD_UNSIGNED_LONG_LONG wait = TICK_MS;
  MHD_run(h->daemon);
  if (MHD_get_timeout(h->daemon, &wait) != MHD_YES || wait > TICK_MS) wait = TICK_MS;
  uv_timer_start(&h->timer, on_timer, wait, 0);
}

static void on_timer(uv_timer_t *timer) {
  run(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
  (void)status, (void)events;
  run(poll->data);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* HOST:PORT into an address; QK_BAD_ARGUMENT. */
static qk_status_t parse(const char *endpoint, struct sockaddr_storage *address, socklen_t *length,
                         qk_err_t *err) {
  char host[64];
  const char *colon = strrchr(endpoint, ':'), *start = endpoint, *end = colon;
  if (colon && endpoint[0] == '[' && colon > endpoint + 1 && colon[-1] == ']') {
    start++;
    end--;
  }
  char *rest = "";
  const unsigned long port = colon ? strtoul(colon + 1, &rest, 10) : 0;
  if (!colon || end <= start || (size_t)(end - start) >= sizeof host || rest == colon + 1 ||
      *rest != '\0' || port > 65535)
    return qk_fail(err, QK_BAD_ARGUMENT, "http = '%.64s': HOST:PORT with a port of 0 to 65535",
                   endpoint);
  memcpy(host, start, (size_t)(end - start));
  host[end - start] = '\0';
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                 .ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  int code = getaddrinfo(host, colon + 1, &hints, &found);
  if (code != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "http = '%.64s': %s (a numeric HOST:PORT is wanted)",
                   endpoint, gai_strerror(code));
  memcpy(address, found->ai_addr, found->ai_addrlen);
  *length = found->ai_addrlen;
  freeaddrinfo(found);
  return QK_OK;
}

static qk_status_t listen_at(const char *endpoint, int *fd, int *port, qk_err_t *err) {
  struct sockaddr_storage address;
  socklen_t length;
  int one = 1;
  char number[8] = "";
  qk_status_t status = parse(endpoint, &address, &length, err);
  if (status != QK_OK) return status;
  *fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*fd < 0) return qk_fail(err, QK_BUSY, "http = %s: %s", endpoint, strerror(errno));
  setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(*fd, (struct sockaddr *)&address, length) != 0 || listen(*fd, BACKLOG) != 0 ||
      getsockname(*fd, (struct sockaddr *)&address, &length) != 0 ||
      getnameinfo((struct sockaddr *)&address, length, NULL, 0, number, sizeof number,
                  NI_NUMERICSERV) != 0) {
    status = qk_fail(err, QK_BUSY, "http = %s: %s", endpoint, strerror(errno));
    close(*fd);
  }
  *port = atoi(number);
  return status;
}

static void on_closed(uv_handle_t *handle) {
  qk_http_t *h = handle->data;
  if (--h->handles == 0) qk_free(h);
}

qk_status_t qk_http_open(qk_loop_t *loop, const char *endpoint, qk_page_fn *page, void *arg,
                         qk_http_t **http, qk_err_t *err) {
  qk_http_t *h = qk_calloc(1, sizeof *h);
  int fd;
  if (!h) return qk_fail(err, QK_NO_MEMORY, "no memory for HTTP");
  h->page = page;
  h->arg = arg;
  qk_status_t status = listen_at(endpoint, &fd, &h->port, err);
  if (status != QK_OK) {
    qk_free(h);
    return status;
  }
  h->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle, h, MHD_OPTION_LISTEN_SOCKET,
                               fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                               MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SECONDS,
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_END);
  if (!h->daemon) {
    close(fd);
    qk_free(h);
    return qk_fail(err, QK_INTERNAL, "http = %s: libmicrohttpd does not start", endpoint);
  }
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
  uv_poll_init(&loop->uv, &h->poll, info->epoll_fd);
  uv_timer_init(&loop->uv, &h->timer);
  h->handles = 2;
  h->poll.data = h->timer.data = h;
  uv_poll_start(&h->poll, UV_READABLE, on_poll);
  run(h);
  *http = h;
  return QK_OK;
}

void qk_http_close(qk_http_t *h) {
  if (!h) return;
  uv_close((uv_handle_t *)&h->poll, on_closed);
  uv_close((uv_handle_t *)&h->timer, on_closed);
  MHD_stop_daemon(h->daemon);
}

int qk_http_port(const qk_http_t *h) {
  return h->port;
}
