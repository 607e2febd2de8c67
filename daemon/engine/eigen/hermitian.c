#include "daemon/engine/eigen/hermitian.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "daemon/base/mem.h"

/* LAPACK: divide and conquer; lengths of the two character arguments last. */
void zheevd_(const char *jobz, const char *uplo, const int *n, double complex *a, const int *lda,
             double *w, double complex *work, const int *lwork, double *rwork, const int *lrwork,
             int *iwork, const int *liwork, int *info, size_t jobz_length, size_t uplo_length);

/* Cholesky factor of a matrix; x^+ A x or its inverse; solutions with a triangular matrix. */
void zpotrf_(const char *uplo, const int *n, double complex *a, const int *lda, int *info,
             size_t uplo_length);
void zhegst_(const int *itype, const char *uplo, const int *n, double complex *a, const int *lda,
             const double complex *b, const int *ldb, int *info, size_t uplo_length);
void ztrtrs_(const char *uplo, const char *trans, const char *diag, const int *n, const int *nrhs,
             const double complex *a, const int *lda, double complex *b, const int *ldb, int *info,
             size_t uplo_length, size_t trans_length, size_t diag_length);

/* Of the lower triangle. */
static bool is_finite(int n, const double complex *a, int ld) {
  for (size_t j = 0; j < (size_t)n; j++)
    for (size_t i = j; i < (size_t)n; i++) {
      const double complex z = a[j * (size_t)ld + i];
      if (!isfinite(creal(z)) || !isfinite(cimag(z))) return false;
    }
  return true;
}

static qk_status_t solve(int n, double complex *a, int ld, double *w) {
  if (!is_finite(n, a, ld)) return QK_BREAKDOWN;
  int lwork = -1, lrwork = -1, liwork = -1, info = 0;
  double complex size;
  double rsize;
  int isize;
  zheevd_("V", "L", &n, a, &ld, w, &size, &lwork, &rsize, &lrwork, &isize, &liwork, &info, 1, 1);
  if (info != 0) return QK_BREAKDOWN;
  lwork = (int)creal(size);
  lrwork = (int)rsize;
  liwork = isize;
  double complex *work = qk_malloc((size_t)lwork * sizeof *work);
  double *rwork = qk_malloc((size_t)lrwork * sizeof *rwork);
  int *iwork = qk_malloc((size_t)liwork * sizeof *iwork);
  if (work && rwork && iwork)
    zheevd_("V", "L", &n, a, &ld, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
  qk_status_t status = work && rwork && iwork ? QK_OK : QK_NO_MEMORY;
  if (status == QK_OK && info != 0) status = QK_BREAKDOWN;
  qk_free(iwork);
  qk_free(rwork);
  qk_free(work);
  return status;
}

static qk_status_t send_result(qk_comm_t *comm, int n, double complex *a, int ld, double *w) {
  const qk_status_t status = qk_comm_bcast(comm, a, (size_t)ld * (size_t)n * sizeof *a, 0);
  return status == QK_OK ? qk_comm_bcast(comm, w, (size_t)n * sizeof *w, 0) : status;
}

qk_status_t qk_hermitian_eigen(qk_comm_t *comm, int n, double complex *a, double *w) {
  qk_status_t status = qk_comm_rank(comm) == 0 ? solve(n, a, n, w) : QK_OK;
  status = qk_comm_agree(comm, status, NULL);
  return status == QK_OK ? send_result(comm, n, a, n, w) : status;
}

/* ---- beside other work ----------------------------------------------------------------------- */

/* RUNNING until the thread is at its end or nobody waits any more: whoever comes second, the thread
 * or who has begun it, frees it. LEFT: its result is not wanted, but its end. */
enum { RUNNING, LEFT, FINISHED, DROPPED };

struct qk_hermitian_job {
  int n, ld;
  double complex *a, *g; /* g: of the generalised problem, or NULL */
  double least, *w;
  qk_status_t status;
  atomic_int state;
};

static void destroy(qk_hermitian_job_t *j) {
  qk_free(j->w);
  qk_free(j->g);
  qk_free(j->a);
  qk_free(j);
}

static bool is_unwanted(qk_hermitian_job_t *j) {
  return atomic_load(&j->state) != RUNNING;
}

/* The end of one of the two. */
static void end(qk_hermitian_job_t *j, int how) {
  if (atomic_exchange(&j->state, how) >= FINISHED) destroy(j);
}

/* The lower triangle becomes the mean of both: what rounding has made of them differs. */
static void take_mean(int n, double complex *a, int ld) {
  for (size_t j = 0; j < (size_t)n; j++)
    for (size_t i = j; i < (size_t)n; i++) {
      double complex *z = a + j * (size_t)ld + i;
      *z = (*z + conj(a[i * (size_t)ld + j])) / 2;
    }
}

/* g = r r^+, r in the lower triangle of g. w: room for n numbers. */
static qk_status_t factorise(qk_hermitian_job_t *j) {
  const size_t step = (size_t)j->ld + 1;
  int info = 0;
  for (int i = 0; i < j->n; i++) j->w[i] = creal(j->g[(size_t)i * step]);
  zpotrf_("L", &j->n, j->g, &j->ld, &info, 1);
  if (info != 0) return QK_BREAKDOWN;
  for (int i = 0; i < j->n; i++) {
    const double pivot = creal(j->g[(size_t)i * step]);
    if (!(pivot * pivot > j->least * j->w[i])) return QK_BREAKDOWN;
  }
  return QK_OK;
}

/* a x = w g x; between the calls of LAPACK it asks whether it should go on. */
static qk_status_t solve_pair(qk_hermitian_job_t *j) {
  const int first = 1;
  int info = 0;
  take_mean(j->n, j->g, j->ld);
  take_mean(j->n, j->a, j->ld);
  if (!is_finite(j->n, j->g, j->ld) || !is_finite(j->n, j->a, j->ld)) return QK_BREAKDOWN;
  qk_status_t status = factorise(j);
  if (status != QK_OK || is_unwanted(j)) return status;
  zhegst_(&first, "L", &j->n, j->a, &j->ld, j->g, &j->ld, &info, 1);
  if (info != 0) return QK_BREAKDOWN;
  if (is_unwanted(j)) return QK_OK;
  status = solve(j->n, j->a, j->ld, j->w);
  if (status != QK_OK || is_unwanted(j)) return status;
  ztrtrs_("L", "C", "N", &j->n, &j->n, j->g, &j->ld, j->a, &j->ld, &info, 1, 1, 1);
  return info == 0 ? QK_OK : QK_BREAKDOWN;
}

/* The thread is at its end. */
static qk_status_t is_over(qk_comm_t *comm, qk_hermitian_job_t *j, bool *over) {
  const struct timespec pause = {.tv_nsec = 1000000};
  double running = j && atomic_load(&j->state) != FINISHED ? 1 : 0;
  const qk_status_t status = qk_comm_max(comm, &running, 1);
  *over = status == QK_OK && running == 0;
  if (status == QK_OK && !*over) nanosleep(&pause, NULL);
  return status;
}

static void *work_on(void *arg) {
  qk_hermitian_job_t *j = arg;
  if (!is_unwanted(j)) j->status = j->g ? solve_pair(j) : solve(j->n, j->a, j->ld, j->w);
  end(j, FINISHED);
  return NULL;
}

void qk_hermitian_drop(qk_hermitian_job_t *job) {
  if (job) end(job, DROPPED);
}

qk_status_t qk_hermitian_leave(qk_comm_t *comm, qk_hermitian_job_t **job, bool *over) {
  int running = RUNNING;
  if (*job) atomic_compare_exchange_strong(&(*job)->state, &running, LEFT);
  const qk_status_t status = is_over(comm, *job, over);
  if (status != QK_OK || !*over) return status;
  qk_hermitian_drop(*job);
  *job = NULL;
  return QK_OK;
}

/* Takes g, also where it fails. */
static qk_status_t start(int n, const double complex *a, int ld, double complex *g, double least,
                         qk_hermitian_job_t **job) {
  const size_t bytes = (size_t)ld * (size_t)n * sizeof *a;
  qk_hermitian_job_t *j = qk_calloc(1, sizeof *j);
  pthread_t thread;
  if (!j) {
    qk_free(g);
    return QK_NO_MEMORY;
  }
  atomic_init(&j->state, RUNNING);
  j->n = n;
  j->ld = ld;
  j->g = g;
  j->least = least;
  j->a = qk_malloc(bytes);
  j->w = qk_malloc((size_t)n * sizeof *j->w);
  if (!j->a || !j->w) goto fail;
  memcpy(j->a, a, bytes);
  if (pthread_create(&thread, NULL, work_on, j) != 0) goto fail;
  pthread_detach(thread);
  *job = j;
  return QK_OK;

fail:
  destroy(j);
  return QK_NO_MEMORY;
}

qk_status_t qk_hermitian_begin(qk_comm_t *comm, int n, const double complex *a,
                               qk_hermitian_job_t **job) {
  *job = NULL;
  return qk_comm_agree(comm, qk_comm_rank(comm) == 0 ? start(n, a, n, NULL, 0, job) : QK_OK, NULL);
}

qk_status_t qk_hermitian_eigen_pair(qk_comm_t *comm, int n, double complex *a, int ld,
                                    double complex *g, double least, double *w) {
  qk_hermitian_job_t j = {.n = n, .ld = ld, .a = a, .g = g, .least = least, .w = w};
  qk_status_t status = qk_comm_rank(comm) == 0 ? solve_pair(&j) : QK_OK;
  status = qk_comm_agree(comm, status, NULL);
  return status == QK_OK ? send_result(comm, n, a, ld, w) : status;
}

qk_status_t qk_hermitian_begin_pair(qk_comm_t *comm, int n, const double complex *a, int ld,
                                    double complex *g, double least, qk_hermitian_job_t **job) {
  *job = NULL;
  if (qk_comm_rank(comm) == 0) return qk_comm_agree(comm, start(n, a, ld, g, least, job), NULL);
  qk_free(g);
  return qk_comm_agree(comm, QK_OK, NULL);
}

qk_status_t qk_hermitian_poll(qk_comm_t *comm, qk_hermitian_job_t **job, int n, double complex *a,
                              int ld, double *w, bool *over) {
  qk_hermitian_job_t *j = *job;
  const size_t bytes = (size_t)ld * (size_t)n * sizeof *a;
  qk_status_t status = is_over(comm, j, over);
  if (status != QK_OK || !*over) return status;
  if (j && j->status == QK_OK) {
    memcpy(a, j->a, bytes);
    memcpy(w, j->w, (size_t)n * sizeof *w);
  }
  status = qk_comm_agree(comm, j ? j->status : QK_OK, NULL);
  qk_hermitian_drop(j);
  *job = NULL;
  return status == QK_OK ? send_result(comm, n, a, ld, w) : status;
}
