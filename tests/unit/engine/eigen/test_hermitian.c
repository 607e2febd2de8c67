/* Dense problems: small ones at once, large ones by a thread. */
#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/hermitian.h"
#include "tests/support/rig.h"

/* a_ij = 1 for i = j, z for |i - j| = 1 (below), conj(z) above: eigenvalues 1 + 2
 * |z| cos(k pi / (n + 1)). */
Test(hermitian, chain_has_its_eigenvalues) {
  enum { N = 40 };
  const double complex z = 0.3 - 0.4 * I;
  double complex a[N * N] = {0}, v[N * N];
  double w[N];
  qk_comm_t *comm;
  rig_must(qk_comm_self_create(&comm, NULL), "comm", NULL);
  for (int j = 0; j < N; j++) {
    a[j * N + j] = 1;
    if (j + 1 < N) a[j * N + j + 1] = z;
    if (j > 0) a[j * N + j - 1] = conj(z);
  }
  memcpy(v, a, sizeof v);
  cr_assert_eq(qk_hermitian_eigen(comm, N, v, w), QK_OK);
  for (int k = 0; k < N; k++) {
    cr_expect(fabs(w[k] - 1 - cos((N - k) * acos(-1) / (N + 1))) < 1e-13, "value %d", k);
    double off = 0;
    for (int i = 0; i < N; i++) {
      double complex sum = -w[k] * v[k * N + i];
      for (int j = 0; j < N; j++) sum += a[j * N + i] * v[k * N + j];
      off += creal(sum * conj(sum));
    }
    cr_expect(sqrt(off) < 1e-13, "vector %d: %g", k, sqrt(off));
  }
  a[7] = NAN;
  cr_expect_eq(qk_hermitian_eigen(comm, N, a, w), QK_BREAKDOWN);
  qk_comm_destroy(comm);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* a = s^+ d s and g = s^+ s with s upper triangular and far from unitary: d are the eigenvalues. */
typedef struct pair {
  int n, ld;
  double complex *s, *a, *g; /* [ld][ld], column by column */
  double *d;
} pair_t;

static double complex *matrix(int ld) {
  double complex *m = qk_calloc((size_t)ld * (size_t)ld, sizeof *m);
  cr_assert_not_null(m);
  return m;
}

static double complex *at(double complex *m, const pair_t *p, int i, int j) {
  return m + (size_t)j * (size_t)p->ld + (size_t)i;
}

static void make_pair(pair_t *p, int n, int ld) {
  *p = (pair_t){.n = n, .ld = ld, .s = matrix(ld), .a = matrix(ld), .g = matrix(ld)};
  p->d = qk_calloc((size_t)n, sizeof *p->d);
  for (int j = 0; j < n; j++) {
    p->d[j] = 0.01 * (j + 1) + 1e-3 * sin(j);
    *at(p->s, p, j, j) = 1 + 0.5 * cos(3 * j);
    for (int i = 0; i < j; i++) *at(p->s, p, i, j) = (cos(i + 2 * j) + I * sin(i * j)) / (2 * n);
  }
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++)
      for (int k = 0; k <= i && k <= j; k++) {
        const double complex z = conj(*at(p->s, p, k, i)) * *at(p->s, p, k, j);
        *at(p->a, p, i, j) += p->d[k] * z;
        *at(p->g, p, i, j) += z;
      }
}

static void free_pair(pair_t *p) {
  qk_free(p->d);
  qk_free(p->g);
  qk_free(p->a);
  qk_free(p->s);
}

/* Values w, and columns x with s x = e_k but for a phase; what lies beyond n in a column is as it
 * was. */
static void expect_solved(const pair_t *p, double complex *x, const double *w) {
  for (int k = 0; k < p->n; k++) {
    double off = 0;
    cr_assert(fabs(w[k] - p->d[k]) < 1e-12, "value %d: %.17g, %.17g", k, w[k], p->d[k]);
    for (int i = 0; i < p->n; i++) {
      double complex sum = 0;
      for (int j = i; j < p->n; j++) sum += *at(p->s, p, i, j) * *at(x, p, j, k);
      off = fmax(off, fabs(cabs(sum) - (i == k)));
    }
    cr_assert(off < 1e-11, "vector %d: %g", k, off);
    for (int i = p->n; i < p->ld; i++) cr_assert(*at(x, p, i, k) == 0);
  }
}

Test(hermitian, pair_has_its_eigenvalues) {
  static const int size[][2] = {{1, 8}, {13, 16}, {40, 40}};
  qk_comm_t *comm;
  rig_must(qk_comm_self_create(&comm, NULL), "comm", NULL);
  for (int k = 0; k < 3; k++) {
    pair_t p;
    double w[40];
    make_pair(&p, size[k][0], size[k][1]);
    cr_assert_eq(qk_hermitian_eigen_pair(comm, p.n, p.a, p.ld, p.g, 1e-12, w), QK_OK);
    expect_solved(&p, p.a, w);
    free_pair(&p);
  }
  qk_comm_destroy(comm);
}

/* A vector that depends on others up to 1e-5, and numbers that are none. */
Test(hermitian, pair_of_dependent_vectors_is_refused) {
  enum { N = 12, LD = 16 };
  qk_comm_t *comm;
  double w[N];
  rig_must(qk_comm_self_create(&comm, NULL), "comm", NULL);
  for (int k = 0; k < 4; k++) {
    pair_t p;
    make_pair(&p, N, LD);
    *at(p.s, &p, 7, 7) = 1e-5;
    for (int i = 0; i < N; i++) /* column 7 is what the others have of it, and little more */
      for (int j = 0; j < N; j++)
        if (i == 7 || j == 7) {
          double complex z = 0;
          for (int m = 0; m <= i && m <= j; m++) z += conj(*at(p.s, &p, m, i)) * *at(p.s, &p, m, j);
          *at(p.g, &p, i, j) = z;
        }
    if (k == 2) *at(p.g, &p, 3, 9) = NAN;
    if (k == 3) *at(p.a, &p, 9, 3) = INFINITY;
    const double least = k == 0 ? 1e-6 : 1e-14;
    cr_expect_eq(qk_hermitian_eigen_pair(comm, N, p.a, LD, p.g, least, w),
                 k == 1 ? QK_OK : QK_BREAKDOWN, "case %d", k);
    free_pair(&p);
  }
  qk_comm_destroy(comm);
}

/* ---- beside other work ----------------------------------------------------------------------- */

Test(hermitian, thread_gives_the_same_bits) {
  enum { N = 100, LD = 104 };
  pair_t p, q;
  double w[N], v[N];
  bool over = false;
  qk_comm_t *comm;
  qk_hermitian_job_t *job;
  rig_must(qk_comm_self_create(&comm, NULL), "comm", NULL);
  make_pair(&p, N, LD);
  make_pair(&q, N, LD);
  const int64_t host = qk_mem_bytes();
  cr_assert_eq(qk_hermitian_begin_pair(comm, N, p.a, LD, p.g, 1e-12, &job), QK_OK);
  p.g = NULL;
  while (!over) cr_assert_eq(qk_hermitian_poll(comm, &job, N, p.a, LD, w, &over), QK_OK);
  cr_expect(job == NULL && qk_mem_bytes() < host, "its memory stays");
  expect_solved(&p, p.a, w);
  cr_assert_eq(qk_hermitian_eigen_pair(comm, N, q.a, LD, q.g, 1e-12, v), QK_OK);
  cr_expect_eq(memcmp(w, v, sizeof w), 0);
  cr_expect_eq(memcmp(p.a, q.a, (size_t)LD * LD * sizeof *p.a), 0);
  free_pair(&p);
  free_pair(&q);
  qk_comm_destroy(comm);
}

/* Wherever it is: the thread ends for itself. */
Test(hermitian, thread_that_is_dropped_leaves_nothing) {
  enum { N = 160 };
  qk_comm_t *comm;
  rig_must(qk_comm_self_create(&comm, NULL), "comm", NULL);
  for (int polls = 0; polls < 3; polls++) {
    pair_t p;
    double w[N];
    bool over = false;
    qk_hermitian_job_t *job;
    make_pair(&p, N, N);
    const int64_t host = qk_mem_bytes();
    cr_assert_eq(qk_hermitian_begin_pair(comm, N, p.a, N, p.g, 1e-12, &job), QK_OK);
    p.g = NULL;
    for (int i = 0; i < polls && !over; i++)
      cr_assert_eq(qk_hermitian_poll(comm, &job, N, p.a, N, w, &over), QK_OK);
    qk_hermitian_drop(job);
    while (qk_mem_bytes() >= host) sched_yield();
    free_pair(&p);
  }
  qk_comm_destroy(comm);
}

/* Its matrices are there until leave says that it has ended, and not any longer. */
Test(hermitian, thread_that_is_left_is_waited_for) {
  enum { N = 160 };
  qk_comm_t *comm;
  qk_hermitian_job_t *none = NULL;
  bool over = false;
  rig_must(qk_comm_self_create(&comm, NULL), "comm", NULL);
  for (int polls = 0; polls < 3; polls++) {
    pair_t p;
    double w[N];
    qk_hermitian_job_t *job;
    make_pair(&p, N, N);
    const int64_t host = qk_mem_bytes();
    cr_assert_eq(qk_hermitian_begin_pair(comm, N, p.a, N, p.g, 1e-12, &job), QK_OK);
    p.g = NULL;
    over = false;
    for (int i = 0; i < polls && !over; i++)
      cr_assert_eq(qk_hermitian_poll(comm, &job, N, p.a, N, w, &over), QK_OK);
    for (over = false; !over;) {
      if (job) cr_expect(qk_mem_bytes() > host, "its memory is gone");
      cr_assert_eq(qk_hermitian_leave(comm, &job, &over), QK_OK);
    }
    cr_expect(job == NULL && qk_mem_bytes() < host, "its memory stays");
    free_pair(&p);
  }
  cr_assert_eq(qk_hermitian_leave(comm, &none, &over), QK_OK);
  cr_expect(over);
  qk_comm_destroy(comm);
}
