/*
 * Prolongator and restrictor on the CPU: aggregates shared among the threads.
 *
 * Vectors: [fine site, even ones first][chirality][component][vector / 4][re of 4][im of 4], the
 * last four filled up with zeros. A tile of RHS broadcasts single words, a single RHS takes four
 * vectors as a vector.
 */
#include <math.h>

#include "cuda/args/mg_args.h"
#include "cuda/body/transfer.h"
#include "cuda/kernels.h"
#include "cuda/site/clanes.h"

namespace QK_NS {
namespace {

constexpr int GROUP = 4, WORDS = 2 * GROUP;
constexpr int MAX_TILES = QK_MAX_RHS / QK_TILE;

struct shape {
  int ncomp, half; /* components of a fine site, and of one chirality */
  int nvec, groups;
  int ntile;

  int words() const { return ncomp * groups * WORDS; } /* of the vectors at a fine site */
  int per_chirality() const { return half * groups * WORDS; }
};

shape shape_of(const qk_transfer_t &t, int ntile) {
  return {t.ncomp, t.ncomp / 2, t.nvec, (t.nvec + GROUP - 1) / GROUP, ntile};
}

int lattice_site(const qk_lattice_t &lat, const site_pos &s) {
  return s.cb + (s.parity == 1 ? lat.vcb : 0);
}

/* Where a site stands in a field that may hold one parity only. */
int field_site(const qk_spinor_t &f, const qk_lattice_t &lat, const site_pos &s) {
  return f.subset == QK_FULL ? lattice_site(lat, s) : s.cb;
}

template <class S> const float *widened(const S *p, int words, float *room) {
  if constexpr (std::is_same_v<S, float>) {
    return p;
  } else {
    for (int i = 0; i < words; i += QK_TILE) {
      lanes<float> v;
      load_row(p + i, v);
      store_row(room + i, v);
    }
    return room;
  }
}

/* ---- tiles of RHS ---------------------------------------------------------------------------- */

/* The rows of a tile of the fine field. */
template <class F> const float *fine_rows(const qk_spinor_t &f, int64_t tile, lanes<float> *room) {
  const F *p = (const F *)f.data + tile * 2 * f.ncomp * QK_TILE;
  if constexpr (std::is_same_v<F, float>) {
    return p;
  } else {
    const lanes<float> scale = load_scale(f.scale, {tile, 0});
    for (int c = 0; c < 2 * f.ncomp; c++) {
      load_row(p + c * QK_TILE, room[c]);
      room[c] = room[c] * scale;
    }
    return (const float *)room;
  }
}

template <class F>
void put_fine_rows(const qk_spinor_t &f, int64_t tile, bool add, clanes<float> *z) {
  if (add) {
    lanes<float> room[24];
    const float *old = fine_rows<F>(f, tile, room);
    for (int c = 0; c < f.ncomp; c++) {
      clanes<float> v;
      load_complex_row(old + 2 * c * QK_TILE, v);
      z[c] = z[c] + v;
    }
  }
  if constexpr (std::is_same_v<F, float>) {
    for (int c = 0; c < f.ncomp; c++)
      store_complex_row((float *)f.data + (tile * f.ncomp + c) * 2 * QK_TILE, z[c]);
  } else {
    lanes<float> rows[24];
    for (int c = 0; c < 12; c++) to_rows(z[c], rows + 2 * c);
    store_scaled<24>(spinor_of<half>(f), {tile, 0}, rows);
  }
}

/* Sums at a time: as many as hide the time of a product. */
#ifdef __AVX512F__
constexpr int AT_ONCE = 2 * GROUP;
#else
constexpr int AT_ONCE = GROUP;
#endif

/* sums [vector] += conj(V) x for N vectors. v: of the first one. */
template <int N>
QK_HD void restrict_vectors(const shape &s, const float *v, const float *x, clanes<float> *sums) {
  clanes<float> sum[N];
  QK_UNROLL
  for (int r = 0; r < N; r++) sum[r] = sums[r];
  for (int c = 0; c < s.half; c++, v += s.groups * WORDS) {
    clanes<float> z;
    load_complex_row(x + 2 * c * QK_TILE, z);
    const clanes<float> iz = times_i(z);
    QK_UNROLL
    for (int r = 0; r < N; r++) {
      const float *m = v + r / GROUP * WORDS + r % GROUP;
      sum[r] = sum[r] + m[0] * z;
      sum[r] = sum[r] - m[GROUP] * iz;
    }
  }
  QK_UNROLL
  for (int r = 0; r < N; r++) sums[r] = sum[r];
}

/* sums [vector] += conj(V) x for one site and chirality. */
QK_HD void add_restricted(const shape &s, const float *v, const float *x, clanes<float> *sums) {
  const int vectors = s.groups * GROUP;
  int i = 0;
  for (; i + AT_ONCE <= vectors; i += AT_ONCE)
    restrict_vectors<AT_ONCE>(s, v + i / GROUP * WORDS, x, sums + i);
  for (; i < vectors; i += GROUP) restrict_vectors<GROUP>(s, v + i / GROUP * WORDS, x, sums + i);
}

/* y [row] = ROWS components of V phi. */
template <int ROWS>
QK_HD void prolong_rows(const shape &s, const float *v, const float *phi, clanes<float> *y) {
  clanes<float> sum[ROWS] = {};
  for (int k = 0; k < s.nvec; k++) {
    const float *m = v + k / GROUP * WORDS + k % GROUP;
    clanes<float> z;
    load_complex_row(phi + 2 * k * QK_TILE, z);
    const clanes<float> iz = times_i(z);
    QK_UNROLL
    for (int r = 0; r < ROWS; r++) {
      const float *e = m + r * s.groups * WORDS;
      sum[r] = sum[r] + e[0] * z;
      sum[r] = sum[r] + e[GROUP] * iz;
    }
  }
  QK_UNROLL
  for (int r = 0; r < ROWS; r++) y[r] = sum[r];
}

QK_HD void prolong_site(const shape &s, const float *v, const float *phi, clanes<float> *y) {
  const int words = s.groups * WORDS;
  int c = 0;
  for (; c + AT_ONCE <= s.half; c += AT_ONCE) prolong_rows<AT_ONCE>(s, v + c * words, phi, y + c);
  if (AT_ONCE > 6 && c + 6 == s.half) {
    prolong_rows<6>(s, v + c * words, phi, y + c);
    return;
  }
  for (; c + 4 <= s.half; c += 4) prolong_rows<4>(s, v + c * words, phi, y + c);
  for (; c < s.half; c += 2) prolong_rows<2>(s, v + c * words, phi, y + c);
}

template <class V> struct tiles_of_rhs {
  const qk_transfer_args_t &a;
  const aggregate_walk &w;
  const shape s;
  alignas(64) float room[QK_MG_N_MAX * QK_MG_NVEC_MAX * 2];

  tiles_of_rhs(const qk_transfer_args_t &args, const aggregate_walk &walk, const shape &sizes)
      : a(args), w(walk), s(sizes) {}

  const float *vectors(const site_pos &x) {
    const V *p = (const V *)a.t.data + lattice_site(a.t.agg.fine, x) * (int64_t)s.words();
    return widened(p, s.words(), room);
  }
  int64_t coarse_tile(int n, int tile) const {
    const int site = lattice_site(a.t.agg.coarse, site_at(a.t.agg.coarse, w.coarse, n));
    return site * (int64_t)s.ntile + tile;
  }

  /* visit(vectors, tile of the fine field, which tile): all sites of an aggregate. */
  template <class Visit> void sites(int n, const Visit &visit) {
    int origin[4];
    aggregate_origin(a.t.agg, w, n, origin);
    for (int i = 0; i < w.volume; i++) {
      const site_pos x = aggregate_site(a.t.agg, w, origin, i);
      if (a.parity != QK_FULL && x.parity != (int)a.parity) continue;
      const float *v = vectors(x);
      const int64_t at = field_site(a.fine, a.t.agg.fine, x) * (int64_t)s.ntile;
      for (int tile = 0; tile < s.ntile; tile++) visit(v, at + tile, tile);
    }
  }

  template <class F> void gather(int n) {
    clanes<float> sums[MAX_TILES][2][QK_MG_NVEC_MAX];
    lanes<float> rows[24];
    for (int tile = 0; tile < s.ntile; tile++)
      for (int k = 0; k < 2; k++)
        for (int i = 0; i < s.groups * GROUP; i++) sums[tile][k][i] = clanes<float>{};
    sites(n, [&](const float *v, int64_t at, int tile) {
      const float *psi = fine_rows<F>(a.fine, at, rows);
      for (int k = 0; k < 2; k++)
        add_restricted(s, v + k * s.per_chirality(), psi + k * 2 * s.half * QK_TILE, sums[tile][k]);
    });
    for (int tile = 0; tile < s.ntile; tile++)
      for (int k = 0; k < 2; k++)
        for (int i = 0; i < s.nvec; i++)
          store_complex_row((float *)a.coarse.data +
                                ((coarse_tile(n, tile) * 2 + k) * s.nvec + i) * 2 * QK_TILE,
                            sums[tile][k][i]);
  }

  template <class F> void spread(int n) {
    clanes<float> y[QK_MG_N_MAX];
    sites(n, [&](const float *v, int64_t at, int tile) {
      const float *phi = (const float *)a.coarse.data + coarse_tile(n, tile) * 4 * s.nvec * QK_TILE;
      for (int k = 0; k < 2; k++)
        prolong_site(s, v + k * s.per_chirality(), phi + k * 2 * s.nvec * QK_TILE, y + k * s.half);
      put_fine_rows<F>(a.fine, at, a.add != 0, y);
    });
  }
};

/* ---- one RHS: four vectors are a vector ------------------------------------------------------ */

template <class V> struct one_rhs {
  const qk_transfer_args_t &a;
  const aggregate_walk &w;
  const shape s;

  const V *vectors(const site_pos &x) const {
    return (const V *)a.t.data + lattice_site(a.t.agg.fine, x) * (int64_t)s.words();
  }
  template <class F> static F *words_at(const qk_spinor_t &f, int site) {
    return (F *)f.data + site / QK_TILE * (int64_t)(QK_TILE * 2 * f.ncomp) + site % QK_TILE;
  }
  float *coarse_words(int n) const {
    return words_at<float>(a.coarse,
                           lattice_site(a.t.agg.coarse, site_at(a.t.agg.coarse, w.coarse, n)));
  }
  template <class F> void get_fine(int site, float *x) const {
    const F *p = words_at<F>(a.fine, site);
    const float scale = storage<F>::scaled ? a.fine.scale[site] : 1;
    for (int c = 0; c < 2 * s.ncomp; c++) x[c] = scale * widen(p[c * QK_TILE]);
  }
  template <class F> void put_fine(int site, float *x) const {
    F *p = words_at<F>(a.fine, site);
    if constexpr (storage<F>::scaled) {
      constexpr float least = 1.17549435e-38f;
      float top = fabsf(x[0]);
      for (int c = 1; c < 2 * s.ncomp; c++) top = fabsf(x[c]) > top ? fabsf(x[c]) : top;
      const float inverse = top < least ? 0 : 1 / top;
      for (int c = 0; c < 2 * s.ncomp; c++) narrow(x[c] * inverse, p[c * QK_TILE]);
      a.fine.scale[site] = top < least ? 0 : top;
    } else {
      for (int c = 0; c < 2 * s.ncomp; c++) p[c * QK_TILE] = x[c];
    }
  }

  /* visit(vectors, site of the fine field): all sites of an aggregate. */
  template <class Visit> void sites(int n, const Visit &visit) const {
    int origin[4];
    aggregate_origin(a.t.agg, w, n, origin);
    for (int i = 0; i < w.volume; i++) {
      const site_pos at = aggregate_site(a.t.agg, w, origin, i);
      if (a.parity != QK_FULL && at.parity != (int)a.parity) continue;
      visit(vectors(at), field_site(a.fine, a.t.agg.fine, at));
    }
  }

  template <class F> void gather(int n) {
    lanes<float> by_re[2][QK_MG_NVEC_MAX / GROUP] = {}, by_im[2][QK_MG_NVEC_MAX / GROUP] = {};
    float x[2 * QK_MG_N_MAX];
    sites(n, [&](const V *all, int site) {
      get_fine<F>(site, x);
      for (int k = 0; k < 2; k++)
        for (int g = 0; g < s.groups; g++) {
          const V *v = all + k * s.per_chirality() + g * WORDS;
          lanes<float> re = by_re[k][g], im = by_im[k][g], m;
          for (int c = 0; c < s.half; c++) {
            load_row(v + c * s.groups * WORDS, m);
            re = re + m * x[2 * (k * s.half + c)];
            im = im + m * x[2 * (k * s.half + c) + 1];
          }
          by_re[k][g] = re;
          by_im[k][g] = im;
        }
    });
    float *out = coarse_words(n);
    for (int k = 0; k < 2; k++)
      for (int v = 0; v < s.nvec; v++) {
        const lanes<float> &re = by_re[k][v / GROUP], &im = by_im[k][v / GROUP];
        const int r = v % GROUP, c = 2 * (k * s.nvec + v);
        out[c * QK_TILE] = re[r] + im[GROUP + r];
        out[(c + 1) * QK_TILE] = im[r] - re[GROUP + r];
      }
  }

  template <class F> void spread(int n) {
    /* phi as (re, im) of four, and as (im, re) */
    lanes<float> phi[2][QK_MG_NVEC_MAX / GROUP] = {}, turned[2][QK_MG_NVEC_MAX / GROUP] = {};
    const float *in = coarse_words(n);
    for (int k = 0; k < 2; k++)
      for (int v = 0; v < s.nvec; v++)
        for (int im = 0; im < 2; im++) {
          const float value = in[(2 * (k * s.nvec + v) + im) * QK_TILE];
          phi[k][v / GROUP][im * GROUP + v % GROUP] = value;
          turned[k][v / GROUP][(1 - im) * GROUP + v % GROUP] = value;
        }
    float y[2 * QK_MG_N_MAX], old[2 * QK_MG_N_MAX];
    sites(n, [&](const V *v, int site) {
      for (int c = 0; c < s.ncomp; c++, v += s.groups * WORDS) {
        const int k = c >= s.half;
        lanes<float> re = {}, im = {}, m;
        for (int g = 0; g < s.groups; g++) {
          load_row(v + g * WORDS, m);
          re = re + m * phi[k][g];
          im = im + m * turned[k][g];
        }
        y[2 * c] = re[0] + re[1] + re[2] + re[3] - (re[4] + re[5] + re[6] + re[7]);
        y[2 * c + 1] = im[0] + im[1] + im[2] + im[3] + (im[4] + im[5] + im[6] + im[7]);
      }
      if (a.add) get_fine<F>(site, old);
      for (int c = 0; a.add && c < 2 * s.ncomp; c++) y[c] += old[c];
      put_fine<F>(site, y);
    });
  }
};

/* ---- calls ----------------------------------------------------------------------------------- */

template <class WORK, class F> void transfer_with(const qk_transfer_args_t &a, bool up) {
  const aggregate_walk w = aggregates_of(a.t.agg);
  const shape s = shape_of(a.t, a.fine.ntile);
#pragma omp parallel
  {
    WORK work{a, w, s};
#pragma omp for schedule(static)
    for (int n = 0; n < w.coarse.nwork; n++) {
      if (up)
        work.template gather<F>(n);
      else
        work.template spread<F>(n);
    }
  }
}

template <class V> void transfer_as(const qk_transfer_args_t &a, bool up) {
  const bool single_rhs = a.fine.ntile == 0, narrow_fine = a.fine.prec == QK_HALF;
  if (single_rhs && narrow_fine)
    transfer_with<one_rhs<V>, half>(a, up);
  else if (single_rhs)
    transfer_with<one_rhs<V>, float>(a, up);
  else if (narrow_fine)
    transfer_with<tiles_of_rhs<V>, half>(a, up);
  else
    transfer_with<tiles_of_rhs<V>, float>(a, up);
}

qk_status_t transfer_any(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args, bool up) {
  const qk_status_t status = qk_args_transfer(ctx, args);
  if (status != QK_OK) return status;
  if (args->t.prec == QK_HALF)
    transfer_as<half>(*args, up);
  else
    transfer_as<float>(*args, up);
  return QK_OK;
}

/* The words of one fine site to or from a field of columns. i: a column of it. */
template <class V> void copy_site(const qk_transfer_copy_args_t &a, int site, bool set) {
  const shape s = shape_of(a.t, a.v.ntile);
  const int columns = (a.v.nrhs + GROUP - 1) / GROUP * GROUP;
  V *words = (V *)a.t.data + site * (int64_t)s.words();
  float *field = (float *)a.v.data;
  for (int c = 0; c < s.ncomp; c++)
    for (int i = 0; i < columns; i++)
      for (int im = 0; im < 2; im++) {
        const int v = a.first + i;
        V &word = words[(c * s.groups + v / GROUP) * WORDS + im * GROUP + v % GROUP];
        const int64_t tile = site * (int64_t)s.ntile + i / QK_TILE;
        float *value = field + (tile * 2 * s.ncomp + 2 * c + im) * QK_TILE + i % QK_TILE;
        if (set)
          narrow(i < a.v.nrhs ? *value : 0.0f, word);
        else if (i < a.v.nrhs)
          *value = widen(word);
      }
}

qk_status_t copy_all(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args, bool set) {
  const qk_status_t status = qk_args_transfer_copy(ctx, args);
  if (status != QK_OK) return status;
#pragma omp parallel for schedule(static)
  for (int site = 0; site < 2 * args->t.agg.fine.vcb; site++) {
    if (args->t.prec == QK_HALF)
      copy_site<half>(*args, site, set);
    else
      copy_site<float>(*args, site, set);
  }
  return QK_OK;
}

} // namespace

size_t transfer_bytes(const qk_transfer_t *t) {
  return (size_t)t->agg.fine.vcb * 2 * (size_t)shape_of(*t, 1).words() *
         (size_t)qk_prec_bytes(t->prec);
}

qk_status_t restrict_(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args) {
  return transfer_any(ctx, args, true);
}

qk_status_t prolong(qk_ops_ctx_t *ctx, const qk_transfer_args_t *args) {
  return transfer_any(ctx, args, false);
}

qk_status_t transfer_set(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args) {
  return copy_all(ctx, args, true);
}

qk_status_t transfer_get(qk_ops_ctx_t *ctx, const qk_transfer_copy_args_t *args) {
  return copy_all(ctx, args, false);
}

} // namespace QK_NS
