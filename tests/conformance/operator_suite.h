/*
 * operator_suite.h: what every operator behind operator/operator.h must do, whatever it is made of.
 *
 * One call runs all checks for all precisions that the subject holds, and for blocks of 1, 5, 8 and
 * 12 right-hand sides (both shapes of tiles, full and ragged). Failures are Criterion's, with the
 * subject, the check, the precision and the right-hand side.
 */
#ifndef QK_TESTS_OPERATOR_SUITE_H
#define QK_TESTS_OPERATOR_SUITE_H

#include "daemon/engine/operator/operator.h"

typedef struct subject {
  const char *name;
  qk_operator_t *op; /* borrowed; its lattice has extents of at least 2 */
  double tol[3];     /* rounding of one application, by precision; 0: not held */
  double forms; /* between forms that are stored apart and rounded (full, even-odd, T and T^-1); 0:
                   that of an application */
} subject_t;

/* Linear; even-odd form against the full operator; residuals from the source; adjoint, as it is and
 * as op->adjoint declares it; fused forms; T and hops add up to M; T^-1 T = 1; relax; blocks; a
 * right-hand side of a block against itself alone; fields that do not fit are refused. */
void operator_suite(const subject_t *subject);

/* T and the hops add up to M: of one block. */
void operator_suite_parts(const subject_t *subject, qk_prec_t prec, int nrhs);

#endif
