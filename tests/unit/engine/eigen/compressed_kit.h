/*
 * compressed_kit.h: low modes of a rig's operator as coefficients of a basis, in one call.
 */
#ifndef QK_TESTS_COMPRESSED_KIT_H
#define QK_TESTS_COMPRESSED_KIT_H

#include "daemon/engine/eigen/compressed.h"
#include "tests/support/rig.h"

/* The vectors of h become orthonormal on its aggregates, in two steps for each eight. */
void compressed_cut(qk_coherent_t *h);
/* n vectors, in single or double, with a basis of the lowest ones. */
qk_compressed_t *compressed_make(qk_rig_t *rig, const qk_coherent_cut_t *cut, int n, qk_prec_t prec,
                                 double tol);

#endif
