/*
 * mg_file.h: the checkpoint of a multigrid setup: null vectors of every level and the vectors of
 * the deflated coarsest level, in one file that is bound to gauge field, operator and parameters.
 *
 * The file (mg_header.h) is the same on any rank grid and backend: sites in global order, 16-bit
 * floats if the prolongator has them, else float. It has no coarse operators: making them again
 * from the vectors takes less time than reading them (docs/decisions.md).
 *
 * Errors, the same on all ranks: QK_NOT_FOUND (no file, or one of another configuration, operator
 * or setup: err says which number differs), QK_BAD_FORMAT, QK_UNSUPPORTED (version), QK_TRUNCATED,
 * QK_BAD_CHECKSUM, QK_IO_ERROR; the caller then sets up anew. Others as multigrid.h. All calls
 * except digest and bytes are collective; all ranks see the file.
 */
#ifndef QK_ENGINE_MG_FILE_H
#define QK_ENGINE_MG_FILE_H

#include "daemon/base/file.h"
#include "daemon/base/progress.h"
#include "daemon/engine/multigrid/multigrid.h"
#include "proto/action/operator_text.h"

/* What a setup was made for. */
typedef struct qk_mg_identity {
  uint64_t gauge_digest; /* qk_gauge_check_t */
  double phase[4][2];    /* boundary phases */
  uint64_t seed; /* of the random vectors, as it was asked for: a setup made again takes another */
  char operator_text[QK_OPERATOR_TEXT]; /* action and parameters: QK_TEXT_CANONICAL */
} qk_mg_identity_t;

/* Of all members: a name for the file among others. */
uint64_t qk_mg_identity_digest(const qk_mg_identity_t *identity);

/* Writes the present vectors of mg in the background: begin copies them to host memory, as many
 * bytes as the file has of this rank, then a thread of every rank writes its part to PATH.tmp.
 * Device memory during begin: the null vectors that are worked on at a time, in single. After an
 * error nothing is begun: QK_BUSY if another process writes there. */
typedef struct qk_mg_save qk_mg_save_t;
qk_status_t qk_mg_save_begin(const qk_mg_t *mg, const char *path, const qk_mg_identity_t *identity,
                             qk_mg_save_t **save, qk_err_t *err);
/* *ended: the file has its name, complete and on disk, or the write has failed (see the status);
 * the old file is then unchanged. *save is NULL after that. wait: wait until it has ended. */
qk_status_t qk_mg_save_poll(qk_mg_save_t **save, bool wait, bool *ended, qk_err_t *err);
/* Cancels a write; not collective, for a rank that has lost the others. Waits for this rank's
 * thread. NULL-safe. */
void qk_mg_save_abandon(qk_mg_save_t **save);

/* Reads a hierarchy from the file. The parameters of cycle and storage may differ from those
 * that it was made with; levels, blocks, vectors, setup parameters and deflation may not. Sets
 * mg->restored; does not measure its health. progress: phase "checkpoint", sections. */
qk_status_t qk_mg_load(qk_operator_t *op, qk_work_t *work, const char *path,
                       const qk_mg_identity_t *identity, const qk_mg_params_t *params,
                       qk_progress_fn *progress, void *arg, qk_mg_t **mg, qk_err_t *err);

/* A setup that starts from the null vectors of the file (qk_mg_evolve), which may be those of
 * another configuration, action, mass, boundary, or of other parameters of a setup. Lattice,
 * levels, aggregates, numbers of vectors and components of fields must be the same: else
 * QK_NOT_FOUND. name: of the setup that wrote the file; with its operator and links it becomes
 * mg->origin. */
qk_status_t qk_mg_load_evolved(qk_operator_t *op, qk_work_t *work, const char *path,
                               const char *name, const qk_mg_params_t *params,
                               qk_progress_fn *progress, void *arg, qk_mg_t **mg, qk_err_t *err);

#endif
