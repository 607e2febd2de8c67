/*
 * link_smear_calls.h: link smearing, written once over the launcher each_site,
 * as body/gauge_calls.h.
 */
#ifndef QK_BODY_LINK_SMEAR_CALLS_H
#define QK_BODY_LINK_SMEAR_CALLS_H

#include "cuda/args/link_args.h"
#include "cuda/body/links/link_smear.h"
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t link_smear(qk_ops_ctx_t *ctx, const qk_link_smear_args_t *a) {
  const qk_status_t status = qk_args_link_smear(ctx, a);
  if (status != QK_OK) return status;
  const int directions = __builtin_popcount(a->mask);
  return each_site(ctx, directions * 2 * a->lat.vcb, link_smear_site{*a});
}

} // namespace QK_NS
#endif
