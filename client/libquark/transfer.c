#include "client/libquark/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { BURST = 16 /* chunks sent before answers are looked at */ };

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* ---- uploads ---- */

/* Room for two whole fields and for what chunks may need, in whole fields. */
static uint64_t shared_capacity(uint64_t field_bytes) {
  return ((RING_BYTES + field_bytes - 1) / field_bytes + 2) * field_bytes;
}

bool quark__upload_init_locked(quark_connection_t *conn, upload_t *up, uint32_t nrhs,
                               uint64_t field_bytes) {
  uint64_t total;
  if (field_bytes == 0 || field_bytes > INT64_MAX / 4 ||
      __builtin_mul_overflow(field_bytes, (uint64_t)nrhs, &total))
    return false;
  memset(up, 0, sizeof *up);
  up->total = total;
  if (conn->local >= 0) {
    up->capacity = least(total, shared_capacity(field_bytes));
    up->fd = quark__local_memory_locked(conn, up->capacity);
    up->shared = up->fd >= 0;
  }
  if (!up->shared) {
    up->capacity = least(total, RING_BYTES);
    up->ring = malloc(up->capacity);
  }
  up->hash = qk_field_hash_create();
  if ((up->shared || up->ring) && up->hash) return true;
  quark__upload_fini(up);
  return false;
}

void quark__upload_fini(upload_t *up) {
  if (up->shared) close(up->fd);
  free(up->ring);
  qk_field_hash_destroy(up->hash);
  memset(up, 0, sizeof *up);
}

/* By chunks the daemon has everything up to QK_UPLOAD_WINDOW before what was sent: what is older can go. */
static uint64_t ring_space(const request_t *r) {
  const upload_t *up = &r->up;
  uint64_t safe = 0;
  if (up->shared)
    safe = up->taken / r->field_bytes * r->field_bytes;
  else if (up->capacity < up->total && up->sent > QK_UPLOAD_WINDOW)
    safe = up->sent - QK_UPLOAD_WINDOW;
  return up->capacity - (up->written - safe);
}

/* All bytes at that place of the descriptor. */
static bool write_at(int fd, const uint8_t *data, uint64_t bytes, uint64_t at) {
  while (bytes > 0) {
    const ssize_t n = pwrite(fd, data, bytes, (off_t)at);
    if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
    if (n < 0) continue;
    data += n;
    at += (uint64_t)n;
    bytes -= (uint64_t)n;
  }
  return true;
}

static bool read_at(int fd, uint8_t *data, uint64_t bytes, uint64_t at) {
  while (bytes > 0) {
    const ssize_t n = pread(fd, data, bytes, (off_t)at);
    if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
    if (n < 0) continue;
    data += n;
    at += (uint64_t)n;
    bytes -= (uint64_t)n;
  }
  return true;
}

/* False, with nothing changed, where there is no memory. */
static bool ring_write(request_t *r, const uint8_t *data, uint64_t bytes) {
  upload_t *up = &r->up;
  const uint64_t at = up->written % up->capacity, head = least(bytes, up->capacity - at);
  if (up->shared) {
    if (!write_at(up->fd, data, head, at) || !write_at(up->fd, data + head, bytes - head, 0))
      return false;
  } else {
    memcpy(up->ring + at, data, head);
    memcpy(up->ring, data + head, bytes - head);
  }
  qk_field_hash_update(up->hash, data, bytes);
  up->written += bytes;
  if (up->written % r->field_bytes != 0) return true;
  r->rhs[up->written / r->field_bytes - 1].upload_checksum = qk_field_hash_digest(up->hash);
  qk_field_hash_init(up->hash);
  return true;
}

static bool ring_read(const upload_t *up, uint64_t position, uint8_t *out, uint64_t bytes) {
  const uint64_t at = position % up->capacity, head = least(bytes, up->capacity - at);
  if (up->shared)
    return read_at(up->fd, out, head, at) && read_at(up->fd, out + head, bytes - head, 0);
  memcpy(out, up->ring + at, head);
  memcpy(out + head, up->ring, bytes - head);
  return true;
}

/* Bytes of the next chunk that may be sent now; 0: none. Chunks are as large as the field and the credit allow. */
static uint32_t next_chunk(const request_t *r) {
  const upload_t *up = &r->up;
  const uint64_t field_end = (up->sent / r->field_bytes + 1) * r->field_bytes;
  const uint64_t want = least(least(QK_CHUNK_MAX, field_end - up->sent),
                              up->until > up->sent ? up->until - up->sent : 0);
  return up->written - up->sent >= want ? (uint32_t)want : 0;
}

static bool send_chunk(quark_connection_t *conn, request_t *r, uint32_t bytes) {
  zmq_msg_t msg;
  if (zmq_msg_init_size(&msg, QK_FRAME_HEADER + (size_t)bytes) != 0) return false;
  uint8_t *data = zmq_msg_data(&msg);
  qk_frame_t frame = {.kind = QK_FRAME_UPLOAD,
                      .request = r->number,
                      .rhs = (uint32_t)(r->up.sent / r->field_bytes),
                      .chunk_bytes = bytes,
                      .field_bytes = r->field_bytes,
                      .offset = r->up.sent % r->field_bytes};
  if (qk_frame_is_last(&frame)) frame.field_checksum = r->rhs[frame.rhs].upload_checksum;
  qk_frame_fault_t fault;
  if (!ring_read(&r->up, r->up.sent, data + QK_FRAME_HEADER, bytes) ||
      qk_frame_encode(&frame, data + QK_FRAME_HEADER, data, &fault) != QK_OK ||
      zmq_msg_send(&msg, conn->data, ZMQ_DONTWAIT) < 0) {
    zmq_msg_close(&msg);
    return false;
  }
  r->up.sent += bytes;
  return true;
}

bool quark__upload_send_locked(quark_connection_t *conn) {
  int sent = 0;
  for (request_t *r = conn->requests; r; r = r->next) {
    uint32_t bytes;
    while (r->state == REQUEST_ACCEPTED && r->up.capacity > 0 && !quark__local_takes(conn, r) &&
           (bytes = next_chunk(r)) > 0)
      if (sent++ == BURST || !send_chunk(conn, r, bytes)) return false;
  }
  return true;
}

static quark_code_t find_upload(quark_connection_t *conn, uint64_t number, uint64_t bytes,
                                request_t **request, quark_error_t *err) {
  const quark_code_t code = quark__check_alive_locked(conn, err);
  if (code != QUARK_OK) return code;
  request_t *r = quark__request_find_locked(conn, number);
  if (!r || r->released)
    return quark__fail(err, QUARK_NOT_FOUND, "no request %llu", (unsigned long long)number);
  if (r->ended < r->nrhs && (r->up.capacity == 0 || bytes > r->up.total - r->up.written))
    return quark__fail(err, QUARK_BAD_ARGUMENT, "bytes = %llu: request %llu takes %llu more",
                       (unsigned long long)bytes, (unsigned long long)number,
                       (unsigned long long)(r->up.total - r->up.written));
  *request = r;
  return QUARK_OK;
}

quark_code_t quark_upload(quark_connection_t *conn, uint64_t request, const void *data,
                          size_t bytes, quark_error_t *err) {
  const uint8_t *from = data;
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  request_t *r = NULL;
  quark_code_t code;
  pthread_mutex_lock(&conn->lock);
  while ((code = find_upload(conn, request, bytes, &r, err)) == QUARK_OK && bytes > 0 &&
         r->ended < r->nrhs) {
    const uint64_t field_left = r->field_bytes - r->up.written % r->field_bytes;
    const uint64_t n = least(least(bytes, ring_space(r)), least(field_left, QK_CHUNK_MAX));
    if (n > 0) {
      if (!ring_write(r, from, n)) {
        code = quark__fail(err, QUARK_NO_MEMORY, "no shared memory for an upload");
        break;
      }
      from += n;
      bytes -= n;
      if (!quark__local_takes(conn, r) || !quark__local_send_locked(conn)) quark__wake(conn);
      deadline = quark__now_ms() + conn->timeout_ms;
    } else if (!quark__wait_on_locked(conn, &deadline)) {
      code =
          quark__fail(err, QUARK_TIMEOUT, "the daemon has taken nothing of request %llu for %u ms",
                      (unsigned long long)request, conn->timeout_ms);
      break;
    }
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

/* Whether the daemon has the whole fields that were written. */
static bool has_arrived(const request_t *r) {
  return r->ended == r->nrhs || r->up.capacity == 0 ||
         r->up.taken >= r->up.written / r->field_bytes * r->field_bytes;
}

quark_code_t quark_flush(quark_connection_t *conn, uint64_t request, quark_error_t *err) {
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t taken = 0;
  const request_t *r;
  quark_code_t code;
  pthread_mutex_lock(&conn->lock);
  while ((code = quark__check_alive_locked(conn, err)) == QUARK_OK) {
    r = quark__request_find_locked(conn, request);
    if (!r || r->released)
      code = quark__fail(err, QUARK_NOT_FOUND, "no request %llu", (unsigned long long)request);
    if (code != QUARK_OK || has_arrived(r)) break;
    if (r->up.taken > taken) deadline = quark__now_ms() + conn->timeout_ms;
    taken = r->up.taken;
    if (quark__wait_on_locked(conn, &deadline)) continue;
    code = quark__fail(err, QUARK_TIMEOUT, "the daemon has taken nothing of request %llu for %u ms",
                       (unsigned long long)request, conn->timeout_ms);
    break;
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

/* ---- downloads ---- */

static quark_code_t post_grant(quark_connection_t *conn, uint64_t request, download_t *d,
                               bool from_here, quark_error_t *err) {
  d->way = DOWNLOAD_CHUNKS;
  d->granted = least(d->bytes, d->received + DOWNLOAD_WINDOW);
  Quark__Grant grant = QUARK__GRANT__INIT;
  grant.request = request;
  grant.rhs = d->rhs;
  grant.until = d->granted;
  grant.has_from = from_here;
  grant.from = d->received;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_GRANT;
  message.grant = &grant;
  return quark__post_locked(conn, &message, err);
}

/* NULL: that right-hand side is not being downloaded. */
static download_t *find_download(const request_t *r, uint32_t rhs) {
  download_t *d = r->downloads;
  while (d && d->rhs != rhs) d = d->next;
  return d;
}

static void unlink_download(request_t *r, const download_t *d) {
  for (download_t **link = &r->downloads; *link; link = &(*link)->next) {
    if (*link != d) continue;
    *link = d->next;
    return;
  }
}

static void end_download(request_t *r, download_t *d, quark_code_t code, const char *text) {
  unlink_download(r, d);
  d->done = true;
  d->code = code;
  if (code != QUARK_OK) quark__fail(&d->error, code, "%s", text);
}

void quark__download_fail_locked(request_t *request, quark_code_t code, const char *text) {
  while (request->downloads) end_download(request, request->downloads, code, text);
}

/* From where it stands: whole by descriptor, else the rest by chunks. */
static quark_code_t begin_download(quark_connection_t *conn, uint64_t request, download_t *d,
                                   quark_error_t *err) {
  if (conn->local < 0 || d->received > 0) return post_grant(conn, request, d, true, err);
  d->way = DOWNLOAD_ASK;
  return QUARK_OK;
}

void quark__download_hold_locked(request_t *request) {
  for (download_t *d = request->downloads; d; d = d->next) d->way = DOWNLOAD_HELD;
}

void quark__download_result_locked(quark_connection_t *conn, request_t *request, uint32_t rhs,
                                   bool another) {
  const quark_result_t *result = &request->rhs[rhs].result;
  download_t *d = find_download(request, rhs);
  if (!d) return;
  if (result->bytes == 0) {
    end_download(request, d, result->status ? result->status : QUARK_NOT_FOUND,
                 *result->text ? result->text : "the solution is gone");
    return;
  }
  if (another) {
    d->received = 0;
    qk_field_hash_init(d->hash);
  }
  if (d->way == DOWNLOAD_HELD || (another && d->way == DOWNLOAD_CHUNKS))
    begin_download(conn, request->number, d, NULL);
}

void quark__download_shared_locked(request_t *request, download_t *d, int fd) {
  d->fd = fd;
  end_download(request, d, QUARK_OK, NULL);
}

/* Without a session GRANTs follow when there is one again. */
void quark__download_by_chunks_locked(quark_connection_t *conn, request_t *request) {
  for (download_t *d = request->downloads; d; d = d->next) {
    if (d->way == DOWNLOAD_CHUNKS || d->way == DOWNLOAD_HELD) continue;
    d->way = DOWNLOAD_CHUNKS;
    if (conn->state == SESSION_OPEN) post_grant(conn, request->number, d, true, NULL);
  }
}

void quark__download_chunk_locked(quark_connection_t *conn, const qk_frame_t *frame,
                                  const uint8_t *payload) {
  request_t *r = quark__request_find_locked(conn, frame->request);
  download_t *d = r ? find_download(r, frame->rhs) : NULL;
  /* Of an earlier attempt: the one that is wanted follows. */
  if (!d || d->way != DOWNLOAD_CHUNKS || frame->field_bytes != d->bytes ||
      frame->offset != d->received)
    return;
  memcpy(d->buffer + d->received, payload, frame->chunk_bytes);
  qk_field_hash_update(d->hash, payload, frame->chunk_bytes);
  d->received += frame->chunk_bytes;
  if (!qk_frame_is_last(frame)) {
    if (d->granted - d->received <= DOWNLOAD_WINDOW / 2)
      post_grant(conn, r->number, d, false, NULL);
  } else if (qk_field_hash_digest(d->hash) == frame->field_checksum)
    end_download(r, d, QUARK_OK, NULL);
  else
    end_download(r, d, QUARK_BAD_CHECKSUM, "the checksum of the whole field does not match");
}

static quark_code_t check_download(quark_connection_t *conn, request_t *r, uint32_t rhs,
                                   size_t bytes, quark_error_t *err) {
  const quark_code_t code = quark__check_alive_locked(conn, err);
  if (code != QUARK_OK) return code;
  if (!r || r->released) return quark__fail(err, QUARK_NOT_FOUND, "no such request");
  if (rhs >= r->nrhs || !r->rhs[rhs].ended)
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "rhs = %u: it has not ended, or request %llu has no such one", rhs,
                       (unsigned long long)r->number);
  const quark_result_t *result = &r->rhs[rhs].result;
  if (result->bytes == 0 || r->rhs[rhs].acked)
    return quark__fail(err, QUARK_NOT_FOUND,
                       "right-hand side %u of request %llu (%s) has no solution to download", rhs,
                       (unsigned long long)r->number, quark_code_name(result->status));
  if (bytes != result->bytes)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "bytes = %zu: the solution has %llu", bytes,
                       (unsigned long long)result->bytes);
  if (find_download(r, rhs))
    return quark__fail(err, QUARK_BUSY, "right-hand side %u is being downloaded", rhs);
  return QUARK_OK;
}

/* Until the download has ended, or nothing has come for the connection's timeout. */
static quark_code_t wait_download(quark_connection_t *conn, uint64_t request, download_t *d,
                                  quark_error_t *err) {
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t received = d->received;
  while (!d->done) {
    if (quark__wait_on_locked(conn, &deadline) && received == d->received) continue;
    if (received == d->received && !d->done) {
      request_t *r = quark__request_find_locked(conn, request);
      if (r) unlink_download(r, d);
      return quark__fail(err, QUARK_TIMEOUT,
                         "nothing of right-hand side %u of request %llu came for %u ms", d->rhs,
                         (unsigned long long)request, conn->timeout_ms);
    }
    received = d->received;
    deadline = quark__now_ms() + conn->timeout_ms;
  }
  return d->code == QUARK_OK ? QUARK_OK : quark__hand_on(err, &d->error);
}

quark_code_t quark_download(quark_connection_t *conn, uint64_t request, uint32_t rhs, void *buffer,
                            size_t bytes, quark_error_t *err) {
  download_t d = {
      .rhs = rhs, .buffer = buffer, .bytes = bytes, .fd = -1, .hash = qk_field_hash_create()};
  if (!d.hash) return quark__fail(err, QUARK_NO_MEMORY, "no memory for a checksum");
  pthread_mutex_lock(&conn->lock);
  request_t *r = quark__request_find_locked(conn, request);
  quark_code_t code = check_download(conn, r, rhs, bytes, err);
  if (code == QUARK_OK) code = begin_download(conn, request, &d, err);
  if (code == QUARK_OK) {
    d.next = r->downloads;
    r->downloads = &d;
    if (!quark__local_send_locked(conn)) quark__wake(conn);
    code = wait_download(conn, request, &d, err);
  }
  pthread_mutex_unlock(&conn->lock);
  if (d.fd >= 0 && !read_at(d.fd, buffer, bytes, 0))
    code = quark__fail(err, QUARK_IO_ERROR, "the solution in shared memory cannot be read");
  if (d.fd >= 0) close(d.fd);
  qk_field_hash_destroy(d.hash);
  return code;
}
