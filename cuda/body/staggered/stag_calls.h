/*
 * stag_calls.h: the entries that make links of the staggered hop, written once over the launcher
 * each_site (gauge_calls.h).
 */
#ifndef QK_BODY_STAG_CALLS_H
#define QK_BODY_STAG_CALLS_H

#include "cuda/args/stag_args.h"
#include "cuda/body/staggered/stag.h"
#include "cuda/ctx.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {

qk_status_t stag_links(qk_ops_ctx_t *ctx, const qk_stag_links_args_t *a) {
  const qk_status_t status = qk_args_stag_links(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->out.prec, [=](auto s) {
    return each_site(ctx, 2 * a->lat.vcb, stag_links_site<stored<decltype(s)>>{*a});
  });
}

qk_status_t stag_behind(qk_ops_ctx_t *ctx, const qk_stag_behind_args_t *a) {
  const qk_status_t status = qk_args_stag_behind(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->in.prec, [=](auto s) {
    return each_site(ctx, stag_behind_sites(*a), stag_behind_site<stored<decltype(s)>>{*a});
  });
}

} // namespace QK_NS
#endif
