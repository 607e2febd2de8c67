/*
 * key.h: CURVE keys as text and in files, for clients and the front.
 *
 * A key is 40 characters of Z85 (ZeroMQ RFC 32). A secret key is the only line of its file, a
 * regular file that only its owner may read or write. Error texts name the file, never its content.
 */
#ifndef QK_PROTO_KEY_H
#define QK_PROTO_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_KEY_TEXT = 41, QK_KEY_BYTES = 32 }; /* with its end; as bytes */

bool qk_key_valid(const char *text);

/* QK_IO_ERROR, QK_DENIED (mode, or not a regular file) or QK_BAD_FORMAT; `why` then explains it.
 * The caller wipes secret (explicit_bzero) after use. */
qk_status_t qk_key_read_secret(const char *path, char secret[QK_KEY_TEXT], char *why, size_t size);

#ifdef __cplusplus
}
#endif
#endif
