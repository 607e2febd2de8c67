/*
 * restore_impl.h: what is read of the journal at the start. Private to restore.c and restore_rhs.c.
 */
#ifndef QK_FRONT_RESTORE_IMPL_H
#define QK_FRONT_RESTORE_IMPL_H

#include "daemon/front/restore/restore.h"
#include "daemon/front/state/rows.h"

typedef struct scene {
  qk_service_t *service;
  double now;
  qk_setup_t *away;                    /* setups that were dropped */
  qk_err_t err;                        /* a setup that cannot be made */
  qk_err_t shortage;                   /* of memory, for what was promised */
  bool nameless;                       /* the operator of the command line's setup was lost */
  qk_job_t *job;                       /* whose rows are read */
  int64_t jobs, own, rhs, again, lost; /* own: jobs for the setup of the command line */
} scene_t;

/* The row of a right-hand side of scene->job: it is as it was, or near to it. restore_rhs.c. */
qk_rhs_row_fn qk_restore_rhs;

#endif
