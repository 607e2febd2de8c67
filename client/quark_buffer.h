/*
 * quark_buffer.h: the part of quark.h about memory that right-hand sides and links are sent from
 * without a copy in the library.
 *
 * Programs include quark.h. What its top says of threads, errors and loss holds here too.
 */
#ifndef QUARK_BUFFER_H
#define QUARK_BUFFER_H

#include "quark.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for one field or several. It belongs to no connection: fields in it can be put to any. A
 * daemon on this machine reads it through a descriptor, at the moment in which it takes the field;
 * to others it is sent. The calls are the same. After fork the child has the same memory, not a
 * copy. */
typedef struct quark_buffer quark_buffer_t;

/* bytes of memory that are zero, at *data, until quark_buffer_destroy. A page of it takes memory of
 * the machine once it is written, which takes longer than writing it again: buffers are to be kept
 * for the next fields. Pages that were never written are zeros that a daemon on this machine does
 * not read: a source on one time slice costs that slice. Errors: QUARK_BAD_ARGUMENT (bytes),
 * QUARK_NO_MEMORY. */
QUARK_API quark_code_t quark_buffer_create(size_t bytes, quark_buffer_t **buffer, void **data,
                                           quark_error_t *err);
/* NULL-safe. data must not be used any more. What was put goes its way all the same. */
QUARK_API void quark_buffer_destroy(quark_buffer_t *buffer);

/* Hands over the whole of `rhs`, the next of an upload (of quark_submit, quark_field_open,
 * quark_join), field_bytes at `offset` of the buffer, in place of quark_upload. It returns at once:
 * the field must not be written before quark_buffer_wait says so, or what the daemon solves is
 * neither the old nor the new one, or not accepted. The upload of a request goes by quark_put or by
 * quark_upload, not by both. Once every RHS has ended, it does nothing. Only one thread at a time
 * may put to one request. Errors: QUARK_BAD_ARGUMENT (rhs is not the next, offset, an upload that
 * has begun with quark_upload), QUARK_NOT_FOUND (no such request). */
QUARK_API quark_code_t quark_put(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                 quark_buffer_t *buffer, size_t offset, quark_error_t *err);

/* Waits until the buffer can be written again: the daemons have all fields that were put, or their
 * requests have ended, in whatever way. At most timeout_ms (0: does not wait; negative: for ever).
 * QUARK_TIMEOUT: it cannot yet. */
QUARK_API quark_code_t quark_buffer_wait(quark_buffer_t *buffer, int64_t timeout_ms,
                                         quark_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
