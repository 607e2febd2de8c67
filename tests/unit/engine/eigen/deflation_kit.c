#include "tests/unit/engine/eigen/deflation_kit.h"

#include <criterion/criterion.h>
#include <math.h>

void set_columns(const qk_rig_t *rig, qk_field_t *f, uint64_t seed) {
  qk_field_t *full;
  rig_must(qk_field_create(&rig->dev, f->v.prec, f->v.nrhs, QK_FULL, &full), "field", NULL);
  qk_noise_args_t noise = {.lat = rig->geom.lat, .field = full->v, .rhs = -1, .seed = seed};
  rig_must(rig->dev.ops->noise(rig->dev.ctx, &noise), "noise", NULL);
  qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {f->v, qk_field_parity(full, QK_EVEN)}};
  rig_must(rig->dev.ops->blas(rig->dev.ctx, &copy), "copy", NULL);
  qk_field_destroy(full);
}

void column_norms(const qk_rig_t *rig, const qk_field_t *f, double *norm) {
  double host[QK_MAX_RHS][2];
  void *red = NULL;
  const size_t bytes = (size_t)f->v.nrhs * sizeof host[0];
  rig_must(rig->dev.ops->alloc(rig->dev.ctx, bytes, &red), "alloc", NULL);
  qk_blas_args_t a = {.op = QK_BLAS_NORM2, .f = {f->v}, .red = red};
  rig_must(rig->dev.ops->blas(rig->dev.ctx, &a), "norm", NULL);
  rig_must(rig->dev.ops->copy(rig->dev.ctx, host, red, bytes, QK_COPY_TO_HOST, 0), "copy", NULL);
  rig_must(rig->dev.ops->queue_sync(rig->dev.ctx, 0), "sync", NULL);
  rig->dev.ops->free(rig->dev.ctx, red);
  for (int i = 0; i < f->v.nrhs; i++) norm[i] = sqrt(host[i][0]);
}

void expect_deflated(qk_rig_t *rig, qk_deflation_t *d, qk_prec_t prec, int nrhs, double rest) {
  qk_field_t *f[4];
  double first[QK_MAX_RHS], again[QK_MAX_RHS], before[QK_MAX_RHS], after[QK_MAX_RHS];
  rig_must(qk_deflation_prepare(d, nrhs), "prepare", NULL);
  const int64_t held = rig->dev.ops->allocated(rig->dev.ctx);
  for (int i = 0; i < 4; i++)
    rig_must(qk_field_create(&rig->dev, prec, nrhs, QK_EVEN, &f[i]), "field", NULL);
  const int64_t fields = rig->dev.ops->allocated(rig->dev.ctx) - held;
  set_columns(rig, f[1], 5);
  column_norms(rig, f[1], before);
  rig_must(qk_deflation_apply(d, f[0], f[1]), "apply", NULL);
  if (prec == QK_SINGLE)
    cr_expect_eq(rig->dev.ops->allocated(rig->dev.ctx), held + fields, "apply allocates");
  column_norms(rig, f[0], first);
  rig_must(rig->op->ops->apply_system(rig->op, f[2], f[0], false, f[1]), "residual", NULL);
  column_norms(rig, f[2], after);
  rig_must(qk_deflation_apply(d, f[3], f[2]), "apply", NULL);
  column_norms(rig, f[3], again);
  for (int i = 0; i < nrhs; i++) {
    cr_expect(after[i] < before[i], "column %d: |r| from %g to %g", i, before[i], after[i]);
    cr_expect(again[i] < rest * first[i], "column %d: %g after %g", i, again[i], first[i]);
  }
  for (int i = 0; i < 4; i++) qk_field_destroy(f[i]);
}
