/*
 * writer.h: solutions on their way from the daemon into a file: one is written, on a thread of its
 * own, while the next is fetched.
 *
 * Memory   Of two solutions: the daemon's, if it can be mapped, else two buffers. A file that is
 *          written from all its columns at once (fieldfile.h) has those of the daemon until it is
 *          committed.
 * Threads  One thread makes all calls. It must not touch the file between create and drain or
 *          destroy, but for its columns.
 * Errors   What fails on the writer's thread is told by the next call; nothing is written after it.
 *          Functions that return an int return an exit code and have printed the reason.
 */
#ifndef QUARKCTL_WRITER_H
#define QUARKCTL_WRITER_H

#include "client/cli/ctl.h"

typedef struct ctl_writer ctl_writer_t;

/* Seconds. The first two overlap; what of sync comes while solutions are written does, too. */
typedef struct ctl_clocks {
  double fetch; /* solutions from the daemon */
  double write; /* into the file, which the kernel has in memory then */
  double sync;  /* from there to the disk */
} ctl_clocks_t;

/* bytes: of a solution. ack: each is acknowledged once it is written. */
int ctl_writer_create(quark_connection_t *conn, qk_fieldfile_t *file, size_t bytes, bool ack,
                      ctl_writer_t **writer);
/* Fetches a solution, which is written as right-hand side rhs of the file some time later. Waits
 * while two are on their way. */
int ctl_writer_take(ctl_writer_t *writer, int64_t rhs, const quark_result_t *result);
/* Tells whether the thread has failed. */
int ctl_writer_check(ctl_writer_t *writer);
/* Waits until all solutions are written. */
int ctl_writer_drain(ctl_writer_t *writer);
/* After drain, once the file is committed: gives back the solutions that it was written from. */
int ctl_writer_give_back(ctl_writer_t *writer);
/* After drain. */
ctl_clocks_t ctl_writer_clocks(const ctl_writer_t *writer);
/* NULL-safe. Solutions that wait are not written. */
void ctl_writer_destroy(ctl_writer_t *writer);

#endif
