/*
 * wilson.c: Wilson fermions, M = 4 + m - 1/2 hop (K. G. Wilson, 1977), and Wilson-clover fermions,
 * M = 4 + m + csw C - 1/2 hop (Sheikholeslami, Wohlert, Nucl. Phys. B 259 (1985) 572).
 */
#include "daemon/engine/action/local.h"

static double four_plus_m(const qk_values_t *values) {
  return 4 + qk_value(values, "mass");
}

static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  (void)err;
  qk_local_number(four_plus_m(&in->params->values), parts);
  return QK_OK;
}

static qk_status_t clover_local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const qk_values_t *v = &in->params->values;
  const double csw = qk_value(v, "csw");
  if (csw == 0) return local(in, parts, err);
  return qk_local_clover(in, four_plus_m(v), csw, parts, err);
}

static int64_t clover_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                            const qk_action_params_t *params, bool making) {
  if (qk_value(&params->values, "csw") == 0) return 0;
  return qk_local_clover_bytes(ops, lat, params, making);
}

static const char *const method[] = {"mg", "bicgstab", "gcr", "cg", NULL};

const qk_action_t qk_action_wilson = {.name = "wilson",
                                      .adjoint = QK_ADJOINT_GAMMA5,
                                      .chirality = QK_CHIRALITY_SPIN,
                                      .method = method,
                                      .local = local};

const qk_action_t qk_action_wilson_clover = {.name = "wilson-clover",
                                             .adjoint = QK_ADJOINT_GAMMA5,
                                             .chirality = QK_CHIRALITY_SPIN,
                                             .method = method,
                                             .bytes = clover_bytes,
                                             .local = clover_local};
