/* Tokens: each HELLO makes another one, and a BIND may come late. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/front/job/session.h"

typedef uint8_t token_t[QK_CLIENT_ID];

static qk_sched_t sched;
static qk_sessions_t sessions;

static qk_session_t *session_of(uint8_t client) {
  uint8_t id[QK_CLIENT_ID];
  qk_session_t *s;
  qk_err_t err = {0};
  memset(id, client, sizeof id);
  cr_assert_eq(qk_session_create(&sessions, &sched, id, "ada", 0, &s, &err), QK_OK, "%s", err.text);
  return s;
}

static void greet(qk_session_t *s, token_t token) {
  qk_session_greet(s);
  qk_session_token(s, token);
}

Test(session, has_a_token_of_each_hello) {
  qk_sched_init(&sched);
  qk_session_t *s = session_of(1), *other = session_of(2);
  token_t token[300], foreign, none = {0};
  greet(other, foreign);
  for (int i = 0; i < 300; i++) {
    greet(s, token[i]);
    if (i > 0) cr_assert_arr_neq(token[i], token[i - 1], QK_CLIENT_ID);
  }
  for (int i = 0; i < 300; i++) {
    cr_assert(qk_session_has_token(s, token[i]));
    cr_assert_not(qk_session_has_token(other, token[i]));
  }
  cr_assert_not(qk_session_has_token(s, foreign));
  cr_assert_not(qk_session_has_token(s, none));
  for (int bit = 0; bit < 8 * QK_CLIENT_ID; bit++) { /* one that was not given to anybody */
    token_t wrong;
    memcpy(wrong, foreign, sizeof wrong);
    wrong[bit / 8] ^= (uint8_t)(1 << bit % 8);
    cr_assert_not(qk_session_has_token(other, wrong));
  }
  qk_session_destroy(&sessions, s);
  qk_session_destroy(&sessions, other);
}

Test(session, is_bound_by_no_token_older_than_the_one_that_has_bound_it) {
  qk_sched_init(&sched);
  qk_session_t *s = session_of(1);
  token_t token[4];
  for (int i = 0; i < 3; i++) greet(s, token[i]);
  cr_assert(qk_session_bind(s, token[1]));
  cr_assert_not(qk_session_bind(s, token[0]));
  cr_assert(qk_session_bind(s, token[1]), "again, by another connection");
  cr_assert(qk_session_bind(s, token[2]));
  greet(s, token[3]);
  cr_assert(qk_session_bind(s, token[2]), "BIND of the last HELLO has not come");
  cr_assert_not(qk_session_bind(s, token[1]));
  cr_assert(qk_session_bind(s, token[3]));
  cr_assert_not(qk_session_bind(s, token[2]));
  qk_session_destroy(&sessions, s);
}
