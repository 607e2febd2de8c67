/*
 * backlog.h: what connections were sent and do not take. libzmq counts the messages that wait for a
 * peer, not their bytes, and tells neither. But while some wait the kernel takes no more for that
 * connection, which its descriptor says. So answers that can be left out are counted from then on,
 * and left out when there are QK_BACKLOG_BYTES of them, until the connection could be written to
 * for QK_BACKLOG_QUIET: who reads a little now and then owes as much as who does not read.
 */
#ifndef QK_FRONT_BACKLOG_H
#define QK_FRONT_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QK_BACKLOG_BYTES = 1 << 20 };
#define QK_BACKLOG_QUIET 1.0 /* seconds */

typedef struct qk_debt {
  uint64_t connection; /* whose it is: descriptors are used again */
  double blocked_at;   /* seconds: when it last could not be written to */
  uint32_t bytes;
} qk_debt_t;

/* Zeros: nothing is owed. */
typedef struct qk_backlog {
  qk_debt_t *of; /* by descriptor */
  int room;
} qk_backlog_t;

/* Whether so many bytes more may wait for the connection of this number (zap.h), which has the
 * descriptor fd; they are counted then. now: seconds of any clock that has run for a while. True if
 * fd is -1 or is not open, and if there is no memory to count with. */
bool qk_backlog_add(qk_backlog_t *backlog, int fd, uint64_t connection, size_t bytes, double now);
void qk_backlog_fini(qk_backlog_t *backlog);

#endif
