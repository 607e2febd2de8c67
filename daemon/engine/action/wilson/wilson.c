/*
 * wilson.c: Wilson fermions, M = m + sum_mu w_mu - 1/2 hop (K. G. Wilson, 1977), with the clover
 * term (Sheikholeslami, Wohlert, Nucl. Phys. B 259 (1985) 572), and on anisotropic lattices
 * (Edwards, Joo, Lin, Phys. Rev. D 78 (2008) 054501). The hops have the weights w_mu, the clover
 * term a coefficient for each plane. Exponential clover fermions (A. Francis, P. Fritzsch,
 * M. Luescher, A. Rago, Comput. Phys. Commun. 255 (2020) 107355): (4 + m) exp[C / (4 + m)] in place
 * of 4 + m + C.
 */
#include <math.h>
#include <string.h>

#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"
#include "daemon/engine/action/open.h"

/* What the parameters of an action come to. */
typedef struct terms {
  double hop[4];
  qk_clover_t clover;
} terms_t;

/* The number of T: weights from x on, then the mass, which gives the bits of 4 + m. */
static double number_of(const qk_values_t *v, const double hop[4]) {
  return hop[0] + hop[1] + hop[2] + hop[3] + qk_value(v, "mass");
}

static terms_t isotropic(const qk_values_t *v) {
  int n, planes;
  const double *hop = qk_value_reals(v, "hop", &n),
               *plane = qk_value_reals(v, "clover-plane", &planes);
  terms_t t = {.clover.csw = plane ? qk_value(v, "csw") : 0};
  memcpy(t.hop, hop, sizeof t.hop);
  if (plane) memcpy(t.clover.plane, plane, sizeof t.clover.plane);
  t.clover.a = number_of(v, t.hop);
  return t;
}

static terms_t exponential(const qk_values_t *v) {
  terms_t t = {
      .hop = {1, 1, 1, 1},
      .clover = {.csw = qk_value(v, "csw"), .plane = {1, 1, 1, 1, 1, 1}, .exponential = true}};
  t.clover.a = number_of(v, t.hop);
  return t;
}

static terms_t anisotropic(const qk_values_t *v) {
  const double xi0 = qk_value(v, "xi0"), space = qk_value(v, "nu") / xi0;
  const double r = qk_value(v, "c-r") / xi0, time = qk_value(v, "c-t");
  terms_t t = {.hop = {space, space, space, 1},
               .clover = {.csw = r != 0 || time != 0, .plane = {r, r, r, time, time, time}}};
  t.clover.a = number_of(v, t.hop);
  return t;
}

/* The parameters tell which. */
static terms_t terms_of(const qk_values_t *v) {
  int n;
  terms_t t = !isnan(qk_value(v, "xi0"))     ? anisotropic(v)
              : qk_value_reals(v, "hop", &n) ? isotropic(v)
                                             : exponential(v);
  t.clover.open = qk_open_of(v);
  return t;
}

/* T is the same number on all sites. */
static bool is_number(const terms_t *t) {
  return t->clover.csw == 0 && !t->clover.open.is;
}

/* ---- the table's functions ------------------------------------------------------------------- */

static qk_status_t check(const qk_values_t *v, qk_err_t *err) {
  const terms_t t = terms_of(v);
  const qk_status_t status = qk_links_check_apart(v, t.clover.csw != 0, err);
  if (status != QK_OK || t.clover.a > 0) return status;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "mass = %.15g: must be above %.15g, minus the sum of the weights of the hops",
                 qk_value(v, "mass"), qk_value(v, "mass") - t.clover.a);
}

static qk_status_t links(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const terms_t t = terms_of(&in->params->values);
  (void)err;
  memcpy(parts->weight, t.hop, sizeof parts->weight);
  return qk_links_set(in, parts);
}

static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const terms_t t = terms_of(&in->params->values);
  if (!is_number(&t)) return qk_local_clover(in, &t.clover, parts, err);
  qk_local_number(t.clover.a, parts);
  return QK_OK;
}

static int64_t bytes(const qk_ops_t *ops, const qk_lattice_t *lat, const qk_action_params_t *params,
                     bool making) {
  const terms_t t = terms_of(&params->values);
  if (is_number(&t)) return 0;
  return qk_local_clover_bytes(ops, lat, params, making);
}

static const char *const method[] = {"mg", "bicgstab", "gcr", "cg", NULL};

#define WILSON_TYPE                                                                                \
  .adjoint = QK_ADJOINT_GAMMA5, .chirality = QK_CHIRALITY_SPIN, .method = method, .check = check,  \
  .bytes = bytes, .local = local, .links = links, .apart = true

const qk_action_t qk_action_wilson = {.name = "wilson", WILSON_TYPE};
const qk_action_t qk_action_wilson_clover = {.name = "wilson-clover", WILSON_TYPE};
const qk_action_t qk_action_exp_clover = {.name = "exp-clover", WILSON_TYPE};
const qk_action_t qk_action_anisotropic_clover = {.name = "anisotropic-clover", WILSON_TYPE};
