/*
 * Aggregates on the GPU: a block of threads has a chirality of one, and the tensor cores make
 * products of columns in double. Sums over sites and components run in pieces of 16 bytes, in any
 * order as long as both factors have the same one: thread 4g+q of a warp loads what stands in
 * column g of a tile in the q-th of four pieces, and that is its element of both factors. Warps
 * take every eighth four pieces; their sums are added in order.
 */
#include "cuda/args/mg_args.h"
#include "cuda/args/mg_setup_args.h"
#include "cuda/body/aggregate.h"
#include "cuda/body/coarse_setup.h"
#include "cuda/body/principal.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/gpu/mma_double.cuh"
#include "cuda/gpu/settle.cuh"
#include "cuda/gpu/team.cuh"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

constexpr int threads = block_team::size(), warps = threads / 32;

/* A field's components of one chirality, in pieces of 16 bytes. */
template <class S> struct half_field {
  static constexpr int words = 16 / (int)sizeof(S), components = words / 2;
  S *data;
  int ntile, ncol, tile_words;
  divider pieces; /* a site has */

  half_field(const qk_spinor_t &f)
      : data((S *)f.data), ntile(f.ntile), ncol(f.nrhs), tile_words(QK_TILE * 2 * f.ncomp),
        pieces(divider_by(f.ncomp / words)) {}

  /* A tile that the block has not stands for its last one. */
  QK_HD S *at(int chirality, int site, int piece, int column) const {
    const int k = chirality * (int)pieces.d + piece, tile = min(column / QK_TILE, ntile - 1);
    return data + ((int64_t)site * ntile + tile) * tile_words +
           (k * QK_TILE + column % QK_TILE) * words;
  }
};

/* A piece as it stands in memory, and its complex numbers, or zeros. Ordinary loads: the field may
 * be written by the same kernel. */
template <class S> using piece = typename std::conditional<sizeof(S) == 4, float4, double2>::type;

QK_HD void numbers_of(const float4 &v, bool in, dcx *x) {
  x[0] = {in ? v.x : 0, in ? v.y : 0};
  x[1] = {in ? v.z : 0, in ? v.w : 0};
}
QK_HD void numbers_of(const double2 &v, bool in, dcx *x) {
  x[0] = {in ? v.x : 0, in ? v.y : 0};
}
QK_HD float4 piece_of(const dcx *x, float) {
  return make_float4((float)x[0].re, (float)x[0].im, (float)x[1].re, (float)x[1].im);
}
QK_HD double2 piece_of(const dcx *x, double) {
  return make_double2(x[0].re, x[0].im);
}

/* A matrix in shared memory. Rows of ld are such that eight of them at four
 * columns meet no bank twice. */
struct shared_matrix {
  double *re, *im;
  int ld;
  QK_ANY static int row_of(int n) { return (n + 3) / 8 * 8 + 4; }
  QK_ANY static size_t bytes(int n) { return 2 * sizeof(double) * (size_t)(n * row_of(n)); }
  QK_HD shared_matrix(double *memory, int n)
      : re(memory), im(memory + n * row_of(n)), ld(row_of(n)) {}
  QK_HD void clear(int n) const {
    for (int i = (int)threadIdx.x; i < n * ld; i += threads) re[i] = im[i] = 0;
    __syncthreads();
  }
};

/* Where the pieces of a block of threads come from. */
struct work_place {
  const aggregate_box &box;
  box_corner corner;
  int chirality;
};

/* What a thread loads of N tiles of columns of two fields, from column i0 and j0 on: the q-th of
 * four pieces from `first` on, of all that the place has. upper: of the first field alone. */
template <int N, bool upper, class S> struct column_pieces {
  piece<S> x[N], y[N];
  bool here;
  QK_HD void load(const work_place &at, const half_field<S> &a, const half_field<S> &b, int i0,
                  int j0, int first) {
    const int g = (int)threadIdx.x % 32 / 4, q = (int)threadIdx.x % 4;
    const int total = at.box.nsites * (int)a.pieces.d;
    here = first + q < total;
    int k = here ? first + q : 0;
    const int p = split_off(k, a.pieces), site = box_site(at.box, at.corner, k);
    QK_UNROLL
    for (int i = 0; i < N; i++) {
      x[i] = *(const piece<S> *)a.at(at.chirality, site, p, i0 + QK_TILE * i + g);
      if (!upper) y[i] = *(const piece<S> *)b.at(at.chirality, site, p, j0 + QK_TILE * i + g);
    }
  }
};

/* m += a^+ b for N tiles of columns of each, from column i0 and j0 on. upper: only tiles on and
 * above the diagonal, a, i0 being b, j0; then only elements there are added. */
template <int N, bool upper, class S>
__device__ void add_products(const work_place &at, const half_field<S> &a, const half_field<S> &b,
                             int i0, int j0, const shared_matrix &m) {
  constexpr int C = half_field<S>::components;
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, g = lane / 4, q = lane % 4;
  const int total = at.box.nsites * (int)a.pieces.d;
  double re[N][N][2] = {}, im[N][N][2] = {};
  column_pieces<N, upper, S> next;
  next.load(at, a, b, i0, j0, 4 * warp);
  for (int first = 4 * warp; first < total; first += 4 * warps) {
    const column_pieces<N, upper, S> now = next;
    next.load(at, a, b, i0, j0, first + 4 * warps);
    dcx x[N][C], y[N][C];
    QK_UNROLL
    for (int i = 0; i < N; i++) {
      numbers_of(now.x[i], now.here && i0 + QK_TILE * i + g < a.ncol, x[i]);
      if (!upper) numbers_of(now.y[i], now.here && j0 + QK_TILE * i + g < b.ncol, y[i]);
    }
    QK_UNROLL
    for (int i = 0; i < N; i++) QK_UNROLL
    for (int j = upper ? i : 0; j < N; j++) QK_UNROLL
    for (int c = 0; c < C; c++) mma_conj(re[i][j], im[i][j], x[i][c], upper ? x[j][c] : y[j][c]);
  }
  for (int w = 0; w < warps; w++) {
    QK_UNROLL
    for (int i = 0; i < N; i++) QK_UNROLL
    for (int j = upper ? i : 0; j < N; j++) QK_UNROLL
    for (int k = 0; k < 2; k++) {
      const int r = i0 + QK_TILE * i + g, c = j0 + QK_TILE * j + 2 * q + k;
      if (w != warp || r >= a.ncol || c >= b.ncol || (upper && r > c)) continue;
      m.re[r * m.ld + c] += re[i][j][k];
      m.im[r * m.ld + c] += im[i][j][k];
    }
    __syncthreads();
  }
}

/* The columns become themselves times f, where f^+ is m, of which only the lower triangle counts if
 * `upper`; and those from `keep` on 0. A warp takes eight pieces at a time. N: all tiles. */
template <int N, bool upper, class S>
__device__ void times_factor(const work_place &at, const half_field<S> &v, const shared_matrix &m,
                             int keep) {
  constexpr int C = half_field<S>::components;
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, g = lane / 4, q = lane % 4;
  const int total = at.box.nsites * (int)v.pieces.d, n = v.ncol;
  for (int first = 8 * warp; first < total; first += 8 * warps) {
    const bool here = first + g < total;
    int k = here ? first + g : first;
    const int p = split_off(k, v.pieces), site = box_site(at.box, at.corner, k);
    piece<S> loaded[2 * N];
    dcx x[2 * N][C];
    QK_UNROLL
    for (int s = 0; s < 2 * N; s++)
      loaded[s] = *(const piece<S> *)v.at(at.chirality, site, p, 4 * s + q);
    QK_UNROLL
    for (int s = 0; s < 2 * N; s++) numbers_of(loaded[s], 4 * s + q < n, x[s]);
    __syncwarp();
    QK_UNROLL
    for (int j = 0; j < N; j++) {
      double re[C][2] = {}, im[C][2] = {};
      const int column = QK_TILE * j + g;
      QK_UNROLL
      for (int s = 0; s < (upper ? 2 * j + 2 : 2 * N); s++) {
        const int i = 4 * s + q, from = column * m.ld + i;
        const bool in = i < n && (!upper || i <= column) && column < keep;
        const dcx f = in ? dcx{m.re[from], -m.im[from]} : dcx{0, 0};
        QK_UNROLL
        for (int c = 0; c < C; c++) mma_complex(re[c], im[c], x[s][c], f);
      }
      QK_UNROLL
      for (int l = 0; l < 2; l++) {
        dcx y[C];
        QK_UNROLL
        for (int c = 0; c < C; c++) y[c] = {re[c][l], im[c][l]};
        const int to = QK_TILE * j + 2 * q + l;
        if (here && to < n) *(piece<S> *)v.at(at.chirality, site, p, to) = piece_of(y, S());
      }
    }
  }
  __syncthreads();
}

/* Tiles whose sums a warp holds at a time. */
template <int N> constexpr int held = N < 4 ? N : 4;

/* The upper triangle of m = products of the columns with each other, 0 below it; H tiles of them at
 * a time. */
template <int H, class S>
__device__ void gram_matrix(const work_place &at, const half_field<S> &v, const shared_matrix &m) {
  m.clear(v.ncol);
  for (int i = 0; i < v.ncol; i += H * QK_TILE) {
    add_products<H, true>(at, v, v, i, i, m);
    for (int j = i + H * QK_TILE; j < v.ncol; j += H * QK_TILE)
      add_products<H, false>(at, v, v, i, j, m);
  }
}

template <class S, int N>
__global__ void __launch_bounds__(threads)
    orthonormalise_kernel(aggregate_box box, half_field<S> v, int *dependent) {
  extern __shared__ double memory[];
  __shared__ double norm[QK_MG_NVEC_MAX];
  constexpr int H = held<N>;
  const work_place at = {box, corner_of(box, (int)blockIdx.x / 2), (int)blockIdx.x % 2};
  const shared_matrix m(memory, v.ncol);
  for (int pass = 0; pass < 2; pass++) {
    gram_matrix<H>(at, v, m);
    if (!invert_factor(block_team(), m.re, m.im, v.ncol, m.ld, norm)) {
      if (threadIdx.x == 0) atomicAdd(dependent, 1);
      return;
    }
    times_factor<N, true>(at, v, m, v.ncol);
  }
}

template <class S, int N>
__global__ void __launch_bounds__(threads)
    principal_kernel(aggregate_box box, half_field<S> v, int keep) {
  extern __shared__ double memory[];
  __shared__ double value[QK_MG_NVEC_MAX];
  __shared__ rotation j[QK_MG_NVEC_MAX / 2];
  __shared__ int busy;
  const int n = v.ncol;
  const work_place at = {box, corner_of(box, (int)blockIdx.x / 2), (int)blockIdx.x % 2};
  const shared_matrix m(memory, n), w(memory + 2 * n * m.ld, n);
  gram_matrix<held<N>>(at, v, m);
  for (int i = (int)threadIdx.x; i < n * n; i += threads) {
    const int r = i / n, c = i % n;
    if (r == c) m.im[r * m.ld + r] = 0;
    if (r <= c) continue;
    m.re[r * m.ld + c] = m.re[c * m.ld + r];
    m.im[r * m.ld + c] = -m.im[c * m.ld + r];
  }
  principal_vectors(block_team(), plain_matrix{m.re, m.im, m.ld}, plain_matrix{w.re, w.im, w.ld}, n,
                    j, value, &busy);
  times_factor<N, false>(at, v, m, keep);
}

/* Rows of chirality `from` of the columns of chirality a.chirality of a site's matrix += m. */
__device__ void add_to_matrix(const qk_galerkin_args_t &a, const qk_coarse_links_t &links, int site,
                              int d, int from, const shared_matrix &m) {
  const int row0 = from * links.n / 2 + a.row0, column0 = a.chirality * links.n / 2 + a.column0;
  const int columns = a.w.nrhs;
  for (int i = (int)threadIdx.x; i < a.v.nrhs * columns; i += threads) {
    const int r = i / columns, c = i % columns, row = row0 + r, column = column0 + c;
    const dcx x = {m.re[r * m.ld + c], m.im[r * m.ld + c]};
    put_element(links, site, d, row, column, get_element(links, site, d, row, column) + x);
  }
  __syncthreads();
}

template <int N>
__global__ void __launch_bounds__(threads)
    galerkin_kernel(qk_galerkin_args_t a, aggregate_box inside, aggregate_box face,
                    half_field<float> v, half_field<float> w) {
  extern __shared__ double memory[];
  const int site = (int)blockIdx.x / 2, chirality = (int)blockIdx.x % 2;
  const int most = max(v.ncol, w.ncol);
  const shared_matrix m(memory, most);
  for (int part = 0; part < (a.mu < 0 ? 1 : 2); part++) {
    const aggregate_box &box = part == 0 ? inside : face;
    const work_place at = {box, corner_of(box, site), chirality};
    if (box.nsites == 0) continue;
    m.clear(most);
    for (int i = 0; i < v.ncol; i += N * QK_TILE)
      for (int j = 0; j < w.ncol; j += N * QK_TILE) add_products<N, false>(at, v, w, i, j, m);
    if (part == 0)
      add_to_matrix(a, a.inner, site, 0, chirality, m);
    else
      add_to_matrix(a, a.ahead, site, 2 * a.mu, chirality, m);
  }
}

/* Launches with shared memory for matrices of n x n. */
template <class K, class... A>
qk_status_t start(qk_ops_ctx_t *ctx, const char *name, K kernel, int blocks, int n, int matrices,
                  const A &...args) {
  const size_t bytes = (size_t)matrices * shared_matrix::bytes(n);
  const qk_status_t status = qk_gpu_check(
      ctx, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
      name);
  if (status != QK_OK) return status;
  kernel<<<blocks, threads, bytes, qk_gpu(ctx)->stream[0]>>>(args...);
  return qk_gpu_launched(ctx, name);
}

template <class S>
qk_status_t start_orthonormalise(qk_ops_ctx_t *ctx, const qk_orthonormalise_args_t *a, int *count) {
  static constexpr decltype(&orthonormalise_kernel<S, 1>) by_tiles[] = {
      orthonormalise_kernel<S, 1>, orthonormalise_kernel<S, 2>, orthonormalise_kernel<S, 3>,
      orthonormalise_kernel<S, 4>, orthonormalise_kernel<S, 8>};
  const int tiles = a->v.ntile;
  return start(ctx, "orthonormalise", by_tiles[tiles < 5 ? tiles - 1 : 4], 4 * a->agg.coarse.vcb,
               a->v.nrhs, 1, box_of(a->agg, -1, false), half_field<S>(a->v), count);
}

template <class S> qk_status_t start_principal(qk_ops_ctx_t *ctx, const qk_principal_args_t *a) {
  static constexpr decltype(&principal_kernel<S, 1>) by_tiles[] = {
      principal_kernel<S, 1>, principal_kernel<S, 2>, principal_kernel<S, 3>,
      principal_kernel<S, 4>, principal_kernel<S, 6>, principal_kernel<S, 8>};
  const int tiles = a->v.ntile, k = tiles < 5 ? tiles - 1 : tiles < 7 ? 4 : 5;
  if (2 * shared_matrix::bytes(a->v.nrhs) > qk_gpu(ctx)->shared_room) return QK_UNSUPPORTED;
  return start(ctx, "principal", by_tiles[k], 4 * a->agg.coarse.vcb, a->v.nrhs, 2,
               box_of(a->agg, -1, false), half_field<S>(a->v), (int)a->keep);
}

} // namespace

qk_status_t orthonormalise(qk_ops_ctx_t *ctx, const qk_orthonormalise_args_t *a) {
  qk_status_t status = qk_args_orthonormalise(ctx, a);
  if (status != QK_OK) return status;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  int *count = (int *)qk_gpu(ctx)->partial, found = 0;
  status = qk_gpu_check(ctx, cudaMemsetAsync(count, 0, sizeof *count, stream), "cudaMemsetAsync");
  if (status == QK_OK)
    status = a->v.prec == QK_DOUBLE ? start_orthonormalise<double>(ctx, a, count)
                                    : start_orthonormalise<float>(ctx, a, count);
  if (status == QK_OK)
    status = qk_gpu_check(
        ctx, cudaMemcpyAsync(&found, count, sizeof found, cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  if (status == QK_OK)
    status = qk_gpu_check(ctx, cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  if (status == QK_OK) *a->dependent = found;
  return status;
}

qk_status_t principal(qk_ops_ctx_t *ctx, const qk_principal_args_t *a) {
  const qk_status_t status = qk_args_principal(ctx, a);
  if (status != QK_OK) return status;
  return a->v.prec == QK_DOUBLE ? start_principal<double>(ctx, a) : start_principal<float>(ctx, a);
}

qk_status_t galerkin(qk_ops_ctx_t *ctx, const qk_galerkin_args_t *a) {
  static constexpr decltype(&galerkin_kernel<1>) by_tiles[] = {
      galerkin_kernel<1>, galerkin_kernel<2>, galerkin_kernel<3>, galerkin_kernel<4>};
  qk_status_t status = qk_args_galerkin(ctx, a);
  if (status != QK_OK) return status;
  const qk_spinor_t &most = a->v.nrhs > a->w.nrhs ? a->v : a->w;
  const int tiles = most.ntile;
  status = start(ctx, "galerkin", by_tiles[tiles < 4 ? tiles - 1 : 3], 4 * a->agg.coarse.vcb,
                 most.nrhs, 1, *a, box_of(a->agg, a->mu, false), box_of(a->agg, a->mu, true),
                 half_field<float>(a->v), half_field<float>(a->w));
  return status == QK_OK ? qk_gpu_settle(ctx) : status;
}

} // namespace QK_NS
