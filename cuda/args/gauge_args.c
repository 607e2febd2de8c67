#include "cuda/args/gauge_args.h"

#include <math.h>
#include <stdbool.h>

#define BAD(...) qk_ctx_fail(ctx, QK_BAD_ARGUMENT, __VA_ARGS__)

static qk_status_t gauge(qk_ops_ctx_t *ctx, const char *call, const qk_gauge_args_t *a) {
  if (a->u.data == NULL) return BAD("%s: the links have no data", call);
  for (int mu = 0; mu < 4; mu++)
    if (a->u.e[mu] != a->lat.l[mu] + 2 * a->lat.split[mu])
      return BAD("%s: e[%d] = %d: %d, the local extent and its halo", call, mu, a->u.e[mu],
                 a->lat.l[mu] + 2 * a->lat.split[mu]);
  return QK_OK;
}

static qk_status_t check_open(qk_ops_ctx_t *ctx, const char *call, const qk_open_t *a) {
  return a->is && !isfinite(a->edge) ? BAD("%s: edge = %g: a number", call, a->edge) : QK_OK;
}

qk_status_t qk_args_plaquette(qk_ops_ctx_t *ctx, const qk_plaquette_args_t *a) {
  const qk_status_t status = gauge(ctx, "plaquette", &a->gauge);
  if (status != QK_OK) return status;
  return a->plaq == NULL ? BAD("plaquette: plaq is missing") : QK_OK;
}

qk_status_t qk_args_unitarity(qk_ops_ctx_t *ctx, const qk_unitarity_args_t *a) {
  const qk_status_t status = gauge(ctx, "unitarity", &a->gauge);
  if (status != QK_OK) return status;
  if (a->dev == NULL || a->det == NULL || a->link_trace == NULL)
    return BAD("unitarity: dev, det or link_trace is missing");
  return QK_OK;
}

qk_status_t qk_args_links_set(qk_ops_ctx_t *ctx, const qk_links_set_args_t *a) {
  const qk_links_t *out = &a->out;
  const qk_status_t status = gauge(ctx, "links_set", &a->gauge);
  if (status != QK_OK) return status;
  if (out->data == NULL) return BAD("links_set: no memory given");
  if (out->reals != 18 && out->reals != 12 && out->reals != 8)
    return BAD("links_set: reals = %d: 18, 12 or 8", out->reals);
  if (a->open && out->reals == 8)
    return BAD("links_set: reals = 8: 18 or 12 with an open boundary, whose links are zero");
  if ((unsigned)out->prec >= QK_PRECS)
    return BAD("links_set: prec = %d: 0 to %d", (int)out->prec, QK_PRECS - 1);
  return QK_OK;
}

qk_status_t qk_args_links_convert(qk_ops_ctx_t *ctx, const qk_links_convert_args_t *a) {
  const qk_links_t *in = &a->in, *out = &a->out;
  const bool forms = in->reals != 8 && out->reals != 8 && out->reals <= in->reals;
  if (in->data == NULL || out->data == NULL || in->prec != QK_DOUBLE || !forms)
    return BAD("links_convert: precision %d, reals %d to %d: from double, 18 or 12 reals to "
               "no more",
               (int)in->prec, in->reals, out->reals);
  if ((unsigned)out->prec >= QK_PRECS)
    return BAD("links_convert: prec = %d: 0 to %d", (int)out->prec, QK_PRECS - 1);
  return QK_OK;
}

qk_status_t qk_args_clover_set(qk_ops_ctx_t *ctx, const qk_clover_set_args_t *a) {
  const qk_status_t status = gauge(ctx, "clover_set", &a->gauge);
  if (status != QK_OK) return status;
  if (a->out.data == NULL || a->out.prec != QK_DOUBLE)
    return BAD("clover_set: out must have memory in double");
  for (int i = 0; i < QK_PLANES; i++)
    if (!isfinite(a->plane[i])) return BAD("clover_set: plane[%d] = %g: a number", i, a->plane[i]);
  return check_open(ctx, "clover_set", &a->open);
}

/* A alone: what these calls know of a local term. */
static qk_status_t a_alone(qk_ops_ctx_t *ctx, const char *call, const qk_local_t *in) {
  if (in->b != NULL) return BAD("%s: in: b must be absent", call);
  for (int c = 0; c < 2; c++)
    if (in->q[c][0] != 0 || in->q[c][1] != 0)
      return BAD("%s: in: q[%d] = %g, %g: 0, 0", call, c, in->q[c][0], in->q[c][1]);
  return QK_OK;
}

qk_status_t qk_args_diag_exp(qk_ops_ctx_t *ctx, const qk_diag_exp_args_t *a) {
  if (a->out == NULL || a->beyond == NULL) return BAD("diag_exp: out or beyond is missing");
  const qk_status_t status = a_alone(ctx, "diag_exp", &a->in);
  if (status != QK_OK) return status;
  if (a->in.data == NULL || a->out->data == NULL || a->in.prec != QK_DOUBLE ||
      a->out->prec != QK_DOUBLE)
    return BAD("diag_exp: in and out must have memory in double");
  if (!isfinite(a->factor) || !isfinite(a->number) || !(a->most > 0))
    return BAD("diag_exp: factor, number, most = %g, %g, %g: numbers, most above 0", a->factor,
               a->number, a->most);
  return check_open(ctx, "diag_exp", &a->open);
}

qk_status_t qk_args_diag_invert(qk_ops_ctx_t *ctx, const qk_diag_invert_args_t *a) {
  if (a->out == NULL || a->singular == NULL) return BAD("diag_invert: out or singular is missing");
  const qk_status_t status = a_alone(ctx, "diag_invert", &a->in);
  if (status != QK_OK) return status;
  if (a->in.data == NULL) return QK_OK;
  if (a->out->data == NULL || a->in.prec != QK_DOUBLE || a->out->prec != QK_DOUBLE)
    return BAD("diag_invert: in and out must have memory in double");
  return QK_OK;
}

qk_status_t qk_args_diag_convert(qk_ops_ctx_t *ctx, const qk_diag_convert_args_t *a) {
  if (a->out == NULL) return BAD("diag_convert: out is missing");
  const qk_status_t status = a_alone(ctx, "diag_convert", &a->in);
  if (status != QK_OK) return status;
  if (a->in.data == NULL) return QK_OK;
  if (a->out->data == NULL || a->in.prec != QK_DOUBLE)
    return BAD("diag_convert: in must be double, out have memory");
  if ((unsigned)a->out->prec >= QK_PRECS)
    return BAD("diag_convert: prec = %d: 0 to %d", (int)a->out->prec, QK_PRECS - 1);
  return QK_OK;
}
