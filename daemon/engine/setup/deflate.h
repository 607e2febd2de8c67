/*
 * deflate.h: the low modes that plain solvers of a setup begin with (krylov/solver.h: deflation).
 *
 * An operator with a twist has those of each flavour. Collective. Errors: those of qk_lanczos;
 * QK_NOT_CONVERGED only if none has converged.
 */
#ifndef QK_ENGINE_DEFLATE_H
#define QK_ENGINE_DEFLATE_H

#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/setup/load.h"

typedef struct qk_deflate {
  qk_deflation_t *flavour[2]; /* 1, and -1: NULL without a twist */
  int n;                      /* of each */
  double lowest, highest;     /* eigenvalues of flavour 1 */
  double seconds;             /* that they took */
  int64_t bytes;              /* on this rank */
} qk_deflate_t;

/* store: QK_SINGLE or QK_HALF. The operator holds single. */
qk_status_t qk_deflate_create(qk_operator_t *op, qk_work_t *work, int n, qk_prec_t store,
                              qk_progress_fn *progress, void *arg, qk_deflate_t **deflate,
                              qk_err_t *err);
void qk_deflate_destroy(qk_deflate_t *deflate); /* NULL-safe */

/* Whether a lattice has as many vectors as LOAD asks for. geom: of one vector. QK_BAD_ARGUMENT. */
qk_status_t qk_deflate_check(const qk_geom_t *geom, const qk_load_t *load, qk_err_t *err);

/* What a plan needs, on one rank: bytes that stay, and the most beside the operator while they are
 * made. geom: of the fields of the solvers. */
int64_t qk_deflate_bytes(const qk_geom_t *geom, int n, qk_prec_t store, bool twist);
int64_t qk_deflate_making(const qk_geom_t *geom, int n, qk_prec_t store, bool twist);

#endif
