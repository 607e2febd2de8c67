/*
 * kernels.h: the kernels of one backend, as its table calls them (table.h). Each build of the
 * kernels (GPU, and the CPU once per instruction set) has its own namespace QK_NS. Names: rows.h;
 * arguments, results and errors: ops.h. The table has already checked that the context is alive.
 */
#ifndef QK_CUDA_KERNELS_H
#define QK_CUDA_KERNELS_H

#include "cuda/ops.h"

namespace QK_NS {

#define QK_DECLARE(name, arguments) qk_status_t name(qk_ops_ctx_t *ctx, const arguments *args);
#define QK_DECLARE_SIZE(name, parameters) size_t name parameters;
QK_KERNELS(QK_DECLARE)
QK_KERNEL_SIZES(QK_DECLARE_SIZE)
#undef QK_DECLARE
#undef QK_DECLARE_SIZE

} // namespace QK_NS

#endif
