/*
 * Headers and tables of files of eigenvectors: as they come, and with the checksum mended so that
 * the rest is reached. What is accepted must describe a file of its size, and be the same when
 * encoded again.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/engine/checkpoint/eigen_header.h"

static void try_table(const qk_eigen_header_t *h, const uint8_t *data, size_t size) {
  const int64_t bytes = qk_eigen_table_bytes(h);
  const size_t sums = (size_t)(h->numbers + h->nblock) * 8;
  uint8_t *table = calloc((size_t)bytes, 1), *again = calloc((size_t)bytes, 1);
  double *number = calloc((size_t)h->numbers + 1, sizeof *number);
  uint64_t *sum = calloc((size_t)h->nblock, sizeof *sum);
  qk_err_t err = {0};
  memcpy(table, data, size < (size_t)bytes ? size : (size_t)bytes);
  memset(table + sums, 0, (size_t)bytes - sums);
  const uint64_t made = XXH3_64bits(table, sums);
  for (int i = 0; i < 8; i++) table[sums + (size_t)i] = (uint8_t)(made >> (8 * i));
  if (qk_eigen_table_decode(h, table, number, sum, &err) == QK_OK) {
    qk_eigen_table_encode(h, number, sum, again);
    if (memcmp(table, again, (size_t)bytes) != 0) abort();
  } else if (err.text[0] == '\0') {
    abort();
  }
  free(sum);
  free(number);
  free(again);
  free(table);
}

static void try(const uint8_t *bytes, const uint8_t *rest, size_t size) {
  qk_eigen_header_t h, twice;
  qk_err_t err = {0};
  uint8_t again[QK_EIGEN_HEADER_BYTES];
  const qk_status_t status = qk_eigen_header_decode(bytes, &h, &err);
  if (status != QK_OK) {
    if (err.text[0] == '\0' || err.code != status) abort();
    return;
  }
  if (h.nblock < 1 || h.file_bytes != qk_eigen_block_at(&h, h.nblock)) abort();
  qk_eigen_header_encode(&h, again);
  if (memcmp(again, bytes, sizeof again) != 0) abort();
  if (qk_eigen_header_decode(again, &twice, NULL) != QK_OK) abort();
  if (qk_eigen_header_match(&h, &twice, NULL) != QK_OK) abort();
  try_table(&h, rest, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t bytes[QK_EIGEN_HEADER_BYTES] = {0};
  const size_t last = QK_EIGEN_HEADER_BYTES - 8, used = size < sizeof bytes ? size : sizeof bytes;
  memcpy(bytes, data, used);
  try(bytes, data + used, size - used);
  const uint64_t sum = XXH3_64bits(bytes, last);
  for (int i = 0; i < 8; i++) bytes[last + (size_t)i] = (uint8_t)(sum >> (8 * i));
  try(bytes, data + used, size - used);
  return 0;
}
