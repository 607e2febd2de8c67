/*
 * As Chroma calls: links times coefficients of the directions (coeff=) with the sign on the last
 * slice, a clover term that it has made itself, which hides mass and csw, with kappa 1/2 and
 * coefficient 1; then invertQuda for the odd sites alone, in the normalisation KAPPA. The grid is
 * that of QMP, whose topology is there before initQuda (-geom), after it (late=1), or not (late=2).
 */
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"
#include "qmp.h"

typedef struct coefficients {
  double of[4];
  int last;
} coefficients_t;

static double complex factor(void *arg, int mu, const int x[4]) {
  const coefficients_t *c = arg;
  return c->of[mu] * (mu == 3 && x[3] == c->last ? -1 : 1);
}

int main(int argc, char **argv) {
  kit_t kit;
  kit_begin(&kit, argc, argv);
  const int late = (int)kit_number(&kit, "late", 0);
  coefficients_t c = {.of = {1, 1, 1, 1}, .last = kit.dims[3] - 1};
  QudaGaugeParam g;
  QudaInvertParam p;
  void *links[4], *term = kit_clover(&kit);
  kit_numbers(&kit, "coeff", 4, c.of);
  if (!late) QMP_declare_logical_topology(kit.grid, 4);
  initQuda(-1);
  if (late == 1) QMP_declare_logical_topology(kit.grid, 4);
  kit_gauge_param(&kit, &g);
  g.anisotropy = kit_number(&kit, "xi", 1);
  kit_links(&kit, factor, &c, links);
  loadGaugeQuda(links, &g);
  kit_invert_param(&kit, &p);
  p.kappa = 0.5;
  p.clover_coeff = 1;                   /* dummy */
  if (kit_number(&kit, "mu", 0) != 0) { /* which Chroma does not ask for */
    p.dslash_type = QUDA_TWISTED_CLOVER_DSLASH;
    p.twist_flavor = QUDA_TWIST_SINGLET;
    p.mu = kit_number(&kit, "mu", 0);
  }
  p.mass_normalization = QUDA_KAPPA_NORMALIZATION;
  p.solution_type = QUDA_MATPC_SOLUTION;
  p.matpc_type =
      kit_number(&kit, "asymmetric", 0) ? QUDA_MATPC_ODD_ODD_ASYMMETRIC : QUDA_MATPC_ODD_ODD;
  loadCloverQuda(term, term, &p);
  free(term); /* its packed field is gone after this */
  for (int n = 0; n < kit.columns; n++) {
    char *b = kit_source(&kit, n), *x = kit_room(&kit);
    invertQuda(x + kit_bytes(&kit) / 2, b + kit_bytes(&kit) / 2, &p);
    kit_write(&kit, n, x);
    kit_report(&kit, &p);
    free(x);
    free(b);
  }
  freeGaugeQuda();
  freeCloverQuda();
  endQuda();
  for (int mu = 0; mu < 4; mu++) free(links[mu]);
  kit_end(&kit);
  return 0;
}
