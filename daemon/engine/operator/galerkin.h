/*
 * galerkin.h: the coarse operator P^+ M P of any operator, with the interface of operator.h.
 *
 *   A_c, Y_+mu,c   one block of nvec columns per chirality and direction: w = hop_forward(V_s),
 *                  then products V^+ w (cuda/mg_ops.h: galerkin); Y_-mu,c by gamma_5-hermiticity,
 *                  from the neighbouring rank if the lattice is split
 *   even-odd       Yhat = A_c^-1 Y_c is stored, so Mhat = 1 - Yhat_eo Yhat_oe; with A_c, A_c^-1
 *   adjoint        M^+ = G5 M G5,  Mhat^+ = G5 A_ee Mhat A_ee^-1 G5
 *   twist          P keeps chirality and is orthonormal, so A_c = H_c + i twist G5: matrices are
 *                  stored for both signs, and adjoints are those of the other sign
 *
 * Matrices are in single or half (params.store), Yhat in eight bits as well (params.eight); fields
 * of the operator are always single. With `exact` the matrices are also kept in single, so that the
 * next level is made of unrounded ones;
 * qk_coarse_drop_exact frees them. Memory during creation: three blocks of `together` columns of
 * the finer level in single, and the matrices in single; their bits do not depend on it. Where dev
 * has the whole lattice on every rank (geom.h) the ranks' products are gathered first, and what
 * follows is the same work on all of them.
 * Collective.
 */
#ifndef QK_ENGINE_GALERKIN_H
#define QK_ENGINE_GALERKIN_H

#include "daemon/engine/operator/operator.h"
#include "daemon/engine/operator/prolongator.h"

typedef struct qk_coarse_params {
  qk_prec_t store; /* QK_SINGLE or QK_HALF */
  bool eight;      /* a smoother takes Yhat in eight bits for one alone; not with a twist */
  bool exact;      /* hop_forward and diag use matrices in single, for a further level */
  int together;    /* columns that are multiplied at a time, a multiple of QK_TILE; 0: all */
  double twist;    /* of the result, in place of that of the finer operator */
  qk_schur_t schur;
} qk_coarse_params_t;

/* op: of p->fine, with single precision. dev, work: of the coarse level, borrowed by the result.
 * Errors: those of the device; QK_UNSUPPORTED if the adjoint of op is not G5 M G5 with G5 of spin
 * (with a twist: of the other flavour), which half of Y and all adjoints go by; QK_BREAKDOWN if A_c
 * is singular (err says on how many sites).
 */
qk_status_t qk_coarse_create(qk_operator_t *op, const qk_prolongator_t *p, const qk_device_t *dev,
                             qk_work_t *work, const qk_coarse_params_t *params,
                             qk_operator_t **coarse, qk_err_t *err);
void qk_coarse_drop_exact(qk_operator_t *coarse);
/* Bytes of the matrices of a coarse operator on this rank. */
int64_t qk_coarse_operator_bytes(const qk_geom_t *geom, const qk_coarse_params_t *params);

#endif
