/*
 * text.h: numbers as text, and sentences that say why something is refused.
 *
 * Pure, for any thread. Numbers are read and written as in the locale "C", which is that of a
 * process that has set no other.
 */
#ifndef QK_PROTO_TEXT_H
#define QK_PROTO_TEXT_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  QK_REAL_TEXT = 32,      /* any number as text, with its end */
  QK_PARAM_WORD_MAX = 95, /* bytes of a word that is a parameter */
  QK_WHY = 480
};

/* The shortest text that reads back as x. */
void qk_real_text(double x, char text[QK_REAL_TEXT]);
/* A decimal number at *text, finite; moves *text behind it. */
bool qk_real_scan(const char **text, double *x);
/* All of text is one. */
bool qk_real_parse(const char *text, double *x);

/* Writes why, in printable ASCII, and returns false. */
__attribute__((format(printf, 2, 3))) bool qk_refuse(char why[QK_WHY], const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
