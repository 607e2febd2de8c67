/*
 * engine_argv.h: the command line that starts an engine, and what tells one engine from another.
 */
#ifndef QK_FRONT_ENGINE_ARGV_H
#define QK_FRONT_ENGINE_ARGV_H

#include "daemon/front/settings/settings.h"

enum { QK_ARGS_MAX = 64 };

typedef struct qk_engine_argv {
  char *argv[QK_ARGS_MAX + 1]; /* borrowed, and of texts; ends with NULL */
  char mpirun[512], ranks[24], grace[24];
} qk_engine_argv_t;

enum { QK_ENGINE_LABEL = QK_SETUP_NAME_MAX + 28 };

/* What opens messages about an engine: "", "NAME: ", "replica 1: " or "NAME, replica 1: ". */
void qk_engine_label(const char *setup, int replica, int replicas, char label[QK_ENGINE_LABEL]);

/* Whether engines wait for another front when this one has gone. */
bool qk_engine_argv_lasts(const qk_settings_t *settings);

/* program: path of quark-engine. Strings are borrowed; the command must stay where it is. Pure. */
void qk_engine_argv_make(const qk_settings_t *settings, const char *program, const char *endpoint,
                         qk_engine_argv_t *command);

/* Hash of everything that an engine would be started with now: its command line without the
 * endpoint, its LOAD, and size, time and inode of program and gauge file. Engines with equal
 * fingerprints are interchangeable. Without memory it returns 0, which equals no other. */
uint64_t qk_engine_argv_fingerprint(const qk_settings_t *settings, const char *program,
                                    const char *checkpoint, int replica);

#endif
