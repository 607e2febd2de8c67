/*
 * host_pages.h: host memory for large fields under way whose pages others find while the device's
 * thread works: memory as of alloc_host (ops.h), made piece by piece.
 *
 * map gives page-aligned addresses; it is of the context's thread, like all entries but pin. pin
 * makes the memory behind a piece of them what alloc_host gives: any thread may call it, beside
 * other calls, once for each piece; it leaves the context alone. QK_DEVICE_MEMORY: the piece stays
 * as it is, and can be used all the same; copies are slower. No copy may cross the edge of a piece.
 * Pieces that were pinned are unpinned before unmap. Not collective.
 */
#ifndef QK_CUDA_HOST_PAGES_H
#define QK_CUDA_HOST_PAGES_H

#include "cuda/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_host_pages {
  qk_status_t (*map)(qk_ops_ctx_t *ctx, size_t bytes, void **ptr);
  qk_status_t (*pin)(qk_ops_ctx_t *ctx, void *piece, size_t bytes, qk_err_t *err);
  void (*unpin)(qk_ops_ctx_t *ctx, void *piece);
  void (*unmap)(qk_ops_ctx_t *ctx, void *ptr, size_t bytes); /* NULL-safe */
} qk_host_pages_t;

const qk_host_pages_t *qk_host_pages_cpu(void);
const qk_host_pages_t *qk_host_pages_gpu(void); /* NULL in a build without CUDA */

/* Those of a backend that has opened a device. */
static inline const qk_host_pages_t *qk_host_pages(const qk_ops_t *ops) {
  return ops->host_memory ? qk_host_pages_cpu() : qk_host_pages_gpu();
}

#ifdef __cplusplus
}
#endif
#endif
