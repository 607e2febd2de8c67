#include "daemon/front/storage/holes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "proto/frame.h"

enum {
  PIECE = 256 * 1024,
  ZEROS = 64 * 1024, /* from so many on the kernel is asked to do it */
  PAGE = 4096
};

/* The next data from there on; UINT64_MAX: there is none. */
static uint64_t next_data(int fd, uint64_t at) {
  const off_t data = lseek(fd, (off_t)at, SEEK_DATA);
  if (data < 0) return errno == ENXIO ? UINT64_MAX : at;
  return (uint64_t)data > at ? (uint64_t)data : at;
}

bool qk_holes_data(int fd, uint64_t at, uint64_t until, uint64_t *begin, uint64_t *end) {
  *begin = next_data(fd, at);
  *end = until;
  if (*begin >= until) return false;
  const off_t hole = lseek(fd, (off_t)*begin, SEEK_HOLE);
  if (hole > 0 && (uint64_t)hole > *begin && (uint64_t)hole < until) *end = (uint64_t)hole;
  return true;
}

qk_status_t qk_holes_fill(int fd, uint64_t at, uint64_t bytes, qk_err_t *err) {
  static const uint8_t zeros[ZEROS];
  qk_status_t s = QK_OK;
  for (size_t n; bytes > 0 && s == QK_OK; at += n, bytes -= n) {
    n = bytes < sizeof zeros ? bytes : sizeof zeros;
    s = qk_shm_write(fd, zeros, n, at, err);
  }
  return s;
}

/* Page by page: to look for the end of the data, in each row of a part, would be to look at all
 * pages each time. */
qk_status_t qk_holes_clear(int fd, uint64_t at, uint64_t bytes, qk_hole_t *known, qk_err_t *err) {
  const uint64_t until = at + bytes;
  qk_status_t s = QK_OK;
  if (known->begin <= at && until <= known->end) return QK_OK;
  while (at < until && s == QK_OK) {
    const uint64_t begin = next_data(fd, at), page = (begin / PAGE + 1) * PAGE;
    *known = (qk_hole_t){at, begin};
    if (begin >= until) return QK_OK;
    if (until - begin >= ZEROS && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                            (off_t)begin, (off_t)(until - begin)) == 0)
      return QK_OK;
    at = page < until ? page : until;
    s = qk_holes_fill(fd, begin, at - begin, err);
  }
  return s;
}

/* ---- the slab ------------------------------------------------------------------------------ */

/* A vector from `base` on, of slices of so many bytes. */
typedef struct vector {
  int fd;
  uint64_t base, bytes;
  uint32_t slices;
} vector_t;

/* The first slice from `from` on with data; `slices`: there is none. */
static uint32_t next_slice(const vector_t *v, uint32_t from) {
  const uint64_t slice = (next_data(v->fd, v->base + from * v->bytes) - v->base) / v->bytes;
  return slice < v->slices ? (uint32_t)slice : v->slices;
}

/* The last one; first: that is one. */
static uint32_t last_slice(const vector_t *v, uint32_t first) {
  uint32_t last = first, most = v->slices - 1;
  while (last < most) { /* none is above `most` */
    const uint32_t middle = last + (most - last + 1) / 2, next = next_slice(v, middle);
    if (next < v->slices)
      last = next;
    else
      most = middle - 1;
  }
  return last;
}

void qk_holes_slab(const qk_shm_t *field, uint32_t vectors, uint32_t slices, uint32_t *first,
                   uint32_t *count) {
  uint32_t begin = slices, end = 0;
  vector_t v = {.fd = qk_shm_open(field, O_RDONLY),
                .bytes = field->bytes / vectors / slices,
                .slices = slices};
  *first = 0;
  *count = slices;
  if (v.fd < 0) return;
  for (uint32_t k = 0; k < vectors; k++) {
    v.base = k * v.bytes * slices;
    const uint32_t one = next_slice(&v, 0);
    if (one == slices) continue;
    const uint32_t last = last_slice(&v, one);
    if (one < begin) begin = one;
    if (last + 1 > end) end = last + 1;
  }
  close(v.fd);
  *first = begin < end ? begin : 0;
  *count = begin < end ? end - begin : 0;
}

/* ---- checksums ----------------------------------------------------------------------------- */

static qk_status_t read_piece(int fd, uint8_t *buffer, size_t bytes, uint64_t at, qk_err_t *err) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = pread(fd, buffer + done, bytes - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return qk_fail(err, QK_IO_ERROR, "shared memory cannot be read: %s",
                     n == 0 ? "its end" : strerror(errno));
    done += (size_t)n;
  }
  return QK_OK;
}

static qk_status_t add_data(int fd, uint64_t begin, uint64_t end, qk_field_hash_t *const hash[2],
                            uint8_t *buffer, qk_err_t *err) {
  qk_status_t s = QK_OK;
  for (size_t n; begin < end && s == QK_OK; begin += n) {
    n = end - begin < PIECE ? end - begin : PIECE;
    s = read_piece(fd, buffer, n, begin, err);
    for (int k = 0; k < 2 && s == QK_OK; k++)
      if (hash[k]) qk_field_hash_update(hash[k], buffer, n);
  }
  return s;
}

/* All of the object goes into both. */
static qk_status_t add_all(int fd, uint64_t bytes, qk_field_hash_t *const hash[2], uint8_t *buffer,
                           qk_err_t *err) {
  qk_status_t s = QK_OK;
  for (uint64_t at = 0, begin, end; at < bytes && s == QK_OK; at = end) {
    if (!qk_holes_data(fd, at, bytes, &begin, &end)) begin = end = bytes;
    for (int k = 0; k < 2; k++)
      if (hash[k]) qk_field_hash_zeros(hash[k], begin - at);
    s = add_data(fd, begin, end, hash, buffer, err);
  }
  return s;
}

/* sum[k]: by_blocks is k; one that is not wanted is NULL. */
static qk_status_t checksums(int fd, uint64_t bytes, uint64_t *const sum[2], qk_err_t *err) {
  qk_field_hash_t *hash[2] = {NULL, NULL};
  uint8_t *buffer = qk_malloc(PIECE);
  bool there = buffer != NULL;
  for (int k = 0; k < 2; k++) {
    if (sum[k]) hash[k] = qk_field_hash_create();
    if (hash[k]) qk_field_hash_init(hash[k], k == 1);
    there = there && (hash[k] || !sum[k]);
  }
  qk_status_t s = there ? add_all(fd, bytes, hash, buffer, err)
                        : qk_fail(err, QK_NO_MEMORY, "no memory for a checksum");
  for (int k = 0; k < 2; k++) {
    if (s == QK_OK && sum[k]) *sum[k] = qk_field_hash_digest(hash[k]);
    qk_field_hash_destroy(hash[k]);
  }
  qk_free(buffer);
  return s;
}

qk_status_t qk_holes_checksum(int fd, uint64_t bytes, bool by_blocks, uint64_t *checksum,
                              qk_err_t *err) {
  uint64_t *const sum[2] = {by_blocks ? NULL : checksum, by_blocks ? checksum : NULL};
  return checksums(fd, bytes, sum, err);
}

qk_status_t qk_holes_check(const qk_shm_t *field, uint64_t checksum, qk_err_t *err) {
  uint64_t plain, blocks;
  const int fd = qk_shm_open(field, O_RDONLY);
  if (fd < 0) return qk_fail(err, QK_NO_MEMORY, "/dev/shm%s: %s", field->name, strerror(errno));
  qk_status_t s = checksums(fd, field->bytes, (uint64_t *const[2]){&plain, &blocks}, err);
  close(fd);
  if (s == QK_OK && checksum != plain && checksum != blocks)
    s = qk_fail(err, QK_BAD_CHECKSUM, "its checksum is not %016llx", (unsigned long long)checksum);
  return s;
}
