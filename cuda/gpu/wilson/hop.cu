/* The operator on the GPU: checks, then the launch for the storage type. */
#include "cuda/args/hop_args.h"
#include "cuda/gpu/wilson/hop.cuh"
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t hop(qk_ops_ctx_t *ctx, const qk_hop_args_t *args) {
  const char *misfit = qk_hop_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "hop: %s", misfit);
  switch (args->out.prec) {
  case QK_DOUBLE:
    return hop_launch<double>(ctx, *args);
  case QK_SINGLE:
    return hop_launch<float>(ctx, *args);
  case QK_HALF:
    return hop_launch<half>(ctx, *args);
  }
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "hop: prec = %d", (int)args->out.prec);
}

qk_status_t pack(qk_ops_ctx_t *ctx, const qk_pack_args_t *args) {
  const char *misfit = qk_pack_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "pack: %s", misfit);
  switch (args->in.prec) {
  case QK_DOUBLE:
    return pack_launch<double>(ctx, *args);
  case QK_SINGLE:
    return pack_launch<float>(ctx, *args);
  case QK_HALF:
    return pack_launch<half>(ctx, *args);
  }
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "pack: prec = %d", (int)args->in.prec);
}

} // namespace QK_NS
