/* Prolongator and restrictor on the CPU. */
#include "cuda/kernels.h"

namespace QK_NS {

size_t transfer_bytes(const qk_transfer_t *) {
  return 0;
}
qk_status_t restrict_(qk_ops_ctx_t *, const qk_transfer_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t prolong(qk_ops_ctx_t *, const qk_transfer_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t transfer_set(qk_ops_ctx_t *, const qk_transfer_copy_args_t *) {
  return QK_UNSUPPORTED;
}
qk_status_t transfer_get(qk_ops_ctx_t *, const qk_transfer_copy_args_t *) {
  return QK_UNSUPPORTED;
}

} // namespace QK_NS
