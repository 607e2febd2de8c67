/*
 * coarse_op.h: the coarse operator, which galerkin.c makes and coarse_op.c applies. Private to the
 * two.
 */
#ifndef QK_ENGINE_COARSE_OP_H
#define QK_ENGINE_COARSE_OP_H

#include "daemon/engine/lattice/halo.h"
#include "daemon/engine/operator/galerkin.h"

typedef struct qk_coarse_op {
  qk_operator_t op; /* first: a qk_operator_t * is a qk_coarse_op_t * */
  qk_halo_t *halo;
  /* Of each flavour; data NULL where there is no twist: that of the first. */
  qk_coarse_links_t yhat[2];          /* A^-1 Y, ndir 8 */
  qk_coarse_links_t a[2], inverse[2]; /* A and A^-1, ndir 1 */
  qk_coarse_links_t exact_y, exact_a; /* in single, A of flavour +1; data NULL: not kept */
  void *eight;                        /* yhat[0] in eight bits, for smoothers; NULL: not made */
  bool other;                         /* flavours are exchanged, for an adjoint */
} qk_coarse_op_t;

/* An operator without matrices. Errors: QK_NO_MEMORY. */
qk_status_t qk_coarse_op_create(const qk_device_t *dev, qk_work_t *work, qk_coarse_op_t **coarse);
/* Nothing is done where there are none. */
void qk_coarse_op_free_links(const qk_device_t *dev, qk_coarse_links_t *links);

#endif
