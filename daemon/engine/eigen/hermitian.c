#include "daemon/engine/eigen/hermitian.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "daemon/base/mem.h"

/* LAPACK: divide and conquer; lengths of the two character arguments last. */
void zheevd_(const char *jobz, const char *uplo, const int *n, double complex *a, const int *lda,
             double *w, double complex *work, const int *lwork, double *rwork, const int *lrwork,
             int *iwork, const int *liwork, int *info, size_t jobz_length, size_t uplo_length);

static qk_status_t solve(int n, double complex *a, double *w) {
  for (int j = 0; j < n; j++)
    for (int i = j; i < n; i++) {
      double complex z = a[(size_t)j * n + i];
      if (!isfinite(creal(z)) || !isfinite(cimag(z))) return QK_BREAKDOWN;
    }
  int lwork = -1, lrwork = -1, liwork = -1, info = 0;
  double complex size;
  double rsize;
  int isize;
  zheevd_("V", "L", &n, a, &n, w, &size, &lwork, &rsize, &lrwork, &isize, &liwork, &info, 1, 1);
  if (info != 0) return QK_BREAKDOWN;
  lwork = (int)creal(size);
  lrwork = (int)rsize;
  liwork = isize;
  double complex *work = qk_malloc((size_t)lwork * sizeof *work);
  double *rwork = qk_malloc((size_t)lrwork * sizeof *rwork);
  int *iwork = qk_malloc((size_t)liwork * sizeof *iwork);
  if (work && rwork && iwork)
    zheevd_("V", "L", &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
  qk_status_t status = work && rwork && iwork ? QK_OK : QK_NO_MEMORY;
  if (status == QK_OK && info != 0) status = QK_BREAKDOWN;
  qk_free(iwork);
  qk_free(rwork);
  qk_free(work);
  return status;
}

qk_status_t qk_hermitian_eigen(qk_comm_t *comm, int n, double complex *a, double *w) {
  qk_status_t status = qk_comm_rank(comm) == 0 ? solve(n, a, w) : QK_OK;
  status = qk_comm_agree(comm, status, NULL);
  if (status != QK_OK) return status;
  status = qk_comm_bcast(comm, a, (size_t)n * (size_t)n * sizeof *a, 0);
  return status == QK_OK ? qk_comm_bcast(comm, w, (size_t)n * sizeof *w, 0) : status;
}

/* ---- beside other work ----------------------------------------------------------------------- */

/* Of two owners, the thread and who has begun it; the last one frees it. */
struct qk_hermitian_job {
  int n;
  double complex *a;
  double *w;
  qk_status_t status;
  atomic_bool finished;
  atomic_int owners;
};

static void let_go(qk_hermitian_job_t *j) {
  if (atomic_fetch_sub(&j->owners, 1) > 1) return;
  qk_free(j->w);
  qk_free(j->a);
  qk_free(j);
}

static void *work_on(void *arg) {
  qk_hermitian_job_t *j = arg;
  j->status = solve(j->n, j->a, j->w);
  atomic_store(&j->finished, true);
  let_go(j);
  return NULL;
}

void qk_hermitian_drop(qk_hermitian_job_t *job) {
  if (job) let_go(job);
}

static qk_status_t start(int n, const double complex *a, qk_hermitian_job_t **job) {
  const size_t bytes = (size_t)n * (size_t)n * sizeof *a;
  qk_hermitian_job_t *j = qk_calloc(1, sizeof *j);
  pthread_t thread;
  if (!j) return QK_NO_MEMORY;
  atomic_init(&j->finished, false);
  atomic_init(&j->owners, 1);
  j->n = n;
  j->a = qk_malloc(bytes);
  j->w = qk_malloc((size_t)n * sizeof *j->w);
  if (!j->a || !j->w) goto fail;
  memcpy(j->a, a, bytes);
  atomic_store(&j->owners, 2);
  if (pthread_create(&thread, NULL, work_on, j) != 0) {
    atomic_store(&j->owners, 1);
    goto fail;
  }
  pthread_detach(thread);
  *job = j;
  return QK_OK;

fail:
  let_go(j);
  return QK_NO_MEMORY;
}

qk_status_t qk_hermitian_begin(qk_comm_t *comm, int n, const double complex *a,
                               qk_hermitian_job_t **job) {
  *job = NULL;
  return qk_comm_agree(comm, qk_comm_rank(comm) == 0 ? start(n, a, job) : QK_OK, NULL);
}

qk_status_t qk_hermitian_poll(qk_comm_t *comm, qk_hermitian_job_t **job, int n, double complex *a,
                              double *w, bool *over) {
  qk_hermitian_job_t *j = *job;
  const size_t rows = (size_t)n;
  double finished = j && atomic_load(&j->finished) ? 1 : 0;
  qk_status_t status = qk_comm_max(comm, &finished, 1);
  *over = finished > 0;
  if (status != QK_OK || !*over) return status;
  if (j && j->status == QK_OK) {
    memcpy(a, j->a, rows * rows * sizeof *a);
    memcpy(w, j->w, rows * sizeof *w);
  }
  status = qk_comm_agree(comm, j ? j->status : QK_OK, NULL);
  qk_hermitian_drop(j);
  *job = NULL;
  if (status != QK_OK) return status;
  status = qk_comm_bcast(comm, a, rows * rows * sizeof *a, 0);
  return status == QK_OK ? qk_comm_bcast(comm, w, rows * sizeof *w, 0) : status;
}
