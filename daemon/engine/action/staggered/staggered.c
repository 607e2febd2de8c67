/*
 * staggered.c: naive staggered fermions, M = m - 1/2 hop = m + D/2 with the hop of stencil.h on
 * links as they are, or smeared (J. Kogut, L. Susskind, Phys. Rev. D 11 (1975) 395; stout links:
 * C. Morningstar, M. Peardon, Phys. Rev. D 69 (2004) 054501).
 */
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"
#include "daemon/engine/action/staggered/stencil.h"

static qk_status_t check(const qk_values_t *v, qk_err_t *err) {
  return qk_links_check_apart(v, false, err);
}

static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  (void)err;
  qk_local_number(qk_value(&in->params->values, "mass"), parts);
  parts->flops = 6; /* of a colour vector */
  return QK_OK;
}

/* The links without signs, in double; their memory is the caller's also after an error. */
static qk_status_t plain(const qk_action_in_t *in, qk_links_t *links) {
  const qk_device_t *dev = in->dev;
  void *data = NULL;
  const size_t bytes = dev->ops->links_bytes(&in->gauge.lat, QK_DOUBLE, 18);
  const qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
  *links = (qk_links_t){.prec = QK_DOUBLE, .reals = 18, .data = data};
  if (status) return status;
  const qk_links_set_args_t set = {.gauge = in->gauge, .out = *links};
  return dev->ops->links_set(dev->ctx, &set);
}

static qk_status_t links(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const qk_device_t *dev = in->dev;
  qk_links_t fat;
  const qk_status_t status = qk_comm_agree(dev->geom->comm, plain(in, &fat), err);
  if (status == QK_OK) return qk_stencil_links(dev, fat, (qk_links_t){.data = NULL}, parts, err);
  if (fat.data) dev->ops->free(dev->ctx, (void *)fat.data);
  return status;
}

static int64_t links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                           const qk_action_params_t *params, bool making) {
  return qk_stencil_bytes(ops, lat, params->want, false, making);
}

static const char *const method[] = {"cg", NULL};

const qk_action_t qk_action_staggered = {.name = "staggered",
                                         .adjoint = QK_ADJOINT_ANTI,
                                         .chirality = QK_CHIRALITY_NONE,
                                         .method = method,
                                         .check = check,
                                         .local = local,
                                         .links = links,
                                         .links_bytes = links_bytes,
                                         .stencil = &qk_stencil_fat};
