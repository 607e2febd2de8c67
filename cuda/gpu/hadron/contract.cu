/*
 * Contractions on the GPU. Blocks along a time slice each sum a piece of its sites; their sums are
 * added in order by a second kernel.
 *
 * Mesons are products of matrices: 16 spin pairs of b by 16 of a, over colours and sites. Tensor
 * cores make them in double, four sites a warp: lane l holds row l/4 of both factors for site l%4
 * (the fragments of mma in double), so every number is loaded by the lane that needs it and by no
 * other. The phase goes to the factor a. Baryons: 16 threads a site,
 * which share its propagators and diquark.
 */
#include "cuda/body/contract.h"

#include "cuda/args/args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

constexpr int meson_numbers = 256;
/* Doubles of scratch memory for the sums of blocks. */
constexpr int64_t scratch =
    (int64_t)QK_GPU_MULTI * (QK_MAX_RHS / QK_TILE) * QK_GPU_BLOCKS * QK_TILE * 2;

/* What a launch works on: slices t0.., cut into `pieces`, and momenta m0 .. m0+nm-1. */
struct launch {
  qk_lattice_t lat;
  const double *phase;
  double *partial; /* [t][piece][momentum][number][2] */
  int t0, pieces, m0, nm;
};

/* Sites first..last-1 of the slice are this block's. */
QK_HD void piece_sites(const launch &w, int &first, int &last) {
  const int64_t sites = 2 * w.lat.vcb / w.lat.l[3];
  first = (int)(sites * blockIdx.x / w.pieces);
  last = (int)(sites * (blockIdx.x + 1) / w.pieces);
}

QK_HD dcx momentum_phase(const launch &w, int m, const int x[3]) {
  const int factors = w.lat.l[0] + w.lat.l[1] + w.lat.l[2];
  return phase_at(w.phase + 2 * (int64_t)(w.m0 + m) * factors, w.lat, x);
}

template <class S> QK_HD const S *site_of_block(const spinor<S> &f, int64_t site) {
  return f.data + site * (f.ntile * QK_TILE * 24);
}

/* Component `comp` of a column at a site. */
QK_HD dcx load_complex(const spinor<double> &, const double *site, int comp, int column) {
  const double *p = site + column / QK_TILE * (QK_TILE * 24);
  const double2 z = __ldg((const double2 *)(p + inner<double, 24>(2 * comp, column % QK_TILE)));
  return {z.x, z.y};
}
QK_HD dcx load_complex(const spinor<float> &, const float *site, int comp, int column) {
  const float *p = site + column / QK_TILE * (QK_TILE * 24);
  const float2 z = __ldg((const float2 *)(p + inner<float, 24>(2 * comp, column % QK_TILE)));
  return {z.x, z.y};
}

/* ---- mesons ---- */

constexpr int meson_warps = 4;

struct meson_sum {
  double re[2][4], im[2][4]; /* [j][2 * half of the rows + column of a pair] */
};

/* c += b a + d e over the four sites of a warp,
 * for 16 rows (two halves of b and d) and 8 columns. */
QK_HD void matrix_products(double c[4], const double b[2], double a, const double d[2], double e) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(b[0]), "d"(b[1]), "d"(d[0]), "d"(d[1]), "d"(a), "d"(e));
#else
  QK_UNROLL
  for (int i = 0; i < 2; i++) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[2 * i]), "+d"(c[2 * i + 1])
        : "d"(b[i]), "d"(a));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[2 * i]), "+d"(c[2 * i + 1])
        : "d"(d[i]), "d"(e));
  }
#endif
}

/* s += conj(b) a */
QK_HD void add_meson(meson_sum &s, const dcx b[2], const dcx a[2]) {
  const double re[2] = {b[0].re, b[1].re}, im[2] = {b[0].im, b[1].im};
  const double minus[2] = {-b[0].im, -b[1].im};
  QK_UNROLL
  for (int j = 0; j < 2; j++) {
    matrix_products(s.re[j], re, a[j].re, im, a[j].im);
    matrix_products(s.im[j], re, a[j].im, minus, a[j].re);
  }
}

/* The sums of the warps of a block, added in order. */
QK_HD void store_mesons(const meson_sum &s, double *shared, double *out) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  QK_UNROLL
  for (int i = 0; i < 2; i++) {
    QK_UNROLL
    for (int j = 0; j < 2; j++) {
      QK_UNROLL
      for (int k = 0; k < 2; k++) {
        const int n = (8 * i + lane / 4) * 16 + 8 * j + lane % 4 * 2 + k;
        shared[(warp * meson_numbers + n) * 2] = s.re[j][2 * i + k];
        shared[(warp * meson_numbers + n) * 2 + 1] = s.im[j][2 * i + k];
      }
    }
  }
  __syncthreads();
  for (int n = threadIdx.x; n < 2 * meson_numbers; n += meson_warps * 32) {
    double sum = 0;
    for (int v = 0; v < meson_warps; v++) sum += shared[v * 2 * meson_numbers + n];
    out[n] = sum;
  }
  __syncthreads();
}

template <class S, int M>
__global__ void __launch_bounds__(meson_warps * 32, M == 1 ? 3 : 2)
    meson_kernel(launch w, spinor<S> fa, spinor<S> fb) {
  __shared__ double shared[meson_warps * 2 * meson_numbers];
  meson_sum sum[M] = {};
  const bool same = fa.data == fb.data;
  const int row = threadIdx.x % 32 / 4, spin = row / 4, column = 3 * (row % 4);
  int first, last;
  piece_sites(w, first, last);
  for (int k0 = first + threadIdx.x / 32 * 4; k0 < last; k0 += meson_warps * 4) {
    const int k = k0 + threadIdx.x % 4;
    const bool here = k < last;
    const slice_pos at = slice_site(w.lat, w.t0 + blockIdx.y, here ? k : k0);
    const S *sa = site_of_block(fa, at.site), *sb = site_of_block(fb, at.site);
    dcx phase[M];
    QK_UNROLL
    for (int m = 0; m < M; m++)
      phase[m] = here && m < w.nm ? momentum_phase(w, m, at.x) : dcx{0, 0};
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      dcx a[3][2], b[3][2];
      QK_UNROLL
      for (int d = 0; d < 3; d++) {
        QK_UNROLL
        for (int i = 0; i < 2; i++) {
          a[d][i] = load_complex(fa, sa, 3 * (2 * i + spin) + c, column + d);
          b[d][i] = same ? a[d][i] : load_complex(fb, sb, 3 * (2 * i + spin) + c, column + d);
        }
      }
      QK_UNROLL
      for (int d = 0; d < 3; d++) {
        QK_UNROLL
        for (int m = 0; m < M; m++) {
          const dcx turned[2] = {phase[m] * a[d][0], phase[m] * a[d][1]};
          add_meson(sum[m], b[d], turned);
        }
      }
    }
  }
  double *out = w.partial + ((int64_t)blockIdx.y * w.pieces + blockIdx.x) * M * 2 * meson_numbers;
  QK_UNROLL
  for (int m = 0; m < M; m++) store_mesons(sum[m], shared, out + m * 2 * meson_numbers);
}

struct mesons {
  static constexpr int numbers = meson_numbers, groups = meson_warps * 4, momenta = 4;

  template <class S, int M>
  static void start(const launch &w, dim3 grid, const qk_contract_args_t &args,
                    cudaStream_t stream) {
    meson_kernel<S, M>
        <<<grid, meson_warps * 32, 0, stream>>>(w, spinor_of<S>(args.a), spinor_of<S>(args.b));
  }
};

/* ---- baryons ---- */

constexpr int baryon_groups = 4;

template <class S> QK_HD void load_prop(const spinor<S> &f, int64_t site, int part, double *p) {
  const S *from = site_of_block(f, site);
  QK_UNROLL
  for (int k = 0; k < 12 * CONTRACT_COLUMNS / CONTRACT_PARTS; k++) {
    const int n = k * CONTRACT_PARTS + part, comp = n / CONTRACT_COLUMNS;
    const int column = n % CONTRACT_COLUMNS;
    complex_set(p, comp * CONTRACT_ROW + column, load_complex(f, from, comp, column));
  }
}

template <class S, int K, int M>
__global__ void __launch_bounds__(baryon_groups *CONTRACT_PARTS)
    baryon_kernel(launch w, spinor<S> fa, spinor<S> fb) {
  constexpr int each = baryon<K>::each, numbers = baryon<K>::numbers, props = K == 0 ? 2 : 1;
  __shared__ __align__(16) double shared_props[baryon_groups][props][2 * CONTRACT_PROP];
  __shared__ __align__(16) double shared_diquark[baryon_groups][2 * CONTRACT_DIQUARK];
  const int group = threadIdx.x / CONTRACT_PARTS, part = threadIdx.x % CONTRACT_PARTS;
  double *pa = shared_props[group][0], *diquark = shared_diquark[group];
  double *pb = fa.data == fb.data ? pa : shared_props[group][props - 1];
  dcx sum[M][each] = {};
  int first, last;
  piece_sites(w, first, last);
  for (int k0 = first; k0 < last; k0 += baryon_groups) {
    const bool here = k0 + group < last;
    const slice_pos at = slice_site(w.lat, w.t0 + blockIdx.y, here ? k0 + group : k0);
    load_prop(fa, at.site, part, pa);
    if (pb != pa) load_prop(fb, at.site, part, pb);
    __syncwarp();
    diquark_part<K>(part, pa, pb, diquark);
    __syncwarp();
    dcx q[each];
    baryon<K>::parts(part, pa, diquark, q);
    __syncwarp();
    QK_UNROLL
    for (int m = 0; m < M; m++) {
      const dcx phase = here && m < w.nm ? momentum_phase(w, m, at.x) : dcx{0, 0};
      QK_UNROLL
      for (int j = 0; j < each; j++) add_product<0>(sum[m][j], phase, q[j]);
    }
  }
  /* The sums of the groups, added in order. */
  double *out = w.partial + ((int64_t)blockIdx.y * w.pieces + blockIdx.x) * M * 2 * numbers;
  double *mine = &shared_diquark[0][0];
  static_assert(baryon_groups * 2 * numbers <= sizeof shared_diquark / sizeof(double), "room");
  QK_UNROLL
  for (int m = 0; m < M; m++) {
    __syncthreads();
    QK_UNROLL
    for (int j = 0; j < each; j++)
      complex_set(mine, group * numbers + j * CONTRACT_PARTS + part, sum[m][j]);
    __syncthreads();
    for (int n = threadIdx.x; n < 2 * numbers; n += baryon_groups * CONTRACT_PARTS) {
      double total = 0;
      for (int g = 0; g < baryon_groups; g++) total += mine[g * 2 * numbers + n];
      out[m * 2 * numbers + n] = total;
    }
  }
}

template <int K> struct baryons {
  static constexpr int numbers = baryon<K>::numbers, groups = baryon_groups;
  static constexpr int momenta = K == 0 ? 16 : 4;

  template <class S, int M>
  static void start(const launch &w, dim3 grid, const qk_contract_args_t &args,
                    cudaStream_t stream) {
    baryon_kernel<S, K, M><<<grid, baryon_groups * CONTRACT_PARTS, 0, stream>>>(
        w, spinor_of<S>(args.a), spinor_of<S>(K == 0 ? args.b : args.a));
  }
};

/* ---- launches ---- */

/* Numbers at.. of out[m][t], from the sums of the pieces: one thread a real,
 * block (t, momentum). */
__global__ void sum_kernel(launch w, int stride, int numbers, int all, int at, double *out) {
  const int t = blockIdx.x, m = blockIdx.y;
  for (int n = threadIdx.x; n < 2 * numbers; n += blockDim.x) {
    double sum = 0;
    for (int p = 0; p < w.pieces; p++)
      sum += w.partial[(((int64_t)t * w.pieces + p) * stride + m) * 2 * numbers + n];
    out[2 * (((int64_t)(w.m0 + m) * w.lat.l[3] + w.t0 + t) * all + at) + n] = sum;
  }
}

/* Momenta m0.. m0+nm-1, M of them at most, of all slices. */
template <class H, class S, int M>
qk_status_t contract_momenta(qk_ops_ctx_t *ctx, const qk_contract_args_t &args, int m0, int nm,
                             int at) {
  const int lt = args.lat.l[3], sites = 2 * args.lat.vcb / lt;
  /* Enough blocks to fill the device, of enough sites to be worth one. */
  int pieces = (QK_GPU_BLOCKS / 2 + lt - 1) / lt;
  const int most = (sites + 2 * H::groups - 1) / (2 * H::groups);
  if (pieces > most) pieces = most;
  const int64_t slice_doubles = (int64_t)pieces * M * 2 * H::numbers;
  const int fit = (int)(scratch / slice_doubles), slices = fit < lt ? fit : lt;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  launch w = {args.lat, args.phase, qk_gpu(ctx)->partial, 0, pieces, m0, nm};
  qk_status_t status = QK_OK;
  for (; status == QK_OK && w.t0 < lt; w.t0 += slices) {
    const unsigned nt = (unsigned)(lt - w.t0 < slices ? lt - w.t0 : slices);
    H::template start<S, M>(w, dim3((unsigned)pieces, nt), args, stream);
    status = qk_gpu_launched(ctx, "contract");
    if (status != QK_OK) break;
    sum_kernel<<<dim3(nt, (unsigned)nm), 128, 0, stream>>>(
        w, M, H::numbers, hadron_numbers(args.hadron), at, args.out);
    status = qk_gpu_launched(ctx, "contract sum");
  }
  return status;
}

template <class H, class S>
qk_status_t contract_in(qk_ops_ctx_t *ctx, const qk_contract_args_t &args, int at) {
  qk_status_t status = QK_OK;
  for (int m0 = 0; status == QK_OK && m0 < args.nmom; m0 += H::momenta) {
    const int left = args.nmom - m0, nm = left < H::momenta ? left : H::momenta;
    status = nm == 1   ? contract_momenta<H, S, 1>(ctx, args, m0, nm, at)
             : nm <= 4 ? contract_momenta<H, S, 4>(ctx, args, m0, nm, at)
                       : contract_momenta<H, S, H::momenta>(ctx, args, m0, nm, at);
  }
  return status;
}

template <class S> qk_status_t contract_as(qk_ops_ctx_t *ctx, const qk_contract_args_t &args) {
  constexpr int row = baryon<1>::numbers;
  switch (args.hadron) {
  case QK_HADRON_MESON:
    return contract_in<mesons, S>(ctx, args, 0);
  case QK_HADRON_NUCLEON:
    return contract_in<baryons<0>, S>(ctx, args, 0);
  case QK_HADRON_DELTA:
    break;
  }
  qk_status_t status = contract_in<baryons<1>, S>(ctx, args, 0);
  if (status == QK_OK) status = contract_in<baryons<2>, S>(ctx, args, row);
  if (status == QK_OK) status = contract_in<baryons<3>, S>(ctx, args, 2 * row);
  return status;
}

} // namespace

qk_status_t contract(qk_ops_ctx_t *ctx, const qk_contract_args_t *args) {
  const qk_status_t status = qk_args_contract(ctx, args);
  if (status != QK_OK) return status;
  return args->a.prec == QK_DOUBLE ? contract_as<double>(ctx, *args)
                                   : contract_as<float>(ctx, *args);
}

} // namespace QK_NS
