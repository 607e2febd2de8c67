/*
 * eo.h: the operator M = T - 1/2 hop and its even-odd form, of whatever links and local terms.
 *
 *   hop   Wilson's, with a weight for each direction (cuda/ops.h: qk_hop_args_t), or that of
 *         another stencil
 *   T     (A + Q) B of cuda/types.h; it need not be hermitian
 *   Mhat = 1 - 1/4 T_ee^-1 hop T_oo^-1 hop,  Mhat^+ = 1 - 1/4 hop^+ T_oo^-1+ hop^+ T_ee^-1+
 *
 * Each application is one or two passes of the hop kernel, which fuses T or T^-1. The calls are
 * those of operator.h.
 */
#ifndef QK_ENGINE_EO_H
#define QK_ENGINE_EO_H

#include "daemon/engine/lattice/halo.h"
#include "daemon/engine/operator/operator.h"

typedef struct qk_eo_pass qk_eo_pass_t;

/* A hop in place of Wilson's. */
typedef struct qk_eo_stencil {
  int flops;      /* of the hop a site */
  int components; /* of a site: geom.ncomp of the device */
  int faces;      /* components that a neighbour needs of a site of a face, of all its slices */
  /* qk_eo_pass; `inverse` or p->local says which T it is. */
  void (*pass)(qk_operator_t *op, qk_halo_t *halo, const qk_eo_pass_t *pass, qk_spinor_t out,
               qk_spinor_t in);
} qk_eo_stencil_t;

/* What an operator is made of. Members of a precision that is not wanted are zero. T and T^-1 may
 * share A; then neither is given back before the operator is. */
typedef struct qk_eo_parts {
  bool want[QK_PRECS];
  qk_links_t links[QK_PRECS];
  qk_local_t t[QK_PRECS], inverse[QK_PRECS]; /* T, T^-1 */
  /* A field or a number for an operator that is composed of this one (action.h); else zero. */
  qk_local_t more[QK_PRECS];
  double phase[4][2];             /* boundary phases; 0: no hop across that edge */
  double weight[4];               /* of the hops of a direction; 0 says 1 */
  double scale;                   /* typical |T v| / |v| */
  double twist;                   /* of T: T = H + i twist gamma_5 */
  int flops;                      /* of T per site and right-hand side */
  const qk_eo_stencil_t *stencil; /* NULL: Wilson's; else `stag` has the links, and `links` none */
  qk_stag_links_t stag[QK_PRECS]; /* with signs and phases */
} qk_eo_parts_t;

/* An operator of these parts, which it takes, also after an error. description: action, adjoint and
 * chirality of the result; the rest of it is not read. dev and work are borrowed. Not collective.
 * QK_NO_MEMORY, QK_DEVICE_MEMORY. */
qk_status_t qk_eo_create(const qk_device_t *dev, qk_work_t *work, const qk_operator_t *description,
                         qk_eo_parts_t *parts, qk_operator_t **op, qk_err_t *err);
/* What it was made of; it may have taken back T^-1 or T (operator.h: keep_local, rest_double). */
const qk_eo_parts_t *qk_eo_parts(const qk_operator_t *op);

/* One pass of the hop kernel with its halo, as qk_hop_args_t; for operators that are made of
 * passes over the links of one of these. A call of an iteration (device.h). Collective. */
struct qk_eo_pass {
  bool dagger, diag_on_sum;
  /* NULL: T of the operator, or T^-1 if `inverse`, for the flavours of the block. Else a local term
   * of the precision of the fields. */
  const qk_local_t *local;
  bool inverse;
  uint32_t hops;    /* 0: all */
  const int *block; /* NULL: hops are not cut */
  double c_hop, c_z, c_x, c_y;
  qk_spinor_t z, x, y;
  /* Of a stencil alone: as in qk_stag_args_t. */
  const double *num, *den, *more;
  double c_more, *red;
  const uint8_t *mask;
};

void qk_eo_pass(qk_operator_t *op, const qk_eo_pass_t *pass, qk_spinor_t out, qk_spinor_t in);

/* Frees device memory of parts that no operator has taken. */
void qk_eo_parts_free(const qk_device_t *dev, qk_eo_parts_t *parts);

#endif
