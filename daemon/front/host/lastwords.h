/*
 * lastwords.h: what a process said last on its standard error that may tell why it ended: its last
 * error, or where it logged none the last line that is not of the log (of a library, the C runtime,
 * mpirun); and the last such lines together. Pure.
 */
#ifndef QK_FRONT_LASTWORDS_H
#define QK_FRONT_LASTWORDS_H

#include <stddef.h>

enum { QK_LAST_WORDS_MAX = 160, QK_LAST_LINES = 3 };

typedef struct qk_last_words {
  char error[QK_LAST_WORDS_MAX], other[QK_LAST_LINES][QK_LAST_WORDS_MAX];
  unsigned others; /* lines so far: the n-th is in other[n % QK_LAST_LINES] */
} qk_last_words_t;

/* A line without its newline, of base/log.h in either format or of anything else. */
void qk_last_words_hear(qk_last_words_t *words, const char *line, size_t n);
/* Printable ASCII; "": nothing that tells. */
const char *qk_last_words_tell(const qk_last_words_t *words);
/* The last lines that are not of the log, oldest first, with " / " between them, cut to size; "":
 * none. */
void qk_last_words_recount(const qk_last_words_t *words, char *text, size_t size);

#endif
