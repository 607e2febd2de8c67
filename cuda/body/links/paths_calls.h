/*
 * paths_calls.h: fat and long links and the projection to U(3), written once over the launchers
 * each_group, as update_calls.h, and reduce_sites, as body/gauge_calls.h.
 */
#ifndef QK_BODY_PATHS_CALLS_H
#define QK_BODY_PATHS_CALLS_H

#include "cuda/args/link_args.h"
#include "cuda/body/links/paths.h"
#include "cuda/body/links/project_u3.h"
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t link_paths(qk_ops_ctx_t *ctx, const qk_link_paths_args_t *a) {
  const qk_status_t status = qk_args_link_paths(ctx, a);
  return status != QK_OK ? status : each_group(ctx, 2 * a->lat.vcb, path_maker{*a});
}

qk_status_t link_long(qk_ops_ctx_t *ctx, const qk_link_long_args_t *a) {
  const qk_status_t status = qk_args_link_long(ctx, a);
  return status != QK_OK ? status : each_group(ctx, 2 * a->lat.vcb, long_maker{*a});
}

qk_status_t link_project(qk_ops_ctx_t *ctx, const qk_link_project_args_t *a) {
  qk_status_t status = qk_args_link_project(ctx, a);
  double first = 0;
  if (status == QK_OK) status = each_group(ctx, 8 * a->lat.vcb, link_projector{*a});
  if (status == QK_OK)
    status = reduce_sites(ctx, 2 * a->lat.vcb, link_find_nan{a->lat, a->out}, &first);
  if (status == QK_OK) *a->singular = first > 0 ? (int64_t)(8.0 * a->lat.vcb - first) : -1;
  return status;
}

} // namespace QK_NS
#endif
