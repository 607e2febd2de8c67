#include "client/libquark/request/transfer.h"

#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"
#include "client/libquark/memory/buffer.h"
#include "client/libquark/memory/memfd.h"
#include "client/libquark/request/local.h"
#include "client/libquark/request/request.h"

enum {
  BURST = 16,    /* chunks sent before messages are read */
  LOOK = 1 << 22 /* bytes in which runs of zeros are looked for at a time */
};

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* ---- uploads ---- */

/* Whether the field that is sent next has a checksum of blocks. */
static bool goes_by_blocks(const request_t *r) {
  const uint64_t field = r->up.sent / r->up.field_bytes;
  return r->up.by_blocks || (field < r->nrhs && r->rhs[field].sparse);
}

/* The next bytes of the stream, which are of one field. */
static bool read_stream(const request_t *r, uint8_t *out, uint64_t bytes) {
  const upload_t *up = &r->up;
  if (!up->by_put) return quark__upload_read(up, up->sent, out, bytes);
  const rhs_t *rhs = &r->rhs[up->sent / up->field_bytes];
  return quark__buffer_read(rhs->buffer, rhs->buffer_at + up->sent % up->field_bytes, out, bytes);
}

/* The next bytes of the stream that go together. */
typedef struct piece {
  uint32_t bytes; /* 0: none may be sent now */
  bool zeros;     /* a run, which needs no credit */
} piece_t;

/* Chunks are as large as the field, the next run and the credit allow, or by_blocks blocks: what is
 * left of one that has arrived in part. */
static piece_t next_piece(const request_t *r) {
  const upload_t *up = &r->up;
  const bool by_blocks = goes_by_blocks(r);
  const uint64_t at = up->sent % up->field_bytes;
  const run_t *run = quark__runs_next(&up->runs, up->sent);
  if (up->until == 0) return (piece_t){0};
  if (run && run->begin <= up->sent)
    return (piece_t){(uint32_t)least(run->end - up->sent, QK_ZEROS_MAX), true};
  const uint64_t most = by_blocks ? QK_CHUNK_MAX - at % QK_CHUNK_MAX : QK_CHUNK_MAX;
  const uint64_t credit = up->until > up->sent ? up->until - up->sent : 0;
  uint64_t want = least(most, up->field_bytes - at);
  if (run) want = least(want, run->begin - up->sent);
  if (by_blocks && credit < want) return (piece_t){0};
  want = least(want, credit);
  return (piece_t){up->written - up->sent >= want ? (uint32_t)want : 0, false};
}

/* Each byte counts once, however often it is sent. */
static void sum_piece(request_t *r, const qk_frame_t *frame, const uint8_t *payload) {
  upload_t *up = &r->up;
  const uint64_t end = up->sent + frame->chunk_bytes;
  if (!up->by_blocks || end <= up->summed) return;
  const uint64_t skip = up->summed - up->sent;
  if (frame->kind == QK_FRAME_UPLOAD_ZERO)
    qk_field_hash_zeros(up->hash, frame->chunk_bytes - skip);
  else if (skip == 0 && qk_frame_is_block(frame))
    qk_field_hash_add_block(up->hash, frame->chunk_checksum);
  else
    qk_field_hash_update(up->hash, payload + skip, frame->chunk_bytes - skip);
  up->summed = end;
  if (qk_frame_is_last(frame)) r->rhs[frame->rhs].upload_checksum = quark__upload_checksum(up);
}

static bool send_frame(quark_connection_t *conn, request_t *r, qk_frame_t *frame,
                       const uint8_t *payload, zmq_msg_t *msg) {
  qk_frame_fault_t fault;
  sum_piece(r, frame, payload);
  if (qk_frame_is_last(frame)) frame->field_checksum = r->rhs[frame->rhs].upload_checksum;
  if (qk_frame_encode_summed(frame, zmq_msg_data(msg), &fault) != QK_OK ||
      zmq_msg_send(msg, conn->data, ZMQ_DONTWAIT) < 0)
    return false;
  r->up.sent += frame->chunk_bytes;
  return true;
}

static bool send_zeros(quark_connection_t *conn, request_t *r, qk_frame_t *frame) {
  zmq_msg_t msg;
  if (zmq_msg_init_size(&msg, QK_FRAME_HEADER) != 0) return false;
  frame->kind = QK_FRAME_UPLOAD_ZERO;
  const bool sent = send_frame(conn, r, frame, NULL, &msg);
  if (!sent) zmq_msg_close(&msg);
  return sent;
}

/* What comes from buffers of the user has its runs found here. */
static bool send_chunk(quark_connection_t *conn, request_t *r, qk_frame_t *frame) {
  zmq_msg_t msg;
  const size_t bytes = frame->chunk_bytes;
  if (zmq_msg_init_size(&msg, QK_FRAME_HEADER + bytes) != 0) return false;
  uint8_t *payload = (uint8_t *)zmq_msg_data(&msg) + QK_FRAME_HEADER;
  const bool there = read_stream(r, payload, bytes);
  const bool zeros = there && r->up.by_put && r->up.zeros && bytes >= QUARK_RUN &&
                     quark__zeros(payload, bytes) == bytes;
  if (there && !zeros) {
    frame->chunk_checksum = qk_checksum(payload, bytes);
    if (send_frame(conn, r, frame, payload, &msg)) return true;
  }
  zmq_msg_close(&msg);
  return zeros && send_zeros(conn, r, frame);
}

static bool send_piece(quark_connection_t *conn, request_t *r, const piece_t *piece) {
  qk_frame_t frame = {.kind = QK_FRAME_UPLOAD,
                      .by_blocks = goes_by_blocks(r),
                      .request = r->number,
                      .rhs = (uint32_t)(r->up.sent / r->up.field_bytes),
                      .chunk_bytes = piece->bytes,
                      .field_bytes = r->up.field_bytes,
                      .offset = r->up.sent % r->up.field_bytes};
  return piece->zeros ? send_zeros(conn, r, &frame) : send_chunk(conn, r, &frame);
}

bool quark__transfer_send_locked(quark_connection_t *conn) {
  int sent = 0;
  for (request_t *r = conn->requests->first; r; r = r->next) {
    piece_t piece;
    while (r->state == REQUEST_ACCEPTED && r->up.capacity > 0 && !quark__local_takes(conn, r) &&
           (piece = next_piece(r)).bytes > 0)
      if (sent++ == BURST || !send_piece(conn, r, &piece)) return false;
  }
  return true;
}

/* What the user gives: bytes, or zeros that go as a run if the daemon takes them. */
typedef struct given {
  const uint8_t *bytes; /* NULL: zeros that are nowhere */
  uint64_t length;
  bool zeros;
} given_t;

/* How much of it goes into the ring now, into one field. */
static uint64_t room_for(upload_t *up, const given_t *given) {
  const uint64_t space = quark__upload_space(up);
  const uint64_t field_left = up->field_bytes - up->written % up->field_bytes;
  const uint64_t most = least(given->length, field_left);
  if (given->zeros && up->zeros) return up->shared ? least(most, space) : most;
  return least(least(most, space), given->bytes ? QK_CHUNK_MAX : QUARK_RUN);
}

/* Writes so many bytes of it, and stores the checksum of the field at its end. False, with nothing
 * changed: no memory. */
static bool write_given(request_t *r, const given_t *given, uint64_t bytes) {
  static const uint8_t zeros[QUARK_RUN];
  upload_t *up = &r->up;
  rhs_t *rhs = &r->rhs[up->written / up->field_bytes];
  const bool written = given->zeros && up->zeros
                           ? quark__upload_write_zeros(up, bytes)
                           : quark__upload_write(up, given->bytes ? given->bytes : zeros, bytes);
  if (!written) return false;
  rhs->sparse = up->shared && up->zeros;
  if (!up->by_blocks && up->written % up->field_bytes == 0)
    rhs->upload_checksum = quark__upload_checksum(up);
  return true;
}

static quark_code_t find_upload(quark_connection_t *conn, uint64_t number, uint64_t bytes,
                                request_t **request, quark_error_t *err) {
  const quark_code_t code = quark__check_alive_locked(conn, err);
  if (code != QUARK_OK) return code;
  request_t *r = quark__request_known_locked(conn, number, err);
  if (!r) return QUARK_NOT_FOUND;
  if (r->ended < r->nrhs && r->up.by_put)
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "the upload of request %llu has begun with quark_put, and goes on so",
                       (unsigned long long)number);
  if (r->ended < r->nrhs && (r->up.capacity == 0 || bytes > r->up.total - r->up.written))
    return quark__fail(err, QUARK_BAD_ARGUMENT, "bytes = %llu: request %llu takes %llu more",
                       (unsigned long long)bytes, (unsigned long long)number,
                       (unsigned long long)(r->up.total - r->up.written));
  *request = r;
  return QUARK_OK;
}

/* All of it; `more` bytes follow in the same call of the user. */
static quark_code_t append(quark_connection_t *conn, uint64_t request, given_t given, uint64_t more,
                           quark_error_t *err) {
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  request_t *r = NULL;
  quark_code_t code;
  pthread_mutex_lock(&conn->lock);
  while ((code = find_upload(conn, request, given.length + more, &r, err)) == QUARK_OK &&
         given.length > 0 && r->ended < r->nrhs) {
    const uint64_t n = room_for(&r->up, &given);
    if (n > 0) {
      if (!write_given(r, &given, n)) {
        code = quark__fail(err, QUARK_NO_MEMORY, "no memory for an upload");
        break;
      }
      if (given.bytes) given.bytes += n;
      given.length -= n;
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

/* Up to the next run of zeros, or a run: without the lock, as it is looked for in all bytes. */
static given_t next_given(const uint8_t *data, size_t bytes) {
  const size_t some = least(bytes, LOOK);
  size_t begin, end;
  if (!quark__find_run(data, some, &begin, &end)) return (given_t){data, some, false};
  if (begin > 0) return (given_t){data, begin, false};
  return (given_t){data, end < some ? end : end + quark__zeros(data + end, bytes - end), true};
}

quark_code_t quark_upload(quark_connection_t *conn, uint64_t request, const void *data,
                          size_t bytes, quark_error_t *err) {
  const uint8_t *from = data;
  quark_code_t code = append(conn, request, (given_t){NULL}, bytes, err); /* there is room for it */
  while (code == QUARK_OK && bytes > 0) {
    const given_t given = next_given(from, bytes);
    from += given.length;
    bytes -= given.length;
    code = append(conn, request, given, bytes, err);
  }
  return code;
}

quark_code_t quark_upload_zeros(quark_connection_t *conn, uint64_t request, uint64_t bytes,
                                quark_error_t *err) {
  return append(conn, request, (given_t){NULL, bytes, true}, 0, err);
}

/* True if the daemon has all whole fields that were written. */
static bool has_arrived(const request_t *r) {
  return r->ended == r->nrhs || r->up.capacity == 0 ||
         r->up.taken >= r->up.written / r->up.field_bytes * r->up.field_bytes;
}

quark_code_t quark_flush(quark_connection_t *conn, uint64_t request, quark_error_t *err) {
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t taken = 0;
  const request_t *r;
  quark_code_t code;
  pthread_mutex_lock(&conn->lock);
  while ((code = quark__check_alive_locked(conn, err)) == QUARK_OK) {
    r = quark__request_known_locked(conn, request, err);
    if (!r) code = QUARK_NOT_FOUND;
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
  if (quark__download_find(r->downloads, rhs))
    return quark__fail(err, QUARK_BUSY, "right-hand side %u is being downloaded", rhs);
  return QUARK_OK;
}

/* Waits until the download has ended, or nothing has come for the timeout of the connection. */
static quark_code_t wait_download(quark_connection_t *conn, download_t *d, quark_error_t *err) {
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t received = d->received;
  while (!d->done) {
    if (quark__wait_on_locked(conn, &deadline) && received == d->received) continue;
    if (received == d->received && !d->done) {
      request_t *r = quark__request_find_locked(conn, d->request);
      if (r) quark__download_remove(&r->downloads, d);
      return quark__fail(err, QUARK_TIMEOUT,
                         "nothing of right-hand side %u of request %llu came for %u ms", d->rhs,
                         (unsigned long long)d->request, conn->timeout_ms);
    }
    received = d->received;
    deadline = quark__now_ms() + conn->timeout_ms;
  }
  return d->code == QUARK_OK ? QUARK_OK : quark__hand_on(err, &d->error);
}

quark_code_t quark__fetch(quark_connection_t *conn, uint64_t request, uint32_t rhs, void *buffer,
                          size_t bytes, shared_t *shared, quark_error_t *err) {
  download_t d = {.request = request,
                  .rhs = rhs,
                  .buffer = buffer,
                  .bytes = bytes,
                  .fd = -1,
                  .hash = qk_field_hash_create()};
  *shared = (shared_t){.fd = -1};
  if (!d.hash) return quark__fail(err, QUARK_NO_MEMORY, "no memory for a checksum");
  pthread_mutex_lock(&conn->lock);
  request_t *r = quark__request_find_locked(conn, request);
  quark_code_t code = check_download(conn, r, rhs, bytes, err);
  if (code == QUARK_OK) code = quark__download_begin_locked(conn, &d, err);
  if (code == QUARK_OK) {
    d.next = r->downloads;
    r->downloads = &d;
    if (!quark__local_send_locked(conn)) quark__wake(conn);
    code = wait_download(conn, &d, err);
  }
  *shared = (shared_t){.fd = d.fd, .ours = conn->local_ours};
  pthread_mutex_unlock(&conn->lock);
  qk_field_hash_destroy(d.hash);
  return code;
}

quark_code_t quark__copy_shared(const shared_t *shared, void *buffer, size_t bytes,
                                quark_error_t *err) {
  if (shared->fd < 0 || quark__memfd_read(shared->fd, buffer, bytes, 0)) return QUARK_OK;
  return quark__fail(err, QUARK_IO_ERROR, "the solution in shared memory cannot be read");
}

quark_code_t quark_download(quark_connection_t *conn, uint64_t request, uint32_t rhs, void *buffer,
                            size_t bytes, quark_error_t *err) {
  shared_t shared;
  quark_code_t code = quark__fetch(conn, request, rhs, buffer, bytes, &shared, err);
  if (code == QUARK_OK) code = quark__copy_shared(&shared, buffer, bytes, err);
  if (shared.fd >= 0) close(shared.fd);
  return code;
}
