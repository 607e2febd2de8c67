/* The operator on the CPU: sites shared among the threads,
 * in vectors of eight RHS or eight sites. */
#include "cuda/args/hop_args.h"
#include "cuda/body/pack.h"
#include "cuda/cpu/each.h"
#include "cuda/cpu/rows/hop_rows.h"
#include "cuda/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

region_sites hop_sites(const qk_hop_args_t &a) {
  return sites_of(a.lat, a.region, a.out_parity,
                  walk_in_rows(box_of(a.lat, a.region), a.out_parity));
}

template <class S, bool DRESSED> void hop_dressed(const qk_hop_args_t &a) {
  const hop_numbers<real<S>> num = hop_numbers_of<real<S>>(a);
  if (a.out.ntile > 0)
    in_sites<S>(a, hop_sites(a), [&](const rhs_site<real<S>> &at, int parity) {
      hop_rows<S, DRESSED>{a, num, at, parity}.run();
    });
  else /* in the order of the tiles */
    in_rows(a, walk_over(a.lat, a.out_parity, a.lat.l), [&](const eight_sites &at, int parity) {
      hop_body<eight_sites, S, 0, true, DRESSED>{a, num, at, parity}.run();
    });
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
  with_storage(qk_hop_prec(args), [=](auto s) { hop_as<stored<decltype(s)>>(*args); });
  return QK_OK;
}

qk_status_t hop_each(qk_ops_ctx_t *ctx, const qk_hop_each_args_t *args) {
  const char *misfit = qk_hop_each_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "hop_each: %s", misfit);
  for (int k = 0; k < args->n; k++) {
    const qk_hop_args_t one = qk_hop_each_one(args, k);
    with_storage(one.out.prec, [=](auto s) { hop_as<stored<decltype(s)>>(one); });
  }
  return QK_OK;
}

qk_status_t pack(qk_ops_ctx_t *ctx, const qk_pack_args_t *args) {
  const char *misfit = qk_pack_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "pack: %s", misfit);
  with_storage(args->in.prec, [=](auto s) { pack_as<stored<decltype(s)>>(*args); });
  return QK_OK;
}

} // namespace QK_NS
