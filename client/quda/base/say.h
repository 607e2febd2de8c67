/*
 * say.h: messages, settings, and the end of the program. What cannot be served ends it with one
 * sentence, as QUDA does; what the solver does not reach is told in the result of a call.
 */
#ifndef QUARK_QUDA_SAY_H
#define QUARK_QUDA_SAY_H

#include <stdbool.h>
#include <stddef.h>

#include "client/quark.h"

/* "quark-quda: " and a sentence to stderr, of rank 0 alone; only if QUARK_QUDA_LOG is set. */
void qk_quda_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Likewise, always. */
void qk_quda_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The sentence, and the end of all ranks. One sentence is printed even if all ranks come here. */
_Noreturn void qk_quda_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for an error of libquark; exit code 75 if trying again may help. */
_Noreturn void qk_quda_fail(const char *what, const quark_error_t *err);
/* A member of a struct that would change what is computed. */
_Noreturn void qk_quda_refuse_member(const char *member, double value, const char *only);
/* What rank 0 does before the program ends that way: it takes leave of the daemon. */
void qk_quda_at_end(void (*leave)(void));
/* The end, with what was to be done before it. */
_Noreturn void qk_quda_end(int code);
void *qk_quda_alloc(size_t bytes); /* or the end */
/* Seconds of a clock that does not jump. */
double qk_quda_now(void);
/* QUARK_QUDA_<name>, or NULL if it is not set or empty. */
const char *qk_quda_setting(const char *name);
/* Its number, from least to most; otherwise if it is not set; or the end. */
double qk_quda_number_setting(const char *name, double least, double most, double otherwise);

#endif
