#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/libquark/libquark_kit.h"

fake_daemon_t lq_fake;

void lq_setup(void) {
  fake_daemon_start(&lq_fake, LQ_FIELD);
}

void lq_teardown(void) {
  cr_expect_eq(lq_fake.violations, 0, "the client broke the protocol %d times", lq_fake.violations);
  fake_daemon_stop(&lq_fake);
}

TestSuite(libquark, .init = lq_setup, .fini = lq_teardown, .timeout = 60);

quark_connection_t *lq_connect(const quark_options_t *options) {
  quark_connection_t *conn = NULL;
  quark_error_t err = {0};
  cr_assert_eq(quark_connect(lq_fake.endpoint, options, &conn, &err), QUARK_OK, "%s", err.text);
  return conn;
}

uint64_t lq_submit(quark_connection_t *conn, uint32_t nrhs) {
  quark_params_t p;
  quark_error_t err = {0};
  uint64_t request = 0, bytes = 0;
  quark_params_init(&p);
  p.nrhs = nrhs;
  cr_assert_eq(quark_submit(conn, &p, &request, &bytes, &err), QUARK_OK, "%s", err.text);
  cr_assert_eq(bytes, (uint64_t)LQ_FIELD);
  return request;
}

uint64_t lq_submit_generated(quark_connection_t *conn, quark_params_t *p) {
  const quark_column_t column[8] = {{0}};
  quark_error_t err = {0};
  uint64_t request = 0;
  cr_assert(p->nrhs <= 8);
  p->column = column;
  cr_assert_eq(quark_submit(conn, p, &request, NULL, &err), QUARK_OK, "%s", err.text);
  return request;
}

uint64_t lq_submit_points(quark_connection_t *conn, uint32_t nrhs) {
  quark_params_t p;
  quark_params_init(&p);
  p.nrhs = nrhs;
  p.source = QUARK_POINT;
  return lq_submit_generated(conn, &p);
}

/* All right-hand sides: no two of their chunks are equal. */
uint8_t *lq_stream(void) {
  uint8_t *stream = malloc((size_t)LQ_NRHS * LQ_FIELD);
  uint32_t x = 12345;
  for (size_t i = 0; i < (size_t)LQ_NRHS * LQ_FIELD; i++)
    stream[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
  return stream;
}

void lq_upload(quark_connection_t *conn, uint64_t request, const uint8_t *stream, size_t piece) {
  quark_error_t err = {0};
  for (size_t at = 0; at < (size_t)LQ_NRHS * LQ_FIELD; at += piece) {
    const size_t left = (size_t)LQ_NRHS * LQ_FIELD - at;
    cr_assert_eq(quark_upload(conn, request, stream + at, left < piece ? left : piece, &err),
                 QUARK_OK, "%s", err.text);
  }
}

void lq_expect_solutions(quark_connection_t *conn, uint64_t request, const uint8_t *stream) {
  uint8_t *x = malloc(LQ_FIELD);
  for (uint32_t i = 0; i < LQ_NRHS; i++) {
    quark_result_t result;
    quark_error_t err = {0};
    cr_assert_eq(quark_wait(conn, request, i, -1, &result, &err), QUARK_OK, "%s", err.text);
    cr_assert_eq(result.status, QUARK_OK, "%s", result.text);
    cr_expect_eq(result.iterations, 7u + i);
    cr_assert_eq(quark_download(conn, request, i, x, LQ_FIELD, &err), QUARK_OK, "%s", err.text);
    cr_expect_eq(memcmp(x, stream + (size_t)i * LQ_FIELD, LQ_FIELD), 0, "right-hand side %u", i);
  }
  free(x);
}

void lq_round_trip(size_t piece) {
  quark_connection_t *conn = lq_connect(NULL);
  uint8_t *stream = lq_stream();
  const uint64_t request = lq_submit(conn, LQ_NRHS);
  lq_upload(conn, request, stream, piece);
  lq_expect_solutions(conn, request, stream);
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_OK);
  cr_expect_eq(quark_release(conn, request, NULL), QUARK_NOT_FOUND);
  quark_close(conn);
  free(stream);
}
