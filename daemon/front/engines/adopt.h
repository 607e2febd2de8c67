/*
 * adopt.h: engines that a killed front has left to the next front with its state folder. They still
 * have their setups loaded; the private folder has their sockets. The journal records them; without
 * a journal nothing is left.
 *
 * The next front adopts an engine if it would start it in the same way: same command line, same
 * LOAD, and unchanged files. It ends any other engine, and waits for that before it starts a new
 * one.
 */
#ifndef QK_FRONT_ADOPT_H
#define QK_FRONT_ADOPT_H

#include "daemon/front/host/procid.h"
#include "daemon/front/settings/settings.h"
#include "daemon/front/state/journal.h"

enum { QK_ADOPTED_MAX = 256, QK_SOCKET_MAX = 144 };

typedef struct qk_adopted {
  int64_t setup; /* id in the journal; 0: the one of the command line */
  int replica;   /* of its engines */
  qk_procid_t process;
  uint64_t fingerprint;
  /* endpoint to which the engine connects; its FIFO is in the same folder */
  char endpoint[QK_SOCKET_MAX];
} qk_adopted_t;

/* Records that an engine has started or ended. Failures of the journal are logged. */
void qk_adopt_note(qk_journal_t *journal, const qk_adopted_t *adopted);
void qk_adopt_forget(qk_journal_t *journal, int64_t setup, int replica);
/* Lists the engines of the previous front; returns how many. */
int qk_adopt_list(qk_journal_t *journal, qk_adopted_t list[QK_ADOPTED_MAX]);
/* Why the engine cannot stand in for one with that fingerprint whose sockets would be in dir; NULL:
 * it can. */
const char *qk_adopt_misfit(const qk_adopted_t *adopted, const char *dir,
                            const qk_settings_t *settings, uint64_t fingerprint);
/* Ends an engine that is not adopted, waits until it has ended (at most 10 s), and removes its
 * record. */
void qk_adopt_end_engine(qk_journal_t *journal, const qk_adopted_t *adopted);

/* The private folder: that of the previous front, cleaned up, if it still belongs to this user
 * alone; else a new one (qk_runtime_dir). Errors: QK_IO_ERROR; dir[0] is '\0' then. */
qk_status_t qk_adopt_dir(qk_journal_t *journal, char *dir, size_t size, qk_err_t *err);

/* Path of the FIFO for the stderr of the engine that connects to this endpoint. */
void qk_adopt_fifo(const char *endpoint, char path[QK_SOCKET_MAX]);

#endif
