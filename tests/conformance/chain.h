/*
 * chain.h: a Wilson-clover operator, or a twisted one, and coarse ones below it, for tests.
 */
#ifndef QK_TESTS_CHAIN_H
#define QK_TESTS_CHAIN_H

#include "daemon/engine/operator/galerkin.h"
#include "tests/support/rig.h"

enum { CHAIN_LEVELS = 3 };

/* One hierarchy: levels above 0 are made of noise, which is as good as any
 * vectors for what is tested. */
typedef struct chain {
  qk_rig_t rig;
  int nlevel;
  qk_geom_t geom[CHAIN_LEVELS];
  qk_device_t dev[CHAIN_LEVELS];
  qk_work_t *work[CHAIN_LEVELS];
  qk_operator_t *op[CHAIN_LEVELS];
  qk_prolongator_t *down[CHAIN_LEVELS];
} chain_t;

typedef struct chain_plan {
  const char *gauge;
  int nlevel, nvec[2], block[2][4];
  double csw, twist; /* boundary phases exp(i twist (1, 2, 3, 4)) */
  qk_prec_t store;
  double mu, factor; /* mu not 0: twisted clover, with factor on the last level */
} chain_plan_t;

void chain_open(chain_t *c, const chain_plan_t *plan);
void chain_close(chain_t *c);

#endif
