/*
 * deflate.h: the low modes that plain solvers of a setup begin with (krylov/solver.h: deflation).
 *
 * An operator with a twist has those of each flavour. Collective. Errors: those of qk_lanczos;
 * QK_NOT_CONVERGED only if none has converged.
 */
#ifndef QK_ENGINE_DEFLATE_H
#define QK_ENGINE_DEFLATE_H

#include "daemon/engine/checkpoint/mg_file.h"
#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/eigen/stored.h"
#include "daemon/engine/setup/load.h"

typedef struct qk_deflate {
  qk_deflation_t *flavour[2];         /* 1, and -1: NULL without a twist */
  int n;                              /* of each */
  double lowest, highest;             /* eigenvalues of flavour 1 */
  double seconds;                     /* that they took */
  int64_t bytes;                      /* on this rank */
  bool restored;                      /* from a file: those of flavour 1 */
  char origin[QK_SETUP_NAME_MAX + 1]; /* whose they are; "": the setup's own */
  char trouble[512]; /* why a file was not read or not written; "": there was none */
} qk_deflate_t;

typedef struct qk_deflate_params {
  int n;
  qk_prec_t store;                  /* QK_SINGLE or QK_HALF */
  const qk_load_t *load;            /* file, and whose vectors they are */
  const qk_mg_identity_t *identity; /* that a file is bound to */
  qk_coherent_cut_t cut; /* of vectors of another that are compressed; n 0: they are not */
} qk_deflate_params_t;

/* The operator holds single. A file that is not read for another reason than that it is not there
 * is no failure, but where the vectors are another's; then flavour -1 has none. work is trimmed. */
qk_status_t qk_deflate_create(qk_operator_t *op, qk_work_t *work, const qk_deflate_params_t *params,
                              qk_progress_fn *progress, void *arg, qk_deflate_t **deflate,
                              qk_err_t *err);
void qk_deflate_destroy(qk_deflate_t *deflate); /* NULL-safe */

/* How many vectors LOAD asks for, those of a file if it says no number, how they are compressed,
 * and whether the lattice has as many; none for an action that is dense, whose sign function has
 * them. geom: of one vector. QK_BAD_ARGUMENT, QK_BAD_GEOMETRY;
 * those of eigen_file.h. */
qk_status_t qk_deflate_check(const qk_geom_t *geom, const qk_load_t *load, int *n,
                             qk_coherent_cut_t *cut, qk_err_t *err);

/* What a plan needs, on one rank: bytes that stay, and the most beside the operator while they are
 * made. geom: of the fields of the solvers. */
int64_t qk_deflate_bytes(const qk_geom_t *geom, int n, const qk_coherent_cut_t *cut,
                         qk_prec_t store, bool twist);
int64_t qk_deflate_making(const qk_geom_t *geom, int n, const qk_coherent_cut_t *cut,
                          qk_prec_t store, bool twist);

/* Eigenvectors of the kernel that the sign function of an action projects (qk_values_kernel), from
 * the file of a name: EIGEN of kind GAMMA5 has made them of an operator of its own. */
typedef struct qk_deflate_kernel {
  qk_stored_t stored;
  const qk_load_t *load;
  const qk_mg_identity_t *identity; /* of the action's operator, once links are read */
  qk_deflate_t *told;               /* what was read, to be destroyed; NULL: nothing was */
} qk_deflate_kernel_t;

/* Borrows both. No memory before `read`. */
void qk_deflate_kernel_init(qk_deflate_kernel_t *vectors, const qk_load_t *load,
                            const qk_mg_identity_t *identity);

#endif
