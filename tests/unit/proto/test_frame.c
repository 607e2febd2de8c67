/* Data frames: what is encoded decodes to itself, and nothing that was changed on the way
 * does. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "proto/frame.h"

static uint8_t payload[1000];

static void fill_payload(void) {
  for (size_t i = 0; i < sizeof payload; i++) payload[i] = (uint8_t)(i * 7 + i / 256);
}

/* header and payload of a frame in one buffer */
static uint8_t *encoded(qk_frame_t *frame, const void *data) {
  qk_frame_fault_t fault;
  uint8_t *message = malloc(QK_FRAME_HEADER + frame->chunk_bytes);
  cr_assert_eq(qk_frame_encode(frame, data, message, &fault), QK_OK);
  memcpy(message + QK_FRAME_HEADER, data, frame->chunk_bytes);
  return message;
}

static qk_frame_t middle(void) {
  return (qk_frame_t){.kind = QK_FRAME_UPLOAD,
                      .request = 0x1122334455667788,
                      .rhs = 1023,
                      .chunk_bytes = sizeof payload,
                      .field_bytes = 1ull << 40,
                      .offset = 0x0123456789};
}

/* Writes a field of the header and makes the header's checksum right again. */
static void patch(uint8_t *header, int offset, int bytes, uint64_t value) {
  for (int i = 0; i < bytes; i++) header[offset + i] = (uint8_t)(value >> (8 * i));
  uint64_t sum = XXH3_64bits(header, 56);
  for (int i = 0; i < 8; i++) header[56 + i] = (uint8_t)(sum >> (8 * i));
}

static qk_status_t decode(const uint8_t *message, size_t bytes, const char **field) {
  qk_frame_t frame;
  const uint8_t *data;
  qk_frame_fault_t fault = {"", 0, 0};
  qk_status_t s = qk_frame_decode(message, bytes, &frame, &data, &fault);
  *field = fault.field;
  return s;
}

TestSuite(frame, .init = fill_payload);

Test(frame, decodes_to_what_was_encoded) {
  qk_frame_t in = middle(), out;
  const uint8_t *data;
  qk_frame_fault_t fault;
  uint8_t *message = encoded(&in, payload);
  cr_assert_eq(qk_frame_decode(message, QK_FRAME_HEADER + sizeof payload, &out, &data, &fault),
               QK_OK);
  cr_assert_eq(out.kind, in.kind);
  cr_assert_eq(out.request, in.request);
  cr_assert_eq(out.rhs, in.rhs);
  cr_assert_eq(out.chunk_bytes, in.chunk_bytes);
  cr_assert_eq(out.field_bytes, in.field_bytes);
  cr_assert_eq(out.offset, in.offset);
  cr_assert_eq(out.chunk_checksum, XXH3_64bits(payload, sizeof payload));
  cr_assert_eq(out.field_checksum, 0);
  cr_assert_eq(data, message + QK_FRAME_HEADER);
  cr_assert_not(qk_frame_is_last(&out));
  free(message);
}

Test(frame, has_the_bytes_of_the_protocol_page) {
  qk_frame_t f = {.kind = QK_FRAME_DOWNLOAD,
                  .request = 5,
                  .rhs = 2,
                  .chunk_bytes = 3,
                  .field_bytes = 3,
                  .field_checksum = 0x0807060504030201};
  uint8_t *m = encoded(&f, "abc");
  static const uint8_t begin[40] = {'Q', 'K', 'D', 'F', 1, 0, 4, 0, 5, 0, 0, 0, 0, 0,
                                    0,   0,   2,   0,   0, 0, 3, 0, 0, 0, 3, 0, 0, 0,
                                    0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0};
  cr_assert_arr_eq(m, begin, sizeof begin);
  for (int i = 0; i < 8; i++) {
    cr_assert_eq(m[40 + i], (uint8_t)(XXH3_64bits("abc", 3) >> (8 * i)));
    cr_assert_eq(m[48 + i], i + 1);
    cr_assert_eq(m[56 + i], (uint8_t)(XXH3_64bits(m, 56) >> (8 * i)));
  }
  cr_assert(qk_frame_is_last(&f));
  free(m);
}

Test(frame, refuses_every_changed_byte) {
  qk_frame_t f = middle();
  const char *field;
  uint8_t *m = encoded(&f, payload);
  size_t bytes = QK_FRAME_HEADER + sizeof payload;
  for (size_t i = 0; i < bytes; i++) {
    m[i] ^= 0x40;
    cr_assert_neq(decode(m, bytes, &field), QK_OK, "byte %zu", i);
    m[i] ^= 0x40;
  }
  cr_assert_eq(decode(m, bytes, &field), QK_OK);
  free(m);
}

Test(frame, refuses_every_other_length) {
  qk_frame_t f = middle();
  const char *field;
  uint8_t *m = encoded(&f, payload);
  m = realloc(m, QK_FRAME_HEADER + sizeof payload + 1);
  for (size_t bytes = 0; bytes < QK_FRAME_HEADER + sizeof payload; bytes++)
    cr_assert_eq(decode(m, bytes, &field), QK_TRUNCATED, "%zu bytes", bytes);
  cr_assert_eq(decode(m, QK_FRAME_HEADER + sizeof payload + 1, &field), QK_BAD_PROTOCOL);
  cr_assert_str_eq(field, "payload bytes");
  free(m);
}

Test(frame, names_the_field_that_is_wrong) {
  static const struct {
    int offset, bytes;
    uint64_t value;
    qk_status_t status;
    const char *field;
  } cases[] = {
      {0, 4, 0x41414141, QK_BAD_PROTOCOL, "magic"},
      {4, 2, 3, QK_UNSUPPORTED, "version"},
      {6, 2, 0, QK_BAD_PROTOCOL, "kind"},
      {6, 2, 6, QK_BAD_PROTOCOL, "kind"},
      {6, 2, 5, QK_BAD_PROTOCOL, "payload bytes"}, /* UPLOAD_ZERO with a payload */
      {6, 2, 1, QK_BAD_PROTOCOL, "request"},       /* BIND with a request */
      {8, 8, 0, QK_BAD_PROTOCOL, "request"},
      {16, 4, 1024, QK_TOO_LARGE, "rhs"},
      {20, 4, 0, QK_BAD_PROTOCOL, "chunk_bytes"},
      {20, 4, QK_CHUNK_MAX + 1, QK_TOO_LARGE, "chunk_bytes"},
      {20, 4, 999, QK_BAD_PROTOCOL, "payload bytes"},
      {20, 4, 1001, QK_TRUNCATED, "payload bytes"},
      {24, 8, 999, QK_BAD_PROTOCOL, "chunk_bytes"},
      {24, 8, 0x0123456789 + 999, QK_BAD_PROTOCOL, "offset"},
      {32, 8, (1ull << 40) - 999, QK_BAD_PROTOCOL, "offset"},
      {32, 8, UINT64_MAX, QK_BAD_PROTOCOL, "offset"},
      {32, 8, UINT64_MAX - 999, QK_BAD_PROTOCOL, "offset"},
      {40, 8, 1, QK_BAD_CHECKSUM, "chunk_checksum"},
      {48, 8, 1, QK_BAD_PROTOCOL, "field_checksum"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    qk_frame_t f = middle();
    const char *field;
    uint8_t *m = encoded(&f, payload);
    patch(m, cases[i].offset, cases[i].bytes, cases[i].value);
    cr_expect_eq(decode(m, QK_FRAME_HEADER + sizeof payload, &field), cases[i].status, "case %zu",
                 i);
    cr_expect_str_eq(field, cases[i].field, "case %zu: %s", i, field);
    free(m);
  }
}

Test(frame, refuses_to_encode_what_it_would_not_decode) {
  uint8_t header[QK_FRAME_HEADER];
  qk_frame_fault_t fault;
  qk_frame_t f = middle();
  f.offset = f.field_bytes;
  cr_assert_eq(qk_frame_encode(&f, payload, header, &fault), QK_BAD_PROTOCOL);
  f = middle();
  f.chunk_bytes = 0;
  cr_assert_eq(qk_frame_encode(&f, payload, header, &fault), QK_BAD_PROTOCOL);
}

Test(frame, bind_and_bound_have_fixed_sizes) {
  const char *field;
  qk_frame_t bind = {.kind = QK_FRAME_BIND, .chunk_bytes = 32, .field_bytes = 32};
  qk_frame_t bound = {.kind = QK_FRAME_BOUND};
  uint8_t *m = encoded(&bind, payload);
  cr_assert_eq(decode(m, QK_FRAME_HEADER + 32, &field), QK_OK);
  patch(m, 20, 4, 31);
  cr_assert_eq(decode(m, QK_FRAME_HEADER + 31, &field), QK_BAD_PROTOCOL);
  free(m);
  m = encoded(&bound, payload);
  cr_assert_eq(decode(m, QK_FRAME_HEADER, &field), QK_OK);
  free(m);
}

Test(frame, field_hash_does_not_depend_on_the_chunks) {
  qk_field_hash_t *hash = qk_field_hash_create();
  for (size_t step = 1; step < sizeof payload; step = 2 * step + 1) {
    qk_field_hash_init(hash, false);
    for (size_t i = 0; i < sizeof payload; i += step)
      qk_field_hash_update(hash, payload + i,
                           step < sizeof payload - i ? step : sizeof payload - i);
    cr_assert_eq(qk_field_hash_digest(hash), qk_checksum(payload, sizeof payload));
  }
  qk_field_hash_destroy(hash);
}

/* The chunks of a field of n bytes, as blocks where they are some. */
static uint64_t sum_in_steps(const uint8_t *data, size_t n, size_t step, int *blocks) {
  qk_field_hash_t *hash = qk_field_hash_create();
  qk_field_hash_init(hash, true);
  for (size_t at = 0, bytes; at < n; at += bytes) {
    bytes = step < n - at ? step : n - at;
    const qk_frame_t f = {.chunk_bytes = (uint32_t)bytes, .field_bytes = n, .offset = at};
    *blocks += qk_frame_is_block(&f);
    if (qk_frame_is_block(&f))
      qk_field_hash_add_block(hash, qk_checksum(data + at, bytes));
    else
      qk_field_hash_update(hash, data + at, bytes);
  }
  const uint64_t sum = qk_field_hash_digest(hash);
  cr_assert_eq(qk_field_hash_digest(hash), sum);
  qk_field_hash_destroy(hash);
  return sum;
}

Test(frame, checksum_of_blocks_does_not_depend_on_the_chunks) {
  const size_t sizes[] = {1, QK_CHUNK_MAX - 1, QK_CHUNK_MAX, QK_CHUNK_MAX + 1,
                          3 * QK_CHUNK_MAX + 7};
  uint8_t *data = malloc(4 * QK_CHUNK_MAX);
  for (size_t i = 0; i < 4 * QK_CHUNK_MAX; i++) data[i] = (uint8_t)(i * 2654435761u >> 15);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const size_t n = sizes[s], count = (n + QK_CHUNK_MAX - 1) / QK_CHUNK_MAX;
    uint8_t sums[4 * 8];
    for (size_t b = 0; b < count; b++) {
      const size_t at = b * QK_CHUNK_MAX, bytes = n - at < QK_CHUNK_MAX ? n - at : QK_CHUNK_MAX;
      const uint64_t sum = XXH3_64bits(data + at, bytes);
      for (int i = 0; i < 8; i++) sums[8 * b + (size_t)i] = (uint8_t)(sum >> (8 * i));
    }
    const uint64_t expected = XXH3_64bits(sums, 8 * count);
    int blocks = 0;
    cr_expect_eq(sum_in_steps(data, n, QK_CHUNK_MAX, &blocks), expected);
    cr_expect_eq(blocks, (int)count, "each is one");
    cr_expect_eq(sum_in_steps(data, n, QK_CHUNK_MAX / 2, &blocks), expected);
    cr_expect_eq(sum_in_steps(data, n, 4099, &blocks), expected);
    cr_expect_eq(qk_field_check(data, n, expected), QK_OK);
    cr_expect_eq(qk_field_check(data, n, qk_checksum(data, n)), QK_OK);
    cr_expect_eq(qk_field_check(data, n, expected + 1), QK_BAD_CHECKSUM);
  }
  free(data);
}

Test(frame, version_2_says_what_the_checksum_is_of) {
  qk_frame_t in = middle(), out;
  const uint8_t *data;
  const char *field;
  qk_frame_fault_t fault;
  uint8_t header[QK_FRAME_HEADER];
  in.by_blocks = true;
  uint8_t *m = encoded(&in, payload);
  cr_assert_eq(m[4], 2);
  cr_assert_eq(qk_frame_decode(m, QK_FRAME_HEADER + sizeof payload, &out, &data, &fault), QK_OK);
  cr_assert(out.by_blocks);
  cr_assert_eq(qk_frame_encode_summed(&out, header, &fault), QK_OK);
  cr_assert_arr_eq(header, m, sizeof header);
  patch(m, 4, 2, 3);
  cr_assert_eq(decode(m, QK_FRAME_HEADER + sizeof payload, &field), QK_UNSUPPORTED);
  free(m);
  qk_frame_t bind = {.kind = QK_FRAME_BIND, .chunk_bytes = 32, .field_bytes = 32};
  m = encoded(&bind, payload);
  patch(m, 4, 2, 2);
  cr_assert_eq(decode(m, QK_FRAME_HEADER + 32, &field), QK_UNSUPPORTED);
  cr_assert_str_eq(field, "version");
  free(m);
}

/* ---- runs of zeros --------------------------------------------------------------------------- */

static qk_frame_t run_of_zeros(void) {
  return (qk_frame_t){.kind = QK_FRAME_UPLOAD_ZERO,
                      .request = 7,
                      .rhs = 1,
                      .chunk_bytes = QK_ZEROS_MAX,
                      .field_bytes = 1ull << 40,
                      .offset = 3};
}

Test(frame, a_run_of_zeros_is_a_header) {
  qk_frame_t in = run_of_zeros(), out;
  uint8_t m[QK_FRAME_HEADER + 1];
  const uint8_t *data;
  const char *field;
  qk_frame_fault_t fault;
  in.chunk_checksum = 5;
  cr_assert_eq(qk_frame_encode(&in, NULL, m, &fault), QK_OK);
  cr_assert_eq(qk_frame_decode(m, QK_FRAME_HEADER, &out, &data, &fault), QK_OK);
  cr_assert_eq(out.kind, QK_FRAME_UPLOAD_ZERO);
  cr_assert_eq(out.chunk_bytes, QK_ZEROS_MAX);
  cr_assert_eq(out.chunk_checksum, 0);
  cr_assert_eq(qk_frame_payload(&out), 0);
  cr_assert_eq(decode(m, QK_FRAME_HEADER + 1, &field), QK_BAD_PROTOCOL);
  cr_assert_str_eq(field, "payload bytes");
}

Test(frame, names_what_is_wrong_with_a_run_of_zeros) {
  static const struct {
    int offset, bytes;
    uint64_t value;
    qk_status_t status;
    const char *field;
  } cases[] = {
      {8, 8, 0, QK_BAD_PROTOCOL, "request"},
      {16, 4, 1024, QK_TOO_LARGE, "rhs"},
      {20, 4, 0, QK_BAD_PROTOCOL, "chunk_bytes"},
      {20, 4, QK_ZEROS_MAX + 1ull, QK_TOO_LARGE, "chunk_bytes"},
      {20, 4, UINT32_MAX, QK_TOO_LARGE, "chunk_bytes"},
      {24, 8, QK_ZEROS_MAX - 1ull, QK_BAD_PROTOCOL, "chunk_bytes"},
      {32, 8, (1ull << 40) - QK_ZEROS_MAX + 1, QK_BAD_PROTOCOL, "offset"},
      {40, 8, 1, QK_BAD_CHECKSUM, "chunk_checksum"},
      {48, 8, 1, QK_BAD_PROTOCOL, "field_checksum"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    qk_frame_t f = run_of_zeros();
    uint8_t m[QK_FRAME_HEADER];
    const char *field;
    qk_frame_fault_t fault;
    cr_assert_eq(qk_frame_encode(&f, NULL, m, &fault), QK_OK);
    patch(m, cases[i].offset, cases[i].bytes, cases[i].value);
    cr_expect_eq(decode(m, QK_FRAME_HEADER, &field), cases[i].status, "case %zu", i);
    cr_expect_str_eq(field, cases[i].field, "case %zu: %s", i, field);
  }
}

/* The checksum of a field that is zero but for some bytes, zeros as runs. */
static uint64_t sum_with_runs(const uint8_t *data, size_t n, size_t first, size_t count,
                              bool by_blocks) {
  qk_field_hash_t *hash = qk_field_hash_create();
  qk_field_hash_init(hash, by_blocks);
  qk_field_hash_zeros(hash, first);
  qk_field_hash_update(hash, data + first, count);
  qk_field_hash_zeros(hash, n - first - count);
  const uint64_t sum = qk_field_hash_digest(hash);
  qk_field_hash_destroy(hash);
  return sum;
}

Test(frame, checksum_of_zeros_is_that_of_their_bytes) {
  const size_t n = 3 * QK_CHUNK_MAX + 7;
  const size_t begin[] = {0, 1, 65536, QK_CHUNK_MAX - 1, QK_CHUNK_MAX, 2 * QK_CHUNK_MAX + 5, n - 9};
  uint8_t *data = malloc(n);
  for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
    for (size_t count = 0; count <= 9; count += 9) {
      memset(data, 0, n);
      memset(data + begin[i], 0x5a, count);
      cr_expect_eq(sum_with_runs(data, n, begin[i], count, false), qk_checksum(data, n));
      cr_expect_eq(qk_field_check(data, n, sum_with_runs(data, n, begin[i], count, true)), QK_OK);
    }
  free(data);
}
