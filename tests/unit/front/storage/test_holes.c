/* Zeros that take no memory, against bytes in an array. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/front/storage/brick.h"
#include "daemon/front/storage/holes.h"
#include "proto/frame.h"

enum { PAGE = 4096, BYTES = 96 * PAGE };

static qk_shm_space_t space;
static qk_shm_t *shm;
static qk_err_t err;
static int fd;
static uint8_t bytes[BYTES];

static void begin(void) {
  qk_shm_space_init(&space, NULL);
  cr_assert_eq(qk_shm_create_sparse(&space, BYTES, &shm, &err), QK_OK, "%s", err.text);
  fd = qk_shm_open(shm, O_RDWR);
  cr_assert(fd >= 0);
}

static void end(void) {
  close(fd);
  qk_shm_destroy(shm);
  cr_expect_eq(qk_mem_bytes(), 0);
}

TestSuite(holes, .init = begin, .fini = end);

static void put(size_t at, size_t n, uint8_t value) {
  memset(bytes + at, value, n);
  cr_assert_eq(qk_shm_write(fd, bytes + at, n, at, &err), QK_OK, "%s", err.text);
}

static bool is_same(void) {
  static uint8_t there[BYTES];
  return pread(fd, there, BYTES, 0) == BYTES && memcmp(there, bytes, BYTES) == 0;
}

static size_t pages(void) {
  struct stat st;
  cr_assert_eq(fstat(fd, &st), 0);
  return (size_t)st.st_blocks * 512 / PAGE;
}

Test(holes, data_are_found_by_pages) {
  uint64_t from, to;
  cr_expect_not(qk_holes_data(fd, 0, BYTES, &from, &to));
  put(5 * PAGE + 7, 1, 1);
  cr_expect(qk_holes_data(fd, 0, BYTES, &from, &to));
  cr_expect(from == 5 * PAGE && to == 6 * PAGE, "%lu to %lu", (unsigned long)from,
            (unsigned long)to);
  cr_expect(qk_holes_data(fd, 5 * PAGE + 9, 5 * PAGE + 11, &from, &to));
  cr_expect(from == 5 * PAGE + 9 && to == 5 * PAGE + 11);
  cr_expect_not(qk_holes_data(fd, 0, 5 * PAGE, &from, &to));
  cr_expect_not(qk_holes_data(fd, 6 * PAGE, BYTES, &from, &to));
}

Test(holes, what_cannot_be_asked_is_all_data) {
  int pipes[2];
  uint64_t from, to;
  cr_assert_eq(pipe(pipes), 0);
  cr_expect(qk_holes_data(pipes[0], 3, 9, &from, &to));
  cr_expect(from == 3 && to == 9);
  close(pipes[0]);
  close(pipes[1]);
}

/* Any ranges over any data; what was a hole takes no page by it. */
Test(holes, ranges_become_zeros_and_nothing_else) {
  srand(3);
  for (int i = 0; i < 400; i++) {
    const size_t at = (size_t)rand() % BYTES, most = BYTES - at;
    const size_t n = 1 + (size_t)rand() % (i % 3 ? most : most < 5000 ? most : 5000);
    if (i % 2) {
      put(at, n, (uint8_t)(1 + i % 255));
      continue;
    }
    qk_hole_t known = {0};
    const size_t before = pages();
    memset(bytes + at, 0, n);
    cr_assert_eq(qk_holes_clear(fd, at, n, &known, &err), QK_OK, "%s", err.text);
    cr_assert(is_same(), "step %d: %zu bytes from %zu on", i, n, at);
    cr_assert(pages() <= before);
  }
}

Test(holes, a_long_range_gives_its_pages_back) {
  qk_hole_t known = {0};
  put(0, BYTES, 9);
  cr_expect_eq(pages(), BYTES / PAGE);
  memset(bytes + 100, 0, BYTES - 200);
  cr_expect_eq(qk_holes_clear(fd, 100, BYTES - 200, &known, &err), QK_OK);
  cr_expect(is_same());
  cr_expect_eq(pages(), 2);
}

Test(holes, filling_makes_the_pages) {
  put(10, 20, 7);
  memset(bytes, 0, BYTES);
  cr_expect_eq(qk_holes_fill(fd, 0, BYTES, &err), QK_OK);
  cr_expect(is_same());
  cr_expect_eq(pages(), BYTES / PAGE);
}

/* Rows of a part between rows of another: none of them is touched. */
Test(holes, parts_are_cleared_row_by_row) {
  const uint32_t dims[4] = {4, 4, 4, 16}, grid[4] = {2, 1, 2, 1};
  const uint64_t site = BYTES / (4 * 4 * 4 * 16);
  for (uint32_t part = 0; part < 4; part++)
    for (int dense = 0; dense < 2; dense++) {
      qk_brick_t b;
      qk_brick_make(dims, grid, part, site, 1, &b);
      put(0, BYTES, 3);
      for (uint64_t k = 0, at; k < b.bytes; k++)
        if (k >= 1000) {
          qk_brick_find(&b, k, &at);
          bytes[at] = 0;
        }
      cr_assert_eq(qk_brick_zero(&b, fd, b.bytes - 1000, 1000, dense, &err), QK_OK);
      cr_expect(is_same(), "part %u", part);
    }
}

static void expect_slab(uint32_t vectors, uint32_t slices, uint32_t first, uint32_t count) {
  uint32_t f, n;
  qk_holes_slab(shm, vectors, slices, &f, &n);
  cr_expect(f == first && n == count, "%u vectors, %u slices: %u from %u on, not %u from %u on",
            vectors, slices, n, f, count, first);
}

Test(holes, the_slab_is_the_least_that_has_all_data) {
  expect_slab(1, 32, 0, 0);
  for (uint32_t first = 0; first < 32; first++)
    for (uint32_t last = first; last < 32; last += 5) {
      put(first * 3 * PAGE + 3 * PAGE - 1, 1, 1);
      put(last * 3 * PAGE, 1, 1);
      expect_slab(1, 32, first, last - first + 1);
      cr_assert(ftruncate(fd, 0) == 0 && ftruncate(fd, BYTES) == 0);
    }
}

Test(holes, the_slab_of_two_vectors_has_that_of_both) {
  put(5 * PAGE, 1, 1); /* slice 5 of 48 of the first, of 16 it is the first */
  expect_slab(2, 48, 5, 1);
  put(57 * PAGE, 1, 1); /* slice 9 of the second */
  expect_slab(2, 48, 5, 5);
  expect_slab(2, 16, 1, 3);
  put(48 * PAGE, 1, 1);
  put(95 * PAGE, 1, 1);
  expect_slab(2, 48, 0, 48);
}

Test(holes, the_slab_of_one_that_has_gone_is_all) {
  qk_shm_t gone = *shm;
  memcpy(gone.name, "/none", 6);
  uint32_t first, count;
  qk_holes_slab(&gone, 1, 32, &first, &count);
  cr_expect(first == 0 && count == 32);
}

Test(holes, checksums_are_those_of_the_bytes) {
  const struct {
    size_t at, n;
  } data[] = {{0, 0}, {70000, 5}, {0, 9}, {BYTES - 1, 1}, {1, BYTES - 2}};
  for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
    uint64_t plain, blocks;
    put(data[i].at, data[i].n, (uint8_t)(i + 1));
    cr_assert_eq(qk_holes_checksum(fd, BYTES, false, &plain, &err), QK_OK);
    cr_assert_eq(qk_holes_checksum(fd, BYTES, true, &blocks, &err), QK_OK);
    cr_expect_eq(plain, qk_checksum(bytes, BYTES));
    cr_expect_eq(qk_field_check(bytes, BYTES, blocks), QK_OK);
    cr_expect_eq(qk_holes_check(shm, plain, &err), QK_OK);
    cr_expect_eq(qk_holes_check(shm, blocks, &err), QK_OK);
    cr_expect_eq(qk_holes_check(shm, plain + 1, &err), QK_BAD_CHECKSUM);
    err = (qk_err_t){0};
  }
}
