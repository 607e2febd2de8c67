/*
 * eo_masses.h: several masses of M = m - 1/2 hop with hop^+ = -hop, staggered fermions:
 *
 *   M^+ M = m^2 + A,  A = -1/4 hop hop,  which keeps parities apart
 */
#ifndef QK_ENGINE_EO_MASSES_H
#define QK_ENGINE_EO_MASSES_H

#include "daemon/engine/operator/operator.h"

extern const qk_masses_ops_t qk_eo_masses;

#endif
