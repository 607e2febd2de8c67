#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/unit/client/libquark/libquark_kit.h"

static quark_buffer_t *make(size_t bytes, uint8_t **data) {
  quark_buffer_t *buffer = NULL;
  quark_error_t err = {0};
  cr_assert_eq(quark_buffer_create(bytes, &buffer, (void **)data, &err), QUARK_OK, "%s", err.text);
  return buffer;
}

static void put_all(quark_connection_t *conn, uint64_t request, quark_buffer_t *buffer) {
  quark_error_t err = {0};
  for (uint32_t i = 0; i < LQ_NRHS; i++)
    cr_assert_eq(quark_put(conn, request, i, buffer, (size_t)i * LQ_FIELD, &err), QUARK_OK, "%s",
                 err.text);
}

/* All right-hand sides from one buffer, which is written anew once it is free. */
static void round_trip(void) {
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream(), *data;
  quark_buffer_t *buffer = make((size_t)LQ_NRHS * LQ_FIELD, &data);
  quark_error_t err = {0};
  memcpy(data, stream, (size_t)LQ_NRHS * LQ_FIELD);
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  put_all(conn, request, buffer);
  cr_assert_eq(quark_buffer_wait(buffer, -1, &err), QUARK_OK, "%s", err.text);
  memset(data, 1, (size_t)LQ_NRHS * LQ_FIELD); /* the daemon has all */
  lq_expect_solutions(conn, request, stream);
  cr_expect_eq(quark_flush(conn, request, NULL), QUARK_OK);
  quark_close(conn);
  quark_buffer_destroy(buffer);
  free(stream);
}

Test(libquark, buffers_go_by_descriptor_where_the_daemon_is_here) {
  lq_fake.script.local = 1;
  round_trip();
  cr_expect_eq(lq_fake.puts, LQ_NRHS);
}

Test(libquark, buffers_go_by_chunks_to_a_daemon_elsewhere) {
  round_trip();
  cr_expect_eq(lq_fake.puts, 0);
}

Test(libquark, buffers_have_checksums_of_blocks_where_the_daemon_knows_them) {
  lq_fake.script.feature = lq_fake.script.later_feature = QK_FEATURE_BLOCK_SUMS;
  round_trip();
}

Test(libquark, buffers_survive_broken_connections) {
  static const int features[] = {QK_FEATURE_ACTIONS, QK_FEATURE_BLOCK_SUMS};
  for (int i = 0; i < 2; i++) {
    lq_fake.script.feature = lq_fake.script.later_feature = features[i];
    lq_fake.script.drop_upload = 12;
    round_trip();
    cr_expect_geq(lq_fake.hellos, 2);
    lq_teardown();
    lq_setup();
  }
}

Test(libquark, buffers_go_on_by_chunks_without_the_local_socket) {
  for (int put = 1; put <= LQ_NRHS; put++) {
    lq_fake.script.local = 1;
    lq_fake.script.drop_put = put;
    round_trip();
    cr_expect_eq(lq_fake.puts, put);
    lq_teardown();
    lq_setup();
  }
}

/* Pages that were never written: the daemon, which is told, need not read them. */
Test(libquark, buffers_with_holes_say_so_to_a_daemon_that_knows) {
  static const int features[] = {QK_FEATURE_ZEROS, QK_FEATURE_ACTIONS};
  static const size_t at[LQ_NRHS] = {0, LQ_FIELD + LQ_FIELD / 2, 3 * (size_t)LQ_FIELD - 1};
  for (int k = 0; k < 2; k++) {
    lq_fake.script.local = 1;
    lq_fake.script.feature = lq_fake.script.later_feature = features[k];
    quark_connection_t *conn = lq_connect(NULL);
    uint8_t *stream = calloc(LQ_NRHS, LQ_FIELD), *data;
    quark_buffer_t *buffer = make((size_t)LQ_NRHS * LQ_FIELD, &data);
    for (int i = 0; i < LQ_NRHS; i++) stream[at[i]] = data[at[i]] = (uint8_t)(i + 1);
    const uint64_t request = lq_submit(conn, LQ_NRHS);
    put_all(conn, request, buffer);
    lq_expect_solutions(conn, request, stream);
    cr_expect_eq(lq_fake.puts, LQ_NRHS);
    quark_close(conn);
    quark_buffer_destroy(buffer);
    free(stream);
    lq_teardown();
    lq_setup();
  }
}

/* Its descriptor lives as long as a daemon may need it. */
Test(libquark, a_buffer_that_is_destroyed_goes_its_way_all_the_same) {
  for (int local = 0; local < 2; local++) {
    lq_fake.script.local = local;
    quark_connection_t *conn = lq_connect(NULL);
    uint8_t *stream = lq_stream(), *data;
    const uint64_t request = lq_submit(conn, LQ_NRHS);
    for (uint32_t i = 0; i < LQ_NRHS; i++) {
      quark_buffer_t *buffer = make(LQ_FIELD + 7, &data);
      memcpy(data + 7, stream + (size_t)i * LQ_FIELD, LQ_FIELD);
      cr_assert_eq(quark_put(conn, request, i, buffer, 7, NULL), QUARK_OK);
      quark_buffer_destroy(buffer);
    }
    lq_expect_solutions(conn, request, stream);
    quark_close(conn);
    free(stream);
    lq_teardown();
    lq_setup();
  }
  quark_buffer_destroy(NULL);
}

static void expect_refusal(quark_code_t code, const quark_error_t *err, const char *word) {
  cr_expect_eq(code, QUARK_BAD_ARGUMENT);
  cr_expect(strstr(err->text, word), "%s", err->text);
}

Test(libquark, what_cannot_be_put_is_refused) {
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream(), *data = NULL;
  quark_buffer_t *buffer = NULL;
  quark_error_t err;
  expect_refusal(quark_buffer_create(0, &buffer, (void **)&data, &err), &err, "bytes = 0");
  expect_refusal(quark_buffer_create(SIZE_MAX, &buffer, (void **)&data, &err), &err, "bytes = ");
  cr_expect_eq(quark_buffer_create((size_t)INT64_MAX, &buffer, (void **)&data, &err),
               QUARK_NO_MEMORY);
  cr_expect(!buffer && !data, "outputs are set on success only");
  buffer = make(LQ_FIELD, &data);
  lq_fake.script.hold = 1;
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  cr_expect_eq(quark_put(conn, request + 1, 0, buffer, 0, &err), QUARK_NOT_FOUND);
  expect_refusal(quark_put(conn, request, 1, buffer, 0, &err), &err, "rhs = 1");
  expect_refusal(quark_put(conn, request, 0, buffer, 1, &err), &err, "offset = 1");
  expect_refusal(quark_put(conn, request, 0, buffer, SIZE_MAX, &err), &err, "offset = ");
  for (uint32_t i = 0; i < LQ_NRHS; i++)
    cr_expect_eq(quark_put(conn, request, i, buffer, 0, &err), QUARK_OK, "%s", err.text);
  expect_refusal(quark_put(conn, request, LQ_NRHS, buffer, 0, &err), &err, "rhs = 3");
  expect_refusal(quark_upload(conn, request, stream, 1, &err), &err, "quark_put");
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
  cr_expect_eq(quark_buffer_wait(buffer, -1, &err), QUARK_OK);
  quark_close(conn);
  quark_buffer_destroy(buffer);
  free(stream);
}

Test(libquark, an_upload_goes_one_way_alone) {
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream(), *data;
  quark_buffer_t *buffer = make(LQ_FIELD, &data);
  quark_error_t err;
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  cr_assert_eq(quark_upload(conn, request, stream, LQ_FIELD, &err), QUARK_OK);
  expect_refusal(quark_put(conn, request, 1, buffer, 0, &err), &err, "quark_upload");
  cr_expect_eq(quark_buffer_wait(buffer, 0, &err), QUARK_OK, "nothing holds it");
  cr_assert_eq(quark_upload(conn, request, stream + LQ_FIELD, 2 * (size_t)LQ_FIELD, &err),
               QUARK_OK);
  lq_expect_solutions(conn, request, stream);
  quark_close(conn);
  quark_buffer_destroy(buffer);
  free(stream);
}

/* The daemon takes one chunk, and gives no credit for more. */
Test(libquark, a_buffer_is_free_when_its_request_has_ended) {
  for (int end = 0; end < 3; end++) {
    quark_connection_t *conn = lq_connect(NULL);
    uint8_t *data;
    quark_buffer_t *buffer = make(LQ_FIELD, &data);
    quark_error_t err;
    lq_fake.script.hold = lq_fake.script.credit_chunks = 1;
    const uint64_t request = lq_submit(conn, LQ_NRHS);
    lq_fake.script.credit_chunks = 0;
    cr_assert_eq(quark_put(conn, request, 0, buffer, 0, &err), QUARK_OK);
    cr_expect_eq(quark_buffer_wait(buffer, 0, &err), QUARK_TIMEOUT);
    cr_expect(strstr(err.text, "1 of its fields"), "%s", err.text);
    cr_expect_eq(quark_buffer_wait(buffer, 10, &err), QUARK_TIMEOUT);
    if (end == 0) cr_expect_eq(quark_cancel(conn, request, QUARK_ALL, &err), QUARK_OK);
    if (end == 1) cr_expect_eq(quark_release(conn, request, &err), QUARK_OK);
    if (end == 2) quark_close(conn);
    cr_expect_eq(quark_buffer_wait(buffer, 20000, &err), QUARK_OK, "%s", err.text);
    if (end != 2) quark_close(conn);
    quark_buffer_destroy(buffer);
    lq_teardown();
    lq_setup();
  }
}
