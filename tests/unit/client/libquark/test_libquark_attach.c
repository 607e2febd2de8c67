#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "client/quark.h"
#include "proto/limits.h"
#include "tests/support/fake_daemon.h"

enum { FIELD = 3 * 1024 * 1024 + 4096, NRHS = 2 };

static fake_daemon_t fake;

static void setup(void) {
  fake_daemon_start(&fake, FIELD);
  fake.script.feature = fake.script.later_feature = QK_FEATURE_WORK;
}

static void teardown(void) {
  fake_daemon_stop(&fake);
}

TestSuite(libquark_attach, .init = setup, .fini = teardown, .timeout = 60);

static quark_connection_t *connect_as(const uint8_t id[16]) {
  quark_connection_t *conn;
  quark_options_t o;
  quark_error_t err;
  quark_options_init(&o);
  o.client_id = id;
  o.keep_session = true;
  cr_assert_eq(quark_connect(fake.endpoint, &o, &conn, &err), QUARK_OK, "%s", err.text);
  return conn;
}

static const quark_column_t COLUMNS[NRHS] = {
    {.t = 3, .px = 1, .seed = 77, .spin = -1, .flavour = -1},
    {.t = 4, .t_every = 2, .seed = 78, .colour = 2}};

/* Two noise sources of a client that leaves. */
static uint64_t leave_a_request(const uint8_t id[16]) {
  quark_connection_t *conn = connect_as(id);
  quark_params_t p;
  uint64_t request;
  quark_params_init(&p);
  p.nrhs = NRHS;
  p.source = QUARK_Z4;
  p.column = COLUMNS;
  p.tol = 1e-5;
  p.dtype = QUARK_F32;
  p.basis = QUARK_UKQCD;
  p.normalisation = QUARK_KAPPA;
  p.flavour = -1;
  p.work = QUARK_WORK_DIAG;
  p.dagger = true;
  p.parity = QUARK_PARITY_ODD;
  p.schur = QUARK_SCHUR_ASYMMETRIC;
  p.priority = 6;
  p.detach_ms = 5000;
  p.smear = (quark_smearing_t){
      .alpha = 0.25, .steps = 7, .links = QUARK_STOUT, .link_param = {0.1}, .link_steps = 3};
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, NULL), QUARK_OK);
  cr_expect_eq(fake.last->submit->detach_ms, 5000);
  quark_close(conn);
  return request;
}

static void check_params(const quark_params_t *p) {
  cr_expect(p->nrhs == NRHS && p->source == QUARK_Z4 && p->tol == 1e-5 && p->dtype == QUARK_F32);
  cr_expect(p->basis == QUARK_UKQCD && p->normalisation == QUARK_KAPPA && p->priority == 6);
  cr_expect_eq(p->flavour, -1);
  cr_expect(p->work == QUARK_WORK_DIAG && p->dagger);
  cr_expect(p->parity == QUARK_PARITY_ODD && p->schur == QUARK_SCHUR_ASYMMETRIC);
  cr_expect(p->detach_ms == 5000 && !p->keep && !p->discard);
  cr_expect(p->smear.alpha == 0.25 && p->smear.steps == 7 && p->smear.links == QUARK_STOUT);
  cr_expect(p->smear.link_param[0] == 0.1 && p->smear.link_steps == 3 && !p->smear.link_all);
  cr_assert_not_null(p->column);
  for (int i = 0; i < NRHS; i++) {
    const quark_column_t *c = &p->column[i], *want = &COLUMNS[i];
    cr_expect(c->t == want->t && c->px == want->px && c->seed == want->seed);
    cr_expect(c->spin == want->spin && c->colour == want->colour && c->t_every == want->t_every);
    cr_expect_eq(c->flavour, want->flavour);
  }
}

static void fetch(quark_connection_t *conn, uint64_t request) {
  uint8_t *x = malloc(FIELD);
  quark_result_t result;
  quark_error_t err;
  for (uint32_t i = 0; i < NRHS; i++) {
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(result.iterations, 7u + i);
    cr_assert_eq(quark_download(conn, request, i, x, FIELD, &err), QUARK_OK, "%s", err.text);
  }
  free(x);
}

Test(libquark_attach, a_request_of_an_earlier_connection_is_like_ones_own) {
  const uint8_t id[16] = "earlier and now";
  const uint64_t request = leave_a_request(id);
  quark_connection_t *conn = connect_as(id);
  quark_attached_t a;
  quark_error_t err;
  cr_assert_eq(quark_attach(conn, request, &a, &err), QUARK_OK, "%s", err.text);
  cr_expect(!a.contraction && a.bytes == FIELD && a.uploaded == 0);
  check_params(&a.params);
  cr_expect_eq(quark_attach(conn, request, &a, &err), QUARK_BAD_ARGUMENT);
  fetch(conn, request);
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
  quark_close(conn);
  while (fake.acks == 0) sched_yield(); /* the daemon hears of it a little later */
}

Test(libquark_attach, an_attached_request_survives_a_broken_connection) {
  const uint8_t id[16] = "earlier and now";
  const uint64_t request = leave_a_request(id);
  fake.script.drop_download = 5;
  quark_connection_t *conn = connect_as(id);
  quark_attached_t a;
  cr_assert_eq(quark_attach(conn, request, &a, NULL), QUARK_OK);
  fetch(conn, request);
  while (fake.attaches < 2)
    sched_yield(); /* asked again after the break; the daemon may hear of it later */
  quark_close(conn);
}

Test(libquark_attach, who_waits_hears_that_an_attached_request_is_gone) {
  const uint8_t id[16] = "earlier and now";
  fake.script.hold = 1;
  fake.script.lease_ms = 300;
  fake.script.gone = 1;
  const uint64_t request = leave_a_request(id);
  quark_connection_t *conn = connect_as(id);
  quark_attached_t a;
  quark_result_t result;
  quark_error_t err;
  cr_assert_eq(quark_attach(conn, request, &a, NULL), QUARK_OK);
  fake.script.drop_ping = 1;
  for (uint32_t i = 0; i < NRHS; i++) {
    cr_assert_eq(quark_wait(conn, request, i, 20000, &result, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(result.status, QUARK_NOT_FOUND);
    cr_expect_not_null(strstr(result.text, "is not here"), "%s", result.text);
  }
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
  quark_close(conn);
}

Test(libquark_attach, what_is_not_there_is_refused) {
  const uint8_t id[16] = "earlier and now";
  quark_connection_t *conn = connect_as(id);
  quark_attached_t a;
  quark_error_t err;
  cr_expect_eq(quark_attach(conn, 12345, &a, &err), QUARK_NOT_FOUND, "%s", err.text);
  cr_expect_not_null(strstr(err.text, "is not here"), "%s", err.text);
  cr_expect_eq(quark_attach(conn, 12345, &a, &err), QUARK_NOT_FOUND);
  quark_close(conn);
}

Test(libquark_attach, flush_returns_when_the_daemon_has_everything) {
  const uint8_t id[16] = "earlier and now";
  quark_connection_t *conn = connect_as(id);
  uint8_t *b = calloc(1, FIELD);
  quark_params_t p;
  quark_error_t err;
  uint64_t request;
  quark_params_init(&p);
  p.nrhs = NRHS;
  p.detach_ms = 5000;
  fake.script.hold = 1;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK, "%s", err.text);
  cr_expect_eq(quark_flush(conn, request, &err), QUARK_OK, "nothing was uploaded yet");
  for (unsigned i = 1; i <= NRHS; i++) {
    cr_assert_eq(quark_upload(conn, request, b, FIELD, &err), QUARK_OK, "%s", err.text);
    cr_assert_eq(quark_flush(conn, request, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(fake.uploaded, i * (unsigned long long)FIELD);
  }
  cr_expect_eq(quark_flush(conn, request + 1, &err), QUARK_NOT_FOUND);
  free(b);
  quark_close(conn);
}

Test(libquark_attach, flush_goes_on_after_a_broken_connection) {
  const uint8_t id[16] = "earlier and now";
  fake.script.drop_upload = 2;
  quark_connection_t *conn = connect_as(id);
  uint8_t *b = calloc(1, FIELD);
  quark_params_t p;
  quark_error_t err;
  uint64_t request;
  quark_params_init(&p);
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK, "%s", err.text);
  cr_assert_eq(quark_upload(conn, request, b, FIELD, &err), QUARK_OK, "%s", err.text);
  cr_assert_eq(quark_flush(conn, request, &err), QUARK_OK, "%s", err.text);
  cr_expect_eq(fake.uploaded, FIELD);
  cr_expect_gt(fake.hellos, 1);
  free(b);
  quark_close(conn);
}

Test(libquark_attach, files_are_named_again) {
  const uint8_t id[16] = "earlier and now";
  quark_connection_t *conn = connect_as(id);
  quark_params_t p;
  quark_attached_t a;
  quark_error_t err;
  uint64_t request;
  quark_params_init(&p);
  p.nrhs = NRHS;
  p.source = QUARK_FILE;
  p.source_file = (quark_file_t){.path = "/data/b.raw", .offset = 64, .size = 1000};
  p.sink_file.path = "/data/x.raw";
  p.detach_ms = 5000;
  cr_assert_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_OK, "%s", err.text);
  const Quark__Submit *s = fake.last->submit;
  cr_expect(s->source == QUARK__SOURCE_KIND__SOURCE_FILE && s->sink == QUARK__SINK__SINK_FILE);
  cr_expect(s->n_column == 0 && s->source_file->size == 1000 && !s->sink_file->has_size);
  quark_close(conn);
  conn = connect_as(id);
  cr_assert_eq(quark_attach(conn, request, &a, &err), QUARK_OK, "%s", err.text);
  cr_expect_str_eq(a.params.source_file.path, "/data/b.raw");
  cr_expect_str_eq(a.params.sink_file.path, "/data/x.raw");
  cr_expect(a.params.source == QUARK_FILE && a.params.source_file.offset == 64 &&
            a.params.source_file.size == 1000 && a.params.sink_file.offset == 0 && !a.params.keep);
  quark_close(conn);
}
