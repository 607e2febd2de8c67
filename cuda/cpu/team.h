/* team.h: the one thread that works on a matrix by itself
 * (body/coarse_setup.h, body/aggregate.h). */
#ifndef QK_CUDA_CPU_TEAM_H
#define QK_CUDA_CPU_TEAM_H

#include "cuda/site/lane.h"

namespace QK_NS {

struct alone {
  QK_HD static int index() { return 0; }
  QK_HD static int size() { return 1; }
  QK_HD static int row() { return 0; }
  QK_HD static int rows() { return 1; }
  QK_HD static int lane() { return 0; }
  QK_HD static int lanes() { return 1; }
  QK_HD static void sync() {}
  QK_HD static void sync_row() {}
};

} // namespace QK_NS
#endif
