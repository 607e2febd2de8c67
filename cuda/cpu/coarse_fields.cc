/* Faces and chiralities of spinors of any number of components, on the CPU. */
#include "cuda/body/coarse_fields.h"

#include "cuda/args/mg_args.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

template <class S> void chiral_as(const qk_chiral_args_t &a) {
  constexpr int N = row_reals<S>;
  const chiral_body<S, N> body = chiral_of<S, N>(a);
  const int64_t tiles = tiles_of(a.in, N);
#pragma omp parallel for schedule(static) if (tiles * N > 256 * 24)
  for (int64_t i = 0; i < tiles; i++) body.run({i, 0});
}

/* WORD: an unsigned integer as large as a real. */
template <class WORD> void pack_face(const qk_coarse_pack_args_t &a, int mu, int ahead) {
  const int slots = pack_sites(a.lat, a.in_parity, mu), ntile = a.in.ntile, n = 2 * a.in.ncomp;
  const WORD *in = (const WORD *)a.in.data;
  WORD *to = (WORD *)((char *)a.to[mu][ahead].data + turn_bytes(a.turns, 1));
  const int64_t words = (int64_t)ntile * QK_TILE * n;
#pragma omp parallel for schedule(static) if (slots * words > 16384)
  for (int w = 0; w < slots; w++) {
    const int64_t site = coarse_pack_site(a.lat, a.in_parity, mu, ahead, w);
    if (site < 0) continue;
    if (ntile > 0) {
      memcpy(to + w * words, in + site * words, (size_t)words * sizeof(WORD));
      continue;
    }
    const WORD *p = in + site / QK_TILE * n * QK_TILE + site % QK_TILE;
    WORD *q = to + (int64_t)(w / QK_TILE) * n * QK_TILE + w % QK_TILE;
    for (int c = 0; c < n; c++) q[c * QK_TILE] = p[c * QK_TILE];
  }
}

} // namespace

qk_status_t coarse_pack(qk_ops_ctx_t *ctx, const qk_coarse_pack_args_t *a) {
  const qk_status_t status = qk_args_coarse_pack(ctx, a);
  if (status != QK_OK) return status;
  for (int mu = 0; mu < 4; mu++)
    for (int ahead = 0; ahead < 2; ahead++) {
      if (a->to[mu][ahead].data == NULL) continue;
      if (a->in.prec == QK_DOUBLE)
        pack_face<uint64_t>(*a, mu, ahead);
      else
        pack_face<uint32_t>(*a, mu, ahead);
    }
  return QK_OK;
}

qk_status_t chiral(qk_ops_ctx_t *ctx, const qk_chiral_args_t *a) {
  const qk_status_t status = qk_args_chiral(ctx, a);
  if (status != QK_OK) return status;
  with_storage(a->in.prec, [=](auto s) { chiral_as<stored<decltype(s)>>(*a); });
  return QK_OK;
}

} // namespace QK_NS
