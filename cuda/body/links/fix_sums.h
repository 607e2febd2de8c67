/*
 * fix_sums.h: how far a gauge is fixed, time slice by time slice (cuda/linkfield_ops.h:
 * qk_fix_sums_args_t). One site at a time.
 */
#ifndef QK_BODY_FIX_SUMS_H
#define QK_BODY_FIX_SUMS_H

#include "cuda/linkfield_ops.h"
#include "cuda/site/linkfield.h"

namespace QK_NS {

struct fix_slice_sums {
  static constexpr int n = 2;
  qk_fix_sums_args_t a;
  int t;

  QK_HD mat3 transformation(const int x[4]) const {
    qk_linkfield_t g = a.u;
    g.data = (double *)a.g;
    return link_at(a.lat, g, x, 0);
  }

  /* sum += U_mu(x) g(x+mu)^+ + U_mu(x-mu)^+ g(x-mu)^+ */
  QK_HD void add_neighbours(int x[4], int mu, mat3 &sum) const {
    mat3 link = link_at(a.lat, a.u, x, mu);
    x[mu]++;
    const mat3 forward = times<false, true>(link, transformation(x));
    x[mu] -= 2;
    link = link_at(a.lat, a.u, x, mu);
    const mat3 backward = times<true, true>(link, transformation(x));
    x[mu]++;
    QK_UNROLL
    for (int k = 0; k < 18; k++) sum.e[k] += forward.e[k] + backward.e[k];
  }

  QK_HD void site(int s, double v[n]) const {
    int x[4] = {0, 0, 0, t};
    for (int mu = 0; mu < 3; mu++) {
      x[mu] = s % a.lat.l[mu];
      s /= a.lat.l[mu];
    }
    mat3 sum = {};
    for (int mu = 0; mu < a.directions; mu++) add_neighbours(x, mu, sum);
    const mat3 w = times(transformation(x), sum);
    mat3 d = anti_hermitian(w, 1);
    const double trace = (d.e[1] + d.e[9] + d.e[17]) / 3;
    for (int i = 0; i < 3; i++) d.e[8 * i + 1] -= trace;
    v[0] = trace_re(w);
    v[1] = 0;
    for (int k = 0; k < 18; k++) v[1] += d.e[k] * d.e[k];
  }
  QK_ANY static void join(double *sum, const double *v) {
    for (int k = 0; k < n; k++) sum[k] += v[k];
  }
};

} // namespace QK_NS
#endif
