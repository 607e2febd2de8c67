#include "cuda/cpu/ctx.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/host_pages.h"
#include "daemon/base/room.h"

namespace {

constexpr size_t alignment = 256;
/* Large memory asks for pages of this size: the neighbours of a site are on more small pages than
 * the processor keeps addresses of. */
constexpr size_t large_page = 1 << 21;
/* Copies and zeroing are shared among the threads in pieces of this many bytes, so that pages are
 * first touched by the threads that will work on them. */
constexpr size_t piece = 1 << 18;
constexpr size_t partial_bytes = sizeof(double) * QK_CPU_CHUNKS * QK_CPU_PARTIALS;

template <class F> void in_pieces(size_t bytes, F f) {
  const int64_t n = (int64_t)((bytes + piece - 1) / piece);
#pragma omp parallel for schedule(static) if (n > 1)
  for (int64_t i = 0; i < n; i++) {
    size_t at = (size_t)i * piece;
    f(at, bytes - at < piece ? bytes - at : piece);
  }
}

void cpu_model(char *name, size_t size) {
  snprintf(name, size, "CPU");
  FILE *f = fopen("/proc/cpuinfo", "r");
  if (f == NULL) return;
  char line[256];
  while (fgets(line, sizeof line, f) != NULL) {
    char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || value == NULL) continue;
    value += strspn(value, ": \t");
    value[strcspn(value, "\n")] = '\0';
    snprintf(name, size, "%s", value);
    break;
  }
  fclose(f);
}

/* Of small pieces only the sum is looked at: limits do not change while an engine runs. */
int64_t most_memory() {
  static const int64_t limit = [] {
    qk_room_t room;
    qk_room_read("", &room);
    return room.limit;
  }();
  return limit;
}

/* Whether a cgroup or a batch system would kill us for it. */
bool goes_beyond(size_t bytes) {
  qk_room_t room;
  qk_room_read("", &room);
  return room.bounded && bytes > (size_t)room.free;
}

/* NULL where there is not so much: the kernel would promise it all the same, and later kill. */
void *host_memory(const qk_ops_ctx_t *ctx, size_t bytes) {
  void *p = NULL;
  const bool large = bytes >= large_page;
  if ((int64_t)bytes > most_memory() - ctx->allocated || (large && goes_beyond(bytes))) return NULL;
  if (posix_memalign(&p, large ? large_page : alignment, bytes > 0 ? bytes : 1) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (large) madvise(p, bytes, MADV_HUGEPAGE); /* a wish: small pages serve too */
#endif
  return p;
}

bool is_queue(int queue) {
  return queue >= 0 && queue < QK_QUEUES;
}

} // namespace

qk_status_t qk_cpu_memory::count(int *count, qk_err_t *) {
  *count = 1;
  return QK_OK;
}

qk_status_t qk_cpu_memory::open(int, qk_ops_ctx_t **ctx, qk_err_t *err) {
  qk_cpu_ctx *cpu = (qk_cpu_ctx *)calloc(1, sizeof *cpu);
  /* Mapped, so that only the rows that reductions use take memory. In tests meson sets glibc's
   * MALLOC_PERTURB_, which fills what malloc returns: megabytes for each context. */
  void *partial =
      mmap(NULL, partial_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (cpu == NULL || partial == MAP_FAILED) {
    if (partial != MAP_FAILED) munmap(partial, partial_bytes);
    ::free(cpu);
    return qk_fail(err, QK_NO_MEMORY, "cpu context: no memory for %zu bytes",
                   partial_bytes + sizeof *cpu);
  }
  cpu->partial = (double *)partial;
  *ctx = &cpu->base;
  return QK_OK;
}

void qk_cpu_memory::close(qk_ops_ctx_t *ctx) {
  if (ctx == NULL) return;
  qk_ctx_fini(ctx);
  munmap(qk_cpu(ctx)->partial, partial_bytes);
  ::free(ctx);
}

qk_status_t qk_cpu_memory::info(qk_ops_ctx_t *, qk_device_info_t *info) {
  memset(info, 0, sizeof *info);
  cpu_model(info->name, sizeof info->name);
  qk_room_t room;
  qk_room_read("", &room);
  info->memory_total = room.limit;
  info->memory_free = room.free;
  snprintf(info->memory_by, sizeof info->memory_by, "%s", room.by);
  info->threads = omp_get_max_threads();
  return QK_OK;
}

qk_status_t qk_cpu_memory::alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  qk_status_t status = qk_ctx_reserve(ctx, bytes);
  if (status != QK_OK) return status;
  void *p = host_memory(ctx, bytes);
  if (p == NULL)
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY,
                       "alloc of %zu bytes: no memory (%lld of %lld bytes held)", bytes,
                       (long long)ctx->allocated, (long long)most_memory());
  qk_ctx_hold(ctx, p, bytes);
  *ptr = p;
  return QK_OK;
}

void qk_cpu_memory::free(qk_ops_ctx_t *ctx, void *ptr) {
  if (ptr == NULL) return;
  qk_ctx_release(ctx, ptr);
  ::free(ptr);
}

qk_status_t qk_cpu_memory::alloc_host(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  qk_status_t status = qk_ctx_reserve(ctx, bytes);
  if (status != QK_OK) return status;
  void *p = host_memory(ctx, bytes);
  if (p == NULL)
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY, "alloc_host of %zu bytes: no memory", bytes);
  *ptr = p;
  return QK_OK;
}

void qk_cpu_memory::free_host(qk_ops_ctx_t *, void *ptr) {
  ::free(ptr);
}

qk_status_t qk_cpu_memory::copy(qk_ops_ctx_t *ctx, void *dst, const void *src, size_t bytes,
                                qk_copy_t, int queue) {
  if (!is_queue(queue))
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "copy: queue = %d: 0 to %d", queue, QK_QUEUES - 1);
  in_pieces(bytes,
            [=](size_t at, size_t n) { memcpy((char *)dst + at, (const char *)src + at, n); });
  return QK_OK;
}

qk_status_t qk_cpu_memory::zero(qk_ops_ctx_t *ctx, void *dst, size_t bytes, int queue) {
  if (!is_queue(queue))
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "zero: queue = %d: 0 to %d", queue, QK_QUEUES - 1);
  in_pieces(bytes, [=](size_t at, size_t n) { memset((char *)dst + at, 0, n); });
  return QK_OK;
}

qk_status_t qk_cpu_memory::queue_wait(qk_ops_ctx_t *ctx, int waiter, int on) {
  if (is_queue(waiter) && is_queue(on)) return QK_OK;
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "queue_wait: queues %d, %d: 0 to %d", waiter, on,
                     QK_QUEUES - 1);
}

qk_status_t qk_cpu_memory::queue_sync(qk_ops_ctx_t *ctx, int queue) {
  if (is_queue(queue)) return QK_OK;
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "queue_sync: queue = %d: 0 to %d", queue, QK_QUEUES - 1);
}

qk_status_t qk_cpu_memory::queue_idle(qk_ops_ctx_t *ctx, int queue, bool *idle) {
  *idle = true;
  if (is_queue(queue)) return QK_OK;
  return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "queue_idle: queue = %d: 0 to %d", queue, QK_QUEUES - 1);
}

/* Calls are done when they return: there is nothing that a graph could save. */
qk_status_t qk_cpu_memory::graph_begin(qk_ops_ctx_t *ctx) {
  return qk_ctx_fail(ctx, QK_UNSUPPORTED, "the CPU backend has no graphs");
}

qk_status_t qk_cpu_memory::graph_end(qk_ops_ctx_t *ctx, qk_graph_t **) {
  return qk_ctx_fail(ctx, QK_UNSUPPORTED, "the CPU backend has no graphs");
}

qk_status_t qk_cpu_memory::graph_launch(qk_ops_ctx_t *ctx, qk_graph_t *) {
  return qk_ctx_fail(ctx, QK_UNSUPPORTED, "the CPU backend has no graphs");
}

void qk_cpu_memory::graph_destroy(qk_ops_ctx_t *, qk_graph_t *) {}

namespace {

/* Copies are fastest with any memory: there is nothing to pin. */
qk_status_t map_pages(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  qk_status_t status = qk_ctx_begin(ctx);
  return status != QK_OK ? status : qk_cpu_memory::alloc_host(ctx, bytes, ptr);
}

qk_status_t pin_pages(qk_ops_ctx_t *, void *, size_t, qk_err_t *) {
  return QK_OK;
}

void unpin_pages(qk_ops_ctx_t *, void *) {}

void unmap_pages(qk_ops_ctx_t *ctx, void *ptr, size_t) {
  qk_cpu_memory::free_host(ctx, ptr);
}

} // namespace

const qk_host_pages_t *qk_host_pages_cpu(void) {
  static const qk_host_pages_t pages = {map_pages, pin_pages, unpin_pages, unmap_pages};
  return &pages;
}
