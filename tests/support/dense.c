#include "tests/support/dense.h"

#include <stdlib.h>

/* Upper right 2x2 blocks of the DeGrand-Rossi gammas x, y, z, t; the lower
 * left ones are adjoint. */
static const double complex block[4][2][2] = {
    {{0, I}, {I, 0}}, {{0, -1}, {1, 0}}, {{I, 0}, {0, -I}}, {{1, 0}, {0, 1}}};

static double complex gamma_element(int mu, int i, int j) {
  if (i < 2 && j >= 2) return block[mu][i][j - 2];
  if (i >= 2 && j < 2) return conj(block[mu][j][i - 2]);
  return 0;
}

static int neighbour(const int dims[4], int site, int mu, int *wraps) {
  int stride = 1;
  for (int k = 0; k < mu; k++) stride *= dims[k];
  *wraps = site / stride % dims[mu] == dims[mu] - 1;
  return *wraps ? site - stride * (dims[mu] - 1) : site + stride;
}

double complex *dense_wilson(const int dims[4], const double *links, double mass, double phase_t) {
  int sites = dims[0] * dims[1] * dims[2] * dims[3], n = 12 * sites;
  double complex *m = calloc((size_t)n * (size_t)n, sizeof *m);
  if (!m) abort();
  for (int i = 0; i < n; i++) m[(size_t)i * n + i] = 4 + mass;
  for (int here = 0; here < sites; here++)
    for (int mu = 0; mu < 4; mu++) {
      int wraps, ahead = neighbour(dims, here, mu, &wraps);
      double factor = mu == 3 && wraps ? phase_t : 1;
      for (int e = 0; e < 144; e++) {
        int s = e / 36, r = e / 9 % 4, a = e / 3 % 3, b = e % 3; /* spins s, r; colours a, b */
        const double *u = links + ((here * 4 + mu) * 9 + 3 * a + b) * 2;
        double complex link = factor * (u[0] + I * u[1]);
        double complex g = gamma_element(mu, s, r), one = s == r;
        int row = 12 * here + 3 * s + a, column = 12 * ahead + 3 * r + b;
        m[row * n + column] -= 0.5 * (one - g) * link;
        /* the hop back is (1 + g) U^+ from here to ahead */
        row = 12 * ahead + 3 * s + b;
        column = 12 * here + 3 * r + a;
        m[row * n + column] -= 0.5 * (one + g) * conj(link);
      }
    }
  return m;
}

void dense_solve(int n, double complex *m, double complex *x) {
  for (int k = 0; k < n; k++) {
    int pivot = k;
    for (int i = k + 1; i < n; i++)
      if (cabs(m[i * n + k]) > cabs(m[pivot * n + k])) pivot = i;
    for (int j = 0; j < n; j++) {
      double complex t = m[k * n + j];
      m[k * n + j] = m[pivot * n + j];
      m[pivot * n + j] = t;
    }
    double complex t = x[k];
    x[k] = x[pivot];
    x[pivot] = t;
    for (int i = k + 1; i < n; i++) {
      double complex f = m[i * n + k] / m[k * n + k];
      for (int j = k; j < n; j++) m[i * n + j] -= f * m[k * n + j];
      x[i] -= f * x[k];
    }
  }
  for (int k = n - 1; k >= 0; k--) {
    for (int j = k + 1; j < n; j++) x[k] -= m[k * n + j] * x[j];
    x[k] /= m[k * n + k];
  }
}
