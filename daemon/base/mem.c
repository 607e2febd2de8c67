#include "daemon/base/mem.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/assert.h"
#include "daemon/base/fault.h"

/* Stands before each block; its size keeps the block aligned. */
typedef struct qk_mem_head {
  _Alignas(64) uint64_t magic;
  size_t bytes;
} qk_mem_head_t;

enum { LARGE_BYTES = 32 << 20 };

static const uint64_t MAGIC_HELD = 0x716b6d656d68656cULL, MAGIC_FREED = 0x716b6d656d667265ULL;
static _Atomic int64_t held;

/* To find the pages of a configuration takes longer than to fill them, unless they are large. It is
 * a wish: small pages serve too. */
static void ask_for_large_pages(void *block, size_t bytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t page = (uintptr_t)1 << 21, first = ((uintptr_t)block + page - 1) / page * page,
                  end = ((uintptr_t)block + bytes) / page * page;
  if (bytes >= LARGE_BYTES) madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
  (void)block;
  (void)bytes;
#endif
}

void *qk_malloc(size_t bytes) {
  const size_t align = _Alignof(qk_mem_head_t);
  if (bytes > (size_t)PTRDIFF_MAX - 2 * align || qk_fault(QK_FAULT_ALLOC)) return NULL;
  size_t total = (sizeof(qk_mem_head_t) + bytes + align - 1) / align * align;
  qk_mem_head_t *head = aligned_alloc(align, total);
  if (head == NULL) return NULL;
  ask_for_large_pages(head, total);
  head->magic = MAGIC_HELD;
  head->bytes = bytes;
  atomic_fetch_add_explicit(&held, (int64_t)bytes, memory_order_relaxed);
  return head + 1;
}

void *qk_calloc(size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
  void *p = qk_malloc(bytes);
  if (p != NULL) memset(p, 0, bytes);
  return p;
}

void qk_free(void *p) {
  if (p == NULL) return;
  qk_mem_head_t *head = (qk_mem_head_t *)p - 1;
  QK_ASSERT(head->magic == MAGIC_HELD);
  head->magic = MAGIC_FREED;
  atomic_fetch_sub_explicit(&held, (int64_t)head->bytes, memory_order_relaxed);
  free(head);
}

void *qk_grow(void *array, int *room, int needed, size_t size) {
  if (needed <= *room) return array;
  const size_t more = 2 * (size_t)needed + 64;
  void *larger = more <= INT_MAX ? qk_calloc(more, size) : NULL;
  if (larger == NULL) return NULL;
  if (*room > 0) memcpy(larger, array, (size_t)*room * size);
  qk_free(array);
  *room = (int)more;
  return larger;
}

int64_t qk_mem_bytes(void) {
  return atomic_load_explicit(&held, memory_order_relaxed);
}
