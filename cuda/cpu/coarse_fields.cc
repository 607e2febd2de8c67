/* Faces, parts and chiralities of spinors of any number of components, on the CPU. */
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

/* The reals of a site of one field to a site of another, which is a block like it. WORD: an
 * unsigned integer as large as a real. */
template <class WORD>
void copy_site(const qk_spinor_t &f, WORD *to, int64_t there, const WORD *from, int64_t here) {
  const int n = 2 * f.ncomp;
  const int64_t words = (int64_t)f.ntile * QK_TILE * n;
  if (f.ntile > 0) {
    memcpy(to + there * words, from + here * words, (size_t)words * sizeof(WORD));
    return;
  }
  const WORD *p = from + here / QK_TILE * n * QK_TILE + here % QK_TILE;
  WORD *q = to + there / QK_TILE * n * QK_TILE + there % QK_TILE;
  for (int c = 0; c < n; c++) q[c * QK_TILE] = p[c * QK_TILE];
}

template <class WORD> void pack_face(const qk_coarse_pack_args_t &a, int mu, int ahead) {
  const int slots = pack_sites(a.lat, a.in_parity, mu), ntile = a.in.ntile, n = 2 * a.in.ncomp;
  const WORD *in = (const WORD *)a.in.data;
  WORD *to = (WORD *)((char *)a.to[mu][ahead].data + turn_bytes(a.turns, 1));
  const int64_t words = (int64_t)ntile * QK_TILE * n;
#pragma omp parallel for schedule(static) if (slots * words > 16384)
  for (int w = 0; w < slots; w++) {
    const int64_t site = coarse_pack_site(a.lat, a.in_parity, mu, ahead, w);
    if (site >= 0) copy_site(a.in, to, w, in, site);
  }
}

template <class WORD> void part_move(const qk_part_args_t &a, bool put) {
  const int64_t turn = turn_bytes(a.turns, put ? 1 : 0), sites = a.part.nsites;
  WORD *part = (WORD *)a.part.data;
#pragma omp parallel for schedule(static) if (sites * a.part.ncomp * a.part.nrhs > 16384)
  for (int64_t n = 0; n < sites; n++) {
    const int64_t there = part_site(a, (int)n);
    for (int i = 0; i < (put ? a.n : 1); i++) {
      WORD *of = (WORD *)((char *)a.of[i] + turn);
      if (put)
        copy_site(a.part, of, there, part, n);
      else
        copy_site(a.part, part, n, of, there);
    }
  }
}

qk_status_t part_launch(qk_ops_ctx_t *ctx, const qk_part_args_t *a, bool put) {
  const qk_status_t status = qk_args_part(ctx, a);
  if (status != QK_OK) return status;
  if (a->part.prec == QK_DOUBLE)
    part_move<uint64_t>(*a, put);
  else
    part_move<uint32_t>(*a, put);
  return QK_OK;
}

} // namespace

qk_status_t part_put(qk_ops_ctx_t *ctx, const qk_part_args_t *a) {
  return part_launch(ctx, a, true);
}

qk_status_t part_get(qk_ops_ctx_t *ctx, const qk_part_args_t *a) {
  return part_launch(ctx, a, false);
}

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
