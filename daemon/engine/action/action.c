#include "daemon/engine/action/action.h"

#include <math.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/engine/action/eo_masses.h"
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/open.h"

bool qk_action_allows(const qk_action_t *action, const char *method) {
  for (int i = 0; action->method[i]; i++)
    if (strcmp(action->method[i], method) == 0) return true;
  return false;
}

double qk_action_twist(const qk_action_t *action, const qk_values_t *values) {
  return action->twist ? action->twist(values) : 0;
}

int qk_action_slices(const qk_action_t *action, const qk_values_t *values) {
  return action->slices ? action->slices(values) : 1;
}

int qk_action_components(const qk_action_t *action) {
  return action->stencil ? action->stencil->components : 12;
}

int qk_action_faces(const qk_action_t *action) {
  return action->stencil ? action->stencil->faces : 6;
}

qk_status_t qk_action_check(const qk_action_t *action, const qk_values_t *values, qk_err_t *err) {
  return action->check ? action->check(values, err) : QK_OK;
}

int64_t qk_action_bytes(const qk_action_t *action, const qk_ops_t *ops, const qk_lattice_t *lat,
                        const qk_action_params_t *params, bool making) {
  const int64_t t = action->bytes ? action->bytes(ops, lat, params, making) : 0;
  const int64_t own = action->links_bytes ? action->links_bytes(ops, lat, params, making) : 0;
  if (!making) return (action->links_bytes ? own : qk_links_bytes(ops, lat, params)) + t;
  const qk_links_recipe_t recipe = qk_links_recipe(&params->values);
  const int64_t uploaded = action->from_host ? 0 : qk_links_upload_bytes(lat, &recipe);
  const int64_t beside = uploaded + own + t;
  const int64_t smearing =
      qk_links_smear_bytes(lat, &recipe) - qk_action_bytes(action, ops, lat, params, false);
  return beside > smearing ? beside : smearing;
}

static qk_status_t check(const qk_action_t *action, const qk_geom_t *geom,
                         const qk_action_params_t *p, qk_err_t *err) {
  if (geom->ncomp != qk_action_components(action))
    return qk_fail(err, QK_BAD_ARGUMENT, "fields of %d components: %s has %d", geom->ncomp,
                   action->name, qk_action_components(action));
  for (int mu = 0; mu < 4; mu++) {
    const double modulus = hypot(p->phase[mu][0], p->phase[mu][1]);
    if (!(fabs(modulus - 1) < 1e-12))
      return qk_fail(err, QK_BAD_ARGUMENT, "boundary phase %d has modulus %.17g: it must be 1", mu,
                     modulus);
  }
  for (int i = 0; i < 3; i++) {
    const int r = p->link_reals[i];
    if (p->want[i] && r != 18 && r != 12 && r != 8)
      return qk_fail(err, QK_BAD_ARGUMENT, "link_reals[%d] = %d: must be 18, 12 or 8", i, r);
    const qk_status_t status = qk_open_fits(&p->values, p->want[i] ? r : 0, geom->global[3], err);
    if (status != QK_OK) return status;
  }
  return qk_action_check(action, &p->values, err);
}

static void enter(const qk_action_params_t *p, const char *phase) {
  if (p->progress != NULL) p->progress(p->arg, phase, 0, 1);
}

static qk_status_t fill_parts(const qk_action_t *action, qk_action_in_t *in, qk_eo_parts_t *parts,
                              qk_err_t *err) {
  qk_status_t status = action->links ? action->links(in, parts, err) : qk_links_set(in, parts);
  if (status != QK_OK) return status;
  status = action->local(in, parts, err);
  return status == QK_OK ? in->dev->ops->queue_sync(in->dev->ctx, 0) : status;
}

static qk_status_t upload(qk_action_in_t *in, qk_err_t *err) {
  const qk_links_recipe_t recipe = qk_links_recipe(&in->params->values);
  const qk_status_t status = qk_links_upload(in->dev, in->links, &recipe.hop, &in->gauge, err);
  if (status == QK_OK && recipe.apart)
    return qk_links_upload(in->dev, in->links, &recipe.clover, &in->clover, err);
  in->clover = in->gauge;
  return status;
}

static qk_status_t make_parts(const qk_action_t *action, qk_action_in_t *in, qk_eo_parts_t *parts,
                              qk_err_t *err) {
  const qk_action_params_t *p = in->params;
  memcpy(parts->want, p->want, sizeof parts->want);
  memcpy(parts->phase, p->phase, sizeof parts->phase);
  enter(p, "upload");
  qk_status_t status = action->from_host ? QK_OK : upload(in, err);
  enter(p, action->adjoint == QK_ADJOINT_ANTI ? "links" : "clover");
  if (status == QK_OK) status = fill_parts(action, in, parts, err);
  void *const hop = (void *)in->gauge.u.data, *const clover = (void *)in->clover.u.data;
  if (clover && clover != hop) in->dev->ops->free(in->dev->ctx, clover);
  if (hop) in->dev->ops->free(in->dev->ctx, hop);
  return status;
}

static qk_status_t compose(const qk_action_t *action, const qk_action_params_t *params,
                           qk_operator_t **op, qk_err_t *err) {
  qk_operator_t *base = *op;
  *op = NULL;
  return action->compose(params, base, op, err);
}

qk_status_t qk_action_create(const qk_action_t *action, const qk_device_t *dev, qk_work_t *work,
                             const double *links, const qk_action_params_t *params,
                             qk_operator_t **op, qk_err_t *err) {
  qk_status_t status = check(action, dev->geom, params, err);
  if (status != QK_OK) return status;
  const qk_operator_t described = {.action = action->name,
                                   .adjoint = action->adjoint,
                                   .chirality = action->chirality,
                                   .masses =
                                       action->adjoint == QK_ADJOINT_ANTI ? &qk_eo_masses : NULL};
  qk_action_in_t in = {.dev = dev, .params = params, .links = links};
  qk_eo_parts_t parts = {.twist = qk_action_twist(action, &params->values),
                         .stencil = action->stencil};
  qk_operator_t *made = NULL;
  status = make_parts(action, &in, &parts, err);
  if (status == QK_OK)
    status = qk_eo_create(dev, work, &described, &parts, &made, err);
  else
    qk_eo_parts_free(dev, &parts);
  if (action->compose) status = qk_comm_agree(dev->geom->comm, status, err);
  if (status == QK_OK && action->compose) status = compose(action, params, &made, err);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status != QK_OK) {
    if (made) made->ops->destroy(made);
    return qk_fail(err, status, "setting up the operator: %s", qk_status_text(status));
  }
  made->open = qk_open_of(&params->values).is;
  *op = made;
  return QK_OK;
}
