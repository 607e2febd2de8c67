/* The memory of a GPU. The driver is opened when a field is there, so that nothing is linked. */
#include <dlfcn.h>
#include <stdint.h>

#include "device.h"
#include "say.h"

/* Of cuda.h, whose interface is a binary one. */
enum { POINTER_CONTEXT = 1, POINTER_MEMORY_TYPE = 2, MEMORY_DEVICE = 2 };

static struct {
  int (*attribute)(void *value, int attribute, unsigned long long pointer);
  int (*push)(void *context);
  int (*pop)(void **context);
  int (*synchronise)(void);
  int (*get)(void *host, unsigned long long device, size_t bytes);
  int (*put)(unsigned long long device, const void *host, size_t bytes);
} driver;

static void find(void *library, const char *name, void *to) {
  void *symbol = dlsym(library, name);
  if (!symbol) qk_quda_refuse("libcuda.so.1 has no %s", name);
  *(void **)to = symbol;
}

static void open_driver(void) {
  if (driver.put) return;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    qk_quda_refuse("a field is said to be in the memory of a GPU, but there is no driver: %s",
                   dlerror());
  find(library, "cuPointerGetAttribute", &driver.attribute);
  find(library, "cuCtxPushCurrent_v2", &driver.push);
  find(library, "cuCtxPopCurrent_v2", &driver.pop);
  find(library, "cuCtxSynchronize", &driver.synchronise);
  find(library, "cuMemcpyDtoH_v2", &driver.get);
  find(library, "cuMemcpyHtoD_v2", &driver.put);
}

static void need(int code, const char *what, unsigned long long pointer) {
  if (code) qk_quda_refuse("%s of address %llx: error %d of CUDA", what, pointer, code);
}

/* The context of an address becomes the current one. */
static unsigned long long enter(const void *device) {
  const unsigned long long pointer = (uintptr_t)device;
  unsigned int type = 0;
  void *context = NULL;
  open_driver();
  if (driver.attribute(&type, POINTER_MEMORY_TYPE, pointer) || type != MEMORY_DEVICE)
    qk_quda_refuse("a field at address %llx is said to be in the memory of a GPU, but is not",
                   pointer);
  need(driver.attribute(&context, POINTER_CONTEXT, pointer), "the context", pointer);
  need(driver.push(context), "the context", pointer);
  need(driver.synchronise(), "what is under way in the context", pointer);
  return pointer;
}

static void leave(void) {
  void *context;
  driver.pop(&context);
}

void qk_quda_device_get(void *host, const void *device, size_t bytes) {
  const unsigned long long pointer = enter(device);
  need(driver.get(host, pointer, bytes), "copying from the memory", pointer);
  leave();
}

void qk_quda_device_put(void *device, const void *host, size_t bytes) {
  const unsigned long long pointer = enter(device);
  need(driver.put(pointer, host, bytes), "copying to the memory", pointer);
  leave();
}
