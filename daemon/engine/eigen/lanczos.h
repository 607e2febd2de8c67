/*
 * lanczos.h: lowest eigenvectors of Mhat^+ Mhat, on any level, of g5 M, or of the Laplacian. Those
 * of the first are the singular vectors of Mhat that its inverse amplifies most. Where Mhat is
 * hermitian and positive, A is Mhat itself in place of Mhat^+ Mhat, and so are its eigenvalues.
 *
 * Thick-restart Lanczos (K. Wu and H. Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602) on blocks of
 * eight vectors, applied to a Chebyshev polynomial of A = Mhat^+ Mhat that is small on [window,
 * top] and large below. Every new block is orthogonalised against all others in two passes; the
 * projected matrix holds all inner products; converged vectors stay in the basis. At the end
 * Rayleigh-Ritz gives the vectors of A itself in the space found, and their residuals are measured.
 *
 * Shapes: fields of the system, blocks of eight vectors, single or double (a precision that the
 * operator holds); a vector has all slices of a fifth dimension, and all flavours of a doublet.
 * Memory: space + 8 vectors, four work blocks, and up to space^2 coefficients. Cost of a new
 * block: 2 order applications of Mhat, and four passes over the basis. Collective.
 */
#ifndef QK_ENGINE_LANCZOS_H
#define QK_ENGINE_LANCZOS_H

#include "daemon/base/progress.h"
#include "daemon/engine/eigen/coherent.h"
#include "daemon/engine/eigen/hermitian.h"
#include "daemon/engine/operator/operator.h"

/* QK_LANCZOS_SPACE: vectors of a Krylov space at most. */
enum { QK_EIGEN_BLOCK = 8, QK_EIGEN_MAX = 4096, QK_LANCZOS_SPACE = 8320 };

/* GAMMA5: of H = g5 M on all sites, of an operator whose H is hermitian (operator.h: adjoint),
 * those of least modulus. The iteration is that of H^2 = M^+ M.
 * LAPLACIAN: of an operator that is A itself (modes/laplacian.h). */
typedef enum qk_lanczos_kind {
  QK_LANCZOS_NORMAL,
  QK_LANCZOS_GAMMA5,
  QK_LANCZOS_LAPLACIAN
} qk_lanczos_kind_t;

/* 0 in a member but n: its default. */
typedef struct qk_lanczos_params {
  qk_lanczos_kind_t kind;
  int n;         /* vectors wanted, 1 .. QK_EIGEN_MAX */
  int space;     /* vectors of the Krylov space, a multiple of 8, n + 16 .. QK_LANCZOS_SPACE; 2 n */
  int order;     /* of the polynomial, even; chosen by the window */
  double window; /* chosen: between 1.2 and 6 times the largest eigenvalue that is wanted */
  double top;    /* bound of the spectrum, raised if it is seen to be too low; measured */
  double tol;    /* |A v - lambda v| <= tol top ends the iteration; 1e-5 */
  double
      /* tol of vectors that are kept if rounding of the operator (16-bit matrices, tensor cores)
       * stops the convergence; tol */
      accept;
  int restarts; /* at most; 40 */
  qk_prec_t prec;
  uint64_t seed; /* of the first block */
  /* Makes a full field of noise one that the operator acts on, as a call of an iteration; NULL: any
   * field is. */
  void (*restrict_noise)(const qk_operator_t *op, const qk_field_t *field);
  /* Of NORMAL: a basis V, in whose space the vectors are to be; NULL: in all of it. They are
   * coefficients then, eigenvectors of V^+ f(A) V, f the polynomial: `top` is given, `window` is
   * where the iteration begins, and what eigenvalues and residuals are of A is to be found
   * (compressed.h). The precision is that of the basis. */
  const qk_coherent_t *within;
} qk_lanczos_params_t;

typedef struct qk_eigen {
  int n; /* vectors, in blocks of eight; columns beyond n are zero */
  int nblock;
  qk_field_t *block[QK_EIGEN_MAX / QK_EIGEN_BLOCK]; /* flat fields (flat.h), or coefficients ... */
  qk_flat_t *flat;                                  /* ... which stand on it */
  double value[QK_EIGEN_MAX];                       /* ascending, those of GAMMA5 by modulus */
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

/* The same in steps: create, steps until it is over, vectors, destroy. A step is a new block (2
 * order applications of Mhat to eight vectors), a part of a rotation of the basis, or a millisecond
 * in which a thread of rank 0 works on a dense problem of more than 512 rows; the first one is the
 * search for the top of the spectrum. Errors as above; after one it can only be destroyed. */
typedef struct qk_lanczos qk_lanczos_t;
qk_status_t qk_lanczos_create(qk_operator_t *op, qk_work_t *work, const qk_lanczos_params_t *params,
                              qk_lanczos_t **lanczos, qk_err_t *err);
qk_status_t qk_lanczos_step(qk_lanczos_t *lanczos, qk_err_t *err);
typedef struct qk_lanczos_news {
  bool over;
  bool restarted; /* by the last step: its state can be kept (below) */
  int restarts, converged;
} qk_lanczos_news_t;
qk_lanczos_news_t qk_lanczos_news(const qk_lanczos_t *lanczos);
/* Once it is over, and once. QK_NOT_CONVERGED as above. */
qk_status_t qk_lanczos_vectors(qk_lanczos_t *lanczos, qk_eigen_t **eigen, qk_err_t *err);
/* The dense problem under way, which is the caller's then (hermitian.h: leave); NULL: there is
 * none, or another rank has it. */
qk_hermitian_job_t *qk_lanczos_take_dense(qk_lanczos_t *lanczos);
void qk_lanczos_destroy(qk_lanczos_t *lanczos); /* NULL-safe */

/* What an iteration goes on from after a restart: these numbers and the first `nblock` blocks of
 * its basis. One that was resumed from them makes the same bits. */
typedef struct qk_lanczos_state {
  double window, top, best;
  int order, since, restarts, windows, done;
  int64_t randomised;
  int nblock; /* 1 or more: Ritz vectors, and the block that was made last */
} qk_lanczos_state_t;

/* After a step that has restarted. theta: one number for each vector of all blocks but the last. */
void qk_lanczos_state(const qk_lanczos_t *lanczos, qk_lanczos_state_t *state, const double **theta);
/* Block b < nblock, to be read or, before resume, written: a flat field (flat.h). */
qk_field_t *qk_lanczos_block(qk_lanczos_t *lanczos, int b);
/* Blocks that it keeps at a restart, the new one too; its parameters, complete. */
int qk_lanczos_kept(const qk_lanczos_t *lanczos);
const qk_lanczos_params_t *qk_lanczos_params(const qk_lanczos_t *lanczos);
/* Of one that was just created with the same parameters, and whose blocks were written.
 * QK_BAD_ARGUMENT: a state that it cannot be in. */
qk_status_t qk_lanczos_resume(qk_lanczos_t *lanczos, const qk_lanczos_state_t *state,
                              const double *theta, qk_err_t *err);

/* The most vectors that can be wanted on a lattice, of LAPLACIAN on a time slice of it. */
int qk_lanczos_most(const qk_geom_t *geom, qk_lanczos_kind_t kind);
/* QK_OK, or QK_UNSUPPORTED and why H = g5 M of this operator is not hermitian. */
qk_status_t qk_lanczos_has_gamma5(const qk_operator_t *op, qk_err_t *err);

/* Device bytes of qk_lanczos on this rank, without the operator's work fields. system: that of the
 * operator; all sites for the other kinds. */
int64_t qk_lanczos_bytes(const qk_geom_t *geom, qk_subset_t system,
                         const qk_lanczos_params_t *params);
/* The same within a basis of that cut, without the basis. */
int64_t qk_lanczos_within_bytes(const qk_geom_t *geom, qk_subset_t system,
                                const qk_lanczos_params_t *params, const qk_coherent_cut_t *cut);

#endif
