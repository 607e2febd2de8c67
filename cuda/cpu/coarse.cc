/* Coarse operators on the CPU. */
#include "cuda/kernels.h"

namespace QK_NS {

size_t coarse_bytes(const qk_lattice_t *, const qk_coarse_links_t *) {
  return 0;
}
qk_status_t coarse(qk_ops_ctx_t *, const qk_coarse_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t coarse_get(qk_ops_ctx_t *, const qk_coarse_copy_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t coarse_set(qk_ops_ctx_t *, const qk_coarse_copy_args_t *) {
  return QK_UNSUPPORTED;
}

} // namespace QK_NS
