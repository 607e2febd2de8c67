/*
 * refused.h: texts that a parser must refuse. For Criterion programs.
 */
#ifndef QK_TESTS_REFUSED_H
#define QK_TESTS_REFUSED_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/base/err.h"

/* Parses the text into an output of its own; *touched: whether the output has changed. */
typedef qk_status_t refused_parse_fn(const char *text, bool *touched, qk_err_t *err);

/* Expects BAD_ARGUMENT with a sentence that has `said` in it, and an untouched output. */
static inline void expect_refused(refused_parse_fn *parse, const char *text, const char *said) {
  bool touched = false;
  qk_err_t err = {0};
  cr_expect_eq(parse(text, &touched, &err), QK_BAD_ARGUMENT, "\"%s\"", text);
  cr_expect(strstr(err.text, said) != NULL, "\"%s\": \"%s\" is not in \"%s\"", text, said,
            err.text);
  cr_expect_not(touched, "\"%s\": outputs are set only on success", text);
}

#endif
