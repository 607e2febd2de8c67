/*
 * checkpoint_path.h: where the multigrid of a setup is kept.
 */
#ifndef QK_FRONT_CHECKPOINT_PATH_H
#define QK_FRONT_CHECKPOINT_PATH_H

#include "daemon/front/settings/settings.h"

/* The file, or the folder that holds files of all setups (mg-checkpoint of the settings); "": none.
 * setup: its name; "": the one that quarkd was started with. Errors: qk_runtime_checkpoint. */
qk_status_t qk_checkpoint_path(const qk_settings_t *settings, const char *setup,
                               char path[QK_PATH_MAX + 1], qk_err_t *err);
bool qk_checkpoint_is_folder(const char *path);

#endif
