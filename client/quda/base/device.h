/*
 * device.h: fields of the caller in the memory of a GPU, by the CUDA driver that the program has
 * loaded; without it, or with another address, the end.
 */
#ifndef QUARK_QUDA_DEVICE_H
#define QUARK_QUDA_DEVICE_H

#include <stddef.h>

/* Both wait for what the program has under way on that GPU, and return when the bytes are there. */
void qk_quda_device_get(void *host, const void *device, size_t bytes);
void qk_quda_device_put(void *device, const void *host, size_t bytes);

#endif
