#include "tests/support/staggered/colours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

void colours_open(qk_rig_t *rig, qk_comm_t *comm, const char *gauge, const int dims[4],
                  const char *action, double phase_t) {
  rig_open(rig, comm, gauge, dims);
  rig->geom.ncomp = QK_COLOUR_COMPONENTS;
  rig_action(rig, action, phase_t);
}

size_t colours_numbers(const qk_rig_t *rig) {
  return (size_t)rig->geom.local_volume * 3;
}

double complex *colours_vector(const qk_rig_t *rig) {
  return qk_calloc(colours_numbers(rig), sizeof(double complex));
}

void colours_site(const qk_rig_t *rig, size_t n, int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    const size_t l = (size_t)rig->geom.lat.l[mu];
    x[mu] = (int)(n % l) + rig->geom.lat.offset[mu];
    n /= l;
  }
}

static double uniform(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

void colours_random(const qk_rig_t *rig, uint64_t seed, double complex *v) {
  const int *g = rig->geom.global;
  for (size_t i = 0; i < colours_numbers(rig); i++) {
    int x[4];
    colours_site(rig, i / 3, x);
    uint64_t state =
        (uint64_t)((((int64_t)x[3] * g[2] + x[2]) * g[1] + x[1]) * g[0] + x[0]) * 3 + i % 3;
    state = state * 0x2545f4914f6cdd1du + seed;
    const double re = uniform(&state);
    v[i] = re + I * uniform(&state);
  }
}

/* Words of a field in double of one right-hand side: component c of local site n. */
static size_t word_of(const qk_rig_t *rig, size_t n, size_t c) {
  const size_t piece = (size_t)rig->dev.ops->piece;
  int x[4], sum = 0;
  colours_site(rig, n, x);
  for (int mu = 0; mu < 4; mu++) sum += x[mu];
  const size_t site = (sum & 1 ? (size_t)rig->geom.lat.vcb : 0) + n / 2;
  const size_t at = (c / piece * QK_TILE + site % QK_TILE) * piece + c % piece;
  return site / QK_TILE * (QK_TILE * 2 * QK_COLOUR_COMPONENTS) + at;
}

static qk_field_t *column(const qk_rig_t *rig) {
  qk_field_t *one = NULL;
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 1, QK_FULL, &one), "colours", NULL);
  return one;
}

static void move(const qk_rig_t *rig, void *to, const void *from, size_t bytes, qk_copy_t kind) {
  qk_dev_copy(&rig->dev, to, from, bytes, kind);
  qk_dev_sync(&rig->dev);
  rig_must(qk_dev_status(&rig->dev), "colours", NULL);
}

void colours_import(const qk_rig_t *rig, const qk_field_t *field, int rhs,
                    const double complex *v) {
  qk_field_t *one = column(rig);
  double *words = qk_calloc(one->bytes, 1);
  for (size_t i = 0; i < colours_numbers(rig); i++) {
    words[word_of(rig, i / 3, 2 * (i % 3))] = creal(v[i]);
    words[word_of(rig, i / 3, 2 * (i % 3) + 1)] = cimag(v[i]);
  }
  move(rig, one->v.data, words, one->bytes, QK_COPY_TO_DEVICE);
  const qk_rhs_copy_args_t copy = {.to = field->v, .from = one->v, .to_rhs = rhs};
  rig_must(rig->dev.ops->rhs_copy(rig->dev.ctx, &copy), "colours", NULL);
  qk_dev_sync(&rig->dev);
  qk_free(words);
  qk_field_destroy(one);
}

void colours_export(const qk_rig_t *rig, const qk_field_t *field, int rhs, double complex *v) {
  qk_field_t *one = column(rig);
  double *words = qk_calloc(one->bytes, 1);
  const qk_rhs_copy_args_t copy = {.to = one->v, .from = field->v, .from_rhs = rhs};
  rig_must(rig->dev.ops->rhs_copy(rig->dev.ctx, &copy), "colours", NULL);
  move(rig, words, one->v.data, one->bytes, QK_COPY_TO_HOST);
  for (size_t i = 0; i < colours_numbers(rig); i++)
    v[i] =
        words[word_of(rig, i / 3, 2 * (i % 3))] + I * words[word_of(rig, i / 3, 2 * (i % 3) + 1)];
  qk_free(words);
  qk_field_destroy(one);
}

double complex colours_dot(const qk_rig_t *rig, const double complex *a, const double complex *b) {
  double sum[2] = {0, 0};
  for (size_t i = 0; i < colours_numbers(rig); i++) {
    const double complex z = conj(a[i]) * b[i];
    sum[0] += creal(z);
    sum[1] += cimag(z);
  }
  rig_must(qk_comm_sum(rig->comm, sum, 2), "sum", NULL);
  return sum[0] + I * sum[1];
}

double colours_distance(const qk_rig_t *rig, const double complex *a, const double complex *b) {
  double sum[2] = {0, 0};
  for (size_t i = 0; i < colours_numbers(rig); i++) {
    sum[0] += creal((a[i] - b[i]) * conj(a[i] - b[i]));
    sum[1] += creal(b[i] * conj(b[i]));
  }
  rig_must(qk_comm_sum(rig->comm, sum, 2), "sum", NULL);
  return sqrt(sum[0] / sum[1]);
}
