/* Prolongator and restrictor on the GPU. */
#include "cuda/gpu/multigrid/transfer.cuh"

#include "cuda/args/mg_args.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

transfer_shape shape_of(const qk_transfer_t &t) {
  transfer_shape s = {};
  s.agg = t.agg;
  s.coarse = walk_in_rows(t.agg.coarse, QK_FULL);
  s.volume = 1;
  s.checker = -1;
  for (int mu = 0; mu < 4; mu++) {
    const int b = t.agg.block[mu];
    s.volume *= b;
    if (s.checker < 0 && b % 2 == 0) s.checker = mu;
    s.in[mu] = divider_by(s.checker == mu ? b / 2 : b);
  }
  s.odd_volume = s.volume % 2;
  if (s.checker < 0) s.checker = 0;
  s.naggr = 2 * t.agg.coarse.vcb;
  s.sets = ((s.volume + 1) / 2 + 3) / 4;
  s.pairs = t.ncomp / 4;
  s.pieces = t.ncomp == 12 ? 3 : (s.pairs + 1) / 2 * 2;
  s.groups = (t.nvec + 7) / 8;
  s.nvec = t.nvec;
  return s;
}

/* Threads of transfer_copy_kernel: one for eight words. */
int64_t copy_threads(const transfer_shape &s) {
  return (int64_t)2 * s.naggr * s.sets * s.pieces * s.groups * 32;
}

transfer_job job_of(const qk_transfer_args_t &a) {
  transfer_job job = {};
  job.s = shape_of(a.t);
  job.vectors = a.t.data;
  job.fine = a.fine;
  job.coarse = a.coarse;
  job.parity = a.parity == QK_ODD;
  job.parities = a.parity == QK_FULL ? 2 : 1;
  job.add = a.add;
  return job;
}

unsigned tile_groups(const transfer_job &job, int tiles) {
  return job.fine.ntile == 0 ? 1 : (unsigned)((job.fine.ntile + tiles - 1) / tiles);
}

/* ---- restrict: storage, then groups of vectors a block, then tiles ---- */

template <class M, class F, int NV, int T>
void start_restrict(const transfer_job &job, cudaStream_t stream) {
  const int lanes = job.fine.ntile == 0 ? 1 : QK_TILE;
  const size_t shared =
      sizeof(float4) * (size_t)(restrict_warps<F> * chiralities<F> * 4 * NV * lanes);
  const dim3 grid((unsigned)job.s.naggr, tile_groups(job, T), (unsigned)(job.s.groups / NV));
  restrict_kernel<M, F, NV, T><<<grid, 32 * restrict_warps<F>, shared, stream>>>(job);
}

template <class M, class F, int NV>
void restrict_tiles(const transfer_job &job, cudaStream_t stream) {
  if constexpr (sizeof(M) ==
                sizeof(half)) /* two tiles of sums do not fit beside vectors of floats */
    if (job.fine.ntile > 1) return start_restrict<M, F, NV, 2>(job, stream);
  start_restrict<M, F, NV, 1>(job, stream);
}

template <class M, class F> void restrict_vectors(const transfer_job &job, cudaStream_t stream) {
  if (job.s.groups % 4 == 0)
    restrict_tiles<M, F, 4>(job, stream);
  else if (job.s.groups % 3 == 0)
    restrict_tiles<M, F, 3>(job, stream);
  else
    restrict_tiles<M, F, 1>(job, stream);
}

template <class M> void restrict_as(const transfer_job &job, cudaStream_t stream) {
  if (job.fine.ncomp != 12)
    restrict_vectors<M, void>(job, stream);
  else if (job.fine.prec == QK_HALF)
    restrict_vectors<M, half>(job, stream);
  else
    restrict_vectors<M, float>(job, stream);
}

/* ---- prolong: likewise ---- */

template <class M, class F, int NV, int T>
void start_prolong(const transfer_job &job, cudaStream_t stream) {
  const dim3 grid((unsigned)job.s.naggr, tile_groups(job, T));
  prolong_kernel<M, F, NV, T><<<grid, 32 * prolong_warps, 0, stream>>>(job);
}

template <class M, class F, int NV>
void prolong_tiles(const transfer_job &job, cudaStream_t stream) {
  if (job.fine.ntile < 2)
    start_prolong<M, F, NV, 1>(job, stream);
  else
    start_prolong<M, F, NV, 2>(job, stream);
}

template <class M, class F> void prolong_vectors(const transfer_job &job, cudaStream_t stream) {
  if (job.s.groups == 4)
    prolong_tiles<M, F, 4>(job, stream);
  else if (job.s.groups == 3)
    prolong_tiles<M, F, 3>(job, stream);
  else
    prolong_tiles<M, F, 1>(job, stream);
}

template <class M> void prolong_as(const transfer_job &job, cudaStream_t stream) {
  if (job.fine.ncomp != 12)
    prolong_vectors<M, void>(job, stream);
  else if (job.fine.prec == QK_HALF)
    prolong_vectors<M, half>(job, stream);
  else
    prolong_vectors<M, float>(job, stream);
}

template <bool SET> qk_status_t copy(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args) {
  const qk_status_t status = qk_args_transfer_copy(ctx, args);
  if (status != QK_OK) return status;
  transfer_job job = {};
  job.s = shape_of(args->t);
  job.vectors = args->t.data;
  job.fine = args->v;
  const int64_t threads = copy_threads(job.s);
  const unsigned blocks = (unsigned)((threads + 255) / 256);
  const int first = args->first / QK_TILE;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (args->t.prec == QK_HALF)
    transfer_copy_kernel<half, SET><<<blocks, 256, 0, stream>>>(job, threads, first);
  else
    transfer_copy_kernel<float, SET><<<blocks, 256, 0, stream>>>(job, threads, first);
  return qk_gpu_launched(ctx, "transfer_copy");
}

} // namespace

size_t transfer_bytes(const qk_transfer_t *t) {
  return (size_t)copy_threads(shape_of(*t)) * 8 * (size_t)qk_prec_bytes(t->prec);
}

qk_status_t restrict_(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args) {
  const qk_status_t status = qk_args_transfer(ctx, args);
  if (status != QK_OK) return status;
  const transfer_job job = job_of(*args);
  if (args->t.prec == QK_HALF)
    restrict_as<half>(job, qk_gpu(ctx)->stream[0]);
  else
    restrict_as<float>(job, qk_gpu(ctx)->stream[0]);
  return qk_gpu_launched(ctx, "restrict");
}

qk_status_t prolong(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args) {
  const qk_status_t status = qk_args_transfer(ctx, args);
  if (status != QK_OK) return status;
  const transfer_job job = job_of(*args);
  if (args->t.prec == QK_HALF)
    prolong_as<half>(job, qk_gpu(ctx)->stream[0]);
  else
    prolong_as<float>(job, qk_gpu(ctx)->stream[0]);
  return qk_gpu_launched(ctx, "prolong");
}

qk_status_t transfer_set(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args) {
  return copy<true>(ctx, args);
}

qk_status_t transfer_get(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args) {
  return copy<false>(ctx, args);
}

} // namespace QK_NS
