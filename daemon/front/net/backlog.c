#include "daemon/front/net/backlog.h"

#include <poll.h>

#include "daemon/base/mem.h"

static bool can_be_written(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  return poll(&p, 1, 0) != 0; /* also where it is none, or none any more */
}

bool qk_backlog_add(qk_backlog_t *b, int fd, uint64_t connection, size_t bytes, double now) {
  if (fd < 0) return true;
  qk_debt_t *of = qk_grow(b->of, &b->room, fd + 1, sizeof *of);
  if (!of) return true;
  b->of = of;
  qk_debt_t *debt = &b->of[fd];
  if (debt->connection != connection) *debt = (qk_debt_t){.connection = connection};
  if (!can_be_written(fd)) {
    debt->blocked_at = now;
  } else if (now - debt->blocked_at > QK_BACKLOG_QUIET) {
    debt->bytes = 0;
    return true;
  }
  if (debt->bytes + bytes > QK_BACKLOG_BYTES) return false;
  debt->bytes += (uint32_t)bytes;
  return true;
}

void qk_backlog_fini(qk_backlog_t *b) {
  qk_free(b->of);
  *b = (qk_backlog_t){0};
}
