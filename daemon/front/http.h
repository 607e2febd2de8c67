/*
 * http.h: read-only pages over HTTP on the front's loop (libmicrohttpd, without threads of its own).
 *
 * GET and HEAD alone; connections, their memory and their time are bounded. Nothing is encrypted or authenticated.
 */
#ifndef QK_FRONT_HTTP_H
#define QK_FRONT_HTTP_H

#include "daemon/front/loop.h"

typedef struct qk_http qk_http_t;

typedef struct qk_page {
  unsigned code;      /* 200, 404, 503 ... */
  const char *type;   /* "text/plain; ..." */
  char *body;         /* malloc'd, taken; NULL: 500 */
  const char *policy; /* Content-Security-Policy; NULL: nothing may be loaded or run */
} qk_page_t;

/* Called on the loop. */
typedef qk_page_t qk_page_fn(void *arg, const char *path);

/* endpoint: HOST:PORT with a numeric host, [HOST]:PORT for IPv6; port 0 takes a free one. Errors: QK_BAD_ARGUMENT, QK_BUSY. */
qk_status_t qk_http_open(qk_loop_t *loop, const char *endpoint, qk_page_fn *page, void *arg,
                         qk_http_t **http, qk_err_t *err);
/* Before the end of the loop, which frees it. NULL-safe. */
void qk_http_close(qk_http_t *http);
int qk_http_port(const qk_http_t *http);

#endif
