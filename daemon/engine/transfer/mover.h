/*
 * mover.h: threads that copy this rank's parts of vectors between host memory and objects of the
 * front (wire.h), while the engine's own thread continues.
 *
 * Used by one thread. Not collective: the caller must find out whether all ranks are done.
 */
#ifndef QK_ENGINE_MOVER_H
#define QK_ENGINE_MOVER_H

#include "daemon/engine/transfer/wire.h"

typedef struct qk_mover qk_mover_t;

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
qk_status_t qk_mover_create(const qk_wire_t *wire, int threads, qk_mover_t **mover, qk_err_t *err);
void qk_mover_destroy(qk_mover_t *mover); /* when pieces under way are done; NULL-safe */

/* segment, part and write are set. The move must stay where it is until it is done. */
void qk_mover_start(qk_mover_t *mover, qk_move_t *move);
bool qk_mover_done(qk_mover_t *mover, const qk_move_t *move);

#endif
