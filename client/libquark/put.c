/* put.c: whole fields from buffers of the user, in place of the bytes of a stream. */
#include "client/libquark/connection/error.h"
#include "client/libquark/memory/buffer.h"
#include "client/libquark/request/local.h"
#include "client/libquark/request/request.h"

static quark_code_t check(const request_t *r, uint32_t rhs, const quark_buffer_t *buffer,
                          uint64_t offset, quark_error_t *err) {
  const upload_t *up = &r->up;
  const unsigned long long number = r->number;
  if (up->capacity == 0)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "request %llu takes no upload", number);
  if (!up->by_put && up->written > r->begun)
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "the upload of request %llu has begun with quark_upload, and goes on so",
                       number);
  if (rhs != up->written / up->field_bytes)
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "rhs = %u: the next of %u of request %llu to be sent is %llu", rhs, r->nrhs,
                       number, (unsigned long long)(up->written / up->field_bytes));
  if (rhs >= r->nrhs)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "rhs = %u: request %llu has %u", rhs, number,
                       r->nrhs);
  if (!quark__buffer_has(buffer, offset, up->field_bytes))
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "offset = %llu: the buffer does not have the %llu bytes of a field there",
                       (unsigned long long)offset, (unsigned long long)up->field_bytes);
  return QUARK_OK;
}

/* *r: NULL if nothing is to be done. */
static quark_code_t find(quark_connection_t *conn, uint64_t number, uint32_t rhs,
                         const quark_buffer_t *buffer, uint64_t offset, request_t **r,
                         quark_error_t *err) {
  *r = NULL;
  const quark_code_t code = quark__check_alive_locked(conn, err);
  if (code != QUARK_OK) return code;
  request_t *found = quark__request_known_locked(conn, number, err);
  if (!found) return QUARK_NOT_FOUND;
  if (found->ended == found->nrhs) return QUARK_OK;
  *r = found;
  return check(found, rhs, buffer, offset, err);
}

/* What is known of a field before it is handed over. */
typedef struct field {
  bool summed; /* else its checksum is made as it is sent */
  bool sparse;
  uint64_t checksum;
} field_t;

static quark_code_t sum(const quark_buffer_t *buffer, uint64_t offset, uint64_t bytes,
                        field_t *field, quark_error_t *err) {
  qk_field_hash_t *hash = qk_field_hash_create();
  if (!hash) return quark__fail(err, QUARK_NO_MEMORY, "no memory for a checksum");
  field->sparse = field->sparse && quark__buffer_has_holes(buffer, offset, bytes);
  field->checksum = quark__buffer_checksum(buffer, offset, bytes, field->sparse, hash);
  qk_field_hash_destroy(hash);
  return QUARK_OK;
}

static void hand_over(quark_connection_t *conn, request_t *r, uint32_t rhs, quark_buffer_t *buffer,
                      uint64_t offset, const field_t *field) {
  rhs_t *to = &r->rhs[rhs];
  quark__buffer_hold(buffer);
  to->buffer = buffer;
  to->buffer_at = offset;
  to->sparse = field->sparse;
  to->upload_checksum = field->checksum;
  r->up.by_put = true;
  r->up.written += r->up.field_bytes;
  if (!quark__local_takes(conn, r) || !quark__local_send_locked(conn)) quark__wake(conn);
}

quark_code_t quark_put(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                       quark_buffer_t *buffer, size_t offset, quark_error_t *err) {
  request_t *r;
  field_t field = {0};
  uint64_t bytes = 0;
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = find(conn, request, rhs, buffer, offset, &r, err);
  if (code == QUARK_OK && r) {
    bytes = r->up.field_bytes;
    field.summed = !r->up.by_blocks;
    field.sparse = r->up.shared && quark__has_feature(conn, QK_FEATURE_ZEROS);
  }
  pthread_mutex_unlock(&conn->lock);
  if (code != QUARK_OK || bytes == 0) return code;
  if (field.summed && (code = sum(buffer, offset, bytes, &field, err)) != QUARK_OK) return code;
  pthread_mutex_lock(&conn->lock);
  code = find(conn, request, rhs, buffer, offset, &r, err);
  if (code == QUARK_OK && r) hand_over(conn, r, rhs, buffer, offset, &field);
  pthread_mutex_unlock(&conn->lock);
  return code;
}
