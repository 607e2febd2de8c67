/*
 * backlog.h: limits answers to clients that do not read. libzmq counts the messages that wait for a
 * peer, not their bytes, and reports neither. But while some wait, the kernel accepts no more data
 * for that connection, which its descriptor shows. From then on answers that can be left out are
 * counted, and left out beyond QK_BACKLOG_BYTES, until the connection was writable for
 * QK_BACKLOG_QUIET. So a client that reads a little now and then is treated like one that does not
 * read.
 */
#ifndef QK_FRONT_BACKLOG_H
#define QK_FRONT_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QK_BACKLOG_BYTES = 1 << 20 };
#define QK_BACKLOG_QUIET 1.0 /* seconds */

typedef struct qk_debt {
  uint64_t connection; /* number of the connection: descriptors are reused */
  double blocked_at;   /* seconds: when it last could not be written to */
  uint32_t bytes;
} qk_debt_t;

/* Zeros: nothing is owed. */
typedef struct qk_backlog {
  qk_debt_t *of; /* by descriptor */
  int room;
} qk_backlog_t;

/* True if so many bytes more may wait for the connection of this number (zap.h), which has the
 * descriptor fd; they are then counted. now: seconds of any running clock. Also true if fd is -1
 * or not open, and without memory to count. */
bool qk_backlog_add(qk_backlog_t *backlog, int fd, uint64_t connection, size_t bytes, double now);
void qk_backlog_fini(qk_backlog_t *backlog);

#endif
