#include <criterion/criterion.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/scalars.h"
#include "tests/support/rig.h"

static const char *lattice = "builtin:unit:4x2x6x4";

static int64_t device_bytes(const qk_rig_t *rig) {
  return rig->dev.ops->allocated(rig->dev.ctx);
}

Test(field, import_and_export_are_inverse_in_every_precision_and_shape) {
  qk_rig_t rig;
  rig_open(&rig, NULL, lattice, NULL);
  const double bound[3] = {0, 1e-7, 1e-3};
  const int nrhs[] = {1, 3, 8, 13};
  double *in = rig_vector(&rig), *out = rig_vector(&rig);
  for (int p = 0; p < 3; p++)
    for (int k = 0; k < 4; k++) {
      qk_field_t *f;
      cr_assert(qk_field_create(&rig.dev, (qk_prec_t)p, nrhs[k], QK_FULL, &f) == QK_OK);
      for (int i = 0; i < nrhs[k]; i++) {
        rig_random(&rig, 10 + i, in);
        rig_import(&rig, f, i, in);
      }
      for (int i = 0; i < nrhs[k]; i++) {
        rig_random(&rig, 10 + i, in);
        rig_export(&rig, f, i, out);
        double d = rig_distance(&rig, out, in);
        cr_expect(d <= bound[p], "precision %d, column %d of %d: off by %g", p, i, nrhs[k], d);
      }
      qk_field_destroy(f);
    }
  qk_free(out);
  qk_free(in);
  rig_close(&rig);
}

/* The wire order says which sites are even; the halves of a full field must be those. */
Test(field, parity_views_are_the_even_and_the_odd_sites) {
  qk_rig_t rig;
  rig_open(&rig, NULL, lattice, NULL);
  for (int p = 0; p < 3; p++)
    for (int nrhs = 1; nrhs < 10; nrhs += 8) {
      qk_field_t *f;
      double *v = rig_vector(&rig);
      cr_assert(qk_field_create(&rig.dev, (qk_prec_t)p, nrhs, QK_FULL, &f) == QK_OK);
      for (size_t i = 0; i < rig_reals(&rig); i++) v[i] = 1;
      rig_import(&rig, f, nrhs - 1, v);
      qk_blas_args_t zero = {.op = QK_BLAS_ZERO, .f = {qk_field_parity(f, QK_ODD)}};
      cr_assert(rig.dev.ops->blas(rig.dev.ctx, &zero) == QK_OK);
      rig_export(&rig, f, nrhs - 1, v);
      const int32_t *l = rig.geom.lat.l;
      for (int64_t site = 0; site < rig.geom.volume; site++) {
        int64_t x = site % l[0], y = site / l[0] % l[1], z = site / l[0] / l[1] % l[2],
                t = site / l[0] / l[1] / l[2];
        double want = (x + y + z + t) % 2 ? 0 : 1;
        for (int c = 0; c < 24; c++) cr_assert(v[24 * site + c] == want, "site %ld", (long)site);
      }
      qk_free(v);
      qk_field_destroy(f);
    }
  rig_close(&rig);
}

/* |f|^2 of the last column. */
static double norm2(const qk_rig_t *rig, qk_spinor_t f) {
  double red[2 * 3] = {0};
  void *device;
  cr_assert(rig->dev.ops->alloc(rig->dev.ctx, sizeof red, &device) == QK_OK);
  qk_blas_args_t args = {.op = QK_BLAS_NORM2, .f = {f}, .red = device};
  cr_assert(rig->dev.ops->blas(rig->dev.ctx, &args) == QK_OK);
  cr_assert(rig->dev.ops->copy(rig->dev.ctx, red, device, 16 * (size_t)f.nrhs, QK_COPY_TO_HOST,
                               0) == QK_OK);
  cr_assert(rig->dev.ops->queue_sync(rig->dev.ctx, 0) == QK_OK);
  rig->dev.ops->free(rig->dev.ctx, device);
  return red[2 * (f.nrhs - 1)];
}

Test(field, has_the_components_of_its_level) {
  qk_rig_t rig;
  rig_open(&rig, NULL, lattice, NULL);
  qk_geom_t geom = rig.geom;
  qk_device_t dev = rig.dev;
  geom.ncomp = 20;
  dev.geom = &geom;
  for (int nrhs = 1; nrhs <= 3; nrhs += 2) {
    qk_field_t *f;
    cr_assert(qk_field_create(&dev, QK_SINGLE, nrhs, QK_FULL, &f) == QK_OK);
    size_t lanes = 192 * (nrhs == 1 ? 1 : 8);
    cr_expect(f->v.ncomp == 20 && f->bytes == lanes * 40 * 4);
    cr_expect(qk_field_bytes(&geom, QK_SINGLE, nrhs, QK_ODD) == f->bytes / 2);
    qk_spinor_t odd = qk_field_parity(f, QK_ODD), even = qk_field_parity(f, QK_EVEN);
    cr_expect((char *)odd.data - (char *)f->v.data == (ptrdiff_t)f->bytes / 2);
    qk_noise_args_t noise = {.lat = geom.lat, .field = f->v, .rhs = -1, .seed = 5};
    cr_assert(dev.ops->noise(dev.ctx, &noise) == QK_OK);
    double all = norm2(&rig, f->v), parts = norm2(&rig, odd) + norm2(&rig, even);
    cr_expect(all > 192 * 20 * 0.5 && fabs(all - parts) < 1e-12 * all, "%g is %g", all, parts);
    qk_field_destroy(f);
  }
  rig_close(&rig);
}

Test(field, accounts_for_its_memory) {
  qk_rig_t rig;
  rig_open(&rig, NULL, lattice, NULL);
  int64_t before = device_bytes(&rig), host = qk_mem_bytes();
  for (int p = 0; p < 3; p++)
    for (int nrhs = 1; nrhs <= 9; nrhs++) {
      qk_field_t *f;
      cr_assert(qk_field_create(&rig.dev, (qk_prec_t)p, nrhs, QK_ODD, &f) == QK_OK);
      size_t bytes = qk_field_bytes(&rig.geom, (qk_prec_t)p, nrhs, QK_ODD);
      size_t lanes = nrhs == 1 ? 96 : nrhs <= 8 ? 96 * 8 : 96 * 16;
      const size_t per_lane[3] = {24 * 8, 24 * 4, 24 * 2 + 4};
      cr_expect(bytes == lanes * per_lane[p] && f->bytes == bytes);
      cr_expect(device_bytes(&rig) >= before + (int64_t)bytes);
      qk_field_destroy(f);
    }
  qk_field_destroy(NULL);
  cr_expect(device_bytes(&rig) == before && qk_mem_bytes() == host);
  rig_close(&rig);
}

Test(device, does_nothing_after_a_failure_until_it_is_asked_for) {
  qk_rig_t rig;
  qk_scalars_t scalars;
  rig_open(&rig, NULL, lattice, NULL);
  const qk_device_t *dev = &rig.dev;
  cr_assert(qk_scalars_init(&scalars, dev, 2, 1) == QK_OK);
  qk_field_t *f = qk_work_take(rig.work, QK_SINGLE, 1, QK_FULL);
  qk_noise_args_t noise = {.lat = rig.geom.lat, .field = f->v, .rhs = -1, .seed = 5};
  cr_assert(f->v.data && dev->ops->noise(dev->ctx, &noise) == QK_OK);
  const double before = norm2(&rig, f->v);
  cr_expect(qk_dev_ok(dev));
  qk_dev_note(dev, QK_OK);
  cr_expect(qk_dev_ok(dev));

  qk_dev_note(dev, QK_DEVICE_MEMORY);
  qk_dev_note(dev, QK_COMM_ERROR);
  qk_dev_blas(dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {f->v}});
  qk_scalars_reduce(&scalars, 0, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}});
  qk_scalars_total(&scalars, 0, 1);
  qk_field_t *none = qk_work_take(rig.work, QK_SINGLE, 1, QK_FULL);
  cr_expect(!none->v.data, "memory after a failure");
  qk_work_release(rig.work, none);
  cr_expect(!qk_dev_ok(dev) && qk_dev_status(dev) == QK_DEVICE_MEMORY, "the first");
  cr_expect(qk_dev_ok(dev) && qk_dev_status(dev) == QK_OK, "only once");
  cr_expect(norm2(&rig, f->v) == before && qk_scalars_host(&scalars, 0, 0)[0] == 0);

  qk_scalars_reduce(&scalars, 0, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}});
  qk_scalars_total(&scalars, 0, 1);
  cr_expect(qk_scalars_host(&scalars, 0, 0)[0] == before);
  cr_expect(qk_dev_status(dev) == QK_OK);
  qk_work_release(rig.work, f);
  qk_scalars_fini(&scalars);
  rig_close(&rig);
}

Test(work, keeps_released_fields_for_their_kind) {
  qk_rig_t rig;
  qk_field_t *a, *b, *c, *d;
  rig_open(&rig, NULL, lattice, NULL);
  cr_assert(qk_work_reserve(rig.work, QK_SINGLE, 5, QK_EVEN, &a) == QK_OK);
  cr_assert(qk_work_reserve(rig.work, QK_SINGLE, 5, QK_EVEN, &b) == QK_OK);
  cr_assert(qk_work_reserve(rig.work, QK_DOUBLE, 5, QK_EVEN, &c) == QK_OK);
  cr_expect(a != b && b != c && a->v.data != b->v.data);
  qk_work_release(rig.work, c);
  qk_work_release(rig.work, b);
  int64_t bytes = device_bytes(&rig);
  cr_assert(qk_work_reserve(rig.work, QK_SINGLE, 5, QK_EVEN, &d) == QK_OK);
  cr_expect(d == b, "the field that was released is used again");
  qk_work_release(rig.work, d);
  qk_work_release(rig.work, a);
  for (int i = 0; i < 100; i++) {
    cr_assert(qk_work_reserve(rig.work, QK_DOUBLE, 5, QK_EVEN, &d) == QK_OK);
    cr_expect(d == c);
    qk_work_release(rig.work, d);
  }
  cr_expect(device_bytes(&rig) == bytes);
  rig_close(&rig);
}

/* Kinds that are not reserved at the same time share the room; what it does not hold has memory of
 * its own, and the next fields from an idle stack are those of before. */
Test(work, kinds_share_the_room) {
  qk_rig_t rig;
  qk_field_t *a, *b, *c, *d;
  rig_open(&rig, NULL, lattice, NULL);
  const int64_t without = device_bytes(&rig);
  const size_t one = qk_field_bytes(&rig.geom, QK_SINGLE, 5, QK_EVEN);
  cr_assert(qk_work_make_room(rig.work, 2 * (one + QK_WORK_ALIGNMENT)) == QK_OK);
  const int64_t with = device_bytes(&rig);
  cr_assert(qk_work_reserve(rig.work, QK_SINGLE, 5, QK_EVEN, &a) == QK_OK);
  cr_assert(qk_work_reserve(rig.work, QK_HALF, 6, QK_EVEN, &b) == QK_OK);
  const ptrdiff_t apart = (char *)b->v.data - (char *)a->v.data;
  cr_expect(apart >= (ptrdiff_t)one && apart % QK_WORK_ALIGNMENT == 0);
  cr_expect(b->v.prec == QK_HALF && b->v.nrhs == 6 && b->v.scale != NULL);
  cr_expect(device_bytes(&rig) == with);
  cr_assert(qk_work_reserve(rig.work, QK_DOUBLE, 5, QK_FULL, &c) == QK_OK);
  cr_expect(device_bytes(&rig) == with + (int64_t)c->bytes, "of its own");
  const void *first = a->v.data;
  qk_work_release(rig.work, c);
  qk_work_release(rig.work, b);
  qk_work_release(rig.work, a);
  cr_expect(qk_work_idle(rig.work));
  cr_assert(qk_work_reserve(rig.work, QK_DOUBLE, 3, QK_ODD, &d) == QK_OK);
  cr_expect(d->v.data == first && d->v.prec == QK_DOUBLE && d->v.subset == QK_ODD);
  qk_work_trim(rig.work);
  cr_expect(device_bytes(&rig) == with, "the room stays where a field stands in it");
  qk_work_release(rig.work, d);
  qk_work_trim(rig.work);
  cr_expect(device_bytes(&rig) == without);
  rig_close(&rig);
}
