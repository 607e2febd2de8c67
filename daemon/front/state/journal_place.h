/*
 * journal_place.h: a journal in a folder of its own (--journal), on another device than the state
 * folder. Two small files hold them together: STATE/journal.at says where the journal is,
 * JOURNAL/journal.of whose it is; both have the same random number. So a state folder is not begun
 * anew because its journal was forgotten, is not mounted, or is another one.
 */
#ifndef QK_FRONT_JOURNAL_PLACE_H
#define QK_FRONT_JOURNAL_PLACE_H

#include "daemon/base/err.h"

/* Both folders are locked by the caller, and their paths absolute. journal: NULL, or the same path:
 * it is in the state folder. Writes both files where the journal is there for the first time.
 * QK_BAD_ARGUMENT: the folders do not belong together, with what to do; QK_IO_ERROR. */
qk_status_t qk_journal_place(const char *state, const char *journal, qk_err_t *err);

#endif
