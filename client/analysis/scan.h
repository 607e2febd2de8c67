/*
 * scan.h: small steps through the text of an option.
 *
 * Each function moves *text behind what it has read and returns true, or leaves everything as it
 * was and returns false. Only qk_scan_blanks skips white space.
 */
#ifndef QK_CLIENT_SCAN_H
#define QK_CLIENT_SCAN_H

#include <stdbool.h>
#include <stdint.h>

/* Exactly this text. */
bool qk_scan_word(const char **text, const char *word);
/* A finite number. */
bool qk_scan_real(const char **text, double *value);
/* Decimal digits with an optional sign, from min to max. */
bool qk_scan_int(const char **text, int64_t min, int64_t max, int64_t *value);
/* Decimal digits. */
bool qk_scan_uint64(const char **text, uint64_t *value);
/* Zero or more blanks. */
void qk_scan_blanks(const char **text);

#endif
