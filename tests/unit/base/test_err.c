#include <criterion/criterion.h>
#include <string.h>

#include "daemon/base/err.h"

Test(err, first_cause_wins) {
  qk_err_t err = {0};
  cr_expect_eq(qk_fail(&err, QK_TRUNCATED, "at byte %d", 7), QK_TRUNCATED);
  cr_expect_eq(qk_fail(&err, QK_INTERNAL, "later"), QK_INTERNAL);
  cr_expect_eq(err.code, QK_TRUNCATED);
  cr_expect_str_eq(err.text, "at byte 7");
  cr_expect_eq(qk_fail(NULL, QK_BUSY, "no one listens"), QK_BUSY);
}

Test(err, prefix_goes_before_and_never_overflows) {
  qk_err_t err = {0};
  qk_err_prefix(&err, "nothing to explain");
  cr_expect_str_empty(err.text);
  qk_fail(&err, QK_BAD_FORMAT, "no header");
  qk_err_prefix(&err, "file %s", "a.lime");
  cr_expect_str_eq(err.text, "file a.lime: no header");
  char text[sizeof err.text];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  qk_err_t full = {0};
  qk_fail(&full, QK_BAD_FORMAT, "%s", text);
  qk_err_prefix(&full, "f");
  cr_expect_eq(strlen(full.text), sizeof full.text - 1);
  cr_expect_eq(strncmp(full.text, "f: xxx", 6), 0);
}

Test(err, quotes_a_peer_without_what_a_terminal_would_obey) {
  char text[8];
  qk_err_quote("a b~\n\xd9\x1b[2J", text, sizeof text);
  cr_expect_str_eq(text, "a b~???");
  qk_err_quote(NULL, text, sizeof text);
  cr_expect_str_eq(text, "");
}

Test(status, every_row_has_name_text_and_range) {
#define X(name, number, retryable, text)                                                           \
  cr_expect_str_eq(qk_status_name(QK_##name), #name);                                              \
  cr_expect_str_eq(qk_status_text(QK_##name), text);                                               \
  cr_expect_eq(qk_status_retryable(QK_##name), retryable);                                         \
  cr_expect(number == 0 || (number >= 100 && number < 500));
  QK_STATUS_TABLE(X)
#undef X
  cr_expect_str_eq(qk_status_name((qk_status_t)77), "UNKNOWN");
}
