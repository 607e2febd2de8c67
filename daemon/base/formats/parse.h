/*
 * parse.h: numbers in texts of others, taken strictly: all of the text is the number, or none is.
 * Pure.
 */
#ifndef QK_BASE_FORMATS_PARSE_H
#define QK_BASE_FORMATS_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether all of it is printable ASCII: values from a file go into messages. */
bool qk_parse_printable(const char *text);
/* The whole of `text` as a decimal integer in lo..hi; false otherwise. No sign "+", no blanks. */
bool qk_parse_int(const char *text, int64_t lo, int64_t hi, int64_t *value);
/* The whole of `text` as 1 to 8 hexadecimal digits. */
bool qk_parse_hex(const char *text, uint32_t *value);
/* The whole of `text` as a finite decimal number; *unit is one in its last decimal. */
bool qk_parse_real(const char *text, double *value, double *unit);

#endif
