/* Matrices of coarse operators on the CPU: a thread has a site. */
#include <omp.h>

#include "cuda/args/mg_args.h"
#include "cuda/body/coarse_setup.h"
#include "cuda/cpu/ctx.h"
#include "cuda/cpu/team.h"

namespace QK_NS {
namespace {

template <class F> qk_status_t each_element(qk_ops_ctx_t *, int nsites, int n, const F &body) {
#pragma omp parallel for schedule(static)
  for (int s = 0; s < nsites; s++)
    for (int r = 0; r < n; r++)
      for (int c = 0; c < n; c++) body.element(s, r, c);
  return QK_OK;
}

/* Real and imaginary parts of a matrix, [n][n] each. */
struct dense {
  int n;
  double *re, *im;

  /* Returns the largest modulus of a part; NaN if there is one. */
  double load(const qk_coarse_links_t &m, int64_t site, int d) {
    double top = 0;
    for (int r = 0; r < n; r++)
      for (int c = 0; c < n; c++) {
        const dcx x = get_element(m, site, d, r, c);
        re[r * n + c] = x.re;
        im[r * n + c] = x.im;
        top = larger(larger(top, fabs(x.re)), fabs(x.im));
      }
    return top;
  }
};

/* Room for `matrices` matrices a thread. */
struct dense_room {
  qk_ops_ctx_t *ctx;
  int n, matrices;
  void *memory = NULL;

  dense_room(qk_ops_ctx_t *c, int size, int count) : ctx(c), n(size), matrices(count) {}
  ~dense_room() { qk_cpu_memory::free(ctx, memory); }
  qk_status_t reserve() {
    const size_t bytes = sizeof(double) * 2 * (size_t)n * (size_t)n * (size_t)matrices;
    return qk_cpu_memory::alloc(ctx, bytes * (size_t)omp_get_max_threads(), &memory);
  }
  dense operator()(int k) const {
    double *re = (double *)memory + 2 * (int64_t)n * n * (omp_get_thread_num() * matrices + k);
    return {n, re, re + n * n};
  }
};

bool invert_site(const qk_coarse_invert_args_t &a, int64_t s, dense m) {
  const int n = m.n;
  short pivots[QK_MG_N_MAX], from[QK_MG_N_MAX];
  const double top = m.load(a.diag, s, 0);
  if (!invert_matrix(alone(), m.re, m.im, n, top, pivots)) return false;
  columns_after(pivots, n, from);
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++)
      put_element(a.inverse, s, 0, r, c, {m.re[r * n + from[c]], m.im[r * n + from[c]]});
  return true;
}

/* out = left in */
void multiply(const dense &left, const dense &in, const dense &out) {
  const int n = out.n;
  for (int r = 0; r < n; r++) {
    double *re = out.re + r * n, *im = out.im + r * n;
    for (int c = 0; c < n; c++) re[c] = im[c] = 0;
    for (int k = 0; k < n; k++) {
      const double lr = left.re[r * n + k], li = left.im[r * n + k];
      const double *xr = in.re + k * n, *xi = in.im + k * n;
#pragma omp simd
      for (int c = 0; c < n; c++) {
        re[c] += lr * xr[c] - li * xi[c];
        im[c] += lr * xi[c] + li * xr[c];
      }
    }
  }
}

} // namespace
} // namespace QK_NS

#include "cuda/body/coarse_setup_calls.h"

namespace QK_NS {

qk_status_t coarse_invert(qk_ops_ctx_t *ctx, const qk_coarse_invert_args_t *a) {
  qk_status_t status = qk_args_coarse_invert(ctx, a);
  if (status != QK_OK) return status;
  const int sites = 2 * a->lat.vcb;
  dense_room room(ctx, a->diag.n, 1);
  status = room.reserve();
  if (status != QK_OK) return status;
  int64_t failed = 0;
#pragma omp parallel for schedule(static) reduction(+ : failed)
  for (int s = 0; s < sites; s++) failed += !invert_site(*a, s, room(0));
  *a->singular = failed;
  return QK_OK;
}

qk_status_t coarse_times(qk_ops_ctx_t *ctx, const qk_coarse_times_args_t *a) {
  qk_status_t status = qk_args_coarse_times(ctx, a);
  if (status != QK_OK) return status;
  const int sites = 2 * a->lat.vcb, n = a->in.n;
  if (a->left.data == NULL) return each_element(ctx, sites, n, converted{a->in, a->out, a->twist});
  dense_room room(ctx, n, 3);
  status = room.reserve();
  if (status != QK_OK) return status;
#pragma omp parallel for schedule(static)
  for (int s = 0; s < sites; s++) {
    dense left = room(0), in = room(1), out = room(2);
    left.load(a->left, s, 0);
    for (int d = 0; d < a->in.ndir; d++) {
      in.load(a->in, s, d);
      multiply(left, in, out);
      for (int r = 0; r < n; r++)
        for (int c = 0; c < n; c++)
          put_element(a->out, s, d, r, c, {out.re[r * n + c], out.im[r * n + c]});
    }
  }
  return QK_OK;
}

qk_status_t coarse_eight(qk_ops_ctx_t *ctx, const qk_coarse_eight_args_t *a) {
  const qk_status_t status = qk_args_coarse_eight(ctx, a);
  if (status != QK_OK) return status;
  return qk_ctx_fail(ctx, QK_UNSUPPORTED, "the CPU backend has no matrices in eight bits");
}

} // namespace QK_NS
