#include "daemon/engine/action/local.h"

#include <math.h>
#include <string.h>

enum { FLOPS_NUMBER = 24, FLOPS_BLOCKS = 504 }; /* of A times a spinor */

void qk_local_number(double a, qk_eo_parts_t *parts) {
  for (int p = 0; p < QK_PRECS; p++) {
    parts->t[p] = (qk_local_t){.prec = (qk_prec_t)p, .scalar = a};
    parts->inverse[p] = (qk_local_t){.prec = (qk_prec_t)p, .scalar = 1 / a};
  }
  parts->scale = fabs(a);
  parts->flops = FLOPS_NUMBER;
}

static qk_status_t field_alloc(const qk_device_t *dev, qk_prec_t prec, qk_local_t *local) {
  void *data = NULL;
  const size_t bytes = dev->ops->diag_bytes(&dev->geom->lat, prec);
  const qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
  if (status == QK_OK) *local = (qk_local_t){.data = data, .prec = prec};
  return status;
}

/* A copy of a field in double in each precision that is wanted. */
static qk_status_t spread(const qk_action_in_t *in, const qk_local_t *from,
                          qk_local_t to[QK_PRECS]) {
  const qk_device_t *dev = in->dev;
  for (int p = 0; p < QK_PRECS; p++) {
    if (!in->params->want[p]) continue;
    qk_status_t status = field_alloc(dev, (qk_prec_t)p, &to[p]);
    if (status != QK_OK) return status;
    const qk_diag_convert_args_t convert = {.lat = dev->geom->lat, .in = *from, .out = &to[p]};
    status = dev->ops->diag_convert(dev->ctx, &convert);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

static qk_status_t refuse(const qk_action_in_t *in, int64_t singular, qk_err_t *err) {
  char text[QK_OPERATOR_TEXT];
  qk_values_text(&in->params->values, QK_TEXT_GIVEN, text);
  return qk_fail(err, QK_BAD_ARGUMENT, "%.300s: the local term T is singular on %lld sites", text,
                 (long long)singular);
}

qk_status_t qk_local_clover(const qk_action_in_t *in, const qk_clover_t *clover,
                            qk_eo_parts_t *parts, qk_err_t *err) {
  const qk_device_t *dev = in->dev;
  qk_local_t term = {0}, inverse = {0};
  int64_t singular = 0;
  qk_status_t status = field_alloc(dev, QK_DOUBLE, &term);
  if (status != QK_OK) return status;
  status = field_alloc(dev, QK_DOUBLE, &inverse);
  if (status != QK_OK) goto done;
  qk_clover_set_args_t set = {
      .gauge = in->clover, .csw = clover->csw, .diag = clover->a, .out = term};
  memcpy(set.plane, clover->plane, sizeof set.plane);
  status = dev->ops->clover_set(dev->ctx, &set);
  if (status != QK_OK) goto done;
  const qk_diag_invert_args_t invert = {
      .lat = in->gauge.lat, .in = term, .out = &inverse, .singular = &singular};
  status = dev->ops->diag_invert(dev->ctx, &invert);
  if (status != QK_OK) goto done;
  if (singular > 0) {
    status = refuse(in, singular, err);
    goto done;
  }
  status = spread(in, &term, parts->t);
  if (status != QK_OK) goto done;
  status = spread(in, &inverse, parts->inverse);
  if (status != QK_OK) goto done;
  status = dev->ops->queue_sync(dev->ctx, 0);
  parts->scale = fabs(clover->a);
  parts->flops = FLOPS_BLOCKS;
done:
  if (inverse.data) dev->ops->free(dev->ctx, (void *)inverse.data);
  dev->ops->free(dev->ctx, (void *)term.data);
  return status;
}

int64_t qk_local_clover_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                              const qk_action_params_t *params, bool making) {
  if (making) return 2 * (int64_t)ops->diag_bytes(lat, QK_DOUBLE);
  int64_t bytes = 0;
  for (int p = 0; p < QK_PRECS; p++)
    if (params->want[p]) bytes += 2 * (int64_t)ops->diag_bytes(lat, (qk_prec_t)p);
  return bytes;
}
