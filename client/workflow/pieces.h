/*
 * pieces.h: the finished pieces of a workflow.
 *
 * They are in its file OUT, or, until they are merged into it, each in a file of its own in the
 * folder OUT.parts. A piece is finished when its file is complete and has its name, so it survives
 * any end of this process. A lock on the folder keeps a second process away. Functions return exit
 * codes and have printed the reason.
 */
#ifndef QUARKCTL_PIECES_H
#define QUARKCTL_PIECES_H

#include "client/analysis/corrfile.h"

typedef struct ctl_pieces {
  const char *out;
  char *folder;
  int lock; /* descriptor of the folder; -1: none, to read only */
  int n;
  qk_corrpiece_t *piece;
  char **part; /* files of the pieces that are not merged */
  int nparts, next;
} ctl_pieces_t;

/* Reads all finished pieces. write: makes the folder and locks it; damaged files in it are reported
 * and removed. out is borrowed. */
int ctl_pieces_open(const char *out, bool write, ctl_pieces_t *pieces);
void ctl_pieces_close(ctl_pieces_t *pieces);

/* NULL: the piece is not finished. */
const qk_corrpiece_t *ctl_pieces_find(const ctl_pieces_t *pieces, const char *config,
                                      const char *quark, const char *label);
/* Takes the piece, even if it fails. */
int ctl_pieces_add(ctl_pieces_t *pieces, qk_corrpiece_t *piece);
/* Merges all pieces into OUT and removes the folder. */
int ctl_pieces_merge(ctl_pieces_t *pieces);

#endif
