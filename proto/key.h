/*
 * key.h: CURVE keys as text and in files, for clients and the front.
 *
 * A key is 40 characters of Z85 (ZeroMQ RFC 32). A secret key stands alone on the only line of its file, which is a regular
 * file that nobody but its owner may read or write. Texts of errors name the file and never what is in it.
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

/* QK_IO_ERROR, QK_DENIED (mode, or no regular file) or QK_BAD_FORMAT; `why` is then a sentence. The caller wipes
 * secret (explicit_bzero) when done with it. */
qk_status_t qk_key_read_secret(const char *path, char secret[QK_KEY_TEXT], char *why, size_t size);

#ifdef __cplusplus
}
#endif
#endif
