/*
 * gpu/multigrid/transfer.cuh: prolongator and restrictor on the tensor cores.
 *
 * Vectors   Sites of one parity of an aggregate come in sets of four, vectors in groups of eight,
 *           components of a chirality in pairs. A piece is (8 vectors) x (4 sites x pair): thread
 *           4g+q has vector g, site q. Order:
 *             [parity][aggregate][set][pair of pieces k, k+1]
 *             [group][thread 32][piece][re, re, im, im],
 *           pieces k counted through both chiralities. Missing sites, vectors and components are
 *           zero. Spinors (ncomp 12) have three pieces a chirality, others an even number, so that
 *           no pair straddles.
 * Restrict  Rows: 8 vectors, real parts then imaginary ones; inner index: the piece's 8 site
 *           components. A thread loads the components of one lane of one site, as they stand in
 *           the field.
 * Prolong   Rows: the 8 site components; inner index: vectors. The pieces transposed, within the
 *           warp. Two threads exchange so that each has a whole spinor of a lane to store.
 *
 * With re and im parts in one matrix of 16 rows, times the real parts (sum 0) and times the
 * imaginary parts (sum 1), complex products cost no more than real ones of four times the size. A
 * single RHS is a tile with seven columns of zeros.
 */
#ifndef QK_CUDA_GPU_TRANSFER_CUH
#define QK_CUDA_GPU_TRANSFER_CUH

#include "cuda/gpu/ctx.cuh"
#include "cuda/gpu/mma.cuh"
#include "cuda/site/geom.h"

namespace QK_NS {

/* Warps of a block. Of spinors (F: storage of fine fields of ncomp 12) a warp of the restrictor has
 * both chiralities, of others (F void: floats of any ncomp) half of the warps has each. */
template <class F> constexpr int restrict_warps = std::is_void_v<F> ? 8 : 4;
template <class F> constexpr int chiralities = std::is_void_v<F> ? 1 : 2;
constexpr int prolong_warps = 4;
/* Blocks that should be resident on a multiprocessor:
 * registers for sums against loads in flight. */
template <class M, class F, int NV, int T>
constexpr int restrict_resident = std::is_void_v<F> ? (sizeof(M) * T > 2 ? 1 : 2)
                                  : sizeof(M) == 4  ? 2
                                  : NV == 4         ? 4 - T
                                                    : 6 - 2 * T;
template <class M, int T> constexpr int prolong_resident = sizeof(M) == 4 ? 6 - 2 * T : 6 - T;

/* What is asked of the sites of aggregates and the order of vectors, made once a call. */
struct transfer_shape {
  qk_aggregates_t agg;
  walk coarse;
  divider in[4];  /* block extents, that of `checker` halved where even */
  int checker;    /* the first direction of even extent; 0 where all are odd */
  int odd_volume; /* sites of an aggregate are odd in number */
  int volume;
  int naggr;  /* aggregates */
  int sets;   /* of an aggregate and parity */
  int pieces; /* of a chirality */
  int pairs;  /* of components that a chirality has */
  int groups; /* of vectors */
  int nvec;
};

/* A piece of matrix in both forms: rows are vectors, or site components. */
template <class M> struct transfer_pair {
  eight_words<M> m;
  QK_HD void by_vector(int piece, factors<M, 4> &a) const {
    M w[8];
    m.get(w);
    a.set(0, w[4 * piece]);
    a.set(1, w[4 * piece + 2]);
    a.set(2, w[4 * piece + 1]);
    a.set(3, w[4 * piece + 3]);
  }
  QK_HD void by_component(int piece, factors<M, 4> &a) const;
};

/* Of an 8 x 8 matrix of 16-bit words, of which a thread has columns 2q, 2q+1 of row g:
 * the transpose. */
QK_HD uint32_t transposed(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

template <> QK_HD void transfer_pair<half>::by_component(int piece, factors<half, 4> &a) const {
  const uint32_t re = transposed(piece ? m.v[0].z : m.v[0].x);
  const uint32_t im = transposed(piece ? m.v[0].w : m.v[0].y);
  half w[4];
  memcpy(w, &re, sizeof re);
  memcpy(w + 2, &im, sizeof im);
  a.set(0, w[0]);
  a.set(1, w[2]);
  a.set(2, w[1]);
  a.set(3, w[3]);
}

template <> QK_HD void transfer_pair<float>::by_component(int piece, factors<float, 4> &a) const {
  const uint4 v = m.v[piece];
  const uint32_t in[2][2] = {{v.x, v.y}, {v.z, v.w}};
  QK_UNROLL
  for (int i = 0; i < 2; i++) {
    const uint32_t low = transposed(__byte_perm(in[i][0], in[i][1], 0x5410));
    const uint32_t high = transposed(__byte_perm(in[i][0], in[i][1], 0x7632));
    a.set(i, __uint_as_float(__byte_perm(low, high, 0x5410)));
    a.set(2 + i, __uint_as_float(__byte_perm(low, high, 0x7632)));
  }
}

/* Words of the thread's first pair of pieces of a set. */
QK_HD int64_t transfer_words(const transfer_shape &s, int parity, int aggregate, int set) {
  const int64_t n = ((int64_t)parity * s.naggr + aggregate) * s.sets + set;
  return n * s.pieces * s.groups * 256;
}

/* Site i (cb) of parity p of the aggregate with this origin, or -1. */
QK_HD int aggregate_site_of(const transfer_shape &s, const int origin[4], int p, int i) {
  int odd = (origin[0] + origin[1] + origin[2] + origin[3] + p) & 1, x[4];
  if (s.odd_volume) {
    i = 2 * i + odd;
    if (i >= s.volume) return -1;
    QK_UNROLL
    for (int mu = 0; mu < 4; mu++) x[mu] = origin[mu] + split_off(i, s.in[mu]);
    return cb_of(s.agg.fine, x);
  }
  if (2 * i >= s.volume) return -1;
  int at[4];
  QK_UNROLL
  for (int mu = 0; mu < 4; mu++) {
    at[mu] = split_off(i, s.in[mu]);
    if (mu != s.checker) odd += at[mu];
  }
  QK_UNROLL
  for (int mu = 0; mu < 4; mu++)
    x[mu] = origin[mu] + (mu == s.checker ? 2 * at[mu] + (odd & 1) : at[mu]);
  return cb_of(s.agg.fine, x);
}

/* A call: shape, vectors, fields. */
struct transfer_job {
  transfer_shape s;
  const void *vectors;
  qk_spinor_t fine, coarse;
  int parity, parities; /* the first one, and how many */
  int add;
};

/* Where the lane of a site stands: a place among the field's lanes (access.h). */
QK_HD spot lane_spot(const qk_spinor_t &f, int site, int tile, int lane) {
  if (f.ntile == 0) return {site / QK_TILE, site % QK_TILE};
  return {(int64_t)site * f.ntile + tile, lane};
}

QK_HD int fine_base(const transfer_job &job, int parity) {
  return job.fine.subset == QK_FULL && parity == 1 ? job.s.agg.fine.vcb : 0;
}

/* Words of components 0, 1 of a lane of coarse site n; pairs of components are 32 words apart. */
QK_HD const float *coarse_lane(const qk_spinor_t &f, int n, int tile, int lane) {
  const spot at = lane_spot(f, n, tile, lane);
  return (const float *)f.data + at.tile * 2 * QK_TILE * f.ncomp + at.lane * 4;
}

QK_HD void set_lane(factors<half, 2> &re, factors<half, 2> &im, float4 v) {
  re.set(0, v.x);
  im.set(0, v.y);
  re.set(1, v.z);
  im.set(1, v.w);
}
QK_HD void set_lane(factors<float, 2> &re, factors<float, 2> &im, float4 v) {
  re.set(0, v.x);
  im.set(0, v.y);
  re.set(1, v.z);
  im.set(1, v.w);
}

/* ---- restrict -------------------------------------------------------------------------------- */

/* All 12 components of a lane as six pairs, or zeros. */
template <class F>
QK_HD void load_pairs(const qk_spinor_t &f, int site, int tile, int lane, bool on, float4 (&v)[6]) {
  float r[24];
  if (on) {
    load_spinor<24>(spinor_of<F>(f), lane_spot(f, site, tile, lane), r);
  } else {
    QK_UNROLL
    for (int i = 0; i < 24; i++) r[i] = 0;
  }
  memcpy(v, r, sizeof v);
}

/* sums[tile][chirality][group][real, imaginary factor] of this warp's sets; ncomp 12. */
template <class M, class F, int NV, int T>
QK_HD void restrict_spinors(const transfer_job &job, const int origin[4], int aggregate, int tile,
                            int tiles, float (&sums)[T][2][NV][2][4]) {
  const transfer_shape &s = job.s;
  const int thread = threadIdx.x % 32, g = thread / 4, q = thread % 4;
  const int warp = (int)threadIdx.x / 32, first = (int)blockIdx.z * NV;
  for (int n = warp; n < s.sets * job.parities; n += restrict_warps<F>) {
    const int parity = job.parity + (n >= s.sets), set = n - (n >= s.sets ? s.sets : 0);
    const M *words = (const M *)job.vectors + transfer_words(s, parity, aggregate, set) +
                     (first * 32 + thread) * 8;
    transfer_pair<M> m[3][NV];
    QK_UNROLL
    for (int k = 0; k < 3; k++) QK_UNROLL
    for (int j = 0; j < NV; j++) m[k][j].m.load(words + (k * s.groups + j) * 256);
    const int site = aggregate_site_of(s, origin, parity, 4 * set + q);
    const bool on = site >= 0 && (job.fine.ntile > 0 || g == 0);
    QK_UNROLL
    for (int t = 0; t < T; t++) {
      if (t >= tiles) break;
      float4 v[6];
      load_pairs<F>(job.fine, site + fine_base(job, parity), tile + t, g, on, v);
      QK_UNROLL
      for (int k = 0; k < 6; k++) {
        factors<M, 2> re, im;
        set_lane(re, im, v[k]);
        QK_UNROLL
        for (int j = 0; j < NV; j++) {
          factors<M, 4> a;
          m[k / 2][j].by_vector(k % 2, a);
          mma(sums[t][k / 3][j][0], a, re);
          mma(sums[t][k / 3][j][1], a, im);
        }
      }
    }
  }
}

/* Likewise for fields of floats of any ncomp, of one chirality;
 * its warps share sets and pairs of pieces. */
template <class M, int NV, int T>
QK_HD void restrict_any(const transfer_job &job, const int origin[4], int aggregate, int tile,
                        int tiles, float (&sums)[T][1][NV][2][4]) {
  const transfer_shape &s = job.s;
  constexpr int warps = restrict_warps<void> / 2;
  const int thread = threadIdx.x % 32, g = thread / 4, q = thread % 4, ncomp = job.fine.ncomp;
  const int warp = (int)threadIdx.x / 32, chirality = warp / warps, half_set = s.pieces / 2;
  const int first = (int)blockIdx.z * NV;
  for (int n = warp % warps; n < s.sets * job.parities * half_set; n += warps) {
    const int at = n / half_set, pair = n - at * half_set;
    const int parity = job.parity + (at >= s.sets), set = at - (at >= s.sets ? s.sets : 0);
    const M *words = (const M *)job.vectors + transfer_words(s, parity, aggregate, set) +
                     (((chirality * half_set + pair) * s.groups + first) * 32 + thread) * 8;
    transfer_pair<M> m[NV];
    QK_UNROLL
    for (int j = 0; j < NV; j++) m[j].m.load(words + j * 256);
    const int site = aggregate_site_of(s, origin, parity, 4 * set + q);
    const bool on = site >= 0 && (job.fine.ntile > 0 || g == 0);
    QK_UNROLL
    for (int t = 0; t < T; t++) {
      if (t >= tiles) break;
      const spot here = lane_spot(job.fine, site + fine_base(job, parity), tile + t, g);
      const float *x = (const float *)job.fine.data + here.tile * 2 * QK_TILE * ncomp +
                       here.lane * 4 + chirality * ncomp * QK_TILE;
      QK_UNROLL
      for (int k = 0; k < 2; k++) {
        const bool there = on && 2 * pair + k < s.pairs;
        factors<M, 2> re, im;
        set_lane(re, im,
                 there ? __ldg((const float4 *)(x + (2 * pair + k) * 32)) : float4{0, 0, 0, 0});
        QK_UNROLL
        for (int j = 0; j < NV; j++) {
          factors<M, 4> a;
          m[j].by_vector(k, a);
          mma(sums[t][0][j][0], a, re);
          mma(sums[t][0][j][1], a, im);
        }
      }
    }
  }
}

/* A warp's sums of conj(V) psi to part[chirality][pair of vectors][lane]. */
template <int CH, int NV>
QK_HD void leave_restricted(const float (&sums)[CH][NV][2][4], bool single_rhs, float2 *part) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4, lanes = single_rhs ? 1 : QK_TILE;
  if (single_rhs && q != 0) return;
  QK_UNROLL
  for (int s = 0; s < CH; s++) QK_UNROLL
  for (int j = 0; j < NV; j++) QK_UNROLL
  for (int i = 0; i < 2; i++) {
    if (single_rhs && i == 1) break;
    const int v = (s * NV + j) * 8 + g, lane = 2 * q + i;
    part[(v / 2 * lanes + lane) * 2 + v % 2] = {sums[s][j][0][i] + sums[s][j][1][2 + i],
                                                sums[s][j][1][i] - sums[s][j][0][2 + i]};
  }
}

/* One tile of coarse components, from the sums of all warps in order. */
template <class F, int NV>
QK_HD void put_restricted(const transfer_job &job, int aggregate, int tile, const float4 *part) {
  constexpr int pairs = NV * 4, split = 2 / chiralities<F>, warps = restrict_warps<F> / split;
  const int lanes = job.fine.ntile == 0 ? 1 : QK_TILE, nvec = job.s.nvec;
  const int each = chiralities<F> * pairs * lanes, first = (int)blockIdx.z * NV * 8;
  for (int i = (int)threadIdx.x; i < 2 * pairs * lanes; i += (int)blockDim.x) {
    const int chirality = i / (pairs * lanes), pair = i / lanes % pairs;
    if (first + 2 * pair >= nvec) continue;
    const float4 *from = part + (split == 2 ? chirality * warps * each : 0) + i % each;
    float4 sum = {0, 0, 0, 0};
    for (int w = 0; w < warps; w++) {
      const float4 v = from[w * each];
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    float *to = (float *)coarse_lane(job.coarse, aggregate, tile, i % lanes);
    *(float4 *)(to + (chirality * nvec + first + 2 * pair) * 16) = sum;
  }
}

/* blockIdx.x: aggregate; y: T tiles; z: NV groups of vectors. */
template <class M, class F, int NV, int T>
__global__ void __launch_bounds__(32 * restrict_warps<F>, restrict_resident<M, F, NV, T>)
    restrict_kernel(const __grid_constant__ transfer_job job) {
  extern __shared__ float4 part[];
  const transfer_shape &s = job.s;
  const site_pos here = site_at(s.agg.coarse, s.coarse, (int)blockIdx.x);
  const int aggregate = here.cb + (here.parity ? s.agg.coarse.vcb : 0);
  int origin[4];
  QK_UNROLL
  for (int mu = 0; mu < 4; mu++) origin[mu] = here.x[mu] * s.agg.block[mu];
  const bool single_rhs = job.fine.ntile == 0;
  const int tile = (int)blockIdx.y * T, tiles = single_rhs ? 1 : min(T, job.fine.ntile - tile);
  constexpr int CH = chiralities<F>;
  float sums[T][CH][NV][2][4] = {};
  if constexpr (std::is_void_v<F>)
    restrict_any<M, NV, T>(job, origin, aggregate, tile, tiles, sums);
  else
    restrict_spinors<M, F, NV, T>(job, origin, aggregate, tile, tiles, sums);

  const int own = (int)threadIdx.x / 32 * (CH * NV * 4 * (single_rhs ? 1 : QK_TILE));
  QK_UNROLL
  for (int t = 0; t < T; t++) {
    if (t >= tiles) break;
    if (t > 0) __syncthreads();
    leave_restricted<CH, NV>(sums[t], single_rhs, (float2 *)(part + own));
    __syncthreads();
    put_restricted<F, NV>(job, aggregate, tile + t, part);
  }
}

/* ---- prolong --------------------------------------------------------------------------------- */

template <class M, int NV> QK_HD void load_groups(const M *words, transfer_pair<M> (&m)[NV]) {
  QK_UNROLL
  for (int j = 0; j < NV; j++) m[j].m.load(words + j * 256);
}

/* Products of a pair of pieces, of chiralities s0 and s1, with the coarse components of T tiles;
 * groups of vectors from j0 on. x: of this thread; on: whether its column is a RHS. */
template <class M, int NV, int T>
QK_HD void prolong_groups(const transfer_shape &s, const transfer_pair<M> (&m)[NV], int j0,
                          const float *const (&x)[T], int s0, int s1, int tiles, bool on,
                          float (&sums)[T][2][2][4]) {
  QK_UNROLL
  for (int j = 0; j < NV; j++) {
    const bool there = on && 8 * (j0 + j) + 2 * (int)(threadIdx.x % 4) < s.nvec;
    factors<M, 4> a[2];
    m[j].by_component(0, a[0]);
    m[j].by_component(1, a[1]);
    QK_UNROLL
    for (int t = 0; t < T; t++) {
      if (t >= tiles) break;
      factors<M, 2> re, im;
      QK_UNROLL
      for (int k = 0; k < 2; k++) {
        if (k == 0 || s1 != s0) {
          const float *from = x[t] + ((k == 0 ? s0 : s1) * s.nvec + 8 * (j0 + j)) * 16;
          set_lane(re, im, there ? __ldg((const float4 *)from) : float4{0, 0, 0, 0});
        }
        mma(sums[t][k][0], a[k], re);
        mma(sums[t][k][1], a[k], im);
      }
    }
  }
}

/* The pair of components of a piece that this thread stores: of lane 2q + g%2 of site g/2. */
QK_HD float4 own_pair(const float (&sums)[2][4]) {
  const bool odd = threadIdx.x / 4 % 2;
  const float re[2] = {sums[0][0] - sums[1][2], sums[0][1] - sums[1][3]};
  const float im[2] = {sums[0][2] + sums[1][0], sums[0][3] + sums[1][1]};
  const float got_re = __shfl_xor_sync(0xffffffffu, odd ? re[0] : re[1], 4);
  const float got_im = __shfl_xor_sync(0xffffffffu, odd ? im[0] : im[1], 4);
  return odd ? float4{got_re, got_im, re[1], im[1]} : float4{re[0], im[0], got_re, got_im};
}

template <class F> QK_HD void put_spinor(const transfer_job &job, spot at, const float4 (&v)[6]) {
  float r[24], old[24];
  memcpy(r, v, sizeof r);
  if (job.add) {
    load_spinor<24>(spinor_of<F>(job.fine), at, old);
    QK_UNROLL
    for (int i = 0; i < 24; i++) r[i] += old[i];
  }
  store_spinor<24>(spinor_of<F>(job.fine), at, r);
}

/* The pair of components of piece number `piece` of both chiralities. */
QK_HD void put_pair(const transfer_job &job, spot at, bool on, int piece, float4 v) {
  const transfer_shape &s = job.s;
  const int chirality = piece >= s.pieces, pair = piece - chirality * s.pieces;
  if (!on || pair >= s.pairs) return;
  float4 *to = (float4 *)((float *)job.fine.data + at.tile * 2 * QK_TILE * job.fine.ncomp +
                          at.lane * 4 + (chirality * s.pairs + pair) * 32);
  const float4 old = job.add ? *to : float4{0, 0, 0, 0};
  *to = {old.x + v.x, old.y + v.y, old.z + v.z, old.w + v.w};
}

/* blockIdx.x: aggregate; y: T tiles. NV > 1: the groups of vectors, loaded before anything is
 * multiplied; 1: any number of groups. */
template <class M, class F, int NV, int T>
__global__ void __launch_bounds__(32 * prolong_warps, prolong_resident<M, T>)
    prolong_kernel(const __grid_constant__ transfer_job job) {
  constexpr bool spinors = !std::is_void_v<F>;
  const transfer_shape &s = job.s;
  const site_pos here = site_at(s.agg.coarse, s.coarse, (int)blockIdx.x);
  const int aggregate = here.cb + (here.parity ? s.agg.coarse.vcb : 0);
  int origin[4];
  QK_UNROLL
  for (int mu = 0; mu < 4; mu++) origin[mu] = here.x[mu] * s.agg.block[mu];
  const int thread = threadIdx.x % 32, g = thread / 4, q = thread % 4;
  const bool single_rhs = job.fine.ntile == 0;
  const int tile = (int)blockIdx.y * T, tiles = single_rhs ? 1 : min(T, job.fine.ntile - tile);
  const float *x[T];
  QK_UNROLL
  for (int t = 0; t < T; t++) x[t] = coarse_lane(job.coarse, aggregate, tile + t, g) + q * 32;

  const int units = spinors ? 1 : s.pieces; /* a warp has all pairs of pieces of a set, or one */
  for (int n = (int)threadIdx.x / 32; n < s.sets * job.parities * units; n += prolong_warps) {
    const int at = n / units, unit = n - at * units;
    const int parity = job.parity + (at >= s.sets), set = at - (at >= s.sets ? s.sets : 0);
    const M *words =
        (const M *)job.vectors + transfer_words(s, parity, aggregate, set) + thread * 8;
    const int site = aggregate_site_of(s, origin, parity, 4 * set + g / 2);
    const bool on = site >= 0 && (!single_rhs || (q == 0 && g % 2 == 0));
    constexpr int passes = spinors ? 3 : 1;
    float4 v[T][2 * passes];
    transfer_pair<M> m[passes][NV];
    QK_UNROLL
    for (int k = 0; k < passes; k++) load_groups(words + (unit + k) * s.groups * 256, m[k]);
    QK_UNROLL
    for (int k = 0; k < passes; k++) {
      const int second = 2 * unit >= s.pieces;
      const int s0 = spinors ? k > 1 : second, s1 = spinors ? k > 0 : second;
      float sums[T][2][2][4] = {};
      prolong_groups(s, m[k], 0, x, s0, s1, tiles, !single_rhs || g == 0, sums);
      for (int j = 1; NV == 1 && j < s.groups; j++) {
        load_groups(words + ((unit + k) * s.groups + j) * 256, m[k]);
        prolong_groups(s, m[k], j, x, s0, s1, tiles, !single_rhs || g == 0, sums);
      }
      QK_UNROLL
      for (int t = 0; t < T; t++) {
        v[t][2 * k] = own_pair(sums[t][0]);
        v[t][2 * k + 1] = own_pair(sums[t][1]);
      }
    }
    QK_UNROLL
    for (int t = 0; t < T; t++) {
      if (t >= tiles) break;
      const spot to = lane_spot(job.fine, site + fine_base(job, parity), tile + t, 2 * q + g % 2);
      if constexpr (spinors) {
        if (on) put_spinor<F>(job, to, v[t]);
      } else {
        put_pair(job, to, on, 2 * unit, v[t][0]);
        put_pair(job, to, on, 2 * unit + 1, v[t][1]);
      }
    }
  }
}

/* ---- to and from fields ---------------------------------------------------------------------- */

/* A thread has its words of one pair of pieces; job.fine: a block of columns of floats, which are
 * the vectors of groups from `first` on. */
template <class M, bool SET>
__global__ void __launch_bounds__(256)
    transfer_copy_kernel(const __grid_constant__ transfer_job job, int64_t threads, int first) {
  const transfer_shape &s = job.s;
  int64_t n = (int64_t)blockIdx.x * 256 + threadIdx.x;
  if (n >= threads) return;
  M *words = (M *)job.vectors + n * 8;
  const int thread = (int)(n % 32), g = thread / 4, q = thread % 4;
  n /= 32;
  const int group = (int)(n % s.groups) - first, pair = (int)(n / s.groups % s.pieces);
  if (group < 0 || group >= job.fine.ntile) return;
  n /= (int64_t)s.groups * s.pieces;
  const int set = (int)(n % s.sets), aggregate = (int)(n / s.sets % s.naggr);
  const int parity = (int)(n / s.sets / s.naggr);
  const site_pos here = site_of(s.agg.coarse, aggregate);
  int origin[4];
  QK_UNROLL
  for (int mu = 0; mu < 4; mu++) origin[mu] = here.x[mu] * s.agg.block[mu];
  const int site = aggregate_site_of(s, origin, parity, 4 * set + q);
  const bool on = site >= 0 && 8 * group + g < job.fine.nrhs;
  const spot at = lane_spot(job.fine, site + fine_base(job, parity), group, g);
  float *v = (float *)job.fine.data + at.tile * 2 * QK_TILE * job.fine.ncomp + at.lane * 4;
  QK_UNROLL
  for (int k = 0; k < 2; k++) {
    const int piece = 2 * pair + k, chirality = piece >= s.pieces, c = piece - chirality * s.pieces;
    const bool there = on && c < s.pairs;
    float4 *from = (float4 *)(v + (chirality * s.pairs + c) * 32);
    M *to = words + 4 * k;
    if constexpr (SET) {
      const float4 x = there ? *from : float4{0, 0, 0, 0};
      narrow(x.x, to[0]);
      narrow(x.z, to[1]);
      narrow(x.y, to[2]);
      narrow(x.w, to[3]);
    } else if (there) {
      *from = {widen(to[0]), widen(to[2]), widen(to[1]), widen(to[3])};
    }
  }
}

} // namespace QK_NS
#endif
