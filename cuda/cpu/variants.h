/*
 * variants.h: the builds of the CPU kernels. qk_cpu_base runs on every processor of the
 * architecture; qk_cpu_v3 (x86-64 only) uses AVX2, FMA and F16C.
 */
#ifndef QK_CUDA_CPU_VARIANTS_H
#define QK_CUDA_CPU_VARIANTS_H

#include "cuda/ops.h"

namespace qk_cpu_base {
const qk_ops_t *cpu_table();
}
namespace qk_cpu_v3 {
const qk_ops_t *cpu_table();
}

#endif
