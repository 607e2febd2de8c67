/*
 * ticket.h: what a detached command leaves for `quarkctl fetch`: a small JSON file beside the output, of mode 0600, since who
 * knows a client id may fetch. It names the daemon, the client and its requests, and what the output file says of the
 * configuration and the source; all else the daemon knows (ATTACH).
 *
 * Errors: the reason is printed; exit codes.
 */
#ifndef QUARKCTL_TICKET_H
#define QUARKCTL_TICKET_H

#include "client/cli/solving.h"
#include "proto/limits.h"

enum { CTL_TICKET_PARTS = 256 /* what the daemon lets a client have */ };

/* A request: the next nrhs right-hand sides of the work. */
typedef struct ctl_part {
  uint64_t request;
  uint32_t nrhs;
} ctl_part_t;

typedef struct ctl_ticket {
  json_t *root; /* what was read, whose the texts below are then */
  const char *endpoint, *server_key;
  uint8_t client[QUARK_CLIENT_ID_BYTES];
  uint64_t kept_s;
  int parts;
  ctl_part_t part[CTL_TICKET_PARTS];
  const char *kind, *source,
      *input;            /* as in ctl_work_t; input: file of right-hand sides, or NULL */
  quark_report_t report; /* the members of setup that files tell */
} ctl_ticket_t;

/* OUT.ticket, or the reason why not: it is too long, or there. */
int ctl_ticket_path(const char *out, char path[QK_PATH_MAX]);
int ctl_ticket_write(const char *path, const ctl_ticket_t *ticket);
/* fini is due in any case. */
int ctl_ticket_read(const char *path, ctl_ticket_t *ticket);
void ctl_ticket_fini(ctl_ticket_t *ticket);
/* Of all parts. */
int64_t ctl_ticket_nrhs(const ctl_ticket_t *ticket);
/* 32 hexadecimal digits. */
void ctl_ticket_client(const ctl_ticket_t *ticket, char text[2 * QUARK_CLIENT_ID_BYTES + 1]);
/* [{"request": 1, "nrhs": 12}, ...] */
json_t *ctl_ticket_parts(const ctl_ticket_t *ticket);

/* The daemon lets go of the requests of the ticket, and has said so. False: it did not answer, and
 * err tells more. */
bool ctl_ticket_release(const ctl_ticket_t *ticket, quark_connection_t *conn, quark_error_t *err);

#endif
