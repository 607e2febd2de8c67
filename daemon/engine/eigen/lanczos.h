/*
 * lanczos.h: lowest eigenvectors of Mhat^+ Mhat, on any level. They are the singular vectors of
 * Mhat that its inverse amplifies most.
 *
 * Thick-restart Lanczos (K. Wu and H. Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602) on blocks of
 * eight vectors, applied to a Chebyshev polynomial of A = Mhat^+ Mhat that is small on [window,
 * top] and large below. Every new block is orthogonalised against all others in two passes; the
 * projected matrix holds all inner products; converged vectors stay in the basis. At the end
 * Rayleigh-Ritz gives the vectors of A itself in the space found, and their residuals are measured.
 *
 * Shapes: fields of the system, blocks of eight vectors, single or double (a precision that the
 * operator holds); a vector has all slices of a fifth dimension, and all flavours of a doublet.
 * Memory: space + 8 vectors, four work blocks, and space^2 coefficients. Cost of a new
 * block: 2 order applications of Mhat, and four passes over the basis. Collective.
 */
#ifndef QK_ENGINE_LANCZOS_H
#define QK_ENGINE_LANCZOS_H

#include "daemon/base/progress.h"
#include "daemon/engine/eigen/flat.h"
#include "daemon/engine/operator/operator.h"

enum { QK_EIGEN_BLOCK = 8, QK_EIGEN_MAX = 256 };

/* 0 in a member but n: its default. */
typedef struct qk_lanczos_params {
  int n;     /* vectors wanted, 1 .. QK_EIGEN_MAX */
  int space; /* vectors of the Krylov space, a multiple of 8, n + 16 .. QK_BASIS_MAX; about 2 n */
  int order; /* of the polynomial, even; chosen by the window */
  double window; /* chosen: between 1.2 and 6 times the largest eigenvalue that is wanted */
  double top;    /* bound of the spectrum; measured */
  double tol;    /* |A v - lambda v| <= tol top ends the iteration; 1e-5 */
  double
      /* tol of vectors that are kept if rounding of the operator (16-bit matrices, tensor cores)
       * stops the convergence; tol */
      accept;
  int restarts; /* at most; 40 */
  qk_prec_t prec;
  uint64_t seed; /* of the first block */
} qk_lanczos_params_t;

typedef struct qk_eigen {
  int n; /* vectors, in blocks of eight; columns beyond n are zero */
  int nblock;
  qk_field_t *block[QK_EIGEN_MAX / QK_EIGEN_BLOCK]; /* flat fields (flat.h) ... */
  qk_flat_t *flat;                                  /* ... which stand on it */
  double value[QK_EIGEN_MAX];                       /* ascending */
  double residual[QK_EIGEN_MAX];
  double window, top;
  int order, restarts;
} qk_eigen_t;

/* Destroy *eigen with qk_eigen_destroy. QK_NOT_CONVERGED: fewer than n converged (perhaps none)
 * within the restarts, or before the errors stopped decreasing; *eigen has those. Other errors:
 * QK_BAD_ARGUMENT (field, value, limit), QK_BREAKDOWN (NaN), QK_DEVICE_MEMORY, QK_DEVICE_ERROR,
 * QK_NO_MEMORY, QK_COMM_ERROR. progress: phase "eigenvectors", converged of n. */
qk_status_t qk_lanczos(qk_operator_t *op, qk_work_t *work, const qk_lanczos_params_t *params,
                       qk_progress_fn *progress, void *arg, qk_eigen_t **eigen, qk_err_t *err);
void qk_eigen_destroy(qk_eigen_t *eigen); /* NULL-safe */

/* The most vectors that can be wanted on a lattice. */
int qk_lanczos_most(const qk_geom_t *geom);

/* Device bytes of qk_lanczos on this rank, without the operator's work fields. */
int64_t qk_lanczos_bytes(const qk_geom_t *geom, qk_subset_t system,
                         const qk_lanczos_params_t *params);

#endif
