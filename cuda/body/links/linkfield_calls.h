/*
 * linkfield_calls.h: conversion, exchange and sums of links with their halo, and of gauge fixing,
 * written once over the launchers each_site and reduce_sites, as body/gauge_calls.h.
 */
#ifndef QK_BODY_LINKFIELD_CALLS_H
#define QK_BODY_LINKFIELD_CALLS_H

#include "cuda/args/link_args.h"
#include "cuda/body/links/fix_sums.h"
#include "cuda/body/links/linkfield.h"
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t link_import(qk_ops_ctx_t *ctx, const qk_link_copy_args_t *a) {
  qk_status_t status = qk_args_link_copy(ctx, a);
  return status != QK_OK ? status : each_site(ctx, (int)a->n, link_copy_site<true>{*a});
}

qk_status_t link_export(qk_ops_ctx_t *ctx, const qk_link_copy_args_t *a) {
  qk_status_t status = qk_args_link_copy(ctx, a);
  return status != QK_OK ? status : each_site(ctx, (int)a->n, link_copy_site<false>{*a});
}

qk_status_t links_from_field(qk_ops_ctx_t *ctx, const qk_links_from_field_args_t *a) {
  const qk_status_t status = qk_args_linkfield(ctx, "links_from_field", &a->lat, &a->u);
  if (status != QK_OK) return status;
  if (a->out.data == NULL || a->out.prec != QK_DOUBLE || a->out.reals != 18)
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT,
                       "links_from_field: out must have memory for 18 reals in double");
  return each_site(ctx, 2 * a->lat.vcb, link_tile_site{a->lat, a->u, (double *)a->out.data});
}

inline int64_t box_sites(const qk_link_box_args_t *a) {
  int64_t n = 1;
  for (int nu = 0; nu < 4; nu++) n *= a->hi[nu] - a->lo[nu];
  return n;
}

qk_status_t link_pack(qk_ops_ctx_t *ctx, const qk_link_box_args_t *a) {
  const qk_status_t status = qk_args_link_box(ctx, a);
  if (status != QK_OK) return status;
  return each_site(ctx, (int)box_sites(a), link_box_site<true>{*a, box_sites(a)});
}

qk_status_t link_unpack(qk_ops_ctx_t *ctx, const qk_link_box_args_t *a) {
  const qk_status_t status = qk_args_link_box(ctx, a);
  if (status != QK_OK) return status;
  return each_site(ctx, (int)box_sites(a), link_box_site<false>{*a, box_sites(a)});
}

qk_status_t link_sums(qk_ops_ctx_t *ctx, const qk_link_sums_args_t *a) {
  qk_status_t status = qk_args_link_sums(ctx, a);
  double v[QK_LINK_SUMS] = {};
  if (status == QK_OK) status = reduce_sites(ctx, 2 * a->lat.vcb, link_loop_sums{*a}, v);
  if (status == QK_OK) memcpy(a->sum, v, sizeof v);
  return status;
}

qk_status_t fix_sums(qk_ops_ctx_t *ctx, const qk_fix_sums_args_t *a) {
  qk_status_t status = qk_args_fix_sums(ctx, a);
  if (status != QK_OK) return status;
  const int32_t *l = a->lat.l;
  for (int t = 0; t < l[3] && status == QK_OK; t++) {
    double v[fix_slice_sums::n] = {};
    status = reduce_sites(ctx, l[0] * l[1] * l[2], fix_slice_sums{*a, t}, v);
    if (status == QK_OK) memcpy(a->sum + (int64_t)t * fix_slice_sums::n, v, sizeof v);
  }
  return status;
}

} // namespace QK_NS
#endif
