/*
 * principal.h: eigenvectors of the Gram matrix of columns by cyclic Jacobi rotations
 * (G. H. Golub and C. F. Van Loan, Matrix Computations, section 8.5), n/2 disjoint pairs at a time.
 */
#ifndef QK_BODY_PRINCIPAL_H
#define QK_BODY_PRINCIPAL_H

#include <math.h>

#include "cuda/body/complex.h"
#include "cuda/mg_ops.h"

namespace QK_NS {

/* A square matrix with rows of ld. */
struct plain_matrix {
  double *re, *im;
  int ld;
  QK_HD dcx at(int r, int c) const { return {re[r * ld + c], im[r * ld + c]}; }
  QK_HD void put(int r, int c, const dcx &x) const {
    re[r * ld + c] = x.re;
    im[r * ld + c] = x.im;
  }
};

/* Columns p' = c p - s conj(e) q, q' = s p + c conj(e) q. */
struct rotation {
  int p, q;
  double c, s;
  dcx e;
};

constexpr int jacobi_sweeps = 16;
/* |g_pq|^2 over g_pp g_qq: from the first on nothing is rotated, and no sweep follows one in which
 * all were below the second; what remains of products of two columns is its square. */
constexpr double jacobi_least = 1e-30, jacobi_enough = 1e-14;

/* Pair k of round r of a tournament of n players, n even: everybody meets everybody in n - 1
 * rounds. */
QK_HD void pair_of_round(int n, int r, int k, int &p, int &q) {
  const int a = k == 0 ? n - 1 : (r + k) % (n - 1);
  const int b = k == 0 ? r : (r + n - 1 - k) % (n - 1);
  p = a < b ? a : b;
  q = a < b ? b : a;
}

/* What makes g_pq zero; whether that was worth it. */
QK_HD bool rotation_of(const plain_matrix &g, int p, int q, rotation &j) {
  const double a = g.re[p * g.ld + p], b = g.re[q * g.ld + q];
  const dcx x = g.at(p, q);
  const double size2 = x.re * x.re + x.im * x.im;
  j = {p, q, 1, 0, {1, 0}};
  if (!(size2 > jacobi_least * a * b) || !(size2 > 0)) return false;
  const double size = sqrt(size2), tau = (b - a) / (2 * size);
  const double t = (tau < 0 ? -1 : 1) / (fabs(tau) + sqrt(1 + tau * tau));
  j.c = 1 / sqrt(1 + t * t);
  j.s = t * j.c;
  j.e = {x.re / size, x.im / size};
  return size2 > jacobi_enough * a * b;
}

/* Rows p and q of m from the left with the adjoint of the rotation. */
template <class Team>
QK_HD void turn_rows(const Team &team, const plain_matrix &m, int n, const rotation &j) {
  for (int c = team.lane(); c < n; c += team.lanes()) {
    const dcx p = m.at(j.p, c), q = j.e * m.at(j.q, c);
    m.put(j.p, c, {j.c * p.re - j.s * q.re, j.c * p.im - j.s * q.im});
    m.put(j.q, c, {j.s * p.re + j.c * q.re, j.s * p.im + j.c * q.im});
  }
}

QK_HD void turn_columns(const plain_matrix &m, int row, const rotation &j) {
  const dcx p = m.at(row, j.p), q = dcx{j.e.re, -j.e.im} * m.at(row, j.q);
  m.put(row, j.p, {j.c * p.re - j.s * q.re, j.c * p.im - j.s * q.im});
  m.put(row, j.q, {j.s * p.re + j.c * q.re, j.s * p.im + j.c * q.im});
}

/* One round of all pairs. *busy: whether a rotation of it was worth another sweep. */
template <class Team>
QK_HD void jacobi_round(const Team &team, const plain_matrix &g, const plain_matrix &w, int n,
                        int round, rotation *j, int *busy) {
  for (int k = team.index(); k < n / 2; k += team.size()) {
    int p, q;
    pair_of_round(n, round, k, p, q);
    if (rotation_of(g, p, q, j[k])) *busy = 1;
  }
  team.sync();
  for (int k = team.row(); k < n / 2; k += team.rows()) {
    if (j[k].s == 0) continue;
    turn_rows(team, g, n, j[k]);
    turn_rows(team, w, n, j[k]);
  }
  team.sync();
  for (int r = team.row(); r < n; r += team.rows())
    for (int k = team.lane(); k < n / 2; k += team.lanes())
      if (j[k].s != 0) turn_columns(g, r, j[k]);
  team.sync();
}

/* For the Gram matrix g = v^+ v of n columns, whole, on return row i of g is the adjoint of the
 * eigenvector with the i-th largest eigenvalue, divided by the root of that (0 where it is below
 * 1e-14 of the largest): conj(g_ic), c = 0 .. n-1, are the coefficients of the i-th singular vector
 * in terms of the columns. w: [n x n], j: [n/2], value: [n], busy: [1], work space of the team,
 * whose threads (coarse_setup.h) all take part. */
template <class Team>
QK_HD void principal_vectors(const Team &team, const plain_matrix &g, const plain_matrix &w, int n,
                             rotation *j, double *value, int *busy) {
  for (int i = team.index(); i < n * n; i += team.size())
    w.put(i / n, i % n, {i / n == i % n ? 1.0 : 0.0, 0});
  for (int sweep = 0; sweep < jacobi_sweeps; sweep++) {
    team.sync();
    if (team.index() == 0) *busy = 0;
    team.sync();
    for (int round = 0; round < n - 1; round++) jacobi_round(team, g, w, n, round, j, busy);
    if (*busy == 0) break;
  }
  team.sync();
  for (int i = team.index(); i < n; i += team.size()) value[i] = g.re[i * g.ld + i];
  team.sync();
  for (int i = team.row(); i < n; i += team.rows()) {
    int rank = 0;
    double most = 0;
    for (int k = 0; k < n; k++) {
      rank += value[k] > value[i] || (value[k] == value[i] && k < i);
      most = value[k] > most ? value[k] : most;
    }
    const double scale = value[i] > 1e-14 * most ? 1 / sqrt(value[i]) : 0;
    for (int c = team.lane(); c < n; c += team.lanes()) {
      const dcx x = w.at(i, c);
      g.put(rank, c, {x.re * scale, x.im * scale});
    }
  }
  team.sync();
}

} // namespace QK_NS
#endif
