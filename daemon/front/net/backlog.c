#include "daemon/front/net/backlog.h"

#include <poll.h>
#include <string.h>

#include "daemon/base/mem.h"

static bool can_be_written(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  return poll(&p, 1, 0) != 0; /* also where it is none, or none any more */
}

static bool make_room(qk_backlog_t *b, int fd) {
  if (fd < b->room) return true;
  const int room = 2 * fd + 64;
  qk_debt_t *of = qk_calloc((size_t)room, sizeof *of);
  if (!of) return false;
  if (b->room > 0) memcpy(of, b->of, (size_t)b->room * sizeof *of);
  qk_free(b->of);
  b->of = of;
  b->room = room;
  return true;
}

bool qk_backlog_add(qk_backlog_t *b, int fd, uint64_t connection, size_t bytes, double now) {
  if (fd < 0) return true;
  if (!make_room(b, fd)) return true;
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
