/* The suite for every action of the registry, for terms and hops that no action has yet, and for
 * coarse operators. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"
#include "tests/conformance/chain.h"
#include "tests/conformance/operator_suite.h"
#include "tests/support/values.h"

/* Of one application in double, single, half: twice what has been seen. */
static const double rounding[3] = {1e-15, 4e-7, 1e-3};
static const char rough[] = "random:4x6x2x8:7";
/* Of an operator that connects all sites, by many applications of a local one: few sites, and H
 * without low eigenvalues. Its sums have some hundred terms. */
static const char small[] = "builtin:weak:4x2x2x4:7";
static const double dense_rounding[3] = {1e-13, 4e-5, 0};

static void run_suite(const char *name, qk_operator_t *op) {
  subject_t s = {.name = name, .op = op};
  memcpy(s.tol, op->system == QK_FULL ? dense_rounding : rounding, sizeof s.tol);
  operator_suite(&s);
}

/* ---- actions of the registry ----------------------------------------------------------------- */

/* A legal value of a parameter that has no default; the mass is heavy enough for any links. */
static void legal_text(const qk_param_t *p, char text[QK_REAL_TEXT]) {
  double x = strcmp(p->key, "mass") == 0 ? 0.3 : 0.7;
  if (p->type == QK_PARAM_INTEGER) x = 4;
  qk_real_text(fmin(p->most, fmax(p->least, x)), text);
}

/* open: also with an open boundary; false where the action has none. */
static bool values_for(const qk_action_row_t *row, bool open, qk_values_t *values) {
  qk_values_t v;
  char why[QK_WHY], text[QK_REAL_TEXT];
  cr_assert(qk_values_init(&v, row->name, why), "%s", why);
  for (const qk_param_t *p = row->param; p->key; p++) {
    if (p->otherwise) continue;
    const bool term = row->has_term && strcmp(p->key, "clover") == 0;
    cr_assert(term || p->type != QK_PARAM_WORD, "%s: give %s a default, or a value here", row->name,
              p->key);
    if (term)
      strcpy(text, "digest:0123456789abcdef");
    else
      legal_text(p, text);
    cr_assert(qk_values_set(&v, p->key, text, why), "%s", why);
  }
  if (open && !qk_values_set(&v, "open", "0.8", why)) return false;
  if (row->is_dense) cr_assert(qk_values_set(&v, "sign-tol", "0.001", why), "%s", why);
  cr_assert(qk_values_complete(&v, why), "%s", why);
  *values = v;
  return true;
}

/* Matrices near 4 for an action that is given them; NULL for others. */
static double *make_term(const qk_rig_t *rig, const qk_values_t *values) {
  const int64_t n = rig->geom.local_volume * 72;
  if (!qk_values_action(values)->has_term) return NULL;
  double *term = qk_malloc((size_t)n * sizeof *term);
  cr_assert_not_null(term);
  for (int64_t k = 0; k < n; k++)
    term[k] = 0.4 * sin(1.3 * (double)k + 0.2 * (double)(k % 1013)) + (k % 36 < 6 ? 4.3 : 0);
  return term;
}

static int64_t allocated(const qk_rig_t *rig) {
  return (int64_t)rig->dev.ops->allocated(rig->dev.ctx);
}

static void check_action(qk_rig_t *rig, const qk_values_t *values, const char *name) {
  qk_action_params_t p = params_wilson(0.3, 0, -1);
  qk_err_t err = {0};
  p.values = *values;
  p.phase[0][0] = 0.8; /* no sign alone */
  p.phase[0][1] = 0.6;
  rig->geom.ncomp = qk_action_components(qk_action_of(values));
  const int64_t before = allocated(rig);
  double *term = make_term(rig, values);
  p.term = term;
  p.term_scale = 4.3;
  rig_must(qk_operator_create(&rig->dev, rig->work, rig->links, &p, &rig->op, &err), name, &err);
  qk_free(term);
  const qk_action_t *action = qk_action_of(&p.values);
  cr_expect_eq(allocated(rig) - before,
               qk_action_bytes(action, rig->dev.ops, &rig->geom.lat, &p, false),
               "%s: device memory is not what was planned", name);
  run_suite(name, rig->op);
  rig->op->ops->destroy(rig->op);
  rig->op = NULL;
  qk_work_trim(rig->work);
  rig->geom.ncomp = 12;
  cr_expect_eq(allocated(rig), before, "%s: device memory is left", name);
}

Test(operators, of_every_action, .timeout = 200) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  qk_values_t values;
  for (int dense = 0; dense < 2; dense++) {
    rig_open(&rig, NULL, dense ? small : rough, NULL);
    for (int a = 0; qk_action_rows[a].name; a++) {
      if (qk_action_rows[a].is_dense != dense) continue;
      values_for(&qk_action_rows[a], false, &values);
      check_action(&rig, &values, qk_action_rows[a].name);
    }
    rig_close(&rig);
  }
}

Test(operators, with_an_open_boundary, .timeout = 200) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  qk_values_t values;
  char name[64];
  int n = 0;
  rig_open(&rig, NULL, rough, NULL);
  for (int a = 0; qk_action_rows[a].name; a++) {
    if (!values_for(&qk_action_rows[a], true, &values)) continue;
    snprintf(name, sizeof name, "open %s", qk_action_rows[a].name);
    check_action(&rig, &values, name);
    n++;
  }
  cr_expect_geq(n, 3);
  rig_close(&rig);
}

/* ---- what no action has yet ------------------------------------------------------------------ */

/* T = a + i mu gamma_5, weights, and no hops across the edge in t. */
static qk_status_t twisted_local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const double a = 4.2, mu = 0.9, n = a * a + mu * mu;
  (void)in;
  (void)err;
  for (int p = 0; p < 3; p++) {
    parts->t[p] = (qk_local_t){.prec = (qk_prec_t)p, .scalar = a, .q = {{0, mu}, {0, -mu}}};
    parts->inverse[p] =
        (qk_local_t){.prec = (qk_prec_t)p, .scalar = a / n, .q = {{0, -mu / n}, {0, mu / n}}};
  }
  parts->scale = a;
  parts->flops = 48;
  return QK_OK;
}

static qk_status_t weighted_links(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const double weight[4] = {0.3, 0.7, 0.4, 1};
  (void)err;
  memcpy(parts->weight, weight, sizeof weight);
  parts->phase[3][0] = parts->phase[3][1] = 0;
  return qk_links_set(in, parts);
}

Test(operators, with_terms_that_are_made_up, .timeout = 200) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const char *const method[] = {"bicgstab", NULL};
  const qk_action_t twisted = {.name = "twisted, weighted, cut",
                               .adjoint = QK_ADJOINT_PARTS,
                               .chirality = QK_CHIRALITY_NONE,
                               .method = method,
                               .local = twisted_local,
                               .links = weighted_links};
  const qk_action_params_t p = params_wilson(0.3, 0, -1);
  qk_rig_t rig;
  qk_err_t err = {0};
  rig_open(&rig, NULL, rough, NULL);
  rig_must(qk_action_create(&twisted, &rig.dev, rig.work, rig.links, &p, &rig.op, &err), "operator",
           &err);
  run_suite(twisted.name, rig.op);
  rig_close(&rig);
}

/* ---- coarse operators ------------------------------------------------------------------------ */

static void coarse(const chain_plan_t *plan) {
  chain_t c;
  chain_open(&c, plan);
  for (int l = 1; l < c.nlevel; l++) {
    char name[96];
    snprintf(name, sizeof name, "coarse operator %d of %s", l, plan->gauge);
    const subject_t s = {.name = name,
                         .op = c.op[l],
                         .tol = {0, 6e-7, 0},
                         .forms = plan->store == QK_HALF ? 7e-4 : 6e-7};
    operator_suite(&s);
  }
  chain_close(&c);
}

Test(operators, of_coarse_levels, .timeout = 200) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const chain_plan_t plans[] = {
      {"random:6x4x8x12:3", 2, {6}, {{3, 2, 2, 3}}, 0.7, 0.3, QK_SINGLE, 0, 0},
      {"random:4x4x4x8:5", 2, {24}, {{2, 2, 2, 2}}, 1.2, 0.9, QK_HALF, 0, 0},
      {"random:8x4x8x8:9", 3, {4, 6}, {{2, 1, 2, 2}, {2, 2, 2, 1}}, 1.769, 0.5, QK_SINGLE, 0, 0},
      {"builtin:weak:8x8x8x8:4", 3, {8, 6}, {{2, 2, 2, 2}, {2, 2, 1, 2}}, 1, 0, QK_HALF, 0, 0},
      {"random:8x4x8x8:9", 3, {4, 8}, {{2, 1, 2, 2}, {2, 2, 2, 1}}, 1.769, 0.5, QK_SINGLE, 0.7, 3},
      {"random:4x4x4x8:5", 2, {24}, {{2, 2, 2, 2}}, 0, 0.9, QK_HALF, -0.4, 1},
  };
  for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) coarse(&plans[i]);
}
