/* Products and combinations of the n columns of one block in single precision, n = 8, 16, 24 or 32.
 *
 * A quad is two components of a lane; the last one of an odd number of components has one, and 0
 * beside it in shared memory. They stand beside each other, but in colour vectors, whose pieces are
 * complex numbers (site/access.h), in two pieces. An item is the quads of
 * all columns at a place of a site. Items go to shared memory as they are. A thread has four by
 * four pairs of columns, or makes four columns: 64 multiplications for four loads of 16 bytes from
 * there, so that memory is the limit up to n = 16, and about as near as arithmetic at 32.
 */
#include "cuda/gpu/krylov/one_block.cuh"

#include <cuda_pipeline.h>

namespace QK_NS {
namespace {

constexpr int made = 4; /* columns of a thread, each way */

/* A block of columns. Item i is place i % per_tile of site i / per_tile. */
struct quads {
  float *data;
  uint32_t tiles, per_tile, components;
};

quads quads_of(const qk_spinor_t &f) {
  return {(float *)f.data, (uint32_t)f.ntile, (uint32_t)(f.ncomp + 1) / 2, (uint32_t)f.ncomp};
}

uint32_t items_of(const qk_spinor_t &f) {
  return (uint32_t)(f.nsites * ((f.ncomp + 1) / 2));
}

/* Where a quad stands. */
struct quad_place {
  float *p;
  bool apart, single; /* in two pieces; one component */
  __device__ quad_place(const quads &f, uint32_t item, uint32_t column) {
    const uint32_t site = item / f.per_tile, k = item % f.per_tile, lane = column % QK_TILE;
    const int64_t tile = (int64_t)site * f.tiles + column / QK_TILE;
    apart = f.components == QK_COLOUR_COMPONENTS;
    single = 2 * k + 1 == f.components;
    p = f.data + 2 * QK_TILE * (tile * f.components + 2 * k) + (apart ? 2 : 4) * lane;
  }
  __device__ float2 *low() const { return (float2 *)p; }
  __device__ float2 *high() const { return (float2 *)(p + 2 * QK_TILE); }
};

__device__ float4 load_quad(const quads &f, uint32_t item, uint32_t column) {
  const quad_place at(f, item, column);
  if (!at.apart) return *(const float4 *)at.p;
  const float2 low = *at.low(), high = at.single ? float2{0, 0} : *at.high();
  return {low.x, low.y, high.x, high.y};
}

__device__ void store_quad(const quads &f, uint32_t item, uint32_t column, const float4 &z) {
  const quad_place at(f, item, column);
  if (!at.apart) {
    *(float4 *)at.p = z;
    return;
  }
  *at.low() = {z.x, z.y};
  if (!at.single) *at.high() = {z.z, z.w};
}

/* To shared memory, at the end of its stage; 0 where `in` is not set. */
__device__ void copy_quad(float4 *to, const quads &f, uint32_t item, uint32_t column, bool in) {
  const quad_place at(f, in ? item : 0, column);
  float2 *half = (float2 *)to;
  if (!in) {
    *to = {0, 0, 0, 0};
  } else if (at.apart) {
    __pipeline_memcpy_async(half, at.low(), sizeof *half);
    if (at.single)
      half[1] = {0, 0};
    else
      __pipeline_memcpy_async(half + 1, at.high(), sizeof *half);
  } else {
    __pipeline_memcpy_async(to, at.p, sizeof *to);
  }
}

/* ---- products -------------------------------------------------------------------------------- */

/* side * side threads have the pairs of an item; `wide` items at a time, `deep` of them in a
 * stage for each thread. `line`: quads of an item in shared memory, with what keeps the items that
 * a warp reads from the same banks. Sums are in fp32 over `flush` stages. */
template <int n> struct dot_shape {
  static constexpr int side = n / made,
                       wide = n == 8    ? 32
                              : n == 32 ? 4
                                        : 8,
                       threads = side * side * wide, deep = n == 8 ? 2 : 4, items = wide * deep,
                       line = n + (n == 8    ? 2
                                   : n == 16 ? 4
                                             : 0),
                       stages = 3, flush = 16 / deep;
  static constexpr size_t bytes = sizeof(float4) * 2 * stages * items * line;
  static_assert(2 * deep * flush <= 32, "components that are summed in fp32");
  static_assert(bytes >= sizeof(double) * 2 * n * n, "sums of a block of threads take its place");
};

struct dot_args {
  quads v, y;
  uint32_t items;
  bool same; /* y is v */
  double *partial;
};

/* The items from `at` on to a stage; 0 from `to` on. */
template <int n>
__device__ void fill_stage(const dot_args &a, float4 *stage, uint32_t at, uint32_t to) {
  using T = dot_shape<n>;
  for (int w = (int)threadIdx.x; w < T::items * n; w += T::threads) {
    const int lane = w % QK_TILE, i = w / QK_TILE % T::items,
              column = w / (QK_TILE * T::items) * QK_TILE + lane;
    const uint32_t item = at + i;
    const bool in = item < to;
    float4 *place = stage + i * T::line + column;
    copy_quad(place, a.v, item, column, in);
    if (!a.same) copy_quad(place + T::items * T::line, a.y, item, column, in);
  }
}

/* The products of the columns r + side p of v and c + side q of y in one item. */
template <int side>
__device__ void add_products(const float4 *v, const float4 *y, float (*part)[made][2]) {
  float4 x[made], z[made];
  QK_UNROLL
  for (int p = 0; p < made; p++) {
    x[p] = v[p * side];
    z[p] = y[p * side];
  }
  QK_UNROLL
  for (int p = 0; p < made; p++) {
    QK_UNROLL
    for (int q = 0; q < made; q++) {
      part[p][q][0] += x[p].x * z[q].x + x[p].y * z[q].y + x[p].z * z[q].z + x[p].w * z[q].w;
      part[p][q][1] += x[p].x * z[q].y - x[p].y * z[q].x + x[p].z * z[q].w - x[p].w * z[q].z;
    }
  }
}

__device__ void flush_sums(float (*part)[made][2], double (*sum)[made][2]) {
  QK_UNROLL
  for (int k = 0; k < made * made * 2; k++) {
    sum[k / (2 * made)][k / 2 % made][k % 2] += (double)part[k / (2 * made)][k / 2 % made][k % 2];
    part[k / (2 * made)][k / 2 % made][k % 2] = 0;
  }
}

template <int n>
__global__ void __launch_bounds__(dot_shape<n>::threads)
    dot_kernel(const __grid_constant__ dot_args a) {
  using T = dot_shape<n>;
  extern __shared__ float4 memory[];
  const int pair = threadIdx.x % (T::side * T::side), mine = threadIdx.x / (T::side * T::side),
            r = pair / T::side, c = pair % T::side;
  const uint32_t from = (uint32_t)((uint64_t)a.items * blockIdx.x / gridDim.x),
                 to = (uint32_t)((uint64_t)a.items * (blockIdx.x + 1) / gridDim.x),
                 steps = (to - from + T::items - 1) / T::items;
  constexpr int stage = 2 * T::items * T::line;
  float part[made][made][2] = {};
  double sum[made][made][2] = {};
  for (uint32_t s = 0; s < T::stages - 1; s++) {
    if (s < steps) fill_stage<n>(a, memory + s * stage, from + s * T::items, to);
    __pipeline_commit();
  }
  for (uint32_t s = 0; s < steps; s++) {
    const uint32_t ahead = s + T::stages - 1;
    __pipeline_wait_prior(T::stages - 2);
    __syncthreads();
    if (ahead < steps)
      fill_stage<n>(a, memory + ahead % T::stages * stage, from + ahead * T::items, to);
    __pipeline_commit();
    const float4 *v = memory + s % T::stages * stage + mine * T::line,
                 *y = a.same ? v : v + T::items * T::line;
    QK_UNROLL
    for (int k = 0; k < T::deep; k++) {
      const int later = k * T::wide * T::line;
      add_products<T::side>(v + later + r, y + later + c, part);
    }
    if (s % T::flush == T::flush - 1) flush_sums(part, sum);
  }
  flush_sums(part, sum);
  __pipeline_wait_prior(0);
  double *all = (double *)memory;
  for (int turn = 0; turn < T::wide; turn++) {
    __syncthreads();
    if (mine != turn) continue;
    for (int k = 0; k < made * made * 2; k++) {
      const int p = k / (2 * made), q = k / 2 % made,
                at = 2 * ((r + p * T::side) * n + c + q * T::side) + k % 2;
      all[at] = (turn == 0 ? 0 : all[at]) + sum[p][q][k % 2];
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 2 * n * n; k += T::threads)
    a.partial[(int64_t)blockIdx.x * 2 * n * n + k] = all[k];
}

constexpr int finish_threads = 64;

/* Adds the partial sums of `blocks` blocks in order: a thread a number of c. */
__global__ void __launch_bounds__(finish_threads)
    finish_kernel(const double *partial, int blocks, int numbers, double *c) {
  const int at = (int)(blockIdx.x * finish_threads + threadIdx.x);
  double sum = 0;
  if (at >= numbers) return;
#pragma unroll 16
  for (int k = 0; k < blocks; k++) sum += partial[(int64_t)k * numbers + at];
  c[at] = sum;
}

/* Blocks of a sum: a function of the lattice alone. */
int sum_blocks(uint32_t items) {
  constexpr int most = 3 * 132;
  const uint32_t n = items / 64 + 1;
  return n < most ? (int)n : most;
}

template <class KERNEL> qk_status_t allow_shared(qk_ops_ctx_t *ctx, KERNEL kernel, size_t bytes) {
  return qk_gpu_check(
      ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
      "cudaFuncSetAttribute");
}

template <int n> qk_status_t run_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  using T = dot_shape<n>;
  const dot_args k = {quads_of(a->v[0]), quads_of(a->y), items_of(a->y), a->v[0].data == a->y.data,
                      qk_gpu(ctx)->partial};
  const int blocks = sum_blocks(k.items), numbers = 2 * n * n;
  static_assert((int64_t)3 * 132 * numbers <=
                    (int64_t)QK_GPU_MULTI * QK_GPU_BLOCKS * QK_TILE * 2 * (QK_MAX_RHS / QK_TILE),
                "sums of all blocks fit into `partial`");
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  qk_status_t status = allow_shared(ctx, dot_kernel<n>, T::bytes);
  if (status != QK_OK) return status;
  dot_kernel<n><<<blocks, T::threads, T::bytes, stream>>>(k);
  status = qk_gpu_launched(ctx, "basis_dot");
  if (status != QK_OK) return status;
  finish_kernel<<<(numbers + finish_threads - 1) / finish_threads, finish_threads, 0, stream>>>(
      k.partial, blocks, numbers, a->c);
  return qk_gpu_launched(ctx, "basis_dot, sums");
}

/* ---- combinations ---------------------------------------------------------------------------- */

/* n / made threads have an item, `wide` items at a time, `deep` of them for each thread. */
template <int n> struct mix_shape {
  static constexpr int side = n / made,
                       wide = n == 8    ? 64
                              : n == 32 ? 16
                                        : 32,
                       threads = side * wide, deep = 2, items = wide * deep, line = n + 1;
  static constexpr size_t bytes = sizeof(float4) * items * line + sizeof(float2) * n * n;
};

/* out = base + sign v c; base may be missing, or out; out may be v. */
struct mix_args {
  quads v, base, out;
  uint32_t items;
  double sign;
  const double *c;
};

/* z += c v, of two components. */
__device__ void add_times(float4 &z, const float re, const float im, const float4 &v) {
  z.x += re * v.x - im * v.y;
  z.y += re * v.y + im * v.x;
  z.z += re * v.z - im * v.w;
  z.w += re * v.w + im * v.z;
}

/* The items of the block of threads from `at` on, and the matrix as [row][c][q] of column
 * c + side q, to shared memory. */
template <int n>
__device__ void fill_mix(const mix_args &a, uint32_t at, float4 *v, float2 *factor) {
  using T = mix_shape<n>;
  for (int w = (int)threadIdx.x; w < T::items * n; w += T::threads) {
    const int lane = w % QK_TILE, i = w / QK_TILE % T::items,
              column = w / (QK_TILE * T::items) * QK_TILE + lane;
    const bool in = at + i < a.items;
    copy_quad(v + i * T::line + column, a.v, at + i, column, in);
  }
  __pipeline_commit();
  for (int k = (int)threadIdx.x; k < n * n; k += T::threads) {
    const int j = k % n;
    factor[k / n * n + j % T::side * made + j / T::side] = {(float)(a.sign * a.c[2 * k]),
                                                            (float)(a.sign * a.c[2 * k + 1])};
  }
}

template <int n>
__global__ void __launch_bounds__(mix_shape<n>::threads)
    mix_kernel(const __grid_constant__ mix_args a) {
  using T = mix_shape<n>;
  extern __shared__ float4 memory[];
  float2 *factor = (float2 *)(memory + T::items * T::line);
  const int c = threadIdx.x % T::side, mine = threadIdx.x / T::side;
  const uint32_t at = blockIdx.x * T::items;
  float4 sum[T::deep][made] = {};
  fill_mix<n>(a, at, memory, factor);
  QK_UNROLL
  for (int k = 0; k < T::deep * made; k++) {
    const uint32_t item = at + mine + k / made * T::wide;
    if (a.base.data && item < a.items)
      sum[k / made][k % made] = load_quad(a.base, item, c + k % made * T::side);
  }
  __pipeline_wait_prior(0);
  __syncthreads();
#pragma unroll 4
  for (int i = 0; i < n; i++) {
    const float4 *f = (const float4 *)(factor + i * n + c * made);
    const float4 low = f[0], high = f[1];
    QK_UNROLL
    for (int k = 0; k < T::deep; k++) {
      const float4 v = memory[(mine + k * T::wide) * T::line + i];
      add_times(sum[k][0], low.x, low.y, v);
      add_times(sum[k][1], low.z, low.w, v);
      add_times(sum[k][2], high.x, high.y, v);
      add_times(sum[k][3], high.z, high.w, v);
    }
  }
  QK_UNROLL
  for (int k = 0; k < T::deep * made; k++) {
    const uint32_t item = at + mine + k / made * T::wide;
    if (item < a.items) store_quad(a.out, item, c + k % made * T::side, sum[k / made][k % made]);
  }
}

template <int n> qk_status_t run_mix(qk_ops_ctx_t *ctx, const mix_args &k, const char *what) {
  using T = mix_shape<n>;
  const qk_status_t status = allow_shared(ctx, mix_kernel<n>, T::bytes);
  if (status != QK_OK) return status;
  const unsigned blocks = (k.items + T::items - 1) / T::items;
  mix_kernel<n><<<blocks, T::threads, T::bytes, qk_gpu(ctx)->stream[0]>>>(k);
  return qk_gpu_launched(ctx, what);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* body(n) as a type, for the columns of a block. */
template <class F> qk_status_t with_columns(int n, const F &body) {
  switch (n) {
  case 8:
    return body(std::integral_constant<int, 8>{});
  case 16:
    return body(std::integral_constant<int, 16>{});
  case 24:
    return body(std::integral_constant<int, 24>{});
  default:
    return body(std::integral_constant<int, 32>{});
  }
}

bool fits(const qk_basis_args_t *a) {
  const qk_spinor_t *v = &a->v[0];
  return a->n == 1 && v->prec == QK_SINGLE && v->nrhs <= 32 && v->ntile * QK_TILE == v->nrhs &&
         (v->ncomp % 2 == 0 || v->ncomp == QK_COLOUR_COMPONENTS) && v->nsites > 0 &&
         v->nsites * ((v->ncomp + 1) / 2) < UINT32_MAX / 2;
}

bool is_like(const qk_spinor_t *f, const qk_spinor_t *v) {
  return f->prec == v->prec && f->ntile == v->ntile && f->nrhs == v->nrhs;
}

} // namespace

bool one_block_pairs(const qk_basis_args_t *a) {
  return fits(a) && is_like(&a->y, &a->v[0]);
}

bool one_block_rotates(const qk_basis_args_t *a) {
  return fits(a) && a->columns == a->v[0].nrhs;
}

qk_status_t one_block_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  return with_columns(a->y.nrhs, [=](auto n) { return run_dot<decltype(n)::value>(ctx, a); });
}

qk_status_t one_block_axpy(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const quads y = quads_of(a->y);
  const mix_args k = {quads_of(a->v[0]), y, y, items_of(a->y), a->sign, a->c};
  return with_columns(a->y.nrhs,
                      [=](auto n) { return run_mix<decltype(n)::value>(ctx, k, "basis_axpy"); });
}

qk_status_t one_block_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const quads v = quads_of(a->v[0]);
  quads base = v;
  base.data = (float *)a->y.data;
  const mix_args k = {v, base, v, items_of(a->v[0]), 1, a->c};
  return with_columns(a->columns,
                      [=](auto n) { return run_mix<decltype(n)::value>(ctx, k, "basis_rotate"); });
}

} // namespace QK_NS
