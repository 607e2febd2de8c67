/*
 * deflation_kit.h: what a deflation takes out of noise, of any kind of vectors.
 */
#ifndef QK_TESTS_DEFLATION_KIT_H
#define QK_TESTS_DEFLATION_KIT_H

#include "daemon/engine/eigen/deflation.h"
#include "tests/support/rig.h"

/* Noise of a seed in a field of even sites. */
void set_columns(const qk_rig_t *rig, qk_field_t *f, uint64_t seed);
/* Of its columns. */
void column_norms(const qk_rig_t *rig, const qk_field_t *f, double *norm);

/* The deflated residual is smaller, and its overlap with Mhat v_i is gone: deflating it again gives
 * nothing (`rest` of what came first). Apply allocates nothing. */
void expect_deflated(qk_rig_t *rig, qk_deflation_t *d, qk_prec_t prec, int nrhs, double rest);

#endif
