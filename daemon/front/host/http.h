/*
 * http.h: read-only pages over HTTP on the front's loop (libmicrohttpd, without threads of its
 * own).
 *
 * GET and HEAD alone; connections, their memory and their time are bounded. Nothing is encrypted or
 * authenticated.
 *
 * Slow      A request has 10 s to come as a whole, its answer 60 s to go, however little at a time
 *           moves. Of 64 connections 16 are kept for newcomers: where fewer are left, the one that
 *           has waited longest is closed, of the address that has most.
 * Names     A page of the web can have its name lead to this machine and then reads what we say as
 *           its own (DNS rebinding), but its browser names it in Host. Answered are addresses,
 *           localhost, the machine's name and those of --http-names.
 * Lengths   Who comes by a proxy that reads a request another way than we do could hide a second
 *           one in it: two lengths, or a length and an encoding, are refused and the connection
 *           closed.
 */
#ifndef QK_FRONT_HTTP_H
#define QK_FRONT_HTTP_H

#include "daemon/front/host/loop.h"

enum { QK_HTTP_NAME_MAX = 253 };

typedef struct qk_http qk_http_t;

typedef struct qk_page {
  unsigned code;      /* 200, 404, 503 ... */
  const char *type;   /* "text/plain; ..." */
  char *body;         /* malloc'd, taken; NULL: 500 */
  const char *policy; /* Content-Security-Policy; NULL: nothing may be loaded or run */
  bool last;          /* the connection ends with it */
} qk_page_t;

/* Called on the loop. */
typedef qk_page_t qk_page_fn(void *arg, const char *path);

/* names: NULL, or comma-separated, borrowed. endpoint: HOST:PORT with a numeric host, [HOST]:PORT
 * for IPv6; port 0 takes a free one. Errors: QK_BAD_ARGUMENT, QK_BUSY. */
qk_status_t qk_http_open(qk_loop_t *loop, const char *endpoint, const char *names, qk_page_fn *page,
                         void *arg, qk_http_t **http, qk_err_t *err);
/* Before the end of the loop, which frees it. NULL-safe. */
void qk_http_close(qk_http_t *http);
int qk_http_port(const qk_http_t *http);

#endif
