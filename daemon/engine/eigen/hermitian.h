/*
 * hermitian.h: eigenvalues of small dense matrices, identical on all ranks: rank 0 computes and
 * sends them. Up to some thousand rows; cost about 20 n^3 flop on one core.
 */
#ifndef QK_ENGINE_HERMITIAN_H
#define QK_ENGINE_HERMITIAN_H

#include <complex.h>
#include <stdbool.h>

#include "daemon/comm/comm.h"

/* a: n x n, column by column, of which the lower triangle is read. On return it holds the
 * orthonormal eigenvectors as columns, for the eigenvalues w in ascending order. Collective.
 * Errors: QK_BREAKDOWN (not finite, or LAPACK's iteration failed), QK_NO_MEMORY, QK_COMM_ERROR. */
qk_status_t qk_hermitian_eigen(qk_comm_t *comm, int n, double complex *a, double *w);

/* The same beside other work, by a thread of rank 0 that has a copy of a. poll: *over says on all
 * ranks whether a and w hold the result, or the status the error; the job has ended then. drop ends
 * one early: the thread finishes for itself. poll and begin are collective, drop is not. */
typedef struct qk_hermitian_job qk_hermitian_job_t;
qk_status_t qk_hermitian_begin(qk_comm_t *comm, int n, const double complex *a,
                               qk_hermitian_job_t **job);
qk_status_t qk_hermitian_poll(qk_comm_t *comm, qk_hermitian_job_t **job, int n, double complex *a,
                              double *w, bool *over);
void qk_hermitian_drop(qk_hermitian_job_t *job); /* NULL-safe */

#endif
