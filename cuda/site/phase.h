/*
 * phase.h: plane waves exp(i 2 pi (px x/Lx + py y/Ly + pz z/Lz)) at global sites, to rounding;
 * exactly 1 for p = 0. Multiples of the full turn are taken off in integers first.
 */
#ifndef QK_SITE_PHASE_H
#define QK_SITE_PHASE_H

#include <math.h>

#include "cuda/site/lane.h"

namespace QK_NS {

/* v: real and imaginary part. |mom[j]| < global[j]; x: global coordinates. */
QK_ANY void plane_wave(const int32_t mom[3], const int32_t global[4], const int x[4], double v[2]) {
  double turns = 0;
  for (int j = 0; j < 3; j++) turns += (double)((int64_t)mom[j] * x[j] % global[j]) / global[j];
  v[0] = cos(6.28318530717958647692 * turns);
  v[1] = sin(6.28318530717958647692 * turns);
}

} // namespace QK_NS
#endif
