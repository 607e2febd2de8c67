/*
 * buffer.h: memory of the client that whole fields are sent from (quark_buffer.h).
 *
 * A buffer is a memfd whose size is sealed, mapped for its user. Each field that was put, and that
 * a daemon may still need, holds it: if its user destroys it meanwhile, its descriptor stays.
 *
 * Units    bytes.
 * Threads  Any. The mutex of a buffer is taken last, below those of connections.
 */
#ifndef QUARK_MEMORY_BUFFER_H
#define QUARK_MEMORY_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/quark.h"
#include "proto/frame.h"

/* Whether there are so many bytes from offset on. */
bool quark__buffer_has(const quark_buffer_t *buffer, uint64_t offset, uint64_t bytes);
/* A field holds it, and needs it no longer. */
void quark__buffer_hold(quark_buffer_t *buffer);
void quark__buffer_drop(quark_buffer_t *buffer);
/* For PUT. The buffer keeps it. */
int quark__buffer_fd(const quark_buffer_t *buffer);
/* Whether pages of these bytes were never written. */
bool quark__buffer_has_holes(const quark_buffer_t *buffer, uint64_t offset, uint64_t bytes);
/* The checksum of these bytes as that of a field (frame.h), made in `hash`. Holes are not read,
 * which would make their pages. */
uint64_t quark__buffer_checksum(const quark_buffer_t *buffer, uint64_t offset, uint64_t bytes,
                                bool by_blocks, qk_field_hash_t *hash);
/* Copies bytes. False: they cannot be read. */
bool quark__buffer_read(const quark_buffer_t *buffer, uint64_t offset, uint8_t *out,
                        uint64_t bytes);

#endif
