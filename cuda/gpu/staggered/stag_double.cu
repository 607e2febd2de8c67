#include "cuda/gpu/staggered/stag.cuh"

namespace QK_NS {
template qk_status_t stag_launch<double>(qk_ops_ctx_t *, const qk_stag_args_t &);
template qk_status_t stag_pack_launch<double>(qk_ops_ctx_t *, const qk_stag_pack_args_t &);
} // namespace QK_NS
