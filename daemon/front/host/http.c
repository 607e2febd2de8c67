#include "daemon/front/host/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

enum { CONNECTIONS = 64, RESERVE = 16, MEMORY = 16 * 1024, TICK_MS = 1000, BACKLOG = 64 };
enum { IDLE_SECONDS = 10, BODY_MAX = 1 << 20, ADDRESS_BYTES = 16 };

static const double HEAD_SECONDS = 10, ANSWER_SECONDS = 60;

/* A connection. */
typedef struct caller {
  qk_link_t link;
  int fd;
  double since; /* when it came, its request was read, or it was answered last */
  bool asked;   /* an answer is on its way */
  bool gone;    /* is being closed */
  uint8_t address[ADDRESS_BYTES];
  size_t body; /* bytes of it that were thrown away */
} caller_t;

struct qk_http {
  struct MHD_Daemon *daemon;
  uv_poll_t poll;
  uv_timer_t timer;
  int handles; /* that are not closed yet */
  int port;
  qk_loop_t *loop;
  qk_link_t callers; /* who came first is first */
  char host[HOST_NAME_MAX + 1];
  const char *names; /* further ones; NULL: none */
  qk_page_fn *page;
  void *arg;
};

static enum MHD_Result answer(struct MHD_Connection *connection, qk_page_t page) {
  if (!page.body)
    page = (qk_page_t){.code = 500, .type = "text/plain", .body = strdup("no memory\n")};
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
  if (page.last) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  enum MHD_Result result = MHD_queue_response(connection, page.code, response);
  MHD_destroy_response(response);
  return result;
}

/* ---- connections --------------------------------------------------------------------------- */

/* libmicrohttpd closes it when it sees the end. */
static void hang_up(caller_t *caller) {
  shutdown(caller->fd, SHUT_RDWR);
  caller->gone = true;
}

static int count_callers(const qk_http_t *h, const uint8_t *address) {
  int n = 0;
  for (const qk_link_t *l = h->callers.next; l != &h->callers; l = l->next) {
    const caller_t *c = QK_HOLDER(l, const caller_t, link);
    n += !c->gone && (!address || memcmp(c->address, address, ADDRESS_BYTES) == 0);
  }
  return n;
}

/* Of the address that has most connections the one that has waited longest; never the newest, which
 * the reserve is for. */
static caller_t *find_oldest(const qk_http_t *h) {
  caller_t *found = NULL;
  int most = 0;
  for (const qk_link_t *l = h->callers.next; l != h->callers.prev; l = l->next) {
    caller_t *c = QK_HOLDER(l, caller_t, link);
    const int n = c->gone ? 0 : count_callers(h, c->address);
    if (n == 0 || n < most || (n == most && c->since >= found->since)) continue;
    most = n;
    found = c;
  }
  return found;
}

static void note_address(caller_t *caller, const struct sockaddr *from) {
  if (from->sa_family == AF_INET6)
    memcpy(caller->address, &((const struct sockaddr_in6 *)from)->sin6_addr, ADDRESS_BYTES);
  else
    memcpy(caller->address, &((const struct sockaddr_in *)from)->sin_addr, 4);
}

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
  qk_http_t *h = self;
  caller_t *c = *context;
  if (what == MHD_CONNECTION_NOTIFY_CLOSED && c) {
    qk_link_remove(&c->link);
    qk_free(c);
    *context = NULL;
  }
  if (what != MHD_CONNECTION_NOTIFY_STARTED) return;
  c = *context = qk_calloc(1, sizeof *c);
  if (!c) return; /* its answer will say so */
  c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  c->since = qk_loop_seconds(h->loop);
  note_address(
      c, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
  qk_link_init(&c->link);
  qk_list_append(&h->callers, &c->link);
  if (count_callers(h, NULL) > CONNECTIONS - RESERVE && (c = find_oldest(h)) != NULL) hang_up(c);
}

static caller_t *caller_of(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void on_completed(void *self, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how) {
  const qk_http_t *h = self;
  caller_t *c = caller_of(connection);
  (void)state, (void)how;
  if (!c) return;
  c->asked = false;
  c->body = 0;
  c->since = qk_loop_seconds(h->loop);
}

static void close_slow(const qk_http_t *h) {
  const double now = qk_loop_seconds(h->loop);
  for (const qk_link_t *l = h->callers.next; l != &h->callers; l = l->next) {
    caller_t *c = QK_HOLDER(l, caller_t, link);
    if (!c->gone && now - c->since > (c->asked ? ANSWER_SECONDS : HEAD_SECONDS)) hang_up(c);
  }
}

/* ---- requests ------------------------------------------------------------------------------ */

/* What must be there once at most. */
typedef struct head {
  int hosts, lengths, encodings;
  const char *host;
} head_t;

static enum MHD_Result note_header(void *arg, enum MHD_ValueKind kind, const char *key,
                                   const char *value) {
  head_t *head = arg;
  (void)kind;
  if (strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0) {
    head->hosts++;
    head->host = value ? value : "";
  }
  head->lengths += strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
  head->encodings += strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
  return MHD_YES;
}

static bool is_name(const char *host, size_t bytes, const char *name, size_t name_bytes) {
  return bytes == name_bytes && bytes > 0 && strncasecmp(host, name, bytes) == 0;
}

static bool is_listed(const char *host, size_t bytes, const char *list) {
  for (const char *p = list; p && *p;) {
    const size_t n = strcspn(p, ",");
    if (is_name(host, bytes, p, n)) return true;
    p += n + (p[n] == ',');
  }
  return false;
}

/* Host: NAME, ADDRESS or [ADDRESS], with a port or without. */
static bool is_ours(const qk_http_t *h, const char *host) {
  char text[QK_HTTP_NAME_MAX + 1];
  uint8_t address[ADDRESS_BYTES];
  const bool v6 = *host == '[';
  size_t n = strcspn(host + v6, v6 ? "]" : ":");
  if (n == 0 || n >= sizeof text) return false;
  memcpy(text, host + v6, n);
  text[n] = '\0';
  if (inet_pton(v6 ? AF_INET6 : AF_INET, text, address) == 1) return true;
  if (v6) return false;
  n -= text[n - 1] == '.';
  return is_listed(text, n, "localhost") || is_name(text, n, h->host, strlen(h->host)) ||
         is_name(text, n, h->host, strcspn(h->host, ".")) || is_listed(text, n, h->names);
}

/* A page that says why, where the head is refused. */
static bool is_refused(const qk_http_t *h, struct MHD_Connection *connection, qk_page_t *page) {
  head_t head = {0};
  char quoted[80];
  *page = (qk_page_t){.code = 400, .type = "text/plain", .last = true};
  MHD_get_connection_values(connection, MHD_HEADER_KIND, note_header, &head);
  if (head.hosts > 1 || head.lengths > 1 || head.encodings > 1 ||
      (head.lengths > 0 && head.encodings > 0)) {
    page->body = strdup("more than one Host, Content-Length or Transfer-Encoding\n");
    return true;
  }
  if (head.hosts == 0 || is_ours(h, head.host)) return false;
  page->code = 421;
  qk_err_quote(head.host, quoted, sizeof quoted);
  if (asprintf(&page->body,
               "Host: %s is not a name of this daemon: use its address, or tell quarkd the "
               "name (--http-names)\n",
               quoted) < 0)
    page->body = NULL;
  return true;
}

/* Called first with the head of a request (`state` tells); the body, if any, is discarded. */
static enum MHD_Result handle(void *self, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *bytes, void **state) {
  static char seen;
  qk_http_t *h = self;
  caller_t *caller = caller_of(connection);
  qk_page_t refusal;
  (void)version, (void)data;
  if (!caller) return MHD_NO;
  if (!*state) {
    *state = &seen;
    caller->asked = true;
    caller->since = qk_loop_seconds(h->loop);
    return is_refused(h, connection, &refusal) ? answer(connection, refusal) : MHD_YES;
  }
  if (*bytes > 0) {
    caller->body += *bytes;
    if (caller->body > BODY_MAX) return MHD_NO;
    *bytes = 0;
    return MHD_YES;
  }
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
    return answer(
        connection,
        (qk_page_t){.code = 405, .type = "text/plain", .body = strdup("GET and HEAD alone\n")});
  return answer(connection, h->page(h->arg, url));
}

/* ---- on the loop --------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void run(qk_http_t *h) {
  MHD_UNSIGNED_LONG_LONG wait = TICK_MS;
  close_slow(h);
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
    return qk_fail(err, QK_BAD_ARGUMENT, "http = '%.64s': must be HOST:PORT, the port 0 to 65535",
                   endpoint);
  memcpy(host, start, (size_t)(end - start));
  host[end - start] = '\0';
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                 .ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  int code = getaddrinfo(host, colon + 1, &hints, &found);
  if (code != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "http = '%.64s': %s (must be a numeric HOST:PORT)",
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

qk_status_t qk_http_open(qk_loop_t *loop, const char *endpoint, const char *names, qk_page_fn *page,
                         void *arg, qk_http_t **http, qk_err_t *err) {
  qk_http_t *h = qk_calloc(1, sizeof *h);
  int fd;
  if (!h) return qk_fail(err, QK_NO_MEMORY, "no memory for HTTP");
  h->page = page;
  h->loop = loop;
  h->names = names;
  qk_link_init(&h->callers);
  if (gethostname(h->host, sizeof h->host - 1) != 0) h->host[0] = '\0';
  h->arg = arg;
  qk_status_t status = listen_at(endpoint, &fd, &h->port, err);
  if (status != QK_OK) {
    qk_free(h);
    return status;
  }
  h->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle, h, MHD_OPTION_LISTEN_SOCKET,
                               fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                               MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                               MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
                               on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
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
