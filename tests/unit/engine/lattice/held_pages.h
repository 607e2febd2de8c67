/*
 * held_pages.h: host pages of the CPU's memory for tests: pieces are pinned only as far as the test
 * allows, and one of them may fail. One set a process.
 */
#ifndef QK_TESTS_HELD_PAGES_H
#define QK_TESTS_HELD_PAGES_H

#include "cuda/host_pages.h"

extern const qk_host_pages_t held_pages;

/* So many pieces in all may be pinned; the next one waits. At first none. */
void held_pages_allow(int pieces);
/* Piece number `bad`, counted from 1, cannot be pinned. */
void held_pages_fail(int bad);

/* What was asked for so far; bytes: of the piece that was pinned last. */
typedef struct held_pages_count {
  int mapped, unmapped, pinned, unpinned;
  size_t bytes;
} held_pages_count_t;
held_pages_count_t held_pages_asked(void);

#endif
