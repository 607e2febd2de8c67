/*
 * mg_health.h: whether multigrid still does what it did when it was new.
 *
 * The figure watched is outer iterations per decimal digit of residual, in one mean over the first
 * solves and in one over the last ones. Where the second is more than twice the first, vectors are
 * to be refined; where that has not helped, the setup is to be made anew; where that has not
 * helped either, the figure is taken as the new measure. Pure.
 */
#ifndef QK_ENGINE_MG_HEALTH_H
#define QK_ENGINE_MG_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

/* RELOAD: of the checkpoint that another engine has written; never asked for here. */
typedef enum qk_mg_refresh {
  QK_MG_REFRESH_NONE,
  QK_MG_REFINE,
  QK_MG_REBUILD,
  QK_MG_RELOAD
} qk_mg_refresh_t;

typedef struct qk_mg_health {
  double first, lately;        /* iterations per digit */
  int64_t in_first, in_lately; /* solves that the means are made of */
  qk_mg_refresh_t tried;       /* since the measure was taken */
} qk_mg_health_t;

enum { QK_MG_HEALTH_SPAN = 8 }; /* solves before a mean counts */

/* Adds an ended solve: its status, tolerance and final residual. Solves that ask for more than
 * double precision can give, are cancelled or need no iteration are ignored. */
qk_mg_refresh_t qk_mg_health_add(qk_mg_health_t *health, qk_status_t status, int64_t iterations,
                                 double tol, double residual);
/* The refresh was applied, or could not be: the last solves are counted from here. */
void qk_mg_health_refreshed(qk_mg_health_t *health, qk_mg_refresh_t refresh);

#endif
