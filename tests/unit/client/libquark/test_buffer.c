#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/libquark/memory/buffer.h"

enum { MIB = 1024 * 1024 };

static quark_buffer_t *make(size_t bytes, uint8_t **data) {
  quark_buffer_t *buffer = NULL;
  quark_error_t err = {0};
  cr_assert_eq(quark_buffer_create(bytes, &buffer, (void **)data, &err), QUARK_OK, "%s", err.text);
  return buffer;
}

Test(buffer, is_of_one_size) {
  uint8_t *data;
  quark_buffer_t *buffer = make(3 * 4096, &data);
  const int fd = quark__buffer_fd(buffer);
  cr_expect_eq(ftruncate(fd, 4096), -1);
  cr_expect_eq(ftruncate(fd, 4 * 4096), -1);
  cr_expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  for (size_t i = 0; i < 3 * 4096; i++) cr_assert_eq(data[i], 0);
  quark_buffer_destroy(buffer);
  cr_expect_eq(fcntl(fd, F_GETFD), -1, "its descriptor should be closed");
}

static uint64_t sum(const uint8_t *bytes, size_t n, bool by_blocks) {
  qk_field_hash_t *hash = qk_field_hash_create();
  qk_field_hash_init(hash, by_blocks);
  qk_field_hash_update(hash, bytes, n);
  const uint64_t out = qk_field_hash_digest(hash);
  qk_field_hash_destroy(hash);
  return out;
}

static blkcnt_t blocks(const quark_buffer_t *buffer) {
  struct stat st;
  cr_assert_eq(fstat(quark__buffer_fd(buffer), &st), 0);
  return st.st_blocks;
}

/* The checksum is that of all bytes, and makes no pages, wherever the holes are. */
Test(buffer, counts_holes_as_zeros) {
  enum { BYTES = 5 * MIB + 12345 };
  static const size_t written[][2] = {
      {0, 0},         {0, 1},         {3 * MIB, 4096},     {MIB - 4096, 1},
      {BYTES - 1, 1}, {2 * MIB, MIB}, {4096, BYTES - 4096}};
  uint8_t *data, *copy = calloc(1, BYTES);
  qk_field_hash_t *hash = qk_field_hash_create();
  for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
    quark_buffer_t *buffer = make(BYTES, &data);
    memset(copy, 0, BYTES);
    memset(data + written[i][0], 0x5a, written[i][1]);
    memset(copy + written[i][0], 0x5a, written[i][1]);
    const blkcnt_t before = blocks(buffer);
    for (size_t from = 0; from < 3 * 4096; from += 4095)
      for (int by_blocks = 0; by_blocks < 2; by_blocks++)
        cr_expect_eq(quark__buffer_checksum(buffer, from, BYTES - from, by_blocks, hash),
                     sum(copy + from, BYTES - from, by_blocks), "%zu from %zu", i, from);
    cr_expect_eq(blocks(buffer), before, "pages were made");
    cr_expect(quark__buffer_has_holes(buffer, 0, BYTES));
    cr_expect_eq(quark__buffer_has_holes(buffer, 4096, BYTES - 4096), i != 6);
    quark_buffer_destroy(buffer);
  }
  qk_field_hash_destroy(hash);
  free(copy);
}
