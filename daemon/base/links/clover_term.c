#include "daemon/base/links/clover_term.h"

#include <complex.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { ROWS = 6, BLOCK = 36 };

void qk_clover_term_add(const double site[QK_CLOVER_TERM_SITE], uint64_t global,
                        qk_clover_term_sum_t *s) {
  for (int k = 0; k < QK_CLOVER_TERM_SITE; k++) {
    const double x = fabs(site[k]);
    if (isfinite(x)) {
      if (x > s->largest) s->largest = x;
      s->squares += (k % BLOCK < ROWS ? 1 : 2) * x * x;
    } else if (s->bad++ == 0 || global < s->site) {
      s->site = global;
      s->number = k;
    }
  }
  s->digest += XXH3_64bits_withSeed(site, QK_CLOVER_TERM_SITE * sizeof *site, (XXH64_hash_t)global);
}

void qk_clover_term_join(qk_clover_term_sum_t *s, const qk_clover_term_sum_t *o) {
  if (o->bad > 0 && (s->bad == 0 || o->site < s->site)) {
    s->site = o->site;
    s->number = o->number;
  }
  s->bad += o->bad;
  s->digest += o->digest;
  s->squares += o->squares;
  s->largest = fmax(s->largest, o->largest);
}

void qk_clover_term_widen(const void *raw, int bits, double site[QK_CLOVER_TERM_SITE]) {
  if (bits == 64) {
    memcpy(site, raw, QK_CLOVER_TERM_SITE * sizeof *site);
    return;
  }
  for (int k = 0; k < QK_CLOVER_TERM_SITE; k++) site[k] = ((const float *)raw)[k];
}

/* ---- singular blocks ------------------------------------------------------------------------- */

static void unpack(const double *block, double complex m[ROWS][ROWS]) {
  const double *below = block + ROWS;
  for (int j = 0; j < ROWS; j++) {
    m[j][j] = block[j];
    for (int i = j + 1; i < ROWS; i++, below += 2) {
      m[i][j] = below[0] + I * below[1];
      m[j][i] = conj(m[i][j]);
    }
  }
}

/* The largest element of rows and columns from k on. */
static double find_pivot(double complex m[ROWS][ROWS], int k, int *row, int *column) {
  double most = -1;
  for (int i = k; i < ROWS; i++)
    for (int j = k; j < ROWS; j++)
      if (cabs(m[i][j]) > most) {
        most = cabs(m[i][j]);
        *row = i;
        *column = j;
      }
  return most;
}

static void bring(double complex m[ROWS][ROWS], int k, int row, int column) {
  for (int j = 0; j < ROWS; j++) {
    const double complex x = m[k][j];
    m[k][j] = m[row][j];
    m[row][j] = x;
  }
  for (int i = 0; i < ROWS; i++) {
    const double complex x = m[i][k];
    m[i][k] = m[i][column];
    m[i][column] = x;
  }
}

static double pivot_of(const double *block) {
  double complex m[ROWS][ROWS];
  double first = 0, last = 0;
  unpack(block, m);
  for (int k = 0; k < ROWS; k++) {
    int row = k, column = k;
    last = find_pivot(m, k, &row, &column);
    if (k == 0) first = last;
    if (!(last > 0)) return 0;
    bring(m, k, row, column);
    for (int i = k + 1; i < ROWS; i++) {
      const double complex f = m[i][k] / m[k][k];
      for (int j = k + 1; j < ROWS; j++) m[i][j] -= f * m[k][j];
    }
  }
  return last / first;
}

double qk_clover_term_pivot(const double site[QK_CLOVER_TERM_SITE]) {
  return fmin(pivot_of(site), pivot_of(site + BLOCK));
}
