/*
 * Stands in for the header of CUDA where there is none. Programs that include quda.h ask it for the
 * memory of the device, which is not theirs here.
 */
#ifndef QUARK_QUDA_CUDA_RUNTIME_API_H
#define QUARK_QUDA_CUDA_RUNTIME_API_H

#include <stddef.h>

typedef int cudaError_t;
enum { cudaSuccess = 0 };

static inline cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  *free_bytes = *total_bytes = 0;
  return cudaSuccess;
}

#endif
