/*
 * As tmLQCD calls: one load of links that all carry a phase exp(i theta pi / L) of their direction
 * (theta=), which it says is periodic, or the sign on the last time slice (naive=1); the clover
 * term of these links; CHIRAL basis, the absolute residual.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

typedef struct phases {
  double theta[4];
  const kit_t *kit;
  bool naive;
} phases_t;

static double complex factor(void *arg, int mu, const int x[4]) {
  const phases_t *p = arg;
  if (p->naive) return mu == 3 && x[3] == p->kit->dims[3] - 1 ? -1 : 1;
  const double angle = acos(-1) * p->theta[mu] / p->kit->dims[mu];
  return angle == 0 ? 1 : cexp(I * angle);
}

int main(int argc, char **argv) {
  kit_t kit;
  kit_begin(&kit, argc, argv);
  phases_t phases = {
      .theta = {0, 0, 0, 1}, .kit = &kit, .naive = kit_number(&kit, "naive", 0) != 0};
  QudaGaugeParam g;
  QudaInvertParam p;
  void *links[4];
  kit_numbers(&kit, "theta", 4, phases.theta);
  initCommsGridQuda(4, kit.grid, NULL, NULL);
  initQuda(-1);
  kit_gauge_param(&kit, &g);
  g.t_boundary = phases.naive ? QUDA_ANTI_PERIODIC_T : QUDA_PERIODIC_T;
  kit_links(&kit, factor, &phases, links);
  loadGaugeQuda(links, &g);
  kit_invert_param(&kit, &p);
  p.mass_normalization = QUDA_KAPPA_NORMALIZATION;
  p.gamma_basis = QUDA_CHIRAL_GAMMA_BASIS;
  p.residual_type = QUDA_L2_ABSOLUTE_RESIDUAL;
  loadCloverQuda(NULL, NULL, &p);
  for (int n = 0; n < kit.columns; n++) {
    void *b = kit_source(&kit, n), *x = kit_room(&kit);
    invertQuda(x, b, &p);
    kit_write(&kit, n, x);
    kit_report(&kit, &p);
    free(x);
    free(b);
  }
  freeCloverQuda();
  freeGaugeQuda();
  endQuda();
  for (int mu = 0; mu < 4; mu++) free(links[mu]);
  kit_end(&kit);
  return 0;
}
