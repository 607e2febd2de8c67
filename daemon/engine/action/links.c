#include "daemon/engine/action/links.h"

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gauge.h"

enum { SITE_REALS = 4 * 18 }; /* of the links in double */

static bool is_split(const qk_lattice_t *lat) {
  return lat->split[0] || lat->split[1] || lat->split[2] || lat->split[3];
}

qk_status_t qk_links_upload(const qk_device_t *dev, const double *links, qk_gauge_args_t *gauge,
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
    status = dev->ops->links_set(dev->ctx, &(qk_links_set_args_t){.gauge = in->gauge, .out = *l});
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

int64_t qk_links_upload_bytes(const qk_lattice_t *lat) {
  int64_t sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= lat->l[mu] + 2 * lat->split[mu];
  return sites * SITE_REALS * (int64_t)sizeof(double);
}

int64_t qk_links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                       const qk_action_params_t *params) {
  int64_t bytes = 0;
  for (int p = 0; p < QK_PRECS; p++)
    if (params->want[p])
      bytes += (int64_t)ops->links_bytes(lat, (qk_prec_t)p, params->link_reals[p]);
  return bytes;
}
