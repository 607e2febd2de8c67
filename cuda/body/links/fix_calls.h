/*
 * fix_calls.h: gauge fixing, written once over the launcher each_group, as update_calls.h.
 */
#ifndef QK_BODY_FIX_CALLS_H
#define QK_BODY_FIX_CALLS_H

#include "cuda/args/link_args.h"
#include "cuda/body/links/fix.h"
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t fix_relax(qk_ops_ctx_t *ctx, const qk_fix_relax_args_t *a) {
  const qk_status_t status = qk_args_fix_relax(ctx, a);
  if (status != QK_OK) return status;
  const update_plan plan = plan_parity(a->lat, a->u, a->parity);
  switch (a->first) {
  case 0:
    return each_group(ctx, plan.nwork, fix_relaxer<0>{plan, a->g, a->directions, a->omega});
  case 1:
    return each_group(ctx, plan.nwork, fix_relaxer<1>{plan, a->g, a->directions, a->omega});
  default:
    return each_group(ctx, plan.nwork, fix_relaxer<2>{plan, a->g, a->directions, a->omega});
  }
}

qk_status_t fix_rotate(qk_ops_ctx_t *ctx, const qk_fix_rotate_args_t *a) {
  qk_status_t status = qk_args_fix_rotate(ctx, a);
  for (int parity = 0; parity < 2 && status == QK_OK; parity++) {
    const update_plan plan = plan_parity(a->lat, a->u, parity);
    status = each_group(ctx, plan.nwork, fix_rotator{plan, (double *)a->g});
  }
  return status;
}

} // namespace QK_NS
#endif
