/*
 * ticket.h: the file that a detached command leaves for `quarkctl fetch`.
 *
 * A ticket is a small JSON file beside the output. Its mode is 0600, since everyone who knows the
 * client id may fetch. It names the daemon, the client and its requests, and what the output file
 * will say about configuration and source. The daemon knows the rest (ATTACH).
 *
 * Functions that return an int return an exit code and have printed the reason.
 */
#ifndef QUARKCTL_TICKET_H
#define QUARKCTL_TICKET_H

#include "client/cli/solving.h"
#include "proto/limits.h"

enum { CTL_TICKET_PARTS = 256 /* requests that a client may have */ };

/* A request: the next nrhs right-hand sides of the work. */
typedef struct ctl_part {
  uint64_t request;
  uint32_t nrhs;
} ctl_part_t;

typedef struct ctl_ticket {
  json_t *root; /* of a ticket that was read: it owns the texts below */
  const char *endpoint, *server_key;
  uint8_t client[QUARK_CLIENT_ID_BYTES];
  uint64_t kept_s;
  int parts;
  ctl_part_t part[CTL_TICKET_PARTS];
  const char *kind, *source; /* as in ctl_work_t */
  const char *format;        /* of the output; NULL: as its name says */
  const char *input;         /* the file of right-hand sides, or NULL */
  quark_report_t report;     /* the members of setup that output files name */
} ctl_ticket_t;

/* Makes the name OUT.ticket. Fails if it is too long, or if there is such a file. */
int ctl_ticket_path(const char *out, char path[QK_PATH_MAX]);
int ctl_ticket_write(const char *path, const ctl_ticket_t *ticket);
/* The caller must call fini, even if this fails. */
int ctl_ticket_read(const char *path, ctl_ticket_t *ticket);
void ctl_ticket_fini(ctl_ticket_t *ticket);
/* Right-hand sides of all parts. */
int64_t ctl_ticket_nrhs(const ctl_ticket_t *ticket);
/* The client id as 32 hexadecimal digits. */
void ctl_ticket_client(const ctl_ticket_t *ticket, char text[2 * QUARK_CLIENT_ID_BYTES + 1]);
/* [{"request": 1, "nrhs": 12}, ...] */
json_t *ctl_ticket_parts(const ctl_ticket_t *ticket);

/* Makes the daemon forget the requests of the ticket, and waits for its answer. False: there was
 * none, and err says why. */
bool ctl_ticket_release(const ctl_ticket_t *ticket, quark_connection_t *conn, quark_error_t *err);

#endif
