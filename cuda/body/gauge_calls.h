/*
 * gauge_calls.h: the gauge entries of the table, written once over the two launchers that the file
 * including this has defined in QK_NS:
 *
 *   qk_status_t each_site(ctx, nsites, body)          body.site(s) for all s
 *   qk_status_t reduce_sites(ctx, nsites, body, sum)  body.site(s, v) joined into sum[body.n], which
 *                                                     the caller has filled with the neutral element;
 *                                                     waits for the result
 */
#ifndef QK_BODY_GAUGE_CALLS_H
#define QK_BODY_GAUGE_CALLS_H

#include "cuda/body/gauge.h"
#include "cuda/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {

inline int all_sites(const qk_lattice_t &lat) {
  return 2 * lat.vcb;
}

inline size_t word_bytes(qk_prec_t prec) {
  return prec == QK_DOUBLE ? 8 : prec == QK_SINGLE ? 4 : 2;
}

qk_status_t plaquette(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, double plaq[6]) {
  double sum[6] = {};
  qk_status_t status = reduce_sites(ctx, all_sites(args->lat), plaquette_sums{*args}, sum);
  if (status == QK_OK) memcpy(plaq, sum, sizeof sum);
  return status;
}

qk_status_t unitarity(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, double *dev, double *det,
                      double *link_trace) {
  double sum[3] = {};
  qk_status_t status = reduce_sites(ctx, all_sites(args->lat), unitarity_sums{*args}, sum);
  if (status != QK_OK) return status;
  *dev = sum[0];
  *det = sum[1];
  *link_trace = sum[2];
  return QK_OK;
}

size_t links_bytes(const qk_lattice_t *lat, qk_prec_t prec, int reals) {
  return (size_t)all_sites(*lat) * 4 * (size_t)reals * word_bytes(prec);
}

template <class S>
static qk_status_t links_set_as(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, qk_links_t *links) {
  S *out = (S *)links->data;
  const int n = all_sites(args->lat);
  if (links->reals == 18) return each_site(ctx, n, links_site<S, 18>{*args, out});
  if (links->reals == 12) return each_site(ctx, n, links_site<S, 12>{*args, out});
  return each_site(ctx, n, links_site<S, 8>{*args, out});
}

qk_status_t links_set(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, qk_links_t *links) {
  if (links->data == NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "links_set: no memory given");
  if (links->reals != 18 && links->reals != 12 && links->reals != 8)
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "links_set: reals = %d: 18, 12 or 8", links->reals);
  switch (links->prec) {
  case QK_DOUBLE:
    return links_set_as<double>(ctx, args, links);
  case QK_SINGLE:
    return links_set_as<float>(ctx, args, links);
  case QK_HALF:
    return links_set_as<half>(ctx, args, links);
  }
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "links_set: prec = %d", (int)links->prec);
}

template <class S>
static qk_status_t links_convert_as(qk_ops_ctx_t *ctx, int n, const qk_links_t *in,
                                    qk_links_t *out) {
  const double *from = (const double *)in->data;
  S *to = (S *)out->data;
  if (in->reals == 12) return each_site(ctx, n, links_narrowed<S, 12, 12>{from, to});
  if (out->reals == 12) return each_site(ctx, n, links_narrowed<S, 18, 12>{from, to});
  return each_site(ctx, n, links_narrowed<S, 18, 18>{from, to});
}

qk_status_t links_convert(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const qk_links_t *in,
                          qk_links_t *out) {
  const bool forms = in->reals != 8 && out->reals != 8 && out->reals <= in->reals;
  if (in->data == NULL || out->data == NULL || in->prec != QK_DOUBLE || !forms)
    return qk_ctx_fail(
        ctx, QK_BAD_ARGUMENT,
        "links_convert: precision %d, reals %d to %d: from double, 18 or 12 reals to "
        "no more",
        (int)in->prec, in->reals, out->reals);
  const int n = all_sites(*lat);
  switch (out->prec) {
  case QK_DOUBLE:
    return links_convert_as<double>(ctx, n, in, out);
  case QK_SINGLE:
    return links_convert_as<float>(ctx, n, in, out);
  case QK_HALF:
    return links_convert_as<half>(ctx, n, in, out);
  }
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "links_convert: prec = %d", (int)out->prec);
}

size_t diag_bytes(const qk_lattice_t *lat, qk_prec_t prec) {
  return (size_t)all_sites(*lat) * QK_DIAG_SITE * word_bytes(prec);
}

qk_status_t clover_set(qk_ops_ctx_t *ctx, const qk_gauge_args_t *args, double csw, double diag,
                       qk_diag_t *out) {
  if (out->data == NULL || out->prec != QK_DOUBLE)
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "clover_set: out must have memory in double");
  return each_site(ctx, all_sites(args->lat), clover_site{*args, csw, diag, (double *)out->data});
}

qk_status_t diag_invert(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const qk_diag_t *in,
                        qk_diag_t *out, int64_t *singular) {
  if (in->data == NULL) {
    const bool good = in->scalar != 0 && in->scalar - in->scalar == 0;
    *singular = good ? 0 : all_sites(*lat);
    out->data = NULL;
    out->scalar = good ? 1 / in->scalar : 0;
    return QK_OK;
  }
  if (out->data == NULL || in->prec != QK_DOUBLE || out->prec != QK_DOUBLE)
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "diag_invert: in and out must have memory in double");
  double sum[1] = {};
  qk_status_t status = reduce_sites(
      ctx, all_sites(*lat), invert_sums{(const double *)in->data, (double *)out->data}, sum);
  if (status == QK_OK) *singular = (int64_t)sum[0];
  return status;
}

qk_status_t diag_convert(qk_ops_ctx_t *ctx, const qk_lattice_t *lat, const qk_diag_t *in,
                         qk_diag_t *out) {
  out->scalar = in->scalar;
  if (in->data == NULL) {
    out->data = NULL;
    return QK_OK;
  }
  if (out->data == NULL || in->prec != QK_DOUBLE)
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "diag_convert: in must be double, out have memory");
  const double *from = (const double *)in->data;
  const int n = all_sites(*lat);
  switch (out->prec) {
  case QK_DOUBLE:
    return each_site(ctx, n, convert_site<double>{from, (double *)out->data});
  case QK_SINGLE:
    return each_site(ctx, n, convert_site<float>{from, (float *)out->data});
  case QK_HALF:
    return each_site(ctx, n, convert_site<half>{from, (half *)out->data});
  }
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "diag_convert: prec = %d", (int)out->prec);
}

} // namespace QK_NS
#endif
