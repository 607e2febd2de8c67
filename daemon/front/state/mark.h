/*
 * mark.h: a file beside the journal that counts its transactions: what SQLite reads of a
 * write-ahead log that is damaged, or gone, looks like a journal of some time before. Written in
 * place and never brought to the disk: what it counts outlives the process, and of the machine's
 * end only what the journal had brought there is asked for.
 */
#ifndef QK_FRONT_MARK_H
#define QK_FRONT_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

enum { QK_MARK_BOOT = 37 };

typedef struct qk_mark {
  int fd;                   /* -1: there is none */
  char boot[QK_MARK_BOOT];  /* of the machine, now; "": not known */
  uint64_t commits, synced; /* all transactions; those that are on the disk */
} qk_mark_t;

/* Which boot of the machine this is: a name of 36 bytes, or "". */
void qk_mark_boot(char boot[QK_MARK_BOOT]);
/* Opens or makes the file. *least: transactions that the journal must have. Errors as of
 * folder.h. */
qk_status_t qk_mark_open(qk_mark_t *mark, const char *path, uint64_t *least, qk_err_t *err);
/* The journal has so many. */
void qk_mark_put(qk_mark_t *mark, uint64_t commits, bool synced);
void qk_mark_close(qk_mark_t *mark);

#endif
