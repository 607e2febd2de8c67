/*
 * fallback.h: another libquda, QUARK_QUDA_FALLBACK, for what is not served here. It is opened at
 * the first function that it has, with symbols of its own, and its structs must be those of the
 * header.
 */
#ifndef QUARK_QUDA_FALLBACK_H
#define QUARK_QUDA_FALLBACK_H

#include <stdbool.h>

/* Its function of that name; NULL: there is no other library, or it lacks the function and
 * `needed` is false. Else the end, with one sentence. */
void *qk_quda_other(const char *name, bool needed);

/* What in the structs of an opened library is not as in the header; NULL: nothing. */
const char *qk_quda_differs(void *library);

#endif
