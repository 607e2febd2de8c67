#include "cuda/host_pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/gpu/ctx.cuh"

namespace {

/* Large pages are a wish: they are found and pinned faster than small ones. */
qk_status_t map(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  qk_status_t status = qk_ctx_begin(ctx);
  if (status == QK_OK) status = qk_ctx_reserve(ctx, bytes);
  if (status != QK_OK) return status;
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY, "mmap of %zu bytes: %s", bytes, strerror(errno));
  madvise(p, bytes, MADV_HUGEPAGE);
  *ptr = p;
  return QK_OK;
}

/* Threads that find pages do not wait for each other, those that register them do: so each touches
 * its piece first. */
qk_status_t pin(qk_ops_ctx_t *ctx, void *piece, size_t bytes, qk_err_t *err) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t at = 0; at < bytes; at += page) ((volatile char *)piece)[at] = 0;
  cudaError_t code = cudaSetDevice(qk_gpu(ctx)->device);
  if (code == cudaSuccess) code = cudaHostRegister(piece, bytes, cudaHostRegisterDefault);
  if (code == cudaSuccess) return QK_OK;
  cudaGetLastError();
  return qk_fail(err, QK_DEVICE_MEMORY, "cudaHostRegister of %zu bytes: %s (%s)", bytes,
                 cudaGetErrorString(code), cudaGetErrorName(code));
}

void unpin(qk_ops_ctx_t *ctx, void *piece) {
  qk_gpu_check(ctx, cudaHostUnregister(piece), "cudaHostUnregister");
}

void unmap(qk_ops_ctx_t *, void *ptr, size_t bytes) {
  if (ptr != NULL) munmap(ptr, bytes);
}

} // namespace

const qk_host_pages_t *qk_host_pages_gpu(void) {
  static const qk_host_pages_t pages = {map, pin, unpin, unmap};
  return &pages;
}
