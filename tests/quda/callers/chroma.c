/*
 * As Chroma calls: links times coefficients of the directions (coeff=) with the sign on the last
 * slice, a clover term that it has made itself, which hides mass and csw, with kappa 1/2 and
 * coefficient 1; then invertQuda for the odd sites alone, in the normalisation KAPPA.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

/* QMP, which Chroma leaves the grid to. */
static kit_t kit;
const int *QMP_get_logical_dimensions(void);
int QMP_get_node_number_from(const int *c);
const int *QMP_get_logical_dimensions(void) {
  return kit.grid;
}
int QMP_get_node_number_from(const int *c) {
  return ((c[3] * kit.grid[2] + c[2]) * kit.grid[1] + c[1]) * kit.grid[0] + c[0];
}

typedef struct coefficients {
  double of[4];
  int last;
} coefficients_t;

static double complex factor(void *arg, int mu, const int x[4]) {
  const coefficients_t *c = arg;
  return c->of[mu] * (mu == 3 && x[3] == c->last ? -1 : 1);
}

int main(int argc, char **argv) {
  kit_begin(&kit, argc, argv);
  coefficients_t c = {.of = {1, 1, 1, 1}, .last = kit.dims[3] - 1};
  QudaGaugeParam g;
  QudaInvertParam p;
  void *links[4], *term = kit_clover(&kit);
  kit_numbers(&kit, "coeff", 4, c.of);
  initQuda(-1);
  kit_gauge_param(&kit, &g);
  g.anisotropy = kit_number(&kit, "xi", 1);
  kit_links(&kit, factor, &c, links);
  loadGaugeQuda(links, &g);
  kit_invert_param(&kit, &p);
  p.kappa = 0.5;
  p.clover_coeff = 1; /* dummy */
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
