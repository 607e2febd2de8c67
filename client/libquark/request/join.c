/* join.c: parts of requests of others. */
#include <string.h>

#include "client/libquark/connection/error.h"
#include "client/libquark/request/submit.h"

static uint8_t *pack(uint64_t number, const uint8_t *owner, uint64_t owner_request,
                     const uint8_t *token, uint32_t part, size_t *bytes) {
  Quark__Join join = QUARK__JOIN__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  join.request = number;
  join.owner.data = (uint8_t *)(uintptr_t)owner;
  join.owner.len = QUARK_CLIENT_ID_BYTES;
  join.owner_request = owner_request;
  join.token.data = (uint8_t *)(uintptr_t)token;
  join.token.len = QUARK_CLIENT_ID_BYTES;
  join.part = part;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_JOIN;
  message.join = &join;
  return qk_control_pack(&message.base, bytes);
}

quark_code_t quark_join(quark_connection_t *conn, const uint8_t owner[QUARK_CLIENT_ID_BYTES],
                        uint64_t owner_request, const uint8_t join[QUARK_CLIENT_ID_BYTES],
                        uint32_t part, uint64_t *request, uint64_t *part_bytes, uint64_t *uploaded,
                        quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK) {
    request_t *r = quark__request_new(conn, 1); /* ACCEPTED says how many there are */
    if (r) {
      r->keep = r->joined = true;
      r->feature = QK_FEATURE_JOIN;
      r->submit = pack(r->number, owner, owner_request, join, part, &r->submit_bytes);
    }
    code = quark__submit_locked(conn, r, "JOIN", request, part_bytes, err);
    if (code == QUARK_OK && uploaded) *uploaded = quark__request_find_locked(conn, *request)->begun;
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_join_token(quark_connection_t *conn, uint64_t request,
                              uint8_t join[QUARK_CLIENT_ID_BYTES], quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  const request_t *r = quark__request_known_locked(conn, request, err);
  quark_code_t code = r ? QUARK_OK : QUARK_NOT_FOUND;
  if (r && !r->has_token)
    code = quark__fail(err, QUARK_BAD_ARGUMENT,
                       "request %llu cannot be joined: it has no grid, or its links were there",
                       (unsigned long long)request);
  if (code == QUARK_OK) memcpy(join, r->token, sizeof r->token);
  pthread_mutex_unlock(&conn->lock);
  return code;
}
