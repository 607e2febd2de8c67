/* Markov chain updates on the CPU: four links at a time, shared among the threads. */
#include "cuda/body/links/update.h"
#include "cuda/cpu/ctx.h"

namespace QK_NS {
namespace {

template <class F> qk_status_t each_group(qk_ops_ctx_t *, int n, const F &body) {
#pragma omp parallel for schedule(static)
  for (int w = 0; w < n; w += QK_WIDE) body.group(w);
  return QK_OK;
}

} // namespace
} // namespace QK_NS

#include "cuda/body/links/update_calls.h"
