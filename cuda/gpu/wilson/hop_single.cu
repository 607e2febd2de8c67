#include "cuda/gpu/wilson/hop.cuh"

namespace QK_NS {
template qk_status_t hop_launch<float>(qk_ops_ctx_t *, const qk_hop_args_t &);
template qk_status_t pack_launch<float>(qk_ops_ctx_t *, const qk_pack_args_t &);
} // namespace QK_NS
