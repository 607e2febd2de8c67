/* A sweep over the flavours of a doublet: vector_system (operator.h). */
#include <criterion/criterion.h>

#include "daemon/base/mem.h"
#include "tests/support/rig.h"

/* One right-hand side in double. */
static qk_field_t *take(qk_work_t *work, qk_subset_t subset) {
  qk_field_t *f;
  rig_must(qk_work_reserve(work, QK_DOUBLE, 1, subset, &f), "field", NULL);
  return f;
}

static void blas(const qk_rig_t *rig, qk_blas_op_t op, qk_spinor_t a, qk_spinor_t b,
                 const double *c) {
  const qk_blas_args_t args = {.op = op, .f = {a, b}, .c = {c}};
  rig_must(rig->dev.ops->blas(rig->dev.ctx, &args), "blas", NULL);
}

static qk_spinor_t half(const qk_field_t *f, qk_subset_t parity) {
  return qk_field_parity(f, parity);
}

/* |a - b| / |b| of even halves. */
static double off(const qk_rig_t *rig, const qk_field_t *a, const qk_field_t *b) {
  qk_field_t *fa = take(rig->work, QK_FULL), *fb = take(rig->work, QK_FULL);
  double *va = rig_vector(rig), *vb = rig_vector(rig);
  const qk_field_t *from[] = {a, b};
  qk_field_t *to[] = {fa, fb};
  for (int i = 0; i < 2; i++) {
    blas(rig, QK_BLAS_ZERO, to[i]->v, to[i]->v, NULL);
    blas(rig, QK_BLAS_COPY, half(to[i], QK_EVEN), half(from[i], QK_EVEN), NULL);
    rig_export(rig, to[i], 0, i == 0 ? va : vb);
  }
  const double distance = rig_distance(rig, va, vb);
  qk_free(va);
  qk_free(vb);
  qk_work_release(rig->work, fb);
  qk_work_release(rig->work, fa);
  return distance;
}

/* Vectors x_k of which M_0 x_0 and M_1 x_1 - epsilon x_0 are 0 on odd sites, and b, what they are
 * on even ones. lambda: a device scalar that is epsilon. */
typedef struct lines {
  qk_field_t *x[2], *b[2];
  const uint8_t *minus;
  const double *epsilon, *minus_epsilon;
} lines_t;

static void make_line(qk_rig_t *rig, const lines_t *l, int k) {
  qk_operator_t *base = rig->op->base;
  qk_field_t *source = take(rig->work, QK_FULL), *x = l->x[k];
  const qk_noise_args_t noise = {
      .lat = rig->geom.lat, .field = x->v, .rhs = -1, .seed = 5 + (uint64_t)k};
  rig_must(rig->dev.ops->noise(rig->dev.ctx, &noise), "noise", NULL);
  qk_flavours_set(base, k ? l->minus : NULL);
  blas(rig, QK_BLAS_ZERO, source->v, source->v, NULL);
  if (k) blas(rig, QK_BLAS_AXPY, half(source, QK_ODD), half(l->x[0], QK_ODD), l->epsilon);
  qk_field_t *even = take(rig->work, QK_EVEN);
  blas(rig, QK_BLAS_COPY, even->v, half(x, QK_EVEN), NULL);
  rig_must(base->ops->reconstruct(base, x, even, source), "reconstruct", NULL);
  rig_must(base->ops->apply(base, l->b[k], x, false, NULL, 0), "apply", NULL);
  if (k) blas(rig, QK_BLAS_AXPY, l->b[k]->v, l->x[0]->v, l->minus_epsilon);
  qk_flavours_set(base, NULL);
  qk_work_release(rig->work, even);
  qk_work_release(rig->work, source);
}

/* r = T^-1 b on even sites; both of the doublet. */
static qk_field_t *right_hand_side(qk_rig_t *rig, const lines_t *l) {
  qk_work_t *work = rig->op->work;
  qk_field_t *r = take(work, QK_EVEN), *b = take(work, QK_EVEN);
  for (int k = 0; k < 2; k++)
    blas(rig, QK_BLAS_COPY, qk_field_vector(b, k).v, half(l->b[k], QK_EVEN), NULL);
  rig_must(rig->op->ops->diag(rig->op, r, b, true, false), "T^-1", NULL);
  qk_work_release(work, b);
  return r;
}

static void check_line(qk_rig_t *rig, const lines_t *l, int k, const qk_field_t *r,
                       const qk_field_t *z) {
  qk_operator_t *base = rig->op->base;
  qk_field_t *x = take(rig->work, QK_EVEN), *want = take(rig->work, QK_EVEN);
  qk_field_t *found = take(rig->work, QK_EVEN);
  blas(rig, QK_BLAS_COPY, x->v, half(l->x[k], QK_EVEN), NULL);
  qk_flavours_set(base, k ? l->minus : NULL);
  rig_must(base->ops->apply_system(base, want, x, false, NULL), "apply", NULL);
  qk_flavours_set(base, NULL);
  rig_must(rig->op->ops->vector_system(rig->op, found, k, r, z), "system", NULL);
  cr_expect(off(rig, found, want) < 1e-14, "flavour %d: off by %g", k, off(rig, found, want));
  qk_work_release(rig->work, found);
  qk_work_release(rig->work, want);
  qk_work_release(rig->work, x);
}

static void *to_device(const qk_rig_t *rig, const void *host, size_t bytes) {
  void *device;
  rig_must(rig->dev.ops->alloc(rig->dev.ctx, bytes, &device), "memory", NULL);
  rig_must(rig->dev.ops->copy(rig->dev.ctx, device, host, bytes, QK_COPY_TO_DEVICE, 0), "copy",
           NULL);
  rig_must(rig->dev.ops->queue_sync(rig->dev.ctx, 0), "copy", NULL);
  return device;
}

/* If the upper line of M x = b, without the lower flavour, is solved, the system of the lower one
 * is that of the whole lower line. */
static void check_sweep(const char *text) {
  static const double factor[2][2] = {{0.3, 0}, {-0.3, 0}};
  static const uint8_t one = 1;
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x6x2x8:7", NULL);
  rig_action(&rig, text, -1);
  double *const scalar = to_device(&rig, factor, sizeof factor);
  uint8_t *const minus = to_device(&rig, &one, 1);
  lines_t l = {.minus = minus, .epsilon = scalar, .minus_epsilon = scalar + 2};
  for (int k = 0; k < 2; k++) {
    l.x[k] = take(rig.work, QK_FULL);
    l.b[k] = take(rig.work, QK_FULL);
  }
  for (int k = 0; k < 2; k++) make_line(&rig, &l, k);
  qk_field_t *r = right_hand_side(&rig, &l), *z = take(rig.op->work, QK_EVEN);
  blas(&rig, QK_BLAS_COPY, qk_field_vector(z, 0).v, half(l.x[0], QK_EVEN), NULL);
  for (int k = 0; k < 2; k++) check_line(&rig, &l, k, r, z);
  qk_work_release(rig.op->work, z);
  qk_work_release(rig.op->work, r);
  for (int k = 1; k >= 0; k--) {
    qk_work_release(rig.work, l.b[k]);
    qk_work_release(rig.work, l.x[k]);
  }
  rig.dev.ops->free(rig.dev.ctx, minus);
  rig.dev.ops->free(rig.dev.ctx, scalar);
  rig_close(&rig);
}

Test(doublet, systems_of_the_flavours_are_the_lines_of_the_operator) {
  check_sweep("doublet;mass=0.1;mu=0.4;epsilon=0.3;csw=1.2");
  check_sweep("doublet;mass=0.1;mu=-0.2;epsilon=0.3");
}
