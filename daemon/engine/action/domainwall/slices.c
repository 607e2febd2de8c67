#include "daemon/engine/action/domainwall/slices.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"

/* LAPACK: solves a x = b by LU. */
void zgesv_(const int *n, const int *nrhs, double complex *a, const int *lda, int *pivot,
            double complex *b, const int *ldb, int *info);

void qk_slices_times(const qk_slices_t *a, const qk_slices_t *b, qk_slices_t *out) {
  memset(out, 0, sizeof *out);
  out->rows = a->rows;
  out->columns = b->columns;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < a->rows; i++)
      for (int j = 0; j < b->columns; j++)
        for (int l = 0; l < a->columns; l++) out->m[k][i][j] += a->m[k][i][l] * b->m[k][l][j];
}

void qk_slices_adjoint(const qk_slices_t *a, qk_slices_t *out) {
  memset(out, 0, sizeof *out);
  out->rows = a->columns;
  out->columns = a->rows;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < out->rows; i++)
      for (int j = 0; j < out->columns; j++) out->m[k][i][j] = conj(a->m[k][j][i]);
}

qk_status_t qk_slices_invert(const qk_slices_t *a, qk_slices_t *out) {
  const int n = a->rows;
  int pivot[QK_LS_MAX], info = 0;
  const size_t bytes = (size_t)(n * n) * sizeof(double complex);
  double complex *lu = qk_malloc(bytes), *x = qk_malloc(bytes);
  qk_status_t status = lu && x ? QK_OK : QK_NO_MEMORY;
  memset(out, 0, sizeof *out);
  out->rows = out->columns = n;
  for (int k = 0; k < 2 && status == QK_OK; k++) {
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        lu[j * n + i] = a->m[k][i][j];
        x[j * n + i] = i == j;
      }
    zgesv_(&n, &n, lu, &n, pivot, x, &n, &info);
    if (info != 0) status = QK_BREAKDOWN;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        out->m[k][i][j] = x[j * n + i];
        if (!isfinite(creal(x[j * n + i])) || !isfinite(cimag(x[j * n + i]))) status = QK_BREAKDOWN;
      }
  }
  qk_free(x);
  qk_free(lu);
  return status;
}

static bool is_real(const qk_slices_t *a) {
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < a->rows; i++)
      for (int j = 0; j < a->columns; j++)
        if (cimag(a->m[k][i][j]) != 0) return false;
  return true;
}

static size_t numbers(int rows, int columns, bool real) {
  return (size_t)(2 * rows * columns) * (real ? 1 : 2);
}

int64_t qk_mix_bytes(int rows, int columns, bool real) {
  return (int64_t)(numbers(rows, columns, real) * (sizeof(double) + sizeof(float)));
}

/* In the order that the kernel reads. */
static void fill(const qk_slices_t *a, bool real, double *d, float *f) {
  size_t n = 0;
  for (int k = 0; k < 2; k++)
    for (int j = 0; j < a->columns; j++)
      for (int i = 0; i < a->rows; i++) {
        d[n++] = creal(a->m[k][i][j]);
        if (!real) d[n++] = cimag(a->m[k][i][j]);
      }
  for (size_t i = 0; i < n; i++) f[i] = (float)d[i];
}

static qk_status_t upload(const qk_device_t *dev, const void *host, size_t bytes, void **device) {
  void *memory = NULL;
  qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &memory);
  if (status != QK_OK) return status;
  *device = memory;
  status = dev->ops->copy(dev->ctx, memory, host, bytes, QK_COPY_TO_DEVICE, 0);
  return status != QK_OK ? status : dev->ops->queue_sync(dev->ctx, 0);
}

static qk_status_t create(const qk_device_t *dev, const qk_slices_t *a, double *d, float *f,
                          qk_mix_t *mix) {
  const size_t n = numbers(a->rows, a->columns, mix->is_real);
  fill(a, mix->is_real, d, f);
  const qk_status_t status = upload(dev, d, n * sizeof *d, &mix->matrix[0]);
  return status != QK_OK ? status : upload(dev, f, n * sizeof *f, &mix->matrix[1]);
}

qk_status_t qk_mix_create(const qk_device_t *dev, const qk_slices_t *a, qk_mix_t *mix) {
  *mix = (qk_mix_t){.rows = a->rows, .columns = a->columns, .is_real = is_real(a)};
  const size_t n = numbers(a->rows, a->columns, mix->is_real);
  double *d = qk_malloc(n * sizeof *d);
  float *f = qk_malloc(n * sizeof *f);
  const qk_status_t status = d && f ? create(dev, a, d, f, mix) : QK_NO_MEMORY;
  qk_free(f);
  qk_free(d);
  return status;
}

void qk_mix_destroy(const qk_device_t *dev, qk_mix_t *mix) {
  for (int i = 0; i < 2; i++)
    if (mix->matrix[i]) dev->ops->free(dev->ctx, mix->matrix[i]);
  *mix = (qk_mix_t){0};
}

void qk_mix_apply(const qk_device_t *dev, const qk_mix_t *mix, double c_in, qk_spinor_t in,
                  double c_x, qk_spinor_t x, qk_spinor_t out) {
  const qk_fifth_mix_args_t args = {.to = mix->rows,
                                    .from = mix->columns,
                                    .is_real = mix->is_real,
                                    .matrix = mix->matrix[in.prec == QK_DOUBLE ? 0 : 1],
                                    .c_in = c_in,
                                    .c_x = c_x,
                                    .in = in,
                                    .x = x,
                                    .out = out};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->fifth_mix(dev->ctx, &args));
}
