/*
 * lanczos_impl.h: an iteration of lanczos.h on its way, as lanczos.c (to the space of its vectors)
 * and lanczos_vectors.c (the vectors in it) share it. Private to them.
 */
#ifndef QK_ENGINE_LANCZOS_IMPL_H
#define QK_ENGINE_LANCZOS_IMPL_H

#include "daemon/engine/eigen/hermitian.h"
#include "daemon/engine/eigen/lanczos_basis.h"

/* EXTEND by a block a step; DENSE: the problem of a full space; ROTATE: to what stays of it. Then,
 * but within a basis, IMAGES of a block a step, RITZ: the dense problem of A itself, TURN: to its
 * vectors, MEASURE: residuals of a block a step. */
typedef enum qk_lanczos_stage {
  BEGIN,
  EXTEND,
  DENSE,
  ROTATE,
  IMAGES,
  RITZ,
  TURN,
  MEASURE,
  OVER
} qk_lanczos_stage_t;

struct qk_lanczos {
  qk_lanczos_params_t p; /* complete, but for what is found on the way */
  bool fixed_window;     /* by the caller */
  int fixed_order;       /* by the caller; 0: it is not */
  qk_lanczos_stage_t stage;
  int from, at; /* the block that an extension began with, the one that is next */
  int windows;  /* changes of the window so far */
  double complex last[QK_EIGEN_BLOCK * QK_EIGEN_BLOCK]; /* what the last block has given */
  qk_hermitian_job_t *dense;
  int64_t unit; /* of a rotation, the next one */
  qk_lanczos_basis_t k;
  int keep, m;            /* blocks kept at a restart; vectors of the space */
  double complex *h, *q;  /* [m][m], column by column: projected operator; its eigenvectors */
  double *theta, *report; /* [m]: eigenvalues, largest first; errors of them */
  double best; /* worst relative error among the wanted ones, its smallest value so far */
  int since;   /* restarts since then */
  int restarts;
  int done; /* vectors that had converged at the last restart */
  bool ends;
  bool degenerate; /* eight or more Ritz values were one at the last restart */
};

/* The space is found: the next stage. Then steps of IMAGES, RITZ, TURN and MEASURE. */
void qk_lanczos_begin_vectors(qk_lanczos_t *lanczos);
qk_status_t qk_lanczos_step_vectors(qk_lanczos_t *lanczos);
/* Collective. */
qk_status_t qk_lanczos_collect(qk_lanczos_t *lanczos, qk_eigen_t *eigen);

#endif
