#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/limits.h"
#include "tests/unit/client/libquark/libquark_kit.h"

enum { MIB = 1024 * 1024 };

/* ---- what breaks ---- */

Test(libquark, an_upload_survives_a_broken_connection) {
  lq_fake.script.drop_upload = 12;
  lq_round_trip((size_t)LQ_NRHS * LQ_FIELD);
  cr_expect_geq(lq_fake.hellos, 2);
  cr_expect_geq(lq_fake.submits, 2);
}

/* Before the first window of the second field is half used up, and after it. */
Test(libquark, a_download_survives_a_broken_connection) {
  lq_fake.script.drop_download = 12;
  lq_round_trip((size_t)LQ_NRHS * LQ_FIELD);
  cr_expect_geq(lq_fake.hellos, 2);
}

Test(libquark, a_download_survives_a_connection_broken_later) {
  lq_fake.script.drop_download = 16;
  lq_round_trip((size_t)LQ_NRHS * LQ_FIELD);
  cr_expect_geq(lq_fake.hellos, 2);
}

/* Each block counts once for the checksum of its field, however often it is sent. */
Test(libquark, fields_with_checksums_of_blocks_survive_broken_connections) {
  lq_fake.script.feature = lq_fake.script.later_feature = QK_FEATURE_BLOCK_SUMS;
  lq_fake.script.drop_upload = 15;
  lq_fake.script.drop_download = 15;
  lq_round_trip(777777);
  cr_expect_geq(lq_fake.hellos, 3);
}

/* It goes on with checksums of whole fields, also of the one of which the first part is here. */
Test(libquark, a_download_goes_on_with_an_older_daemon) {
  lq_fake.script.feature = QK_FEATURE_BLOCK_SUMS;
  lq_fake.script.drop_download = 15;
  lq_round_trip((size_t)LQ_NRHS * LQ_FIELD);
  cr_expect_geq(lq_fake.hellos, 2);
}

/* A request that is not solved, and ends when its upload breaks. */
static void lose_upload(quark_connection_t *conn, const uint8_t *stream, int chunks,
                        const char *why) {
  lq_fake.script.hold = 1;
  lq_fake.script.drop_upload = chunks;
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  lq_upload(conn, request, stream, MIB);
  for (uint32_t i = 0; i < LQ_NRHS; i++) {
    quark_result_t result;
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, NULL), QUARK_OK);
    cr_expect_eq(result.status, QUARK_ENGINE_LOST);
    cr_expect(quark_code_retryable(result.status));
    cr_expect(strstr(result.text, why), "%s", result.text);
  }
}

Test(libquark, an_upload_does_not_go_on_with_an_older_daemon) {
  lq_fake.script.feature = QK_FEATURE_BLOCK_SUMS;
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream();
  lose_upload(conn, stream, 15, "older");
  quark_close(conn);
  free(stream);
}

/* What came of the old one is not mixed with the new one. */
/* ---- the local socket ---- */

Test(libquark, fields_go_by_descriptor_where_the_daemon_is_here) {
  lq_fake.script.local = 1;
  lq_round_trip((size_t)LQ_NRHS * LQ_FIELD);
  cr_expect_eq(lq_fake.binds, 1);
  cr_expect_eq(lq_fake.puts, LQ_NRHS);
  cr_expect_eq(lq_fake.fetches, LQ_NRHS);
}

Test(libquark, odd_pieces_make_whole_fields) {
  lq_fake.script.local = 1;
  lq_round_trip(777777);
  cr_expect_eq(lq_fake.puts, LQ_NRHS);
}

Test(libquark, who_wants_no_shared_memory_gets_none) {
  lq_fake.script.local = 1;
  quark_options_t o;
  quark_options_init(&o);
  o.local = false;
  quark_connection_t *conn = lq_connect(&o);
  cr_expect_not(quark_local(conn));
  quark_close(conn);
  cr_expect_eq(lq_fake.binds, 0);
}

/* More fields than the ring has room for. */
static void long_trip(void) {
  enum { N = 8 };
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect(quark_local(conn));
  uint8_t *stream = lq_stream(), *x = malloc(LQ_FIELD);
  quark_error_t err = {0};
  quark_result_t result;
  const uint64_t request = lq_submit(conn, N);
  for (size_t i = 0; i < N; i++)
    cr_assert_eq(quark_upload(conn, request, stream + i * MIB, LQ_FIELD, &err), QUARK_OK, "%s",
                 err.text);
  for (uint32_t i = 0; i < N; i++) {
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK, "%s", err.text);
    cr_assert_eq(quark_download(conn, request, i, x, LQ_FIELD, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(memcmp(x, stream + (size_t)i * MIB, LQ_FIELD), 0, "right-hand side %u", i);
  }
  quark_close(conn);
  free(stream);
  free(x);
}

Test(libquark, a_local_connection_that_breaks_in_an_upload_is_done_without) {
  static const int puts[] = {1, 2, 8};
  for (int i = 0; i < 3; i++) {
    lq_fake.script.local = 1;
    lq_fake.script.drop_put = puts[i];
    long_trip();
    cr_expect_eq(lq_fake.puts, puts[i], "the rest goes by chunks");
    lq_teardown();
    lq_setup();
  }
}

Test(libquark, a_local_connection_that_breaks_in_a_download_is_done_without) {
  lq_fake.script.local = 1;
  lq_fake.script.drop_fetch = 2;
  lq_round_trip(MIB);
  cr_expect_eq(lq_fake.fetches, 2);
}

Test(libquark, what_cannot_be_had_by_descriptor_comes_by_chunks) {
  lq_fake.script.local = lq_fake.script.empty_fetch = 1;
  lq_round_trip(MIB);
  cr_expect_eq(lq_fake.fetches, LQ_NRHS);
}

Test(libquark, after_a_broken_connection_fields_go_by_descriptor_again) {
  lq_fake.script.local = 1;
  lq_fake.script.drop_fetch = 1;
  lq_fake.script.drop_download = 3;
  lq_round_trip((size_t)LQ_NRHS * LQ_FIELD);
  cr_expect_eq(lq_fake.binds, 2);
  cr_expect_geq(lq_fake.fetches, LQ_NRHS);
}

/* Connects as often as there is room at the local socket. */
static int fill_local(int *fd, int most) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, lq_fake.local_path, sizeof address.sun_path);
  for (int n = 0; n < most; n++) {
    fd[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    if (connect(fd[n], (struct sockaddr *)&address, sizeof address) == 0) continue;
    cr_assert_eq(errno, EAGAIN);
    close(fd[n]);
    return n;
  }
  cr_assert_fail("more than %d connections wait", most);
  return most;
}

Test(libquark, a_local_socket_that_has_no_room_is_tried_again) {
  int fd[64];
  quark_report_t report;
  lq_fake.script.local = lq_fake.script.local_waits = 1;
  const int n = fill_local(fd, 64);
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect_not(quark_local(conn));
  for (int i = 0; i < n; i++) close(fd[i]);
  lq_fake.script.local_waits = 0;
  while (!quark_local(conn)) cr_assert_eq(quark_status(conn, &report, NULL), QUARK_OK);
  uint8_t *stream = lq_stream();
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  lq_upload(conn, request, stream, MIB);
  lq_expect_solutions(conn, request, stream);
  cr_expect_eq(lq_fake.fetches, LQ_NRHS);
  quark_close(conn);
  free(stream);
}

/* The first solution, all connections break at its third chunk. */
static quark_code_t broken_download(quark_connection_t *conn, uint8_t *stream, uint8_t *x,
                                    quark_error_t *err) {
  lq_fake.script.drop_download = 3;
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  quark_result_t result;
  lq_upload(conn, request, stream, LQ_FIELD);
  for (uint32_t i = 0; i < LQ_NRHS; i++)
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, err), QUARK_OK, "%s", err->text);
  const quark_code_t code = quark_download(conn, request, 0, x, LQ_FIELD, err);
  if (code != QUARK_OK)
    cr_expect_eq(quark_download(conn, request, 0, x, LQ_FIELD, NULL), QUARK_NOT_FOUND);
  return code;
}

static void remade_download(void) {
  lq_fake.script.remake = 1;
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream(), *x = malloc(LQ_FIELD);
  quark_error_t err = {0};
  cr_assert_eq(broken_download(conn, stream, x, &err), QUARK_OK, "%s", err.text);
  for (size_t i = 0; i < LQ_FIELD; i++) x[i] ^= 0xff;
  cr_expect_eq(memcmp(x, stream, LQ_FIELD), 0);
  quark_close(conn);
  free(x);
  free(stream);
}

Test(libquark, a_solution_that_is_made_again_is_downloaded_from_its_beginning) {
  remade_download();
}

Test(libquark, a_download_goes_on_when_it_is_known_of_which_solution) {
  lq_fake.script.late_results = 300;
  remade_download();
}

Test(libquark, the_download_of_a_solution_that_was_lost_ends_with_the_reason) {
  lq_fake.script.lose = 1;
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream(), *x = malloc(LQ_FIELD);
  quark_error_t err = {0};
  cr_expect_eq(broken_download(conn, stream, x, &err), QUARK_EXPIRED, "%s", err.text);
  quark_close(conn);
  free(x);
  free(stream);
}

Test(libquark, a_session_that_is_lost_ends_its_requests_as_retryable) {
  lq_fake.script.forget = 1;
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream();
  lose_upload(conn, stream, 5, "submit again");
  lq_fake.script.hold = 0;
  const uint64_t second = lq_submit(conn, LQ_NRHS);
  lq_upload(conn, second, stream, MIB);
  lq_expect_solutions(conn, second, stream);
  quark_close(conn);
  free(stream);
}

static quark_code_t download_one(quark_connection_t *conn, quark_error_t *err) {
  const uint64_t request = lq_submit_points(conn, 1);
  quark_result_t result;
  uint8_t *x = malloc(LQ_FIELD);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  const quark_code_t code = quark_download(conn, request, 0, x, LQ_FIELD, err);
  free(x);
  return code;
}

Test(libquark, a_field_with_a_wrong_checksum_is_refused) {
  lq_fake.script.corrupt_field = 1;
  quark_connection_t *conn = lq_connect(NULL);
  quark_error_t err;
  cr_expect_eq(download_one(conn, &err), QUARK_BAD_CHECKSUM);
  lq_fake.script.corrupt_field = 0;
  cr_expect_eq(download_one(conn, &err), QUARK_OK);
  quark_close(conn);
}

Test(libquark, a_corrupt_message_ends_the_connection) {
  lq_fake.script.corrupt_chunk = 1;
  quark_connection_t *conn = lq_connect(NULL);
  quark_error_t err;
  quark_event_t event = {.kind = QUARK_EVENT_NONE};
  cr_expect_eq(download_one(conn, &err), QUARK_BAD_CHECKSUM);
  while (event.kind != QUARK_EVENT_DEAD)
    cr_assert_eq(quark_event_next(conn, 10000, &event, &err), QUARK_OK);
  cr_expect_eq(event.code, QUARK_BAD_CHECKSUM);
  cr_expect_eq(quark_event_next(conn, -1, &event, &err), QUARK_BAD_CHECKSUM,
               "told once, then an error");
  quark_report_t report;
  cr_expect_eq(quark_status(conn, &report, &err), QUARK_BAD_CHECKSUM);
  quark_close(conn);
}

Test(libquark, a_session_that_was_taken_over_is_taken_back) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_report_t report;
  quark_error_t err = {0};
  lq_fake.script.fatal = QUARK_NOT_FOUND;
  cr_expect_eq(quark_status(conn, &report, &err), QUARK_OK, "%s", err.text);
  cr_expect_eq(lq_fake.hellos, 2);
  quark_close(conn);
}

Test(libquark, a_fatal_error_ends_everything_with_its_status) {
  lq_fake.script.hold = 1;
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = lq_submit_points(conn, 1);
  lq_fake.script.fatal = QUARK_BAD_PROTOCOL;
  quark_report_t report;
  quark_error_t err;
  quark_result_t result;
  cr_expect_eq(quark_status(conn, &report, &err), QUARK_BAD_PROTOCOL);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.status, QUARK_BAD_PROTOCOL);
  quark_close(conn);
}

Test(libquark, what_has_ended_does_not_begin_again) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_report_t report;
  quark_error_t err;
  lq_fake.script.fatal = QUARK_BAD_PROTOCOL;
  lq_fake.script.late_welcome = 1;
  for (int i = 0; i < 100; i++) { /* in which WELCOME comes */
    cr_assert_eq(quark_status(conn, &report, &err), QUARK_BAD_PROTOCOL, "%s", err.text);
    usleep(2000);
  }
  quark_close(conn);
}

Test(libquark, shutdown_is_answered_before_the_end) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_event_t event;
  cr_expect_eq(quark_shutdown(conn, false, NULL), QUARK_OK);
  cr_assert_eq(quark_event_next(conn, 10000, &event, NULL), QUARK_OK);
  cr_expect_eq(event.kind, QUARK_EVENT_DEAD);
  cr_expect_eq(event.code, QUARK_SHUTTING_DOWN);
  quark_close(conn);
}

Test(libquark, the_lease_is_kept_while_the_user_does_nothing) {
  lq_fake.script.lease_ms = 30;
  quark_connection_t *conn = lq_connect(NULL);
  quark_event_t event;
  cr_assert_eq(quark_event_next(conn, 1000, &event, NULL), QUARK_OK);
  cr_expect_geq(lq_fake.pings, 2);
  quark_close(conn);
}

Test(libquark, a_daemon_that_stays_away_ends_the_connection) {
  lq_fake.script.hold = 1;
  quark_options_t o;
  quark_options_init(&o);
  o.reconnect_ms = 300;
  quark_connection_t *conn = lq_connect(&o);
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  lq_fake.script.mute = 1;
  lq_fake.script.drop_upload = 1;
  uint8_t *b = calloc(1, LQ_FIELD);
  quark_result_t result;
  cr_expect_eq(quark_upload(conn, request, b, LQ_FIELD, NULL), QUARK_OK);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.status, QUARK_TIMEOUT);
  cr_expect_eq(quark_upload(conn, request, b, LQ_FIELD, NULL), QUARK_TIMEOUT);
  quark_close(conn);
  free(b);
}

/* What an upload ends with that is under way when the daemon goes for good. */
static void expect_end_of_upload(bool journal, const char *beginning) {
  quark_options_t o;
  quark_options_init(&o);
  o.timeout_ms = 2000;
  o.reconnect_ms = 6000;
  lq_fake.script.journal = journal;
  lq_fake.script.hold = 1;
  quark_connection_t *conn = lq_connect(&o);
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  uint8_t *stream = lq_stream();
  quark_error_t err = {0};
  lq_fake.script.mute = 1;
  lq_fake.script.drop_upload = 1;
  cr_expect_eq(quark_upload(conn, request, stream, (size_t)LQ_NRHS * LQ_FIELD, &err),
               QUARK_TIMEOUT);
  cr_expect_eq(strncmp(err.text, beginning, strlen(beginning)), 0, "%s", err.text);
  quark_close(conn);
  free(stream);
}

Test(libquark, an_upload_does_not_wait_for_a_daemon_that_forgets) {
  expect_end_of_upload(false, "the daemon has taken nothing of request");
}

Test(libquark, time_limits_rest_while_a_daemon_with_a_journal_is_sought) {
  expect_end_of_upload(true, "no answer from");
}
