/* Faces, parts and chiralities of spinors of any number of components, on the GPU. */
#include "cuda/body/coarse_fields.h"

#include "cuda/args/mg_args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int threads = 128;

inline unsigned blocks_of(int64_t items) {
  return (unsigned)((items + threads - 1) / threads);
}

template <class S, int N>
__global__ void __launch_bounds__(threads) chiral_kernel(chiral_body<S, N> body, int64_t lanes) {
  const int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (i < lanes) body.run({i / QK_TILE, (int)(i % QK_TILE)});
}

template <class S> qk_status_t chiral_launch(qk_ops_ctx_t *ctx, const qk_chiral_args_t &a) {
  constexpr int N = row_reals<S>;
  const int64_t lanes = tiles_of(a.in, N) * QK_TILE;
  chiral_kernel<<<blocks_of(lanes), threads, 0, qk_gpu(ctx)->stream[0]>>>(chiral_of<S, N>(a),
                                                                          lanes);
  return qk_gpu_launched(ctx, "chiral");
}

/* 16-byte pieces of a lane: of whatever precision, a tile is [piece][lane]. */
inline int pieces_of(const qk_spinor_t &f) {
  return 2 * f.ncomp * qk_prec_bytes(f.prec) / 16;
}

/* Pieces of a face. */
inline int64_t face_pieces(const qk_coarse_pack_args_t &a, int mu) {
  const int64_t lanes = a.in.ntile == 0 ? 1 : a.in.ntile * QK_TILE;
  return pack_sites(a.lat, a.in_parity, mu) * lanes * pieces_of(a.in);
}

/* blockIdx.y: 2 * mu + ahead; a thread moves one piece. */
__global__ void __launch_bounds__(threads)
    coarse_pack_kernel(const __grid_constant__ qk_coarse_pack_args_t a, uint32_t pieces) {
  const int mu = (int)blockIdx.y / 2, ahead = (int)blockIdx.y % 2;
  uint4 *to = (uint4 *)a.to[mu][ahead].data;
  if (to == nullptr) return;
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  const uint32_t ntile = (uint32_t)a.in.ntile, lane = i % QK_TILE, piece = i / QK_TILE % pieces;
  const uint32_t tile = i / QK_TILE / pieces;
  const int w = (int)(ntile == 0 ? tile * QK_TILE + lane : tile / ntile);
  if (w >= pack_sites(a.lat, a.in_parity, mu)) return;
  const int64_t site = coarse_pack_site(a.lat, a.in_parity, mu, ahead, w);
  if (site < 0) return;
  const int64_t from = ntile == 0 ? site / QK_TILE : site * ntile + tile % ntile;
  const int from_lane = (int)(ntile == 0 ? site % QK_TILE : lane);
  to = (uint4 *)((char *)to + turn_bytes(a.turns, 1));
  to[i] = ((const uint4 *)a.in.data)[(from * pieces + piece) * QK_TILE + from_lane];
}

/* A thread moves one piece, to the fields of all ranks. */
template <bool put>
__global__ void __launch_bounds__(threads)
    part_kernel(const __grid_constant__ qk_part_args_t a, uint32_t pieces) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  const uint32_t ntile = (uint32_t)a.part.ntile, lane = i % QK_TILE, piece = i / QK_TILE % pieces;
  const uint32_t tile = i / QK_TILE / pieces;
  const uint32_t n = ntile == 0 ? tile * QK_TILE + lane : tile / ntile;
  if (n >= a.part.nsites) return;
  const int64_t site = part_site(a, (int)n);
  const int64_t there = ntile == 0 ? site / QK_TILE : site * ntile + tile % ntile;
  const int there_lane = (int)(ntile == 0 ? site % QK_TILE : lane);
  const int64_t at = (there * pieces + piece) * QK_TILE + there_lane;
  const int64_t turn = turn_bytes(a.turns, put ? 1 : 0);
  uint4 *part = (uint4 *)a.part.data + i;
  if constexpr (put) {
    const uint4 v = *part;
    for (int k = 0; k < a.n; k++) ((uint4 *)((char *)a.of[k] + turn))[at] = v;
  } else {
    *part = ((const uint4 *)((const char *)a.of[0] + turn))[at];
  }
}

template <bool put>
qk_status_t part_launch(qk_ops_ctx_t *ctx, const qk_part_args_t *a, const char *name) {
  const qk_status_t status = qk_args_part(ctx, a);
  if (status != QK_OK) return status;
  const uint32_t pieces = (uint32_t)pieces_of(a->part);
  const int64_t lanes = a->part.ntile == 0 ? 1 : a->part.ntile * QK_TILE;
  part_kernel<put>
      <<<blocks_of(a->part.nsites * lanes * pieces), threads, 0, qk_gpu(ctx)->stream[0]>>>(*a,
                                                                                           pieces);
  return qk_gpu_launched(ctx, name);
}

} // namespace

qk_status_t part_put(qk_ops_ctx_t *ctx, const qk_part_args_t *a) {
  return part_launch<true>(ctx, a, "part_put");
}

qk_status_t part_get(qk_ops_ctx_t *ctx, const qk_part_args_t *a) {
  return part_launch<false>(ctx, a, "part_get");
}

qk_status_t coarse_pack(qk_ops_ctx_t *ctx, const qk_coarse_pack_args_t *a) {
  const qk_status_t status = qk_args_coarse_pack(ctx, a);
  if (status != QK_OK) return status;
  int64_t most = 0;
  for (int mu = 0; mu < 4; mu++) {
    const bool packed = a->to[mu][0].data != nullptr || a->to[mu][1].data != nullptr;
    const int64_t n = packed ? face_pieces(*a, mu) : 0;
    most = n > most ? n : most;
  }
  if (most == 0) return QK_OK;
  coarse_pack_kernel<<<dim3(blocks_of(most), 8), threads, 0, qk_gpu(ctx)->stream[0]>>>(
      *a, (uint32_t)pieces_of(a->in));
  return qk_gpu_launched(ctx, "coarse_pack");
}

qk_status_t chiral(qk_ops_ctx_t *ctx, const qk_chiral_args_t *a) {
  const qk_status_t status = qk_args_chiral(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->in.prec,
                      [=](auto s) { return chiral_launch<stored<decltype(s)>>(ctx, *a); });
}

} // namespace QK_NS
