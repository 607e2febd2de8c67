/*
 * eigens.h: eigenvectors as a service: one EIGEN at a time, in steps between those of solves, and
 * the vectors that are kept under names, in host memory.
 *
 * With a file the state of a computation is written there at restarts, in a twentieth of the time
 * at most, then the vectors; an EIGEN whose file is there goes on from it. A step is a new block of
 * Lanczos (some hundred applications of the operator to eight vectors), or a block to or from the
 * file; solves wait that long.
 *
 * Collective. verdict: of the EIGEN alone (eigen_file.h, lanczos.h), QK_DEVICE_MEMORY and
 * QK_NO_MEMORY with what is needed and what there is; the status that is returned: the process
 * cannot go on.
 */
#ifndef QK_ENGINE_EIGENS_H
#define QK_ENGINE_EIGENS_H

#include "daemon/engine/modes/kept.h"
#include "daemon/engine/modes/zero_modes.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/wire.h"

typedef struct qk_eigens qk_eigens_t;

/* Borrows both. *eigens is to be destroyed whatever comes out. */
qk_status_t qk_eigens_create(qk_loaded_t *setup, qk_wire_t *wire, qk_eigens_t **eigens,
                             qk_err_t *err);
void qk_eigens_destroy(qk_eigens_t *eigens); /* NULL-safe; files stay */

enum { QK_EIGEN_WHY = 160 };

typedef struct qk_eigens_done {
  uint64_t serial;
  qk_err_t verdict; /* code QK_OK: the rest is set */
  double seconds, lowest, highest, residual;
  int restarts;
  int64_t applications, host_bytes; /* of all ranks */
  qk_zero_modes_t zero;             /* of overlap fermions, kind GAMMA5 */
  char unwritten[QK_EIGEN_WHY];     /* why their file could not be written, on rank 0; "": it was */
} qk_eigens_done_t;

/* *over: it has ended at once, and *done says how. While none is under way. */
qk_status_t qk_eigens_begin(qk_eigens_t *eigens, const qk_eigen_order_t *order, bool *over,
                            qk_eigens_done_t *done, qk_err_t *err);
bool qk_eigens_busy(const qk_eigens_t *eigens);
qk_status_t qk_eigens_step(qk_eigens_t *eigens, bool *over, qk_eigens_done_t *done, qk_err_t *err);
/* Of the one under way; its file goes, too. Steps end with QK_CANCELLED when the thread of a dense
 * problem has ended, which LAPACK does not do at once. */
void qk_eigens_cancel(qk_eigens_t *eigens);
/* Without a word of it, and the file stays. The next one begins when such a thread has ended. */
void qk_eigens_abandon(qk_eigens_t *eigens);
/* The name is forgotten, and its file removed. */
void qk_eigens_drop(qk_eigens_t *eigens, const char *name);

typedef struct qk_eigens_progress {
  uint64_t serial;
  int restart, converged;
  double seconds;
} qk_eigens_progress_t;
/* Of the one under way, the same on all ranks. */
qk_eigens_progress_t qk_eigens_progress(const qk_eigens_t *eigens);

/* What is kept under the name; QK_NOT_FOUND. */
qk_status_t qk_eigens_find(const qk_eigens_t *eigens, const char *name, const qk_kept_t **kept,
                           qk_err_t *err);
#endif
