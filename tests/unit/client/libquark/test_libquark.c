#include <criterion/criterion.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/libquark/libquark_kit.h"

enum { MIB = 1024 * 1024 };

/* ---- what goes well ---- */

Test(libquark, fields_come_back_as_they_were_sent) {
  lq_round_trip((size_t)LQ_NRHS * LQ_FIELD);
}

Test(libquark, uploads_may_come_in_odd_pieces_and_under_scarce_credit) {
  lq_fake.script.credit_chunks = 1;
  lq_round_trip(777777);
}

Test(libquark, status_tells_what_the_daemon_says) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_report_t report;
  cr_assert_eq(quark_status(conn, &report, NULL), QUARK_OK);
  cr_expect_eq(report.state, QUARK_READY);
  cr_expect_eq(report.setup.dims[3], 10);
  cr_expect_eq(report.setup.kappa, 0.125);
  cr_expect(isnan(report.setup.plaquette), "not known");
  cr_expect_eq(report.counters.converged, 17);
  cr_expect_eq(report.counters.kept, 12);
  cr_expect_eq(report.counters.kept_bytes, 1ull << 40);
  cr_expect_eq(report.counters.contracted, 5);
  const quark_mg_report_t *mg = &report.setup.mg;
  cr_expect(mg->levels == 1 && mg->rebuilt == 2 && mg->seconds == 1.5 && !mg->checkpoint_written);
  cr_expect(mg->level[0].vectors == 24 && mg->level[0].block[3] == 10);
  cr_expect(mg->level[0].galerkin == 1e-6 && isnan(mg->level[0].orthonormality));
  cr_expect_str_eq(mg->level[0].smoother, "ca-gcr");
  cr_expect_str_eq(mg->checkpoint_trouble, "the disk is full");
  cr_expect_str_eq(report.engine.memory.share[0].name, "solver");
  cr_expect(report.engine.memory.share[0].bytes == 1ull << 40 && report.engine.memory.serving == 3);
  quark_close(conn);
}

Test(libquark, a_connection_may_be_for_one_setup) {
  quark_options_t o;
  quark_params_t p;
  quark_report_t report;
  quark_error_t err;
  uint64_t request;
  quark_options_init(&o);
  o.setup = "heavy";
  quark_connection_t *conn = lq_connect(&o);
  cr_assert_eq(quark_status(conn, &report, &err), QUARK_OK);
  cr_expect_str_eq(lq_fake.last->status->setup, "heavy");
  quark_params_init(&p);
  p.nrhs = 1;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK);
  cr_expect_str_eq(lq_fake.last->submit->setup, "heavy");
  p.setup = "light";
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK);
  cr_expect_str_eq(lq_fake.last->submit->setup, "light", "what is named in the request");
  quark_close(conn);
}

Test(libquark, activity_tells_of_slots_and_users) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_report_t report;
  quark_activity_t activity;
  cr_assert_eq(quark_status(conn, &report, NULL), QUARK_OK);
  cr_assert_eq(quark_activity(conn, &report, &activity, NULL), QUARK_OK);
  cr_expect_eq(report.counters.converged, 17);
  cr_assert_eq(activity.slots, 2);
  const quark_slot_t *s = activity.slot;
  cr_expect(s[0].slot == 5 && !s[0].contraction && s[0].rhs == 3 && s[0].iterations == 12);
  cr_expect(s[0].residual == 1e-3 && s[0].tol == 1e-9 && s[0].seconds == 0.5);
  cr_expect_str_eq(s[0].job, "c0ffee/7");
  cr_expect_str_eq(s[0].user, "ann");
  cr_expect(s[1].contraction);
  cr_expect(activity.users == QUARK_USERS && activity.users_left_out == 300 - QUARK_USERS + 11);
  const quark_user_t *u = &activity.user[QUARK_USERS - 1];
  cr_expect(u->queued == 4 && u->running == 1 && u->work == 1e6 && u->memory == 1ull << 33);
  cr_expect_eq(strlen(u->name), sizeof u->name - 1, "cut");
  quark_close(conn);
}

Test(libquark, a_close_says_goodbye_unless_the_session_is_kept) {
  quark_options_t o;
  quark_options_init(&o);
  uint8_t id[QUARK_CLIENT_ID_BYTES], again[QUARK_CLIENT_ID_BYTES];
  o.keep_session = true;
  quark_connection_t *conn = lq_connect(&o);
  cr_expect_not(quark_resumed(conn));
  quark_client_id(conn, id);
  const uint64_t first = lq_submit_points(conn, 1);
  quark_close(conn);
  o.keep_session = false;
  o.client_id = id;
  conn = lq_connect(&o);
  cr_expect_eq(lq_fake.goodbyes, 0);
  cr_expect(quark_resumed(conn));
  quark_client_id(conn, again);
  cr_expect_arr_eq(id, again, sizeof id);
  cr_expect_gt(lq_submit_points(conn, 1), first, "numbers must grow over connections");
  quark_close(conn);
  conn = lq_connect(NULL); /* the daemon reads in order, so it has read the goodbye */
  cr_expect_eq(lq_fake.goodbyes, 1);
  quark_close(conn);
}

/* Told of `told` messages: so many are kept, the last iteration is that of the last message, or
 * near to it, and all are as they came. */
static void expect_history(quark_connection_t *conn, int told) {
  uint64_t iteration[QUARK_HISTORY];
  double residual[QUARK_HISTORY];
  uint32_t n = 0;
  quark_event_t event = {0};
  quark_error_t err;
  lq_fake.script.hold = told;
  const uint64_t request = lq_submit_points(conn, 2);
  while (event.request != request || event.iterations < 40 * (uint64_t)told)
    cr_assert_eq(quark_event_next(conn, 10000, &event, &err), QUARK_OK);
  cr_assert_eq(quark_history(conn, request, 0, iteration, residual, QUARK_HISTORY, &n, &err),
               QUARK_OK);
  cr_expect(n <= QUARK_HISTORY && (int)n <= told && (int)n * 2 >= (told < 256 ? 2 * told : 256));
  cr_expect_eq(iteration[n - 1], 40 * (uint64_t)told);
  for (uint32_t i = 0; i < n; i++) {
    cr_expect_eq(iteration[i] % 40, 0);
    cr_expect_float_eq(residual[i] * (double)iteration[i], 10, 1e-12);
    cr_expect(i == 0 || iteration[i] > iteration[i - 1]);
  }
  iteration[1] = 7;
  cr_assert_eq(quark_history(conn, request, 0, iteration, residual, 1, &n, &err), QUARK_OK);
  cr_expect(n > 0 && iteration[1] == 7, "no more than there is room for");
  cr_assert_eq(quark_history(conn, request, 1, NULL, NULL, 0, &n, &err), QUARK_OK);
  cr_expect_eq(n, 0, "it was not told of");
  cr_expect_eq(quark_history(conn, request, 2, NULL, NULL, 0, &n, &err), QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_history(conn, request + 1, 0, NULL, NULL, 0, &n, &err), QUARK_NOT_FOUND);
}

Test(libquark, residuals_that_were_told_are_kept_and_thinned) {
  static const int told[] = {1, 255, 256, 257, 700};
  quark_connection_t *conn = lq_connect(NULL);
  for (size_t i = 0; i < sizeof told / sizeof *told; i++) expect_history(conn, told[i]);
  quark_close(conn);
}

Test(libquark, events_tell_progress_and_each_result_once) {
  lq_fake.script.hold = 1;
  quark_connection_t *conn = lq_connect(NULL);
  quark_event_t event;
  cr_assert_eq(quark_event_next(conn, 0, &event, NULL), QUARK_OK);
  cr_expect_eq(event.kind, QUARK_EVENT_NONE);
  const uint64_t request = lq_submit_points(conn, 2);
  struct pollfd fd = {.fd = quark_fd(conn), .events = POLLIN};
  cr_assert_eq(poll(&fd, 1, 10000), 1);
  cr_assert_eq(quark_event_next(conn, 0, &event, NULL), QUARK_OK);
  cr_expect_eq(event.kind, QUARK_EVENT_PROGRESS);
  cr_expect_eq(event.request, request);
  cr_expect_eq(event.iterations, 40);
  cr_expect_eq(event.residual, 0.25);
  cr_expect_eq(event.queued, 1);
  cr_expect_eq(poll(&fd, 1, 0), 0, "nothing more to tell");
  quark_result_t result;
  cr_expect_eq(quark_wait(conn, request, 0, 0, &result, NULL), QUARK_TIMEOUT);
  cr_assert_eq(quark_cancel(conn, request, 1, NULL), QUARK_OK);
  cr_assert_eq(quark_event_next(conn, 10000, &event, NULL), QUARK_OK);
  cr_expect_eq(event.kind, QUARK_EVENT_RESULT);
  cr_expect_eq(event.result.rhs, 1);
  cr_expect_eq(event.result.status, QUARK_CANCELLED);
  cr_assert_eq(quark_cancel(conn, request, QUARK_ALL, NULL), QUARK_OK);
  cr_assert_eq(quark_event_next(conn, 10000, &event, NULL), QUARK_OK);
  cr_expect_eq(event.result.rhs, 0);
  cr_expect_eq(event.ended, 2);
  cr_assert_eq(quark_event_next(conn, 0, &event, NULL), QUARK_OK);
  cr_expect_eq(event.kind, QUARK_EVENT_NONE);
  quark_close(conn);
}

typedef struct user {
  quark_connection_t *conn;
  uint64_t request;
  uint32_t rhs;
  const uint8_t *stream;
  int good;
} user_t;

static void *use(void *arg) {
  user_t *u = arg;
  uint8_t *x = malloc(LQ_FIELD);
  quark_result_t result;
  quark_report_t report;
  for (int i = 0; i < 3; i++)
    u->good += quark_wait(u->conn, u->request, u->rhs, -1, &result, NULL) == QUARK_OK &&
               quark_download(u->conn, u->request, u->rhs, x, LQ_FIELD, NULL) == QUARK_OK &&
               memcmp(x, u->stream + (size_t)u->rhs * LQ_FIELD, LQ_FIELD) == 0 &&
               quark_status(u->conn, &report, NULL) == QUARK_OK;
  free(x);
  return NULL;
}

Test(libquark, threads_share_a_connection) {
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream();
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  pthread_t thread[LQ_NRHS];
  user_t user[LQ_NRHS];
  for (uint32_t i = 0; i < LQ_NRHS; i++) {
    user[i] = (user_t){conn, request, i, stream, 0};
    cr_assert_eq(pthread_create(&thread[i], NULL, use, &user[i]), 0);
  }
  lq_upload(conn, request, stream, MIB);
  for (int i = 0; i < LQ_NRHS; i++) {
    pthread_join(thread[i], NULL);
    cr_expect_eq(user[i].good, 3);
  }
  quark_close(conn);
  free(stream);
}

Test(libquark, acknowledged_solutions_are_gone) {
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = lq_submit_points(conn, 2);
  quark_result_t result;
  uint8_t *x = malloc(LQ_FIELD);
  cr_assert_eq(quark_wait(conn, request, 1, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_download(conn, request, 1, x, LQ_FIELD - 1, NULL), QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_ack(conn, request, 1, NULL), QUARK_OK);
  cr_expect_eq(quark_ack(conn, request, 1, NULL), QUARK_OK);
  cr_expect_eq(quark_download(conn, request, 1, x, LQ_FIELD, NULL), QUARK_NOT_FOUND);
  cr_expect_eq(quark_ack(conn, request, 2, NULL), QUARK_BAD_ARGUMENT);
  quark_close(conn);
  free(x);
}

/* ---- what the daemon refuses ---- */

Test(libquark, refusals_carry_status_and_advice) {
  quark_connection_t *conn = lq_connect(NULL);
  lq_fake.script.reject = QUARK_BUSY;
  quark_params_t p;
  quark_error_t err;
  uint64_t request;
  quark_params_init(&p);
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BUSY);
  cr_expect(err.retryable);
  cr_expect_eq(err.retry_after_ms, 123);
  cr_expect_str_eq(err.text, "as the test wants");
  lq_fake.script.reject = 0;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK);
  quark_close(conn);
}

Test(libquark, wrong_calls_are_refused_here) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_params_t p;
  quark_error_t err;
  quark_result_t result;
  uint64_t request;
  quark_params_init(&p);
  p.nrhs = 9; /* the lq_fake takes 8 */
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_TOO_LARGE);
  p.nrhs = 0;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  p.nrhs = 1;
  p.source = QUARK_POINT;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  cr_expect_eq(lq_fake.submits, 0);
  cr_expect_eq(quark_wait(conn, 99, 0, 0, &result, &err), QUARK_NOT_FOUND);
  cr_expect_eq(quark_cancel(conn, 99, QUARK_ALL, &err), QUARK_NOT_FOUND);
  request = lq_submit_points(conn, 1);
  cr_expect_eq(quark_wait(conn, request, 1, 0, &result, &err), QUARK_BAD_ARGUMENT);
  lq_fake.script.hold = 1;
  request = lq_submit(conn, 1);
  uint8_t *b = calloc(1, LQ_FIELD);
  cr_expect_eq(quark_upload(conn, request, b, LQ_FIELD - 1, &err), QUARK_OK);
  cr_expect_eq(quark_upload(conn, request, b, 2, &err), QUARK_BAD_ARGUMENT);
  free(b);
  quark_close(conn);
}

Test(libquark, a_silent_daemon_times_out) {
  lq_fake.script.mute = 1;
  quark_options_t o;
  quark_options_init(&o);
  o.timeout_ms = 100;
  quark_connection_t *conn = NULL;
  quark_error_t err;
  cr_expect_eq(quark_connect(lq_fake.endpoint, &o, &conn, &err), QUARK_TIMEOUT);
  cr_expect_null(conn);
  cr_expect(err.retryable);
  lq_fake.script.mute = 0;
  conn = lq_connect(&o);
  lq_fake.script.mute = 1;
  quark_report_t report;
  cr_expect_eq(quark_status(conn, &report, &err), QUARK_TIMEOUT);
  quark_close(conn);
}

Test(libquark, endpoints_that_are_none_are_refused) {
  quark_connection_t *conn = NULL;
  quark_error_t err;
  cr_expect_eq(quark_connect("nowhere", NULL, &conn, &err), QUARK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "nowhere"));
}
