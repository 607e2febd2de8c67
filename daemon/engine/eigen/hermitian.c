#include "daemon/engine/eigen/hermitian.h"

#include <math.h>
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
