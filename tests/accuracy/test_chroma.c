/*
 * Hadron correlators that Chroma printed: JeffersonLab/chroma,
 * tests/chroma/hadron/hadspec/hadspec.out.xml at 5c24edea (Chroma 3.30, single precision): Wilson
 * quarks of kappa 0.11 on its WEAK_FIELD of 4x4x4x8, a Gaussian source (width 2, 5 steps) on links
 * smeared once by APE (factor 2.5), points at the sink. It averages over equivalent momenta. The
 * field, in QK_DATA, is Chroma's in double precision.
 */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/link_smear.h"
#include "daemon/engine/hadron/contract.h"
#include "daemon/engine/hadron/gauss.h"
#include "tests/support/rig.h"

enum { NT = 8, STEPS = 5 };

static const int momenta[][3] = {{0, 0, 0},  {1, 0, 0}, {-1, 0, 0}, {0, 1, 0},
                                 {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
enum { MOMENTA = sizeof momenta / sizeof momenta[0] };

/* ---- what Chroma printed --------------------------------------------------------------------- */

/* Shell_Point_Wilson_Mesons, gamma_value 15 and 14. */
static const double pion[2][NT] = {
    {0.192608931320137, 0.015980780684913, 0.00618062911962625, 0.00284180962626124,
     0.00198266743063868, 0.0028388977261784, 0.00617588830937166, 0.0159631269671081},
    {0.0492667122479201, 0.00107522905953455, 0.000146700276344509, 3.27517029428994e-05,
     1.44642007719047e-05, 3.27343461436473e-05, 0.000145855666789243, 0.0010723960162545}};
static const double a1[2][NT] = {
    {-0.190352652723959, 0.00223982143143076, 0.00193194634812244, 0.00182621588646725,
     0.00179905757977394, 0.00182567575575376, 0.00193092029985564, 0.00224170736510132},
    {-0.0491641406846054, 0.000188281883333691, 5.1346269988659e-05, 1.98973706508612e-05,
     1.3604318605291e-05, 1.98379569827621e-05, 5.01642960799248e-05, 0.0001871296852636}};

/* Shell_Point_Wilson_Baryons, baryon_num 0 (proton) and 2 (Delta), spin up. */
static const double complex proton[2][NT] = {
    {0.02224379 - 9.821458e-06 * I, 0.0006697738 - 1.34035e-06 * I, 0.0001429035 - 2.849958e-07 * I,
     3.982481e-05 - 2.012956e-08 * I, 1.52052e-05 + 9.672978e-08 * I,
     1.162935e-05 + 2.207156e-07 * I, 1.558186e-05 + 4.263443e-07 * I,
     2.849017e-05 + 8.153922e-07 * I},
    {0.007692541 - 2.42335e-06 * I, 8.762907e-05 - 1.096858e-07 * I, 5.47226e-06 - 7.135975e-09 * I,
     7.221781e-07 + 2.349703e-10 * I, 1.68937e-07 + 8.287289e-10 * I,
     1.881203e-07 + 2.018735e-09 * I, 6.191408e-07 + 1.041933e-08 * I,
     4.093825e-06 + 5.207945e-08 * I}};
static const double complex delta[NT] = {
    0.05335755 - 3.157669e-05 * I,   0.001992569 - 3.504587e-06 * I,
    0.000422114 - 5.648566e-07 * I,  0.0001134285 + 4.974627e-08 * I,
    3.698974e-05 + 2.285991e-07 * I, 2.123674e-05 + 3.6712e-07 * I,
    2.426964e-05 + 6.203803e-07 * I, 4.235861e-05 + 1.128742e-06 * I};

/* ---- the same with the engine ---------------------------------------------------------------- */

/* The 12 columns of the smeared source at the origin, solved. Chroma's factor 2.5 is of the
 * link against the sum of four staples; its (1 + w^2/(4N) Laplace)^N with w = 2, N = 5 has
 * alpha = 0.2 / (1 - 1.2). */
static qk_field_t *solve(qk_rig_t *rig) {
  const qk_link_smear_t ape = {QK_LINK_SMEAR_APE, {4 / 6.5, 0, 0}, 1, true, false};
  qk_err_t err = {0};
  qk_gaugefield_t *links;
  qk_gauss_t *gauss;
  qk_field_t *s;
  double tol[12], *v = rig_vector(rig);
  int slot[12];
  int64_t limit[12];
  qk_solver_t *solver = rig_solver(rig, "bicgstab", QK_DOUBLE, 12);
  for (int i = 0; i < 12; i++) {
    rig_point(rig, i / 3, i % 3, v);
    rig_import(rig, qk_solver_rhs(solver, i), 0, v);
    slot[i] = i;
    tol[i] = 1e-11;
    limit[i] = 5000;
  }
  rig_must(qk_gaugefield_create(&rig->dev, 1, &links), "links", NULL);
  rig_must(qk_gaugefield_import(links, rig->links), "links", NULL);
  rig_must(qk_link_smear_apply(links, &ape, &err), "APE", &err);
  rig_must(qk_gauss_create(&rig->dev, rig->work, links, &gauss, &err), "gauss", &err);
  for (int i = 0; i < 12; i++)
    rig_must(qk_gauss_apply(gauss, qk_solver_rhs(solver, i), -1, STEPS), "gauss", NULL);
  rig_must(qk_solver_fill_many(solver, slot, 12, tol, limit), "fill", NULL);
  rig_run(solver);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 12, QK_FULL, &s), "propagator", NULL);
  for (int i = 0; i < 12; i++) {
    cr_assert(qk_solver_slot(solver, i)->status == QK_OK);
    rig_export(rig, qk_solver_solution(solver, i), 0, v);
    rig_import(rig, s, i, v);
  }
  qk_gauss_destroy(gauss);
  qk_gaugefield_destroy(links);
  qk_solver_destroy(solver);
  qk_free(v);
  return s;
}

/* tr[T c] with T = (1 - i g_x g_y) (1 + g_t) / 2, spin up; -i g_x g_y = diag(-1, 1, -1, 1). */
static double complex spin_up(const double complex *c) {
  return c[5] + c[7] + c[13] + c[15];
}

/* Momentum zero, or the mean over momenta of one unit. */
static double complex at_momentum(int p, const double complex *c, int n, int t) {
  double complex sum = 0;
  if (p == 0) return c[t * n];
  for (int m = 1; m < MOMENTA; m++) sum += c[(m * NT + t) * n];
  return sum / (MOMENTA - 1);
}

/* To single precision, counted from the numbers at zero momentum, which the others are made of. */
static void expect(const char *what, int p, int t, double complex got, double complex want,
                   double complex at_rest) {
  cr_expect(cabs(got - want) <= 3e-5 * cabs(at_rest), "%s, p^2 = %d, t = %d: off by %.1e", what, p,
            t, cabs(got - want) / cabs(at_rest));
}

Test(chroma, printed_the_same_correlators) {
  if (!rig_backend_present()) cr_skip_test("no device");
  const char *folder = getenv("QK_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/pyquda_weak_field.lime", folder ? folder : "../shared/data");
  if (access(path, R_OK) != 0) cr_skip_test("no %s", path);
  const qk_channel_id_t channel[] = {{QK_CHANNEL_MESON, 15, 15},
                                     {QK_CHANNEL_MESON, 14, 14},
                                     {QK_CHANNEL_NUCLEON, 0, 0},
                                     {QK_CHANNEL_DELTA, 0, 0}};
  enum { NUMBERS = 1 + 1 + 16 + 144 };
  static double complex out[NUMBERS * MOMENTA * NT];
  qk_err_t err = {0};
  qk_rig_t rig;
  rig_open(&rig, NULL, path, NULL);
  rig_operator(&rig, 1 / (2 * 0.11) - 4, 0, -1);
  qk_field_t *s = solve(&rig);
  const qk_contract_t what = {.a = s, .b = s, .nmom = MOMENTA, .mom = momenta, .phase_t = {-1, 0}};
  rig_must(rig_contract(&what, 4, channel, (double *)out, &err), "contraction", &err);

  const double complex *nucleons = out + 2 * MOMENTA * NT, *deltas = nucleons + 16 * MOMENTA * NT;
  static double complex up[MOMENTA * NT], up_delta[MOMENTA * NT];
  for (int i = 0; i < MOMENTA * NT; i++) {
    up[i] = spin_up(nucleons + 16 * i);
    /* Of (u C g_- u) u at both ends, g_- = (g_y + i g_x) / 2, where ours has the bar of it at the
     * source: g_i C = f_i C g_i; and three times ours over two, with the other sign. */
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 2; k++) {
        const double complex weight = (j == 0 ? I : 1) * (k == 0 ? I : -1) / 4.0;
        up_delta[i] -= 1.5 * weight * spin_up(deltas + 144 * i + 16 * (3 * j + k));
      }
  }
  for (int t = 0; t < NT; t++)
    for (int p = 0; p < 2; p++) {
      expect("pion", p, t, at_momentum(p, out, 1, t), pion[p][t], pion[0][t]);
      expect("a1", p, t, at_momentum(p, out + MOMENTA * NT, 1, t), a1[p][t], a1[0][t]);
      expect("proton", p, t, at_momentum(p, up, 1, t), proton[p][t], proton[0][t]);
      if (p == 0) expect("delta", p, t, at_momentum(p, up_delta, 1, t), delta[t], delta[t]);
    }
  qk_field_destroy(s);
  rig_close(&rig);
}
