/* groups.h: bodies that work on groups of QK_WIDE links or sites (site/wide.h), shared among the
 * threads: the launcher of update_calls.h and fix_calls.h on the CPU. */
#ifndef QK_CUDA_CPU_GROUPS_H
#define QK_CUDA_CPU_GROUPS_H

#include "cuda/cpu/ctx.h"
#include "cuda/site/wide.h"

namespace QK_NS {
namespace {

template <class F> qk_status_t each_group(qk_ops_ctx_t *, int n, const F &body) {
#pragma omp parallel for schedule(static)
  for (int w = 0; w < n; w += QK_WIDE) body.group(w);
  return QK_OK;
}

} // namespace
} // namespace QK_NS
#endif
