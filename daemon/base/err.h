/*
 * err.h: a status with the sentence that explains it.
 *
 * A function that checks outside input takes a qk_err_t * last. Its text names the field, the value
 * and the limit ("dims[3] = 7: extents must be even"). Outputs are set only on success. The first
 * function to see an error fills it in; the others hand the status on.
 */
#ifndef QK_BASE_ERR_H
#define QK_BASE_ERR_H

#include <stddef.h>

#include "proto/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_err {
  qk_status_t code;
  char text[496];
} qk_err_t;

/* Fills *err (which may be NULL) and returns code, so that `return qk_fail(err, QK_..., ...)`
 * works. An error already there is kept: the first cause wins. */
__attribute__((format(printf, 3, 4))) qk_status_t qk_fail(qk_err_t *err, qk_status_t code,
                                                          const char *fmt, ...);

/* Text of a peer, made safe for errors and the log: bytes other than printable ASCII become '?'.
 * NULL gives "". */
void qk_err_quote(const char *text, char *out, size_t size);

/* Puts "prefix: " before the text, for callers that know the file or object it is about. */
__attribute__((format(printf, 2, 3))) void qk_err_prefix(qk_err_t *err, const char *fmt, ...);

#ifdef __cplusplus
}
#endif
#endif
