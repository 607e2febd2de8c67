#include "daemon/engine/krylov/block_matrix.h"

#include <math.h>
#include <string.h>

#include "cuda/types.h"

static size_t bytes_of(int n) {
  return (size_t)n * (size_t)n * sizeof(double complex);
}

/* From the top: what a row takes from those below it is taken at once. */
bool qk_block_cholesky(int n, const double complex *g, const double *least, double complex *r,
                       uint8_t *weak) {
  memset(r, 0, bytes_of(n));
  for (int i = 0; i < n; i++) memcpy(r + i * n + i, g + i * n + i, (size_t)(n - i) * sizeof *r);
  for (int i = 0; i < n; i++) {
    double complex *row = r + i * n;
    const double left = creal(row[i]), root = sqrt(left);
    if (!isfinite(left)) return false;
    weak[i] = !(left > least[i]);
    row[i] = weak[i] ? 1 : root;
    for (int j = i + 1; j < n; j++) row[j] = weak[i] ? 0 : row[j] / root;
    for (int k = i + 1; k < n; k++)
      for (int j = k; j < n; j++) r[k * n + j] -= conj(row[k]) * row[j];
  }
  return true;
}

/* From the bottom: row i of the inverse is made of those below it. */
void qk_block_invert(int n, const double complex *r, double complex *inverse) {
  memset(inverse, 0, bytes_of(n));
  for (int i = n - 1; i >= 0; i--) {
    double complex *row = inverse + i * n;
    row[i] = 1;
    for (int l = i + 1; l < n; l++)
      for (int j = l; j < n; j++) row[j] -= r[i * n + l] * inverse[l * n + j];
    for (int j = i; j < n; j++) row[j] /= r[i * n + i];
  }
}

void qk_block_times(int n, const double complex *a, const double complex *b, bool adjoint,
                    double complex *out) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double complex sum = 0;
      for (int l = 0; l < n; l++)
        sum += a[i * n + l] * (adjoint ? conj(b[j * n + l]) : b[l * n + j]);
      out[i * n + j] = sum;
    }
}

bool qk_block_inverse(int n, const double complex *g, const double *least, double complex *inverse,
                      double complex *work) {
  double complex *r = work, *r_inverse = work + (size_t)n * (size_t)n;
  uint8_t weak[QK_MAX_RHS] = {0};
  if (!qk_block_cholesky(n, g, least, r, weak)) return false;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n && weak[j]; i++) r[i * n + j] = i == j;
  qk_block_invert(n, r, r_inverse);
  for (int j = 0; j < n; j++)
    if (weak[j]) r_inverse[j * n + j] = 0;
  qk_block_times(n, r_inverse, r_inverse, true, inverse);
  return true;
}
