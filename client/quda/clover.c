/* A clover term that the caller made: which mass and csw it has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clover.h"
#include "say.h"

enum { BLOCK = 36, TERM = 72, SAMPLES = 256 };

typedef double complex su3_t[3][3];

/* Row r of a gamma matrix has `phase` in column `column`; DeGrand-Rossi (docs/physics.md). */
typedef struct entry {
  int column;
  double complex phase;
} entry_t;
static const entry_t gamma_row[4][4] = {
    {{3, I}, {2, I}, {1, -I}, {0, -I}},
    {{3, -1}, {2, 1}, {1, 1}, {0, -1}},
    {{2, I}, {3, -I}, {0, -I}, {1, I}},
    {{2, 1}, {3, 1}, {0, 1}, {1, 1}},
};
static const int plane_of[6][2] = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};

static void get_link(const qk_quda_links_t *links, const int site[4], int mu, su3_t u) {
  size_t n = 0;
  for (int nu = 3; nu >= 0; nu--)
    n = n * (size_t)links->dims[nu] + (size_t)((site[nu] + links->dims[nu]) % links->dims[nu]);
  const double *v = links->u + n * 72 + (size_t)mu * 18;
  for (int k = 0; k < 9; k++) u[k / 3][k % 3] = v[2 * k] + I * v[2 * k + 1];
}

/* a <- a b, or a b^+ */
static void times(su3_t a, su3_t b, bool adjoint) {
  su3_t c;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      c[i][j] = 0;
      for (int k = 0; k < 3; k++) c[i][j] += a[i][k] * (adjoint ? conj(b[j][k]) : b[k][j]);
    }
  memcpy(a, c, sizeof c);
}

/* Follows a path of signed directions mu + 1 from a site, and multiplies its links. */
static void walk(const qk_quda_links_t *links, const int start[4], const int path[4], su3_t out) {
  int at[4];
  memcpy(at, start, sizeof at);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) out[i][j] = i == j;
  for (int k = 0; k < 4; k++) {
    const int mu = abs(path[k]) - 1;
    su3_t u;
    if (path[k] < 0) at[mu]--;
    get_link(links, at, mu, u);
    times(out, u, path[k] < 0);
    if (path[k] > 0) at[mu]++;
  }
}

/* F_mu nu = (Q - Q^+) / 8, Q the four leaves that turn from +mu to +nu. */
static void field_strength(const qk_quda_links_t *links, const int site[4], int mu, int nu,
                           su3_t f) {
  const int m = mu + 1, n = nu + 1;
  const int leaf[4][4] = {{m, n, -m, -n}, {n, -m, -n, m}, {-m, -n, m, n}, {-n, m, n, -m}};
  su3_t q = {{0}}, one;
  for (int k = 0; k < 4; k++) {
    walk(links, site, leaf[k], one);
    for (int i = 0; i < 9; i++) q[i / 3][i % 3] += one[i / 3][i % 3];
  }
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) f[i][j] = (q[i][j] - conj(q[j][i])) / 8;
}

/* C = -1/2 sum_{mu<nu} plane gamma_mu gamma_nu F: two blocks of 6 x 6, packed as terms are. */
static void clover_at(const qk_quda_links_t *links, const int site[4], const double plane[6],
                      double packed[TERM]) {
  double complex block[2][6][6] = {{{0}}};
  for (int p = 0; p < 6; p++) {
    const int mu = plane_of[p][0], nu = plane_of[p][1];
    su3_t f;
    field_strength(links, site, mu, nu, f);
    for (int row = 0; row < 4; row++) {
      const entry_t a = gamma_row[mu][row], b = gamma_row[nu][a.column];
      const double complex w = -0.5 * plane[p] * a.phase * b.phase;
      for (int i = 0; i < 9; i++)
        block[row / 2][3 * (row % 2) + i / 3][3 * (b.column % 2) + i % 3] += w * f[i / 3][i % 3];
    }
  }
  for (int h = 0; h < 2; h++) {
    double *out = packed + h * BLOCK;
    for (int i = 0; i < 6; i++) *out++ = creal(block[h][i][i]);
    for (int j = 0; j < 6; j++)
      for (int i = j + 1; i < 6; i++) {
        *out++ = creal(block[h][i][j]);
        *out++ = cimag(block[h][i][j]);
      }
  }
}

/* Normal equations m v = r; an unknown that does not occur gets 0. */
static void eliminate(double m[3][3], double r[3], double v[3]) {
  enum { N = 3 };
  const double most = m[0][0];
  bool there[3] = {false, false, false};
  for (int i = 0; i < N; i++) {
    there[i] = m[i][i] > 1e-24 * most;
    for (int k = i + 1; there[i] && k < N; k++) {
      const double f = m[k][i] / m[i][i];
      for (int j = i; j < N; j++) m[k][j] -= f * m[i][j];
      r[k] -= f * r[i];
    }
  }
  for (int i = N - 1; i >= 0; i--) {
    v[i] = there[i] ? r[i] : 0;
    for (int j = i + 1; there[i] && j < N; j++) v[i] -= m[i][j] * v[j];
    if (there[i]) v[i] /= m[i][i];
  }
}

double qk_quda_clover_fit(const qk_quda_links_t *links, const double *term, bool split, double *a,
                          double c[2]) {
  static const double space[6] = {1, 1, 1, 0, 0, 0}, time[6] = {0, 0, 0, 1, 1, 1},
                      all[6] = {1, 1, 1, 1, 1, 1};
  enum { UNKNOWNS = 3 };
  size_t sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= (size_t)links->dims[mu];
  const size_t n = sites < SAMPLES ? sites : SAMPLES;
  double(*base)[3][TERM] = qk_quda_alloc(n * sizeof *base);
  double m[3][3] = {{0}}, r[3] = {0}, v[3] = {0}, largest = 0, off = 0;
  for (size_t s = 0; s < n; s++) {
    size_t rest = s * sites / n;
    const double *given = term + rest * TERM;
    int site[4];
    for (int mu = 0; mu < 4; mu++) {
      site[mu] = (int)(rest % (size_t)links->dims[mu]);
      rest /= (size_t)links->dims[mu];
    }
    for (int k = 0; k < TERM; k++) base[s][0][k] = k % BLOCK < 6;
    clover_at(links, site, split ? space : all, base[s][1]);
    memset(base[s][2], 0, sizeof base[s][2]);
    if (split) clover_at(links, site, time, base[s][2]);
    for (int k = 0; k < TERM; k++) {
      for (int i = 0; i < UNKNOWNS; i++) {
        for (int j = 0; j < UNKNOWNS; j++) m[i][j] += base[s][i][k] * base[s][j][k];
        r[i] += base[s][i][k] * given[k];
      }
      largest = fabs(given[k]) <= largest ? largest : fabs(given[k]);
    }
  }
  eliminate(m, r, v);
  for (size_t s = 0; s < n; s++)
    for (int k = 0; k < TERM; k++) {
      double d = term[(s * sites / n) * TERM + (size_t)k];
      for (int i = 0; i < UNKNOWNS; i++) d -= v[i] * base[s][i][k];
      off = fabs(d) <= off ? off : fabs(d);
    }
  free(base);
  *a = v[0], c[0] = v[1], c[1] = split ? v[2] : v[1];
  return off / largest;
}

void qk_quda_clover_apply(const double *term, size_t sites, const double complex *x,
                          double complex *y) {
  for (size_t b = 0; b < 2 * sites; b++, x += 6, y += 6, term += BLOCK) {
    const double *off = term + 6;
    for (int i = 0; i < 6; i++) y[i] = term[i] * x[i];
    for (int j = 0; j < 6; j++)
      for (int i = j + 1; i < 6; i++, off += 2) {
        const double complex v = off[0] + I * off[1];
        y[i] += v * x[j];
        y[j] += conj(v) * x[i];
      }
  }
}
