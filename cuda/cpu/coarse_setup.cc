/* What a multigrid setup is made of, on the CPU. */
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t orthonormalise(qk_ops_ctx_t *, const qk_orthonormalise_args_t *, int64_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t galerkin(qk_ops_ctx_t *, const qk_galerkin_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t coarse_close(qk_ops_ctx_t *, const qk_coarse_close_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t coarse_face(qk_ops_ctx_t *, const qk_coarse_face_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t coarse_invert(qk_ops_ctx_t *, const qk_coarse_invert_args_t *, int64_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t coarse_times(qk_ops_ctx_t *, const qk_coarse_times_args_t *) {
  return QK_UNSUPPORTED;
}

} // namespace QK_NS
