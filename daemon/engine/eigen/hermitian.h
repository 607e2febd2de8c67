/*
 * hermitian.h: eigenvalues of small dense matrices, identical on all ranks: rank 0 computes and
 * sends them. At most a few hundred rows; cost about 20 n^3 flop on one core.
 */
#ifndef QK_ENGINE_HERMITIAN_H
#define QK_ENGINE_HERMITIAN_H

#include <complex.h>

#include "daemon/comm/comm.h"

/* a: n x n, column by column, of which the lower triangle is read. On return it holds the
 * orthonormal eigenvectors as columns, for the eigenvalues w in ascending order. Collective.
 * Errors: QK_BREAKDOWN (not finite, or LAPACK's iteration failed), QK_NO_MEMORY, QK_COMM_ERROR. */
qk_status_t qk_hermitian_eigen(qk_comm_t *comm, int n, double complex *a, double *w);

#endif
