/*
 * gauge_ahead.h: pieces of a gauge file, read by a thread while the ones before are decoded.
 * Internal to gauge_*.c.
 *
 * Pieces are read in their order, at most two of them ahead, and no more after one that failed: so
 * calls of the file and errors are those of a reader without a thread. Not collective.
 */
#ifndef QK_ENGINE_GAUGE_AHEAD_H
#define QK_ENGINE_GAUGE_AHEAD_H

#include "daemon/engine/gauge/gauge_format.h"

typedef struct qk_gauge_ahead qk_gauge_ahead_t;

/* Piece number `piece` into raw; called by one thread, which may be another one. */
typedef qk_status_t qk_gauge_piece_fn(const void *arg, int64_t piece, uint8_t *raw, qk_err_t *err);

/* bytes: of the largest piece. arg must stay until the end. Errors: QK_NO_MEMORY. */
qk_status_t qk_gauge_ahead_begin(qk_gauge_piece_fn *read, const void *arg, int64_t pieces,
                                 int64_t bytes, qk_gauge_ahead_t **ahead, qk_err_t *err);
/* The next piece, until the next call. Errors: those of `read`. */
qk_status_t qk_gauge_ahead_next(qk_gauge_ahead_t *ahead, const uint8_t **raw, qk_err_t *err);
/* Waits for the thread. NULL-safe. Returns the seconds that were spent in `read`. */
double qk_gauge_ahead_end(qk_gauge_ahead_t *ahead);

#endif
