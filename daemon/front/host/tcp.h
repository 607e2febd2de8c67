/*
 * tcp.h: what the kernel knows of a connection, apart since its header does not go with libc's.
 */
#ifndef QK_FRONT_TCP_H
#define QK_FRONT_TCP_H

#include <stdint.h>

/* Bytes that have been read from it so far; 0 where it is no connection of TCP, or this kernel does
 * not tell. */
uint64_t qk_tcp_read(int fd);

#endif
