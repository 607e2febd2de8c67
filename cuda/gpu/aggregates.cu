/* Aggregates on the GPU. */
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t orthonormalise(qk_ops_ctx_t *, const qk_orthonormalise_args_t *, int64_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t galerkin(qk_ops_ctx_t *, const qk_galerkin_args_t *) {
  return QK_UNSUPPORTED;
}

} // namespace QK_NS
