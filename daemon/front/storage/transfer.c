#include "daemon/front/storage/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/mem.h"

enum { PIECE = 256 * 1024 }; /* bytes that are read at a time: they stay in the cache */

qk_transfer_t *qk_transfer_create(void *owner, bool by_blocks) {
  qk_transfer_t *t = qk_calloc(1, sizeof *t);
  if (!t) return NULL;
  qk_link_init(&t->link);
  t->owner = owner;
  t->hash = qk_field_hash_create();
  if (t->hash) {
    t->by_blocks = by_blocks;
    qk_field_hash_init(t->hash, by_blocks);
    return t;
  }
  qk_free(t);
  return NULL;
}

void qk_transfer_set_part(qk_transfer_t *t, const qk_brick_t *brick, qk_gate_t *gate) {
  t->brick = *brick;
  t->gate = gate;
}

static void destroy(qk_transfer_t *t) {
  qk_link_remove(&t->link);
  qk_field_hash_destroy(t->hash);
  qk_free(t);
}

void qk_transfer_start(qk_transfer_t *t, const qk_shm_t *field) {
  qk_gate_enter(t->gate);
  if (t->under_way++ > 0) return;
  memset(t->segment, 0, sizeof t->segment);
  if (field) memcpy(t->segment, field->name, sizeof t->segment);
  atomic_store(&t->stop, false);
}

bool qk_transfer_finish(qk_transfer_t *t) {
  qk_gate_leave(t->gate);
  t->under_way--;
  if (t->owner) return true;
  if (t->under_way == 0) destroy(t);
  return false;
}

void qk_transfer_leave(qk_transfer_t *t) {
  if (!t) return;
  t->owner = NULL;
  atomic_store(&t->over, true);
  qk_link_remove(&t->link);
  if (t->under_way == 0) destroy(t);
}

/* ---- on a thread ----------------------------------------------------------------------------- */

/* -1 with an error. */
static int open_segment(const qk_transfer_t *t, qk_err_t *err) {
  const int fd = shm_open(t->segment, O_RDWR | O_CLOEXEC, 0);
  if (fd >= 0) return fd;
  const bool later = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  qk_fail(err, later ? QK_NO_MEMORY : QK_IO_ERROR, "/dev/shm%s cannot be opened: %s", t->segment,
          strerror(errno));
  return -1;
}

static qk_status_t read_all(int fd, uint8_t *out, size_t bytes, uint64_t offset, qk_err_t *err) {
  while (bytes > 0) {
    const ssize_t n = pread(fd, out, bytes, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return qk_fail(err, QK_IO_ERROR, "shared memory cannot be read: %s",
                     n == 0 ? "its end" : strerror(errno));
    out += n;
    offset += (uint64_t)n;
    bytes -= (size_t)n;
  }
  return QK_OK;
}

/* Bytes of the field, or of the part that it is. */
static qk_status_t read_field(const qk_transfer_t *t, int fd, uint8_t *out, size_t bytes,
                              uint64_t offset, qk_err_t *err) {
  qk_status_t s = QK_OK;
  while (bytes > 0 && s == QK_OK) {
    uint64_t at;
    const uint64_t run = qk_brick_find(&t->brick, offset, &at);
    const size_t n = run < bytes ? run : bytes;
    s = read_all(fd, out, n, at, err);
    out += n;
    offset += n;
    bytes -= n;
  }
  return s;
}

/* Adds what the checksum lacks before `until`. */
static qk_status_t read_back(qk_transfer_t *t, uint64_t until, qk_err_t *err) {
  qk_status_t s = QK_OK;
  const int fd = open_segment(t, err);
  if (fd < 0) return err->code;
  uint8_t *buffer = qk_malloc(PIECE);
  if (!buffer) s = qk_fail(err, QK_NO_MEMORY, "no memory for a checksum");
  while (s == QK_OK && t->hashed < until) {
    const size_t n = until - t->hashed < PIECE ? until - t->hashed : PIECE;
    s = read_field(t, fd, buffer, n, t->hashed, err);
    if (s == QK_OK) {
      qk_field_hash_update(t->hash, buffer, n);
      t->hashed += n;
    }
  }
  qk_free(buffer);
  close(fd);
  return s;
}

qk_status_t qk_transfer_catch_up(qk_transfer_t *t, uint64_t offset, uint64_t most, bool *more,
                                 qk_err_t *err) {
  *more = false;
  if (t->blind || t->hashed >= offset) return QK_OK;
  if (!*t->segment) {
    t->blind = true;
    return QK_OK;
  }
  const uint64_t lacks = offset - t->hashed;
  *more = lacks > most;
  return read_back(t, t->hashed + (*more ? most : lacks), err);
}

static void add(qk_transfer_t *t, const uint8_t *data, size_t bytes, uint64_t offset) {
  if (t->blind || offset + bytes <= t->hashed) return;
  const size_t known = t->hashed - offset;
  qk_field_hash_update(t->hash, data + known, bytes - known);
  t->hashed = offset + bytes;
}

/* The block of that checksum has come, where it is the next one. */
static void add_block(qk_transfer_t *t, size_t bytes, uint64_t offset, const uint64_t *block) {
  if (!t->by_blocks || !block || t->blind || t->hashed != offset) return;
  qk_field_hash_add_block(t->hash, *block);
  t->hashed += bytes;
}

/* *fd: of its segment; -1: it has none. */
static qk_status_t begin_piece(qk_transfer_t *t, uint64_t offset, int *fd, qk_err_t *err) {
  bool more;
  *fd = -1;
  const qk_status_t s = qk_transfer_catch_up(t, offset, UINT64_MAX, &more, err);
  if (s != QK_OK || !*t->segment) return s;
  *fd = open_segment(t, err);
  return *fd < 0 ? err->code : QK_OK;
}

static qk_status_t end_piece(qk_transfer_t *t, int fd, qk_status_t s) {
  if (fd >= 0) close(fd);
  if (s != QK_OK) t->blind = true; /* what is missing in memory is not read back */
  return s;
}

qk_status_t qk_transfer_write(qk_transfer_t *t, const void *data, size_t bytes, uint64_t offset,
                              const uint64_t *block, qk_err_t *err) {
  const uint8_t *from = data;
  int fd;
  if (atomic_load(&t->over)) return QK_OK;
  qk_status_t s = begin_piece(t, offset, &fd, err);
  if (s == QK_OK) add_block(t, bytes, offset, block);
  for (size_t at = 0, n; at < bytes && s == QK_OK; at += n) {
    n = bytes - at < PIECE ? bytes - at : PIECE;
    add(t, from + at, n, offset + at);
    if (fd >= 0) s = qk_brick_write(&t->brick, fd, from + at, n, offset + at, err);
  }
  return end_piece(t, fd, s);
}

static void add_zeros(qk_transfer_t *t, uint64_t bytes, uint64_t offset) {
  if (t->blind || offset + bytes <= t->hashed) return;
  qk_field_hash_zeros(t->hash, offset + bytes - t->hashed);
  t->hashed = offset + bytes;
}

qk_status_t qk_transfer_zero(qk_transfer_t *t, uint64_t bytes, uint64_t offset, qk_err_t *err) {
  int fd;
  if (atomic_load(&t->over)) return QK_OK;
  qk_status_t s = begin_piece(t, offset, &fd, err);
  if (s == QK_OK) add_zeros(t, bytes, offset);
  if (fd >= 0) s = qk_brick_zero(&t->brick, fd, bytes, offset, t->dense, err);
  return end_piece(t, fd, s);
}

/* By blocks the piece is hashed once, where it is the next block. */
qk_status_t qk_transfer_read(qk_transfer_t *t, void *out, size_t bytes, uint64_t offset, bool block,
                             uint64_t *sum, qk_err_t *err) {
  uint8_t *to = out;
  bool more;
  qk_status_t s = qk_transfer_catch_up(t, offset, UINT64_MAX, &more, err);
  const bool once = block && t->by_blocks && !t->blind && t->hashed == offset;
  const int fd = s == QK_OK ? open_segment(t, err) : -1;
  if (s == QK_OK && fd < 0) s = err->code;
  for (size_t at = 0, n; at < bytes && s == QK_OK; at += n) {
    n = bytes - at < PIECE ? bytes - at : PIECE;
    s = read_field(t, fd, to + at, n, offset + at, err);
    if (s == QK_OK) add(t, to + at, n, offset + at);
  }
  if (fd >= 0) close(fd);
  if (s == QK_OK) *sum = once ? qk_field_hash_end_block(t->hash) : qk_checksum(out, bytes);
  return s;
}

bool qk_transfer_has_checksum(const qk_transfer_t *t, uint64_t checksum) {
  return t->blind || qk_field_hash_digest(t->hash) == checksum;
}

uint64_t qk_transfer_checksum(const qk_transfer_t *t) {
  return qk_field_hash_digest(t->hash);
}
