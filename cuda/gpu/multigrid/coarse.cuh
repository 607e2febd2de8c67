/*
 * gpu/multigrid/coarse.cuh: the coarse operator on the tensor cores,
 * for fields of floats and n % 16 == 0.
 *
 * A block of threads has one site, RP pieces of 16 rows of its matrices and up to T tiles of RHS.
 * The terms of the sum, at most eight hops and the diagonal matrix, are shared among the block's
 * warps, since one row piece of a site would keep too few loads in flight (arXiv:1612.07873,
 * section 6); a warp reads a matrix piece once for all its tiles. What a thread will multiply is
 * copied ahead into its own places of shared memory, several stages deep, since registers could not
 * hold as many loads as the memory needs in flight; matrices of the first stages even while the
 * kernel before this one runs (settle.cuh). Warps' sums are added in order through shared memory.
 *
 * Spinors are taken as sums of two tf32 numbers, hence as exact as in fp32: rounded to one, coarse
 * solves near the critical mass stall. Beside 16-bit matrices a single RHS has the two in two
 * columns, and zeros in the others.
 *
 * Matrices in eight bits are for a single RHS, whose time is that of their bytes: sums are kept in
 * units of the rows of the term under way. The diagonal matrix stays one of 16 bits: the warp that
 * has it takes it last.
 *
 * Matrices of `minus` (mg_ops.h) are more terms of the sum. A term takes zeros for the columns that
 * are not its own, and one without columns among the block's tiles is left out.
 */
#ifndef QK_CUDA_GPU_COARSE_CUH
#define QK_CUDA_GPU_COARSE_CUH

#include <type_traits>

#include "cuda/body/coarse.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/gpu/mma.cuh"
#include "cuda/gpu/settle.cuh"

namespace QK_NS {

struct coarse_job {
  qk_coarse_args_t a;
  region_sites sites;
  divider groups;   /* row groups of a site */
  int first, terms; /* 0..7: hops; 8: the diagonal matrix */
};

/* Numbers of terms: of a right-hand side of `minus` 16 more. */
constexpr int own_matrix = 8, of_minus = 16;

QK_HD bool is_minus(const qk_coarse_args_t &a, int rhs) {
  return a.minus != nullptr && rhs < a.out.nrhs && a.minus[rhs] != 0;
}

/* Blocks of W warps that should be resident on a multiprocessor: while some begin or end,
 * others read. Fewer where shared memory is less, so that each has stages enough. */
template <int T, int W> constexpr int coarse_resident(int arch) {
  const int most = W == 8 ? 2 : T == 1 ? 5 : T == 2 ? 4 : 3, full = shared_kilobytes(90);
  return (most * shared_kilobytes(arch) + full / 2) / full;
}

template <class M> constexpr bool is_byte = sizeof(M) == 1;

/* A stage: a piece of columns of a warp's rows and tiles, eight columns (sixteen of bytes), in
 * words of 16 bytes a thread. Stages: what the shared memory of the resident blocks holds. */
template <class M> constexpr int eights = is_byte<M> ? 2 : 1;
template <class M> constexpr int piece_words = is_byte<M> ? 1 : sizeof(M) / 2;
template <class M, int RP, int T> constexpr int stage_words = RP *piece_words<M> + T *eights<M>;
template <class M, int RP, int T, int W> constexpr int coarse_stages(int arch) {
  const int room = (shared_kilobytes(arch) << 10) / coarse_resident<T, W>(arch) / (32 * W * 16);
  const int stages = room / stage_words<M, RP, T>;
  return stages > 8 ? 8 : stages;
}

/* Words a thread of all stages; a warp with matrices of bytes has one of 16 bits as well. */
template <class M, int RP, int T, int W> constexpr int coarse_words(int arch) {
  const int words = coarse_stages<M, RP, T, W>(arch) * stage_words<M, RP, T>;
  if (!is_byte<M>) return words;
  const int own = coarse_stages<half, RP, T, W>(arch) * stage_words<half, RP, T>;
  return words > own ? words : own;
}

QK_HD int coarse_base(const qk_coarse_args_t &a, const site_pos &here) {
  return a.out_parity == QK_FULL && here.parity == 1 ? a.lat.vcb : 0;
}

/* Words of lane `lane` of the tile of a site; a single RHS has its own lane there. */
template <class R> QK_HD int64_t lane_words(const qk_spinor_t &f, int site, int tile, int lane) {
  constexpr int W = 16 / (int)sizeof(R);
  const int64_t n = 2 * QK_TILE * (int64_t)f.ncomp;
  return f.ntile > 0 ? ((int64_t)site * f.ntile + tile) * n + lane * W
                     : site / QK_TILE * n + site % QK_TILE * W;
}

/* A term of the sum: the field it takes, the site in it, its matrix. */
struct coarse_term {
  const qk_spinor_t *x;
  int site;
  const void *matrix;
  bool ghost;
};

template <class M>
QK_HD coarse_term own_term(const qk_coarse_args_t &a, const site_pos &here, bool minus) {
  const int site = here.cb + (here.parity == 1 ? a.lat.vcb : 0);
  return {&a.z, coarse_base(a, here) + here.cb,
          (const M *)(minus ? a.diag_minus : a.diag).data + coarse_matrix(a.out.ncomp, 1, site, 0),
          false};
}

template <class M>
QK_HD coarse_term hop_term(const qk_coarse_args_t &a, const site_pos &here, const coarse_near &near,
                           int d, bool minus) {
  const int site = here.cb + (here.parity == 1 ? a.lat.vcb : 0);
  const void *links = is_byte<M> ? a.eight : (minus ? a.links_minus : a.links).data;
  return {near.ghost ? &a.ghost[d / 2][1 - d % 2] : &a.in, near.site,
          (const M *)links + coarse_matrix(a.out.ncomp, 8, site, d), near.ghost};
}

/* 16 bytes to shared memory, or zeros. */
QK_HD void copy_ahead(uint4 *to, const void *from, bool on) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
      "l"(from), "r"(on ? 16 : 0)
      : "memory");
}
QK_HD void end_stage() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/* All but the last N stages have arrived. */
template <int N> QK_HD void await_stages() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* What a warp multiplies, as a stream of stages. Its terms: bits of `left`. */
template <class M, int RP, int T> struct coarse_stream {
  static constexpr int words = stage_words<M, RP, T>;

  const qk_coarse_args_t &a;
  const site_pos &here;
  coarse_near near; /* of this thread's direction, its number modulo 8 */
  uint4 *stage;     /* this thread's place in the first one */
  int group, tile, tiles;
  bool on;        /* whether this thread's column is a RHS */
  unsigned minus; /* bit t: and whether, in tile t, one of `minus` */
  unsigned left;
  bool of_minus_now; /* the term under way */
  int64_t turn;      /* bytes to the half of the ghosts that is read; known once they are there */
  int column;
  const M *matrix;
  const float *x;

  QK_HD void begin_term() {
    column = 0;
    if (left == 0) return;
    const int k = __ffs((int)left) - 1, thread = threadIdx.x % 32, kp = a.out.ncomp / 8;
    coarse_near n;
    n.ghost = __shfl_sync(0xffffffffu, near.ghost, k % 8);
    n.site = __shfl_sync(0xffffffffu, near.site, k % 8);
    of_minus_now = k >= of_minus;
    const coarse_term t = k % of_minus == own_matrix ? own_term<M>(a, here, of_minus_now)
                                                     : hop_term<M>(a, here, n, k % 8, of_minus_now);
    matrix = (const M *)t.matrix + group * RP * kp * 256 + thread * 8 * eights<M>;
    x = (const float *)t.x->data + lane_words<float>(*t.x, t.site, tile, thread / 4) +
        thread % 4 * 32 + (t.ghost ? turn / (int)sizeof(float) : 0);
  }

  /* Asks for the next piece of columns, if there is one: of matrices, of spinors. */
  template <bool MATRICES, bool SPINORS> QK_HD void ask(int slot) {
    const int kp = a.out.ncomp / 8, pieces = kp / eights<M>;
    if (left == 0) return;
    uint4 *to = stage + slot * words * 32;
    QK_UNROLL
    for (int r = 0; MATRICES && r < RP; r++)
      ask_matrix(to + r * piece_words<M> * 32, r * pieces + column);
    QK_UNROLL
    for (int i = 0; SPINORS && i < T * eights<M>; i++) {
      const int t = i / eights<M>, k = column * eights<M> + i % eights<M>;
      if (t < tiles)
        copy_ahead(to + (RP * piece_words<M> + i) * 32, x + (t * (int64_t)kp + k) * 128,
                   on && (minus >> t & 1) == of_minus_now);
    }
    if (++column == pieces) {
      left &= left - 1;
      begin_term();
    }
  }

  /* Of 32 bytes a thread, the warp copies the first 512 bytes of the piece, then the others. */
  QK_HD void ask_matrix(uint4 *to, int piece) const {
    const uint4 *from = (const uint4 *)(matrix + piece * 256 * eights<M>);
    if (piece_words<M> == 1) {
      copy_ahead(to, from, true);
    } else {
      copy_ahead(to, from - threadIdx.x % 32, true);
      copy_ahead(to + 32, from - threadIdx.x % 32 + 32, true);
    }
  }
};

/* The stages asked for have arrived, but for the last N. */
template <class M, int N> QK_HD void await_arrival() {
  await_stages<N>();
  if constexpr (sizeof(M) == sizeof(float)) __syncwarp();
}

/* Bytes and 16-bit floats are one tf32 number each. */
template <class M, int N>
using matrix_factors = factors<std::conditional_t<is_byte<M>, half, M>, N>;

/* Byte i of a word, less its zero. */
QK_HD float of_byte(uint32_t word, int i) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u | (unsigned)i)) -
         (float)(0x800000 + byte_zero);
}

/* Eight columns of a row piece, the k-th of its stage. */
template <class M>
QK_HD void load_matrix(const uint4 *stage, int k, matrix_factors<M, 4> &re,
                       matrix_factors<M, 4> &im) {
  if constexpr (is_byte<M>) {
    const uint4 v = *stage;
    QK_UNROLL
    for (int i = 0; i < 4; i++) {
      re.hi[i] = __float_as_uint(of_byte(k ? v.z : v.x, i));
      im.hi[i] = __float_as_uint(of_byte(k ? v.w : v.y, i));
    }
  } else {
    eight_words<M> m;
    M w[8];
    if (piece_words<M> == 1) {
      m.v[0] = *stage;
    } else {
      QK_UNROLL
      for (int i = 0; i < piece_words<M>; i++) m.v[i] = stage[(int)(threadIdx.x % 32) + i];
    }
    m.get(w);
    QK_UNROLL
    for (int i = 0; i < 4; i++) {
      re.set(i, w[i]);
      im.set(i, w[4 + i]);
    }
  }
}

/* acc[tile][row piece][re, im] += the stage's matrix pieces times c x, of its k-th eight columns.
 * X: half rounds the spinors to tf32, or, of threads with `low`, what that leaves out; float takes
 * both. */
template <class X, class M, int RP, int T>
QK_HD void add_columns(const uint4 *stage, int k, float c, int tiles, bool low,
                       float (&acc)[T][RP][2][4]) {
  matrix_factors<M, 4> re[RP], im[RP];
  QK_UNROLL
  for (int r = 0; r < RP; r++) load_matrix<M>(stage + r * piece_words<M> * 32, k, re[r], im[r]);
  QK_UNROLL
  for (int t = 0; t < T; t++) {
    if (t >= tiles) break;
    const uint4 v = stage[(RP * piece_words<M> + t * eights<M> + k) * 32];
    const uint32_t word[4] = {v.x, v.y, v.z, v.w};
    float part[4];
    QK_UNROLL
    for (int i = 0; i < 4; i++) {
      part[i] = c * __uint_as_float(word[i]);
      if (T == 1 && low) part[i] -= __uint_as_float(tf32(part[i]));
    }
    factors<X, 2> x_re, x_im;
    x_re.set(0, part[0]);
    x_im.set(0, part[1]);
    x_re.set(1, part[2]);
    x_im.set(1, part[3]);
    const factors<X, 2> x_minus = x_im.minus();
    QK_UNROLL
    for (int r = 0; r < RP; r++) {
      mma(acc[t][r][0], re[r], x_re);
      mma(acc[t][r][1], re[r], x_im);
    }
    QK_UNROLL
    for (int r = 0; r < RP; r++) {
      mma(acc[t][r][0], im[r], x_minus);
      mma(acc[t][r][1], im[r], x_re);
    }
  }
}

/* What sums are multiples of: 1, but of matrices in bytes, what each row of a term is one of. */
template <class M, int RP> struct coarse_unit {
  template <int T> QK_HD coarse_unit(const coarse_stream<M, RP, T> &) {}
  template <class A> QK_HD void enter(unsigned, A &) {}
  template <class A> QK_HD void leave(A &) {}
};
template <int RP> struct coarse_unit<coarse_byte, RP> {
  const float *of; /* of the first row of this thread, all directions */
  int n;
  float now[RP][2], next[RP][2];

  QK_HD coarse_unit(const coarse_stream<coarse_byte, RP, 1> &s) {
    const int site = s.here.cb + (s.here.parity == 1 ? s.a.lat.vcb : 0);
    n = s.a.out.ncomp;
    of = coarse_units(s.a.eight, n, 8, 2 * (int64_t)s.a.lat.vcb) + coarse_unit_at(n, 8, site, 0) +
         s.group * RP * 16 + threadIdx.x % 32 / 4;
    ask(s.left);
    QK_UNROLL
    for (int r = 0; r < RP; r++) now[r][0] = now[r][1] = 1;
  }
  /* Those of the first term of `left`. */
  QK_HD void ask(unsigned left) {
    const float *from = of + (left != 0 ? __ffs((int)left) - 1 : 0) * n;
    QK_UNROLL
    for (int r = 0; r < RP; r++) QK_UNROLL
    for (int h = 0; h < 2; h++) next[r][h] = __ldg(from + r * 16 + h * 8);
  }
  QK_HD void times(const float (&by)[RP][2], float (&acc)[1][RP][2][4]) {
    QK_UNROLL
    for (int r = 0; r < RP; r++) QK_UNROLL
    for (int part = 0; part < 2; part++) QK_UNROLL
    for (int i = 0; i < 4; i++) acc[0][r][part][i] *= by[r][i / 2];
  }
  /* To the units of the first term of `left`. */
  QK_HD void enter(unsigned left, float (&acc)[1][RP][2][4]) {
    float by[RP][2];
    QK_UNROLL
    for (int r = 0; r < RP; r++) QK_UNROLL
    for (int h = 0; h < 2; h++) {
      by[r][h] = __fdividef(now[r][h], next[r][h]);
      now[r][h] = next[r][h];
    }
    times(by, acc);
    ask(left & (left - 1));
  }
  QK_HD void leave(float (&acc)[1][RP][2][4]) { times(now, acc); }
};

/* All terms of this warp. */
template <class X, int W, class M, int RP, int T>
QK_HD void add_terms(coarse_stream<M, RP, T> &s, bool low, float (&acc)[T][RP][2][4]) {
  constexpr int stages = coarse_stages<M, RP, T, W>(this_arch);
  static_assert(stages >= 2, "one arrives while one is multiplied");
  const unsigned all = s.left;
  const int pieces = s.a.out.ncomp / 8 / eights<M>;
  coarse_unit<M, RP> unit(s);
  s.begin_term();
  coarse_stream<M, RP, T> ahead = s;
  for (int i = 0; i < stages - 1; i++) ahead.template ask<true, false>(i);
  await_kernels_before();
  if (s.a.turns.epoch != nullptr) {
    s.turn = turn_bytes(s.a.turns, 0);
    s.begin_term();
  }
  for (int i = 0; i < stages - 1; i++) {
    s.template ask<false, true>(i);
    end_stage();
  }
  int slot = 0, free_slot = stages - 1;
  for (unsigned left = all; left != 0; left &= left - 1) {
    const float c = (float)((__ffs((int)left) - 1) % of_minus == own_matrix ? s.a.c_z : s.a.c_hop);
    unit.enter(left, acc);
    for (int column = 0; column < pieces; column++) {
      await_arrival<M, stages - 2>();
      s.template ask<true, true>(free_slot);
      end_stage();
      QK_UNROLL
      for (int k = 0; k < eights<M>; k++)
        add_columns<X, M, RP, T>(s.stage + slot * s.words * 32, k, c, s.tiles, low, acc);
      free_slot = slot;
      slot = slot + 1 == stages ? 0 : slot + 1;
    }
  }
  await_stages<0>();
  unit.leave(acc);
}

/* The diagonal matrix, of 16 bits, after hops of bytes. */
template <int W, int RP>
QK_HD void add_own(const coarse_stream<coarse_byte, RP, 1> &hops, bool low,
                   float (&acc)[1][RP][2][4]) {
  coarse_stream<half, RP, 1> own = {hops.a, hops.here, hops.near};
  own.stage = hops.stage;
  own.group = hops.group;
  own.tile = 0;
  own.tiles = 1;
  own.on = hops.on;
  own.minus = 0;
  own.left = 1u << own_matrix;
  own.turn = 0;
  add_terms<half, W>(own, low, acc);
}

/* A warp's sums of one tile to part[pair of components][lane] of (re, im, re, im). Single RHS: lane
 * 0 only, whose two parts stand in columns 0 and 1. */
template <int RP>
QK_HD void leave_sums(const float (&acc)[RP][2][4], bool single_rhs, float2 *part) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  if (single_rhs && q != 0) return;
  QK_UNROLL
  for (int r = 0; r < RP; r++) QK_UNROLL
  for (int i = 0; i < 4; i++) {
    const int c = 16 * r + g + i / 2 * 8, lane = 2 * q + i % 2;
    if (!single_rhs)
      part[(c / 2 * QK_TILE + lane) * 2 + c % 2] = {acc[r][0][i], acc[r][1][i]};
    else if (i % 2 == 0)
      part[c] = {acc[r][0][i] + acc[r][0][i + 1], acc[r][1][i] + acc[r][1][i + 1]};
  }
}

QK_HD void add_scaled(float4 &s, float c, float4 v) {
  s.x += c * v.x;
  s.y += c * v.y;
  s.z += c * v.z;
  s.w += c * v.w;
}

/* The pairs of components of one tile: sums of the warps, and what the fields z and x add. at:
 * words of the first pair of lane 0 (single RHS: of the site's lane) in
 * fields of the shape of out. */
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

/* Bit 0: the tiles have a column that is not of `minus`; bit 1: one that is. minus: as in
 * coarse_stream. */
QK_HD unsigned signs_of(const qk_coarse_args_t &a, int tile, int tiles, unsigned &minus) {
  unsigned signs = 0;
  minus = 0;
  if (a.minus == nullptr) return 1;
  for (int t = 0; t < tiles; t++) {
    const int rhs = a.out.ntile == 0 ? 0 : (tile + t) * QK_TILE + (int)(threadIdx.x % 32 / 4);
    const bool other = is_minus(a, rhs);
    minus |= (unsigned)other << t;
    if (__any_sync(0xffffffffu, other)) signs |= 2;
    if (__any_sync(0xffffffffu, rhs < a.out.nrhs && !other)) signs |= 1;
  }
  return signs;
}

/* blockIdx.x: row group, then site; blockIdx.y: T tiles. */
template <class M, int RP, int T, int W>
__global__ void __launch_bounds__(32 * W, coarse_resident<T, W>(this_arch))
    coarse_kernel(const __grid_constant__ coarse_job job) {
  extern __shared__ uint4 shared[];
  const qk_coarse_args_t &a = job.a;
  int n = (int)blockIdx.x;
  const int group = split_off(n, job.groups);
  const site_pos here = site_at(a.lat, job.sites, n);
  allow_kernel_after();
  const int thread = threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int warps = (int)blockDim.x / 32;
  const bool single_rhs = a.out.ntile == 0;
  const int tile = (int)blockIdx.y * T, tiles = single_rhs ? 1 : min(T, a.out.ntile - tile);

  unsigned minus;
  const unsigned signs = signs_of(a, tile, tiles, minus);
  const coarse_near near = coarse_neighbour(a, here, thread % 8);
  const int term = thread % of_minus;
  const bool mine = (term - job.first) % warps == warp && term >= job.first &&
                    term < job.first + job.terms && (term == own_matrix || near.takes_part) &&
                    (signs >> thread / of_minus & 1) != 0;
  coarse_stream<M, RP, T> stream = {a, here, near};
  stream.stage = shared + warp * (coarse_words<M, RP, T, W>(this_arch) * 32) + thread;
  stream.group = group;
  stream.tile = tile;
  stream.tiles = tiles;
  stream.minus = minus;
  stream.turn = 0;
  stream.on = !single_rhs || thread < (sizeof(M) <= sizeof(half) ? 8 : 4);
  stream.left = __ballot_sync(0xffffffffu, mine);
  float acc[T][RP][2][4] = {};
  if constexpr (is_byte<M>) {
    const bool own = (stream.left >> own_matrix & 1) != 0;
    stream.left &= (1u << own_matrix) - 1;
    add_terms<half, W>(stream, thread / 4 == 1, acc);
    if (own) add_own<W>(stream, thread / 4 == 1, acc);
  } else if (sizeof(M) == sizeof(half) && T == 1 && single_rhs)
    add_terms<M, W>(stream, thread / 4 == 1, acc);
  else
    add_terms<float, W>(stream, false, acc);

  constexpr int pairs = RP * 8;
  const int lanes = single_rhs ? 1 : QK_TILE, site = coarse_base(a, here) + here.cb;
  float4 *part = (float4 *)shared;
  QK_UNROLL
  for (int t = 0; t < T; t++) {
    if (t >= tiles) break;
    __syncthreads();
    leave_sums<RP>(acc[t], single_rhs, (float2 *)(part + warp * (pairs * lanes)));
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
  if (id >= (int64_t)job.sites.nwork * item) return;
  const int lane = (int)(id % lanes), row = (int)(id / lanes % n);
  const site_pos here = site_at(a.lat, job.sites, (int)(id / item));
  constexpr int W = 16 / (int)sizeof(R);
  const auto word = [](int c) { return 2 * c / W * (QK_TILE * W) + 2 * c % W; };
  const int site = coarse_base(a, here) + here.cb;
  for (int tile = 0; tile < (lanes == 1 ? 1 : a.out.ntile); tile++) {
    const bool minus = is_minus(a, tile * QK_TILE + lane);
    R re = 0, im = 0;
    for (int k = 0; k < job.terms; k++) {
      const int d = job.first + k;
      const coarse_near near = coarse_neighbour(a, here, d % 8);
      if (d < 8 && !near.takes_part) continue;
      const coarse_term t =
          d == own_matrix ? own_term<M>(a, here, minus) : hop_term<M>(a, here, near, d, minus);
      const int64_t turn = t.ghost ? turn_bytes(a.turns, 0) / (int)sizeof(R) : 0;
      const R *x = (const R *)t.x->data + lane_words<R>(*t.x, t.site, tile, lane) + turn;
      const M *m = (const M *)t.matrix;
      R sum_re = 0, sum_im = 0;
      for (int c = 0; c < n; c++) {
        const R m_re = widen(m[coarse_word(n, row, c, 0)]),
                m_im = widen(m[coarse_word(n, row, c, 1)]);
        const R x_re = x[word(c)], x_im = x[word(c) + 1];
        sum_re += m_re * x_re - m_im * x_im;
        sum_im += m_re * x_im + m_im * x_re;
      }
      const R c = (R)(d == 8 ? a.c_z : a.c_hop);
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
