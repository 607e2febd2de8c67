/*
 * pieces.h: the finished pieces of a workflow: those in its file OUT, and those that are not merged into
 * it yet, each in a file of its own in the folder OUT.parts.
 *
 * A piece counts when its file is complete and has its name; so it survives the end of this process,
 * however that comes. One process at a time works on OUT (a lock on the folder). Functions return exit
 * codes and have printed the reason.
 */
#ifndef QUARKCTL_PIECES_H
#define QUARKCTL_PIECES_H

#include "client/analysis/corrfile.h"

typedef struct ctl_pieces {
  const char *out;
  char *folder;
  int lock; /* descriptor of the folder; -1: none, for reading alone */
  int n;
  qk_corrpiece_t *piece;
  char **part; /* files of those that are not merged */
  int nparts, next;
} ctl_pieces_t;

/* Reads all that is finished. write: makes the folder and locks it; damaged files in it are told and
 * removed. out is borrowed. */
int ctl_pieces_open(const char *out, bool write, ctl_pieces_t *pieces);
void ctl_pieces_close(ctl_pieces_t *pieces);

/* NULL: not finished. */
const qk_corrpiece_t *ctl_pieces_find(const ctl_pieces_t *pieces, const char *config,
                                      const char *quark, const char *label);
/* Takes the piece, also where it fails. */
int ctl_pieces_add(ctl_pieces_t *pieces, qk_corrpiece_t *piece);
/* All into OUT; the folder vanishes. */
int ctl_pieces_merge(ctl_pieces_t *pieces);

#endif
