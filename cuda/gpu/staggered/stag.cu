/* The staggered hop on the GPU: checks, then the launch for the storage type; its links. */
#include "cuda/gpu/staggered/stag.cuh"

#include "cuda/gpu/each.cuh"

#include "cuda/body/staggered/stag_calls.h"

namespace QK_NS {

qk_status_t stag(qk_ops_ctx_t *ctx, const qk_stag_args_t *args) {
  const qk_status_t status = qk_args_stag(ctx, args);
  if (status != QK_OK) return status;
  return with_storage(args->out.prec,
                      [=](auto s) { return stag_launch<stored<decltype(s)>>(ctx, *args); });
}

qk_status_t stag_pack(qk_ops_ctx_t *ctx, const qk_stag_pack_args_t *args) {
  const qk_status_t status = qk_args_stag_pack(ctx, args);
  if (status != QK_OK) return status;
  return with_storage(args->in.prec,
                      [=](auto s) { return stag_pack_launch<stored<decltype(s)>>(ctx, *args); });
}

} // namespace QK_NS
