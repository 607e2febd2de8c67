/*
 * foreign.c: Wilson fermions whose local term another program has made: M = T - 1/2 hop, with T as
 * it is given (params->term), mass and all. The hops have weights.
 */
#include <string.h>

#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"

static qk_status_t check(const qk_values_t *v, qk_err_t *err) {
  return qk_links_check_apart(v, false, err);
}

static qk_status_t links(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  int n;
  (void)err;
  memcpy(parts->weight, qk_value_reals(&in->params->values, "hop", &n), sizeof parts->weight);
  return qk_links_set(in, parts);
}

static const char *const method[] = {"mg", "bicgstab", "gcr", "cg", NULL};

const qk_action_t qk_action_foreign_clover = {.name = "foreign-clover",
                                              .adjoint = QK_ADJOINT_GAMMA5,
                                              .chirality = QK_CHIRALITY_SPIN,
                                              .method = method,
                                              .check = check,
                                              .bytes = qk_local_clover_bytes,
                                              .local = qk_local_given,
                                              .links = links,
                                              .apart = true};
