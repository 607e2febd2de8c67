/*
 * checked.h: a backend's table for tests: memory from alloc and alloc_host is full of NaN, so that
 * what is read before it is written shows. qk_ops_by_name gives it where QK_CHECKED is in the
 * environment. Together with the fault points "device-call" and "device-alloc"
 * (daemon/base/fault.h), which make the n-th call or allocation fail, it finds unchecked paths.
 * Slow; results are the same.
 */
#ifndef QK_CUDA_CHECKED_H
#define QK_CUDA_CHECKED_H

#include "cuda/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One checked table per backend name; static storage. Not thread-safe on the first call. */
const qk_ops_t *qk_ops_checked(const qk_ops_t *ops);

#ifdef __cplusplus
}
#endif
#endif
