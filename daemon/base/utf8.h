/*
 * utf8.h: text that others sent, made fit for logs, JSON and terminals.
 */
#ifndef QK_BASE_UTF8_H
#define QK_BASE_UTF8_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the character that text[0..n) begins with, 1 to 4; 0 where it is not UTF-8 (RFC 3629: no
 * overlong forms, no surrogates, nothing above U+10FFFF). n > 0. */
size_t qk_utf8_char(const char *text, size_t n);

/* In place: what is not UTF-8, and control characters (C0, DEL, C1), become '?', byte by byte. */
void qk_utf8_clean(char *text);

#ifdef __cplusplus
}
#endif
#endif
