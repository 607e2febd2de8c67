/*
 * hermitian.h: eigenvalues of small dense matrices, identical on all ranks: rank 0 computes and
 * sends them. Up to some thousand rows; cost about 20 n^3 flop on one core,
 * of a pair 30 n^3.
 */
#ifndef QK_ENGINE_HERMITIAN_H
#define QK_ENGINE_HERMITIAN_H

#include <complex.h>
#include <stdbool.h>

#include "daemon/comm/comm.h"

enum { QK_HERMITIAN_LARGE = 512 }; /* rows of what nobody should wait for */

/* a: n x n, column by column, of which the lower triangle is read. On return it holds the
 * orthonormal eigenvectors as columns, for the eigenvalues w in ascending order. Collective.
 * Errors: QK_BREAKDOWN (not finite, or LAPACK's iteration failed), QK_NO_MEMORY, QK_COMM_ERROR. */
qk_status_t qk_hermitian_eigen(qk_comm_t *comm, int n, double complex *a, double *w);

/* a x = w g x, x^+ g x = 1, of leading dimension ld; both triangles are read, and what they differ
 * by is taken for rounding. g is changed. QK_BREAKDOWN also: the square of a vector without what
 * those before it have of it is not above `least` times what it was. */
qk_status_t qk_hermitian_eigen_pair(qk_comm_t *comm, int n, double complex *a, int ld,
                                    double complex *g, double least, double *w);

/* The same beside other work, by a thread of rank 0 that has a copy of a, of leading dimension n.
 * poll: *over says on all ranks whether a and w hold the result, or the status the error; the job
 * has ended then. A poll that finds it under way takes a millisecond. leave and drop end one early:
 * the thread ends after the call of LAPACK that it is in. leave says as poll does when it has, and
 * takes no job (NULL on all ranks) for one that has ended; after drop nobody knows. poll, begin and
 * leave are collective, drop is not. Host memory on rank 0 while it runs: 3 matrices; a pair has
 * its g beside them. */
typedef struct qk_hermitian_job qk_hermitian_job_t;
qk_status_t qk_hermitian_begin(qk_comm_t *comm, int n, const double complex *a,
                               qk_hermitian_job_t **job);
/* Takes g, of qk_malloc, whatever comes out. */
qk_status_t qk_hermitian_begin_pair(qk_comm_t *comm, int n, const double complex *a, int ld,
                                    double complex *g, double least, qk_hermitian_job_t **job);
qk_status_t qk_hermitian_poll(qk_comm_t *comm, qk_hermitian_job_t **job, int n, double complex *a,
                              int ld, double *w, bool *over);
qk_status_t qk_hermitian_leave(qk_comm_t *comm, qk_hermitian_job_t **job, bool *over);
void qk_hermitian_drop(qk_hermitian_job_t *job); /* NULL-safe */

#endif
