/*
 * choose.h: which build of the CPU kernels runs (variants.h). The best one that the processor has,
 * or the one that the environment names in QK_CPU_VARIANT; a name that cannot be had is a warning in
 * the log. Chosen once, when it is first asked for.
 */
#ifndef QK_CUDA_CPU_CHOOSE_H
#define QK_CUDA_CPU_CHOOSE_H

#include "cuda/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "base", "v3" or "v4". */
const char *qk_cpu_variant(void);

#ifdef __cplusplus
}
#endif
#endif
