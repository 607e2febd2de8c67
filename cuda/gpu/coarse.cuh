/*
 * gpu/coarse.cuh: the coarse operator on the tensor cores, for fields of floats and n % 16 == 0.
 *
 * A block of threads has one site, RP pieces of 16 rows of its matrices and up to T tiles of RHS. The terms of
 * the sum, at most eight hops and the diagonal matrix, are shared among the block's warps, since one row piece
 * of a site would keep too few loads in flight (arXiv:1612.07873, section 6); a warp reads a matrix piece once
 * for all its tiles. Warps' sums are added in order through shared memory. Of a lone RHS seven columns
 * of the products are zero: matrices are nearly all that is read.
 */
#ifndef QK_CUDA_GPU_COARSE_CUH
#define QK_CUDA_GPU_COARSE_CUH

#include "cuda/body/coarse.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/gpu/mma.cuh"

namespace QK_NS {

struct coarse_job {
  qk_coarse_args_t a;
  walk w;
  divider groups;   /* row groups of a site */
  int first, terms; /* 0..7: hops; 8: the diagonal matrix */
};

/* Threads of a block at most, and blocks that should be resident on a multiprocessor. */
template <int T> constexpr int coarse_threads = T < 4 ? 256 : 128;
template <int T> constexpr int coarse_resident = T < 4 ? 2 : 3;

/* Pieces of columns loaded at once: as many loads in flight as registers allow beside the sums. */
template <class M, int RP, int T> constexpr int columns_at_once() {
  const int most = T == 1   ? 40
                   : T == 2 ? 28
                            : 24; /* 16-byte words, with four a thread for spinors */
  const int words = RP * (int)sizeof(M) / 2 * 4 + 4 * T;
  const int columns = most * 2 / words;
  return columns < 1 ? 1 : columns > 8 ? 8 : RP == 3 && columns > 3 ? 3 : columns;
}

QK_HD int coarse_base(const qk_coarse_args_t &a, const site_pos &here) {
  return a.out_parity == QK_FULL && here.parity == 1 ? a.lat.vcb : 0;
}

/* Words of lane `lane` of the tile of a site; a lone RHS has its own lane there. */
template <class R> QK_HD int64_t lane_words(const qk_spinor_t &f, int site, int tile, int lane) {
  constexpr int W = 16 / (int)sizeof(R);
  const int64_t n = 2 * QK_TILE * (int64_t)f.ncomp;
  return f.ntile > 0 ? ((int64_t)site * f.ntile + tile) * n + lane * W
                     : site / QK_TILE * n + site % QK_TILE * W;
}

/* A term of the sum: the spinors it takes, and its matrix. */
struct coarse_term {
  const qk_spinor_t *x;
  int site;
  const void *matrix;
  float c;
};

template <class M>
QK_HD bool find_term(const coarse_job &job, const site_pos &here, int k, coarse_term &t) {
  const qk_coarse_args_t &a = job.a;
  const int n = a.out.ncomp, site = here.cb + (here.parity == 1 ? a.lat.vcb : 0);
  if (k == 8) {
    t = {&a.z, coarse_base(a, here) + here.cb,
         (const M *)a.diag.data + coarse_matrix(n, 1, site, 0), (float)a.c_z};
    return true;
  }
  const coarse_near near = coarse_neighbour(a, here, k);
  t = {near.ghost ? &a.ghost[k / 2][1 - k % 2] : &a.in, near.site,
       (const M *)a.links.data + coarse_matrix(n, 8, site, k), (float)a.c_hop};
  return near.takes_part;
}

/* acc[tile][row piece][re, im] += matrix times c x. matrix, x: of this thread; kp = n / 8 pieces of columns. */
template <class M, int RP, int T>
QK_HD void add_term(const M *matrix, const float *x, float c, int kp, int tiles, bool on,
                    float (&acc)[T][RP][2][4]) {
  constexpr int KU = columns_at_once<M, RP, T>();
  for (int k0 = 0; k0 < kp; k0 += KU) {
    eight_words<M> m[KU][RP];
    float4 v[KU][T];
    QK_UNROLL
    for (int u = 0; u < KU; u++) {
      if (k0 + u >= kp) break;
      QK_UNROLL
      for (int r = 0; r < RP; r++) m[u][r].load(matrix + (r * kp + k0 + u) * 256);
      QK_UNROLL
      for (int t = 0; t < T; t++)
        v[u][t] = on && t < tiles
                      ? __ldg((const float4 *)(x + (int64_t)t * kp * 128 + (k0 + u) * 128))
                      : float4{0, 0, 0, 0};
    }
    QK_UNROLL
    for (int u = 0; u < KU; u++) {
      if (k0 + u >= kp) break;
      factors<M, 4> re[RP], im[RP];
      QK_UNROLL
      for (int r = 0; r < RP; r++) {
        M w[8];
        m[u][r].get(w);
        QK_UNROLL
        for (int i = 0; i < 4; i++) {
          re[r].set(i, w[i]);
          im[r].set(i, w[4 + i]);
        }
      }
      QK_UNROLL
      for (int t = 0; t < T; t++) {
        if (t >= tiles) break;
        factors<M, 2> x_re, x_im;
        x_re.set(0, c * v[u][t].x);
        x_im.set(0, c * v[u][t].y);
        x_re.set(1, c * v[u][t].z);
        x_im.set(1, c * v[u][t].w);
        const factors<M, 2> x_minus = x_im.minus();
        QK_UNROLL
        for (int r = 0; r < RP; r++) {
          mma(acc[t][r][0], re[r], x_re);
          mma(acc[t][r][1], re[r], x_im);
          mma(acc[t][r][0], im[r], x_minus);
          mma(acc[t][r][1], im[r], x_re);
        }
      }
    }
  }
}

/* A warp's sums of one tile to part[pair of components][lane] of (re, im, re, im); lone: lane 0 only. */
template <int RP> QK_HD void leave_sums(const float (&acc)[RP][2][4], bool lone, float2 *part) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  if (lone && q != 0) return;
  QK_UNROLL
  for (int r = 0; r < RP; r++) QK_UNROLL
  for (int i = 0; i < 4; i++) {
    const int c = 16 * r + g + i / 2 * 8, lane = 2 * q + i % 2;
    if (!lone)
      part[(c / 2 * QK_TILE + lane) * 2 + c % 2] = {acc[r][0][i], acc[r][1][i]};
    else if (i % 2 == 0)
      part[c] = {acc[r][0][i], acc[r][1][i]};
  }
}

QK_HD void add_scaled(float4 &s, float c, float4 v) {
  s.x += c * v.x;
  s.y += c * v.y;
  s.z += c * v.z;
  s.w += c * v.w;
}

/* The pairs of components of one tile: sums of the warps, and what the fields z and x add. at: words of
 * the first pair of lane 0 (lone: of the site's lane) in fields of the shape of out. */
QK_HD void finish_tile(const coarse_job &job, int64_t at, const float4 *part, int pairs,
                       int lanes) {
  const qk_coarse_args_t &a = job.a;
  const int warps = job.terms == 0 ? 0 : (int)blockDim.x / 32;
  for (int i = (int)threadIdx.x; i < pairs * lanes; i += (int)blockDim.x) {
    const int64_t word = at + i / lanes * 32 + i % lanes * 4;
    float4 s = {0, 0, 0, 0}, z = s, x = s;
    if (a.c_z != 0 && a.diag.data == nullptr) z = *(const float4 *)((const float *)a.z.data + word);
    if (a.c_x != 0) x = *(const float4 *)((const float *)a.x.data + word);
    for (int w = 0; w < warps; w++) add_scaled(s, 1, part[w * pairs * lanes + i]);
    if (a.c_z != 0 && a.diag.data == nullptr) add_scaled(s, (float)a.c_z, z);
    if (a.c_x != 0) add_scaled(s, (float)a.c_x, x);
    *(float4 *)((float *)a.out.data + word) = s;
  }
}

/* blockIdx.x: row group, then site; blockIdx.y: T tiles. */
template <class M, int RP, int T>
__global__ void __launch_bounds__(coarse_threads<T>, coarse_resident<T>)
    coarse_kernel(const __grid_constant__ coarse_job job) {
  extern __shared__ float4 part[];
  const qk_coarse_args_t &a = job.a;
  int n = (int)blockIdx.x;
  const int group = split_off(n, job.groups), kp = a.out.ncomp / 8;
  const site_pos here = site_at(a.lat, job.w, n);
  if (!coarse_wanted(a, here)) return;
  const int thread = threadIdx.x % 32, g = thread / 4, q = thread % 4;
  const bool lone = a.out.ntile == 0;
  const int tile = (int)blockIdx.y * T, tiles = lone ? 1 : min(T, a.out.ntile - tile);

  float acc[T][RP][2][4] = {};
  for (int k = (int)threadIdx.x / 32; k < job.terms; k += (int)blockDim.x / 32) {
    coarse_term t;
    if (!find_term<M>(job, here, job.first + k, t)) continue;
    const float *x = (const float *)t.x->data + lane_words<float>(*t.x, t.site, tile, g) + q * 32;
    const M *matrix = (const M *)t.matrix + (group * RP * kp * 32 + thread) * 8;
    add_term<M, RP, T>(matrix, x, t.c, kp, tiles, !lone || g == 0, acc);
  }

  constexpr int pairs = RP * 8;
  const int lanes = lone ? 1 : QK_TILE, site = coarse_base(a, here) + here.cb;
  QK_UNROLL
  for (int t = 0; t < T; t++) {
    if (t >= tiles) break;
    if (t > 0) __syncthreads();
    leave_sums<RP>(acc[t], lone, (float2 *)(part + threadIdx.x / 32 * (pairs * lanes)));
    __syncthreads();
    finish_tile(job, lane_words<float>(a.out, site, tile + t, 0) + group * pairs * 32, part, pairs,
                lanes);
  }
}

/* Any n, any precision: a thread has one row of one lane, for all tiles one after the other. */
template <class R, class M> __global__ void plain_kernel(const __grid_constant__ coarse_job job) {
  const qk_coarse_args_t &a = job.a;
  const int n = a.out.ncomp, lanes = a.out.ntile == 0 ? 1 : QK_TILE, item = n * lanes;
  const int64_t id = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= (int64_t)job.w.nwork * item) return;
  const int lane = (int)(id % lanes), row = (int)(id / lanes % n);
  const site_pos here = site_at(a.lat, job.w, (int)(id / item));
  if (!coarse_wanted(a, here)) return;
  constexpr int W = 16 / (int)sizeof(R);
  const auto word = [](int c) { return 2 * c / W * (QK_TILE * W) + 2 * c % W; };
  const int site = coarse_base(a, here) + here.cb;
  for (int tile = 0; tile < (lanes == 1 ? 1 : a.out.ntile); tile++) {
    R re = 0, im = 0;
    for (int k = 0; k < job.terms; k++) {
      coarse_term t;
      if (!find_term<M>(job, here, job.first + k, t)) continue;
      const R *x = (const R *)t.x->data + lane_words<R>(*t.x, t.site, tile, lane);
      const M *m = (const M *)t.matrix;
      R sum_re = 0, sum_im = 0;
      for (int c = 0; c < n; c++) {
        const R m_re = widen(m[coarse_word(n, row, c, 0)]),
                m_im = widen(m[coarse_word(n, row, c, 1)]);
        const R x_re = x[word(c)], x_im = x[word(c) + 1];
        sum_re += m_re * x_re - m_im * x_im;
        sum_im += m_re * x_im + m_im * x_re;
      }
      const R c = (R)(job.first + k == 8 ? a.c_z : a.c_hop);
      re += c * sum_re;
      im += c * sum_im;
    }
    const int64_t at = lane_words<R>(a.out, site, tile, lane) + word(row);
    const auto add = [&](const qk_spinor_t &f, double c) {
      re += (R)c * ((const R *)f.data)[at];
      im += (R)c * ((const R *)f.data)[at + 1];
    };
    if (a.c_z != 0 && a.diag.data == nullptr) add(a.z, a.c_z);
    if (a.c_x != 0) add(a.x, a.c_x);
    ((R *)a.out.data)[at] = re;
    ((R *)a.out.data)[at + 1] = im;
  }
}

} // namespace QK_NS
#endif
