#include "tests/support/loops.h"

#include <string.h>

const double complex *loops_link(const loops_t *l, const int x[4], int mu) {
  int64_t site = 0;
  for (int nu = 3; nu >= 0; nu--)
    site = site * l->dims[nu] + (x[nu] + 4 * l->dims[nu]) % l->dims[nu];
  return l->u + (site * 4 + mu) * 9;
}

void loops_multiply(const double complex a[9], const double complex b[9], double complex c[9]) {
  double complex out[9] = {0};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) out[3 * i + j] += a[3 * i + k] * b[3 * k + j];
  memcpy(c, out, sizeof out);
}

double complex loops_trace(const double complex a[9], const double complex b[9]) {
  double complex sum = 0;
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) sum += a[3 * i + k] * b[3 * k + i];
  return sum;
}

void loops_path(const loops_t *l, const int x[4], int n, const int *steps, double complex m[9]) {
  int y[4];
  memcpy(y, x, sizeof y);
  for (int k = 0; k < 9; k++) m[k] = k % 4 == 0;
  for (int i = 0; i < n; i++) {
    double complex step[9];
    if (steps[i] > 0) {
      memcpy(step, loops_link(l, y, steps[i] - 1), sizeof step);
      y[steps[i] - 1]++;
    } else {
      y[-steps[i] - 1]--;
      const double complex *u = loops_link(l, y, -steps[i] - 1);
      for (int k = 0; k < 9; k++) step[k] = conj(u[3 * (k % 3) + k / 3]);
    }
    loops_multiply(m, step, m);
  }
}

double loops_rectangle(const loops_t *l, const int x[4], int mu, int a, int nu, int b) {
  static const double complex one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  int steps[16], n = 0;
  double complex m[9];
  for (int i = 0; i < a; i++) steps[n++] = mu + 1;
  for (int i = 0; i < b; i++) steps[n++] = nu + 1;
  for (int i = 0; i < a; i++) steps[n++] = -(mu + 1);
  for (int i = 0; i < b; i++) steps[n++] = -(nu + 1);
  loops_path(l, x, n, steps, m);
  return creal(loops_trace(m, one)) / 3;
}

static void add_path(const loops_t *l, const int x[4], double weight, int n, const int *steps,
                     double complex a[9]) {
  double complex m[9];
  loops_path(l, x, n, steps, m);
  for (int k = 0; k < 9; k++) a[k] += weight * m[k];
}

void loops_staple(const loops_t *l, const int x[4], int mu, double c1, double complex a[9]) {
  int y[4];
  memcpy(y, x, sizeof y);
  y[mu]++;
  memset(a, 0, 9 * sizeof *a);
  const int m = mu + 1;
  for (int nu = 0; nu < 4; nu++)
    for (int s = -1; nu != mu && s <= 1; s += 2) {
      const int n = s * (nu + 1);
      add_path(l, y, 1 - 8 * c1, 3, (int[]){n, -m, -n}, a);
      if (c1 == 0) continue;
      add_path(l, y, c1, 5, (int[]){m, n, -m, -m, -n}, a);
      add_path(l, y, c1, 5, (int[]){n, n, -m, -n, -n}, a);
      add_path(l, y, c1, 5, (int[]){n, -m, -m, -n, m}, a);
    }
}
