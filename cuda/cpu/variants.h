/*
 * variants.h: the builds of the CPU kernels. qk_cpu_base runs on every processor of the
 * architecture; of x86-64 only, qk_cpu_v3 uses AVX2, FMA and F16C, and qk_cpu_v4 AVX-512
 * (F, BW, CD, DQ, VL).
 *
 * The best one that the processor has runs, or the one that the environment names in
 * QK_CPU_VARIANT; a name that cannot be had is a warning in the log. Chosen once, when it is first
 * asked for.
 */
#ifndef QK_CUDA_CPU_VARIANTS_H
#define QK_CUDA_CPU_VARIANTS_H

#include "cuda/ops.h"

#ifdef __cplusplus
namespace qk_cpu_base {
const qk_ops_t *cpu_table();
}
namespace qk_cpu_v3 {
const qk_ops_t *cpu_table();
}
namespace qk_cpu_v4 {
const qk_ops_t *cpu_table();
}

extern "C" {
#endif

/* "base", "v3" or "v4". */
const char *qk_cpu_variant(void);

#ifdef __cplusplus
}
#endif
#endif
