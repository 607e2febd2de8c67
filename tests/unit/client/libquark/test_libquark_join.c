#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/unit/client/libquark/libquark_kit.h"

static const uint8_t OWNER[QUARK_CLIENT_ID_BYTES] = "whose request 77";

Test(libquark, a_part_is_joined_sent_and_fetched) {
  uint8_t token[QUARK_CLIENT_ID_BYTES] = "the token of 77";
  uint64_t request, bytes, uploaded = 1;
  quark_error_t err;
  uint8_t *stream = lq_stream();
  lq_fake.script.feature = QK_FEATURE_JOIN;
  quark_connection_t *conn = lq_connect(NULL);
  cr_assert_eq(quark_join(conn, OWNER, 77, token, 5, &request, &bytes, &uploaded, &err), QUARK_OK,
               "%s", err.text);
  cr_expect(bytes == LQ_FIELD && uploaded == 0);
  const Quark__Join *said = lq_fake.last->join;
  cr_expect(said->request == request && said->owner_request == 77 && said->part == 5);
  cr_expect(said->owner.len == sizeof OWNER && !memcmp(said->owner.data, OWNER, sizeof OWNER));
  cr_expect(said->token.len == sizeof token && !memcmp(said->token.data, token, sizeof token));
  lq_upload(conn, request, stream, 1 << 20); /* of as many right-hand sides as ACCEPTED says */
  lq_expect_solutions(conn, request, stream);
  cr_expect_eq(quark_join_token(conn, request, token, &err), QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_release(conn, request, &err), QUARK_OK);
  free(stream);
  quark_close(conn);
}

Test(libquark, owners_have_a_token) {
  uint8_t token[QUARK_CLIENT_ID_BYTES];
  quark_field_params_t f;
  quark_params_t p;
  uint64_t request, bytes;
  bool present;
  quark_error_t err;
  lq_fake.script.feature = QK_FEATURE_JOIN;
  quark_connection_t *conn = lq_connect(NULL);
  quark_params_init(&p);
  for (int mu = 0; mu < 4; mu++) p.grid[mu] = (uint32_t)mu + 1;
  cr_assert_eq(quark_submit(conn, &p, &request, &bytes, &err), QUARK_OK, "%s", err.text);
  const Quark__Submit *said = lq_fake.last->submit;
  cr_expect(said->n_grid == 4 && said->grid[3] == 4 && !said->has_part);
  cr_assert_eq(quark_join_token(conn, request, token, &err), QUARK_OK);
  cr_expect_str_eq((const char *)token, "to be joined by");
  cr_expect_eq(quark_join_token(conn, request + 7, token, &err), QUARK_NOT_FOUND);
  quark_field_params_init(&f);
  for (int mu = 0; mu < 4; mu++) f.dims[mu] = f.grid[mu] = 2;
  f.part = 15;
  cr_assert_eq(quark_field_open(conn, &f, &request, &bytes, &present, &err), QUARK_OK);
  cr_expect(lq_fake.last->field_open->has_part && lq_fake.last->field_open->part == 15);
  cr_expect(!present && quark_join_token(conn, request, token, &err) == QUARK_OK);
  f.has_digest = true;
  f.digest = 7;
  cr_assert_eq(quark_field_open(conn, &f, &request, &bytes, &present, &err), QUARK_OK);
  cr_expect(present && quark_join_token(conn, request, token, &err) == QUARK_BAD_ARGUMENT);
  p.sink_file.path = "/data/x";
  cr_expect_eq(quark_submit(conn, &p, &request, &bytes, &err), QUARK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "grid and sink_file"), "%s", err.text);
  quark_close(conn);
}

Test(libquark, an_old_daemon_is_not_asked_for_parts) {
  uint8_t token[QUARK_CLIENT_ID_BYTES] = {0};
  quark_field_params_t f;
  quark_params_t p;
  uint64_t request;
  bool present;
  quark_error_t err;
  lq_fake.script.feature = QK_FEATURE_FIELDS;
  quark_connection_t *conn = lq_connect(NULL);
  cr_expect_eq(quark_join(conn, OWNER, 1, token, 0, &request, NULL, NULL, &err), QUARK_UNSUPPORTED);
  cr_expect(strstr(err.text, "too old for parts"), "%s", err.text);
  quark_params_init(&p);
  p.grid[0] = 2;
  cr_expect_eq(quark_submit(conn, &p, &request, NULL, &err), QUARK_UNSUPPORTED);
  quark_field_params_init(&f);
  f.grid[0] = 2;
  cr_expect_eq(quark_field_open(conn, &f, &request, NULL, &present, &err), QUARK_UNSUPPORTED);
  quark_close(conn);
}
