#include "client/libquark/request/download.h"

#include <string.h>

#include "client/libquark/connection/error.h"

enum { DOWNLOAD_WINDOW = 8 * QK_CHUNK_MAX };

/* Asks for chunks, up to a window beyond the bytes received. */
static quark_code_t post_grant(quark_connection_t *conn, download_t *d, bool from_here,
                               quark_error_t *err) {
  const uint64_t window = d->received + DOWNLOAD_WINDOW;
  d->way = DOWNLOAD_CHUNKS;
  d->granted = d->bytes < window ? d->bytes : window;
  Quark__Grant grant = QUARK__GRANT__INIT;
  grant.request = d->request;
  grant.rhs = d->rhs;
  grant.until = d->granted;
  grant.has_from = from_here;
  grant.from = d->received;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_GRANT;
  message.grant = &grant;
  return quark__post_locked(conn, &message, err);
}

download_t *quark__download_find(download_t *list, uint32_t rhs) {
  while (list && list->rhs != rhs) list = list->next;
  return list;
}

void quark__download_remove(download_t **list, const download_t *d) {
  for (download_t **link = list; *link; link = &(*link)->next) {
    if (*link != d) continue;
    *link = d->next;
    return;
  }
}

static void end_download(download_t **list, download_t *d, quark_code_t code, const char *text) {
  quark__download_remove(list, d);
  d->done = true;
  d->code = code;
  if (code != QUARK_OK) quark__fail(&d->error, code, "%s", text);
}

void quark__download_fail(download_t **list, quark_code_t code, const char *text) {
  while (*list) end_download(list, *list, code, text);
}

quark_code_t quark__download_begin_locked(quark_connection_t *conn, download_t *d,
                                          quark_error_t *err) {
  if (conn->local < 0 || d->received > 0) return post_grant(conn, d, true, err);
  d->way = DOWNLOAD_ASK;
  return QUARK_OK;
}

void quark__download_hold(download_t *list) {
  for (download_t *d = list; d; d = d->next) d->way = DOWNLOAD_HELD;
}

void quark__download_result_locked(quark_connection_t *conn, download_t **list,
                                   const quark_result_t *result, bool another) {
  download_t *d = quark__download_find(*list, result->rhs);
  if (!d) return;
  if (result->bytes == 0) {
    end_download(list, d, result->status ? result->status : QUARK_NOT_FOUND,
                 *result->text ? result->text : "the solution is gone");
    return;
  }
  if (another) {
    d->received = 0;
    qk_field_hash_init(d->hash, d->by_blocks);
  }
  if (d->way == DOWNLOAD_HELD || (another && d->way == DOWNLOAD_CHUNKS))
    quark__download_begin_locked(conn, d, NULL);
}

void quark__download_shared(download_t **list, download_t *d, int fd) {
  d->fd = fd;
  end_download(list, d, QUARK_OK, NULL);
}

/* Without a session GRANT is posted when there is one again. */
void quark__download_by_chunks_locked(quark_connection_t *conn, download_t *list) {
  for (download_t *d = list; d; d = d->next) {
    if (d->way == DOWNLOAD_CHUNKS || d->way == DOWNLOAD_HELD) continue;
    d->way = DOWNLOAD_CHUNKS;
    if (conn->state == SESSION_OPEN) post_grant(conn, d, true, NULL);
  }
}

/* Adds the chunk to the checksum, which may be of another kind since the last one: that of a daemon
 * of another version. */
static void sum_chunk(download_t *d, const qk_frame_t *frame, const uint8_t *payload) {
  if (frame->by_blocks != d->by_blocks) {
    d->by_blocks = frame->by_blocks;
    qk_field_hash_init(d->hash, d->by_blocks);
    qk_field_hash_update(d->hash, d->buffer, d->received);
  }
  if (d->by_blocks && qk_frame_is_block(frame))
    qk_field_hash_add_block(d->hash, frame->chunk_checksum);
  else
    qk_field_hash_update(d->hash, payload, frame->chunk_bytes);
}

void quark__download_chunk_locked(quark_connection_t *conn, download_t **list,
                                  const qk_frame_t *frame, const uint8_t *payload) {
  download_t *d = quark__download_find(*list, frame->rhs);
  /* Else the chunk is of an earlier attempt; the right one follows. */
  if (!d || d->way != DOWNLOAD_CHUNKS || frame->field_bytes != d->bytes ||
      frame->offset != d->received)
    return;
  memcpy(d->buffer + d->received, payload, frame->chunk_bytes);
  sum_chunk(d, frame, payload);
  d->received += frame->chunk_bytes;
  if (!qk_frame_is_last(frame)) {
    if (d->granted - d->received <= DOWNLOAD_WINDOW / 2) post_grant(conn, d, false, NULL);
  } else if (qk_field_hash_digest(d->hash) == frame->field_checksum)
    end_download(list, d, QUARK_OK, NULL);
  else
    end_download(list, d, QUARK_BAD_CHECKSUM, "the checksum of the whole field does not match");
}
