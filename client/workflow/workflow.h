/*
 * workflow.h: what the files of the command `workflow` share.
 *
 *   workflow.c     the command, its plan and its run
 *   workfile.h     the file that describes it
 *   pieces.h       what is finished
 *   owndaemon.h    daemons of its own
 *   workreport.c   means over configurations
 */
#ifndef QUARKCTL_WORKFLOW_H
#define QUARKCTL_WORKFLOW_H

#include <jansson.h>

#include "client/workflow/pieces.h"

/* Means over configurations of all finished pieces, for each quark, source, channel and momentum; the time
 * slices of a source are averaged in each configuration first. Tables on stdout; or *list is an array of
 * them. png: NULL, or file for a picture. */
int ctl_workreport_print(const ctl_pieces_t *pieces);
int ctl_workreport_json(const ctl_pieces_t *pieces, json_t **list);
int ctl_workreport_png(const ctl_pieces_t *pieces, const char *png, bool *drawn);

#endif
