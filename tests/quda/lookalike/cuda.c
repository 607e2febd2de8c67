/*
 * A libcuda.so.1 without a GPU: memory of the device has addresses that nobody can read or write,
 * and is copied by the functions of the driver alone, which want its context to be current.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 128, INVALID_VALUE = 1, NO_MEMORY = 2, INVALID_CONTEXT = 201 };
enum { CONTEXT = 1, MEMORY_TYPE = 2, DEVICE = 2 };

static struct {
  char *device, *host;
  size_t bytes;
} block[MOST];
static int blocks, current;
static char context;

static char *host_of(unsigned long long pointer, size_t bytes) {
  for (int k = 0; k < blocks; k++) {
    const uintptr_t begin = (uintptr_t)block[k].device;
    if (pointer >= begin && pointer + bytes <= begin + block[k].bytes)
      return block[k].host + (pointer - begin);
  }
  return NULL;
}

int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes) {
  const int fd = memfd_create("device", 0);
  if (fd < 0 || blocks == MOST || ftruncate(fd, (off_t)bytes)) return NO_MEMORY;
  block[blocks].bytes = bytes;
  block[blocks].host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  block[blocks].device = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
  close(fd);
  *pointer = (uintptr_t)block[blocks++].device;
  return 0;
}

int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer) {
  const unsigned int type = DEVICE;
  void *const its = &context;
  if (!host_of(pointer, 1)) return INVALID_VALUE;
  if (attribute == MEMORY_TYPE)
    memcpy(value, &type, sizeof type);
  else if (attribute == CONTEXT)
    memcpy(value, &its, sizeof its);
  else
    return INVALID_VALUE;
  return 0;
}

int cuCtxPushCurrent_v2(void *pushed) {
  if (pushed != &context) return INVALID_CONTEXT;
  current++;
  return 0;
}

int cuCtxPopCurrent_v2(void **popped) {
  if (current == 0) return INVALID_CONTEXT;
  current--;
  *popped = &context;
  return 0;
}

int cuCtxSynchronize(void) {
  return current > 0 ? 0 : INVALID_CONTEXT;
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
  const char *host = host_of(from, bytes);
  if (current == 0) return INVALID_CONTEXT;
  if (!host) return INVALID_VALUE;
  memcpy(to, host, bytes);
  return 0;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
  char *host = host_of(to, bytes);
  if (current == 0) return INVALID_CONTEXT;
  if (!host) return INVALID_VALUE;
  memcpy(host, from, bytes);
  return 0;
}
