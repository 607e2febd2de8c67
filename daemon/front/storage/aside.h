/*
 * aside.h: what is in the state folder and does not fit is set aside, never deleted. DIR/aside-N (N
 * = 1, 2, ...) holds the journal as it was, files of the spool that no row explains, and why.txt,
 * one line for each thing, and for what is missing. quarkd makes such a folder when it first needs
 * one, looks into none, and tells of those that are there until somebody removes them.
 */
#ifndef QK_FRONT_ASIDE_H
#define QK_FRONT_ASIDE_H

#include <stdio.h>

#include "daemon/base/err.h"
#include "proto/limits.h"

enum { QK_ASIDE_PATH = QK_PATH_MAX + 32 };

typedef struct qk_aside {
  char dir[QK_PATH_MAX + 1];   /* the state folder */
  char folder[QK_ASIDE_PATH];  /* the one that this front has made, or else the latest; "": none */
  FILE *why;                   /* NULL: this front has made none */
  int folders, things, losses; /* that are there; what this front has set aside, and missed */
  char text[QK_PATH_MAX + 96]; /* of qk_aside_text */
} qk_aside_t;

/* Finds the folders that are there. */
void qk_aside_open(qk_aside_t *aside, const char *dir);
void qk_aside_close(qk_aside_t *aside);
/* Makes this front's folder where it has none yet. QK_IO_ERROR, QK_BAD_ARGUMENT (too long). */
qk_status_t qk_aside_make(qk_aside_t *aside, qk_err_t *err);
/* A thing that was set aside, and why: a line of why.txt, and of the log, which has the first ones
 * only. */
__attribute__((format(printf, 2, 3))) void qk_aside_note(qk_aside_t *aside, const char *fmt, ...);
/* Something that is missing from the folder: such a line, too. */
__attribute__((format(printf, 2, 3))) void qk_aside_miss(qk_aside_t *aside, const char *fmt, ...);
/* why.txt is on the disk: before anything changes that it explains. */
void qk_aside_sync(qk_aside_t *aside);
/* The end of the start: the log says how many things there are, and where. */
void qk_aside_tell(qk_aside_t *aside);
/* For reports: where, and how many; NULL where nothing is set aside. Good until the next call. */
const char *qk_aside_text(qk_aside_t *aside);

#endif
