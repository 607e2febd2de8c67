/*
 * error.h: fills in a quark_error_t.
 *
 * Both functions return the code of the error, so that callers can write `return quark__fail(...)`.
 * err may be NULL. They may be called from any thread and need no mutex.
 */
#ifndef QUARK_ERROR_H
#define QUARK_ERROR_H

#include "client/quark.h"

/* Sets code, text and retryable; no advice on when to try again. */
__attribute__((format(printf, 3, 4))) quark_code_t
quark__fail(quark_error_t *err, quark_code_t code, const char *fmt, ...);
/* Copies an error that was stored earlier. */
quark_code_t quark__hand_on(quark_error_t *err, const quark_error_t *cause);

#endif
