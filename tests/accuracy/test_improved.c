/*
 * Pion correlators of improved staggered fermions that others printed, C(t) = sum |S|^2 over three
 * columns, antiperiodic in t, with S = (2m + D)^-1, half of ours:
 *
 *   HISQ    MILC, milc-qcd/milc_qcd at 1e11e121, ks_spectrum/test/ks_spectrum_deflate_hisq.2.
 *           corrfile.sample-out: m = 0.01, a point, on lat.sample.l8888 with links made SU(3)
 *   asqtad  Chroma, JeffersonLab/chroma at 91c587d8, tests/chroma/hadron_s/propagator/
 *           asqtad.out.xml: m = 0.1, u0 = 0.95, its Gaussian source (width 2, 5 steps) on its
 *           WEAK_FIELD of 4x4x4x8
 *
 * Both are in single precision. The second row of each is of an independent solver in double.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "tests/support/loops.h"
#include "tests/support/staggered/colours.h"

enum { NT = 8 };

static const double hisq[2][NT] = {
    {0.2793146, 0.06301089, 0.01830683, 0.01090211, 0.003832617, 0.01024369, 0.0162311, 0.06151892},
    {0.2793145824227, 0.06301088644659, 0.01830682933429, 0.01090211346857, 0.003832616877743,
     0.01024369438525, 0.01623110202605, 0.06151892332765}};
static const double asqtad[2][NT] = {
    {0.0932779397399837, 0.233665706842485, 0.0222774817771299, 0.232412075271587,
     0.00398029561743753, 0.232479758934006, 0.022332592404391, 0.233431455404686},
    {0.0932779643744, 0.233665717264, 0.02227749032511, 0.232412122201, 0.003980296048514,
     0.2324797450403, 0.02233257980771, 0.2334314255402}};

/* Opens what is in QK_DATA, or skips the test. */
static void open_file(qk_rig_t *rig, const char *name) {
  if (!rig_backend_present()) cr_skip_test("no device");
  const char *folder = getenv("QK_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared/data", name);
  if (access(path, R_OK) != 0) cr_skip_test("no %s", path);
  rig_open(rig, NULL, path, NULL);
  rig->geom.ncomp = QK_COLOUR_COMPONENTS;
}

/* Of solutions of three columns, in double with iterations in that precision. */
static void correlator(qk_rig_t *rig, qk_prec_t prec, double complex *const source[3],
                       double c[NT]) {
  const size_t n = colours_numbers(rig);
  double complex *x = colours_vector(rig);
  qk_solver_t *solver = rig_solver(rig, "cg", prec, 3);
  for (int k = 0; k < 3; k++) {
    colours_import(rig, qk_solver_rhs(solver, k), 0, source[k]);
    rig_must(qk_solver_fill(solver, k, 1e-12, 10000), "fill", NULL);
  }
  rig_run(solver);
  for (int t = 0; t < NT; t++) c[t] = 0;
  for (int k = 0; k < 3; k++) {
    cr_assert(qk_solver_slot(solver, k)->status == QK_OK);
    colours_export(rig, qk_solver_solution(solver, k), 0, x);
    for (size_t i = 0; i < n; i++) c[i / (n / NT)] += creal(x[i] * conj(x[i])) / 4;
  }
  qk_solver_destroy(solver);
  qk_free(x);
}

static void expect_correlator(qk_rig_t *rig, double complex *const source[3],
                              const double want[2][NT]) {
  static const double tolerance[2] = {1e-6, 1e-9};
  for (int p = 0; p < QK_PRECS; p++) {
    double c[NT];
    correlator(rig, (qk_prec_t)p, source, c);
    for (int i = 0; i < 2; i++)
      for (int t = 0; t < NT; t++)
        cr_expect_leq(fabs(c[t] / want[i][t] - 1), tolerance[i],
                      "precision %d, t = %d: %.13g and %.13g", p, t, c[t], want[i][t]);
  }
}

Test(improved, hisq_pion_of_milc) {
  qk_rig_t rig;
  double complex *source[3];
  open_file(&rig, "milc_lat.sample.l8888");
  double complex(*u)[3][3] = (double complex(*)[3][3])rig.links;
  for (int64_t i = 0; i < 4 * rig.geom.volume; i++) loops_reunitarise(u[i]);
  rig_action(&rig, "hisq;mass=0.01", -1);
  for (int k = 0; k < 3; k++) {
    source[k] = colours_vector(&rig);
    source[k][k] = 1;
  }
  expect_correlator(&rig, source, hisq);
  for (int k = 0; k < 3; k++) qk_free(source[k]);
  rig_close(&rig);
}

/* v += factor sum_j [U_j(n) v(n+j) + U_j(n-j)^+ v(n-j) - 2 v(n)], over x, y and z */
static void laplacian(const qk_rig_t *rig, double factor, double complex *v) {
  const int *g = rig->geom.global;
  const loops_t loops = {{g[0], g[1], g[2], g[3]}, (const double complex *)rig->links};
  const size_t n = colours_numbers(rig);
  double complex *old = colours_vector(rig);
  memcpy(old, v, n * sizeof *v);
  for (size_t i = 0; i < n; i++) {
    const int a = (int)(i % 3);
    for (int step = 0; step < 6; step++) { /* +x, +y, +z, -x, -y, -z */
      int x[4], way = step < 3 ? step + 1 : -(step - 2);
      double complex m[9];
      colours_site(rig, i / 3, x);
      loops_path(&loops, x, 1, &way, m);
      x[step % 3] = (x[step % 3] + (step < 3 ? 1 : g[step % 3] - 1)) % g[step % 3];
      const double complex *there =
          old + 3 * (size_t)(((x[3] * g[2] + x[2]) * g[1] + x[1]) * g[0] + x[0]);
      for (int b = 0; b < 3; b++) v[i] += factor * m[3 * a + b] * there[b];
      v[i] -= factor * old[i];
    }
  }
  qk_free(old);
}

/* (1 + width^2 / (4 steps) Laplacian)^steps */
Test(improved, asqtad_pion_of_chroma) {
  enum { STEPS = 5 };
  const double width = 2;
  qk_rig_t rig;
  double complex *source[3];
  open_file(&rig, "pyquda_weak_field.lime");
  rig_action(&rig, "asqtad;mass=0.1;u0=0.95", -1);
  for (int k = 0; k < 3; k++) {
    source[k] = colours_vector(&rig);
    source[k][k] = 1;
    for (int i = 0; i < STEPS; i++) laplacian(&rig, width * width / (4 * STEPS), source[k]);
  }
  expect_correlator(&rig, source, asqtad);
  for (int k = 0; k < 3; k++) qk_free(source[k]);
  rig_close(&rig);
}
