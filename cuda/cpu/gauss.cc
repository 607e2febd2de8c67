/* Gaussian smearing on the CPU: sites shared among the threads,
 * in vectors of eight RHS or sites. */
#include "cuda/body/gauss.h"
#include "cuda/args/hop_args.h"
#include "cuda/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

bool in_region(const qk_gauss_args_t &a, const site_pos &s) {
  return a.region == QK_REGION_ALL || reads_ghosts(a.lat, s.x) == (a.region == QK_REGION_BOUNDARY);
}

template <class S> void gauss_blocks(const qk_gauss_args_t &a, const walk &w) {
#pragma omp parallel
  {
    kept_links<real<S>> kept;
#pragma omp for schedule(static)
    for (int n = 0; n < w.nwork; n++) {
      const site_pos here = site_at(a.lat, w, n);
      if (!in_region(a, here)) continue;
      for (int tile = 0; tile < a.out.ntile; tile++) {
        const rhs_site<real<S>> at = {one_site::with_lane(here, a.out.ntile, tile, 0), &kept};
        gauss_body<rhs_site<real<S>>, S, 0, true>{a, at, here.parity}.run();
      }
    }
  }
}

template <class S> void gauss_rows(const qk_gauss_args_t &a, const walk &w) {
#pragma omp parallel for schedule(static)
  for (int n = 0; n < w.nwork; n += QK_TILE) {
    eight_sites at;
    at.wanted = 0;
    for (int l = 0; l < QK_TILE; l++) {
      at.at[l] = site_at(a.lat, w, n + l);
      at.wanted = (uint8_t)(at.wanted | in_region(a, at.at[l]) << l);
    }
    if (at.wanted != 0) gauss_body<eight_sites, S, 0, true>{a, at, at.at[0].parity}.run();
  }
}

template <class S> void gauss_as(const qk_gauss_args_t &a) {
  if (a.out.ntile > 0)
    gauss_blocks<S>(a, gauss_walk(a.lat));
  else
    gauss_rows<S>(a, walk_over(a.lat, QK_FULL, a.lat.l)); /* in the order of the tiles */
}

} // namespace

qk_status_t gauss(qk_ops_ctx_t *ctx, const qk_gauss_args_t *args) {
  const char *misfit = qk_gauss_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "gauss: %s", misfit);
  switch (args->out.prec) {
  case QK_DOUBLE:
    gauss_as<double>(*args);
    break;
  case QK_SINGLE:
    gauss_as<float>(*args);
    break;
  case QK_HALF:
    gauss_as<half>(*args);
    break;
  }
  return QK_OK;
}

} // namespace QK_NS
