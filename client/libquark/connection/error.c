#include "client/libquark/connection/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/status.h"

quark_code_t quark__fail(quark_error_t *err, quark_code_t code, const char *fmt, ...) {
  if (!err) return code;
  memset(err, 0, sizeof *err);
  err->code = code;
  err->retryable = qk_status_retryable((qk_status_t)code);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(err->text, sizeof err->text, fmt, ap);
  va_end(ap);
  return code;
}

quark_code_t quark__hand_on(quark_error_t *err, const quark_error_t *cause) {
  if (err) *err = *cause;
  return cause->code;
}
