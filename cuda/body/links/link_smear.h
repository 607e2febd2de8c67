/*
 * link_smear.h: one stage of link smearing (cuda/linkfield_ops.h: qk_link_smear_args_t). Work item
 * w has one link: direction by direction, all sites of each.
 */
#ifndef QK_BODY_LINK_SMEAR_H
#define QK_BODY_LINK_SMEAR_H

#include "cuda/linkfield_ops.h"
#include "cuda/site/linkfield.h"
#include "cuda/site/su3_near.h"

namespace QK_NS {

struct link_smear_site {
  qk_link_smear_args_t a;

  QK_HD mat3 link(const double *data, const int x[4], int mu) const {
    qk_linkfield_t u = a.u;
    u.data = (double *)data;
    return link_at(a.lat, u, x, mu);
  }

  /* sum += both staples of U_mu(x) in the plane of nu. */
  QK_HD void add_staples(int x[4], int mu, int nu, mat3 &sum) const {
    const double *side = a.side[mu][nu], *top = a.top[mu][nu];
    mat3 near = link(side, x, nu);
    x[mu]++;
    mat3 far = link(side, x, nu);
    x[mu]--;
    x[nu]++;
    mat3 staple = times<false, true>(times(near, link(top, x, mu)), far);
    QK_UNROLL
    for (int k = 0; k < 18; k++) sum.e[k] += staple.e[k];
    x[nu] -= 2;
    near = link(side, x, nu);
    staple = times<true, false>(near, link(top, x, mu));
    x[mu]++;
    far = link(side, x, nu);
    x[mu]--;
    x[nu]++;
    staple = times(staple, far);
    QK_UNROLL
    for (int k = 0; k < 18; k++) sum.e[k] += staple.e[k];
  }

  /* exp of the traceless anti-hermitian part of c u^+, times u */
  static QK_HD mat3 stout(const mat3 &c, const mat3 &u) {
    const mat3 omega = times<false, true>(c, u);
    const double trace = (omega.e[1] + omega.e[9] + omega.e[17]) / 3;
    mat3 x = anti_hermitian(omega, 2);
    QK_UNROLL
    for (int i = 0; i < 3; i++) x.e[8 * i + 1] -= trace;
    return times(exponential(x), u);
  }

  QK_HD void site(int w) const {
    const int sites = 2 * a.lat.vcb;
    int skip = w / sites, mu = 0;
    while (!(a.mask >> mu & 1) || skip-- > 0) mu++;
    int x[4];
    {
      const site_pos p = site_of(a.lat, w % sites);
      for (int nu = 0; nu < 4; nu++) x[nu] = p.x[nu];
    }
    mat3 sum = {};
    for (int nu = 0; nu < 4; nu++)
      if (a.side[mu][nu] != NULL) add_staples(x, mu, nu, sum);
    const link_spot at = local_spot(a.lat, a.u, x);
    const mat3 u = load_link(a.u, at, mu);
    QK_UNROLL
    for (int k = 0; k < 18; k++) sum.e[k] = a.weight * sum.e[k] + a.own * u.e[k];
    store_link(a.out, at, mu, a.stout ? stout(sum, u) : nearest_su3(sum));
  }
};

} // namespace QK_NS
#endif
