/* Fields on their way between clients and shared memory. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/front/storage/transfer.h"

enum { FIELD = 100000, MANY = 16 };

static qk_shm_space_t space;
static uint8_t field[FIELD];

static void begin(void) {
  qk_shm_space_init(&space, NULL);
  for (int i = 0; i < FIELD; i++) field[i] = (uint8_t)(i * 2654435761u >> 13);
}

TestSuite(transfer, .init = begin);

static qk_transfer_t *transfer_of(qk_shm_t **shm) {
  qk_err_t err = {0};
  cr_assert_eq(qk_shm_create(&space, FIELD, shm, &err), QK_OK, "%s", err.text);
  qk_transfer_t *t = qk_transfer_create(*shm, false);
  cr_assert(t);
  qk_transfer_start(t, *shm);
  return t;
}

static void drop(qk_transfer_t *t, qk_shm_t *shm) {
  cr_assert(qk_transfer_finish(t));
  qk_transfer_leave(t);
  qk_shm_destroy(shm);
}

static int descriptors(void) {
  int n = 0;
  DIR *dir = opendir("/proc/self/fd");
  while (readdir(dir)) n++;
  closedir(dir);
  return n;
}

/* What waits for a thread, or for its client, keeps no descriptor from connections. */
Test(transfer, holds_no_descriptor) {
  qk_shm_t *shm[MANY];
  qk_transfer_t *t[MANY];
  qk_err_t err = {0};
  const int before = descriptors();
  for (int i = 0; i < MANY; i++) t[i] = transfer_of(&shm[i]);
  cr_expect_eq(descriptors(), before);
  for (int i = 0; i < MANY; i++)
    cr_assert_eq(qk_transfer_write(t[i], field, 1000, 0, NULL, &err), QK_OK, "%s", err.text);
  cr_expect_eq(descriptors(), before);
  for (int i = 0; i < MANY; i++) drop(t[i], shm[i]);
  cr_expect_eq(qk_mem_bytes(), 0);
}

/* No thread is held up by a large field. */
Test(transfer, reads_back_in_pieces) {
  const uint64_t begins = 50000, piece = 20000;
  qk_shm_t *shm;
  qk_transfer_t *t = transfer_of(&shm);
  qk_err_t err = {0};
  bool more = true;
  memcpy(qk_shm_data(shm, NULL), field, FIELD);
  for (uint64_t at = 0; at < begins; at += piece) {
    cr_assert(more);
    cr_assert_eq(qk_transfer_catch_up(t, begins, piece, &more, &err), QK_OK);
    cr_assert_eq(t->hashed, at + piece < begins ? at + piece : begins);
  }
  cr_assert_not(more);
  cr_assert_eq(qk_transfer_write(t, field + begins, FIELD - begins, begins, NULL, &err), QK_OK);
  cr_assert(qk_transfer_has_checksum(t, qk_checksum(field, FIELD)));
  drop(t, shm);
  cr_expect_eq(qk_mem_bytes(), 0);
}

Test(transfer, says_whether_a_failure_lasts) {
  qk_shm_t *shm;
  qk_transfer_t *t = transfer_of(&shm);
  qk_err_t err = {0};
  uint8_t out[10];
  uint64_t sum;
  char segment[QK_SHM_NAME_MAX];
  memcpy(segment, t->segment, sizeof segment);
  strcpy(t->segment, "/quarkd-none");
  cr_expect_eq(qk_transfer_read(t, out, sizeof out, 0, false, &sum, &err), QK_IO_ERROR);
  cr_expect(strstr(err.text, "/dev/shm/quarkd-none"), "%s", err.text);
  memcpy(t->segment, segment, sizeof segment);
  err = (qk_err_t){0};
  cr_expect_eq(qk_transfer_read(t, out, sizeof out, FIELD - 5, false, &sum, &err), QK_IO_ERROR,
               "its end");
  drop(t, shm);
}

/* Blocks that are known by their checksums, a part that was skipped, and what is read back. */
Test(transfer, adds_up_blocks) {
  enum { BLOCKS = 3 * QK_CHUNK_MAX + 1000 };
  uint8_t *data = calloc(1, BLOCKS);
  for (size_t i = 0; i < BLOCKS; i++) data[i] = (uint8_t)(i * 2654435761u >> 15);
  for (size_t known = 0; known < BLOCKS; known += 700000) { /* bytes that are here already */
    qk_shm_t *shm;
    qk_err_t err = {0};
    cr_assert_eq(qk_shm_create(&space, BLOCKS, &shm, &err), QK_OK, "%s", err.text);
    memcpy(qk_shm_data(shm, NULL), data, known);
    qk_transfer_t *t = qk_transfer_create(shm, true);
    qk_transfer_start(t, shm);
    for (size_t at = known, n; at < BLOCKS; at += n) {
      n = QK_CHUNK_MAX - at % QK_CHUNK_MAX;
      if (n > BLOCKS - at) n = BLOCKS - at;
      const uint64_t sum = qk_checksum(data + at, n);
      const bool block = at % QK_CHUNK_MAX == 0;
      cr_assert_eq(qk_transfer_write(t, data + at, n, at, block ? &sum : NULL, &err), QK_OK);
    }
    cr_expect_eq(qk_field_check(data, BLOCKS, qk_transfer_checksum(t)), QK_OK, "%zu", known);
    cr_expect_neq(qk_transfer_checksum(t), qk_checksum(data, BLOCKS));
    cr_expect_arr_eq(qk_shm_data(shm, NULL), data, BLOCKS);
    drop(t, shm);
  }
  free(data);
}

/* The same out of memory, in order and again from the middle. */
Test(transfer, tells_the_checksum_of_each_piece) {
  enum { BLOCKS = 2 * QK_CHUNK_MAX + 1000 };
  static uint8_t data[BLOCKS], out[QK_CHUNK_MAX];
  const size_t begins[] = {0, QK_CHUNK_MAX, 777777};
  qk_shm_t *shm;
  qk_err_t err = {0};
  for (size_t i = 0; i < BLOCKS; i++) data[i] = (uint8_t)(i * 2654435761u >> 15);
  cr_assert_eq(qk_shm_create(&space, BLOCKS, &shm, &err), QK_OK, "%s", err.text);
  memcpy(qk_shm_data(shm, NULL), data, BLOCKS);
  for (size_t i = 0; i < 2 * sizeof begins / sizeof *begins; i++) {
    qk_transfer_t *t = qk_transfer_create(shm, i % 2);
    qk_transfer_start(t, shm);
    for (int again = 0; again < 2; again++)
      for (size_t at = begins[i / 2], n; at < BLOCKS; at += n) {
        uint64_t sum;
        n = QK_CHUNK_MAX - at % QK_CHUNK_MAX;
        if (n > BLOCKS - at) n = BLOCKS - at;
        const bool block = at % QK_CHUNK_MAX == 0;
        cr_assert_eq(qk_transfer_read(t, out, n, at, block, &sum, &err), QK_OK);
        cr_expect_eq(sum, qk_checksum(data + at, n));
        cr_expect_arr_eq(out, data + at, n);
      }
    cr_expect_eq(qk_field_check(data, BLOCKS, qk_transfer_checksum(t)), QK_OK);
    cr_expect_eq(qk_transfer_checksum(t) == qk_checksum(data, BLOCKS), i % 2 == 0);
    cr_assert(qk_transfer_finish(t));
    qk_transfer_leave(t);
  }
  qk_shm_destroy(shm);
}
