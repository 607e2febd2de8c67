#include <criterion/criterion.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/quark.h"
#include "tests/support/fake_daemon.h"

enum { FIELD = 9 * 1024 * 1024 + 4096, NRHS = 3, MIB = 1024 * 1024 };

static fake_daemon_t fake;

static void setup(void) {
  fake_daemon_start(&fake, FIELD);
}

static void teardown(void) {
  cr_expect_eq(fake.violations, 0, "the client broke the protocol %d times", fake.violations);
  fake_daemon_stop(&fake);
}

TestSuite(libquark, .init = setup, .fini = teardown, .timeout = 60);

static quark_connection_t *connect_to(const quark_options_t *options) {
  quark_connection_t *conn = NULL;
  quark_error_t err = {0};
  cr_assert_eq(quark_connect(fake.endpoint, options, &conn, &err), QUARK_OK, "%s", err.text);
  return conn;
}

static uint64_t submit(quark_connection_t *conn, uint32_t nrhs) {
  quark_params_t p;
  quark_error_t err = {0};
  uint64_t request = 0, bytes = 0;
  quark_params_init(&p);
  p.nrhs = nrhs;
  cr_assert_eq(quark_submit(conn, &p, &request, &bytes, &err), QUARK_OK, "%s", err.text);
  cr_assert_eq(bytes, (uint64_t)FIELD);
  return request;
}

static uint64_t submit_points(quark_connection_t *conn, uint32_t nrhs) {
  const quark_column_t column[8] = {{0}};
  quark_params_t p;
  quark_error_t err = {0};
  uint64_t request = 0;
  quark_params_init(&p);
  p.nrhs = nrhs;
  p.source = QUARK_POINT;
  p.column = column;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK, "%s", err.text);
  return request;
}

/* All right-hand sides: no two of their chunks are equal. */
static uint8_t *make_stream(void) {
  uint8_t *stream = malloc((size_t)NRHS * FIELD);
  uint32_t x = 12345;
  for (size_t i = 0; i < (size_t)NRHS * FIELD; i++)
    stream[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
  return stream;
}

static void upload(quark_connection_t *conn, uint64_t request, const uint8_t *stream,
                   size_t piece) {
  quark_error_t err = {0};
  for (size_t at = 0; at < (size_t)NRHS * FIELD; at += piece) {
    const size_t left = (size_t)NRHS * FIELD - at;
    cr_assert_eq(quark_upload(conn, request, stream + at, left < piece ? left : piece, &err),
                 QUARK_OK, "%s", err.text);
  }
}

static void expect_solutions(quark_connection_t *conn, uint64_t request, const uint8_t *stream) {
  uint8_t *x = malloc(FIELD);
  for (uint32_t i = 0; i < NRHS; i++) {
    quark_result_t result;
    quark_error_t err = {0};
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK, "%s", err.text);
    cr_assert_eq(result.status, QUARK_OK, "%s", result.text);
    cr_expect_eq(result.iterations, 7u + i);
    cr_assert_eq(quark_download(conn, request, i, x, FIELD, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(memcmp(x, stream + (size_t)i * FIELD, FIELD), 0, "right-hand side %u", i);
  }
  free(x);
}

static void round_trip(size_t piece) {
  quark_connection_t *conn = connect_to(NULL);
  uint8_t *stream = make_stream();
  const uint64_t request = submit(conn, NRHS);
  upload(conn, request, stream, piece);
  expect_solutions(conn, request, stream);
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_NOT_FOUND);
  quark_close(conn);
  free(stream);
}

/* ---- what goes well ---- */

Test(libquark, fields_come_back_as_they_were_sent) {
  round_trip((size_t)NRHS * FIELD);
}

Test(libquark, uploads_may_come_in_odd_pieces_and_under_scarce_credit) {
  fake.script.credit_chunks = 1;
  round_trip(777777);
}

Test(libquark, status_tells_what_the_daemon_says) {
  quark_connection_t *conn = connect_to(NULL);
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

Test(libquark, setups_are_listed_loaded_and_dropped) {
  quark_connection_t *conn = connect_to(NULL);
  quark_setup_t setup[QUARK_SETUPS];
  quark_error_t err;
  quark_load_t load;
  uint32_t n = 0;
  cr_assert_eq(quark_setups(conn, setup, &n, &err), QUARK_OK);
  cr_assert_eq(n, 2);
  cr_expect(setup[0].is_default && setup[0].state == QUARK_LOADING && setup[0].dims[3] == 10);
  cr_expect(setup[0].phase_done == 1 && setup[0].phase_total == 2 && setup[0].queued == 3);
  cr_expect(isnan(setup[0].plaquette), "not known");
  cr_expect_str_eq(setup[1].name, "second");
  cr_expect_str_eq(quark_state_name(setup[1].state), "failed");
  cr_expect_eq(setup[1].code, QUARK_BAD_CHECKSUM);
  cr_expect_str_eq(setup[1].text, "the wrong sum");

  quark_load_init(&load);
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_BAD_ARGUMENT, "it has no name");
  load.name = "third";
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  const Quark__Load *said = fake.last->load;
  cr_expect(!said->gauge && said->n_dims == 0 && !said->has_kappa && !said->has_mass &&
            !said->has_csw && !said->boundary && !said->solver && !said->has_slots);
  load = (quark_load_t){.name = "third",
                        .gauge = "cfg",
                        .dims = {4, 4, 4, 8},
                        .kappa = NAN,
                        .mass = -0.5,
                        .csw = 1.5,
                        .boundary = "periodic",
                        .solver = "cg",
                        .precision = "half",
                        .make_default = true};
  cr_assert_eq(quark_load(conn, &load, &err), QUARK_OK);
  said = fake.last->load;
  cr_expect_str_eq(said->gauge, "cfg");
  cr_expect(said->n_dims == 4 && said->dims[3] == 8 && !said->has_kappa && said->mass == -0.5);
  cr_expect(said->csw == 1.5 && said->has_slots && said->slots == 0 && said->make_default);
  cr_expect_str_eq(said->boundary, "periodic");
  cr_expect_str_eq(said->precision, "half");
  cr_assert_eq(quark_make_default(conn, "third", &err), QUARK_OK);
  cr_assert_eq(quark_drop(conn, "third", true, &err), QUARK_OK);
  cr_assert_eq(quark_drop(conn, "third", false, &err), QUARK_OK);
  cr_expect(fake.loads == 2 && fake.defaults == 1 && fake.drops == 101);
  fake.script.reject = QUARK_DENIED;
  cr_expect_eq(quark_load(conn, &load, &err), QUARK_DENIED);
  cr_expect_str_eq(err.text, "as the test wants");
  cr_expect_eq(quark_drop(conn, "third", false, &err), QUARK_DENIED);
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
  quark_connection_t *conn = connect_to(&o);
  cr_assert_eq(quark_status(conn, &report, &err), QUARK_OK);
  cr_expect_str_eq(fake.last->status->setup, "heavy");
  quark_params_init(&p);
  p.nrhs = 1;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK);
  cr_expect_str_eq(fake.last->submit->setup, "heavy");
  p.setup = "light";
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK);
  cr_expect_str_eq(fake.last->submit->setup, "light", "what is named in the request");
  quark_close(conn);
}

Test(libquark, activity_tells_of_slots_and_users) {
  quark_connection_t *conn = connect_to(NULL);
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
  quark_connection_t *conn = connect_to(&o);
  cr_expect_not(quark_resumed(conn));
  quark_client_id(conn, id);
  const uint64_t first = submit_points(conn, 1);
  quark_close(conn);
  o.keep_session = false;
  o.client_id = id;
  conn = connect_to(&o);
  cr_expect_eq(fake.goodbyes, 0);
  cr_expect(quark_resumed(conn));
  quark_client_id(conn, again);
  cr_expect_arr_eq(id, again, sizeof id);
  cr_expect_gt(submit_points(conn, 1), first, "numbers must grow over connections");
  quark_close(conn);
  conn = connect_to(NULL); /* the daemon reads in order, so it has read the goodbye */
  cr_expect_eq(fake.goodbyes, 1);
  quark_close(conn);
}

Test(libquark, events_tell_progress_and_each_result_once) {
  fake.script.hold = 1;
  quark_connection_t *conn = connect_to(NULL);
  quark_event_t event;
  cr_assert_eq(quark_event_next(conn, 0, &event, NULL), QUARK_OK);
  cr_expect_eq(event.kind, QUARK_EVENT_NONE);
  const uint64_t request = submit_points(conn, 2);
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
  uint8_t *x = malloc(FIELD);
  quark_result_t result;
  quark_report_t report;
  for (int i = 0; i < 3; i++)
    u->good += quark_wait(u->conn, u->request, u->rhs, -1, &result, NULL) == QUARK_OK &&
               quark_download(u->conn, u->request, u->rhs, x, FIELD, NULL) == QUARK_OK &&
               memcmp(x, u->stream + (size_t)u->rhs * FIELD, FIELD) == 0 &&
               quark_status(u->conn, &report, NULL) == QUARK_OK;
  free(x);
  return NULL;
}

Test(libquark, threads_share_a_connection) {
  quark_connection_t *conn = connect_to(NULL);
  uint8_t *stream = make_stream();
  const uint64_t request = submit(conn, NRHS);
  pthread_t thread[NRHS];
  user_t user[NRHS];
  for (uint32_t i = 0; i < NRHS; i++) {
    user[i] = (user_t){conn, request, i, stream, 0};
    cr_assert_eq(pthread_create(&thread[i], NULL, use, &user[i]), 0);
  }
  upload(conn, request, stream, MIB);
  for (int i = 0; i < NRHS; i++) {
    pthread_join(thread[i], NULL);
    cr_expect_eq(user[i].good, 3);
  }
  quark_close(conn);
  free(stream);
}

Test(libquark, acknowledged_solutions_are_gone) {
  quark_connection_t *conn = connect_to(NULL);
  const uint64_t request = submit_points(conn, 2);
  quark_result_t result;
  uint8_t *x = malloc(FIELD);
  cr_assert_eq(quark_wait(conn, request, 1, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_download(conn, request, 1, x, FIELD - 1, NULL), QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_ack(conn, request, 1, NULL), QUARK_OK);
  cr_expect_eq(quark_ack(conn, request, 1, NULL), QUARK_OK);
  cr_expect_eq(quark_download(conn, request, 1, x, FIELD, NULL), QUARK_NOT_FOUND);
  cr_expect_eq(quark_ack(conn, request, 2, NULL), QUARK_BAD_ARGUMENT);
  quark_close(conn);
  free(x);
}

/* ---- kept solutions and contractions ---- */

static uint64_t submit_kept(quark_connection_t *conn, uint32_t nrhs) {
  const quark_column_t column[8] = {{0}};
  quark_params_t p;
  quark_error_t err = {0};
  uint64_t request = 0;
  quark_params_init(&p);
  p.nrhs = nrhs;
  p.source = QUARK_WALL;
  p.column = column;
  p.keep = true;
  p.keep_ms = 5000;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK, "%s", err.text);
  return request;
}

/* Both contractions of the tests below. */
static const quark_channel_t CHANNELS[2] = {{QUARK_MESON, 15, 7}, {QUARK_NUCLEON, 0, 0}};
static const int32_t MOMENTA[3][3] = {{0, 0, 0}, {1, -2, 0}, {0, 0, 3}};

static quark_contraction_t contraction_of(uint64_t a) {
  quark_contraction_t c;
  quark_contraction_init(&c);
  c.request_a = a;
  c.nchannel = 2;
  c.channel = CHANNELS;
  return c;
}

Test(libquark, every_field_of_a_submit_is_sent) {
  quark_connection_t *conn = connect_to(NULL);
  const quark_column_t column[2] = {
      {.t = 3, .px = 1, .py = -2, .pz = 3, .request = 9, .rhs = 4, .gamma = 8},
      {.t = -1, .request = 9}};
  quark_params_t p;
  uint64_t request;
  quark_params_init(&p);
  p.nrhs = 2;
  p.source = QUARK_SEQUENTIAL;
  p.column = column;
  p.keep = true;
  p.keep_ms = 1234;
  p.priority = 7;
  p.smear = (quark_smearing_t){.alpha = 0.25,
                               .steps = 7,
                               .links = QUARK_HYP,
                               .link_param = {0.75, 0.6, 0.3},
                               .link_steps = 3,
                               .link_all = true};
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
  const Quark__Submit *s = fake.last->submit;
  cr_expect_eq(s->sink, QUARK__SINK__SINK_KEEP);
  cr_expect_eq(s->keep_ms, 1234);
  cr_expect_eq(s->priority, 7);
  cr_assert_not_null(s->smear);
  cr_expect_eq(s->smear->alpha, 0.25);
  cr_expect_eq(s->smear->steps, 7);
  cr_expect_eq(s->smear->links, QUARK__LINK_SMEAR__LINK_SMEAR_HYP);
  cr_assert_eq(s->smear->n_link_param, 3);
  cr_expect_eq(s->smear->link_param[2], 0.3);
  cr_expect_eq(s->smear->link_steps, 3);
  cr_expect_not(s->smear->link_spatial);
  const Quark__Column *c = s->column[0];
  cr_expect(c->t == 3 && c->px == 1 && c->py == -2 && c->pz == 3);
  cr_expect(c->request == 9 && c->rhs == 4 && c->gamma == 8);
  cr_expect(s->column[1]->t == -1 && !s->column[1]->has_gamma);
  p = (quark_params_t){.nrhs = 1, .dtype = QUARK_F64, .tol = 0.5, .max_iter = 1};
  p.source = QUARK_Z4;
  p.column = &(quark_column_t){.t = 1, .t_every = 4, .seed = 77, .spin = -1, .colour = -1};
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
  cr_expect(fake.last->submit->column[0]->t_every == 4 && fake.last->submit->column[0]->seed == 77);
  cr_expect_null(fake.last->submit->smear, "no steps: no smearing");
  cr_expect_eq(fake.last->submit->sink, QUARK__SINK__SINK_DOWNLOAD);
  quark_close(conn);
}

Test(libquark, every_field_of_a_contraction_is_sent) {
  quark_connection_t *conn = connect_to(NULL);
  quark_contraction_t c = contraction_of(3);
  uint64_t request, bytes;
  cr_assert_eq(quark_contract(conn, &c, &request, NULL, NULL), QUARK_OK);
  const Quark__Contraction *m = fake.last->contract->contraction;
  cr_expect(m->request_a == 3 && !m->has_request_b && m->n_momentum == 0 && !m->sink);
  cr_assert_eq(m->n_channel, 2);
  cr_expect(m->channel[0]->sink == 15 && m->channel[0]->source == 7);
  cr_expect_eq(m->channel[1]->kind, QUARK__CHANNEL_KIND__CHANNEL_NUCLEON);
  c.first_a = 12;
  c.request_b = 5;
  c.first_b = 24;
  c.nmomentum = 3;
  c.momentum = MOMENTA;
  c.origin[3] = 9;
  c.sink = (quark_smearing_t){
      .alpha = 4, .steps = 2, .links = QUARK_STOUT, .link_param = {0.1}, .link_steps = 1};
  c.deadline_ms = 777;
  c.priority = 2;
  cr_assert_eq(quark_contract(conn, &c, &request, &bytes, NULL), QUARK_OK);
  cr_expect_eq(bytes, (uint64_t)FIELD);
  cr_expect(fake.last->contract->deadline_ms == 777 && fake.last->contract->priority == 2);
  m = fake.last->contract->contraction;
  cr_expect(m->first_a == 12 && m->request_b == 5 && m->first_b == 24);
  cr_assert_eq(m->n_momentum, 9);
  cr_expect_arr_eq(m->momentum, MOMENTA, sizeof MOMENTA);
  cr_expect(m->n_origin == 4 && m->origin[3] == 9);
  cr_expect(m->sink->n_link_param == 1 && m->sink->link_param[0] == 0.1 && m->sink->link_spatial);
  quark_close(conn);
}

Test(libquark, a_contraction_is_awaited_and_downloaded_like_a_solution) {
  quark_connection_t *conn = connect_to(NULL);
  const quark_contraction_t c = contraction_of(submit_kept(conn, 1));
  uint64_t request, bytes;
  cr_assert_eq(quark_contract(conn, &c, &request, &bytes, NULL), QUARK_OK);
  cr_expect_eq(fake.contracts, 1);
  quark_result_t result;
  uint8_t *x = malloc(bytes);
  memset(x, 1, bytes);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.bytes, bytes);
  cr_expect_eq(quark_wait(conn, request, 1, 0, &result, NULL), QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_upload(conn, request, x, 1, NULL), QUARK_OK, "it has ended: nothing is sent");
  cr_assert_eq(quark_download(conn, request, 0, x, bytes, NULL), QUARK_OK);
  cr_expect(x[0] == 0 && x[bytes - 1] == 0, "the fake's correlators are zero");
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
  free(x);
  quark_close(conn);
}

Test(libquark, releasing_a_kept_request_tells_the_daemon) {
  fake.script.hold = 1;
  quark_connection_t *conn = connect_to(NULL);
  const uint64_t held = submit_kept(conn, 2);
  cr_assert_eq(quark_release(conn, held, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, held, NULL), QUARK_NOT_FOUND);
  fake.script.hold = 0;
  const uint64_t solved = submit_kept(conn, 1); /* answered in order, so the release was read */
  cr_expect_eq(fake.releases, 1);
  quark_result_t result;
  cr_assert_eq(quark_wait(conn, solved, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_ack(conn, solved, QUARK_ALL, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, solved, NULL), QUARK_OK);
  const uint64_t plain = submit_points(conn, 1);
  cr_expect_eq(fake.releases, 2);
  cr_assert_eq(quark_wait(conn, plain, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, plain, NULL), QUARK_OK);
  submit_points(conn, 1);
  cr_expect_eq(fake.releases, 2, "what is not kept is acknowledged");
  quark_close(conn);
}

Test(libquark, a_contraction_survives_a_broken_connection) {
  fake.script.drop_download = 2;
  quark_connection_t *conn = connect_to(NULL);
  const quark_contraction_t c = contraction_of(1);
  uint64_t request, bytes;
  cr_assert_eq(quark_contract(conn, &c, &request, &bytes, NULL), QUARK_OK);
  quark_result_t result;
  uint8_t *x = malloc(bytes);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_download(conn, request, 0, x, bytes, NULL), QUARK_OK);
  cr_expect_geq(fake.hellos, 2);
  cr_expect_geq(fake.contracts, 2, "the same message again, so that RESULT is told again");
  free(x);
  quark_close(conn);
}

Test(libquark, wrong_contractions_are_refused_here) {
  quark_connection_t *conn = connect_to(NULL);
  quark_error_t err;
  uint64_t request;
  quark_contraction_t c = contraction_of(1);
  c.nchannel = 0;
  cr_expect_eq(quark_contract(conn, &c, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  c.nchannel = 513;
  cr_expect_eq(quark_contract(conn, &c, &request, NULL, &err), QUARK_TOO_LARGE);
  c = contraction_of(1);
  c.channel = NULL;
  cr_expect_eq(quark_contract(conn, &c, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  c = contraction_of(1);
  c.nmomentum = 1;
  cr_expect_eq(quark_contract(conn, &c, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  c.nmomentum = 129;
  c.momentum = MOMENTA;
  cr_expect_eq(quark_contract(conn, &c, &request, NULL, &err), QUARK_TOO_LARGE);
  quark_params_t p;
  quark_params_init(&p);
  p.keep = p.discard = true;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  quark_params_init(&p);
  p.source = QUARK_FILE;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  p.source_file.path = p.sink_file.path = "/data/b";
  p.keep = true;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  cr_expect_eq(fake.contracts + fake.submits, 0);
  fake.script.reject = QUARK_NOT_FOUND;
  c = contraction_of(99);
  cr_expect_eq(quark_contract(conn, &c, &request, NULL, &err), QUARK_NOT_FOUND);
  cr_expect_str_eq(err.text, "as the test wants");
  quark_close(conn);
}

/* ---- what the daemon refuses ---- */

Test(libquark, refusals_carry_status_and_advice) {
  quark_connection_t *conn = connect_to(NULL);
  fake.script.reject = QUARK_BUSY;
  quark_params_t p;
  quark_error_t err;
  uint64_t request;
  quark_params_init(&p);
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BUSY);
  cr_expect(err.retryable);
  cr_expect_eq(err.retry_after_ms, 123);
  cr_expect_str_eq(err.text, "as the test wants");
  fake.script.reject = 0;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK);
  quark_close(conn);
}

Test(libquark, wrong_calls_are_refused_here) {
  quark_connection_t *conn = connect_to(NULL);
  quark_params_t p;
  quark_error_t err;
  quark_result_t result;
  uint64_t request;
  quark_params_init(&p);
  p.nrhs = 9; /* the fake takes 8 */
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_TOO_LARGE);
  p.nrhs = 0;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  p.nrhs = 1;
  p.source = QUARK_POINT;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_BAD_ARGUMENT);
  cr_expect_eq(fake.submits, 0);
  cr_expect_eq(quark_wait(conn, 99, 0, 0, &result, &err), QUARK_NOT_FOUND);
  cr_expect_eq(quark_cancel(conn, 99, QUARK_ALL, &err), QUARK_NOT_FOUND);
  request = submit_points(conn, 1);
  cr_expect_eq(quark_wait(conn, request, 1, 0, &result, &err), QUARK_BAD_ARGUMENT);
  fake.script.hold = 1;
  request = submit(conn, 1);
  uint8_t *b = calloc(1, FIELD);
  cr_expect_eq(quark_upload(conn, request, b, FIELD - 1, &err), QUARK_OK);
  cr_expect_eq(quark_upload(conn, request, b, 2, &err), QUARK_BAD_ARGUMENT);
  free(b);
  quark_close(conn);
}

Test(libquark, a_silent_daemon_times_out) {
  fake.script.mute = 1;
  quark_options_t o;
  quark_options_init(&o);
  o.timeout_ms = 100;
  quark_connection_t *conn = NULL;
  quark_error_t err;
  cr_expect_eq(quark_connect(fake.endpoint, &o, &conn, &err), QUARK_TIMEOUT);
  cr_expect_null(conn);
  cr_expect(err.retryable);
  fake.script.mute = 0;
  conn = connect_to(&o);
  fake.script.mute = 1;
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

/* ---- what breaks ---- */

Test(libquark, an_upload_survives_a_broken_connection) {
  fake.script.drop_upload = 12;
  round_trip((size_t)NRHS * FIELD);
  cr_expect_geq(fake.hellos, 2);
  cr_expect_geq(fake.submits, 2);
}

/* Before the first window of the second field is half used up, and after it. */
Test(libquark, a_download_survives_a_broken_connection) {
  fake.script.drop_download = 12;
  round_trip((size_t)NRHS * FIELD);
  cr_expect_geq(fake.hellos, 2);
}

Test(libquark, a_download_survives_a_connection_broken_later) {
  fake.script.drop_download = 16;
  round_trip((size_t)NRHS * FIELD);
  cr_expect_geq(fake.hellos, 2);
}

/* What came of the old one is not mixed with the new one. */
/* ---- the local socket ---- */

Test(libquark, fields_go_by_descriptor_where_the_daemon_is_here) {
  fake.script.local = 1;
  round_trip((size_t)NRHS * FIELD);
  cr_expect_eq(fake.binds, 1);
  cr_expect_eq(fake.puts, NRHS);
  cr_expect_eq(fake.fetches, NRHS);
}

Test(libquark, odd_pieces_make_whole_fields) {
  fake.script.local = 1;
  round_trip(777777);
  cr_expect_eq(fake.puts, NRHS);
}

Test(libquark, who_wants_no_shared_memory_gets_none) {
  fake.script.local = 1;
  quark_options_t o;
  quark_options_init(&o);
  o.local = false;
  quark_connection_t *conn = connect_to(&o);
  cr_expect_not(quark_local(conn));
  quark_close(conn);
  cr_expect_eq(fake.binds, 0);
}

/* More fields than the ring has room for. */
static void long_trip(void) {
  enum { N = 8 };
  quark_connection_t *conn = connect_to(NULL);
  cr_expect(quark_local(conn));
  uint8_t *stream = make_stream(), *x = malloc(FIELD);
  quark_error_t err = {0};
  quark_result_t result;
  const uint64_t request = submit(conn, N);
  for (size_t i = 0; i < N; i++)
    cr_assert_eq(quark_upload(conn, request, stream + i * MIB, FIELD, &err), QUARK_OK, "%s",
                 err.text);
  for (uint32_t i = 0; i < N; i++) {
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK, "%s", err.text);
    cr_assert_eq(quark_download(conn, request, i, x, FIELD, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(memcmp(x, stream + (size_t)i * MIB, FIELD), 0, "right-hand side %u", i);
  }
  quark_close(conn);
  free(stream);
  free(x);
}

Test(libquark, a_local_connection_that_breaks_in_an_upload_is_done_without) {
  for (int n = 1; n <= 8; n++) {
    fake.script.local = 1;
    fake.script.drop_put = n;
    long_trip();
    cr_expect_eq(fake.puts, n, "the rest goes by chunks");
    teardown();
    setup();
  }
}

Test(libquark, a_local_connection_that_breaks_in_a_download_is_done_without) {
  fake.script.local = 1;
  fake.script.drop_fetch = 2;
  round_trip(MIB);
  cr_expect_eq(fake.fetches, 2);
}

Test(libquark, what_cannot_be_had_by_descriptor_comes_by_chunks) {
  fake.script.local = fake.script.empty_fetch = 1;
  round_trip(MIB);
  cr_expect_eq(fake.fetches, NRHS);
}

Test(libquark, after_a_broken_connection_fields_go_by_descriptor_again) {
  fake.script.local = 1;
  fake.script.drop_fetch = 1;
  fake.script.drop_download = 3;
  round_trip((size_t)NRHS * FIELD);
  cr_expect_eq(fake.binds, 2);
  cr_expect_geq(fake.fetches, NRHS);
}

Test(libquark, a_solution_that_is_made_again_is_downloaded_from_its_beginning) {
  fake.script.drop_download = 3;
  fake.script.remake = 1;
  quark_connection_t *conn = connect_to(NULL);
  uint8_t *stream = make_stream(), *x = malloc(FIELD);
  const uint64_t request = submit(conn, NRHS);
  quark_result_t result;
  quark_error_t err = {0};
  upload(conn, request, stream, FIELD);
  for (uint32_t i = 0; i < NRHS; i++)
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK, "%s", err.text);
  cr_assert_eq(quark_download(conn, request, 0, x, FIELD, &err), QUARK_OK, "%s", err.text);
  for (size_t i = 0; i < FIELD; i++) x[i] ^= 0xff;
  cr_expect_eq(memcmp(x, stream, FIELD), 0);
  quark_close(conn);
  free(x);
  free(stream);
}

Test(libquark, a_session_that_is_lost_ends_its_requests_as_retryable) {
  fake.script.hold = 1;
  fake.script.forget = 1;
  fake.script.drop_upload = 5;
  quark_connection_t *conn = connect_to(NULL);
  uint8_t *stream = make_stream();
  const uint64_t request = submit(conn, NRHS);
  upload(conn, request, stream, MIB);
  for (uint32_t i = 0; i < NRHS; i++) {
    quark_result_t result;
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, NULL), QUARK_OK);
    cr_expect_eq(result.status, QUARK_ENGINE_LOST);
    cr_expect(quark_code_retryable(result.status));
  }
  fake.script.hold = 0;
  const uint64_t second = submit(conn, NRHS);
  upload(conn, second, stream, MIB);
  expect_solutions(conn, second, stream);
  quark_close(conn);
  free(stream);
}

static quark_code_t download_one(quark_connection_t *conn, quark_error_t *err) {
  const uint64_t request = submit_points(conn, 1);
  quark_result_t result;
  uint8_t *x = malloc(FIELD);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  const quark_code_t code = quark_download(conn, request, 0, x, FIELD, err);
  free(x);
  return code;
}

Test(libquark, a_field_with_a_wrong_checksum_is_refused) {
  fake.script.corrupt_field = 1;
  quark_connection_t *conn = connect_to(NULL);
  quark_error_t err;
  cr_expect_eq(download_one(conn, &err), QUARK_BAD_CHECKSUM);
  fake.script.corrupt_field = 0;
  cr_expect_eq(download_one(conn, &err), QUARK_OK);
  quark_close(conn);
}

Test(libquark, a_corrupt_message_ends_the_connection) {
  fake.script.corrupt_chunk = 1;
  quark_connection_t *conn = connect_to(NULL);
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
  quark_connection_t *conn = connect_to(NULL);
  quark_report_t report;
  quark_error_t err = {0};
  fake.script.fatal = QUARK_NOT_FOUND;
  cr_expect_eq(quark_status(conn, &report, &err), QUARK_OK, "%s", err.text);
  cr_expect_eq(fake.hellos, 2);
  quark_close(conn);
}

Test(libquark, a_fatal_error_ends_everything_with_its_status) {
  fake.script.hold = 1;
  quark_connection_t *conn = connect_to(NULL);
  const uint64_t request = submit_points(conn, 1);
  fake.script.fatal = QUARK_BAD_PROTOCOL;
  quark_report_t report;
  quark_error_t err;
  quark_result_t result;
  cr_expect_eq(quark_status(conn, &report, &err), QUARK_BAD_PROTOCOL);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.status, QUARK_BAD_PROTOCOL);
  quark_close(conn);
}

Test(libquark, shutdown_is_answered_before_the_end) {
  quark_connection_t *conn = connect_to(NULL);
  quark_event_t event;
  cr_expect_eq(quark_shutdown(conn, false, NULL), QUARK_OK);
  cr_assert_eq(quark_event_next(conn, 10000, &event, NULL), QUARK_OK);
  cr_expect_eq(event.kind, QUARK_EVENT_DEAD);
  cr_expect_eq(event.code, QUARK_SHUTTING_DOWN);
  quark_close(conn);
}

Test(libquark, the_lease_is_kept_while_the_user_does_nothing) {
  fake.script.lease_ms = 30;
  quark_connection_t *conn = connect_to(NULL);
  quark_event_t event;
  cr_assert_eq(quark_event_next(conn, 1000, &event, NULL), QUARK_OK);
  cr_expect_geq(fake.pings, 2);
  quark_close(conn);
}

Test(libquark, a_daemon_that_stays_away_ends_the_connection) {
  fake.script.hold = 1;
  quark_options_t o;
  quark_options_init(&o);
  o.reconnect_ms = 300;
  quark_connection_t *conn = connect_to(&o);
  const uint64_t request = submit(conn, NRHS);
  fake.script.mute = 1;
  fake.script.drop_upload = 1;
  uint8_t *b = calloc(1, FIELD);
  quark_result_t result;
  cr_expect_eq(quark_upload(conn, request, b, FIELD, NULL), QUARK_OK);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.status, QUARK_TIMEOUT);
  cr_expect_eq(quark_upload(conn, request, b, FIELD, NULL), QUARK_TIMEOUT);
  quark_close(conn);
  free(b);
}
