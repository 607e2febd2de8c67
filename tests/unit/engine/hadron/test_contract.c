/* Correlators of random propagators, against the oracle's plain Wick contractions; misfits. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/hadron/contract.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"

enum { PAIRS = 256, MOMENTA = 5 };

/* The lattice, momenta and origin of a case; the oracle is told the same. */
typedef struct plan {
  const char *dims, *momenta, *origin;
  int mom[MOMENTA][3], x0[4];
  int nmom;
} plan_t;

static const plan_t plans[] = {
    {"4x6x2x8",
     "0,0,0;1,-2,1;3,0,-1;0,5,0;-1,2,3",
     "3,1,0,5",
     {{0, 0, 0}, {1, -2, 1}, {3, 0, -1}, {0, 5, 0}, {-1, 2, 3}},
     {3, 1, 0, 5},
     5},
    {"4x4x4x4", "0,0,0", "0,0,0,0", {{0, 0, 0}}, {0, 0, 0, 0}, 1},
    {"2x2x2x2", "1,0,-1;0,1,1", "1,1,0,1", {{1, 0, -1}, {0, 1, 1}}, {1, 1, 0, 1}, 2},
};

/* ---- the oracle ------------------------------------------------------------------------------ */

typedef struct oracle {
  double complex *a, *b, *mesons_ab, *mesons_aa, *nucleon_ab, *nucleon_aa, *delta;
} oracle_t;

static oracle_t oracle_run(const plan_t *plan, const qk_geom_t *geom) {
  const char *root = getenv("QK_SOURCE_ROOT"), *python = getenv("QK_PYTHON");
  char folder[] = "/tmp/qk-oracle-XXXXXX", command[1024];
  cr_assert_not_null(mkdtemp(folder));
  snprintf(command, sizeof command,
           "%s %s/tests/ref/contract_ref.py --dims %s '--momenta=%s' --origin %s %s",
           python ? python : "/usr/bin/python3", root ? root : ".", plan->dims, plan->momenta,
           plan->origin, folder);
  cr_assert_eq(system(command), 0, "%s", command);
  const size_t prop = (size_t)geom->volume * 144;
  const size_t places = (size_t)plan->nmom * (size_t)geom->global[3];
  oracle_t o = {.a = oracle_read(folder, "a.bin", prop),
                .b = oracle_read(folder, "b.bin", prop),
                .mesons_ab = oracle_read(folder, "mesons_ab.bin", places * PAIRS),
                .mesons_aa = oracle_read(folder, "mesons_aa.bin", places * PAIRS),
                .nucleon_ab = oracle_read(folder, "nucleon_ab.bin", places * 16),
                .nucleon_aa = oracle_read(folder, "nucleon_aa.bin", places * 16),
                .delta = oracle_read(folder, "delta.bin", places * 144)};
  rmdir(folder);
  return o;
}

static void oracle_free(oracle_t *o) {
  double complex *all[] = {o->a,          o->b,          o->mesons_ab, o->mesons_aa,
                           o->nucleon_ab, o->nucleon_aa, o->delta};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

/* ---- contractions ---------------------------------------------------------------------------- */

static void open_rig(qk_rig_t *rig, const char *dims) {
  char gauge[64];
  snprintf(gauge, sizeof gauge, "builtin:unit:%s", dims);
  rig_open(rig, NULL, gauge, NULL);
}

static qk_field_t *propagator(const qk_rig_t *rig, qk_prec_t prec, const double complex *v) {
  qk_field_t *f;
  rig_must(qk_field_create(&rig->dev, prec, 12, QK_FULL, &f), "propagator", NULL);
  for (int i = 0; i < 12; i++)
    rig_import(rig, f, i, (const double *)v + (size_t)i * rig_reals(rig));
  return f;
}

static qk_contract_t contraction(const plan_t *plan, const qk_field_t *a, const qk_field_t *b) {
  qk_contract_t c = {.a = a, .b = b, .nmom = plan->nmom, .mom = plan->mom};
  memcpy(c.origin, plan->x0, sizeof c.origin);
  return c;
}

static double complex *run(const qk_contract_t *what, int nchannel,
                           const qk_channel_id_t channel[]) {
  qk_err_t err = {0};
  size_t n = 0;
  for (int i = 0; i < nchannel; i++) n += (size_t)qk_channel_numbers(channel[i].kind);
  n *= (size_t)what->nmom * (size_t)what->a->dev->geom->global[3];
  double complex *out = malloc(n * sizeof *out);
  for (size_t i = 0; i < n; i++) out[i] = NAN;
  rig_must(rig_contract(what, nchannel, channel, (double *)out, &err), "contraction", &err);
  return out;
}

/* got and want: n numbers that lie `stride` apart in want. In units of the largest. */
static double off(const double complex *got, const double complex *want, size_t n, size_t stride) {
  double most = 0, scale = 0;
  for (size_t i = 0; i < n; i++) {
    const double d = cabs(got[i] - want[i * stride]);
    most = d > most || isnan(d) ? d : most;
    scale = fmax(scale, cabs(want[i * stride]));
  }
  return most / scale;
}

static void expect_mesons(const qk_contract_t *what, const double complex *want, double tol) {
  qk_channel_id_t channel[PAIRS];
  for (int i = 0; i < PAIRS; i++) channel[i] = (qk_channel_id_t){QK_CHANNEL_MESON, i / 16, i % 16};
  const size_t places = (size_t)what->nmom * (size_t)what->a->dev->geom->global[3];
  double complex *got = run(what, PAIRS, channel);
  for (int i = 0; i < PAIRS; i++) {
    const double d = off(got + (size_t)i * places, want + i, places, PAIRS);
    cr_expect(d < tol, "meson %d, %d: off by %g", i / 16, i % 16, d);
  }
  free(got);
}

static void expect_baryon(const qk_contract_t *what, qk_channel_kind_t kind,
                          const double complex *want, double tol) {
  const qk_channel_id_t channel = {.kind = kind};
  const size_t n =
      (size_t)what->nmom * (size_t)what->a->dev->geom->global[3] * (size_t)qk_channel_numbers(kind);
  double complex *got = run(what, 1, &channel);
  const double d = off(got, want, n, 1);
  cr_expect(d < tol, "baryon %d: off by %g", (int)kind, d);
  free(got);
}

static void expect_all(const qk_rig_t *rig, const plan_t *plan, const oracle_t *o, qk_prec_t prec,
                       double tol) {
  qk_field_t *a = propagator(rig, prec, o->a), *b = propagator(rig, prec, o->b);
  const qk_contract_t ab = contraction(plan, a, b), aa = contraction(plan, a, a);
  expect_mesons(&ab, o->mesons_ab, tol);
  expect_mesons(&aa, o->mesons_aa, tol);
  expect_baryon(&ab, QK_CHANNEL_NUCLEON, o->nucleon_ab, tol);
  expect_baryon(&aa, QK_CHANNEL_NUCLEON, o->nucleon_aa, tol);
  expect_baryon(&ab, QK_CHANNEL_DELTA, o->delta, tol);
  qk_field_destroy(b);
  qk_field_destroy(a);
}

Test(contract, agrees_with_the_oracle) {
  if (!rig_backend_present()) cr_skip_test("no device");
  for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
    qk_rig_t rig;
    open_rig(&rig, plans[i].dims);
    oracle_t o = oracle_run(&plans[i], &rig.geom);
    expect_all(&rig, &plans[i], &o, QK_DOUBLE, 1e-12);
    expect_all(&rig, &plans[i], &o, QK_SINGLE, 1e-5);
    oracle_free(&o);
    rig_close(&rig);
  }
}

/* ---- what needs no oracle -------------------------------------------------------------------- */

/* Columns of random numbers of a seed. */
static qk_field_t *random_propagator(const qk_rig_t *rig, qk_prec_t prec, uint64_t seed) {
  double *v = rig_vector(rig);
  qk_field_t *f;
  rig_must(qk_field_create(&rig->dev, prec, 12, QK_FULL, &f), "propagator", NULL);
  for (uint64_t i = 0; i < 12; i++) {
    rig_random(rig, 100 * seed + i, v);
    rig_import(rig, f, (int)i, v);
  }
  qk_free(v);
  return f;
}

static const qk_channel_id_t one_of_each[] = {
    {QK_CHANNEL_DELTA, 0, 0}, {QK_CHANNEL_MESON, 15, 15}, {QK_CHANNEL_NUCLEON, 0, 0},
    {QK_CHANNEL_MESON, 1, 8}, {QK_CHANNEL_DELTA, 0, 0},   {QK_CHANNEL_MESON, 15, 15}};
enum { CHANNELS = sizeof one_of_each / sizeof one_of_each[0] };

static size_t channel_bytes(const qk_contract_t *what, qk_channel_kind_t kind) {
  return (size_t)what->nmom * (size_t)what->a->dev->geom->global[3] *
         (size_t)qk_channel_numbers(kind) * sizeof(double complex);
}

Test(contract, a_channel_is_the_same_alone_and_among_others) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  open_rig(&rig, plans[0].dims);
  qk_field_t *a = random_propagator(&rig, QK_DOUBLE, 1), *b = random_propagator(&rig, QK_DOUBLE, 2);
  const qk_contract_t what = contraction(&plans[0], a, b);
  double complex *all = run(&what, CHANNELS, one_of_each), *at = all;
  for (int i = 0; i < CHANNELS; i++) {
    const size_t bytes = channel_bytes(&what, one_of_each[i].kind);
    double complex *alone = run(&what, 1, &one_of_each[i]);
    cr_expect(memcmp(alone, at, bytes) == 0, "channel %d", i);
    at += bytes / sizeof *at;
    free(alone);
  }
  free(all);
  qk_field_destroy(b);
  qk_field_destroy(a);
  rig_close(&rig);
}

/* More momenta than a pass makes. */
Test(contract, many_momenta_are_those_made_one_by_one) {
  if (!rig_backend_present()) cr_skip_test("no device");
  enum { MANY = 23 };
  static int mom[MANY][3];
  const qk_channel_id_t channel[] = {
      {QK_CHANNEL_MESON, 1, 8}, {QK_CHANNEL_NUCLEON, 0, 0}, {QK_CHANNEL_DELTA, 0, 0}};
  qk_rig_t rig;
  open_rig(&rig, "4x2x6x4");
  qk_field_t *a = random_propagator(&rig, QK_SINGLE, 1), *b = random_propagator(&rig, QK_SINGLE, 2);
  qk_contract_t many = {.a = a, .b = b, .nmom = MANY, .mom = mom, .origin = {1, 0, 5, 3}};
  for (int m = 0; m < MANY; m++)
    for (int j = 0; j < 3; j++) mom[m][j] = (m * (3 + j)) % 7 - 3;
  for (int k = 0; k < 3; k++) {
    const size_t n = (size_t)qk_channel_numbers(channel[k].kind) * 4;
    double complex *all = run(&many, 1, &channel[k]);
    for (int m = 0; m < MANY; m++) {
      qk_contract_t one = many;
      one.nmom = 1;
      one.mom = &mom[m];
      double complex *alone = run(&one, 1, &channel[k]);
      const double d = off(all + (size_t)m * n, alone, n, 1);
      cr_expect(d < 1e-12, "channel %d, momentum %d: off by %g", k, m, d);
      free(alone);
    }
    free(all);
  }
  qk_field_destroy(b);
  qk_field_destroy(a);
  rig_close(&rig);
}

/* Momenta are numbers modulo the extent. */
Test(contract, momentum_of_a_whole_turn_is_none) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int mom[][3] = {{1, -1, 1}, {-3, 5, 1 << 30}, {5, -7, 1 - (1 << 30)}};
  const qk_channel_id_t channel = {QK_CHANNEL_MESON, 15, 15};
  qk_rig_t rig;
  open_rig(&rig, "4x6x2x4");
  qk_field_t *a = random_propagator(&rig, QK_DOUBLE, 3);
  const qk_contract_t what = {.a = a, .b = a, .nmom = 3, .mom = mom, .origin = {2, 5, 1, 0}};
  double complex *got = run(&what, 1, &channel);
  for (int t = 0; t < 4; t++) {
    cr_expect(cabs(got[t] - got[8 + t]) <= 1e-13 * cabs(got[t]), "t = %d", t);
    cr_expect(cabs(got[t] - got[4 + t]) > 1e-3 * cabs(got[t]), "t = %d: (0, 0, 1) is another", t);
  }
  free(got);
  qk_field_destroy(a);
  rig_close(&rig);
}

/* The factor of three quarks on those slices alone that lie beyond the edge. */
Test(contract, baryons_take_the_boundary_factor_beyond_the_edge) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int zero[1][3] = {{0, 0, 0}};
  const double complex phase = 0.6 + 0.8 * I;
  const int nt = 8, t0 = 5;
  qk_rig_t rig;
  open_rig(&rig, "4x4x2x8");
  qk_field_t *a = random_propagator(&rig, QK_DOUBLE, 3);
  qk_contract_t plain = {.a = a, .b = a, .nmom = 1, .mom = zero, .origin = {0, 0, 0, t0}};
  qk_contract_t turned = plain;
  turned.phase_t[0] = creal(phase);
  turned.phase_t[1] = cimag(phase);
  for (int kind = 0; kind < 3; kind++) {
    const qk_channel_id_t channel = {(qk_channel_kind_t)kind, 15, 15};
    const int n = qk_channel_numbers(channel.kind);
    double complex *p = run(&plain, 1, &channel), *q = run(&turned, 1, &channel);
    for (int i = 0; i < nt * n; i++) {
      const double complex factor = kind == 0 || i / n < nt - t0 ? 1 : cpow(phase, 3);
      cr_expect(cabs(q[i] - factor * p[i]) <= 1e-14 * cabs(p[i]), "hadron %d, t = %d", kind, i / n);
    }
    free(q);
    free(p);
  }
  qk_field_destroy(a);
  rig_close(&rig);
}

/* Four of the lanes of the second tile are no columns of the propagator. */
Test(contract, unused_lanes_are_not_looked_at) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  open_rig(&rig, "4x4x2x4");
  qk_field_t *wide;
  qk_field_t *a = random_propagator(&rig, QK_DOUBLE, 1);
  double *nan = rig_vector(&rig), *v = rig_vector(&rig);
  for (size_t i = 0; i < rig_reals(&rig); i++) nan[i] = NAN;
  rig_must(qk_field_create(&rig.dev, QK_DOUBLE, 16, QK_FULL, &wide), "field", NULL);
  for (int i = 0; i < 16; i++) {
    if (i < 12) rig_export(&rig, a, i, v);
    rig_import(&rig, wide, i, i < 12 ? v : nan);
  }
  wide->v.nrhs = 12;
  static const int mom[2][3] = {{0, 0, 0}, {1, 0, 0}};
  const qk_contract_t what = {.a = a, .b = a, .nmom = 2, .mom = mom};
  qk_contract_t poisoned = what;
  poisoned.a = poisoned.b = wide;
  double complex *p = run(&what, CHANNELS, one_of_each), *q = run(&poisoned, CHANNELS, one_of_each);
  size_t n = 0;
  for (int i = 0; i < CHANNELS; i++) n += channel_bytes(&what, one_of_each[i].kind);
  cr_expect(memcmp(p, q, n) == 0);
  free(q);
  free(p);
  qk_free(v);
  qk_free(nan);
  wide->v.nrhs = 16;
  qk_field_destroy(wide);
  qk_field_destroy(a);
  rig_close(&rig);
}

/* ---- one after the other --------------------------------------------------------------------- */

Test(contract, memory_serves_one_after_the_other) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int mom[3][3] = {{0, 0, 0}, {1, 0, 0}, {0, -1, 1}};
  static const qk_channel_id_t channel[] = {
      {QK_CHANNEL_DELTA, 0, 0}, {QK_CHANNEL_MESON, 15, 15}, {QK_CHANNEL_NUCLEON, 0, 0}};
  /* momenta, channels first.. first+n-1, and whether its end is waited for */
  static const int turns[][4] = {
      {1, 1, 1, 1}, {3, 0, 3, 1}, {3, 0, 3, 0}, {2, 2, 1, 1}, {1, 0, 2, 1}};
  qk_rig_t rig;
  open_rig(&rig, "4x4x2x4");
  qk_field_t *a = random_propagator(&rig, QK_DOUBLE, 1), *b = random_propagator(&rig, QK_DOUBLE, 2);
  qk_contractor_t *c;
  rig_must(qk_contractor_create(&rig.dev, &c), "contractor", NULL);
  for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
    const int *turn = turns[i], n = turn[2];
    const qk_channel_id_t *first = channel + turn[1];
    const qk_contract_t what = {
        .a = a, .b = i % 2 ? b : a, .nmom = turn[0], .mom = mom, .origin = {1, 0, 1, 2}};
    size_t bytes = sizeof(double complex) * (size_t)what.nmom * (size_t)rig.geom.global[3];
    int numbers = 0;
    for (int k = 0; k < n; k++) numbers += qk_channel_numbers(first[k].kind);
    bytes *= (size_t)numbers;
    double complex *want = run(&what, n, first), *got = malloc(bytes);
    qk_err_t err = {0};
    rig_must(qk_contract_begin(c, &what, n, first, &err), "begin", &err);
    if (turn[3]) {
      rig_must(qk_contract_end(c, &what, n, first, (double *)got, &err), "end", &err);
      cr_expect_eq(memcmp(got, want, bytes), 0, "turn %zu", i);
    }
    free(got);
    free(want);
  }
  rig_must(qk_contract_begin(c, &(qk_contract_t){.a = a, .b = a, .nmom = 1, .mom = mom}, 1, channel,
                             &(qk_err_t){0}),
           "begin", NULL);
  qk_contractor_destroy(c);
  qk_field_destroy(b);
  qk_field_destroy(a);
  rig_close(&rig);
}

/* ---- misfits --------------------------------------------------------------------------------- */

static void refused(const qk_contract_t *what, qk_channel_id_t channel, int nchannel,
                    const char *words) {
  qk_err_t err = {0};
  double out[2] = {7, 7};
  cr_expect(rig_contract(what, nchannel, &channel, out, &err) == QK_BAD_ARGUMENT, "%s", words);
  cr_expect(strstr(err.text, words) != NULL, "\"%s\" does not say \"%s\"", err.text, words);
  cr_expect(out[0] == 7 && out[1] == 7);
}

Test(contract, misfits_are_refused_by_name) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const int zero[1][3] = {{0, 0, 0}};
  const qk_channel_id_t pion = {QK_CHANNEL_MESON, 15, 15};
  qk_rig_t rig;
  open_rig(&rig, "4x4x4x4");
  qk_field_t *a, *single, *half, *even, *few;
  rig_must(qk_field_create(&rig.dev, QK_DOUBLE, 12, QK_FULL, &a), "field", NULL);
  rig_must(qk_field_create(&rig.dev, QK_SINGLE, 12, QK_FULL, &single), "field", NULL);
  rig_must(qk_field_create(&rig.dev, QK_HALF, 12, QK_FULL, &half), "field", NULL);
  rig_must(qk_field_create(&rig.dev, QK_DOUBLE, 12, QK_EVEN, &even), "field", NULL);
  rig_must(qk_field_create(&rig.dev, QK_DOUBLE, 11, QK_FULL, &few), "field", NULL);
  const qk_contract_t good = {.a = a, .b = a, .nmom = 1, .mom = zero};
  qk_contract_t bad = good;
  bad.b = single;
  refused(&bad, pion, 1, "propagator b: precision 1");
  bad.a = bad.b = half;
  refused(&bad, pion, 1, "propagator a: precision 2");
  bad.a = even;
  refused(&bad, pion, 1, "propagator a: 12 columns of sites 0");
  bad.a = few;
  refused(&bad, pion, 1, "propagator a: 11 columns");
  bad = good;
  bad.nmom = 0;
  refused(&bad, pion, 1, "momenta = 0");
  bad.nmom = 129;
  refused(&bad, pion, 1, "momenta = 129: must be 1 to 128");
  bad = good;
  bad.origin[2] = 4;
  refused(&bad, pion, 1, "origin[2] = 4: must be 0 to 3");
  refused(&good, pion, 0, "channels = 0");
  refused(&good, (qk_channel_id_t){(qk_channel_kind_t)3, 0, 0}, 1,
          "channel 0: kind = 3: must be 0 to 2");
  refused(&good, (qk_channel_id_t){QK_CHANNEL_MESON, 16, 0}, 1, "sink, source = 16, 0: 0 to 15");
  refused(&good, (qk_channel_id_t){QK_CHANNEL_MESON, 0, -1}, 1, "sink, source = 0, -1: 0 to 15");
  qk_field_t *fields[] = {a, single, half, even, few};
  for (size_t i = 0; i < 5; i++) qk_field_destroy(fields[i]);
  rig_close(&rig);
}

/* Every allocation and every call of the device fails once. */
static void fail_everywhere(const char *point, qk_status_t expected) {
  static const int zero[1][3] = {{0, 0, 0}};
  char faults[64];
  qk_status_t status = QK_INTERNAL;
  int n = 0;
  while (status && n < 100) {
    qk_rig_t rig; /* a new one each time: a device that failed is lost */
    open_rig(&rig, "4x4x2x2");
    qk_field_t *a = random_propagator(&rig, QK_DOUBLE, 1);
    const qk_contract_t what = {.a = a, .b = a, .nmom = 1, .mom = zero};
    double complex *out = run(&what, CHANNELS, one_of_each);
    const int64_t host = qk_mem_bytes(), device = rig.dev.ops->allocated(rig.dev.ctx);
    qk_err_t err = {0};
    snprintf(faults, sizeof faults, "%s:%d", point, ++n);
    cr_assert(qk_fault_set(faults) == 0);
    status = rig_contract(&what, CHANNELS, one_of_each, (double *)out, &err);
    cr_assert(qk_fault_set(NULL) == 0);
    cr_assert(!status || (status == expected && err.code == expected && err.text[0]), "%s: %s",
              faults, qk_status_name(status));
    cr_assert(qk_mem_bytes() == host && rig.dev.ops->allocated(rig.dev.ctx) == device,
              "%s: memory stays behind", faults);
    free(out);
    qk_field_destroy(a);
    rig_close(&rig);
  }
  cr_expect(!status && n > 2, "%s: %d places, then %s", point, n, qk_status_name(status));
}

Test(contract, every_failure_comes_back_and_leaves_nothing) {
  if (!rig_backend_present()) cr_skip_test("no device");
  fail_everywhere("alloc", QK_NO_MEMORY);
  fail_everywhere("device-alloc", QK_DEVICE_MEMORY);
  fail_everywhere("device-call", QK_DEVICE_ERROR);
}
