#include "daemon/front/storage/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/front/storage/holes.h"

enum { BUFFER_BYTES = 256 * 1024, SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

qk_status_t qk_copy_check(int fd, uint64_t offset, uint64_t bytes, qk_err_t *err) {
  struct stat st;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & SEALS) != SEALS)
    return qk_fail(err, QK_BAD_PROTOCOL,
                   "the descriptor is not a memfd sealed against shrinking and growing");
  if (fstat(fd, &st) != 0 || st.st_size < 0 || bytes > (uint64_t)st.st_size ||
      offset > (uint64_t)st.st_size - bytes)
    return qk_fail(err, QK_BAD_PROTOCOL,
                   "the descriptor has %lld bytes: must have %llu from %llu on",
                   (long long)st.st_size, (unsigned long long)bytes, (unsigned long long)offset);
  return QK_OK;
}

/* Bytes [at, end) of the field. */
static void copy_data(qk_copy_t *c, int to, uint64_t at, uint64_t end) {
  while (at < end && c->err.code == QK_OK) {
    const size_t want = end - at < BUFFER_BYTES ? end - at : BUFFER_BYTES;
    const ssize_t n = pread(c->from, c->buffer, want, (off_t)(c->offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      qk_fail(&c->err, QK_BAD_PROTOCOL, "a descriptor of a field ends at byte %llu",
              (unsigned long long)at);
      return;
    }
    qk_field_hash_update(c->hash, c->buffer, (size_t)n);
    qk_brick_write(&c->brick, to, c->buffer, (size_t)n, at, &c->err);
    at += (uint64_t)n;
    c->copied += (uint64_t)n;
  }
}

static void skip_hole(qk_copy_t *c, int to, uint64_t at, uint64_t end) {
  if (at == end) return;
  qk_field_hash_zeros(c->hash, end - at);
  qk_brick_zero(&c->brick, to, end - at, at, c->dense, &c->err);
}

/* The client may write to what it has handed over: what was a hole is zeros, whatever it is now. */
static void copy_sparse(qk_copy_t *c, int to) {
  const uint64_t until = c->offset + c->bytes;
  for (uint64_t at = c->offset, begin, end; at < until && c->err.code == QK_OK; at = end) {
    if (!qk_holes_data(c->from, at, until, &begin, &end)) begin = end = until;
    skip_hole(c, to, at - c->offset, begin - c->offset);
    if (c->err.code == QK_OK) copy_data(c, to, begin - c->offset, end - c->offset);
  }
}

static void run(uv_work_t *work) {
  qk_copy_t *c = work->data;
  const int to = shm_open(c->segment, O_RDWR | O_CLOEXEC, 0);
  qk_field_hash_init(c->hash, c->sparse);
  if (to < 0)
    qk_fail(&c->err, QK_NO_MEMORY, "%s", strerror(errno));
  else if (c->sparse)
    copy_sparse(c, to);
  else
    copy_data(c, to, 0, c->bytes);
  c->checksum = qk_field_hash_digest(c->hash);
  if (c->err.code == QK_OK && c->checksum != c->announced)
    qk_fail(&c->err, QK_BAD_PROTOCOL, "the checksum of a field is %016llx, not %016llx",
            (unsigned long long)c->checksum, (unsigned long long)c->announced);
  if (to >= 0) close(to);
}

static void after(uv_work_t *work, int cancelled) {
  qk_copy_t *c = work->data;
  (void)cancelled;
  qk_gate_leave(c->gate);
  c->gate = NULL;
  c->done(c);
}

/* Of a descriptor that has all its pages a spare segment takes the bytes as well. */
static bool has_holes(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size;
}

static qk_status_t prepare(qk_copy_t *c) {
  c->hash = qk_field_hash_create();
  c->buffer = qk_malloc(BUFFER_BYTES);
  if (c->hash && c->buffer) return QK_OK;
  return qk_fail(&c->err, QK_NO_MEMORY, "no memory to copy a right-hand side");
}

static void begin(qk_copy_t *c, uv_loop_t *loop, const qk_shm_t *to, void (*done)(qk_copy_t *)) {
  memcpy(c->segment, to->name, sizeof c->segment);
  c->done = done;
  c->work.data = c;
  uv_queue_work(loop, &c->work, run, after);
}

qk_status_t qk_copy_start_part(qk_copy_t *c, uv_loop_t *loop, const qk_shm_t *whole,
                               const qk_brick_t *brick, qk_gate_t *gate,
                               void (*done)(qk_copy_t *copy)) {
  if (prepare(c) != QK_OK) return QK_NO_MEMORY;
  c->brick = *brick;
  c->bytes = brick->bytes;
  c->gate = gate;
  qk_gate_enter(gate);
  begin(c, loop, whole, done);
  return QK_OK;
}

qk_status_t qk_copy_start(qk_copy_t *c, uv_loop_t *loop, qk_shm_space_t *space, uint64_t bytes,
                          void (*done)(qk_copy_t *copy)) {
  if (prepare(c) != QK_OK) return QK_NO_MEMORY;
  c->bytes = bytes;
  const bool holes = c->sparse && !c->dense && has_holes(c->from);
  if ((holes ? qk_shm_create_sparse : qk_shm_create_bare)(space, bytes, &c->field, &c->err) !=
      QK_OK) {
    c->err.code = QK_NO_MEMORY;
    return QK_NO_MEMORY;
  }
  begin(c, loop, c->field, done);
  return QK_OK;
}

void qk_copy_fini(qk_copy_t *c) {
  if (c->from >= 0) close(c->from);
  c->from = -1;
  qk_shm_destroy(c->field);
  qk_field_hash_destroy(c->hash);
  qk_free(c->buffer);
  c->field = NULL;
  c->hash = NULL;
  c->buffer = NULL;
}
