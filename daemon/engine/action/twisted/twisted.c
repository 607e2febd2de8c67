/*
 * twisted.c: twisted mass fermions, M = 4 + m + i mu gamma_5 tau_3 - 1/2 hop (R. Frezzotti,
 * P. A. Grassi, S. Sint, P. Weisz, JHEP 08 (2001) 058, hep-lat/0101001), with the clover term.
 * tau_3 is the flavour of a right-hand side.
 */
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"

static double twist(const qk_values_t *v) {
  return qk_value(v, "mu");
}

static qk_status_t check(const qk_values_t *v, qk_err_t *err) {
  return qk_links_check_apart(v, qk_value(v, "csw") != 0, err);
}

static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const qk_values_t *v = &in->params->values;
  const double a = 4 + qk_value(v, "mass");
  const qk_clover_t clover = {.a = a, .csw = qk_value(v, "csw"), .plane = {1, 1, 1, 1, 1, 1}};
  if (clover.csw != 0) return qk_local_twisted_clover(in, &clover, twist(v), parts, err);
  qk_local_twisted_number(a, twist(v), parts);
  return QK_OK;
}

static int64_t bytes(const qk_ops_t *ops, const qk_lattice_t *lat, const qk_action_params_t *params,
                     bool making) {
  if (qk_value(&params->values, "csw") == 0) return 0;
  return qk_local_clover_bytes(ops, lat, params, making);
}

/* BiCGStab stagnates near maximal twist. */
static const char *const method[] = {"mg", "cg", "gcr", "bicgstab", NULL};

const qk_action_t qk_action_twisted_clover = {.name = "twisted-clover",
                                              .adjoint = QK_ADJOINT_TWISTED,
                                              .chirality = QK_CHIRALITY_SPIN,
                                              .method = method,
                                              .check = check,
                                              .twist = twist,
                                              .bytes = bytes,
                                              .local = local};
