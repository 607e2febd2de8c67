/*
 * setup_request.h: checks a LOAD and combines it with the settings that the
 * daemon was started with.
 *
 * Links that are here already are "digest:HEX16" (service/fields.h). Gauge files of clients must
 * lie below roots, folders that the daemon's operator names. Their path
 * is absolute or relative to a root, and must still be below that root when all links are resolved.
 * The engine then opens the resolved path. So users who may write in a root are trusted with
 * everything in it, and nobody else is.
 */
#ifndef QK_FRONT_SETUP_REQUEST_H
#define QK_FRONT_SETUP_REQUEST_H

#include "daemon/front/settings/settings.h"
#include "proto/quark.pb-c.h"

/* Finds the file `path` below one of the roots ("DIR[:DIR...]") and resolves its links.
 * QK_NOT_FOUND, with the same text for all causes; QK_BAD_ARGUMENT: too long. */
qk_status_t qk_setup_request_find(const char *roots, const char *path, char found[QK_PATH_MAX + 1],
                                  qk_err_t *err);

/* Copies base and sets the fields that the message has. gauge: memory for out->gauge, unless it
 * is that of base. trusted: the message was checked before, and its gauge is taken as it is.
 * Errors: QK_BAD_ARGUMENT, QK_TOO_LARGE, and those of qk_setup_request_find. */
qk_status_t qk_setup_request_settings(const Quark__Load *load, const qk_settings_t *base,
                                      bool trusted, char gauge[QK_PATH_MAX + 1], qk_settings_t *out,
                                      qk_err_t *err);

/* Packs the message with configuration and operator filled in from settings, so that it does not
 * depend on how the next daemon is started. NULL without memory. The caller frees it. */
uint8_t *qk_setup_request_pack(const Quark__Load *load, const qk_settings_t *settings,
                               size_t *bytes);

#endif
