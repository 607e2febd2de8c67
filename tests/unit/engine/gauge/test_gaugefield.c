#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gaugefield.h"
#include "tests/support/loops.h"
#include "tests/support/rig.h"

/* Unequal extents, one of them the smallest; local links of more than one piece of import. */
static const char *const lattices[] = {"random:4x6x2x8:3", "random:16x16x8x24:5"};

static qk_gaugefield_t *field_of(const qk_rig_t *rig, int halo) {
  qk_gaugefield_t *f;
  rig_must(qk_gaugefield_create(&rig->dev, halo, &f), "create", NULL);
  rig_must(qk_gaugefield_import(f, rig->links), "import", NULL);
  return f;
}

static size_t link_bytes(const qk_rig_t *rig) {
  return (size_t)rig->geom.local_volume * 72 * sizeof(double);
}

static double *exported(const qk_rig_t *rig, const qk_gaugefield_t *f) {
  double *links = qk_malloc(link_bytes(rig));
  rig_must(qk_gaugefield_export(f, links), "export", NULL);
  return links;
}

Test(gaugefield, export_gives_back_the_bits_that_import_took) {
  for (int i = 0; i < 2; i++)
    for (int halo = 1; halo <= 2; halo++) {
      qk_rig_t rig;
      rig_open(&rig, NULL, lattices[i], NULL);
      qk_gaugefield_t *f = field_of(&rig, halo);
      double *links = exported(&rig, f);
      cr_expect_arr_eq(links, rig.links, link_bytes(&rig), "%s, halo %d", lattices[i], halo);
      qk_free(links);
      qk_gaugefield_destroy(f);
      rig_close(&rig);
    }
}

Test(gaugefield, a_copy_holds_the_same_links) {
  qk_rig_t rig;
  rig_open(&rig, NULL, lattices[0], NULL);
  qk_gaugefield_t *in = field_of(&rig, 1), *out;
  for (int halo = 1; halo <= 2; halo++) {
    rig_must(qk_gaugefield_create(&rig.dev, halo, &out), "create", NULL);
    rig_must(qk_gaugefield_copy(out, in), "copy", NULL);
    double *links = exported(&rig, out);
    cr_expect_arr_eq(links, rig.links, link_bytes(&rig), "halo %d", halo);
    qk_free(links);
    qk_gaugefield_destroy(out);
  }
  qk_gaugefield_destroy(in);
  rig_close(&rig);
}

/* cuda/types.h says where a link stands; what works on these fields relies on it. */
Test(gaugefield, links_stand_where_the_descriptor_says) {
  qk_rig_t rig;
  rig_open(&rig, NULL, lattices[0], NULL);
  qk_gaugefield_t *f = field_of(&rig, 1);
  const int *d = rig.geom.global;
  const int64_t n = rig.geom.volume / 2;
  double *raw = qk_malloc(f->bytes);
  cr_assert_eq(f->bytes, link_bytes(&rig));
  rig_must(rig.dev.ops->copy(rig.dev.ctx, raw, f->v.data, f->bytes, QK_COPY_TO_HOST, 0), "copy", 0);
  rig_must(rig.dev.ops->queue_sync(rig.dev.ctx, 0), "sync", NULL);
  for (int64_t site = 0; site < 2 * n; site++) {
    const int64_t x = site % d[0], y = site / d[0] % d[1], z = site / d[0] / d[1] % d[2];
    const int64_t p = (x + y + z + site / d[0] / d[1] / d[2]) % 2, i = site / 2;
    for (int64_t mu = 0; mu < 4; mu++)
      for (int64_t k = 0; k < 9; k++)
        for (int c = 0; c < 2; c++)
          cr_assert_eq(raw[2 * (((mu * 2 + p) * 9 + k) * n + i) + c],
                       rig.links[((site * 4 + mu) * 9 + k) * 2 + c]);
  }
  qk_free(raw);
  qk_gaugefield_destroy(f);
  rig_close(&rig);
}

Test(gaugefield, measures_loops_by_their_definition) {
  qk_rig_t rig;
  rig_open(&rig, NULL, lattices[0], NULL);
  qk_gaugefield_t *f = field_of(&rig, 2);
  loops_t l = {.u = (const double complex *)rig.links};
  memcpy(l.dims, rig.geom.global, sizeof l.dims);
  double plane[6], rectangle, want_plane[6] = {0}, want = 0;
  int x[4];
  for (int64_t n = 0; n < rig.geom.volume; n++) {
    int64_t rest = n;
    for (int mu = 0; mu < 4; mu++) {
      x[mu] = (int)(rest % l.dims[mu]);
      rest /= l.dims[mu];
    }
    for (int mu = 0, p = 0; mu < 3; mu++)
      for (int nu = mu + 1; nu < 4; nu++, p++) {
        want_plane[p] += loops_rectangle(&l, x, mu, 1, nu, 1) / (double)rig.geom.volume;
        want += loops_rectangle(&l, x, mu, 2, nu, 1) + loops_rectangle(&l, x, mu, 1, nu, 2);
      }
  }
  rig_must(qk_gaugefield_measure(f, plane, &rectangle), "measure", NULL);
  for (int p = 0; p < 6; p++) cr_expect_float_eq(plane[p], want_plane[p], 1e-15, "plane %d", p);
  cr_expect_float_eq(rectangle, want / (12 * (double)rig.geom.volume), 1e-15);
  rig_must(qk_gaugefield_measure(f, plane, NULL), "measure", NULL);
  for (int p = 0; p < 6; p++) cr_expect_float_eq(plane[p], want_plane[p], 1e-15, "plane %d", p);
  qk_gaugefield_destroy(f);
  rig_close(&rig);
}

/* Every device call and allocation of a life of a field fails once; nothing may be left behind. */
Test(gaugefield, failing_calls_leave_nothing_behind) {
  static const char *const points[] = {"device-alloc", "device-call"};
  for (int p = 0; p < 2; p++) {
    int failed = 0;
    for (int n = 1;; n++) {
      qk_rig_t rig;
      rig_open(&rig, NULL, lattices[0], NULL);
      const int64_t held = rig.dev.ops->allocated(rig.dev.ctx);
      double plane[6];
      char fault[32];
      snprintf(fault, sizeof fault, "%s:%d", points[p], n);
      qk_gaugefield_t *f = NULL;
      cr_assert(qk_fault_set(fault) == 0);
      qk_status_t status = qk_gaugefield_create(&rig.dev, 1, &f);
      cr_expect((status == QK_OK) == (f != NULL));
      if (status == QK_OK) status = qk_gaugefield_import(f, rig.links);
      if (status == QK_OK) status = qk_gaugefield_measure(f, plane, NULL);
      qk_gaugefield_destroy(f);
      cr_assert(qk_fault_set(NULL) == 0);
      cr_expect_eq(rig.dev.ops->allocated(rig.dev.ctx), held, "%s", fault);
      rig_close(&rig);
      if (status == QK_OK) break;
      cr_expect_eq(status, p == 0 ? QK_DEVICE_MEMORY : QK_DEVICE_ERROR, "%s", fault);
      failed++;
    }
    cr_expect_geq(failed, p == 0 ? 2 : 5);
  }
}
