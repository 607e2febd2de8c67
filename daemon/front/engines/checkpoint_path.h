/*
 * checkpoint_path.h: where the multigrid of a setup is kept.
 */
#ifndef QK_FRONT_CHECKPOINT_PATH_H
#define QK_FRONT_CHECKPOINT_PATH_H

#include "daemon/front/settings/settings.h"

/* Where settings and environment alone would give all quarkds of a user one file (mg-checkpoint
 * auto, no state folder), this one takes the first of multigrid, multigrid.2, ... that no other
 * has: path, to which settings->multigrid points from then on; "": all are taken. *lock stays open
 * as long as it is ours; -1: none is needed, or the file system has none. Errors:
 * qk_runtime_checkpoint. */
qk_status_t qk_checkpoint_claim(qk_settings_t *settings, char path[QK_PATH_MAX + 1], int *lock,
                                qk_err_t *err);

/* The file, or the folder that holds files of all setups (mg-checkpoint of the settings); "": none.
 * setup: its name; "": the one that quarkd was started with. Errors: qk_runtime_checkpoint. */
qk_status_t qk_checkpoint_path(const qk_settings_t *settings, const char *setup,
                               char path[QK_PATH_MAX + 1], qk_err_t *err);
bool qk_checkpoint_is_folder(const char *path);

#endif
