/*
 * gauge_calls.h: the gauge entries of the table, written once over the two launchers that the file
 * including this has defined in QK_NS:
 *
 *   qk_status_t each_site(ctx, nsites, body)
 *     body.site(s) for all s
 *   qk_status_t reduce_sites(ctx, nsites, body, sum)
 *     body.site(s, v) joined into sum[body.n], which the caller has filled with the neutral
 *     element; waits for the result
 */
#ifndef QK_BODY_GAUGE_CALLS_H
#define QK_BODY_GAUGE_CALLS_H

#include "cuda/args/gauge_args.h"
#include "cuda/body/gauge.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {

inline int all_sites(const qk_lattice_t &lat) {
  return 2 * lat.vcb;
}

inline size_t word_bytes(qk_prec_t prec) {
  return (size_t)qk_prec_bytes(prec);
}

qk_status_t plaquette(qk_ops_ctx_t *ctx, const qk_plaquette_args_t *a) {
  double sum[6] = {};
  qk_status_t status = qk_args_plaquette(ctx, a);
  if (status == QK_OK)
    status = reduce_sites(ctx, all_sites(a->gauge.lat), plaquette_sums{a->gauge}, sum);
  if (status == QK_OK) memcpy(a->plaq, sum, sizeof sum);
  return status;
}

qk_status_t unitarity(qk_ops_ctx_t *ctx, const qk_unitarity_args_t *a) {
  double sum[3] = {};
  qk_status_t status = qk_args_unitarity(ctx, a);
  if (status == QK_OK)
    status = reduce_sites(ctx, all_sites(a->gauge.lat), unitarity_sums{a->gauge}, sum);
  if (status != QK_OK) return status;
  *a->dev = sum[0];
  *a->det = sum[1];
  *a->link_trace = sum[2];
  return QK_OK;
}

size_t links_bytes(const qk_lattice_t *lat, qk_prec_t prec, int reals) {
  return (size_t)all_sites(*lat) * 4 * (size_t)reals * word_bytes(prec);
}

template <class S>
static qk_status_t links_set_as(qk_ops_ctx_t *ctx, const qk_links_set_args_t *a, S *) {
  S *out = (S *)a->out.data;
  const int n = all_sites(a->gauge.lat);
  if (a->out.reals == 18) return each_site(ctx, n, links_site<S, 18>{a->gauge, out, a->open});
  if (a->out.reals == 12) return each_site(ctx, n, links_site<S, 12>{a->gauge, out, a->open});
  return each_site(ctx, n, links_site<S, 8>{a->gauge, out, 0});
}

qk_status_t links_set(qk_ops_ctx_t *ctx, const qk_links_set_args_t *a) {
  const qk_status_t status = qk_args_links_set(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->out.prec, [&](auto s) { return links_set_as(ctx, a, s); });
}

template <class S>
static qk_status_t links_convert_as(qk_ops_ctx_t *ctx, const qk_links_convert_args_t *a, S *) {
  const double *from = (const double *)a->in.data;
  S *to = (S *)a->out.data;
  const int n = all_sites(a->lat);
  if (a->in.reals == 12) return each_site(ctx, n, links_narrowed<S, 12, 12>{from, to});
  if (a->out.reals == 12) return each_site(ctx, n, links_narrowed<S, 18, 12>{from, to});
  return each_site(ctx, n, links_narrowed<S, 18, 18>{from, to});
}

qk_status_t links_convert(qk_ops_ctx_t *ctx, const qk_links_convert_args_t *a) {
  const qk_status_t status = qk_args_links_convert(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->out.prec, [&](auto s) { return links_convert_as(ctx, a, s); });
}

size_t diag_bytes(const qk_lattice_t *lat, qk_prec_t prec) {
  return (size_t)all_sites(*lat) * QK_DIAG_SITE * word_bytes(prec);
}

qk_status_t clover_set(qk_ops_ctx_t *ctx, const qk_clover_set_args_t *a) {
  const qk_status_t status = qk_args_clover_set(ctx, a);
  if (status != QK_OK) return status;
  return each_site(ctx, all_sites(a->gauge.lat), clover_site{*a});
}

qk_status_t diag_exp(qk_ops_ctx_t *ctx, const qk_diag_exp_args_t *a) {
  double sum[1] = {};
  qk_status_t status = qk_args_diag_exp(ctx, a);
  if (status == QK_OK)
    status = reduce_sites(ctx, all_sites(a->lat), exp_sums{*a, (double *)a->out->data}, sum);
  if (status == QK_OK) *a->beyond = (int64_t)sum[0];
  return status;
}

qk_status_t diag_invert(qk_ops_ctx_t *ctx, const qk_diag_invert_args_t *a) {
  const int n = all_sites(a->lat);
  qk_status_t status = qk_args_diag_invert(ctx, a);
  if (status != QK_OK) return status;
  if (a->in.data == NULL) {
    const double x = a->square ? a->in.scalar * a->in.scalar + a->shift : a->in.scalar;
    const bool good = x - x == 0 && (a->positive ? x > 0 : x != 0);
    *a->singular = good ? 0 : n;
    a->out->data = NULL;
    a->out->scalar = good ? 1 / x : 0;
    return QK_OK;
  }
  double sum[1] = {};
  const invert_sums body = {(const double *)a->in.data,
                            (double *)a->out->data,
                            a->square != 0,
                            a->positive != 0,
                            a->shift,
                            a->most};
  status = reduce_sites(ctx, n, body, sum);
  if (status == QK_OK) *a->singular = (int64_t)sum[0];
  return status;
}

qk_status_t diag_convert(qk_ops_ctx_t *ctx, const qk_diag_convert_args_t *a) {
  const double *from = (const double *)a->in.data;
  void *to = (void *)a->out->data;
  const int n = all_sites(a->lat);
  const qk_status_t status = qk_args_diag_convert(ctx, a);
  if (status != QK_OK) return status;
  a->out->scalar = a->in.scalar;
  if (from == NULL) {
    a->out->data = NULL;
    return QK_OK;
  }
  return with_storage(a->out->prec, [&](auto s) {
    using S = stored<decltype(s)>;
    return each_site(ctx, n, convert_site<S>{from, (S *)to});
  });
}

} // namespace QK_NS
#endif
