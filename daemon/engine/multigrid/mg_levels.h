/*
 * mg_levels.h: small things about the levels of a hierarchy. Private to the files here.
 */
#ifndef QK_ENGINE_MG_LEVELS_H
#define QK_ENGINE_MG_LEVELS_H

#include "daemon/engine/multigrid/multigrid.h"

/* Frees the prolongator of level l and everything below it. */
void qk_mg_drop_levels(qk_mg_t *mg, int l);

/* Flavour -1 for n columns of a block, at most QK_MAX_RHS (operator.h); the caller frees it. Not
 * collective. */
qk_status_t qk_mg_all_minus(const qk_device_t *dev, int n, void **minus);

#endif
