/*
 * update_calls.h: the Markov chain entries of the table, written once over the launcher that the
 * file including this has defined in QK_NS:
 *
 *   qk_status_t each_group(ctx, n, body)   body.group(w) for w = 0, QK_WIDE, ... < n
 */
#ifndef QK_BODY_UPDATE_CALLS_H
#define QK_BODY_UPDATE_CALLS_H

#include "cuda/args/link_args.h"
#include "cuda/body/links/update.h"
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t link_start(qk_ops_ctx_t *ctx, const qk_link_start_args_t *a) {
  const qk_status_t status = qk_args_link_start(ctx, a);
  if (status != QK_OK) return status;
  return each_group(ctx, 2 * a->lat.vcb, link_starter{*a, link_stride(a->u)});
}

qk_status_t link_update(qk_ops_ctx_t *ctx, const qk_link_update_args_t *a) {
  const qk_status_t status = qk_args_link_update(ctx, a);
  if (status != QK_OK) return status;
  const update_plan plan = plan_update(*a);
  if (a->c1 == 0) {
    if (a->heatbath) return each_group(ctx, plan.nwork, link_updater<true, false>{plan});
    return each_group(ctx, plan.nwork, link_updater<false, false>{plan});
  }
  if (a->heatbath) return each_group(ctx, plan.nwork, link_updater<true, true>{plan});
  return each_group(ctx, plan.nwork, link_updater<false, true>{plan});
}

} // namespace QK_NS
#endif
