/* Coarse operators on the CPU: sites, and their rows in groups of four,
 * shared among the threads. */
#include "cuda/body/coarse.h"
#include "cuda/args/mg_args.h"
#include "cuda/kernels.h"
#include "cuda/site/clanes.h"

namespace QK_NS {
namespace {

constexpr int GROUP = 4; /* rows that stand together (site/coarse.h) */

/* What a site multiplies: matrices, and the spinors of the same numbers. */
template <class S, class M> struct products {
  int n;
  const M *matrix[8];
  const S *x[8]; /* tiles of RHS: the first one of the site; single RHS: component 0 of the site */
};

template <class S> const S *site_words(const qk_spinor_t &f, int site) {
  const S *data = (const S *)f.data;
  const int64_t words = QK_TILE * 2 * f.ncomp;
  return f.ntile > 0 ? data + site * (int64_t)f.ntile * words
                     : data + site / QK_TILE * words + site % QK_TILE;
}

int base(const qk_coarse_args_t &a, const site_pos &here) {
  return a.out_parity == QK_FULL && here.parity == 1 ? a.lat.vcb : 0;
}

int64_t matrix_site(const qk_coarse_args_t &a, const site_pos &here) {
  return here.cb + (here.parity == 1 ? a.lat.vcb : 0);
}

/* minus: of the right-hand sides whose byte is set. */
template <class S, class M>
void hops_of(const qk_coarse_args_t &a, const site_pos &here, bool minus, products<S, M> &p) {
  const int n = a.out.ncomp;
  p.n = 0;
  for (int d = 0; d < 8 && a.c_hop != 0; d++) {
    const coarse_near near = coarse_neighbour(a, here, d);
    if (!near.takes_part) continue;
    const qk_spinor_t &f = near.ghost ? a.ghost[d / 2][1 - d % 2] : a.in;
    p.matrix[p.n] = (const M *)(minus ? a.links_minus : a.links).data +
                    coarse_matrix(n, 8, matrix_site(a, here), d);
    const int64_t turn = near.ghost ? turn_bytes(a.turns, 0) : 0;
    p.x[p.n++] = (const S *)((const char *)site_words<S>(f, near.site) + turn);
  }
}

template <class S, class M>
void own_of(const qk_coarse_args_t &a, const site_pos &here, bool minus, products<S, M> &p) {
  p.n = a.c_z != 0 && a.diag.data != NULL;
  if (p.n == 0) return;
  p.matrix[0] = (const M *)(minus ? a.diag_minus : a.diag).data +
                coarse_matrix(a.out.ncomp, 1, matrix_site(a, here), 0);
  p.x[0] = site_words<S>(a.z, base(a, here) + here.cb);
}

/* ---- tiles of RHS ---------------------------------------------------------------------------- */

/* Rows at a time: as many as have their sums in registers, and hide the time of a product; and
 * groups of rows that a work item has. */
#ifdef __AVX512F__
template <class S> constexpr int rows_at_once = sizeof(S) == 4 ? 8 : 4;
#elif defined __AVX__
template <class S> constexpr int rows_at_once = sizeof(S) == 4 ? 4 : 2;
#else
template <class S> constexpr int rows_at_once = 1;
#endif
template <class S> constexpr int groups_at_once = rows_at_once<S> > GROUP ? 2 : 1;

/* sums [row] += ROWS rows times x; those of a group stand together, groups are 2 * GROUP * n words
 * apart. m: of the first row. */
template <int ROWS, class S> QK_HD void add_rows(const S *m, int n, const S *x, clanes<S> *sums) {
  clanes<S> sum[ROWS];
  QK_UNROLL
  for (int r = 0; r < ROWS; r++) sum[r] = sums[r];
  for (int c = 0; c < n; c++, m += 2 * GROUP) {
    clanes<S> z;
    load_complex_row(x + 2 * c * QK_TILE, z);
    const clanes<S> iz = times_i(z);
    QK_UNROLL
    for (int r = 0; r < ROWS; r++) {
      const S *e = m + r / GROUP * (2 * GROUP) * n + r % GROUP;
      sum[r] = sum[r] + e[0] * z;
      sum[r] = sum[r] + e[GROUP] * iz;
    }
  }
  QK_UNROLL
  for (int r = 0; r < ROWS; r++) sums[r] = sum[r];
}

/* The words of groups of rows, of n columns in all, in the arithmetic type. */
template <class S> const S *widened(const S *group, int, S *) {
  return group;
}
QK_SOFT_HALF const float *widened(const half *group, int n, float *room) {
  for (int c = 0; c < n; c++) {
    lanes<float> v;
    load_row(group + 2 * GROUP * c, v);
    store_row(room + 2 * GROUP * c, v);
  }
  return room;
}

/* Asks for the next groups of a matrix while the other directions have their turn. */
template <class M> void fetch_after(const M *group, int words) {
  constexpr int line = 64 / (int)sizeof(M);
  for (int i = 0; i < words; i += line) __builtin_prefetch(group + words + i);
}

/* The groups of a work item. */
struct row_groups {
  int first, count;
};

/* All rows of some groups; sums [row] of one tile. */
template <class S>
QK_HD void add_groups(const S *groups, int n, int count, const S *x, clanes<S> *sums) {
  constexpr int AT_ONCE = rows_at_once<S>;
  if constexpr (AT_ONCE > GROUP) {
    if (count == groups_at_once<S>)
      add_rows<AT_ONCE>(groups, n, x, sums);
    else
      add_rows<GROUP>(groups, n, x, sums);
  } else {
    for (int first = 0; first < GROUP; first += AT_ONCE)
      add_rows<AT_ONCE>(groups + first, n, x, sums + first);
  }
}

/* Rows of a work item; its sums are [tile][row]. */
template <class S> constexpr int rows_of_item = groups_at_once<S> *GROUP;

/* sums = the products of the groups of a work item. */
template <class S, class M>
void multiply_groups(const products<S, M> &p, int n, row_groups g, int ntile, clanes<S> *sums) {
  constexpr int ROWS = rows_of_item<S>;
  alignas(64) S room[2 * ROWS * QK_MG_N_MAX];
  for (int i = 0; i < ROWS * ntile; i++) sums[i] = clanes<S>{};
  for (int k = 0; k < p.n; k++) {
    const M *stored = p.matrix[k] + coarse_word(n, g.first * GROUP, 0, 0);
    const S *groups = widened(stored, g.count * n, room);
    fetch_after(stored, 2 * GROUP * n * g.count);
    for (int tile = 0; tile < ntile; tile++)
      add_groups(groups, n, g.count, p.x[k] + (int64_t)tile * QK_TILE * 2 * n, sums + ROWS * tile);
  }
}

template <class S, class M>
void put_groups(const qk_coarse_args_t &a, const site_pos &here, row_groups g, const clanes<S> *hop,
                const clanes<S> *own) {
  const int n = a.out.ncomp, ntile = a.out.ntile, site = base(a, here) + here.cb;
  for (int tile = 0; tile < ntile; tile++) {
    const int64_t at = ((site * (int64_t)ntile + tile) * n + g.first * GROUP) * 2 * QK_TILE;
    for (int i = 0; i < g.count * GROUP; i++) {
      const int64_t word = at + i * 2 * QK_TILE;
      clanes<S> v = {}, r = {};
      if (a.c_hop != 0) r = (S)a.c_hop * hop[rows_of_item<S> * tile + i];
      if (a.c_z != 0) {
        if (a.diag.data != NULL)
          v = own[rows_of_item<S> * tile + i];
        else
          load_complex_row((const S *)a.z.data + word, v);
        r = r + (S)a.c_z * v;
      }
      if (a.c_x != 0) {
        load_complex_row((const S *)a.x.data + word, v);
        r = r + (S)a.c_x * v;
      }
      store_complex_row((S *)a.out.data + word, r);
    }
  }
}

/* Which right-hand sides of a block have the matrices of `minus`. */
struct sides {
  bool minus, plus; /* whether there are any, of either kind */
  explicit sides(const qk_coarse_args_t &a) : minus(false), plus(a.minus == NULL) {
    for (int i = 0; a.minus != NULL && i < a.out.nrhs; i++) (a.minus[i] ? minus : plus) = true;
  }
};

template <class S> constexpr int sums_of_item = QK_MAX_RHS / QK_TILE *rows_of_item<S>;

/* The products of a work item for all right-hand sides, each with its own matrices. both: [plus,
 * minus]. */
template <class S, class M>
void multiply_sides(const qk_coarse_args_t &a, const sides &side, const products<S, M> both[2],
                    row_groups g, clanes<S> *sums) {
  const int n = a.out.ncomp, ntile = a.out.ntile;
  multiply_groups(both[!side.plus], n, g, ntile, sums);
  if (!side.plus || !side.minus) return;
  clanes<S> other[sums_of_item<S>];
  multiply_groups(both[1], n, g, ntile, other);
  for (int rhs = 0; rhs < a.out.nrhs; rhs++)
    for (int i = 0; a.minus[rhs] && i < g.count * GROUP; i++) {
      const int at = rhs / QK_TILE * rows_of_item<S> + i;
      take_lane(sums[at], rhs % QK_TILE, other[at]);
    }
}

template <class S, class M> void coarse_blocks(const qk_coarse_args_t &a) {
  const region_sites sites = coarse_sites(a);
  constexpr int AT_ONCE = groups_at_once<S>;
  const int groups = a.out.ncomp / GROUP, items = (groups + AT_ONCE - 1) / AT_ONCE;
  const sides side(a);
#pragma omp parallel
  {
    clanes<S> hop[sums_of_item<S>], own[sums_of_item<S>];
    products<S, M> hops[2] = {}, owns[2] = {};
    site_pos here = {};
    int at = -1;
#pragma omp for schedule(static)
    for (int i = 0; i < sites.nwork * items; i++) {
      if (i / items != at) {
        at = i / items;
        here = site_at(a.lat, sites, at);
        for (int minus = !side.plus; minus <= side.minus; minus++) {
          hops_of(a, here, minus, hops[minus]);
          own_of(a, here, minus, owns[minus]);
        }
      }
      const int first = i % items * AT_ONCE;
      const row_groups g = {first, groups - first < AT_ONCE ? groups - first : AT_ONCE};
      multiply_sides(a, side, hops, g, hop);
      multiply_sides(a, side, owns, g, own);
      put_groups<S, M>(a, here, g, hop, own);
    }
  }
}

/* ---- one RHS: four rows are a vector --------------------------------------------------------- */

/* y [row][re, im] of all rows = the products. */
template <class S, class M> void multiply_site(const products<S, M> &p, int n, S *y) {
  alignas(32) S x[8][2 * QK_MG_N_MAX];
  for (int k = 0; k < p.n; k++)
    for (int c = 0; c < 2 * n; c++) x[k][c] = p.x[k][c * QK_TILE];
  for (int g = 0; g < n / GROUP; g++) {
    /* [column mod 4]: a row's (re, im) times re x, and times im x */
    lanes<S> by_re[4] = {}, by_im[4] = {};
    for (int k = 0; k < p.n; k++) {
      const M *group = p.matrix[k] + coarse_word(n, g * GROUP, 0, 0);
      for (int c = 0; c < n; c += 4) QK_UNROLL
      for (int j = 0; j < 4; j++) {
        lanes<S> m;
        load_row(group + 2 * GROUP * (c + j), m);
        by_re[j] = by_re[j] + m * x[k][2 * (c + j)];
        by_im[j] = by_im[j] + m * x[k][2 * (c + j) + 1];
      }
    }
    const lanes<S> re = by_re[0] + by_re[1] + (by_re[2] + by_re[3]);
    const lanes<S> im = by_im[0] + by_im[1] + (by_im[2] + by_im[3]);
    for (int r = 0; r < GROUP; r++) {
      y[2 * (g * GROUP + r)] = re[r] - im[GROUP + r];
      y[2 * (g * GROUP + r) + 1] = re[GROUP + r] + im[r];
    }
  }
}

template <class S, class M> void coarse_single_rhs(const qk_coarse_args_t &a) {
  const region_sites sites = coarse_sites(a);
  const int n = a.out.ncomp;
  const bool minus = a.minus != NULL && a.minus[0];
#pragma omp parallel for schedule(static)
  for (int i = 0; i < sites.nwork; i++) {
    const site_pos here = site_at(a.lat, sites, i);
    const int site = base(a, here) + here.cb;
    S hop[2 * QK_MG_N_MAX], own[2 * QK_MG_N_MAX];
    products<S, M> p;
    hops_of(a, here, minus, p);
    multiply_site(p, n, hop);
    own_of(a, here, minus, p);
    multiply_site(p, n, own);
    S *out = (S *)site_words<S>(a.out, site);
    for (int c = 0; c < 2 * n; c++) {
      S r = 0;
      if (a.c_hop != 0) r = (S)a.c_hop * hop[c];
      if (a.c_z != 0) {
        const S z = a.diag.data != NULL ? own[c] : site_words<S>(a.z, site)[c * QK_TILE];
        r += (S)a.c_z * z;
      }
      if (a.c_x != 0) r += (S)a.c_x * site_words<S>(a.x, site)[c * QK_TILE];
      out[c * QK_TILE] = r;
    }
  }
}

template <class S, class M> void coarse_as(const qk_coarse_args_t &a) {
  if (a.out.ntile > 0)
    coarse_blocks<S, M>(a);
  else
    coarse_single_rhs<S, M>(a);
}

} // namespace

qk_status_t coarse(qk_ops_ctx_t *ctx, const qk_coarse_args_t *args) {
  const qk_status_t status = qk_args_coarse(ctx, args);
  if (status != QK_OK) return status;
  const bool by_links = args->c_hop != 0;
  if (args->out.prec == QK_DOUBLE)
    coarse_as<double, double>(*args);
  else if ((by_links ? args->links.prec : args->diag.prec) == QK_HALF)
    coarse_as<float, half>(*args);
  else
    coarse_as<float, float>(*args);
  return QK_OK;
}

} // namespace QK_NS
