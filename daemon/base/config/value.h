/*
 * value.h: one value of a configuration: text to number or word, and back. For config.c.
 */
#ifndef QK_BASE_CONFIG_VALUE_H
#define QK_BASE_CONFIG_VALUE_H

#include "daemon/base/config/config.h"

enum { QK_CONFIG_STRING_MAX = 4095 }; /* bytes of a STRING without a limit, or of an item */

qk_config_type_t qk_config_type_of(const qk_config_row_t *row);

/* Puts what the text says at *value, for all types but STRING and LIST. On error it is unchanged.
 * `where` opens the error text. */
qk_status_t qk_config_value_set(const qk_config_row_t *row, void *value, const char *where,
                                const char *text, qk_err_t *err);

/* The value as it would be written; a LIST with commas. Cut where out has no room. */
void qk_config_value_show(const qk_config_row_t *row, const void *value, char *out, size_t size);

/* A limit as it may be given: sizes with the greatest suffix that keeps them whole. */
const char *qk_config_limit_text(const qk_config_row_t *row, double limit, char out[32]);

#endif
