#include <criterion/criterion.h>

#include "tests/unit/client/libquark/libquark_kit.h"

TestSuite(libquark_wall, .init = lq_setup, .fini = lq_teardown, .timeout = 60);

/* Of a request of two right-hand sides that have ended. */
static uint64_t ended(quark_connection_t *conn) {
  quark_result_t result;
  const uint64_t request = lq_submit_points(conn, 2);
  for (uint32_t i = 0; i < 2; i++)
    cr_assert_eq(quark_wait(conn, request, i, 10000, &result, NULL), QUARK_OK);
  return request;
}

Test(libquark_wall, sums_that_came_with_a_result_are_there_until_release) {
  lq_fake.script.wall = 4;
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = ended(conn);
  double sum[6] = {-1, -1, -1, -1, -1, -1};
  uint32_t n = 9;
  quark_error_t err;
  for (int which = QUARK_WALL_QUARK; which <= QUARK_WALL_MIDPOINT; which++) {
    cr_assert_eq(quark_wall_sums(conn, request, 1, (quark_wall_t)which, sum, 6, &n, &err),
                 QUARK_OK);
    cr_expect_eq(n, 4);
    for (int t = 0; t < 4; t++) cr_expect_eq(sum[t], 1 + t);
    cr_expect_eq(sum[4], -1);
  }
  cr_assert_eq(quark_wall_sums(conn, request, 0, QUARK_WALL_AXIAL, sum, 6, &n, &err), QUARK_OK);
  cr_expect_eq(n, 0, "none came");
  cr_assert_eq(quark_wall_sums(conn, request, 0, QUARK_WALL_QUARK, NULL, 0, &n, &err), QUARK_OK);
  cr_expect_eq(n, 4, "without room how many there are");
  sum[2] = -1;
  cr_assert_eq(quark_wall_sums(conn, request, 0, QUARK_WALL_QUARK, sum, 2, &n, &err), QUARK_OK);
  cr_expect(n == 4 && sum[1] == 1 && sum[2] == -1, "no more than there is room for");
  cr_assert_eq(quark_ack(conn, request, QUARK_ALL, &err), QUARK_OK);
  cr_expect_eq(quark_wall_sums(conn, request, 0, QUARK_WALL_QUARK, sum, 6, &n, &err), QUARK_OK);
  cr_expect_eq(n, 4, "ACK does not end them");
  cr_assert_eq(quark_release(conn, request, &err), QUARK_OK);
  cr_expect_eq(quark_wall_sums(conn, request, 0, QUARK_WALL_QUARK, sum, 6, &n, &err),
               QUARK_NOT_FOUND);
  quark_close(conn);
}

Test(libquark_wall, results_without_sums_have_none) {
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = ended(conn);
  uint32_t n = 9;
  cr_assert_eq(quark_wall_sums(conn, request, 0, QUARK_WALL_QUARK, NULL, 0, &n, NULL), QUARK_OK);
  cr_expect_eq(n, 0);
  quark_close(conn);
}

Test(libquark_wall, bad_arguments_are_refused) {
  lq_fake.script.wall = 4;
  quark_connection_t *conn = lq_connect(NULL);
  const uint64_t request = ended(conn);
  double sum[4];
  uint32_t n = 9;
  quark_error_t err;
  cr_expect_eq(quark_wall_sums(conn, request, 2, QUARK_WALL_QUARK, sum, 4, &n, &err),
               QUARK_BAD_ARGUMENT);
  cr_expect_eq(quark_wall_sums(conn, request, 0, (quark_wall_t)3, sum, 4, &n, &err),
               QUARK_BAD_ARGUMENT);
  cr_expect_str_eq(err.text, "which = 3: 0 to 2");
  cr_expect_eq(quark_wall_sums(conn, request + 1, 0, QUARK_WALL_QUARK, sum, 4, &n, &err),
               QUARK_NOT_FOUND);
  cr_expect_eq(n, 9, "and nothing is written");
  quark_close(conn);
}
