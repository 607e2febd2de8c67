/*
 * clients.h: who may use the daemon over CURVE: a folder with one file for each authorised key.
 *
 * A file      key = 40 characters of Z85, the client's public key
 *             user = name, 1 to 64 printable characters without blanks
 *             role = read, submit or operate
 *             Each once, nothing else but comments. Names that begin with a dot are no client's.
 * Closed      A file that is damaged, no regular file, writable by its group or others, or repeats
 *             a key lets nobody in; a folder that cannot be read, is writable by others, or holds
 *             too many files, none at all. The log says which and why, once for each change, and
 *             never shows a key.
 * Current     refresh looks at names, times and sizes, and reads all files again where any differs.
 *             What it costs grows with the folder; what could not be read for a moment is tried
 *             again each time. moved looks at the folder alone, which shows what was added, taken
 *             away or renamed.
 */
#ifndef QK_FRONT_CLIENTS_H
#define QK_FRONT_CLIENTS_H

#include <stdint.h>

#include "daemon/base/err.h"
#include "proto/key.h"
#include "proto/limits.h"

/* What a peer may do; each role includes those before it. */
typedef enum qk_role {
  QK_ROLE_READ,   /* look: STATUS */
  QK_ROLE_SUBMIT, /* work of its own */
  QK_ROLE_OPERATE /* the daemon itself: SHUTDOWN */
} qk_role_t;

const char *qk_role_name(qk_role_t role);

typedef struct qk_client {
  char key[QK_KEY_TEXT];
  char user[QK_USER_MAX + 1];
  qk_role_t role;
} qk_client_t;

typedef struct qk_clients {
  const char *folder; /* borrowed */
  uint64_t seen;      /* checksum of names, times and sizes; 0: never read */
  uint64_t place;     /* the same of the folder itself */
  bool fresh;         /* that had just changed: its next change may bear the same time */
  uint64_t changes;   /* times that it was read */
  int count;
  int unsure; /* files that could not be read, for reasons that may be over soon */
  qk_client_t at[QK_CLIENTS_MAX];
} qk_clients_t;

void qk_clients_init(qk_clients_t *clients, const char *folder);
void qk_clients_refresh(qk_clients_t *clients);
/* Whether the folder itself has changed since the last refresh. */
bool qk_clients_moved(const qk_clients_t *clients);
/* By public key. NULL: not authorised. */
const qk_client_t *qk_clients_find(const qk_clients_t *clients, const char *key);

/* One file. Errors: QK_IO_ERROR, QK_DENIED, QK_BAD_FORMAT. */
qk_status_t qk_clients_read_file(const char *path, qk_client_t *client, qk_err_t *err);

#endif
