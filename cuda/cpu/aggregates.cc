/* Aggregates on the CPU: a thread has a chirality of one, and eight columns are a vector. */
#include "cuda/args/mg_args.h"
#include "cuda/args/mg_setup_args.h"
#include "cuda/body/aggregate.h"
#include "cuda/body/coarse_setup.h"
#include "cuda/body/principal.h"
#include "cuda/cpu/ctx.h"
#include "cuda/cpu/team.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

constexpr int most_columns = QK_MG_NVEC_MAX, most_tiles = most_columns / QK_TILE;

/* An n x n matrix with its columns in tiles: row i, tile t. */
struct tiled_matrix {
  lanes<double> re[most_columns][most_tiles], im[most_columns][most_tiles];
};

/* Half of the components of a block of columns; words a tile. */
template <class S> struct half_field {
  S *data;
  int ntile, ncomp;
  half_field(const qk_spinor_t &f, int chirality)
      : data((S *)f.data + chirality * f.ncomp * QK_TILE), ntile(f.ntile), ncomp(f.ncomp) {}
  S *tile(int site, int t) const {
    return data + ((int64_t)site * ntile + t) * (2 * QK_TILE * (int64_t)ncomp);
  }
};

QK_HD void load_as(const float *p, lanes<float> &v) {
  load_row(p, v);
}
QK_HD void load_as(const float *p, lanes<double> &v) {
  lanes<float> f;
  load_row(p, f);
  v = lanes_cast<lanes<double>>(f);
}
QK_HD void load_as(const double *p, lanes<double> &v) {
  load_row(p, v);
}
QK_HD void store_as(float *p, const lanes<double> &v) {
  store_row(p, lanes_cast<lanes<float>>(v));
}
QK_HD void store_as(double *p, const lanes<double> &v) {
  store_row(p, v);
}

/* Sites whose products are added up in R before they go to the sums in double. */
constexpr int chunk_sites = 8;

/* sum[i + k][t] += sum over sites and components of conj(a[i + k]) b[t] for I columns from i on, of
 * one tile of a. */
template <class R, int I, class S>
QK_PART void chunk_products(const half_field<S> &a, const half_field<S> &b, const int *site, int n,
                            int i, int t, tiled_matrix &sum) {
  lanes<R> re[I] = {}, im[I] = {};
  for (int s = 0; s < n; s++) {
    const S *pa = a.tile(site[s], i / QK_TILE) + i % QK_TILE, *pb = b.tile(site[s], t);
    for (int c = 0; c < a.ncomp / 2; c++, pa += 2 * QK_TILE, pb += 2 * QK_TILE) {
      lanes<R> br, bi;
      load_as(pb, br);
      load_as(pb + QK_TILE, bi);
      QK_UNROLL
      for (int k = 0; k < I; k++) {
        const R ar = pa[k], ai = pa[QK_TILE + k];
        re[k] = re[k] + ar * br + ai * bi;
        im[k] = im[k] + ar * bi - ai * br;
      }
    }
  }
  for (int k = 0; k < I; k++) {
    sum.re[i + k][t] = sum.re[i + k][t] + lanes_cast<lanes<double>>(re[k]);
    sum.im[i + k][t] = sum.im[i + k][t] + lanes_cast<lanes<double>>(im[k]);
  }
}

/* sum = a^+ b over the sites of a box, chunks in R. upper: of rows i and columns j >= i only. */
template <class R, int I, class S>
void box_products(const aggregate_box &box, int aggregate, const half_field<S> &a,
                  const half_field<S> &b, int n, bool upper, tiled_matrix &sum) {
  const lanes<double> zero = {};
  for (int i = 0; i < a.ntile * QK_TILE; i++)
    for (int t = 0; t < b.ntile; t++) sum.re[i][t] = sum.im[i][t] = zero;
  const box_corner corner = corner_of(box, aggregate);
  for (int first = 0; first < box.nsites; first += chunk_sites) {
    const int left = box.nsites - first, count = left < chunk_sites ? left : chunk_sites;
    int site[chunk_sites];
    for (int s = 0; s < count; s++) site[s] = box_site(box, corner, first + s);
    for (int i = 0; i < n; i += I)
      for (int t = upper ? i / QK_TILE : 0; t < b.ntile; t++)
        chunk_products<R, I>(a, b, site, count, i, t, sum);
  }
}

/* Column of a tiled matrix as a number. */
dcx element_of(const tiled_matrix &m, int r, int c) {
  return {m.re[r][c / QK_TILE][c % QK_TILE], m.im[r][c / QK_TILE][c % QK_TILE]};
}

/* From the products of the columns with each other to the upper triangular matrix that makes them
 * orthonormal. */
bool orthonormal_factor(tiled_matrix &m, int n, int ntile) {
  double re[most_columns * most_columns], im[most_columns * most_columns], norm[most_columns];
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++) {
      const dcx x = r <= c ? element_of(m, r, c) : dcx{0, 0};
      re[r * n + c] = x.re;
      im[r * n + c] = x.im;
    }
  if (!invert_factor(alone(), re, im, n, n, norm)) return false;
  for (int r = 0; r < n; r++)
    for (int c = 0; c < ntile * QK_TILE; c++) {
      const bool above = r <= c && c < n;
      m.re[r][c / QK_TILE][c % QK_TILE] = above ? re[c * n + r] : 0;
      m.im[r][c / QK_TILE][c % QK_TILE] = above ? -im[c * n + r] : 0;
    }
  return true;
}

/* From the products of the columns with each other to the matrix that makes the first `keep` of
 * them their singular vectors, and the others 0. */
void principal_factor(tiled_matrix &m, int n, int ntile, int keep) {
  double re[most_columns * most_columns], im[most_columns * most_columns];
  double w_re[most_columns * most_columns], w_im[most_columns * most_columns];
  double value[most_columns];
  rotation j[most_columns / 2];
  int busy;
  for (int r = 0; r < n; r++)
    for (int c = r; c < n; c++) {
      const dcx x = element_of(m, r, c);
      re[r * n + c] = re[c * n + r] = x.re;
      im[r * n + c] = x.im;
      im[c * n + r] = -x.im;
    }
  for (int r = 0; r < n; r++) im[r * n + r] = 0;
  principal_vectors(alone(), plain_matrix{re, im, n}, plain_matrix{w_re, w_im, n}, n, j, value,
                    &busy);
  for (int r = 0; r < n; r++)
    for (int c = 0; c < ntile * QK_TILE; c++) {
      m.re[r][c / QK_TILE][c % QK_TILE] = c < keep ? re[c * n + r] : 0;
      m.im[r][c / QK_TILE][c % QK_TILE] = c < keep ? -im[c * n + r] : 0;
    }
}

/* Two components of all columns of a site. */
struct component_pair {
  double re[2][most_columns], im[2][most_columns];
};

/* The columns of tile t of x f, for f with zeros from row `last` on. */
template <class S>
QK_PART void times_factor(const component_pair &x, const tiled_matrix &f, int last, int t, S *to) {
  lanes<double> re[2] = {}, im[2] = {};
  for (int i = 0; i < last; i++) QK_UNROLL
  for (int k = 0; k < 2; k++) {
    re[k] = re[k] + x.re[k][i] * f.re[i][t] - x.im[k][i] * f.im[i][t];
    im[k] = im[k] + x.re[k][i] * f.im[i][t] + x.im[k][i] * f.re[i][t];
  }
  for (int k = 0; k < 2; k++) {
    store_as(to + 2 * k * QK_TILE, re[k]);
    store_as(to + (2 * k + 1) * QK_TILE, im[k]);
  }
}

/* v = v f on the sites of a box; upper: f is upper triangular. */
template <class S>
void box_times(const aggregate_box &box, int aggregate, const half_field<S> &v, int n, bool upper,
               const tiled_matrix &f) {
  const box_corner corner = corner_of(box, aggregate);
  for (int k = 0; k < box.nsites; k++) {
    const int site = box_site(box, corner, k);
    for (int c = 0; c < v.ncomp / 2; c += 2) {
      component_pair x;
      for (int i = 0; i < n; i++) {
        const S *p = v.tile(site, i / QK_TILE) + 2 * c * QK_TILE + i % QK_TILE;
        for (int j = 0; j < 2; j++) {
          x.re[j][i] = p[2 * j * QK_TILE];
          x.im[j][i] = p[(2 * j + 1) * QK_TILE];
        }
      }
      for (int t = 0; t < v.ntile; t++)
        times_factor(x, f, upper && 8 * t + 8 < n ? 8 * t + 8 : n, t,
                     v.tile(site, t) + 2 * c * QK_TILE);
    }
  }
}

template <class S> int64_t orthonormalise_as(const qk_orthonormalise_args_t &a) {
  const aggregate_box box = box_of(a.agg, -1, false);
  const int halves = 4 * a.agg.coarse.vcb, n = a.v.nrhs;
  int64_t dependent = 0;
#pragma omp parallel for schedule(static) reduction(+ : dependent)
  for (int h = 0; h < halves; h++) {
    const half_field<S> v(a.v, h % 2);
    tiled_matrix m;
    bool fine = true;
    for (int pass = 0; fine && pass < 2; pass++) {
      box_products<double, 2>(box, h / 2, v, v, n, true, m);
      fine = orthonormal_factor(m, n, v.ntile);
      if (fine) box_times(box, h / 2, v, n, true, m);
    }
    dependent += !fine;
  }
  return dependent;
}

template <class S> void principal_as(const qk_principal_args_t &a) {
  const aggregate_box box = box_of(a.agg, -1, false);
  const int halves = 4 * a.agg.coarse.vcb, n = a.v.nrhs;
#pragma omp parallel for schedule(static)
  for (int h = 0; h < halves; h++) {
    const half_field<S> v(a.v, h % 2);
    tiled_matrix m;
    box_products<double, 2>(box, h / 2, v, v, n, true, m);
    principal_factor(m, n, v.ntile, a.keep);
    box_times(box, h / 2, v, n, false, m);
  }
}

/* Rows of chirality `from` of the columns of chirality a.chirality of a site's matrix += m. */
void add_to_matrix(const qk_galerkin_args_t &a, const qk_coarse_links_t &links, int64_t site, int d,
                   int from, const tiled_matrix &m) {
  const int row0 = from * links.n / 2 + a.row0, column0 = a.chirality * links.n / 2 + a.column0;
  for (int r = 0; r < a.v.nrhs; r++)
    for (int c = 0; c < a.w.nrhs; c++) {
      const int row = row0 + r, column = column0 + c;
      put_element(links, site, d, row, column,
                  get_element(links, site, d, row, column) + element_of(m, r, c));
    }
}

} // namespace

qk_status_t orthonormalise(qk_ops_ctx_t *ctx, const qk_orthonormalise_args_t *a) {
  const qk_status_t status = qk_args_orthonormalise(ctx, a);
  if (status != QK_OK) return status;
  *a->dependent =
      a->v.prec == QK_DOUBLE ? orthonormalise_as<double>(*a) : orthonormalise_as<float>(*a);
  return QK_OK;
}

qk_status_t principal(qk_ops_ctx_t *ctx, const qk_principal_args_t *a) {
  const qk_status_t status = qk_args_principal(ctx, a);
  if (status != QK_OK) return status;
  if (a->v.prec == QK_DOUBLE)
    principal_as<double>(*a);
  else
    principal_as<float>(*a);
  return QK_OK;
}

qk_status_t galerkin(qk_ops_ctx_t *ctx, const qk_galerkin_args_t *a) {
  const qk_status_t status = qk_args_galerkin(ctx, a);
  if (status != QK_OK) return status;
  const aggregate_box inside = box_of(a->agg, a->mu, false), face = box_of(a->agg, a->mu, true);
  const int halves = 4 * a->agg.coarse.vcb, n = a->v.nrhs;
#pragma omp parallel for schedule(static)
  for (int h = 0; h < halves; h++) {
    const half_field<float> v(a->v, h % 2), w(a->w, h % 2);
    tiled_matrix m;
    if (inside.nsites > 0) {
      box_products<float, 4>(inside, h / 2, v, w, n, false, m);
      add_to_matrix(*a, a->inner, h / 2, 0, h % 2, m);
    }
    if (a->mu >= 0) {
      box_products<float, 4>(face, h / 2, v, w, n, false, m);
      add_to_matrix(*a, a->ahead, h / 2, 2 * a->mu, h % 2, m);
    }
  }
  return QK_OK;
}

} // namespace QK_NS
