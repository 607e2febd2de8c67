/*
 * each.h: bodies that work on one site at a time, on the CPU: sites shared among the threads. The
 * launchers that body/gauge_calls.h and body/linkfield_calls.h are written over.
 */
#ifndef QK_CUDA_CPU_EACH_H
#define QK_CUDA_CPU_EACH_H

#include "cuda/cpu/ctx.h"
#include "cuda/site/geom.h"

namespace QK_NS {
namespace {

template <class F> qk_status_t each_site(qk_ops_ctx_t *, int nsites, const F &body) {
#pragma omp parallel for schedule(static)
  for (int s = 0; s < nsites; s++) body.site(s);
  return QK_OK;
}

/* Each chunk is summed in the order of its sites, and the chunks in theirs,
 * whatever the threads. */
template <class F>
qk_status_t reduce_sites(qk_ops_ctx_t *ctx, int nsites, const F &body, double *sum) {
  double *partial = qk_cpu(ctx)->partial;
  const int64_t chunks = nsites < QK_CPU_CHUNKS ? nsites : QK_CPU_CHUNKS;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < chunks; i++) {
    double *p = partial + i * QK_CPU_PARTIALS;
    const int first = (int)(nsites * i / chunks), last = (int)(nsites * (i + 1) / chunks);
    body.site(first, p);
    for (int s = first + 1; s < last; s++) {
      double v[F::n];
      body.site(s, v);
      F::join(p, v);
    }
  }
  for (int64_t i = 0; i < chunks; i++) F::join(sum, partial + i * QK_CPU_PARTIALS);
  return QK_OK;
}

} // namespace
} // namespace QK_NS
#endif
