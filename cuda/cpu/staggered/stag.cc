/* The hop of colour vectors on the CPU: sites shared among the threads, in vectors of eight RHS or
 * eight sites. */
#include "cuda/args/stag_args.h"
#include "cuda/cpu/each.h"
#include "cuda/cpu/rows/stag_rows.h"
#include "cuda/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

template <class S, bool LONG> void stag_as(const qk_stag_args_t &a) {
  const stag_numbers<real<S>> num = stag_numbers_of<real<S>>(a);
  if (a.out.ntile > 0) {
    const walk w = walk_in_rows(a.lat, a.out_parity);
#pragma omp parallel for schedule(static)
    for (int n = 0; n < w.nwork; n++) {
      const site_pos here = site_at(a.lat, w, n);
      for (int tile = 0; tile < a.out.ntile; tile++) {
        const stag_one at = stag_one::with_lane(here, a.out.ntile, tile, 0);
        stag_rows<S, LONG>{a, num, at, here.parity}.run();
      }
    }
    return;
  }
  const walk w = walk_over(a.lat, a.out_parity, a.lat.l); /* the order of the tiles */
#pragma omp parallel for schedule(static)
  for (int n = 0; n < w.nwork; n += QK_TILE) {
    stag_eight at;
    for (int l = 0; l < QK_TILE; l++) at.at[l] = site_at(a.lat, w, n + l);
    stag_body<stag_eight, S, LONG, STAG_MASKED>{a, num, &at, at.at[0].parity}.run(
        [](int) { return 0; }, [](const auto &) {});
  }
}

/* One site of fields of one RHS. */
template <class S> void copy_site(const spinor<S> &from, int site, const spinor<S> &to, int there) {
  const S *p = from.data + (int64_t)(site / QK_TILE) * (QK_TILE * colour_reals) + site % QK_TILE;
  S *q = to.data + (int64_t)(there / QK_TILE) * (QK_TILE * colour_reals) + there % QK_TILE;
  for (int c = 0; c < colour_reals; c++) q[c * QK_TILE] = p[c * QK_TILE];
  if constexpr (storage<S>::scaled) to.scale[there] = from.scale[site];
}

template <class S> void pack_face(const qk_stag_pack_args_t &a, int mu, int ahead) {
  const int sites = stag_pack_sites(a, mu);
#pragma omp parallel for schedule(static)
  for (int w = 0; w < sites; w++) {
    for (int tile = 0; tile < a.in.ntile; tile++) stag_pack_lanes<S>(a, mu, ahead, w, tile, 0);
    if (a.in.ntile > 0) continue;
    const site_pos here = stag_pack_site(a, mu, ahead, w);
    const int base = a.in_parity == QK_FULL && here.parity == 1 ? a.lat.vcb : 0;
    copy_site(spinor_of<S>(a.in), base + here.cb, ghosts_of<S>(a.to[mu][ahead], a.turns, 1), w);
  }
}

/* red, by a pass over out. */
qk_status_t sum_squares(qk_ops_ctx_t *ctx, const qk_stag_args_t &a) {
  const qk_blas_args_t norm2 = stag_norm2_of_out(a);
  const qk_status_t status = blas(ctx, &norm2);
  for (int rhs = 0; status == QK_OK && a.more != NULL && rhs < a.out.nrhs; rhs++)
    if (a.mask == NULL || a.mask[rhs] != 0) a.red[2 * rhs] += a.c_more * a.more[2 * rhs];
  return status;
}

} // namespace

qk_status_t stag(qk_ops_ctx_t *ctx, const qk_stag_args_t *args) {
  const qk_status_t status = qk_args_stag(ctx, args);
  if (status != QK_OK) return status;
  with_storage(args->out.prec, [=](auto s) {
    using S = stored<decltype(s)>;
    if (args->links.naik.data != NULL)
      stag_as<S, true>(*args);
    else
      stag_as<S, false>(*args);
  });
  return args->red != NULL ? sum_squares(ctx, *args) : QK_OK;
}

qk_status_t stag_pack(qk_ops_ctx_t *ctx, const qk_stag_pack_args_t *args) {
  const qk_status_t status = qk_args_stag_pack(ctx, args);
  if (status != QK_OK) return status;
  with_storage(args->in.prec, [=](auto s) {
    for (int mu = 0; mu < 4; mu++)
      for (int ahead = 0; ahead < 2; ahead++)
        if (args->to[mu][ahead].data != NULL) pack_face<stored<decltype(s)>>(*args, mu, ahead);
  });
  return QK_OK;
}

} // namespace QK_NS

#include "cuda/body/staggered/stag_calls.h"
