/* The operator on the GPU: checks, then the launch for the storage type. */
#include "cuda/args/hop_args.h"
#include "cuda/gpu/wilson/hop.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {

qk_status_t hop(qk_ops_ctx_t *ctx, const qk_hop_args_t *args) {
  const char *misfit = qk_hop_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "hop: %s", misfit);
  if (hop_is_rough(*args)) return hop_rough_launch(ctx, *args);
  return with_storage(qk_hop_prec(args),
                      [=](auto s) { return hop_launch<stored<decltype(s)>>(ctx, *args); });
}

qk_status_t hop_each(qk_ops_ctx_t *ctx, const qk_hop_each_args_t *args) {
  const char *misfit = qk_hop_each_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "hop_each: %s", misfit);
  if (hop_each_is_one(*args)) return hop_each_launch(ctx, *args);
  qk_status_t status = QK_OK;
  for (int k = 0; status == QK_OK && k < args->n; k++) {
    const qk_hop_args_t one = qk_hop_each_one(args, k);
    status = hop(ctx, &one);
  }
  return status;
}

qk_status_t pack(qk_ops_ctx_t *ctx, const qk_pack_args_t *args) {
  const char *misfit = qk_pack_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "pack: %s", misfit);
  return with_storage(args->in.prec,
                      [=](auto s) { return pack_launch<stored<decltype(s)>>(ctx, *args); });
}

} // namespace QK_NS
