/*
 * Correlators of solved propagators: free quarks against exact sums over momenta, what no
 * correlator of a point source depends on (gauge, place of the source), charge conjugation, and
 * the pion of reference.json.
 */
#include <complex.h>
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/engine/hadron/contract.h"
#include "tests/support/rig.h"

enum { PAIRS = 256, NUCLEON = PAIRS, DELTA, CHANNELS };

static const int momenta[][3] = {{0, 0, 0}, {1, 0, -1}, {0, 2, 1}, {-1, 1, 3}, {2, -1, 0}};
enum { MOMENTA = sizeof momenta / sizeof momenta[0] };
#define MOMENTA_TEXT "0,0,0;1,0,-1;0,2,1;-1,1,3;2,-1,0"

/* ---- propagators and their correlators ------------------------------------------------------- */

/* M^-1 of the 12 columns of a point source at x0, in double. */
static qk_field_t *solve(qk_rig_t *rig, const int x0[4], double tol) {
  qk_solver_t *solver = rig_solver(rig, "bicgstab", QK_DOUBLE, 12);
  double tols[12], *v = rig_vector(rig);
  int slot[12];
  int64_t limit[12];
  qk_field_t *s;
  for (int i = 0; i < 12; i++) {
    qk_source_args_t source = {.lat = rig->geom.lat,
                               .field = qk_solver_rhs(solver, i)->v,
                               .kind = QK_SOURCE_POINT,
                               .spin = i / 3,
                               .colour = i % 3};
    memcpy(source.site, x0, sizeof source.site);
    rig_must(rig->dev.ops->source(rig->dev.ctx, &source), "source", NULL);
    slot[i] = i;
    tols[i] = tol;
    limit[i] = 5000;
  }
  rig_must(qk_solver_fill_many(solver, slot, 12, tols, limit), "fill", NULL);
  rig_run(solver);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 12, QK_FULL, &s), "propagator", NULL);
  for (int i = 0; i < 12; i++) {
    const qk_slot_t *end = qk_solver_slot(solver, i);
    cr_assert(end->status == QK_OK, "column %d: %s, %g", i, qk_status_name(end->status),
              end->residual);
    rig_export(rig, qk_solver_solution(solver, i), 0, v);
    rig_import(rig, s, i, v);
  }
  qk_solver_destroy(solver);
  qk_free(v);
  return s;
}

/* All channels: 256 mesons, the nucleon, the Delta; each [momentum][T][numbers]. */
typedef struct correlators {
  int nt;
  double complex *all, *at[CHANNELS];
} correlators_t;

static qk_channel_id_t channel_of(int i) {
  if (i >= PAIRS)
    return (qk_channel_id_t){i == NUCLEON ? QK_CHANNEL_NUCLEON : QK_CHANNEL_DELTA, 0, 0};
  return (qk_channel_id_t){QK_CHANNEL_MESON, i / 16, i % 16};
}

static int numbers_of(int i) {
  return qk_channel_numbers(channel_of(i).kind);
}

static correlators_t contract(const qk_rig_t *rig, const qk_field_t *a, const qk_field_t *b,
                              const int x0[4]) {
  qk_contract_t what = {.a = a, .b = b, .nmom = MOMENTA, .mom = momenta, .phase_t = {-1, 0}};
  qk_channel_id_t channel[CHANNELS];
  qk_err_t err = {0};
  correlators_t c = {.nt = rig->geom.global[3]};
  const size_t places = (size_t)MOMENTA * (size_t)c.nt;
  c.all = malloc(places * (PAIRS + 16 + 144) * sizeof *c.all);
  double complex *next = c.all;
  for (int i = 0; i < CHANNELS; i++) {
    channel[i] = channel_of(i);
    c.at[i] = next;
    next += places * (size_t)numbers_of(i);
  }
  memcpy(what.origin, x0, sizeof what.origin);
  rig_must(rig_contract(&what, CHANNELS, channel, (double *)c.all, &err), "contraction", &err);
  return c;
}

/* Correlators of one flavour. */
static correlators_t measure(qk_rig_t *rig, const int x0[4], double tol) {
  qk_field_t *s = solve(rig, x0, tol);
  correlators_t c = contract(rig, s, s, x0);
  qk_field_destroy(s);
  return c;
}

/* Each number against the largest of its kind (all mesons, a baryon) at that momentum and time:
 * channels that a symmetry makes vanish are as good as the others. */
static void expect_same(const correlators_t *got, const correlators_t *want, double tol,
                        const char *what) {
  for (int i = 0; i < MOMENTA * got->nt; i++) {
    double scale[3] = {0}, most[3] = {0};
    for (int c = 0; c < CHANNELS; c++) {
      const int n = numbers_of(c), kind = (int)channel_of(c).kind;
      for (int k = 0; k < n; k++) {
        const double d = cabs(got->at[c][i * n + k] - want->at[c][i * n + k]);
        most[kind] = d > most[kind] || isnan(d) ? d : most[kind];
        scale[kind] = fmax(scale[kind], cabs(want->at[c][i * n + k]));
      }
    }
    for (int k = 0; k < 3; k++)
      cr_expect(most[k] <= tol * scale[k], "%s: hadron %d, momentum %d, t = %d: off by %.1e", what,
                k, i / got->nt, i % got->nt, most[k] / scale[k]);
  }
}

/* ---- free quarks ----------------------------------------------------------------------------- */

static void read_all(const char *folder, const char *name, double complex *v, size_t n) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.bin", folder, name);
  FILE *f = fopen(path, "rb");
  cr_assert(f != NULL, "%s", path);
  cr_assert_eq(fread(v, sizeof *v, n, f), n, "%s is short", path);
  fclose(f);
  unlink(path);
}

/* The oracle's correlators, in the order of ours. */
static correlators_t exact(const qk_rig_t *rig, const char *dims, const double mass[2]) {
  const char *root = getenv("QK_SOURCE_ROOT"), *python = getenv("QK_PYTHON");
  char folder[] = "/tmp/qk-free-XXXXXX", command[1024];
  cr_assert_not_null(mkdtemp(folder));
  snprintf(command, sizeof command,
           "%s %s/tests/ref/free_ref.py --dims %s --mass %g %g '--momenta=" MOMENTA_TEXT "' %s",
           python ? python : "/usr/bin/python3", root ? root : ".", dims, mass[0], mass[1], folder);
  cr_assert_eq(system(command), 0, "%s", command);
  correlators_t c = {.nt = rig->geom.global[3]};
  const size_t places = (size_t)MOMENTA * (size_t)c.nt;
  double complex *pairs = malloc(places * PAIRS * sizeof *pairs);
  c.all = malloc(places * (PAIRS + 16 + 144) * sizeof *c.all);
  for (int i = 0; i < CHANNELS; i++)
    c.at[i] = c.all + places * (i <= PAIRS ? (size_t)i : PAIRS + 16);
  read_all(folder, "mesons", pairs, places * PAIRS);
  read_all(folder, "nucleon", c.at[NUCLEON], places * 16);
  read_all(folder, "delta", c.at[DELTA], places * 144);
  for (size_t i = 0; i < places; i++)
    for (size_t k = 0; k < PAIRS; k++) c.at[k][i] = pairs[i * PAIRS + k];
  free(pairs);
  rmdir(folder);
  return c;
}

Test(correlators, free_quarks_give_exact_sums_over_momenta) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const char *const dims = "6x4x8x8";
  static const int places[][4] = {{0, 0, 0, 0}, {5, 2, 3, 6}};
  const double mass[2] = {0.2, 0.5};
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:6x4x8x8", NULL);
  correlators_t want = exact(&rig, dims, mass);
  for (int p = 0; p < 2; p++) {
    qk_field_t *s[2];
    for (int i = 0; i < 2; i++) {
      rig_operator(&rig, mass[i], 1, -1);
      s[i] = solve(&rig, places[p], 1e-13);
    }
    correlators_t got = contract(&rig, s[0], s[1], places[p]);
    expect_same(&got, &want, 1e-10, p ? "elsewhere" : "origin");
    free(got.all);
    for (int i = 0; i < 2; i++) qk_field_destroy(s[i]);
  }
  free(want.all);
  rig_close(&rig);
}

/* ---- invariances ----------------------------------------------------------------------------- */

static const char *const rough = "builtin:weak:4x4x6x8:5";
enum { LINK = 18, SITE = 4 * LINK };

static int64_t site_of(const int dims[4], const int x[4]) {
  int64_t n = 0;
  for (int mu = 3; mu >= 0; mu--) n = n * dims[mu] + (x[mu] + dims[mu]) % dims[mu];
  return n;
}

/* Calls body(site, coordinates) for every site. */
#define FOR_SITES(dims, x)                                                                         \
  for (int x[4] = {0}; x[3] < (dims)[3]; x[3]++)                                                   \
    for (x[2] = 0; x[2] < (dims)[2]; x[2]++)                                                       \
      for (x[1] = 0; x[1] < (dims)[1]; x[1]++)                                                     \
        for (x[0] = 0; x[0] < (dims)[0]; x[0]++)

typedef struct case_ {
  qk_rig_t rig;
  correlators_t before;
} case_t;

static void open_case(case_t *c) {
  static const int origin[4] = {0};
  rig_open(&c->rig, NULL, rough, NULL);
  rig_operator(&c->rig, 0.05, 1.2, -1);
  c->before = measure(&c->rig, origin, 1e-13);
}

/* The operator of changed links. */
static correlators_t measure_again(case_t *c, const int x0[4]) {
  rig_operator(&c->rig, 0.05, 1.2, -1);
  return measure(&c->rig, x0, 1e-13);
}

static void close_case(case_t *c, correlators_t *after) {
  free(c->before.all);
  free(after->all);
  rig_close(&c->rig);
}

Test(correlators, do_not_change_when_field_and_source_move) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int by[4] = {3, 2, 5, 6};
  case_t c;
  open_case(&c);
  const int *dims = c.rig.geom.global;
  double *moved = qk_malloc((size_t)c.rig.geom.volume * SITE * sizeof *moved);
  FOR_SITES(dims, x) {
    const int to[4] = {x[0] + by[0], x[1] + by[1], x[2] + by[2], x[3] + by[3]};
    memcpy(moved + site_of(dims, to) * SITE, c.rig.links + site_of(dims, x) * SITE,
           SITE * sizeof *moved);
  }
  memcpy(c.rig.links, moved, (size_t)c.rig.geom.volume * SITE * sizeof *moved);
  correlators_t after = measure_again(&c, by);
  expect_same(&after, &c.before, 1e-10, "moved");
  qk_free(moved);
  close_case(&c, &after);
}

typedef double complex matrix_t[3][3];

/* u <- g u h^+ */
static void rotate_link(matrix_t u, const matrix_t g, const matrix_t h) {
  matrix_t gu = {{0}};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) gu[i][j] += g[i][k] * u[k][j];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      u[i][j] = 0;
      for (int k = 0; k < 3; k++) u[i][j] += gu[i][k] * conj(h[j][k]);
    }
}

Test(correlators, are_gauge_invariant) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int origin[4] = {0};
  case_t c;
  qk_rig_t random; /* its links in x direction are the rotation */
  open_case(&c);
  rig_open(&random, NULL, "random:4x4x6x8:9", NULL);
  const int *dims = c.rig.geom.global;
  FOR_SITES(dims, x) {
    for (int mu = 0; mu < 4; mu++) {
      int ahead[4] = {x[0], x[1], x[2], x[3]};
      ahead[mu]++;
      rotate_link(*(matrix_t *)(c.rig.links + site_of(dims, x) * SITE + mu * LINK),
                  *(matrix_t *)(random.links + site_of(dims, x) * SITE),
                  *(matrix_t *)(random.links + site_of(dims, ahead) * SITE));
    }
  }
  correlators_t after = measure_again(&c, origin);
  expect_same(&after, &c.before, 1e-10, "rotated");
  rig_close(&random);
  close_case(&c, &after);
}

/* Complex conjugate links are those of antiquarks: a correlator of them is the complex
 * conjugate at the opposite momentum, for mesons; for baryons so is its trace over
 * spins, with or without g_t. */
Test(correlators, know_charge_conjugation) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int origin[4] = {0};
  static const int opposite[][3] = {{0, 0, 0}, {-1, 0, 1}, {0, -2, -1}, {1, -1, -3}, {-2, 1, 0}};
  case_t c;
  open_case(&c);
  qk_field_t *s = solve(&c.rig, origin, 1e-13);
  for (int64_t i = 0; i < c.rig.geom.volume * SITE; i += 2) c.rig.links[i + 1] *= -1;
  correlators_t after = measure_again(&c, origin);

  qk_channel_id_t channel[CHANNELS];
  for (int i = 0; i < CHANNELS; i++) channel[i] = channel_of(i);
  const qk_contract_t what = {.a = s, .b = s, .nmom = MOMENTA, .mom = opposite, .phase_t = {-1, 0}};
  qk_err_t err = {0};
  rig_must(rig_contract(&what, CHANNELS, channel, (double *)c.before.all, &err), "contraction",
           &err);
  const int places = MOMENTA * c.before.nt;
  for (int i = 0; i < places; i++) {
    const double scale = cabs(c.before.at[255][i % c.before.nt]);
    for (int k = 0; k < PAIRS; k++) {
      const double d = cabs(after.at[k][i] - conj(c.before.at[k][i]));
      cr_expect(d <= 1e-10 * scale, "meson %d, place %d: off by %.1e", k, i, d / scale);
    }
    for (int gt = 0; gt < 2; gt++) {
      double complex n[2] = {0}, delta[2] = {0};
      for (int side = 0; side < 2; side++) {
        const correlators_t *from = side ? &after : &c.before;
        for (int a = 0; a < 4; a++) {
          const int b = gt ? (a + 2) % 4 : a;
          n[side] += from->at[NUCLEON][i * 16 + 4 * a + b];
          for (int j = 0; j < 3; j++)
            delta[side] += from->at[DELTA][i * 144 + (4 * j) * 16 + 4 * a + b];
        }
      }
      cr_expect(cabs(n[1] - conj(n[0])) <= 1e-10 * cabs(n[0]), "nucleon, place %d", i);
      cr_expect(cabs(delta[1] - conj(delta[0])) <= 1e-10 * cabs(delta[0]), "delta, place %d", i);
    }
  }
  qk_field_destroy(s);
  close_case(&c, &after);
}

/* ---- signs ----------------------------------------------------------------------------------- */

static double complex projected(const double complex *c, int sign) {
  double complex sum = 0;
  for (int a = 0; a < 4; a++) sum += (c[5 * a] + sign * c[4 * a + (a + 2) % 4]) / 2;
  return sum;
}

/* docs/physics.md: mesons of either sign; the nucleon and the Delta positive forwards, the same
 * coming from behind in the other projection with the other sign, on average: here within what
 * a smooth field allows. */
Test(correlators, have_the_signs_of_the_conventions) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int positive[] = {15, 1, 2, 4, 14, 13, 11, 6, 5, 3};
  static const int negative[] = {0, 7, 9, 10, 12};
  case_t c;
  open_case(&c);
  const correlators_t *k = &c.before;
  for (int t = 1; t <= k->nt / 2; t++) {
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; i++)
      cr_expect_gt(creal(k->at[positive[i] * 17][t]), 0, "meson %d, t = %d", positive[i], t);
    for (size_t i = 0; i < sizeof negative / sizeof negative[0]; i++)
      cr_expect_lt(creal(k->at[negative[i] * 17][t]), 0, "meson %d, t = %d", negative[i], t);
    const double forwards = creal(projected(k->at[NUCLEON] + t * 16, 1));
    const double backwards = -creal(projected(k->at[NUCLEON] + (k->nt - t) * 16, -1));
    cr_expect_gt(forwards, 0, "nucleon, t = %d", t);
    cr_expect(fabs(forwards / backwards - 1) < 0.2, "nucleon, t = %d: %g and %g", t, forwards,
              backwards);
    for (int i = 0; i < 3; i++)
      cr_expect_gt(creal(projected(k->at[DELTA] + t * 144 + 4 * i * 16, 1)), 0, "delta, t = %d", t);
  }
  for (int t = 0; t < k->nt; t++) {
    cr_expect(fabs(cimag(k->at[255][t])) <= 1e-14 * creal(k->at[255][t]), "pion, t = %d", t);
    cr_expect_gt(creal(k->at[255][t]), 0);
  }
  free(c.before.all);
  rig_close(&c.rig);
}

/* ---- reference.json -------------------------------------------------------------------------- */

/* The pion of every case on the configurations named, through the meson channel. */
Test(correlators, pion_is_that_of_the_reference) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const char *const names[] = {"milc_lat.sample.l4448.scidac", "cl2qcd_conf.00200",
                                      "pyquda_weak_field.lime"};
  static const int origin[4] = {0};
  const char *folder = getenv("QK_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/reference.json", folder ? folder : "../shared/data");
  json_t *all = json_load_file(path, 0, NULL), *c;
  if (!all) cr_skip_test("no reference.json in QK_DATA");
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    const json_t *entry = json_object_get(all, names[n]);
    qk_rig_t rig;
    size_t i;
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared/data", names[n]);
    rig_open(&rig, NULL, path, NULL);
    json_array_foreach(json_object_get(entry, "cases"), i, c) {
      const bool periodic =
          strcmp(json_string_value(json_object_get(c, "boundary")), "periodic") == 0;
      rig_operator(&rig, json_number_value(json_object_get(c, "m0")),
                   json_number_value(json_object_get(c, "csw")), periodic ? 1 : -1);
      correlators_t got = measure(&rig, origin, 1e-13);
      const json_t *want = json_object_get(c, "pion");
      for (int t = 0; t < got.nt; t++) {
        const double pion = json_number_value(json_array_get(want, (size_t)t));
        cr_expect(cabs(got.at[255][t] - pion) <= 1e-10 * pion, "%s, case %zu, t = %d: off by %.1e",
                  names[n], i, t, cabs(got.at[255][t] / pion - 1));
      }
      free(got.all);
    }
    rig_close(&rig);
  }
  json_decref(all);
}
