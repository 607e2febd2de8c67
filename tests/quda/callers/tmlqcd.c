/*
 * As tmLQCD calls: one load of links that all carry a phase exp(i theta pi / L) of their direction
 * (theta=), which it says is periodic, or the sign on the last time slice (naive=1); the clover
 * term of these links; CHIRAL basis, the absolute residual. mu=, its 2 kappa mu: twisted; multigrid
 * is then made with another one (setup_mu=) and updated to it.
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
  const double mu = kit_number(&kit, "mu", 0), setup_mu = kit_number(&kit, "setup_mu", mu);
  if (mu != 0) {
    p.dslash_type = kit.csw > 0 ? QUDA_TWISTED_CLOVER_DSLASH : QUDA_TWISTED_MASS_DSLASH;
    p.matpc_type = kit.csw > 0 ? QUDA_MATPC_EVEN_EVEN : QUDA_MATPC_EVEN_EVEN_ASYMMETRIC;
    p.twist_flavor = QUDA_TWIST_SINGLET;
    p.mu = -mu / (2 * kit.kappa);
  }
  if (kit.csw > 0) {
    p.compute_clover = p.compute_clover_inverse = 1;
    loadCloverQuda(NULL, NULL, &p);
  }
  void *mg = NULL;
  QudaMultigridParam m = newQudaMultigridParam();
  QudaInvertParam mg_invert = p;
  if (mu != 0) {
    m.invert_param = &mg_invert;
    mg_invert.mu = -setup_mu / (2 * kit.kappa);
    mg = newMultigridQuda(&m);
    mg_invert.mu = p.mu;
    updateMultigridQuda(mg, &m);
    p.preconditioner = mg;
  }
  for (int n = 0; n < kit.columns; n++) {
    void *b = kit_source(&kit, n), *x = kit_room(&kit);
    invertQuda(x, b, &p);
    kit_write(&kit, n, x);
    kit_report(&kit, &p);
    free(x);
    free(b);
  }
  if (mg) destroyMultigridQuda(mg);
  freeCloverQuda();
  freeGaugeQuda();
  endQuda();
  for (int mu = 0; mu < 4; mu++) free(links[mu]);
  kit_end(&kit);
  return 0;
}
