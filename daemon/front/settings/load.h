/*
 * load.h: what a LOAD asks for: checked, and laid over what the daemon was started with.
 *
 * Gauge files of clients lie below roots, folders that the daemon's operator names: their path is taken relative to a root, or
 * absolute, and must still be below that root when all links are followed. What an engine then opens is the path without
 * links, so that whoever may write in a root is trusted with what is behind it, and nobody else.
 */
#ifndef QK_FRONT_LOAD_H
#define QK_FRONT_LOAD_H

#include "daemon/front/settings/settings.h"
#include "proto/quark.pb-c.h"

/* The file below one of the roots ("DIR[:DIR...]") that path names, without links. QK_NOT_FOUND, with one text for all
 * causes; QK_BAD_ARGUMENT: too long. */
qk_status_t qk_load_find(const char *roots, const char *path, char found[QK_PATH_MAX + 1],
                         qk_err_t *err);

/* base with what the message says. gauge: memory for out->gauge, unless it is that of base. trusted: the message has passed here
 * before, and its gauge is taken as it stands. Errors: QK_BAD_ARGUMENT, QK_TOO_LARGE, and those of qk_load_find. */
qk_status_t qk_load_settings(const Quark__Load *load, const qk_settings_t *base, bool trusted,
                             char gauge[QK_PATH_MAX + 1], qk_settings_t *out, qk_err_t *err);

/* The message with all that makes the configuration and the operator as in settings, packed: it means the same whatever the daemon
 * is started with later. NULL without memory. Freed by the caller. */
uint8_t *qk_load_pack(const Quark__Load *load, const qk_settings_t *settings, size_t *bytes);

#endif
