/*
 * workflow.h: what the files of the command `workflow` share.
 *
 *   workflow.c     the command, its plan and its run
 *   workfile.h     the file that describes it
 *   pieces.h       the finished pieces
 *   owndaemon.h    a daemon of its own
 *   workreport.c   means over configurations
 */
#ifndef QUARKCTL_WORKFLOW_H
#define QUARKCTL_WORKFLOW_H

#include <jansson.h>

#include "client/workflow/pieces.h"

/* Means over configurations of all finished pieces, for each quark, source, channel and momentum.
 * The time slices of a source are averaged in each configuration first. They are printed as tables,
 * or *list is an array of them, or they are drawn to the file png (NULL: not). Return exit codes.
 */
int ctl_workreport_print(const ctl_pieces_t *pieces);
int ctl_workreport_json(const ctl_pieces_t *pieces, json_t **list);
int ctl_workreport_png(const ctl_pieces_t *pieces, const char *png, bool *drawn);

#endif
