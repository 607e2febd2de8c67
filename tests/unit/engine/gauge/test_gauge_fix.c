/* Landau and Coulomb gauge: by the definitions of functional and theta, written once more for links
 * that another code has transformed, and by what every gauge must have. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/fix/gauge_fix.h"
#include "tests/support/faults.h"
#include "tests/support/smear_kit.h"

typedef double complex matrix_t[3][3];

static const qk_fix_gauge_t gauges[] = {QK_FIX_LANDAU, QK_FIX_COULOMB};

typedef struct fixing {
  qk_rig_t rig;
  qk_gaugefield_t *u, *g;
} fixing_t;

static void begin(fixing_t *f, const char *gauge) {
  rig_open(&f->rig, NULL, gauge, NULL);
  f->u = smear_field(&f->rig, f->rig.links, 1);
  rig_must(qk_gaugefield_create_sites(&f->rig.dev, 1, &f->g), "create", NULL);
  rig_must(qk_fix_start(f->g, false, 0), "start", NULL);
}

static void end(fixing_t *f) {
  qk_gaugefield_destroy(f->g);
  qk_gaugefield_destroy(f->u);
  rig_close(&f->rig);
}

static double *transformation(const fixing_t *f) {
  double *g = qk_malloc((size_t)f->rig.geom.local_volume * 18 * sizeof *g);
  rig_must(qk_gaugefield_export(f->g, g), "export", NULL);
  return g;
}

/* The definitions in gauge_fix.h, term by term. */
static qk_fix_point_t plain(const qk_rig_t *rig, const double *links, qk_fix_gauge_t gauge) {
  const int *l = rig->geom.global, n_mu = gauge == QK_FIX_COULOMB ? 3 : 4;
  const matrix_t *u = (const matrix_t *)links;
  const int64_t volume = rig->geom.volume, slice = volume / l[3];
  qk_fix_point_t p = {0};
  for (int t = 0; t < l[3]; t++) {
    double theta = 0;
    for (int64_t n = t * slice; n < (t + 1) * slice; n++) {
      matrix_t d = {{0}};
      int64_t stride = 1;
      for (int mu = 0; mu < n_mu; mu++) {
        const int64_t x = n / stride % l[mu], back = n + ((x + l[mu] - 1) % l[mu] - x) * stride;
        for (int i = 0; i < 9; i++) {
          const int a = i / 3, b = i % 3;
          d[a][b] += u[4 * back + mu][a][b] - u[4 * n + mu][a][b];
          d[a][b] -= conj(u[4 * back + mu][b][a] - u[4 * n + mu][b][a]);
          if (a == b) p.functional += creal(u[4 * n + mu][a][a]) / (3.0 * n_mu * (double)volume);
        }
        stride *= l[mu];
      }
      const double complex trace = (d[0][0] + d[1][1] + d[2][2]) / 3;
      for (int i = 0; i < 3; i++) d[i][i] -= trace;
      for (int i = 0; i < 9; i++) theta += pow(cabs(d[i / 3][i % 3]), 2);
    }
    if (gauge == QK_FIX_COULOMB)
      p.theta = fmax(p.theta, theta / (3.0 * (double)slice));
    else
      p.theta += theta / (3.0 * (double)volume);
  }
  return p;
}

Test(gauge_fix, measures_what_the_definitions_say) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const char *const lattices[] = {"builtin:weak:4x6x2x8:3", "random:2x4x6x4:9",
                                         "builtin:weak:2x2x2x2:1"};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++) {
      fixing_t f;
      qk_fix_point_t got;
      begin(&f, lattices[i]);
      rig_must(qk_fix_start(f.g, true, 5), "start", NULL);
      rig_must(qk_fix_measure(f.u, f.g, gauges[k], &got), "measure", NULL);
      double *g = transformation(&f);
      smear_rotate_links(&f.rig, g, f.rig.links);
      const qk_fix_point_t want = plain(&f.rig, f.rig.links, gauges[k]);
      cr_expect_float_eq(got.functional, want.functional, 1e-13);
      cr_expect_float_eq(got.theta, want.theta, 1e-13 * want.theta);
      cr_expect(want.theta > 1);
      qk_free(g);
      end(&f);
    }
}

Test(gauge_fix, a_time_slice_that_is_no_number_is_not_hidden_by_later_ones) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_fix_point_t point;
  fixing_t f;
  begin(&f, "builtin:weak:4x2x2x6:3");
  const int64_t slice = f.rig.geom.volume / 6;
  f.rig.links[2 * slice * 72] = NAN;
  rig_must(qk_gaugefield_import(f.u, f.rig.links), "import", NULL);
  for (int k = 0; k < 2; k++) {
    rig_must(qk_fix_measure(f.u, f.g, gauges[k], &point), "measure", NULL);
    cr_expect(isnan(point.theta), "gauge %d: theta %g", k, point.theta);
  }
  end(&f);
}

typedef struct climb {
  double last;
  int looks;
} climb_t;

static qk_status_t rises(void *arg, const qk_fix_point_t *point, bool *stop) {
  climb_t *c = arg;
  cr_expect(point->functional > c->last, "iteration %ld: %.17g after %.17g", (long)point->iteration,
            point->functional, c->last);
  cr_expect_eq(point->iteration, c->looks);
  c->last = point->functional;
  *stop = ++c->looks == 31;
  return QK_OK;
}

Test(gauge_fix, raises_the_functional_with_each_step_without_overrelaxation) {
  if (!rig_backend_present()) cr_skip_test("no device");
  for (int k = 0; k < 2; k++) {
    fixing_t f;
    climb_t climb = {.last = -1};
    qk_fix_point_t point;
    const qk_fix_params_t p = {
        .gauge = gauges[k], .tol = 1e-12, .omega = 1, .max_iterations = 1000, .check_every = 1};
    begin(&f, "random:4x4x6x4:2");
    rig_must(qk_fix_run(f.u, f.g, &p, rises, &climb, &point), "run", NULL);
    cr_expect(point.iteration == 30 && climb.looks == 31);
    cr_expect(point.functional > 0.4, "%g", point.functional);
    end(&f);
  }
}

static qk_fix_point_t fixed(fixing_t *f, qk_fix_gauge_t gauge, double tol) {
  qk_fix_point_t point;
  const qk_fix_params_t p = {
      .gauge = gauge, .tol = tol, .omega = 1.7, .max_iterations = 20000, .check_every = 10};
  rig_must(qk_fix_run(f->u, f->g, &p, NULL, NULL, &point), "run", NULL);
  cr_assert(point.theta <= tol, "theta = %g after %ld", point.theta, (long)point.iteration);
  return point;
}

Test(gauge_fix, leaves_links_that_are_fixed_by_the_definitions) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const char *const lattices[] = {"builtin:weak:4x6x2x8:3", "random:4x4x2x4:9",
                                         "builtin:weak:2x2x2x2:1"};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++) {
      fixing_t f;
      qk_gauge_check_t before, after;
      begin(&f, lattices[i]);
      const qk_fix_point_t got = fixed(&f, gauges[k], 1e-20);
      double *g = transformation(&f), *links = qk_malloc(smear_reals(&f.rig) * sizeof *links);
      rig_must(qk_fix_apply(f.u, f.g), "apply", NULL);
      rig_must(qk_gaugefield_export(f.u, links), "export", NULL);
      rig_must(qk_gauge_measure(&f.rig.geom, f.rig.links, &before, NULL), "measure", NULL);
      rig_must(qk_gauge_measure(&f.rig.geom, links, &after, NULL), "measure", NULL);
      for (int p = 0; p < 6; p++) cr_expect_float_eq(after.plane[p], before.plane[p], 1e-14);
      cr_expect(after.unitarity < 1e-14 && after.determinant < 1e-14, "%g", after.unitarity);
      const qk_fix_point_t want = plain(&f.rig, links, gauges[k]);
      cr_expect(want.theta < 1.1e-20, "%g", want.theta);
      cr_expect_float_eq(got.functional, want.functional, 1e-14);
      smear_rotate_links(&f.rig, g, f.rig.links);
      const double off = smear_distance(links, f.rig.links, smear_reals(&f.rig));
      cr_expect(off < 1e-14, "off by %g", off);
      qk_free(links);
      qk_free(g);
      end(&f);
    }
}

/* Smooth links have one maximum near unit links, which rotated ones come back to unless they get
 * caught before: from the rotation of another seed. */
Test(gauge_fix, brings_rotated_links_to_the_same_maximum) {
  if (!rig_backend_present()) cr_skip_test("no device");
  for (int k = 0; k < 2; k++) {
    fixing_t f;
    begin(&f, "builtin:weak:4x4x6x4:3");
    const double want = fixed(&f, gauges[k], 1e-24).functional;
    int same = 0, tries = 5;
    for (int i = 0; i < tries; i++) {
      double *links = qk_malloc(smear_reals(&f.rig) * sizeof *links);
      memcpy(links, f.rig.links, smear_reals(&f.rig) * sizeof *links);
      double *g = smear_rotation(&f.rig, 30 + (uint64_t)i);
      smear_rotate_links(&f.rig, g, links);
      rig_must(qk_gaugefield_import(f.u, links), "import", NULL);
      rig_must(qk_fix_start(f.g, false, 0), "start", NULL);
      const double got = fixed(&f, gauges[k], 1e-24).functional;
      cr_expect(got < want + 1e-12, "%.15g is above %.15g", got, want);
      same += fabs(got - want) < 1e-12;
      qk_free(g);
      qk_free(links);
    }
    cr_expect(same > 0, "gauge %d: none of %d", k, tries);
    end(&f);
  }
}

Test(gauge_fix, in_coulomb_gauge_treats_time_slices_apart) {
  if (!rig_backend_present()) cr_skip_test("no device");
  fixing_t f;
  qk_fix_point_t point;
  const qk_fix_params_t p = {
      .gauge = QK_FIX_COULOMB, .tol = 1e-20, .omega = 1.6, .max_iterations = 7, .check_every = 100};
  begin(&f, "builtin:weak:4x4x2x4:9");
  const size_t slice = smear_reals(&f.rig) / 4;
  rig_must(qk_fix_run(f.u, f.g, &p, NULL, NULL, &point), "run", NULL);
  cr_expect_eq(point.iteration, 7);
  double *a = transformation(&f), *links = qk_malloc(4 * slice * sizeof *links);
  memcpy(links, f.rig.links, 4 * slice * sizeof *links);
  memcpy(links + slice, f.rig.links + 2 * slice, slice * sizeof *links);
  rig_must(qk_gaugefield_import(f.u, links), "import", NULL);
  rig_must(qk_fix_start(f.g, false, 0), "start", NULL);
  rig_must(qk_fix_run(f.u, f.g, &p, NULL, NULL, &point), "run", NULL);
  double *b = transformation(&f);
  const size_t turn = slice / 4;
  cr_expect_eq(memcmp(a, b, turn * sizeof *a), 0);
  cr_expect_eq(memcmp(a + 2 * turn, b + 2 * turn, 2 * turn * sizeof *a), 0);
  cr_expect_neq(memcmp(a + turn, b + turn, turn * sizeof *a), 0);
  qk_free(b);
  qk_free(links);
  qk_free(a);
  end(&f);
}

Test(gauge_fix, leaves_unit_links_and_stops_where_it_is_told) {
  if (!rig_backend_present()) cr_skip_test("no device");
  fixing_t f;
  begin(&f, "builtin:unit:4x2x4x6");
  for (int k = 0; k < 2; k++) {
    const qk_fix_point_t point = fixed(&f, gauges[k], QK_FIX_TOL_MIN);
    cr_expect(point.iteration == 0 && point.theta == 0);
    cr_expect_float_eq(point.functional, 1, 1e-15);
  }
  end(&f);
  begin(&f, "random:4x4x4x4:2");
  qk_fix_params_t p = {.tol = 1e-20, .omega = 1.7, .check_every = 4};
  qk_fix_point_t point;
  for (p.max_iterations = 0; p.max_iterations < 10; p.max_iterations += 3) {
    rig_must(qk_fix_start(f.g, false, 0), "start", NULL);
    rig_must(qk_fix_run(f.u, f.g, &p, NULL, NULL, &point), "run", NULL);
    cr_expect_eq(point.iteration, p.max_iterations);
  }
  end(&f);
}

static qk_status_t life(qk_rig_t *rig, const void *arg) {
  (void)arg;
  const qk_fix_params_t p = {
      .gauge = QK_FIX_COULOMB, .tol = 1e-20, .omega = 1.7, .max_iterations = 5, .check_every = 1};
  qk_gaugefield_t *u = NULL, *g = NULL;
  qk_fix_point_t point;
  double *back = malloc((size_t)rig->geom.local_volume * 18 * sizeof *back);
  qk_status_t status = qk_gaugefield_create(&rig->dev, 1, &u);
  if (!status) status = qk_gaugefield_create_sites(&rig->dev, 1, &g);
  if (!status) status = qk_gaugefield_import(u, rig->links);
  if (!status) status = qk_fix_start(g, false, 0);
  if (!status) status = qk_fix_run(u, g, &p, NULL, NULL, &point);
  if (!status) status = qk_fix_apply(u, g);
  if (!status) status = qk_gaugefield_export(g, back);
  qk_gaugefield_destroy(g);
  qk_gaugefield_destroy(u);
  free(back);
  return status;
}

Test(gauge_fix, survives_failing_devices) {
  if (!rig_backend_present()) cr_skip_test("no device");
  rig_fail_everywhere("builtin:weak:4x4x4x4:1", "device-call", QK_DEVICE_ERROR, 0, life, NULL);
}
