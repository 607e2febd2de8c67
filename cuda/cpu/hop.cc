/* The operator on the CPU: sites shared among the threads,
 * in vectors of eight RHS or eight sites. */
#include "cuda/body/hop.h"
#include "cuda/args/hop_args.h"
#include "cuda/body/pack.h"
#include "cuda/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

bool in_region(const qk_hop_args_t &a, const site_pos &s) {
  return a.region == QK_REGION_ALL || reads_ghosts(a.lat, s.x) == (a.region == QK_REGION_BOUNDARY);
}

template <class S, bool DRESSED> void hop_blocks(const qk_hop_args_t &a, const walk &w) {
  const hop_numbers<real<S>> num = hop_numbers_of<real<S>>(a);
#pragma omp parallel
  {
    kept_links<real<S>> kept;
#pragma omp for schedule(static)
    for (int n = 0; n < w.nwork; n++) {
      const site_pos here = site_at(a.lat, w, n);
      if (!in_region(a, here)) continue;
      for (int tile = 0; tile < a.out.ntile; tile++) {
        const rhs_site<real<S>> at = {one_site::with_lane(here, a.out.ntile, tile, 0), &kept};
        hop_body<rhs_site<real<S>>, S, 0, true, DRESSED>{a, num, at, here.parity}.run();
      }
    }
  }
}

template <class S, bool DRESSED> void hop_rows(const qk_hop_args_t &a, const walk &w) {
  const hop_numbers<real<S>> num = hop_numbers_of<real<S>>(a);
#pragma omp parallel for schedule(static)
  for (int n = 0; n < w.nwork; n += QK_TILE) {
    eight_sites at;
    at.wanted = 0;
    for (int l = 0; l < QK_TILE; l++) {
      at.at[l] = site_at(a.lat, w, n + l);
      at.wanted = (uint8_t)(at.wanted | in_region(a, at.at[l]) << l);
    }
    if (at.wanted != 0)
      hop_body<eight_sites, S, 0, true, DRESSED>{a, num, at, at.at[0].parity}.run();
  }
}

template <class S, bool DRESSED> void hop_dressed(const qk_hop_args_t &a) {
  if (a.out.ntile > 0)
    hop_blocks<S, DRESSED>(a, walk_in_rows(a.lat, a.out_parity));
  else /* in the order of the tiles */
    hop_rows<S, DRESSED>(a, walk_over(a.lat, a.out_parity, a.lat.l));
}

template <class S> void hop_as(const qk_hop_args_t &a) {
  if (is_dressed(a))
    hop_dressed<S, true>(a);
  else
    hop_dressed<S, false>(a);
}

site_pos pack_site(const qk_pack_args_t &a, int mu, int ahead, int w) {
  int f;
  const int parity = pack_parity(a.lat, a.in_parity, mu, w, &f);
  if (f >= a.lat.face[mu]) f = 0;
  return face_site(a.lat, parity, mu, ahead ? a.lat.l[mu] - 1 : 0, f);
}

template <class S, int N> void pack_face(const qk_pack_args_t &a, int mu, int ahead) {
  const int sites = pack_sites(a.lat, a.in_parity, mu);
  if (a.in.ntile > 0) {
#pragma omp parallel for schedule(static)
    for (int w = 0; w < sites; w++) {
      const site_pos here = pack_site(a, mu, ahead, w);
      for (int tile = 0; tile < a.in.ntile; tile++) {
        const one_site at = one_site::with_lane(here, a.in.ntile, tile, 0);
        pack_body<one_site, S, 0, N>{a, at, here.parity, w}.run(mu, ahead);
      }
    }
  } else {
#pragma omp parallel for schedule(static)
    for (int w = 0; w < sites; w += QK_TILE) {
      eight_sites at;
      for (int l = 0; l < QK_TILE; l++) at.at[l] = pack_site(a, mu, ahead, w + l);
      pack_body<eight_sites, S, 0, N>{a, at, at.at[0].parity, w}.run(mu, ahead);
    }
  }
}

template <class S, int N> void pack_faces(const qk_pack_args_t &a) {
  for (int mu = 0; mu < 4; mu++)
    for (int ahead = 0; ahead < 2; ahead++)
      if (a.to[mu][ahead].data != NULL) pack_face<S, N>(a, mu, ahead);
}

template <class S> void pack_as(const qk_pack_args_t &a) {
  if (a.whole)
    pack_faces<S, 24>(a);
  else
    pack_faces<S, 12>(a);
}

} // namespace

qk_status_t hop(qk_ops_ctx_t *ctx, const qk_hop_args_t *args) {
  const char *misfit = qk_hop_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "hop: %s", misfit);
  switch (args->out.prec) {
  case QK_DOUBLE:
    hop_as<double>(*args);
    break;
  case QK_SINGLE:
    hop_as<float>(*args);
    break;
  case QK_HALF:
    hop_as<half>(*args);
    break;
  }
  return QK_OK;
}

qk_status_t pack(qk_ops_ctx_t *ctx, const qk_pack_args_t *args) {
  const char *misfit = qk_pack_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "pack: %s", misfit);
  switch (args->in.prec) {
  case QK_DOUBLE:
    pack_as<double>(*args);
    break;
  case QK_SINGLE:
    pack_as<float>(*args);
    break;
  case QK_HALF:
    pack_as<half>(*args);
    break;
  }
  return QK_OK;
}

} // namespace QK_NS
