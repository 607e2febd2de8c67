/*
 * each.h: bodies that work on one site at a time, or on eight, on the CPU: sites shared among the
 * threads. The launchers that body/gauge_calls.h and body/linkfield_calls.h are written over, and
 * those of stencils.
 */
#ifndef QK_CUDA_CPU_EACH_H
#define QK_CUDA_CPU_EACH_H

#include "cuda/cpu/ctx.h"
#include "cuda/site/geom.h"
#include "cuda/site/sites.h"
#include "cuda/site/storage.h"

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

/* ---- stencils: the operator, Gaussian smearing; their arguments have lat, region and out ---- */

template <class A> bool in_region(const A &a, const site_pos &s) {
  return a.region == QK_REGION_ALL || reads_ghosts(a.lat, s.x) == (a.region == QK_REGION_BOUNDARY);
}

/* body(rhs_site of the first tile of RHS, parity): one site and eight RHS at a time. */
template <class S, class A, class F>
void in_sites(const A &a, const region_sites &sites, const F &body) {
#pragma omp parallel
  {
    kept_links<real<S>> kept;
#pragma omp for schedule(static)
    for (int n = 0; n < sites.nwork; n++) {
      const site_pos here = site_at(a.lat, sites, n);
      const rhs_site<real<S>> at = {one_site::with_lane(here, a.out.ntile, 0, 0), &kept};
      body(at, here.parity);
    }
  }
}

/* body(rhs_site, parity): each tile of the RHS with the links that its site has loaded. */
template <class S, class A, class F>
void in_blocks(const A &a, const region_sites &sites, const F &body) {
  in_sites<S>(a, sites, [&](rhs_site<real<S>> at, int parity) {
    for (int tile = 0; tile < a.out.ntile; tile++) {
      at.first = (uint32_t)tile * QK_TILE;
      body(at, parity);
    }
  });
}

/* body(eight_sites, parity): eight sites and one RHS at a time. */
template <class A, class F> void in_rows(const A &a, const walk &w, const F &body) {
#pragma omp parallel for schedule(static)
  for (int n = 0; n < w.nwork; n += QK_TILE) {
    eight_sites at;
    at.wanted = 0;
    for (int l = 0; l < QK_TILE; l++) {
      at.at[l] = site_at(a.lat, w, n + l);
      at.wanted = (uint8_t)(at.wanted | in_region(a, at.at[l]) << l);
    }
    if (at.wanted != 0) body(at, at.at[0].parity);
  }
}

} // namespace
} // namespace QK_NS
#endif
