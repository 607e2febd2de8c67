/* A clover term that the caller made: which mass and csw it has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/say.h"
#include "clover.h"

enum { BLOCK = 36, TERM = 72, LINKS = 72, SAMPLES = 256, NEAR = 33 };

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

/* ---- samples ---- */

/* A site and those that differ by at most one step in at most two directions, which leaves of its
 * plaquettes pass: their numbers, by steps + 1 in base 3; -1: others. */
typedef struct near {
  int number[81], step[NEAR][4];
} near_t;

struct qk_quda_samples {
  size_t n;
  near_t near;
  struct {
    double links[NEAR][LINKS], term[TERM];
  } at[];
};

static void number_near(near_t *near) {
  int n = 0;
  for (int code = 0; code < 81; code++) {
    const int step[4] = {code % 3 - 1, code / 3 % 3 - 1, code / 9 % 3 - 1, code / 27 - 1};
    int steps = 0;
    for (int mu = 0; mu < 4; mu++) steps += step[mu] != 0;
    near->number[code] = steps <= 2 ? n : -1;
    if (steps <= 2) memcpy(near->step[n++], step, sizeof step);
  }
}

/* Index of a site in the part; false: it is in another one. */
static bool in_part(const qk_quda_links_t *links, const int site[4], size_t *index) {
  const qk_quda_shape_t *shape = &links->shape;
  *index = 0;
  for (int mu = 3; mu >= 0; mu--) {
    const int d = links->dims[mu], x = (site[mu] + d) % d - shape->coord[mu] * shape->local[mu];
    if (x < 0 || x >= shape->local[mu]) return false;
    *index = *index * (size_t)shape->local[mu] + (size_t)x;
  }
  return true;
}

qk_quda_samples_t *qk_quda_clover_samples(const qk_quda_links_t *links, const double *term) {
  const size_t sites = qk_quda_whole_sites(&links->shape, QK_QUDA_ALL),
               n = sites < SAMPLES ? sites : SAMPLES;
  qk_quda_samples_t *s;
  const size_t bytes = sizeof *s + n * sizeof s->at[0];
  s = qk_quda_alloc(bytes);
  memset(s, 0, bytes);
  s->n = n;
  number_near(&s->near);
  for (size_t k = 0; k < n; k++) {
    size_t rest = k * sites / n, index;
    int site[4];
    for (int mu = 0; mu < 4; mu++) {
      site[mu] = (int)(rest % (size_t)links->dims[mu]);
      rest /= (size_t)links->dims[mu];
    }
    if (in_part(links, site, &index))
      memcpy(s->at[k].term, term + index * TERM, sizeof s->at[k].term);
    for (int i = 0; i < NEAR; i++) {
      int at[4];
      for (int mu = 0; mu < 4; mu++) at[mu] = site[mu] + s->near.step[i][mu];
      if (in_part(links, at, &index))
        memcpy(s->at[k].links[i], links->u + index * LINKS, sizeof s->at[k].links[i]);
    }
  }
  /* One rank has each number, the others 0: the sum is exact. */
  qk_quda_sum((double *)s->at, n * sizeof s->at[0] / sizeof(double));
  return s;
}

/* A link of a site at these steps from a sample. */
static void get_link(const qk_quda_samples_t *s, size_t sample, const int step[4], int mu,
                     su3_t u) {
  const int code = step[0] + 1 + 3 * (step[1] + 1) + 9 * (step[2] + 1) + 27 * (step[3] + 1);
  const double *v = s->at[sample].links[s->near.number[code]] + (size_t)mu * 18;
  for (int k = 0; k < 9; k++) u[k / 3][k % 3] = v[2 * k] + I * v[2 * k + 1];
}

/* ---- the term of links ---- */

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

/* Follows a path of signed directions mu + 1 from a sample, and multiplies its links. */
static void walk(const qk_quda_samples_t *s, size_t sample, const int path[4], su3_t out) {
  int at[4] = {0, 0, 0, 0};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) out[i][j] = i == j;
  for (int k = 0; k < 4; k++) {
    const int mu = abs(path[k]) - 1;
    su3_t u;
    if (path[k] < 0) at[mu]--;
    get_link(s, sample, at, mu, u);
    times(out, u, path[k] < 0);
    if (path[k] > 0) at[mu]++;
  }
}

/* F_mu nu = (Q - Q^+) / 8, Q the four leaves that turn from +mu to +nu. */
static void field_strength(const qk_quda_samples_t *s, size_t sample, int mu, int nu, su3_t f) {
  const int m = mu + 1, n = nu + 1;
  const int leaf[4][4] = {{m, n, -m, -n}, {n, -m, -n, m}, {-m, -n, m, n}, {-n, m, n, -m}};
  su3_t q = {{0}}, one;
  for (int k = 0; k < 4; k++) {
    walk(s, sample, leaf[k], one);
    for (int i = 0; i < 9; i++) q[i / 3][i % 3] += one[i / 3][i % 3];
  }
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) f[i][j] = (q[i][j] - conj(q[j][i])) / 8;
}

/* C = -1/2 sum_{mu<nu} plane gamma_mu gamma_nu F: two blocks of 6 x 6, packed as terms are. */
static void clover_at(const qk_quda_samples_t *s, size_t sample, const double plane[6],
                      double packed[TERM]) {
  double complex block[2][6][6] = {{{0}}};
  for (int p = 0; p < 6; p++) {
    const int mu = plane_of[p][0], nu = plane_of[p][1];
    su3_t f;
    field_strength(s, sample, mu, nu, f);
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

double qk_quda_clover_fit(const qk_quda_samples_t *samples, bool split, double *a, double c[2]) {
  static const double space[6] = {1, 1, 1, 0, 0, 0}, time[6] = {0, 0, 0, 1, 1, 1},
                      all[6] = {1, 1, 1, 1, 1, 1};
  enum { UNKNOWNS = 3 };
  const size_t n = samples->n;
  double(*base)[3][TERM] = qk_quda_alloc(n * sizeof *base);
  double m[3][3] = {{0}}, r[3] = {0}, v[3] = {0}, largest = 0, off = 0;
  for (size_t s = 0; s < n; s++) {
    const double *given = samples->at[s].term;
    for (int k = 0; k < TERM; k++) base[s][0][k] = k % BLOCK < 6;
    clover_at(samples, s, split ? space : all, base[s][1]);
    memset(base[s][2], 0, sizeof base[s][2]);
    if (split) clover_at(samples, s, time, base[s][2]);
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
      double d = samples->at[s].term[k];
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
