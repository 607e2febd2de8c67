/* Bases of many vectors on the GPU: pieces of P reals (body/vector_block.h)
 * go through shared memory. */
#include "cuda/body/vector_block.h"

#include "cuda/args/vector_block_args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/gpu/krylov/one_block.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int threads = 128;
template <int P> constexpr int words_of = P *QK_TILE;
constexpr int dot_items = 8; /* pieces that a block of threads has at a time */

/* Blocks along the lattice of a sum: a function of the lattice alone. */
int sum_blocks(int64_t sites) {
  return sites < 128 ? (int)sites : 128;
}

/* Item n of fields with per_tile pieces a site, of which there are less than 2^32. */
struct item_place {
  int64_t site;
  int piece;
  __device__ item_place(int64_t n, int per_tile)
      : site((uint32_t)n / (uint32_t)per_tile), piece((int)((uint32_t)n % (uint32_t)per_tile)) {}
};

template <class R> struct complex_of { R re, im; };

/* Component k of a lane of a piece in shared memory. */
template <class S, int P>
__device__ complex_of<real<S>> staged(const real<S> *piece, int k, int lane) {
  const real<S> *p = piece + inner<S, P>(2 * k, lane);
  return {p[0], p[1]};
}

/* Lane that word w of a piece in half belongs to. */
template <int P> __device__ int lane_of_word(int w) {
  constexpr int W = tile_shape<half, P>::W;
  return w / W % QK_TILE;
}

/* Word w of a piece of the basis, its value. */
template <class S, int P>
__device__ real<S> value(const pieces<S> &f, int64_t site, int tile, int piece, int w) {
  const real<S> x = widen(f.data[f.word(site, tile, piece) + w]);
  if constexpr (storage<S>::scaled) return x * f.scale[f.scale_at(site, tile) + lane_of_word<P>(w)];
  return x;
}

/* Word w, in the order of S, of a piece of y; a field of one RHS fills the first lane. */
template <class S, int P>
__device__ real<S> value_of_y(const pieces<real<S>> &y, int64_t site, int tile, int piece, int c,
                              int lane) {
  using R = real<S>;
  if (y.ntile > 0) return y.data[y.word(site, tile, piece) + inner<R, P>(c, lane)];
  if (lane != 0) return 0;
  return y.data[y.single_rhs_word(site, piece) + inner<R, P>(c, (int)(site % QK_TILE))];
}

/* ---- dot: 16 threads share the 8 x 8 pairs of two pieces, two by two each; 8 pieces at a time */

template <class S> struct dot_args {
  basis<S> v;
  pieces<real<S>> y;
  int64_t sites;
  int first; /* tile of the basis that blockIdx.y counts from */
  double *partial;
};

/* What a thread loads of the items from `at` on: words of the basis and of y, 0 from `to` on. */
template <class S, int P> struct dot_words {
  static constexpr int words = words_of<P>, n = dot_items * words / threads;
  real<S> x[n], z[n];
  __device__ void load(const dot_args<S> &a, const pieces<S> &v, int tile, int64_t at, int64_t to) {
    QK_UNROLL
    for (int i = 0; i < n; i++) {
      const int w = (int)threadIdx.x + i * threads, word = w % words;
      const int64_t item = at + w / words;
      x[i] = z[i] = 0;
      if (item >= to) continue;
      const item_place p(item, v.per_tile);
      x[i] = value<S, P>(v, p.site, tile, p.piece, word);
      z[i] = value_of_y<S, P>(a.y, p.site, blockIdx.z, p.piece, word / QK_TILE, word % QK_TILE);
    }
  }
};

template <class S, int P>
__global__ void __launch_bounds__(threads) dot_kernel(const __grid_constant__ dot_args<S> a) {
  using R = real<S>;
  constexpr int words = words_of<P>;
  __shared__ R vs[dot_items][words], ys[dot_items][words];
  __shared__ double share[dot_items][QK_TILE * QK_TILE][2];
  const int tile = a.first + blockIdx.y, item = threadIdx.x / 16, pair = threadIdx.x % 16;
  const int i0 = pair / 4 * 2, j0 = pair % 4 * 2;
  const pieces<S> v = a.v.block[tile / a.v.ntile];
  const int64_t from = a.sites * blockIdx.x / gridDim.x * v.per_tile,
                to = a.sites * (blockIdx.x + 1) / gridDim.x * v.per_tile;
  double sum[4][2] = {};
  dot_words<S, P> next;
  next.load(a, v, tile % a.v.ntile, from, to);
  for (int64_t at = from; at < to; at += dot_items) {
    __syncthreads();
    QK_UNROLL
    for (int i = 0; i < dot_words<S, P>::n; i++) {
      const int w = (int)threadIdx.x + i * threads, word = w % words;
      vs[w / words][word] = next.x[i];
      ys[w / words][inner<R, P>(word / QK_TILE, word % QK_TILE)] = next.z[i];
    }
    __syncthreads();
    next.load(a, v, tile % a.v.ntile, at + dot_items, to);
    R part[4][2] = {};
    QK_UNROLL
    for (int k = 0; k < P / 2; k++) {
      QK_UNROLL
      for (int p = 0; p < 4; p++) {
        const complex_of<R> s = staged<S, P>(vs[item], k, i0 + p / 2),
                            z = staged<R, P>(ys[item], k, j0 + p % 2);
        part[p][0] += s.re * z.re + s.im * z.im;
        part[p][1] += s.re * z.im - s.im * z.re;
      }
    }
    QK_UNROLL
    for (int p = 0; p < 4; p++) {
      sum[p][0] += part[p][0];
      sum[p][1] += part[p][1];
    }
  }
  for (int p = 0; p < 4; p++) {
    const int at = (i0 + p / 2) * QK_TILE + j0 + p % 2;
    share[item][at][0] = sum[p][0];
    share[item][at][1] = sum[p][1];
  }
  __syncthreads();
  const int word = threadIdx.x; /* 64 pairs, real and imaginary part */
  double total = 0;
  for (int k = 0; k < dot_items; k++) total += share[k][word / 2][word % 2];
  a.partial[(((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * threads +
            word] = total;
}

/* Adds the partial sums of `blocks` blocks in order: a thread has one number of a pair of tiles. */
__global__ void __launch_bounds__(threads)
    dot_finish_kernel(const double *partial, int blocks, int first, int columns, double *c) {
  const int word = threadIdx.x, i = (first + blockIdx.x) * QK_TILE + word / 2 / QK_TILE,
            j = blockIdx.y * QK_TILE + word / 2 % QK_TILE;
  const double *p =
      partial + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * blocks * threads + word;
  double sum = 0;
#pragma unroll 16
  for (int k = 0; k < blocks; k++) sum += p[(int64_t)k * threads];
  if (j < columns) c[2 * ((int64_t)i * columns + j) + word % 2] = sum;
}

template <class S, int P> qk_status_t run_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  constexpr int64_t room = (int64_t)(QK_MAX_RHS / QK_TILE) * QK_GPU_MULTI * QK_GPU_BLOCKS *
                           QK_TILE * 2; /* doubles of partial */
  dot_args<S> k = {basis_of<S>(*a), pieces_of<real<S>>(a->y), a->y.nsites, 0, qk_gpu(ctx)->partial};
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  const int blocks = sum_blocks(k.sites), ytiles = a->y.ntile > 0 ? a->y.ntile : 1;
  const int most = (int)(room / ((int64_t)blocks * ytiles * threads));
  for (; k.first < k.v.tiles; k.first += most) {
    const int now = k.v.tiles - k.first < most ? k.v.tiles - k.first : most;
    dot_kernel<S, P><<<dim3(blocks, now, ytiles), threads, 0, stream>>>(k);
    qk_status_t status = qk_gpu_launched(ctx, "basis_dot");
    if (status != QK_OK) return status;
    dot_finish_kernel<<<dim3(now, ytiles), threads, 0, stream>>>(k.partial, blocks, k.first,
                                                                 a->y.nrhs, a->c);
    status = qk_gpu_launched(ctx, "basis_dot, sums");
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

/* ---- axpy: a warp has the 4 x 8 numbers of a piece of y, for `held` pieces at a time --------- */

constexpr int warps = threads / 32, held = 4;

template <class S> struct axpy_args {
  basis<S> v;
  pieces<real<S>> y;
  int64_t sites;
  int columns;
  double sign;
  const double *c;
};

/* Words of a tile of the basis that a thread loads for its warp, 0 beyond the last item. */
template <class S, int P> struct axpy_words {
  static constexpr int words = words_of<P>, n = held * words / 32;
  real<S> x[n];
  __device__ void load(const axpy_args<S> &a, int tile, int64_t at, int64_t items) {
    if (tile >= a.v.tiles) return;
    const pieces<S> v = a.v.block[tile / a.v.ntile];
    QK_UNROLL
    for (int i = 0; i < n; i++) {
      const int w = (int)threadIdx.x % 32 + i * 32;
      const int64_t item = at + w / words;
      const item_place p(item < items ? item : 0, v.per_tile);
      x[i] = value<S, P>(v, p.site, tile % a.v.ntile, p.piece, w % words);
      if (item >= items) x[i] = 0;
    }
  }
};

/* Coefficients of the vectors of tiles first .. first + held_tiles - 1, all that there are. */
constexpr int held_tiles = 8;
template <class S>
__device__ void load_factors(const axpy_args<S> &a, int first,
                             complex_of<real<S>> (*q)[QK_TILE][QK_TILE]) {
  using R = real<S>;
  for (int i = (int)threadIdx.x; i < held_tiles * QK_TILE * QK_TILE; i += threads) {
    const int j = (int)blockIdx.y * QK_TILE + i % QK_TILE, row = first * QK_TILE + i / QK_TILE;
    const bool in = j < a.columns && row < a.v.tiles * QK_TILE;
    const double *c = a.c + 2 * ((int64_t)row * a.columns + j);
    q[i / (QK_TILE * QK_TILE)][i / QK_TILE % QK_TILE][i % QK_TILE] =
        in ? complex_of<R>{(R)(a.sign * c[0]), (R)(a.sign * c[1])} : complex_of<R>{0, 0};
  }
}

/* Of colour vectors the last eight threads of a warp have no component. */
template <class S, int P>
__global__ void __launch_bounds__(threads) axpy_kernel(const __grid_constant__ axpy_args<S> a) {
  using R = real<S>;
  constexpr int words = words_of<P>, comps = P / 2;
  __shared__ R vs[warps][held][words];
  __shared__ complex_of<R> q[held_tiles][QK_TILE][QK_TILE];
  const int warp = threadIdx.x / 32, k = threadIdx.x % 32 / QK_TILE, lane = threadIdx.x % QK_TILE;
  const int column = blockIdx.y * QK_TILE + lane, per_tile = a.y.per_tile;
  const int64_t items = a.sites * per_tile, at = ((int64_t)blockIdx.x * warps + warp) * held;
  complex_of<R> sum[held] = {};
  axpy_words<S, P> next;
  next.load(a, 0, at, items);
  for (int t = 0; t < a.v.tiles; t++) {
    if (t % held_tiles == 0) {
      __syncthreads();
      load_factors(a, t, q);
      __syncthreads();
    }
    __syncwarp();
    QK_UNROLL
    for (int i = 0; i < axpy_words<S, P>::n; i++) {
      const int w = (int)threadIdx.x % 32 + i * 32;
      vs[warp][w / words][w % words] = next.x[i];
    }
    __syncwarp();
    next.load(a, t + 1, at, items);
    QK_UNROLL
    for (int i = 0; i < QK_TILE; i++) {
      const complex_of<R> f = q[t % held_tiles][i][lane];
      QK_UNROLL
      for (int h = 0; h < held; h++) {
        const complex_of<R> z = staged<S, P>(vs[warp][h], k < comps ? k : 0, i);
        sum[h].re += f.re * z.re - f.im * z.im;
        sum[h].im += f.re * z.im + f.im * z.re;
      }
    }
  }
  for (int h = 0; h < held; h++) {
    const int64_t n = at + h;
    if (n >= items || column >= a.columns || k >= comps) continue;
    const item_place p(n, per_tile);
    const int64_t site = p.site;
    const int piece = p.piece;
    R *out = a.y.ntile > 0 ? a.y.data + a.y.word(site, blockIdx.y, piece) + inner<R, P>(2 * k, lane)
                           : a.y.data + a.y.single_rhs_word(site, piece) +
                                 inner<R, P>(2 * k, (int)(site % QK_TILE));
    out[0] += sum[h].re;
    out[1] += sum[h].im;
  }
}

template <class S, int P> qk_status_t run_axpy(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const axpy_args<S> k = {
      basis_of<S>(*a), pieces_of<real<S>>(a->y), a->y.nsites, a->y.nrhs, a->sign, a->c};
  const int64_t per_block = warps * held, items = k.sites * k.y.per_tile;
  const dim3 grid((unsigned)((items + per_block - 1) / per_block), a->y.ntile > 0 ? a->y.ntile : 1);
  axpy_kernel<S, P><<<grid, threads, 0, qk_gpu(ctx)->stream[0]>>>(k);
  return qk_gpu_launched(ctx, "basis_axpy");
}

/* ---- rotate: a block of threads sets the components of 8 pieces of all vectors aside; of each, 32
 * or 24, a thread makes four new ones ---------------------------------------------------------- */

constexpr int rotate_threads = 256, most_held = 8, made = 4;
template <int P> constexpr int entries = most_held *P / 2;

template <class S> struct rotate_args {
  basis<S> v;
  const S *add; /* like the only block of the basis; NULL: nothing */
  int64_t items;
  int columns, pieces_held; /* pieces of a vector that fit in shared memory: 8 or fewer */
  const double *c;
};

template <class S> __device__ int64_t piece_word(const basis<S> &v, int tile, int64_t item) {
  const pieces<S> &f = v.block[tile / v.ntile];
  return f.word(item / f.per_tile, tile % v.ntile, (int)(item % f.per_tile));
}

template <class S, int P>
__global__ void __launch_bounds__(rotate_threads)
    rotate_kernel(const __grid_constant__ rotate_args<S> a) {
  extern __shared__ double memory[];
  constexpr int words = words_of<P>, comps = P / 2, teams = rotate_threads / entries<P>;
  S *old = (S *)memory; /* [tile][held][words] */
  const int held_pieces = a.pieces_held, line = held_pieces * words;
  const int rows = a.v.tiles * QK_TILE;
  const int64_t at = (int64_t)blockIdx.x * held_pieces;
  for (int w = threadIdx.x; w < a.v.tiles * line; w += rotate_threads) {
    const int tile = w / line;
    const int64_t n = at + w % line / words;
    old[w] =
        n < a.items ? a.v.block[tile / a.v.ntile].data[piece_word(a.v, tile, n) + w % words] : (S)0;
  }
  __syncthreads();
  const int team = threadIdx.x / entries<P>, h = threadIdx.x % entries<P> / comps,
            k = threadIdx.x % comps;
  if (team >= teams || h >= held_pieces || at + h >= a.items) return;
  for (int j = team * made; j < a.columns; j += teams * made) {
    complex_of<S> sum[made] = {};
    for (int i = 0; i < rows; i++) {
      const complex_of<S> z = staged<S, P>(old + (i / QK_TILE) * line + h * words, k, i % QK_TILE);
      QK_UNROLL
      for (int m = 0; m < made; m++) {
        if (j + m >= a.columns) continue;
        const double *c = a.c + 2 * ((int64_t)i * a.columns + j + m);
        const S re = (S)__ldg(c), im = (S)__ldg(c + 1);
        sum[m].re += re * z.re - im * z.im;
        sum[m].im += re * z.im + im * z.re;
      }
    }
    QK_UNROLL
    for (int m = 0; m < made; m++) {
      if (j + m >= a.columns) continue;
      const int tile = (j + m) / QK_TILE;
      const int64_t word = piece_word(a.v, tile, at + h) + inner<S, P>(2 * k, (j + m) % QK_TILE);
      S *to = a.v.block[tile / a.v.ntile].data + word;
      to[0] = sum[m].re + (a.add ? a.add[word] : 0);
      to[1] = sum[m].im + (a.add ? a.add[word + 1] : 0);
    }
  }
}

template <class S, int P> qk_status_t run_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const size_t room = qk_gpu(ctx)->shared_room;
  rotate_args<S> k = {basis_of<S>(*a), (const S *)a->y.data, 0, a->columns, most_held, a->c};
  k.items = a->v[0].nsites * k.v.block[0].per_tile;
  const size_t piece = (size_t)k.v.tiles * words_of<P> * sizeof(S);
  while (piece * k.pieces_held > room) k.pieces_held--;
  const size_t bytes = piece * k.pieces_held;
  qk_status_t status =
      qk_gpu_check(ctx,
                   cudaFuncSetAttribute(rotate_kernel<S, P>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                   "cudaFuncSetAttribute");
  if (status != QK_OK) return status;
  const unsigned blocks = (unsigned)((k.items + k.pieces_held - 1) / k.pieces_held);
  rotate_kernel<S, P><<<blocks, rotate_threads, bytes, qk_gpu(ctx)->stream[0]>>>(k);
  return qk_gpu_launched(ctx, "basis_rotate");
}

/* ---- sites: a thread a complex number -------------------------------------------------------- */

template <class P, bool to_field>
__global__ void __launch_bounds__(threads) sites_kernel(const qk_sites_args_t a) {
  const pieces<float> f = pieces_of<float>(a.field);
  const int64_t at = (int64_t)blockIdx.x * threads + threadIdx.x;
  const int64_t n = at / ((int64_t)a.field.nrhs * a.field.ncomp);
  if (n >= a.n) return;
  const int64_t site = field_site(a.lat, a.field.subset == QK_FULL, a.first + n);
  const int in = (int)(at % ((int64_t)a.field.nrhs * a.field.ncomp));
  float *x = f.data + field_word(f, site, in / a.field.ncomp, 2 * (in % a.field.ncomp));
  P *p = (P *)a.plain + 2 * at;
  for (int i = 0; i < 2; i++) {
    if (to_field)
      x[i] = widen(p[i]);
    else
      narrow(x[i], p[i]);
  }
}

template <bool to_field>
qk_status_t sites(qk_ops_ctx_t *ctx, const char *call, const qk_sites_args_t *a) {
  const qk_status_t status = qk_args_sites(ctx, call, a);
  if (status != QK_OK || a->n == 0) return status;
  const int64_t numbers = a->n * a->field.nrhs * a->field.ncomp;
  const unsigned blocks = (unsigned)((numbers + threads - 1) / threads);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a->prec == QK_HALF)
    sites_kernel<half, to_field><<<blocks, threads, 0, stream>>>(*a);
  else
    sites_kernel<float, to_field><<<blocks, threads, 0, stream>>>(*a);
  return qk_gpu_launched(ctx, call);
}

/* body(storage type, reals of a piece) of the basis. */
template <class F> qk_status_t with_kind(const qk_basis_args_t *a, const F &body) {
  return with_piece_reals(a->v[0], [=](auto reals) {
    return with_storage(a->v[0].prec, [=](auto s) { return body(s, reals); });
  });
}

} // namespace

qk_status_t basis_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const qk_status_t status = qk_args_basis(ctx, "basis_dot", a);
  if (status != QK_OK) return status;
  if (one_block_pairs(a)) return one_block_dot(ctx, a);
  return with_kind(a, [=](auto s, auto reals) {
    return run_dot<stored<decltype(s)>, decltype(reals)::value>(ctx, a);
  });
}

qk_status_t basis_axpy(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const qk_status_t status = qk_args_basis(ctx, "basis_axpy", a);
  if (status != QK_OK) return status;
  return one_block_pairs(a) ? one_block_axpy(ctx, a) : with_kind(a, [=](auto s, auto reals) {
    return run_axpy<stored<decltype(s)>, decltype(reals)::value>(ctx, a);
  });
}

qk_status_t basis_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const qk_status_t status = qk_args_rotate(ctx, a);
  if (status != QK_OK) return status;
  if (one_block_rotates(a)) return one_block_rotate(ctx, a);
  return with_piece_reals(a->v[0], [=](auto reals) {
    constexpr int P = decltype(reals)::value;
    return a->v[0].prec == QK_DOUBLE ? run_rotate<double, P>(ctx, a) : run_rotate<float, P>(ctx, a);
  });
}

qk_status_t sites_get(qk_ops_ctx_t *ctx, const qk_sites_args_t *a) {
  return sites<false>(ctx, "sites_get", a);
}

qk_status_t sites_set(qk_ops_ctx_t *ctx, const qk_sites_args_t *a) {
  return sites<true>(ctx, "sites_set", a);
}

} // namespace QK_NS
