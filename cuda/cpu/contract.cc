/* Contractions on the CPU: eight sites at a time,
 * pieces of time slices shared among the threads. */
#include "cuda/body/contract.h"

#include "cuda/args/args.h"
#include "cuda/cpu/ctx.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

using vec = lanes<double>;

/* Numbers of a hadron, and momenta that one pass makes. */
constexpr int most_numbers = 256, most_momenta = 4;
static_assert(most_momenta * most_numbers * 2 <= QK_CPU_PARTIALS, "a piece's sums fit a row");

/* All 12 columns of eight sites, those from n on zero. */
template <class S>
void load_prop(const spinor<S> &f, const slice_pos *at, int n, vec p[2 * CONTRACT_PROP]) {
  for (int l = 0; l < QK_TILE; l++) {
    const S *site = f.data + at[l < n ? l : 0].site * (f.ntile * QK_TILE * 24);
    const double one = l < n ? 1 : 0;
    for (int c = 0; c < 24; c++)
      for (int column = 0; column < CONTRACT_COLUMNS; column++) {
        const S *tile = site + column / QK_TILE * (QK_TILE * 24);
        p[2 * (c / 2 * CONTRACT_ROW + column) + c % 2][l] =
            one * (double)tile[c * QK_TILE + column % QK_TILE];
      }
  }
}

/* Number [be][al][ga][de] is a product of vectors over the colours at x and at the source. */
struct meson_sites {
  static constexpr int numbers = 256;
  static constexpr bool two = true;

  static void make(const vec *a, const vec *b, cx<vec> *out) {
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++) {
        cx<vec> s = {};
        QK_UNROLL
        for (int k = 0; k < 9; k++)
          add_conj_product(s, complex_at(b, prop_at(i / 4, k / 3, i % 4, k % 3)),
                           complex_at(a, prop_at(j / 4, k / 3, j % 4, k % 3)));
        out[16 * i + j] = s;
      }
  }
};

template <int K> struct baryon_sites {
  static constexpr int numbers = baryon<K>::numbers;
  static constexpr bool two = K == 0;

  static void make(const vec *a, const vec *b, cx<vec> *out) {
    vec diquark[2 * CONTRACT_DIQUARK];
    for (int part = 0; part < CONTRACT_PARTS; part++)
      diquark_part<K>(part, a, two ? b : a, diquark);
    for (int part = 0; part < CONTRACT_PARTS; part++) {
      cx<vec> q[baryon<K>::each];
      baryon<K>::parts(part, a, diquark, q);
      for (int j = 0; j < baryon<K>::each; j++) out[j * CONTRACT_PARTS + part] = q[j];
    }
  }
};

/* Sums over sites first..last-1 of slice t, of momenta m0 .. m0+nm-1: sum[nm][numbers]. */
template <class H, class S>
void sum_piece(const qk_contract_args_t &args, int t, int first, int last, int m0, int nm,
               double *sum) {
  const spinor<S> a = spinor_of<S>(args.a), b = spinor_of<S>(args.b);
  const bool two = H::two && args.a.data != args.b.data;
  vec pa[2 * CONTRACT_PROP], pb[2 * CONTRACT_PROP];
  cx<vec> q[H::numbers], acc[most_momenta][H::numbers];
  memset(acc, 0, sizeof acc);
  for (int k = first; k < last; k += QK_TILE) {
    const int n = last - k < QK_TILE ? last - k : QK_TILE;
    slice_pos at[QK_TILE];
    for (int l = 0; l < n; l++) at[l] = slice_site(args.lat, t, k + l);
    load_prop(a, at, n, pa);
    if (two) load_prop(b, at, n, pb);
    H::make(pa, two ? pb : pa, q);
    for (int m = 0; m < nm; m++) {
      cx<vec> w = {};
      for (int l = 0; l < n; l++) {
        const dcx z =
            phase_at(args.phase + 2 * (m0 + m) * phase_factors(args.lat), args.lat, at[l].x);
        w.re[l] = z.re;
        w.im[l] = z.im;
      }
      for (int i = 0; i < H::numbers; i++) add_product<0>(acc[m][i], w, q[i]);
    }
  }
  for (int m = 0; m < nm; m++)
    for (int i = 0; i < H::numbers; i++, sum += 2) {
      sum[0] = sum[1] = 0;
      for (int l = 0; l < QK_TILE; l++) {
        sum[0] += acc[m][i].re[l];
        sum[1] += acc[m][i].im[l];
      }
    }
}

/* Slices are cut into pieces by the lattice alone; numbers go to out[m][t][at + ...]. */
template <class H, class S>
void contract_in(qk_ops_ctx_t *ctx, const qk_contract_args_t &args, int at) {
  const int lt = args.lat.l[3], sites = 2 * args.lat.vcb / lt, all = hadron_numbers(args.hadron);
  const int slices = lt < QK_CPU_CHUNKS ? lt : QK_CPU_CHUNKS;
  int pieces = 64 / slices;
  if (pieces > sites / QK_TILE) pieces = sites / QK_TILE;
  if (pieces < 1) pieces = 1;
  double *partial = qk_cpu(ctx)->partial;
  for (int m0 = 0; m0 < args.nmom; m0 += most_momenta)
    for (int t0 = 0; t0 < lt; t0 += slices) {
      const int nm = args.nmom - m0 < most_momenta ? args.nmom - m0 : most_momenta;
      const int nt = lt - t0 < slices ? lt - t0 : slices;
#pragma omp parallel for schedule(dynamic)
      for (int i = 0; i < nt * pieces; i++) {
        const int64_t p = i % pieces;
        sum_piece<H, S>(args, t0 + i / pieces, (int)(sites * p / pieces),
                        (int)(sites * (p + 1) / pieces), m0, nm, partial + i * QK_CPU_PARTIALS);
      }
      for (int m = 0; m < nm; m++)
        for (int t = 0; t < nt; t++)
          for (int k = 0; k < 2 * H::numbers; k++) {
            double sum = 0;
            for (int p = 0; p < pieces; p++)
              sum += partial[(t * pieces + p) * QK_CPU_PARTIALS + m * 2 * H::numbers + k];
            args.out[2 * (((int64_t)(m0 + m) * lt + t0 + t) * all + at) + k] = sum;
          }
    }
}

template <class S> void contract_as(qk_ops_ctx_t *ctx, const qk_contract_args_t &args) {
  constexpr int row = baryon<1>::numbers;
  switch (args.hadron) {
  case QK_HADRON_MESON:
    return contract_in<meson_sites, S>(ctx, args, 0);
  case QK_HADRON_NUCLEON:
    return contract_in<baryon_sites<0>, S>(ctx, args, 0);
  case QK_HADRON_DELTA:
    contract_in<baryon_sites<1>, S>(ctx, args, 0);
    contract_in<baryon_sites<2>, S>(ctx, args, row);
    contract_in<baryon_sites<3>, S>(ctx, args, 2 * row);
  }
}

} // namespace

qk_status_t contract(qk_ops_ctx_t *ctx, const qk_contract_args_t *args) {
  const qk_status_t status = qk_args_contract(ctx, args);
  if (status != QK_OK) return status;
  if (args->a.prec == QK_DOUBLE)
    contract_as<double>(ctx, *args);
  else
    contract_as<float>(ctx, *args);
  return QK_OK;
}

} // namespace QK_NS
