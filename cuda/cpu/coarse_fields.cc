/* Faces and chiralities of spinors of any number of components, on the CPU. */
#include "cuda/kernels.h"

namespace QK_NS {

qk_status_t coarse_pack(qk_ops_ctx_t *, const qk_coarse_pack_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t chiral(qk_ops_ctx_t *, const qk_chiral_args_t *) {
  return QK_UNSUPPORTED;
}

} // namespace QK_NS
