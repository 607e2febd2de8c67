/*
 * mem.h: host memory with a count. Long-lived and bulk buffers come from here, so that a leak or an
 * unbounded growth shows in STATUS and in tests, and so that allocation failure can be injected
 * (fault point "alloc"). Aligned to 64 bytes. Thread-safe.
 */
#ifndef QK_BASE_MEM_H
#define QK_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL when there is no memory; qk_calloc zeroes and refuses n * size that overflows. */
void *qk_malloc(size_t bytes);
void *qk_calloc(size_t n, size_t size);
void qk_free(void *p); /* NULL-safe */
/* The array of *room members of so many bytes, with room for `needed` of them, and some more:
 * itself, or a larger one with its members, which replaces it. New members are zero. NULL: there is
 * no memory, and the array stays as it is. */
void *qk_grow(void *array, int *room, int needed, size_t size);

/* Bytes now held through this module. */
int64_t qk_mem_bytes(void);

#ifdef __cplusplus
}
#endif
#endif
