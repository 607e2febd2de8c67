/* A basis of more vectors than a kernel rotates in place. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/lanczos_rotate.h"
#include "tests/unit/engine/eigen/deflation_kit.h"

enum { B = QK_EIGEN_BLOCK, BLOCKS = QK_BASIS_MAX / B + 2, MADE = 6, N = BLOCKS * B };

static double complex number(int i, int j) {
  return cos(i + 3 * j) / 8 + I * sin(i * j) / 8;
}

/* The new block b, from the old ones beside it. */
static qk_field_t *combine(qk_lanczos_basis_t *k, const qk_rig_t *rig, int b) {
  qk_field_t *y;
  double complex c[N][B];
  rig_must(qk_field_create(&rig->dev, k->prec, B, QK_EVEN, &y), "field", NULL);
  qk_dev_blas(&rig->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {y->v}});
  for (int i = 0; i < N; i++)
    for (int j = 0; j < B; j++) c[i][j] = number(i, b * B + j);
  qk_dev_copy(&rig->dev, k->c, c, sizeof c, QK_COPY_TO_DEVICE);
  qk_lanczos_add_blocks(k, k->v, BLOCKS, y, 1);
  qk_dev_sync(&rig->dev);
  return y;
}

static void expect_same(const qk_rig_t *rig, const qk_field_t *a, const qk_field_t *b) {
  double whole[B], off[B];
  column_norms(rig, a, whole);
  qk_dev_blas(&rig->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {a->v, a->v, b->v}});
  column_norms(rig, a, off);
  for (int i = 0; i < B; i++) cr_expect(off[i] < 1e-13 * whole[i], "%g of %g", off[i], whole[i]);
}

/* In several parts, and the vectors are the combinations that were asked for. */
Test(lanczos_basis, is_rotated_in_parts) {
  const qk_lanczos_params_t p = {.n = N, .space = N, .prec = QK_DOUBLE};
  qk_rig_t rig;
  qk_lanczos_basis_t k;
  qk_field_t *want[MADE];
  double complex *q = calloc((size_t)N * N, sizeof *q);
  int64_t unit = 0;
  int parts = 0;
  rig_open(&rig, NULL, "random:4x8x8x16:5", NULL);
  rig_operator(&rig, -0.7, 0, -1);
  rig_must(qk_lanczos_basis_init(&k, rig.op, rig.work, &p), "basis", NULL);
  for (int b = 0; b < BLOCKS; b++) set_columns(&rig, k.v[b], (uint64_t)b + 1);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < MADE * B; j++) q[j * N + i] = number(i, j);
  for (int b = 0; b < MADE; b++) want[b] = combine(&k, &rig, b);
  for (bool over = false; !over; parts++)
    rig_must(qk_lanczos_rotate_some(&k, BLOCKS, MADE * B, q, N, &unit, &over), "part", NULL);
  cr_expect(parts > 1, "%d parts", parts);
  for (int b = 0; b < MADE; b++) {
    expect_same(&rig, want[b], k.v[b]);
    qk_field_destroy(want[b]);
  }
  qk_lanczos_basis_fini(&k);
  free(q);
  rig_close(&rig);
}
