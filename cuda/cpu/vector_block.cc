/* Bases of many vectors on the CPU: a tile of the basis is a vector of eight lanes, one factor of a
 * product is broadcast. */
#include "cuda/body/vector_block.h"

#include "cuda/args/vector_block_args.h"
#include "cuda/cpu/ctx.h"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"
#include "daemon/base/mem.h"

namespace QK_NS {
namespace {

template <class V> struct pair { V re, im; };

/* Sites first(i) .. first(i+1)-1 of chunk i: sums keep their order whatever the threads. */
struct site_chunks {
  int64_t sites, n;
  explicit site_chunks(int64_t s) : sites(s), n(s / 16) {
    if (n < 1) n = 1;
    if (n > QK_CPU_CHUNKS) n = QK_CPU_CHUNKS;
  }
  int64_t first(int64_t i) const { return sites * i / n; }
};

/* Component c of a tile of the basis at a site. */
template <class S>
QK_HD pair<lanes<real<S>>> load_tile(const S *p, const lanes<float> &scale, int c) {
  pair<lanes<real<S>>> z;
  load_row(p + 2 * c * QK_TILE, z.re);
  load_row(p + (2 * c + 1) * QK_TILE, z.im);
  if constexpr (storage<S>::scaled) z = {z.re * scale, z.im * scale};
  return z;
}

template <class S> QK_HD lanes<float> tile_scale(const pieces<S> &f, int64_t site, int tile) {
  lanes<float> s = {};
  if constexpr (storage<S>::scaled) load_row(f.scale + f.scale_at(site, tile), s);
  return s;
}

/* Where the reals of column 8*tile + j of y stand at a site: distance QK_TILE from each other. */
template <class R> QK_HD const R *column_at(const pieces<R> &y, int64_t site, int tile) {
  return y.data +
         (y.ntile == 0 ? y.single_rhs_word(site, 0) + site % QK_TILE : y.word(site, tile, 0));
}

/* sum += (v_i, y_j) over the sites of a chunk,
 * for the eight i of a tile and `width` columns from j on. */
template <class S, int width>
void dot_columns(const pieces<S> &v, int tile, const pieces<real<S>> &y, int ytile, int j,
                 int ncomp, int64_t first, int64_t last, pair<lanes<double>> *sum) {
  using R = real<S>;
  constexpr int span = 32; /* components summed in the arithmetic of S */
  for (int64_t site = first; site < last; site++) {
    const S *p = v.data + v.word(site, tile, 0);
    const R *q = column_at(y, site, ytile) + j;
    const lanes<float> scale = tile_scale(v, site, tile);
    for (int from = 0; from < ncomp; from += span) {
      pair<lanes<R>> part[width] = {};
      const int to = from + span < ncomp ? from + span : ncomp;
      for (int c = from; c < to; c++) {
        const pair<lanes<R>> z = load_tile<S>(p, scale, c);
        for (int k = 0; k < width; k++) {
          const R re = q[2 * c * QK_TILE + k], im = q[(2 * c + 1) * QK_TILE + k];
          part[k].re = part[k].re + z.re * re + z.im * im;
          part[k].im = part[k].im + z.re * im - z.im * re;
        }
      }
      for (int k = 0; k < width; k++) {
        sum[k].re = sum[k].re + lanes_cast<lanes<double>>(part[k].re);
        sum[k].im = sum[k].im + lanes_cast<lanes<double>>(part[k].im);
      }
    }
  }
}

/* All columns of y against one tile of the basis in one chunk; 16 doubles a column. */
template <class S>
void dot_chunk(const pieces<S> &v, int tile, const pieces<real<S>> &y, const qk_spinor_t &shape,
               int64_t first, int64_t last, double *partial) {
  constexpr int width = 4;
  for (int j = 0; j < shape.nrhs; j += width) {
    pair<lanes<double>> sum[width] = {};
    if (y.ntile == 0)
      dot_columns<S, 1>(v, tile, y, 0, 0, shape.ncomp, first, last, sum);
    else
      dot_columns<S, width>(v, tile, y, j / QK_TILE, j % QK_TILE, shape.ncomp, first, last, sum);
    for (int k = 0; k < width && j + k < shape.nrhs; k++)
      memcpy(partial + (int64_t)(j + k) * 2 * QK_TILE, &sum[k], sizeof sum[k]);
  }
}

template <class S> void run_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const basis<S> v = basis_of<S>(*a);
  const pieces<real<S>> y = pieces_of<real<S>>(a->y);
  const site_chunks chunks(a->y.nsites);
  const int columns = a->y.nrhs;
  const int64_t line = (int64_t)columns * 2 * QK_TILE;
  double *partial = qk_cpu(ctx)->partial;
  int most = (int)((int64_t)QK_CPU_CHUNKS * QK_CPU_PARTIALS / (line * chunks.n));
  for (int from = 0; from < v.tiles; from += most) {
    const int now = v.tiles - from < most ? v.tiles - from : most;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t i = 0; i < chunks.n; i++)
      for (int t = 0; t < now; t++)
        dot_chunk<S>(v.block[(from + t) / v.ntile], (from + t) % v.ntile, y, a->y, chunks.first(i),
                     chunks.first(i + 1), partial + (i * now + t) * line);
    for (int t = 0; t < now; t++)
      for (int k = 0; k < columns * QK_TILE; k++) {
        const int j = k / QK_TILE, lane = k % QK_TILE;
        double re = 0, im = 0;
        for (int64_t i = 0; i < chunks.n; i++) {
          const double *p = partial + (i * now + t) * line + j * 2 * QK_TILE + lane;
          re += p[0];
          im += p[QK_TILE];
        }
        double *out = a->c + 2 * ((int64_t)((from + t) * QK_TILE + lane) * columns + j);
        out[0] = re;
        out[1] = im;
      }
  }
}

/* c[i][8*tile + lane] times sign in all lanes, for i = 0 .. rows-1. */
template <class R>
void spread(const double *c, int rows, int columns, int tile, double sign, pair<lanes<R>> *out) {
  for (int i = 0; i < rows; i++) {
    out[i] = pair<lanes<R>>{};
    for (int l = 0; l < QK_TILE && tile * QK_TILE + l < columns; l++) {
      const double *z = c + 2 * ((int64_t)i * columns + tile * QK_TILE + l);
      out[i].re[l] = (R)(sign * z[0]);
      out[i].im[l] = (R)(sign * z[1]);
    }
  }
}

/* Component c of the eight vectors of tile t at a site. */
template <class S> pair<lanes<real<S>>> vectors_at(const basis<S> &v, int t, int64_t site, int c) {
  const pieces<S> &block = v.block[t / v.ntile];
  return load_tile<S>(block.data + block.word(site, t % v.ntile, 0),
                      tile_scale(block, site, t % v.ntile), c);
}

template <class S>
void axpy_site(const basis<S> &v, const pieces<real<S>> &y, int tile, int ncomp, int64_t site,
               const pair<lanes<real<S>>> *k) {
  using R = real<S>;
  R *out = y.data + y.word(site, tile, 0);
  for (int c = 0; c < ncomp; c++) {
    lanes<R> re, im;
    load_row(out + 2 * c * QK_TILE, re);
    load_row(out + (2 * c + 1) * QK_TILE, im);
    for (int t = 0; t < v.tiles; t++) {
      const pair<lanes<R>> z = vectors_at(v, t, site, c);
      const pair<lanes<R>> *q = k + t * QK_TILE;
      for (int l = 0; l < QK_TILE; l++) {
        re = re + q[l].re * z.re[l] - q[l].im * z.im[l];
        im = im + q[l].re * z.im[l] + q[l].im * z.re[l];
      }
    }
    store_row(out + 2 * c * QK_TILE, re);
    store_row(out + (2 * c + 1) * QK_TILE, im);
  }
}

/* y of one RHS: the lanes are vectors of the basis, whose shares are added at the end. */
template <class S>
void axpy_single_rhs_site(const basis<S> &v, const pieces<real<S>> &y, int ncomp, int64_t site,
                          const double *c, double sign) {
  using R = real<S>;
  R *out = y.data + y.single_rhs_word(site, 0) + site % QK_TILE;
  for (int k = 0; k < ncomp; k++) {
    R re = 0, im = 0;
    for (int t = 0; t < v.tiles; t++) {
      const pair<lanes<R>> z = vectors_at(v, t, site, k);
      for (int l = 0; l < QK_TILE; l++) {
        const R qr = (R)(sign * c[2 * (t * QK_TILE + l)]),
                qi = (R)(sign * c[2 * (t * QK_TILE + l) + 1]);
        re += qr * z.re[l] - qi * z.im[l];
        im += qr * z.im[l] + qi * z.re[l];
      }
    }
    out[2 * k * QK_TILE] += re;
    out[(2 * k + 1) * QK_TILE] += im;
  }
}

template <class S> qk_status_t run_axpy(qk_ops_ctx_t *, const qk_basis_args_t *a) {
  const basis<S> v = basis_of<S>(*a);
  const pieces<real<S>> y = pieces_of<real<S>>(a->y);
  const int64_t sites = a->y.nsites;
  const int rows = v.tiles * QK_TILE, ncomp = a->y.ncomp;
  if (y.ntile == 0) {
#pragma omp parallel for schedule(static)
    for (int64_t site = 0; site < sites; site++)
      axpy_single_rhs_site<S>(v, y, ncomp, site, a->c, a->sign);
    return QK_OK;
  }
  auto *k = (pair<lanes<real<S>>> *)qk_malloc((size_t)rows * sizeof(pair<lanes<real<S>>>));
  if (k == NULL) return QK_NO_MEMORY;
  for (int tile = 0; tile < y.ntile; tile++) {
    spread<real<S>>(a->c, rows, a->y.nrhs, tile, a->sign, k);
#pragma omp parallel for schedule(static)
    for (int64_t site = 0; site < sites; site++) axpy_site<S>(v, y, tile, ncomp, site, k);
  }
  qk_free(k);
  return QK_OK;
}

/* One piece of all vectors at a site is set aside, then replaced tile by tile, with y added if it
 * is there. k: [tile][vector]. */
template <int P, class S>
void rotate_piece(const basis<S> &v, const pieces<S> &y, int64_t site, int piece, int columns,
                  const pair<lanes<S>> *k) {
  constexpr int comps = P / 2;
  S old[QK_BASIS_MAX / QK_TILE][P * QK_TILE];
  const lanes<float> unscaled = {};
  const int rows = v.tiles * QK_TILE;
  for (int t = 0; t < v.tiles; t++) {
    const pieces<S> &block = v.block[t / v.ntile];
    memcpy(old[t], block.data + block.word(site, t % v.ntile, piece), sizeof old[t]);
  }
  for (int t = 0; t * QK_TILE < columns; t++) {
    pair<lanes<S>> sum[comps] = {};
    for (int c = 0; c < comps && y.data != NULL; c++)
      sum[c] = load_tile<S>(y.data + y.word(site, t, piece), unscaled, c);
    for (int i = 0; i < rows; i++) {
      const pair<lanes<S>> q = k[(int64_t)t * rows + i];
      const S *from = old[i / QK_TILE] + i % QK_TILE;
      for (int c = 0; c < comps; c++) {
        const S re = from[2 * c * QK_TILE], im = from[(2 * c + 1) * QK_TILE];
        sum[c].re = sum[c].re + q.re * re - q.im * im;
        sum[c].im = sum[c].im + q.re * im + q.im * re;
      }
    }
    const pieces<S> &block = v.block[t / v.ntile];
    S *to = block.data + block.word(site, t % v.ntile, piece);
    const int live = columns - t * QK_TILE < QK_TILE ? columns - t * QK_TILE : QK_TILE;
    for (int c = 0; c < comps; c++)
      for (int l = 0; l < live; l++) {
        to[2 * c * QK_TILE + l] = sum[c].re[l];
        to[(2 * c + 1) * QK_TILE + l] = sum[c].im[l];
      }
  }
}

template <class S> qk_status_t run_rotate(const qk_basis_args_t *a) {
  const basis<S> v = basis_of<S>(*a);
  const int rows = v.tiles * QK_TILE, tiles = (a->columns + QK_TILE - 1) / QK_TILE;
  auto *k = (pair<lanes<S>> *)qk_malloc((size_t)rows * (size_t)tiles * sizeof(pair<lanes<S>>));
  if (k == NULL) return QK_NO_MEMORY;
  for (int t = 0; t < tiles; t++) spread<S>(a->c, rows, a->columns, t, 1, k + (int64_t)t * rows);
  const int64_t sites = a->v[0].nsites;
  with_piece_reals(a->v[0], [&](auto reals) {
#pragma omp parallel for schedule(static)
    for (int64_t site = 0; site < sites; site++)
      for (int piece = 0; piece < v.block[0].per_tile; piece++)
        rotate_piece<reals>(v, pieces_of<S>(a->y), site, piece, a->columns, k);
  });
  qk_free(k);
  return QK_OK;
}

/* Between a field and plain numbers of type P; to_field says which way. */
template <class P> void run_sites(const qk_sites_args_t *a, bool to_field) {
  const pieces<float> f = pieces_of<float>(a->field);
  const int reals = 2 * a->field.ncomp, columns = a->field.nrhs;
  const bool full = a->field.subset == QK_FULL;
#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < a->n; n++) {
    const int64_t site = field_site(a->lat, full, a->first + n);
    P *plain = (P *)a->plain + n * columns * reals;
    for (int j = 0; j < columns; j++)
      for (int c = 0; c < reals; c++) {
        float &x = f.data[field_word(f, site, j, c)];
        P &p = plain[(int64_t)j * reals + c];
        if (to_field)
          x = widen(p);
        else
          narrow(x, p);
      }
  }
}

qk_status_t sites(qk_ops_ctx_t *ctx, const char *call, const qk_sites_args_t *a, bool to_field) {
  const qk_status_t status = qk_args_sites(ctx, call, a);
  if (status != QK_OK) return status;
  if (a->prec == QK_HALF)
    run_sites<half>(a, to_field);
  else
    run_sites<float>(a, to_field);
  return QK_OK;
}

} // namespace

qk_status_t basis_dot(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const qk_status_t status = qk_args_basis(ctx, "basis_dot", a);
  if (status != QK_OK) return status;
  with_storage(a->v[0].prec, [=](auto s) { run_dot<stored<decltype(s)>>(ctx, a); });
  return QK_OK;
}

qk_status_t basis_axpy(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const qk_status_t status = qk_args_basis(ctx, "basis_axpy", a);
  if (status != QK_OK) return status;
  return with_storage(a->v[0].prec, [=](auto s) { return run_axpy<stored<decltype(s)>>(ctx, a); });
}

qk_status_t basis_rotate(qk_ops_ctx_t *ctx, const qk_basis_args_t *a) {
  const qk_status_t status = qk_args_rotate(ctx, a);
  if (status != QK_OK) return status;
  return a->v[0].prec == QK_DOUBLE ? run_rotate<double>(a) : run_rotate<float>(a);
}

qk_status_t sites_get(qk_ops_ctx_t *ctx, const qk_sites_args_t *a) {
  return sites(ctx, "sites_get", a, false);
}

qk_status_t sites_set(qk_ops_ctx_t *ctx, const qk_sites_args_t *a) {
  return sites(ctx, "sites_set", a, true);
}

} // namespace QK_NS
