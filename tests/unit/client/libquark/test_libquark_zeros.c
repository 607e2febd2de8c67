/* Runs of zeros in uploads: what goes, and that it is the same bytes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/unit/client/libquark/libquark_kit.h"

enum { RUN = 64 * 1024, MIB = 1 << 20, STREAM = LQ_NRHS * LQ_FIELD };

/* Zero but for some bytes: at both ends and the middle of one field, at one place of another. */
static const size_t PLACES[] = {0, LQ_FIELD / 2, LQ_FIELD - 1, LQ_FIELD + 5 * MIB + 77};

static uint8_t *points(void) {
  uint8_t *stream = calloc(STREAM, 1);
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) stream[PLACES[i]] = (uint8_t)(i + 1);
  return stream;
}

/* Bytes with runs of all lengths, aligned and not; the last field without any. */
static uint8_t *mixed(void) {
  uint8_t *stream = lq_stream();
  size_t at = 1000;
  for (size_t n = 1000; at + n < 2 * (size_t)LQ_FIELD; n += n / 3) {
    memset(stream + at, 0, n);
    at += n + n / 2 + 77;
  }
  return stream;
}

/* A daemon that has no request yet, with that feature. */
static void new_daemon(int feature) {
  lq_teardown();
  lq_setup();
  lq_fake.script.feature = lq_fake.script.later_feature = feature;
}

static void send_all(uint8_t *stream, size_t piece) {
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  lq_upload(conn, request, stream, piece);
  lq_expect_solutions(conn, request, stream);
  quark_close(conn);
}

Test(libquark, runs_of_zeros_are_not_sent) {
  const size_t pieces[] = {STREAM, 777777, LQ_FIELD};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    uint8_t *stream = points();
    new_daemon(QK_FEATURE_ZEROS);
    send_all(stream, pieces[i]);
    /* what is no whole run, at ends of pieces, goes as it is */
    const size_t ends = STREAM / pieces[i] + 1;
    cr_expect_geq(lq_fake.runs, 3);
    cr_expect_lt(lq_fake.moved, (4 + 2 * ends) * RUN, "%llu bytes",
                 (unsigned long long)lq_fake.moved);
    free(stream);
  }
}

Test(libquark, points_cost_no_more_than_their_bytes) {
  uint8_t *stream = points();
  new_daemon(QK_FEATURE_ZEROS);
  send_all(stream, STREAM);
  cr_expect_eq(lq_fake.moved, 4);
  cr_expect_eq(lq_fake.runs, 5);
  free(stream);
}

Test(libquark, bytes_between_runs_are_kept) {
  uint8_t *stream = mixed();
  new_daemon(QK_FEATURE_ZEROS);
  send_all(stream, STREAM);
  cr_expect(lq_fake.runs > 5 && lq_fake.moved > LQ_FIELD);
  new_daemon(QK_FEATURE_ZEROS);
  send_all(stream, 1234567);
  free(stream);
}

/* Short ones, and negative zeros, are bytes. */
Test(libquark, what_is_no_run_is_sent) {
  uint8_t *stream = lq_stream();
  double *numbers = (double *)(void *)stream;
  new_daemon(QK_FEATURE_ZEROS);
  for (size_t i = 0; i < LQ_FIELD / sizeof *numbers; i++) numbers[i] = -0.0;
  memset(stream + LQ_FIELD + 3, 0, RUN - 1);
  send_all(stream, STREAM);
  cr_expect_eq(lq_fake.runs, 0);
  cr_expect_eq(lq_fake.moved, STREAM);
  free(stream);
}

Test(libquark, an_older_daemon_gets_all_zeros) {
  uint8_t *stream = points();
  for (int blocks = 0; blocks < 2; blocks++) {
    new_daemon(blocks ? QK_FEATURE_BLOCK_SUMS : 0);
    send_all(stream, STREAM);
    cr_expect_eq(lq_fake.runs, 0);
    cr_expect_eq(lq_fake.moved, STREAM);
  }
  free(stream);
}

Test(libquark, zeros_that_are_nowhere_are_sent_as_runs) {
  for (int feature = 0; feature < 2; feature++) {
    uint8_t *stream = points();
    quark_error_t err = {0};
    new_daemon(feature ? QK_FEATURE_ZEROS : 0);
    quark_connection_t *conn = lq_connect(NULL);
    const uint64_t request = lq_submit(conn, LQ_NRHS);
    size_t at = 0;
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; at = PLACES[i++] + 1) {
      const size_t n = PLACES[i] - at;
      cr_assert_eq(quark_upload_zeros(conn, request, n, &err), QUARK_OK, "%s", err.text);
      cr_assert_eq(quark_upload(conn, request, stream + PLACES[i], 1, &err), QUARK_OK);
    }
    cr_assert_eq(quark_upload_zeros(conn, request, STREAM - at + 1, &err), QUARK_BAD_ARGUMENT);
    cr_assert_eq(quark_upload_zeros(conn, request, STREAM - at, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(quark_upload_zeros(conn, request + 1, 1, &err), QUARK_NOT_FOUND);
    lq_expect_solutions(conn, request, stream);
    cr_expect_eq(lq_fake.moved, feature ? 4 : STREAM);
    quark_close(conn);
    free(stream);
  }
}

/* After any number of chunks and runs; each byte counts once for the checksums. */
Test(libquark, runs_survive_broken_connections) {
  uint8_t *all[] = {points(), mixed()};
  for (int i = 0; i < 2; i++)
    for (int n = 1; n < 9; n++) { /* of nine that there are at least */
      new_daemon(QK_FEATURE_ZEROS);
      lq_fake.script.drop_upload = n;
      send_all(all[i], n % 3 ? STREAM : 1234567);
      cr_expect_geq(lq_fake.hellos, 2);
    }
  for (int i = 0; i < 2; i++) free(all[i]);
}

/* Bytes behind the ring's end, with runs before and among them, and little credit. */
Test(libquark, runs_take_no_room_in_the_ring) {
  uint8_t *stream = mixed();
  new_daemon(QK_FEATURE_ZEROS);
  lq_fake.script.credit_chunks = 2;
  lq_fake.script.drop_upload = 20;
  send_all(stream, STREAM);
  cr_expect_geq(lq_fake.hellos, 2);
  free(stream);
}

Test(libquark, runs_do_not_go_on_with_an_older_daemon) {
  uint8_t *stream = points();
  quark_result_t result;
  new_daemon(QK_FEATURE_ZEROS);
  lq_fake.script.later_feature = QK_FEATURE_BLOCK_SUMS;
  lq_fake.script.hold = 1;
  lq_fake.script.drop_upload = 3;
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  lq_upload(conn, request, stream, STREAM);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.status, QUARK_ENGINE_LOST);
  cr_expect(strstr(result.text, "older"), "%s", result.text);
  quark_close(conn);
  free(stream);
}

/* ---- the local socket ---- */

Test(libquark, zeros_are_holes_in_shared_memory) {
  uint8_t *stream = points();
  new_daemon(QK_FEATURE_ZEROS);
  lq_fake.script.local = 1;
  send_all(stream, STREAM);
  cr_expect_eq(lq_fake.puts, LQ_NRHS);
  cr_expect_eq(lq_fake.moved, 4 * 4096);
  free(stream);
}

/* Also where another field was before: in a ring that has come round. */
Test(libquark, other_bytes_give_way_to_zeros) {
  enum { N = 8 }; /* more than the ring has room for */
  uint8_t *dense = lq_stream(), *sparse = points(), *both = mixed();
  const uint8_t *field[N] = {dense,  dense + LQ_FIELD, dense,  both,
                             sparse, both + LQ_FIELD,  sparse, dense};
  uint8_t *x = malloc(LQ_FIELD);
  new_daemon(QK_FEATURE_ZEROS);
  lq_fake.script.local = 1;
  quark_connection_t *conn = lq_connect(NULL);
  quark_error_t err = {0};
  const uint64_t request = lq_submit(conn, N);
  for (int i = 0; i < N; i++)
    cr_assert_eq(quark_upload(conn, request, field[i], LQ_FIELD, &err), QUARK_OK, "%s", err.text);
  for (uint32_t i = 0; i < N; i++) {
    quark_result_t result;
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK);
    cr_assert_eq(quark_download(conn, request, i, x, LQ_FIELD, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(memcmp(x, field[i], LQ_FIELD), 0, "right-hand side %u", i);
  }
  cr_expect_eq(lq_fake.puts, N);
  cr_expect_lt(lq_fake.moved, 6 * LQ_FIELD);
  quark_close(conn);
  free(x);
  free(dense);
  free(sparse);
  free(both);
}

/* What was under way goes on in chunks and runs, with the same checksums. */
Test(libquark, runs_go_on_where_the_local_socket_breaks) {
  uint8_t *all[] = {points(), mixed()};
  for (int i = 0; i < 2; i++)
    for (int n = 1; n <= LQ_NRHS; n++) {
      new_daemon(QK_FEATURE_ZEROS);
      lq_fake.script.local = 1;
      lq_fake.script.drop_put = n;
      send_all(all[i], 1234567);
      cr_expect_eq(lq_fake.puts, n);
      if (i == 0) cr_expect_gt(lq_fake.runs, 0, "zeros are in each field of it");
    }
  for (int i = 0; i < 2; i++) free(all[i]);
}
