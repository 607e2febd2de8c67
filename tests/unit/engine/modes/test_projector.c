/* Projections of solutions onto vectors of time slices that are made by hand, against plain sums.
 * Backend: QK_BACKEND. */
#include <complex.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/modes/projector.h"
#include "proto/quark.pb-c.h"
#include "tests/unit/engine/setup/setup_kit.h"

enum { MOST = 3, COLUMNS = 8, T = 6 };

/* A setup, fields of noise on it with what stands in them, and a projector. */
typedef struct bench {
  loaded_t l;
  qk_projector_t *projector;
  qk_kept_t *kept;
  qk_field_t *x[MOST];
  double complex *host[MOST]; /* in wire order, of the DeGrand-Rossi basis */
} bench_t;

static int64_t sites(const bench_t *b) {
  return 2 * (int64_t)b->l.setup->geom.lat.vcb;
}

static void object_name(char name[64], int i) {
  snprintf(name, 64, "/qk-project-%d-%d", (int)getpid(), i);
}

/* An object of so many bytes, which are all 0xff. */
static void make_object(const char *name, size_t bytes) {
  char *data = malloc(bytes);
  const int fd = shm_open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  cr_assert(data != NULL && fd >= 0);
  memset(data, 0xff, bytes);
  cr_assert_eq(pwrite(fd, data, bytes, 0), (ssize_t)bytes);
  close(fd);
  free(data);
}

static void *read_object(const char *name, size_t bytes) {
  void *data = malloc(bytes);
  const int fd = shm_open(name, O_RDONLY, 0);
  cr_assert(data != NULL && fd >= 0);
  cr_assert_eq(pread(fd, data, bytes, 0), (ssize_t)bytes);
  close(fd);
  return data;
}

/* count vectors of each slice, of random numbers; columns beyond the last are zero. */
static qk_kept_t *make_kept(const bench_t *b, int count, int planes) {
  const size_t plane = (size_t)sites(b) * COLUMNS * 6;
  qk_kept_t *kept = qk_calloc(1, sizeof *kept);
  uint64_t state = (uint64_t)count;
  cr_assert_not_null(kept);
  snprintf(kept->name, sizeof kept->name, "low");
  kept->h.problem.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  kept->h.problem.count = count;
  kept->h.planes = planes;
  kept->h.vectors = 1;
  kept->h.full = true;
  kept->h.nblock = (count + COLUMNS - 1) / COLUMNS;
  for (int k = 0; k < kept->h.nblock; k++) {
    kept->part[k] = qk_calloc(plane * (size_t)planes, sizeof(float));
    cr_assert_not_null(kept->part[k]);
    for (size_t i = 0; i < plane * (size_t)planes; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      if ((int)(i / 6 % COLUMNS) + COLUMNS * k >= count) continue;
      kept->part[k][i] = (float)((double)(state >> 40) * 0x1p-24 - 0.5) * (i < plane ? 1 : 1e-8f);
    }
  }
  return kept;
}

static void make_fields(bench_t *b) {
  const qk_loaded_t *s = b->l.setup;
  const size_t bytes = (size_t)sites(b) * 12 * sizeof(double complex);
  double one[4][4][2];
  char name[64];
  qk_err_t err = {0};
  qk_gamma_basis_export(QK_BASIS_DEGRAND_ROSSI, one);
  object_name(name, 99);
  for (int i = 0; i < MOST; i++) {
    qk_segment_t segment;
    cr_assert_eq(qk_field_create(&s->dev, QK_DOUBLE, 1, QK_FULL, &b->x[i]), QK_OK);
    const qk_noise_args_t noise = {
        .lat = s->geom.lat, .field = b->x[i]->v, .seed = (uint64_t)i + 1};
    cr_assert_eq(s->ops->noise(s->ctx, &noise), QK_OK);
    make_object(name, bytes);
    cr_assert_eq(qk_segment_open(b->l.port->wire, name, true, QK_FULL, true, &segment, &err), QK_OK,
                 "%s", err.text);
    cr_assert_eq(qk_field_io_write(b->l.port, &segment, one, 1, b->x[i], 0, &err), QK_OK);
    qk_segment_close(&segment);
    b->host[i] = read_object(name, bytes);
  }
  shm_unlink(name);
}

static void open_bench(bench_t *b, int count, int planes) {
  qk_load_t load = a_load("builtin:weak:4x4x8x6:1", "cg", QK_SINGLE, 1);
  qk_err_t err = {0};
  *b = (bench_t){.l = must_load(&load)};
  cr_assert_eq(qk_projector_create(b->l.setup, b->l.port->wire, &b->projector, &err), QK_OK);
  b->kept = make_kept(b, count, planes);
  make_fields(b);
}

static void close_bench(bench_t *b) {
  for (int i = 0; i < MOST; i++) {
    qk_field_destroy(b->x[i]);
    free(b->host[i]);
  }
  qk_projector_destroy(b->projector);
  qk_kept_destroy(b->kept);
  close_load(&b->l);
}

static qk_projection_t a_projection(int count, bool is_double, qk_gamma_basis_t basis,
                                    double factor) {
  qk_projection_t what = {.name = "low", .count = count, .is_double = is_double, .factor = factor};
  qk_gamma_basis_export(basis, what.matrix);
  return what;
}

static size_t result_bytes(const qk_projection_t *what) {
  return (size_t)(T * 4 * what->count * 2) * (what->is_double ? 8 : 4);
}

/* tau[t][spin][m] of field i, in the DeGrand-Rossi basis. */
static double complex expected(const bench_t *b, int i, int t, int spin, int m) {
  const int64_t slice = sites(b) / T;
  const float *part = b->kept->part[m / COLUMNS];
  double complex sum = 0;
  for (int64_t x = t * slice; x < (t + 1) * slice; x++)
    for (int c = 0; c < 3; c++) {
      double complex v = 0;
      for (int plane = 0; plane < b->kept->h.planes; plane++) {
        const size_t at = (size_t)((plane * sites(b) + x) * COLUMNS + m % COLUMNS) * 6;
        v += part[at + 2 * (size_t)c] + I * (double)part[at + 2 * (size_t)c + 1];
      }
      sum += conj(v) * b->host[i][x * 12 + 3 * spin + c];
    }
  return sum;
}

/* Projects fields first .. first+n-1; results malloc'd. */
static void run(bench_t *b, int first, int n, const qk_projection_t what[], void *result[]) {
  const qk_field_t *x[MOST];
  const qk_object_t *objects[MOST];
  qk_object_t object[MOST];
  qk_err_t verdict[MOST] = {{0}}, err = {0};
  char name[MOST][64];
  for (int i = 0; i < n; i++) {
    object_name(name[i], i);
    make_object(name[i], result_bytes(&what[i]));
    cr_assert_eq(
        qk_projector_open(b->projector, b->kept, &what[i], name[i], &object[i], &verdict[i], &err),
        QK_OK);
    cr_assert_eq(verdict[i].code, QK_OK, "%s", verdict[i].text);
    x[i] = b->x[first + i];
    objects[i] = &object[i];
  }
  cr_assert_eq(qk_projector_run(b->projector, b->kept, n, what, x, objects, verdict, &err), QK_OK,
               "%s", err.text);
  for (int i = 0; i < n; i++) {
    cr_assert_eq(verdict[i].code, QK_OK, "%s", verdict[i].text);
    qk_object_close(&object[i]);
    result[i] = read_object(name[i], result_bytes(&what[i]));
    shm_unlink(name[i]);
  }
}

static void expect_right(const bench_t *b, int i, const qk_projection_t *what, const void *result) {
  for (int t = 0; t < T; t++)
    for (int m = 0; m < what->count; m++)
      for (int s = 0; s < 4; s++) {
        double complex wanted = 0;
        for (int k = 0; k < 4; k++)
          wanted += (what->matrix[s][k][0] + I * what->matrix[s][k][1]) * expected(b, i, t, k, m);
        const size_t at = 2 * (size_t)((t * 4 + s) * what->count + m);
        const double *d = (const double *)result + at;
        const float *f = (const float *)result + at;
        const double complex got = what->is_double ? d[0] + I * d[1] : f[0] + I * (double)f[1];
        cr_assert_float_eq(cabs(got - what->factor * wanted), 0, what->is_double ? 1e-12 : 1e-5,
                           "slice %d, vector %d, spin %d", t, m, s);
      }
}

Test(projector, gives_the_products_in_basis_and_type_that_are_asked_for) {
  static const struct {
    int count, planes, wanted;
    bool is_double;
    qk_gamma_basis_t basis;
    double factor;
  } c[] = {{11, 1, 11, true, QK_BASIS_DEGRAND_ROSSI, 1},
           {11, 2, 9, true, QK_BASIS_OPENQCD, 0.25},
           {3, 1, 2, false, QK_BASIS_UKQCD, -2},
           {70, 1, 67, true, QK_BASIS_DEGRAND_ROSSI, 1}};
  for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
    bench_t b;
    qk_projection_t what[MOST];
    void *result[MOST];
    open_bench(&b, c[k].count, c[k].planes);
    for (int i = 0; i < MOST; i++)
      what[i] = a_projection(c[k].wanted, c[k].is_double, c[k].basis, c[k].factor * (i + 1));
    run(&b, 0, MOST, what, result);
    for (int i = 0; i < MOST; i++) expect_right(&b, i, &what[i], result[i]);
    for (int i = 0; i < MOST; i++) {
      void *alone[1];
      if (i == 1) qk_projector_rest(b.projector);
      run(&b, i, 1, &what[i], alone);
      cr_expect_eq(memcmp(alone[0], result[i], result_bytes(&what[i])), 0, "not the same bits");
      free(alone[0]);
    }
    for (int i = 0; i < MOST; i++) free(result[i]);
    close_bench(&b);
  }
}

Test(projector, what_cannot_be_projected_is_refused_before_the_solve) {
  bench_t b;
  qk_object_t object = {.fd = -1};
  open_bench(&b, 11, 1);
  qk_projection_t what = a_projection(11, true, QK_BASIS_DEGRAND_ROSSI, 1);
  char name[64];
  object_name(name, 0);
  make_object(name, result_bytes(&what));
#define REFUSED(kept, status, word)                                                                \
  do {                                                                                             \
    qk_err_t verdict = {0}, err = {0};                                                             \
    cr_assert_eq(qk_projector_open(b.projector, kept, &what, name, &object, &verdict, &err),       \
                 QK_OK);                                                                           \
    cr_expect_eq(verdict.code, status, "%s", verdict.text);                                        \
    cr_expect(strstr(verdict.text, word), "%s", verdict.text);                                     \
    cr_expect_eq(object.fd, -1);                                                                   \
  } while (0)
  REFUSED(NULL, QK_NOT_FOUND, "low");
  what.count = 12;
  REFUSED(b.kept, QK_BAD_ARGUMENT, "11 vectors");
  what.count = 10; /* the object is larger */
  REFUSED(b.kept, QK_BAD_ARGUMENT, "bytes");
  what.count = 11;
  b.kept->h.problem.kind = QUARK__EIGEN_KIND__EIGEN_NORMAL;
  REFUSED(b.kept, QK_BAD_ARGUMENT, "time slices");
  b.kept->h.problem.kind = QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  shm_unlink(name);
  REFUSED(b.kept, QK_BAD_ARGUMENT, name);
#undef REFUSED
  close_bench(&b);
}

/* Before the solve, and after it: no memory for this right-hand side, and nothing stays. */
Test(projector, want_of_memory_concerns_one_right_hand_side) {
  static const char *const point[] = {"alloc", "device-alloc"};
  bench_t b;
  open_bench(&b, 11, 1);
  const qk_projection_t what = a_projection(11, true, QK_BASIS_DEGRAND_ROSSI, 1);
  const qk_field_t *x = b.x[0];
  char name[64];
  object_name(name, 0);
  make_object(name, result_bytes(&what));
  for (int p = 0; p < 2; p++) {
    int failed = 0;
    bool whole = false;
    for (int n = 1; n < 20 && !whole; n++) {
      char faults[64];
      qk_object_t object = {.fd = -1};
      const qk_object_t *objects = &object;
      qk_err_t verdict = {0}, err = {0};
      qk_projector_rest(b.projector);
      const int64_t host = qk_mem_bytes(), device = b.l.setup->ops->allocated(b.l.setup->ctx);
      snprintf(faults, sizeof faults, "%s:%d", point[p], n);
      cr_assert_eq(qk_fault_set(faults), 0);
      qk_status_t status =
          qk_projector_open(b.projector, b.kept, &what, name, &object, &verdict, &err);
      if (status == QK_OK && verdict.code == QK_OK)
        status = qk_projector_run(b.projector, b.kept, 1, &what, &x, &objects, &verdict, &err);
      cr_assert_eq(qk_fault_set(NULL), 0);
      qk_object_close(&object);
      cr_assert_eq(status, QK_OK, "%s: %s", faults, err.text);
      cr_expect(verdict.code == QK_OK || verdict.code == QK_NO_MEMORY, "%s: %s", faults,
                verdict.text);
      whole = verdict.code == QK_OK;
      failed += !whole;
      qk_projector_rest(b.projector);
      cr_expect_eq(qk_mem_bytes(), host, "%s", faults);
      cr_expect_eq(b.l.setup->ops->allocated(b.l.setup->ctx), device, "%s", faults);
    }
    cr_expect(whole && failed > 1, "%s: %d failures", point[p], failed);
  }
  shm_unlink(name);
  close_bench(&b);
}

/* A right-hand side whose vectors are not there is not solved for. */
Test(projector, names_that_are_not_there_end_their_fill_alone) {
  qk_load_t load = a_load("builtin:weak:4x4x8x6:1", "cg", QK_SINGLE, 2);
  loaded_t l = must_load(&load);
  qk_fill_t fill[2] = {noise_for(0, 11), noise_for(1, 12)};
  qk_result_t result[QK_INFLIGHT_MAX] = {0};
  snprintf(fill[0].project, sizeof fill[0].project, "low");
  fill[0].project_count = 3;
  object_name(fill[0].shm_out, 0);
  fill_entries(&l, 2, fill);
  run_entries(&l, result);
  cr_expect(result[0].refused && result[0].err.code == QK_NOT_FOUND, "%s", result[0].err.text);
  cr_expect(strstr(result[0].err.text, "low"), "%s", result[0].err.text);
  cr_expect(!result[1].refused && result[1].err.code == QK_OK, "%s", result[1].err.text);
  close_load(&l);
}
