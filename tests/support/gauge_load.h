/*
 * gauge_load.h: load a gauge file on one rank, as quark-gauge does: probe, read, judge.
 */
#ifndef QK_TESTS_GAUGE_LOAD_H
#define QK_TESTS_GAUGE_LOAD_H

#include "daemon/engine/gauge/gauge.h"

typedef struct gauge_load {
  qk_comm_t *comm;
  qk_geom_t geom;
  qk_gauge_info_t info;
  qk_gauge_check_t check;
  double *links;
  qk_err_t err;
} gauge_load_t;

/* The first status that is not QK_OK. In all cases end with gauge_unload. */
qk_status_t gauge_load(const char *path, const int dims_hint[4], gauge_load_t *g);
void gauge_unload(gauge_load_t *g);

/* Replaces the file at path; aborts where that fails. */
void gauge_save(const char *path, const void *data, size_t n);

#endif
