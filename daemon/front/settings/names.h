/*
 * names.h: which names setups may have.
 */
#ifndef QK_FRONT_NAMES_H
#define QK_FRONT_NAMES_H

#include "daemon/base/err.h"

/* Letters, digits, '.', '_' and '-', the first a letter or digit, at most QK_SETUP_NAME_MAX; not
 * "default", which stands for whichever is. what: whose name it is, for the error. QK_BAD_ARGUMENT.
 * Pure. */
qk_status_t qk_names_check(const char *what, const char *name, qk_err_t *err);

#endif
