/*
 * adopt.h: what a front that was killed leaves to the next one on its state folder: engines that
 * still have their setups loaded, and the private folder with their sockets. Noted in the journal;
 * nothing is where there is no journal.
 *
 * The next front takes over an engine that it would start in the same way: its command line, its
 * LOAD and the files that both name are as they were. Any other is ended, and the place that it
 * leaves is free before an engine is started.
 */
#ifndef QK_FRONT_ADOPT_H
#define QK_FRONT_ADOPT_H

#include "daemon/front/host/procid.h"
#include "daemon/front/state/journal.h"

enum { QK_ADOPTED_MAX = 64, QK_SOCKET_MAX = 144 };

typedef struct qk_adopted {
  int64_t setup; /* id in the journal; 0: the one of the command line */
  qk_procid_t process;
  uint64_t fingerprint;
  char endpoint[QK_SOCKET_MAX]; /* that the engine connects to; its FIFO is beside it */
} qk_adopted_t;

/* An engine has been started, or has ended. What the journal cannot take is logged. */
void qk_adopt_note(qk_journal_t *journal, const qk_adopted_t *adopted);
void qk_adopt_forget(qk_journal_t *journal, int64_t setup);
/* Those of the front before; how many. */
int qk_adopt_list(qk_journal_t *journal, qk_adopted_t list[QK_ADOPTED_MAX]);
/* Ends the engine, which nobody wants, waits until it has gone (10 s at most) and forgets it. */
void qk_adopt_end_engine(qk_journal_t *journal, const qk_adopted_t *adopted);

/* The private folder: that of the front before, without what nobody needs any more, where it is
 * still ours and nobody else's; else a new one (qk_runtime_dir). Errors: QK_IO_ERROR; dir[0] is
 * '\0' then. */
qk_status_t qk_adopt_dir(qk_journal_t *journal, char *dir, size_t size, qk_err_t *err);

/* Path of the FIFO for the stderr of the engine that connects to this endpoint. */
void qk_adopt_fifo(const char *endpoint, char path[QK_SOCKET_MAX]);

#endif
