/* Projection onto vectors of time slices on the CPU: the eight vectors of a block are lanes, pieces
 * of slices are shared among the threads. */
#include "cuda/body/project.h"

#include "cuda/args/project_args.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

using vec = lanes<double>;

/* Sites that are worked on together: what they need stays in the cache. */
constexpr int together = 16 * project_group;

struct room {
  cx<vec> v[together][3];
  double x[QK_PROJECT_RHS][together][12][2];
};

template <class S>
void load_rhs(const qk_project_rhs_t &from, const project_site *at, int n, double (*x)[12][2]) {
  const spinor<S> f = spinor_of<S>(from.field);
  for (int i = 0; i < n; i++) {
    const int64_t site = at[i].in_field;
    const int64_t tile = f.ntile > 0 ? site * f.ntile + from.rhs / QK_TILE : site / QK_TILE;
    const int lane = (int)(f.ntile > 0 ? from.rhs % QK_TILE : site % QK_TILE);
    for (int c = 0; c < 24; c++)
      x[i][c / 2][c % 2] = (double)f.data[tile * (QK_TILE * 24) + inner<S, 24>(c, lane)];
  }
}

void load_vectors(const float *block, const float *low, int64_t first, const project_site *at,
                  int n, cx<vec> (*v)[3]) {
  for (int i = 0; i < n; i++) {
    const int64_t from = (first + at[i].in_slice) * project_block;
    for (int l = 0; l < QK_PROJECT_COLUMNS; l++)
      for (int c = 0; c < 3; c++) {
        const int64_t k = from + (l * 3 + c) * 2;
        v[i][c].re[l] = (double)block[k] + (low ? (double)low[k] : 0);
        v[i][c].im[l] = (double)block[k + 1] + (low ? (double)low[k + 1] : 0);
      }
  }
}

/* sum += conj(v) x over the colours of n sites, for one spin of one RHS. */
void add_sites(const cx<vec> (*v)[3], const double (*x)[12][2], int spin, int n, cx<vec> &sum) {
  vec re = sum.re, im = sum.im;
  for (int i = 0; i < n; i++) {
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      const double *z = x[i][3 * spin + c];
      re = re + v[i][c].re * z[0] + v[i][c].im * z[1];
      im = im + v[i][c].re * z[1] - v[i][c].im * z[0];
    }
  }
  sum = {re, im};
}

/* The sums of a piece so far. */
struct piece_sums {
  cx<vec> of[QK_PROJECT_BLOCKS][QK_PROJECT_RHS][4];
};

template <class S>
void sum_piece(const qk_project_args_t &a, int t, int piece, int pieces, room &r, piece_sums &sum) {
  const int64_t slice = 2 * (int64_t)a.lat.vcb / a.lat.l[3];
  int first, last;
  project_piece(a.lat, piece, pieces, first, last);
  memset(&sum, 0, sizeof sum);
  for (int g = first; g < last; g += together / project_group) {
    const int end = last - g < together / project_group ? last : g + together / project_group;
    project_site at[together];
    int n = 0;
    for (int k = g; k < end; k++)
      for (int q = 0; q < project_group; q++) at[n++] = project_site(a.lat, a.t0 + t, k, q);
    for (int i = 0; i < a.nrhs; i++) load_rhs<S>(a.x[i], at, n, r.x[i]);
    for (int b = 0; b < a.nblock; b++) {
      load_vectors(a.vectors[b], a.low[b], t * slice, at, n, r.v);
      for (int i = 0; i < a.nrhs; i++)
        for (int s = 0; s < 4; s++) add_sites(r.v, r.x[i], s, n, sum.of[b][i][s]);
    }
  }
  for (int b = 0; b < a.nblock; b++) {
    double *out = a.work + project_at(t, pieces, piece, a.nblock, b);
    for (int i = 0; i < a.nrhs; i++)
      for (int s = 0; s < 4; s++)
        for (int l = 0; l < QK_PROJECT_COLUMNS; l++) {
          double *number = out + ((l * 4 + s) * QK_PROJECT_RHS + i) * 2;
          number[0] = sum.of[b][i][s].re[l];
          number[1] = sum.of[b][i][s].im[l];
        }
  }
}

template <class S> void project_as(const qk_project_args_t &a) {
  const int pieces = qk_project_pieces(&a.lat);
#pragma omp parallel
  {
    room r;
    piece_sums sum;
#pragma omp for schedule(dynamic)
    for (int i = 0; i < a.nt * pieces; i++) sum_piece<S>(a, i / pieces, i % pieces, pieces, r, sum);
  }
  for (int64_t n = 0; n < project_reals(a); n++) project_sum(a, pieces, n);
}

} // namespace

qk_status_t project(qk_ops_ctx_t *ctx, const qk_project_args_t *args) {
  const qk_status_t status = qk_args_project(ctx, args);
  if (status != QK_OK) return status;
  if (args->x[0].field.prec == QK_DOUBLE)
    project_as<double>(*args);
  else
    project_as<float>(*args);
  return QK_OK;
}

} // namespace QK_NS
