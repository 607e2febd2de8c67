/* The sign function by what defines it, the overlap operator by its relation and its index. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/lanczos.h"
#include "daemon/engine/lattice/scalars.h"
#include "daemon/engine/modes/zero_modes.h"
#include "daemon/engine/overlap/series.h"
#include "daemon/engine/overlap/sign.h"
#include "daemon/engine/overlap/zolotarev.h"
#include "tests/support/rig.h"
#include "tests/support/values.h"

static const char weak[] = "builtin:weak:4x2x6x4:7";
static const char massless[] = "overlap;mass=0;M=1.3;modes=8;sign-tol=1e-11";
static const double near = 3e-11; /* sign-tol, and rounding */

/* ---- the series ------------------------------------------------------------------------------ */

/* The largest |1 - sqrt(x) p(x)|, on points that are dense where p oscillates. */
static double error_of(const qk_series_t *s) {
  const int n = 10 * (s->order + 1);
  double worst = 0;
  for (int i = 0; i <= n; i++) {
    const double y = cos(acos(-1.0) * i / n);
    const double x = 0.5 * (s->greatest + s->least) + 0.5 * (s->greatest - s->least) * y;
    worst = fmax(worst, fabs(1 - sqrt(x) * qk_series_value(s, x)));
  }
  return worst;
}

Test(series, is_as_near_as_asked_for_with_few_terms) {
  static const double ratio[] = {0.5, 0.1, 0.03, 0.01}, tol[] = {1e-2, 1e-6, 1e-9, 1e-11};
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 4; k++) {
      const double top = 43.7, least = top * ratio[i] * ratio[i];
      const double needed = log(1 / tol[k]) / (2 * atanh(ratio[i])); /* of the best polynomial */
      qk_series_t s, less;
      cr_assert_eq(qk_series_init(least, top, tol[k], &s), QK_OK);
      cr_expect_leq(error_of(&s), tol[k], "%g, %g", ratio[i], tol[k]);
      cr_expect_leq(s.order, 1.15 * needed + 4, "%g, %g: %d", ratio[i], tol[k], s.order);
      less = s;
      less.order = (int)(0.75 * s.order);
      if (tol[k] < 1e-3)
        cr_expect_gt(error_of(&less), tol[k], "%g, %g: %d", ratio[i], tol[k], s.order);
      cr_expect_leq(fabs(qk_series_value(&s, 0)), 1e3 / sqrt(least), "it explodes below");
      qk_series_fini(&s);
    }
}

Test(series, of_an_interval_that_is_too_wide_is_refused) {
  qk_series_t s;
  cr_expect_eq(qk_series_init(1e-8, 40, 1e-10, &s), QK_TOO_LARGE);
  cr_expect_eq(qk_series_init(2, 1, 1e-10, &s), QK_TOO_LARGE);
}

/* ---- partial fractions ----------------------------------------------------------------------- */

Test(zolotarev, is_as_near_as_asked_for_and_alternates) {
  static const double ratio[] = {2, 10, 100, 1900}, tol[] = {1e-2, 1e-6, 1e-11};
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 3; k++) {
      qk_zolotarev_t z;
      double worst = 0;
      int turns = 0;
      bool above = false;
      cr_assert_eq(qk_zolotarev_init(0.3, 0.3 * ratio[i], tol[k], &z), QK_OK);
      for (int n = 0; n <= 40000; n++) {
        const double off = qk_zolotarev_value(&z, 0.3 * pow(ratio[i], n / 40000.0)) - 1;
        worst = fmax(worst, fabs(off));
        if (n > 0 && (off > 0) != above) turns++;
        above = off > 0;
      }
      cr_expect_leq(worst, tol[k] * (1 + 1e-3), "%g, %g", ratio[i], tol[k]);
      cr_expect_leq(fabs(worst - z.error), 1e-3 * z.error + 1e-14, "%g, %g", ratio[i], tol[k]);
      cr_expect_leq(z.n, qk_zolotarev_most(tol[k]));
      /* the best one goes from one extremum to the other 2 n times */
      if (z.error > 1e-10) cr_expect_eq(turns, 2 * z.n, "%g, %g: %d", ratio[i], tol[k], turns);
      cr_expect(fabs(qk_zolotarev_value(&z, -0.4) + qk_zolotarev_value(&z, 0.4)) < 1e-15);
    }
}

Test(zolotarev, is_what_another_program_has) { /* hep-lat/0202025 by scipy's elliptic functions */
  static const double want[7][2] = {
      {0.16186014484712014, 0.015213537388548696}, {0.22385439269003715, 0.1740519058725491},
      {0.37375382542520175, 0.76025337119655745},  {0.68391382322886263, 2.7999999999999878},
      {1.3765288663481474, 10.312351509419257},    {3.6011803283042521, 45.044034195986711},
      {29.789811139708288, 515.33051122603263}};
  qk_zolotarev_t z;
  cr_assert_eq(qk_zolotarev_init(0.4, 7, 1e-6, &z), QK_OK);
  cr_assert_eq(z.n, 7);
  for (int j = 0; j < 7; j++) {
    cr_expect_leq(fabs(z.r[j] / want[j][0] - 1), 1e-12);
    cr_expect_leq(fabs(z.q[j] / want[j][1] - 1), 1e-12);
  }
}

Test(zolotarev, of_an_interval_that_is_too_wide_is_refused) {
  qk_zolotarev_t z;
  cr_expect_eq(qk_zolotarev_init(1, 2001, 1e-6, &z), QK_TOO_LARGE);
  cr_expect_eq(qk_zolotarev_init(2, 1, 1e-6, &z), QK_TOO_LARGE);
}

/* ---- vectors on the host --------------------------------------------------------------------- */

static void gamma5(const qk_rig_t *rig, double *v) {
  for (size_t i = 0; i < rig_reals(rig); i++)
    if (i % 24 >= 12) v[i] = -v[i];
}

static void axpy(const qk_rig_t *rig, double *y, double c, const double *x) {
  for (size_t i = 0; i < rig_reals(rig); i++) y[i] += c * x[i];
}

static void copy(const qk_rig_t *rig, double *to, const double *from) {
  memcpy(to, from, rig_reals(rig) * sizeof *to);
}

/* v = sgn(H) v = gamma_5 (2 D - 1) v, of D(0). */
static void sign(qk_rig_t *rig, double *v) {
  double *d = rig_vector(rig);
  rig_apply(rig, v, false, d);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] = 2 * d[i] - v[i];
  gamma5(rig, v);
  qk_free(d);
}

/* v = H v = gamma_5 D_W(-M) v */
static void kernel(qk_rig_t *rig, double *v) {
  qk_operator_t *whole = rig->op;
  double *h = rig_vector(rig);
  rig->op = whole->base;
  rig_apply(rig, v, false, h);
  rig->op = whole;
  gamma5(rig, h);
  copy(rig, v, h);
  qk_free(h);
}

typedef struct two {
  qk_rig_t rig;
  double *a, *b;
} two_t;

static void begin(two_t *t, const char *gauge, const char *text) {
  rig_open(&t->rig, NULL, gauge, NULL);
  rig_action(&t->rig, text, -1);
  t->a = rig_vector(&t->rig);
  t->b = rig_vector(&t->rig);
  rig_random(&t->rig, 3, t->a);
  copy(&t->rig, t->b, t->a);
}

static void end(two_t *t) {
  qk_free(t->b);
  qk_free(t->a);
  rig_close(&t->rig);
}

/* ---- the sign function ----------------------------------------------------------------------- */

Test(overlap, sign_of_h_is_its_own_inverse) {
  two_t t;
  begin(&t, weak, massless);
  sign(&t.rig, t.b);
  cr_expect_gt(rig_distance(&t.rig, t.b, t.a), 0.1);
  sign(&t.rig, t.b);
  cr_expect_leq(rig_distance(&t.rig, t.b, t.a), near);
  end(&t);
}

/* sgn(H) H = H sgn(H), which is |H|. */
Test(overlap, sign_of_h_commutes_with_it) {
  two_t t;
  double dot[2];
  begin(&t, weak, massless);
  kernel(&t.rig, t.a);
  sign(&t.rig, t.a);
  sign(&t.rig, t.b);
  kernel(&t.rig, t.b);
  cr_expect_leq(rig_distance(&t.rig, t.a, t.b), near);
  rig_random(&t.rig, 3, t.b);
  rig_dot(&t.rig, t.b, t.a, dot);
  cr_expect_gt(dot[0], 0);
  cr_expect_leq(fabs(dot[1]), near * dot[0]);
  end(&t);
}

/* What is projected and what the series does is the same function. */
Test(overlap, sign_of_h_does_not_depend_on_how_it_is_made) {
  two_t t;
  begin(&t, weak, massless);
  rig_apply(&t.rig, t.a, false, t.b);
  rig_action(&t.rig, "overlap;mass=0;M=1.3;modes=0;sign-tol=1e-11", -1);
  double *other = rig_vector(&t.rig);
  rig_apply(&t.rig, t.a, false, other);
  cr_expect_leq(rig_distance(&t.rig, other, t.b), near);
  rig_action(&t.rig, "overlap;mass=0;M=1.3;modes=43;sign-tol=1e-11", -1);
  rig_apply(&t.rig, t.a, false, other);
  cr_expect_leq(rig_distance(&t.rig, other, t.b), near);
  rig_action(&t.rig, "overlap;mass=0;M=1.3;modes=8;sign-tol=1e-11;sign=zolotarev", -1);
  rig_apply(&t.rig, t.a, false, other);
  cr_expect_leq(rig_distance(&t.rig, other, t.b), near);
  rig_action(&t.rig, "overlap;mass=0;M=1.3;modes=8;sign-tol=0.0001", -1);
  rig_apply(&t.rig, t.a, false, other);
  cr_expect_leq(rig_distance(&t.rig, other, t.b), 1e-4);
  cr_expect_gt(rig_distance(&t.rig, other, t.b), 1e-8);
  qk_free(other);
  end(&t);
}

/* How many there are is known when eigenvalues are. */
Test(overlap, partial_fractions_take_no_more_memory_than_planned) {
  qk_rig_t rig;
  rig_open(&rig, NULL, weak, NULL);
  const int64_t before = (int64_t)rig.dev.ops->allocated(rig.dev.ctx);
  qk_action_params_t p = params_wilson(0, 0, -1);
  p.values = values_of("overlap;mass=0.2;M=1.3;sign=zolotarev");
  rig_action(&rig, "overlap;mass=0.2;M=1.3;sign=zolotarev", -1);
  const int64_t held = (int64_t)rig.dev.ops->allocated(rig.dev.ctx) - before;
  const int64_t planned =
      qk_action_bytes(qk_action_of(&p.values), rig.dev.ops, &rig.geom.lat, &p, false);
  cr_expect(held <= planned && 2 * held > planned, "%lld held, %lld planned", (long long)held,
            (long long)planned);
  rig_close(&rig);
}

/* Links without any smoothness: H has eigenvalues near 0. */
Test(overlap, sign_of_h_is_right_on_rough_links) {
  two_t t;
  begin(&t, "random:4x2x2x4:5", "overlap;mass=0;M=1.6;modes=40");
  sign(&t.rig, t.b);
  sign(&t.rig, t.b);
  cr_expect_leq(rig_distance(&t.rig, t.b, t.a), 3e-10);
  end(&t);
}

static qk_status_t create(const char *gauge, const char *text, double mass, qk_err_t *err) {
  qk_rig_t rig;
  qk_action_params_t p = params_wilson(mass, 0, -1);
  rig_open(&rig, NULL, gauge, NULL);
  p.values = values_of(text);
  const qk_status_t status = qk_operator_create(&rig.dev, rig.work, rig.links, &p, &rig.op, err);
  rig_close(&rig);
  return status;
}

Test(overlap, more_modes_than_the_lattice_has_are_refused) {
  qk_err_t err = {0};
  cr_expect_eq(create(weak, "overlap;mass=0.1;M=1.3;modes=288", 0, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "modes = 288: at most 287 on this lattice"), "%s", err.text);
}

/* Free fields with M = 0: H has zero modes, sgn(H) is not defined. */
Test(overlap, zero_modes_of_h_are_refused) {
  qk_rig_t rig;
  qk_err_t err = {0};
  qk_action_params_t p = params_wilson(0, 0, 1);
  rig_open(&rig, NULL, "builtin:unit:2x2x2x4", NULL);
  p.values = values_of("overlap;mass=0.1;M=1e-12;modes=0");
  cr_expect_eq(qk_operator_create(&rig.dev, rig.work, rig.links, &p, &rig.op, &err), QK_TOO_LARGE);
  cr_expect(strstr(err.text, "project more modes"), "%s", err.text);
  rig_close(&rig);
}

/* Free fields: dozens of vectors have one |h|. */
Test(overlap, links_without_disorder_are_refused_with_the_reason, .timeout = 60) {
  qk_err_t err = {0};
  cr_expect_eq(create("builtin:unit:4x4x4x4", "overlap;mass=0.1;M=1.4;modes=0", 0, &err),
               QK_NOT_CONVERGED);
  cr_expect(strstr(err.text, "links without disorder"), "%s", err.text);
}

/* A bound of the spectrum that is wrong. */
Test(overlap, a_wrong_norm_is_an_error) {
  qk_rig_t rig;
  qk_err_t err = {0};
  qk_sign_t *sign = NULL;
  rig_open(&rig, NULL, weak, NULL);
  rig_operator(&rig, -1.3, 0, -1);
  const qk_sign_params_t p = {
      .d = rig.op, .norm = 4, .modes = 8, .tol = 1e-8, .want = {[QK_DOUBLE] = true}};
  cr_expect_neq(qk_sign_create(&p, &sign, &err), QK_OK);
  cr_expect_null(sign);
  rig_close(&rig);
}

/* ---- the operator ---------------------------------------------------------------------------- */

/* gamma_5 D + D gamma_5 = 2 D gamma_5 D */
Test(overlap, obeys_the_ginsparg_wilson_relation) {
  two_t t;
  begin(&t, weak, massless);
  double *left = rig_vector(&t.rig), *right = rig_vector(&t.rig);
  rig_apply(&t.rig, t.a, false, left); /* D a */
  gamma5(&t.rig, left);
  rig_apply(&t.rig, left, false, right); /* D gamma_5 D a */
  gamma5(&t.rig, t.b);
  rig_apply(&t.rig, t.b, false, t.a); /* D gamma_5 a */
  axpy(&t.rig, left, 1, t.a);
  axpy(&t.rig, right, 1, right);
  cr_expect_leq(rig_distance(&t.rig, left, right), near);
  qk_free(right);
  qk_free(left);
  end(&t);
}

/* D(m) = m + (1 - m) D(0) */
Test(overlap, depends_on_the_mass_as_it_should) {
  two_t t;
  begin(&t, weak, massless);
  rig_apply(&t.rig, t.a, false, t.b);
  rig_action(&t.rig, "overlap;mass=-0.3;M=1.3;modes=8;sign-tol=1e-11", -1);
  double *d = rig_vector(&t.rig);
  rig_apply(&t.rig, t.a, false, d);
  for (size_t i = 0; i < rig_reals(&t.rig); i++) t.b[i] = -0.3 * t.a[i] + 1.3 * t.b[i];
  cr_expect_leq(rig_distance(&t.rig, d, t.b), near);
  qk_free(d);
  end(&t);
}

/* What is handed out is q = (D^-1 - 1) b / (1 - m). */
static void solve(qk_rig_t *rig, const char *method, qk_prec_t inner, int nslot, double tol) {
  const double m = 0.2;
  qk_solver_t *s = rig_solver(rig, method, inner, nslot);
  double *b = rig_vector(rig), *x = rig_vector(rig), *back = rig_vector(rig);
  for (int i = 0; i < nslot; i++) {
    rig_random(rig, 20 + (uint64_t)i, b);
    rig_import(rig, qk_solver_rhs(s, i), 0, b);
  }
  for (int i = 0; i < nslot; i++) rig_must(qk_solver_fill(s, i, tol, 400), method, NULL);
  rig_run(s);
  for (int i = 0; i < nslot; i++) {
    const qk_slot_t *slot = qk_solver_slot(s, i);
    cr_expect_eq(slot->status, QK_OK, "%s: %s", method, qk_status_text(slot->status));
    cr_expect_leq(slot->residual, tol);
    rig_random(rig, 20 + (uint64_t)i, b);
    rig_export(rig, qk_solver_solution(s, i), 0, x);
    for (size_t k = 0; k < rig_reals(rig); k++) x[k] = b[k] + (1 - m) * x[k];
    rig_apply(rig, x, false, back);
    cr_expect_leq(rig_distance(rig, back, b), tol * 1.01 + 1e-14, "%s", method);
  }
  qk_free(back);
  qk_free(x);
  qk_free(b);
  qk_solver_destroy(s);
}

Test(overlap, is_solved_for_the_propagator) {
  qk_rig_t rig;
  rig_open(&rig, NULL, weak, NULL);
  rig_action(&rig, "overlap;mass=0.2;M=1.3", -1);
  solve(&rig, "cg", QK_SINGLE, 3, 1e-10);
  solve(&rig, "cg", QK_DOUBLE, 1, 1e-10);
  solve(&rig, "gcr", QK_SINGLE, 1, 1e-8);
  solve(&rig, "bicgstab", QK_SINGLE, 2, 1e-8);
  rig_action(&rig, "overlap;mass=0.2;M=1.3;sign=zolotarev", -1);
  solve(&rig, "cg", QK_SINGLE, 2, 1e-8);
  rig_close(&rig);
}

/* ---- the index theorem ----------------------------------------------------------------------- */

/* Constant flux, one quantum in xy and one in zt, for colours of charges 1, -1 and 0: links in x
 * of angle -2 pi y / L_x L_y, in y from the last y on of 2 pi x / L_x; the same in z and t. The
 * rows of the links that are there are turned by it. */
static void add_constant_flux(qk_rig_t *rig) {
  const int *l = rig->geom.global;
  const double pi = acos(-1.0);
  for (int64_t n = 0; n < rig->geom.volume; n++) {
    const int x[4] = {(int)(n % l[0]), (int)(n / l[0] % l[1]), (int)(n / l[0] / l[1] % l[2]),
                      (int)(n / l[0] / l[1] / l[2])};
    double angle[4] = {0};
    for (int p = 0; p < 4; p += 2) { /* planes xy and zt */
      const int a = p, b = p + 1;
      angle[a] = -2 * pi * x[b] / (l[a] * l[b]);
      if (x[b] == l[b] - 1) angle[b] = 2 * pi * x[a] / l[a];
    }
    for (int mu = 0; mu < 4; mu++)
      for (int i = 0; i < 9; i++) {
        double *u = rig->links + (size_t)(72 * n + 18 * mu + 2 * i);
        const double charge = i / 3 == 0 ? 1 : i / 3 == 1 ? -1 : 0, re = u[0], im = u[1];
        u[0] = cos(charge * angle[mu]) * re - sin(charge * angle[mu]) * im;
        u[1] = cos(charge * angle[mu]) * im + sin(charge * angle[mu]) * re;
      }
  }
}

/* The lowest eigenvalue of H. */
static double lowest(qk_rig_t *rig, double M) {
  const qk_lanczos_params_t p = {
      .kind = QK_LANCZOS_GAMMA5, .n = 4, .prec = QK_DOUBLE, .tol = 1e-12, .accept = 1e-10};
  qk_eigen_t *e = NULL;
  qk_err_t err = {0};
  rig_operator(rig, -M, 0, 1);
  rig_must(qk_lanczos(rig->op, rig->work, &p, NULL, NULL, &e, &err), "eigenvectors", &err);
  const double value = e->value[0];
  qk_eigen_destroy(e);
  return value;
}

/* At an M at which an eigenvalue of H changes its sign V^+ V = 1 says nothing: either sign does. */
Test(overlap, an_eigenvalue_of_h_without_a_sign_is_an_error) {
  qk_rig_t rig;
  qk_err_t err = {0};
  char text[96];
  rig_open(&rig, NULL, "builtin:weak:4x4x4x4:7", NULL);
  add_constant_flux(&rig);
  double before = 0.3, M = 0.32, h_before = lowest(&rig, before), h = lowest(&rig, M);
  for (int i = 0; i < 12 && fabs(h) > 2e-14; i++) {
    const double next = M - h * (M - before) / (h - h_before);
    before = M;
    h_before = h;
    M = next;
    h = lowest(&rig, M);
  }
  cr_assert(fabs(h) < 5e-14 && M > 0.3 && M < 1, "M = %.17g: %g", M, h);
  for (int i = 0; i < 2; i++) {
    const double at = i ? M + 1e-6 : M;
    qk_action_params_t p = params_wilson(0, 0, 1);
    snprintf(text, sizeof text, "overlap;mass=0.1;M=%.15g;modes=4", at);
    p.values = values_of(text);
    qk_operator_t *op = NULL;
    const qk_status_t status = qk_operator_create(&rig.dev, rig.work, rig.links, &p, &op, &err);
    cr_expect_eq(status, i ? QK_OK : QK_BREAKDOWN, "%s: %s", text, err.text);
    cr_expect(i || strstr(err.text, "no sign"), "%s", err.text);
    if (op) op->ops->destroy(op);
    err = (qk_err_t){0};
  }
  rig_close(&rig);
}

enum { COLUMNS = 64 };

/* Points at component `component` of sites first .. first + COLUMNS - 1, in the wire order. */
static void set_points(qk_rig_t *rig, qk_field_t *f, int64_t first, int component) {
  double *v = rig_vector(rig);
  for (int k = 0; k < COLUMNS; k++) {
    memset(v, 0, rig_reals(rig) * sizeof *v);
    v[(first + k) * 24 + 2 * component] = 1;
    rig_import(rig, f, k, v);
  }
  qk_free(v);
}

/* 1/2 Tr sgn(H) over the spins of one colour. */
static double half_trace(qk_rig_t *rig, int colour) {
  qk_field_t *in, *out;
  double sum = 0, *v = rig_vector(rig);
  rig_must(qk_field_create(&rig->dev, QK_SINGLE, COLUMNS, QK_FULL, &in), "field", NULL);
  rig_must(qk_field_create(&rig->dev, QK_SINGLE, COLUMNS, QK_FULL, &out), "field", NULL);
  for (int64_t first = 0; first < rig->geom.volume; first += COLUMNS)
    for (int spin = 0; spin < 4; spin++) {
      const int component = 3 * spin + colour;
      set_points(rig, in, first, component);
      rig_must(rig->op->ops->apply(rig->op, out, in, false, NULL, 0), "D", NULL);
      for (int k = 0; k < COLUMNS; k++) {
        rig_export(rig, out, k, v);
        sum += (spin < 2 ? 1 : -1) * (2 * v[(first + k) * 24 + 2 * component] - 1);
      }
    }
  qk_field_destroy(out);
  qk_field_destroy(in);
  qk_free(v);
  return 0.5 * sum;
}

/* The same flux on links with disorder: eigenvectors of gamma_5 D(m) with the eigenvalues m and -m.
 * trace: n_- - n_+ = 1/2 Tr sgn(H). */
static void expect_zero_modes(double trace) {
  enum { N = 6 };
  const double m = 0.1;
  qk_rig_t rig;
  qk_eigen_t *e = NULL;
  qk_err_t err = {0};
  double number[2 * N];
  rig_open(&rig, NULL, "builtin:weak:4x4x4x4:7", NULL);
  add_constant_flux(&rig);
  rig_action(&rig, "overlap;mass=0.1;M=1.4;modes=8", 1);
  const qk_lanczos_params_t p = {
      .kind = QK_LANCZOS_GAMMA5, .n = N, .prec = QK_DOUBLE, .tol = 1e-11, .accept = 1e-8};
  rig_must(qk_lanczos(rig.op, rig.work, &p, NULL, NULL, &e, &err), "eigenvectors", &err);
  for (int i = 0; i < N; i++) {
    number[2 * i] = e->value[i];
    number[2 * i + 1] = e->residual[i];
  }
  const qk_zero_modes_t z = qk_zero_modes_find(number, N, m, 1e-10);
  cr_expect(z.known && z.plus + z.minus == 2, "%d %d", z.plus, z.minus);
  cr_expect_eq(z.minus - z.plus, round(trace), "%d %d: %g", z.plus, z.minus, trace);
  for (int i = 2; i < N; i += 2) /* the others are pairs */
    cr_expect_leq(fabs(e->value[i] + e->value[i + 1]), 1e-7, "%g %g", e->value[i], e->value[i + 1]);
  qk_eigen_destroy(e);
  rig_close(&rig);
}

Test(overlap, has_the_index_of_constant_flux, .timeout = 200) {
  qk_rig_t rig;
  double index[3];
  rig_open(&rig, NULL, "builtin:unit:4x4x4x4", NULL);
  add_constant_flux(&rig);
  rig_action(&rig, "overlap;mass=0;M=1.4;modes=0;sign-tol=0.0001", 1);
  for (int c = 0; c < 3; c++) {
    index[c] = half_trace(&rig, c);
    cr_expect_leq(fabs(index[c] - round(index[c])), 0.05, "colour %d: %g", c, index[c]);
  }
  cr_expect_eq(fabs(round(index[0])), 1, "%g", index[0]);
  cr_expect_eq(round(index[1]), round(index[0]), "%g %g", index[0], index[1]);
  cr_expect_eq(round(index[2]), 0, "%g", index[2]);
  rig_close(&rig);
  expect_zero_modes(index[0] + index[1] + index[2]);
}
