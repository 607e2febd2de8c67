/*
 * memfd.h: memory that a daemon on this machine can be given by descriptor.
 *
 * Units    bytes.
 * Threads  Any.
 */
#ifndef QUARK_MEMORY_MEMFD_H
#define QUARK_MEMORY_MEMFD_H

#include <stdbool.h>
#include <stdint.h>

/* A memfd of that name whose size is sealed; -1 with errno. The caller closes it. */
int quark__memfd_create(const char *name, uint64_t bytes);
/* Reads, or writes, all bytes at that place of a descriptor. */
bool quark__memfd_read(int fd, uint8_t *data, uint64_t bytes, uint64_t at);
bool quark__memfd_write(int fd, const uint8_t *data, uint64_t bytes, uint64_t at);
/* Makes them zeros: holes as far as pages are whole. */
bool quark__memfd_clear(int fd, uint64_t bytes, uint64_t at);

#endif
