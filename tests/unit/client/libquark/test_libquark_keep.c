#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/unit/client/libquark/libquark_kit.h"

/* ---- kept solutions and contractions ---- */

static uint64_t submit_kept(quark_connection_t *conn, uint32_t nrhs) {
  quark_params_t p;
  quark_params_init(&p);
  p.nrhs = nrhs;
  p.source = QUARK_WALL;
  p.keep = true;
  p.keep_ms = 5000;
  return lq_submit_generated(conn, &p);
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

/* ---- flavours ---- */

static quark_params_t of_flavour(int flavour) {
  static const quark_column_t column = {0};
  quark_params_t p;
  quark_params_init(&p);
  p.source = QUARK_POINT;
  p.column = &column;
  p.flavour = flavour;
  return p;
}

Test(libquark, a_submit_says_its_flavour_where_it_is_not_1) {
  static const int values[] = {0, 1, -1, 2};
  uint64_t request;
  lq_fake.script.feature = QK_FEATURE_FLAVOUR;
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect_eq(of_flavour(1).max_iter, 10000);
  for (int i = 0; i < 4; i++) {
    const quark_params_t p = of_flavour(values[i]);
    const bool said = i > 1;
    cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
    const Quark__Submit *s = lq_fake.last->submit;
    cr_expect_eq((bool)s->has_flavour, said, "%d", values[i]);
    cr_expect_eq(s->flavour, said ? values[i] : 1);
  }
  quark_close(conn);
}

static void expect_too_old(quark_connection_t *conn, int flavour) {
  const quark_params_t p = of_flavour(flavour);
  quark_error_t err = {0};
  uint64_t request;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_UNSUPPORTED);
  cr_expect(!err.retryable && strstr(err.text, "too old for flavour of SUBMIT"), "%s", err.text);
}

Test(libquark, a_daemon_that_would_ignore_a_flavour_is_not_asked) {
  quark_connection_t *conn = lq_connect(NULL);
  const quark_params_t plain = of_flavour(1);
  uint64_t request;
  expect_too_old(conn, -1);
  cr_expect_eq(lq_fake.submits, 0);
  cr_expect_eq(quark_submit(conn, &plain, &request, NULL, NULL), QUARK_OK, "it solves for 1");
  quark_close(conn);
}

Test(libquark, a_flavour_is_not_repeated_to_an_older_daemon) {
  lq_fake.script.feature = QK_FEATURE_FLAVOUR;
  lq_fake.script.hold = 1;
  quark_connection_t *conn = lq_connect(NULL);
  const quark_params_t p = of_flavour(-1);
  quark_result_t result;
  uint64_t request;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
  lq_fake.script.later_feature = 0;
  lq_fake.script.drop_now = 1;
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.status, QUARK_UNSUPPORTED, "%s", result.text);
  cr_expect(strstr(result.text, "too old for flavour of SUBMIT"), "%s", result.text);
  cr_expect_eq(lq_fake.submits, 1, "by the one that knew what it was");
  quark_close(conn);
}

/* ---- work ---- */

Test(libquark, a_submit_says_its_work_where_it_is_no_solve) {
  quark_params_t p = of_flavour(1);
  uint64_t request;
  lq_fake.script.feature = QK_FEATURE_WORK;
  quark_connection_t *conn = lq_connect(NULL);
  for (int i = 0; i < 16; i++) {
    p.work = i & 1 ? QUARK_WORK_SCHUR : QUARK_WORK_SOLVE;
    p.dagger = i & 2;
    p.parity = i & 4 ? QUARK_PARITY_ODD : QUARK_PARITY_ALL;
    p.schur = i & 8 ? QUARK_SCHUR_ASYMMETRIC : QUARK_SCHUR_NONE;
    cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
    const Quark__Submit *s = lq_fake.last->submit;
    cr_expect(s->has_work == (p.work > 0) && (int)s->work == (int)p.work);
    cr_expect(s->has_dagger == p.dagger && s->dagger == p.dagger);
    cr_expect(s->has_parity == (p.parity > 0) && (int)s->parity == (int)p.parity);
    cr_expect(s->has_schur == (p.schur > 0) && (int)s->schur == (int)p.schur);
  }
  quark_close(conn);
}

/* It would solve for M x = b. */
Test(libquark, a_daemon_that_would_ignore_work_is_not_asked) {
  quark_connection_t *conn = lq_connect(NULL);
  for (int i = 0; i < 5; i++) {
    quark_params_t p = of_flavour(1);
    quark_error_t err = {0};
    uint64_t request;
    if (i == 0) p.work = QUARK_WORK_M;
    if (i == 1) p.dagger = true;
    if (i == 2) p.parity = QUARK_PARITY_EVEN;
    if (i == 3) p.schur = QUARK_SCHUR_SYMMETRIC;
    cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err),
                 i < 4 ? QUARK_UNSUPPORTED : QUARK_OK);
    if (i < 4)
      cr_expect(strstr(err.text, "too old for work, dagger, parity or schur of SUBMIT"), "%s",
                err.text);
  }
  cr_expect_eq(lq_fake.submits, 1);
  quark_close(conn);
}

/* ---- when a solve is good enough, and where it may be solved ---- */

static quark_params_t of_stopping(double tol, double tol_abs, double tol_hq, bool batch_only) {
  quark_params_t p = of_flavour(1);
  p.tol = tol;
  p.tol_abs = tol_abs;
  p.tol_hq = tol_hq;
  p.batch_only = batch_only;
  return p;
}

Test(libquark, a_submit_says_what_it_asks_for_beside_tol) {
  uint64_t request;
  lq_fake.script.feature = QK_FEATURE_SINGLE_RHS;
  quark_connection_t *conn = lq_connect(NULL);
  const quark_params_t p = of_stopping(0, 1e-5, 1e-7, true), plain = of_flavour(1);
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
  const Quark__Submit *s = lq_fake.last->submit;
  cr_expect(s->tol == 0 && s->tol_abs == 1e-5 && s->tol_hq == 1e-7 && !s->single_rhs);
  cr_assert_eq(quark_submit(conn, &plain, &request, NULL, NULL), QUARK_OK);
  s = lq_fake.last->submit;
  cr_expect(!s->has_tol_abs && !s->has_tol_hq && !s->has_single_rhs && s->single_rhs);
  quark_close(conn);
}

Test(libquark, a_daemon_that_would_ignore_what_is_asked_for_beside_tol_is_not_asked) {
  static const char *const words[] = {"too old for tol_abs and tol_hq of SUBMIT",
                                      "too old for tol_abs and tol_hq of SUBMIT",
                                      "too old for batch_only of SUBMIT"};
  lq_fake.script.feature = QK_FEATURE_COLUMN_FLAVOUR;
  quark_connection_t *conn = lq_connect(NULL);
  const quark_params_t asked[] = {of_stopping(1e-8, 1, 0, false), of_stopping(1e-8, 0, 1, false),
                                  of_stopping(1e-8, 0, 0, true)};
  for (int i = 0; i < 3; i++) {
    quark_error_t err = {0};
    uint64_t request;
    cr_expect_eq(quark_submit(conn, &asked[i], &request, NULL, &err), QUARK_UNSUPPORTED, "%d", i);
    cr_expect(!err.retryable && strstr(err.text, words[i]), "%d: %s", i, err.text);
  }
  cr_expect_eq(lq_fake.submits, 0);
  quark_close(conn);
}

Test(libquark, five_dimensions_are_asked_for_where_they_are_known) {
  quark_error_t err = {0};
  uint64_t request;
  quark_params_t p = of_flavour(1);
  p.five_d = true;
  lq_fake.script.feature = QK_FEATURE_EIGEN;
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_UNSUPPORTED);
  cr_expect(!err.retryable && strstr(err.text, "too old for five_d of SUBMIT"), "%s", err.text);
  cr_expect_eq(lq_fake.submits, 0);
  quark_close(conn);
  lq_fake.script.feature = QK_FEATURE_FIVE;
  conn = lq_connect(NULL);
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
  cr_expect(lq_fake.last->submit->five_d);
  p.five_d = false;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
  cr_expect_not(lq_fake.last->submit->has_five_d);
  quark_close(conn);
}

/* ---- flavours of columns ---- */

static quark_params_t of_columns(const quark_column_t column[2], quark_source_t source) {
  quark_params_t p;
  quark_params_init(&p);
  p.nrhs = 2;
  p.source = source;
  p.column = column;
  return p;
}

Test(libquark, a_column_says_its_flavour_where_it_has_one) {
  static const int32_t values[] = {0, 1, -1, 2};
  lq_fake.script.feature = QK_FEATURE_COLUMN_FLAVOUR;
  quark_connection_t *conn = lq_connect(NULL);
  for (int source = QUARK_POINT; source <= QUARK_Z4; source++)
    for (int i = 0; i < 4; i++) {
      const quark_column_t column[2] = {{.spin = 1}, {.flavour = values[i]}};
      const quark_params_t p = of_columns(column, (quark_source_t)source);
      uint64_t request;
      cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
      const Quark__Submit *s = lq_fake.last->submit;
      cr_expect(!s->column[0]->has_flavour && s->column[0]->flavour == 0);
      cr_expect_eq((bool)s->column[1]->has_flavour, i > 0);
      cr_expect_eq(s->column[1]->flavour, values[i]);
      cr_expect_not(s->has_flavour, "that of the request is another one");
    }
  quark_close(conn);
}

/* It would put the source into the upper flavour. */
Test(libquark, a_daemon_that_would_ignore_a_flavour_of_a_column_is_not_asked) {
  lq_fake.script.feature = QK_FEATURE_FLAVOUR;
  quark_connection_t *conn = lq_connect(NULL);
  quark_column_t column[2] = {{.flavour = 1}, {.flavour = -1}};
  const quark_params_t p = of_columns(column, QUARK_WALL);
  quark_error_t err = {0};
  uint64_t request;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_UNSUPPORTED);
  cr_expect(!err.retryable && strstr(err.text, "too old for flavour in the columns of SUBMIT"),
            "%s", err.text);
  cr_expect_eq(lq_fake.submits, 0);
  column[1].flavour = 0;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK, "what is the upper one");
  quark_close(conn);
}

Test(libquark, every_field_of_a_submit_is_sent) {
  quark_connection_t *conn = lq_connect(NULL);
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
  const Quark__Submit *s = lq_fake.last->submit;
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
  cr_expect(lq_fake.last->submit->column[0]->t_every == 4 &&
            lq_fake.last->submit->column[0]->seed == 77);
  cr_expect_null(lq_fake.last->submit->smear, "no steps: no smearing");
  cr_expect_eq(lq_fake.last->submit->sink, QUARK__SINK__SINK_DOWNLOAD);
  quark_close(conn);
}

Test(libquark, every_field_of_a_contraction_is_sent) {
  quark_connection_t *conn = lq_connect(NULL);
  quark_contraction_t c = contraction_of(3);
  uint64_t request, bytes;
  cr_assert_eq(quark_contract(conn, &c, &request, NULL, NULL), QUARK_OK);
  const Quark__Contraction *m = lq_fake.last->contract->contraction;
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
  cr_expect_eq(bytes, (uint64_t)LQ_FIELD);
  cr_expect(lq_fake.last->contract->deadline_ms == 777 && lq_fake.last->contract->priority == 2);
  m = lq_fake.last->contract->contraction;
  cr_expect(m->first_a == 12 && m->request_b == 5 && m->first_b == 24);
  cr_assert_eq(m->n_momentum, 9);
  cr_expect_arr_eq(m->momentum, MOMENTA, sizeof MOMENTA);
  cr_expect(m->n_origin == 4 && m->origin[3] == 9);
  cr_expect(m->sink->n_link_param == 1 && m->sink->link_param[0] == 0.1 && m->sink->link_spatial);
  quark_close(conn);
}

Test(libquark, a_contraction_is_awaited_and_downloaded_like_a_solution) {
  quark_connection_t *conn = lq_connect(NULL);
  const quark_contraction_t c = contraction_of(submit_kept(conn, 1));
  uint64_t request, bytes;
  cr_assert_eq(quark_contract(conn, &c, &request, &bytes, NULL), QUARK_OK);
  cr_expect_eq(lq_fake.contracts, 1);
  quark_result_t result;
  uint8_t *x = malloc(bytes);
  memset(x, 1, bytes);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(result.bytes, bytes);
  cr_expect_eq(quark_wait(conn, request, 1, 0, &result, NULL), QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_upload(conn, request, x, 1, NULL), QUARK_OK, "it has ended: nothing is sent");
  cr_assert_eq(quark_download(conn, request, 0, x, bytes, NULL), QUARK_OK);
  cr_expect(x[0] == 0 && x[bytes - 1] == 0, "the lq_fake's correlators are zero");
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
  free(x);
  quark_close(conn);
}

Test(libquark, forgetting_a_request_returns_when_the_daemon_has_heard) {
  lq_fake.script.hold = 1;
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t held = submit_kept(conn, 2);
  cr_assert_eq(quark_forget(conn, held, NULL), QUARK_OK);
  cr_expect_eq(lq_fake.releases, 1);
  cr_expect_eq(quark_release(conn, held, NULL), QUARK_NOT_FOUND);
  cr_assert_eq(quark_forget(conn, held, NULL), QUARK_OK, "what is not there is no error");
  cr_expect_eq(lq_fake.releases, 2);
  quark_close(conn);
}

Test(libquark, releasing_a_kept_request_tells_the_daemon) {
  lq_fake.script.hold = 1;
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t held = submit_kept(conn, 2);
  cr_assert_eq(quark_release(conn, held, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, held, NULL), QUARK_NOT_FOUND);
  lq_fake.script.hold = 0;
  const uint64_t solved = submit_kept(conn, 1); /* answered in order, so the release was read */
  cr_expect_eq(lq_fake.releases, 1);
  quark_result_t result;
  cr_assert_eq(quark_wait(conn, solved, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_ack(conn, solved, QUARK_ALL, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, solved, NULL), QUARK_OK);
  const uint64_t plain = lq_submit_points(conn, 1);
  cr_expect_eq(lq_fake.releases, 2);
  cr_assert_eq(quark_wait(conn, plain, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, plain, NULL), QUARK_OK);
  lq_submit_points(conn, 1);
  cr_expect_eq(lq_fake.releases, 2, "what is not kept is acknowledged");
  quark_close(conn);
}

Test(libquark, a_contraction_survives_a_broken_connection) {
  lq_fake.script.drop_download = 2;
  quark_connection_t *conn = lq_connect(NULL);
  const quark_contraction_t c = contraction_of(1);
  uint64_t request, bytes;
  cr_assert_eq(quark_contract(conn, &c, &request, &bytes, NULL), QUARK_OK);
  quark_result_t result;
  uint8_t *x = malloc(bytes);
  cr_assert_eq(quark_wait(conn, request, 0, -1, &result, NULL), QUARK_OK);
  cr_expect_eq(quark_download(conn, request, 0, x, bytes, NULL), QUARK_OK);
  cr_expect_geq(lq_fake.hellos, 2);
  cr_expect_geq(lq_fake.contracts, 2, "the same message again, so that RESULT is told again");
  free(x);
  quark_close(conn);
}

Test(libquark, wrong_contractions_are_refused_here) {
  quark_connection_t *conn = lq_connect(NULL);
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
  cr_expect_eq(lq_fake.contracts + lq_fake.submits, 0);
  lq_fake.script.reject = QUARK_NOT_FOUND;
  c = contraction_of(99);
  cr_expect_eq(quark_contract(conn, &c, &request, NULL, &err), QUARK_NOT_FOUND);
  cr_expect_str_eq(err.text, "as the test wants");
  quark_close(conn);
}
