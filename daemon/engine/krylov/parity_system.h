/*
 * parity_system.h: solves of the systems on one parity p, even or odd (docs/physics.md), as solves
 * of M with fields that are 0 on the other one. T: the local term.
 *
 *   T Mhat x = b   by M (x, .) = (b, 0)
 *   Mhat x = b     by M (x, .) = (T b, 0)
 *   Mhat^+ x = b   by M (y, .) = (G5 b, 0), x = G5 T y, of the other flavour of a twist:
 *                  Mhat^+ = G5 T Mhat T^-1 G5
 *
 * The G5 at both ends of every solve of an adjoint are the caller's. Fields are full, in double, of
 * one column and one vector. Collective. For Mhat a work field in double is needed.
 */
#ifndef QK_ENGINE_PARITY_SYSTEM_H
#define QK_ENGINE_PARITY_SYSTEM_H

#include "daemon/engine/krylov/solver.h"

typedef struct qk_parity_system {
  bool is;              /* of one parity; else M x = b of both */
  bool symmetric;       /* Mhat, else T Mhat */
  bool dagger;          /* of the adjoint of flavour -1 or +1, so that M is of the other one: */
  const uint8_t *minus; /* device byte, not 0, where M has flavour -1; else NULL */
  qk_subset_t parity;
} qk_parity_system_t;

/* The field becomes 0 on the parity that is not to be kept; QK_FULL: both are. */
qk_status_t qk_parity_keep(const qk_field_t *field, qk_subset_t keep);

/* Before a solve: b becomes the source of M. *measure: for its slot. Verdicts as of norm.h. */
qk_status_t qk_parity_system_begin(qk_operator_t *op, qk_work_t *work,
                                   const qk_parity_system_t *system, const qk_field_t *b,
                                   qk_measure_t *measure, qk_err_t *verdict);
/* After it: its solution becomes that of the system. */
qk_status_t qk_parity_system_end(qk_operator_t *op, qk_work_t *work,
                                 const qk_parity_system_t *system, const qk_field_t *x);

#endif
