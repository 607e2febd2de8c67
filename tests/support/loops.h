/*
 * loops.h: products of links along paths, and the staples of actions made of plaquettes and
 * rectangles, in plain C on host memory: the oracle of everything that works on links. Links of the
 * whole lattice, [t][z][y][x][mu][3][3], complex double, periodic. And matrices made SU(3).
 */
#ifndef QK_TESTS_LOOPS_H
#define QK_TESTS_LOOPS_H

#include <complex.h>
#include <math.h>
#include <stdint.h>

typedef struct loops {
  int dims[4];
  const double complex *u;
} loops_t;

const double complex *loops_link(const loops_t *l, const int x[4], int mu);
/* The matrix that carries along n steps from x: step mu + 1 is one ahead in direction
 * mu, -(mu + 1) one back. */
void loops_path(const loops_t *l, const int x[4], int n, const int *steps, double complex m[9]);
/* Re tr / 3 of the closed loop of a by b links. */
double loops_rectangle(const loops_t *l, const int x[4], int mu, int a, int nu, int b);
/* Sum over the loops of the action through U_mu(x): its weight in the action times the rest of the
 * loop, from x + mu back to x: (1 - 8 c1) for plaquettes, c1 for rectangles. */
void loops_staple(const loops_t *l, const int x[4], int mu, double c1, double complex a[9]);

void loops_multiply(const double complex a[9], const double complex b[9], double complex c[9]);
double complex loops_trace(const double complex a[9], const double complex b[9]); /* tr (a b) */

/* Rows 0 and 1 made orthonormal, row 2 their conjugate cross product. */
static inline void loops_reunitarise(double complex u[3][3]) {
  for (int r = 0; r < 2; r++) {
    double complex along = 0;
    double norm = 0;
    for (int c = 0; r == 1 && c < 3; c++) along += conj(u[0][c]) * u[1][c];
    for (int c = 0; c < 3; c++) {
      if (r == 1) u[1][c] -= along * u[0][c];
      norm += creal(u[r][c] * conj(u[r][c]));
    }
    for (int c = 0; c < 3; c++) u[r][c] /= sqrt(norm);
  }
  for (int c = 0; c < 3; c++) {
    const int k = (c + 1) % 3, l = (c + 2) % 3;
    u[2][c] = conj(u[0][k] * u[1][l] - u[0][l] * u[1][k]);
  }
}

#endif
