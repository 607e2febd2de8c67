#include "daemon/engine/action/links.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/action/open.h"
#include "daemon/engine/gauge/gauge.h"

enum { SITE_REALS = 4 * 18 }; /* of the links in double */

/* ---- the parameter --------------------------------------------------------------------------- */

qk_links_recipe_t qk_links_recipe(const qk_values_t *values) {
  const char *text = qk_value_word(values, "links");
  qk_links_recipe_t recipe = {0};
  char why[QK_WHY];
  const bool fits = text == NULL || qk_links_read(text, &recipe, why);
  QK_ASSERT(fits);
  return recipe;
}

bool qk_links_are_exact(const qk_values_t *values, double unitarity, double determinant) {
  const double rounding = 1e-14; /* files of 32 bits are at 1e-7 */
  const qk_links_recipe_t recipe = qk_links_recipe(values);
  const bool smeared = recipe.hop.kind != QK_LINK_SMEAR_NONE && recipe.hop.steps > 0;
  const bool general = qk_values_action(values)->colour; /* signs are in them, some are sums */
  return !general && !smeared && unitarity <= rounding && determinant <= rounding;
}

qk_status_t qk_links_check_apart(const qk_values_t *values, bool clover, qk_err_t *err) {
  const char *text = qk_value_word(values, "links");
  if (clover || !qk_links_recipe(values).apart) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "links = %s: there is no clover term, which could have links of its own", text);
}

/* ---- upload ---------------------------------------------------------------------------------- */

static bool is_split(const qk_lattice_t *lat) {
  return lat->split[0] || lat->split[1] || lat->split[2] || lat->split[3];
}

static qk_status_t upload(const qk_device_t *dev, const double *links, qk_gauge_args_t *gauge,
                          qk_err_t *err) {
  const qk_lattice_t *lat = &dev->geom->lat;
  double *extended = NULL; /* without neighbours the links are what is to be uploaded */
  int e[4] = {lat->l[0], lat->l[1], lat->l[2], lat->l[3]};
  qk_status_t status = is_split(lat) ? qk_gauge_extend(dev->geom, links, &extended, e, err) : QK_OK;
  if (status != QK_OK) return status;
  const double *host = extended != NULL ? extended : links;
  const size_t bytes = (size_t)e[0] * e[1] * e[2] * e[3] * SITE_REALS * sizeof(double);
  void *device = NULL;
  status = dev->ops->alloc(dev->ctx, bytes, &device);
  if (status != QK_OK) goto done;
  status = dev->ops->copy(dev->ctx, device, host, bytes, QK_COPY_TO_DEVICE, 0);
  if (status == QK_OK) status = dev->ops->queue_sync(dev->ctx, 0);
  if (status != QK_OK) {
    dev->ops->free(dev->ctx, device);
    goto done;
  }
  gauge->lat = *lat;
  gauge->u = (qk_gauge_ext_t){.data = device, .e = {e[0], e[1], e[2], e[3]}};
done:
  qk_free(extended);
  return status;
}

static qk_status_t pass_through(qk_gaugefield_t *field, const double *links,
                                const qk_link_smear_t *smear, double *smeared, qk_err_t *err) {
  qk_status_t status = qk_gaugefield_import(field, links);
  if (status != QK_OK) return status;
  status = qk_link_smear_apply(field, smear, err);
  return status == QK_OK ? qk_gaugefield_export(field, smeared) : status;
}

/* Into `smeared`, in host memory. */
static qk_status_t smear_links(const qk_device_t *dev, const double *links,
                               const qk_link_smear_t *smear, double *smeared, qk_err_t *err) {
  qk_gaugefield_t *field;
  qk_status_t status = qk_gaugefield_create(dev, 1, &field);
  if (status != QK_OK) return qk_fail(err, status, "smearing of links: %s", qk_status_text(status));
  status = pass_through(field, links, smear, smeared, err);
  qk_gaugefield_destroy(field);
  return status;
}

static qk_status_t upload_smeared(const qk_device_t *dev, const double *links,
                                  const qk_link_smear_t *smear, double *smeared,
                                  qk_gauge_args_t *gauge, qk_err_t *err) {
  qk_status_t status =
      smeared != NULL ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory for smeared links");
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status != QK_OK) return status;
  status = qk_comm_agree(dev->geom->comm, smear_links(dev, links, smear, smeared, err), err);
  return status == QK_OK ? upload(dev, smeared, gauge, err) : status;
}

/* Other collective calls follow. */
static qk_status_t agree(const qk_device_t *dev, qk_status_t status, qk_err_t *err) {
  return qk_comm_agree(dev->geom->comm, status, err);
}

qk_status_t qk_links_upload(const qk_device_t *dev, const double *links,
                            const qk_link_smear_t *smear, qk_gauge_args_t *gauge, qk_err_t *err) {
  const size_t sites = (size_t)dev->geom->local_volume;
  if (smear->kind == QK_LINK_SMEAR_NONE || smear->steps == 0)
    return agree(dev, upload(dev, links, gauge, err), err);
  double *smeared = qk_malloc(sites * SITE_REALS * sizeof *smeared);
  const qk_status_t status = upload_smeared(dev, links, smear, smeared, gauge, err);
  qk_free(smeared);
  return agree(dev, status, err);
}

/* ---- links of the hop ------------------------------------------------------------------------ */

qk_status_t qk_links_set(const qk_action_in_t *in, qk_eo_parts_t *parts) {
  const qk_device_t *dev = in->dev;
  for (int p = 0; p < QK_PRECS; p++) {
    if (!in->params->want[p]) continue;
    qk_links_t *l = &parts->links[p];
    void *data = NULL;
    *l = (qk_links_t){.prec = (qk_prec_t)p, .reals = in->params->link_reals[p]};
    const size_t bytes = dev->ops->links_bytes(&in->gauge.lat, l->prec, l->reals);
    qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
    if (status != QK_OK) return status;
    l->data = data;
    const qk_links_set_args_t set = {
        .gauge = in->gauge, .out = *l, .open = qk_open_of(&in->params->values).is};
    status = dev->ops->links_set(dev->ctx, &set);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

int64_t qk_links_upload_bytes(const qk_lattice_t *lat, const qk_links_recipe_t *recipe) {
  return (recipe->apart ? 2 : 1) * (int64_t)qk_gaugefield_bytes(lat, 1); /* of as many sites */
}

int64_t qk_links_smear_bytes(const qk_lattice_t *lat, const qk_links_recipe_t *recipe) {
  const int64_t field = (int64_t)qk_gaugefield_bytes(lat, 1);
  const int64_t hop = recipe->hop.steps ? qk_link_smear_bytes(lat, &recipe->hop) : 0;
  const int64_t clover =
      recipe->apart && recipe->clover.steps ? field + qk_link_smear_bytes(lat, &recipe->clover) : 0;
  return hop > clover ? hop : clover; /* one after the other */
}

int64_t qk_links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                       const qk_action_params_t *params) {
  int64_t bytes = 0;
  for (int p = 0; p < QK_PRECS; p++)
    if (params->want[p])
      bytes += (int64_t)ops->links_bytes(lat, (qk_prec_t)p, params->link_reals[p]);
  return bytes;
}
