/*
 * place.h: files that must stay what they were when they were opened. A file that was removed,
 * moved or covered by a mount can be written for ever through its descriptor, and nobody finds
 * again what is written. Known by device and inode. One thread.
 */
#ifndef QK_FRONT_PLACE_H
#define QK_FRONT_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/limits.h"

enum { QK_PLACES_MAX = 4, QK_PLACE_NAME = 32 };

typedef struct qk_places {
  char dir[QK_PATH_MAX + 1];
  int count;
  struct {
    char name[QK_PLACE_NAME];
    dev_t device;
    ino_t inode;
  } at[QK_PLACES_MAX];
} qk_places_t;

/* Notes the files of that folder which are there; names: with NULL behind them. */
void qk_places_note(qk_places_t *places, const char *dir, const char *const names[]);
/* False: one of them is not what it was; text: which, why, what to do. */
bool qk_places_check(const qk_places_t *places, char text[QK_TEXT_MAX]);

#endif
