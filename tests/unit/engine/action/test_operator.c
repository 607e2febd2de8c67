/* Beside the suite of all operators (tests/conformance): signs in the basis of the wire, and
 * parameters that are refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/action/links.h"
#include "tests/support/rig.h"
#include "tests/support/values.h"

/* gamma5 = diag(1,1,-1,-1) in the wire basis. */
Test(operator, is_gamma5_hermitian) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x6x2x8:7", NULL);
  rig_operator(&rig, -0.2, 1.3, -1);
  size_t n = rig_reals(&rig);
  double *a = rig_vector(&rig), *b = rig_vector(&rig), *c = rig_vector(&rig);
  rig_random(&rig, 5, a);
  rig_apply(&rig, a, true, b);
  for (size_t i = 0; i < n; i++) a[i] *= i % 24 < 12 ? 1 : -1;
  rig_apply(&rig, a, false, c);
  for (size_t i = 0; i < n; i++) c[i] *= i % 24 < 12 ? 1 : -1;
  cr_expect(rig_distance(&rig, c, b) < 1e-14);
  qk_free(c);
  qk_free(b);
  qk_free(a);
  rig_close(&rig);
}

/* One rank has all neighbours: what is uploaded is what was read. */
Test(operator, uploads_links_without_memory_of_the_host) {
  qk_rig_t rig;
  qk_gauge_args_t gauge = {0};
  qk_err_t err = {0};
  rig_open(&rig, NULL, "random:4x6x2x8:7", NULL);
  const size_t bytes = (size_t)rig.geom.volume * 72 * sizeof(double);
  double *back = qk_malloc(bytes);
  cr_assert_eq(qk_fault_set("alloc:1+"), 0);
  const qk_link_smear_t thin = {0};
  const qk_status_t status = qk_links_upload(&rig.dev, rig.links, &thin, &gauge, &err);
  cr_assert_eq(qk_fault_set(NULL), 0);
  cr_assert_eq(status, QK_OK, "%s", err.text);
  qk_dev_copy(&rig.dev, back, gauge.u.data, bytes, QK_COPY_TO_HOST);
  qk_dev_sync(&rig.dev);
  cr_expect(memcmp(back, rig.links, bytes) == 0);
  for (int mu = 0; mu < 4; mu++) cr_expect_eq(gauge.u.e[mu], rig.geom.global[mu]);
  rig.dev.ops->free(rig.dev.ctx, (void *)gauge.u.data);
  qk_free(back);
  rig_close(&rig);
}

/* M v in double, of links of that many reals. */
static double *applied(qk_rig_t *rig, const char *action, const double *links, int reals,
                       const double *v) {
  qk_action_params_t p = params_wilson(0.1, 0, -1);
  qk_err_t err = {0};
  double *out = rig_vector(rig);
  p.values = values_of(action);
  p.link_reals[QK_DOUBLE] = reals;
  rig_must(qk_operator_create(&rig->dev, rig->work, links, &p, &rig->op, &err), action, &err);
  cr_expect_eq(qk_eo_parts(rig->op)->links[QK_DOUBLE].reals, reals);
  rig_apply(rig, v, false, out);
  rig->op->ops->destroy(rig->op);
  rig->op = NULL;
  return out;
}

static double third_row_matters(qk_rig_t *rig, const char *action, const double *links) {
  double *v = rig_vector(rig);
  rig_random(rig, 5, v);
  double *all = applied(rig, action, links, 18, v), *two = applied(rig, action, links, 12, v);
  const double distance = rig_distance(rig, two, all);
  qk_free(two);
  qk_free(all);
  qk_free(v);
  return distance;
}

/* As links of a 32-bit file are widened. */
static double *rounded(const qk_rig_t *rig) {
  const size_t n = (size_t)rig->geom.volume * 72;
  double *links = qk_malloc(n * sizeof *links);
  for (size_t i = 0; i < n; i++) links[i] = (float)rig->links[i];
  return links;
}

Test(operator, in_double_needs_no_third_row_of_exact_links) {
  static const char *const action[] = {"wilson;mass=0.1", "wilson-clover;mass=0.1;csw=1;open=0.9"};
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:8x4x4x8:1", NULL);
  double *narrow = rounded(&rig);
  for (int a = 0; a < 2; a++) {
    const double exact = third_row_matters(&rig, action[a], rig.links);
    const double off = third_row_matters(&rig, action[a], narrow);
    cr_expect(exact < 1e-14 && off > 1e-9 && off < 1e-6, "%s: %g, in 32 bits %g", action[a], exact,
              off);
  }
  qk_free(narrow);
  rig_close(&rig);
}

Test(operator, tells_which_links_are_exact) {
  const qk_values_t thin = values_of("wilson;mass=0.1");
  const qk_values_t smeared = values_of("wilson;mass=0.1;links=stout:0.1,1");
  const qk_values_t apart = values_of("wilson-clover;mass=0.1;csw=1;links=thin/stout:0.1,1");
  cr_expect(qk_links_are_exact(&thin, 9e-15, 9e-15) && qk_links_are_exact(&apart, 0, 0));
  cr_expect(!qk_links_are_exact(&thin, 2e-7, 1e-15), "as of 32 bits");
  cr_expect(!qk_links_are_exact(&thin, 1e-15, 2e-14) && !qk_links_are_exact(&thin, NAN, 0));
  cr_expect(!qk_links_are_exact(&smeared, 0, 0), "nobody has looked at those");
}

static void fill(qk_rig_t *rig, const qk_field_t *x) {
  const qk_noise_args_t noise = {.lat = rig->geom.lat, .field = x->v, .rhs = -1, .seed = 5};
  rig_must(rig->dev.ops->noise(rig->dev.ctx, &noise), "noise", NULL);
}

/* Right-hand side k of two fields, to the last bit. */
static void expect_same(qk_rig_t *rig, qk_field_t *x, qk_field_t *y, int k) {
  double *a = rig_vector(rig), *b = rig_vector(rig);
  rig_export(rig, x, k, a);
  rig_export(rig, y, k, b);
  cr_expect(memcmp(a, b, rig_reals(rig) * sizeof *a) == 0);
  qk_free(b);
  qk_free(a);
}

/* T in single is given back and made again; what does not need it goes on meanwhile. */
Test(operator, gives_local_terms_back_and_makes_them_again) {
  static const bool none[QK_PRECS] = {false}, all[QK_PRECS] = {true, true, true};
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x4x2x4:7", NULL);
  rig_operator(&rig, -0.2, 1.3, -1);
  const qk_ops_t *ops = rig.dev.ops;
  const qk_operator_ops_t *op = rig.op->ops;
  qk_field_t *in = qk_work_take(rig.work, QK_SINGLE, 2, QK_FULL),
             *first = qk_work_take(rig.work, QK_SINGLE, 2, QK_FULL),
             *again = qk_work_take(rig.work, QK_SINGLE, 2, QK_FULL);
  const int64_t held = ops->allocated(rig.dev.ctx),
                single = (int64_t)ops->diag_bytes(&rig.geom.lat, QK_SINGLE),
                half = (int64_t)ops->diag_bytes(&rig.geom.lat, QK_HALF);
  fill(&rig, in);
  rig_must(op->apply(rig.op, first, in, false, NULL, 0), "apply", NULL);
  rig_must(op->keep_local(rig.op, none), "give back", NULL);
  rig_must(op->keep_local(rig.op, none), "again", NULL);
  cr_expect_eq(held - ops->allocated(rig.dev.ctx), single + half);
  cr_expect_eq(op->apply(rig.op, again, in, false, NULL, 0), QK_BAD_ARGUMENT);
  cr_expect_eq(op->diag(rig.op, again, in, false, false), QK_BAD_ARGUMENT);
  cr_expect_eq(op->diag(rig.op, again, in, true, false), QK_OK);
  rig_must(op->keep_local(rig.op, all), "make", NULL);
  cr_expect_eq(ops->allocated(rig.dev.ctx), held);
  rig_must(op->apply(rig.op, again, in, false, NULL, 0), "apply", NULL);
  expect_same(&rig, first, again, 1);
  qk_work_release(rig.work, again);
  qk_work_release(rig.work, first);
  qk_work_release(rig.work, in);
  rig_close(&rig);
}

/* T^-1 in double rests and is made again with its bits; calls in single go on meanwhile. */
Test(operator, rests_in_double) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x4x2x4:7", NULL);
  rig_operator(&rig, -0.2, 1.3, -1);
  const qk_operator_ops_t *op = rig.op->ops;
  qk_field_t *in = qk_work_take(rig.work, QK_DOUBLE, 1, QK_FULL),
             *first = qk_work_take(rig.work, QK_DOUBLE, 1, QK_FULL),
             *again = qk_work_take(rig.work, QK_DOUBLE, 1, QK_FULL),
             *even = qk_work_take(rig.work, QK_DOUBLE, 1, QK_EVEN),
             *low = qk_work_take(rig.work, QK_SINGLE, 1, QK_FULL),
             *lower = qk_work_take(rig.work, QK_SINGLE, 1, QK_FULL);
  fill(&rig, in);
  rig_must(op->diag(rig.op, first, in, true, false), "T^-1", NULL);
  const int64_t held = rig.dev.ops->allocated(rig.dev.ctx);
  rig_must(op->rest_double(rig.op, true), "rest", NULL);
  rig_must(op->rest_double(rig.op, true), "rest again", NULL);
  cr_expect_eq(held - rig.dev.ops->allocated(rig.dev.ctx),
               (int64_t)rig.dev.ops->diag_bytes(&rig.geom.lat, QK_DOUBLE));
  cr_expect_eq(op->diag(rig.op, again, in, true, false), QK_BAD_ARGUMENT);
  cr_expect_eq(op->prepare(rig.op, even, in), QK_BAD_ARGUMENT);
  cr_expect_eq(op->apply(rig.op, lower, low, false, NULL, 0), QK_OK);
  rig_must(op->rest_double(rig.op, false), "make", NULL);
  cr_expect_eq(rig.dev.ops->allocated(rig.dev.ctx), held);
  rig_must(op->diag(rig.op, again, in, true, false), "T^-1", NULL);
  expect_same(&rig, first, again, 0);
  qk_field_t *taken[] = {lower, low, even, again, first, in};
  for (int i = 0; i < 6; i++) qk_work_release(rig.work, taken[i]);
  rig_close(&rig);
}

static void expect_refusal(qk_rig_t *rig, const qk_action_params_t *p, const char *says) {
  qk_operator_t *op = NULL;
  qk_err_t err = {0};
  int64_t device = rig->dev.ops->allocated(rig->dev.ctx), host = qk_mem_bytes();
  cr_expect(qk_operator_create(&rig->dev, rig->work, rig->links, p, &op, &err) == QK_BAD_ARGUMENT);
  cr_expect(op == NULL && strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
  cr_expect(rig->dev.ops->allocated(rig->dev.ctx) == device && qk_mem_bytes() == host);
}

static qk_action_params_t params_of(const char *text) {
  qk_action_params_t p = params_wilson(0.1, 1, -1);
  char why[QK_WHY];
  cr_assert(qk_values_parse(&p.values, text, why), "%s", why);
  return p;
}

Test(operator, refuses_what_does_not_go_with_an_open_boundary) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:4x4x4x2", NULL);
  qk_action_params_t p = params_of("wilson;mass=0.1;open=1");
  expect_refusal(&rig, &p, "open = 1: the lattice has 2 time slices, and an open boundary needs 4");
  rig_close(&rig);
  rig_open(&rig, NULL, "builtin:unit:4x4x2x4", NULL);
  p.link_reals[QK_SINGLE] = 8;
  expect_refusal(&rig, &p, "link_reals = 8: must be 18 or 12 with an open boundary");
  p = params_of("exp-clover;mass=0.1;csw=0;links=slinc:0.1,1");
  expect_refusal(&rig, &p, "there is no clover term");
  rig_close(&rig);
}

/* In double it fits where it does not in half. */
Test(operator, refuses_an_exponential_that_a_precision_does_not_hold) {
  qk_rig_t rig;
  qk_err_t err = {0};
  rig_open(&rig, NULL, "random:4x4x2x4:7", NULL);
  qk_action_params_t p = params_of("exp-clover;mass=0;csw=60");
  expect_refusal(&rig, &p, "exp-clover;mass=0;csw=60: on ");
  expect_refusal(&rig, &p, "the local term T is too large for the precision, or not finite");
  p.want[QK_HALF] = false;
  rig_must(qk_operator_create(&rig.dev, rig.work, rig.links, &p, &rig.op, &err), "operator", &err);
  rig_close(&rig);
}

/* T^-1 of 1e4, whose factor ((4 + m)^2 + mu^2)^-1 of 5e7 half does not hold; 1e6 likewise. */
Test(operator, refuses_an_inverse_that_a_precision_does_not_hold) {
  static const char *const text[] = {"twisted-clover;mass=-3.9999;mu=0.0001;csw=1",
                                     "wilson-clover;mass=-3.999999;csw=1"};
  qk_rig_t rig;
  qk_err_t err = {0};
  rig_open(&rig, NULL, "builtin:unit:4x4x4x4", NULL);
  for (int i = 0; i < 2; i++) {
    qk_action_params_t p = params_of(text[i]);
    expect_refusal(&rig, &p, "or has an inverse too large for the precision");
    p.want[QK_HALF] = false;
    rig_must(qk_operator_create(&rig.dev, rig.work, rig.links, &p, &rig.op, &err), text[i], &err);
    rig.op->ops->destroy(rig.op);
    rig.op = NULL;
  }
  rig_close(&rig);
}

Test(operator, refuses_bad_parameters_and_singular_terms) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:4x4x4x4", NULL);
  const qk_action_params_t good = params_wilson(0.1, 1, -1);
  qk_action_params_t p = good;
  p.phase[2][0] = 0.5;
  expect_refusal(&rig, &p, "boundary phase 2");
  p = good;
  p.link_reals[0] = 10;
  expect_refusal(&rig, &p, "link_reals[0] = 10");
  p = good;
  p.values.real[p.values.at[0].first] = -4;
  expect_refusal(&rig, &p, "mass = -4: must be above -4");
  p = good;
  p.values.real[p.values.at[1].first] = (double)INFINITY;
  expect_refusal(&rig, &p, "on 256 sites the local term T is singular");
  rig_close(&rig);
}
