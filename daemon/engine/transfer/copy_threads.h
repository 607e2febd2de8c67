/*
 * copy_threads.h: threads that copy this rank's parts of vectors between host memory and objects of
 * the front (wire.h), while the engine's own thread continues.
 *
 * Used by one thread. Not collective: the caller must find out whether all ranks are done.
 */
#ifndef QK_ENGINE_COPY_THREADS_H
#define QK_ENGINE_COPY_THREADS_H

#include "daemon/engine/transfer/wire.h"

typedef struct qk_copy_threads qk_copy_threads_t;

typedef struct qk_move {
  qk_segment_t segment; /* open until the move is done */
  void *part;
  bool write;
  /* the mover's */
  struct qk_move *next;
  int64_t piece, left; /* the next one to begin, and how many have not ended */
  qk_err_t err;        /* of the first piece that failed */
} qk_move_t;

/* Errors: QK_NO_MEMORY, QK_INTERNAL where a thread cannot be started. */
qk_status_t qk_copy_threads_create(const qk_wire_t *wire, int threads, qk_copy_threads_t **mover,
                                   qk_err_t *err);
void qk_copy_threads_destroy(
    qk_copy_threads_t *mover); /* when pieces under way are done; NULL-safe */

/* segment, part and write are set. The move must stay where it is until it is done. */
void qk_copy_threads_start(qk_copy_threads_t *mover, qk_move_t *move);
bool qk_copy_threads_done(qk_copy_threads_t *mover, const qk_move_t *move);

#endif
