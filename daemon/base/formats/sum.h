/*
 * sum.h: the checksum of a field in a SciDAC file: the xor of the CRC-32 of each site's bytes,
 * rotated by its number modulo 29 and 31. Sums of parts of a lattice combine by xor. Pure.
 */
#ifndef QK_BASE_FORMATS_SUM_H
#define QK_BASE_FORMATS_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"

/* Adds n sites of so many bytes, as they stand in the file from site `first` on. */
void qk_scidac_sum_add(int64_t first, int64_t n, int64_t bytes, const uint8_t *raw,
                       uint32_t sum[2]);
/* The text of the record scidac-checksum; its length. */
enum { QK_SCIDAC_SUM_TEXT = 256 };
int qk_scidac_sum_print(const uint32_t sum[2], char text[QK_SCIDAC_SUM_TEXT]);
/* The sum that such a text states: hexadecimal digits, with "0x" from tmLQCD and its relatives.
 * QK_BAD_FORMAT. */
qk_status_t qk_scidac_sum_parse(const char *text, uint32_t sum[2], qk_err_t *err);

#endif
