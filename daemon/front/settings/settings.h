/*
 * settings.h: what quarkd was told, checked. The table in settings.c is the only list of flags,
 * keys, defaults and limits, but for the parameters of actions (parameters.h).
 */
#ifndef QK_FRONT_SETTINGS_H
#define QK_FRONT_SETTINGS_H

#include <stdbool.h>

#include "daemon/base/config/config.h"
#include "daemon/base/log.h"
#include "daemon/front/settings/parameters.h"
#include "proto/action/fix_text.h"
#include "proto/limits.h"
#include "proto/mg_keys.h"

enum { QK_NUMA_AUTO, QK_NUMA_ON, QK_NUMA_OFF }; /* --numa */
enum { QK_SPOOL_WAITING, QK_SPOOL_ALL };        /* --spool */

typedef struct qk_settings {
  /* as given */
  const char *gauge, *dims_text, *boundary_text, *grid_text, *walltime_text,
      *walltime_file, /* NULL: walltime says it */
      *deflate_text;
  bool ignore_checksum, single_rhs, local;
  const char *fix_text;
  const char *action; /* NULL: as csw says */
  qk_parameters_t parameter;
  int solver, precision, link_form, backend; /* rows of proto/choices.h */
  int64_t staging;
  int batching;             /* 0 is continuous */
  int64_t slots, ranks;     /* slots 0: chosen by the engine */
  int64_t replicas;         /* engines of a setup */
  const char *devices_text; /* NULL: as they are numbered */
  int numa;
  const char *mg[QK_MG_KEY_COUNT];     /* words of mg_keys.h; NULL: not given */
  const char *mg_checkpoint, *mg_from; /* mg_from: NULL: from noise */
  const char *mpirun, *engine;
  const char *file_roots; /* NULL: no files of clients */
  const char *state;      /* NULL: nothing outlives the daemon */
  int spool;
  const char *journal; /* its journal; NULL: in it */
  const char *listen, *listen_data, *http, *http_names, *endpoint_file,
      *pidfile;                          /* http: NULL is none */
  int64_t data_threads;                  /* 0: the loop does it */
  const char *curve_key, *curve_clients; /* both or neither */
  const char *setup_name;                /* of the setup that quarkd starts with */
  int64_t max_setups, max_sessions;
  const char *gauge_roots; /* NULL: the folder of gauge */
  int64_t max_memory;      /* 0: chosen, service/limits.c */
  int64_t keep_memory;     /* of one user; 0: three quarters of max_memory */
  int64_t user_memory;     /* 0: no limit but max_memory */
  int64_t eigen_memory;    /* of engines, for eigenvectors; 0: chosen, service/limits.c */
  int64_t spill;           /* bytes; 0: nothing leaves memory */
  int64_t user_rhs;        /* 0: no limit */
  int64_t user_setups;     /* private setups of one user; 0: none may be loaded */
  double lease, fetch_time, keep_time, detach_time, drain_timeout, start_timeout, engine_timeout,
      engine_grace; /* seconds */
  int log_level, log_format;
  /* made from them */
  int dims[4]; /* zeros: not given */
  int grid[4]; /* zeros: chosen by the engine */
  /* Devices of this host that replicas take, each as many as it has ranks; 0: as they are
   * numbered. */
  int ndevices;
  uint32_t device[QK_DEVICES_MAX];
  qk_values_t op; /* action and parameters */
  double boundary[8];
  qk_fix_recipe_t fix; /* the gauge that links are brought to */
  /* Lowest vectors that solves begin with; 0: none, or all of the name. The name of those that a
   * setup keeps; NULL: they are made. */
  int64_t deflate;
  const char *deflate_from;
  double walltime;       /* seconds from the start of quarkd; 0: none */
  const char *multigrid; /* the file that qk_checkpoint_claim has found; NULL: as mg_checkpoint */
  qk_config_row_t *rows; /* of config; NULL: they belong to other settings */
  qk_config_t *config;
} qk_settings_t;

/* As qk_config_parse: false to leave with *exit_code (0, 64, 78). */
bool qk_settings_parse(qk_settings_t *settings, int argc, char **argv, int *exit_code);
/* Reads file and command line again and takes over what can change while quarkd runs
 * (QK_CONFIG_LIVE in the table); tells of each setting that differs. Errors: as at the start;
 * nothing has changed then. */
qk_status_t qk_settings_reread(qk_settings_t *settings, qk_config_change_fn tell, void *arg,
                               qk_err_t *err);
void qk_settings_fini(qk_settings_t *settings);

/* Whether solves can begin with those lowest vectors: QK_BAD_ARGUMENT, QK_TOO_LARGE. field: what
 * has the name. Pure. */
qk_status_t qk_settings_check_deflate(const qk_settings_t *settings, const char *field,
                                      qk_err_t *err);
/* Numbers of devices in devices_text, enough for all replicas: QK_BAD_ARGUMENT. */
qk_status_t qk_settings_read_devices(qk_settings_t *settings, qk_err_t *err);
/* Seconds of "SECONDS" or "[[D-]HH:]MM:SS", at most a year. QK_BAD_ARGUMENT. Pure. */
qk_status_t qk_settings_walltime(const char *text, double *seconds, qk_err_t *err);

const char *qk_settings_solver(const qk_settings_t *settings);
const char *qk_settings_precision(const qk_settings_t *settings);
const char *qk_settings_backend(const qk_settings_t *settings);
int qk_settings_link_reals(const qk_settings_t *settings); /* 0: chosen by the engine */
#endif
