/*
 * As MILC calls its clover solver: qudaInit, then qudaCloverInvert with links, clover term and
 * inverse for each source. A sign on a slice of each direction (sign=, slice=), as its boundary
 * phases have it; source and solution times gamma_5; the whole lattice as latsize.
 */
#include <quda_milc_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

typedef struct signs {
  double sign[4], slice[4];
} signs_t;

static double complex factor(void *arg, int mu, const int x[4]) {
  const signs_t *s = arg;
  return s->sign[mu] != 0 && x[mu] == (int)s->slice[mu] ? -1 : 1;
}

static void gamma_5(const kit_t *kit, void *field) {
  for (size_t k = 0; k < kit->sites * 24; k++)
    if (k % 24 >= 12) {
      if (kit->single)
        ((float *)field)[k] = -((float *)field)[k];
      else
        ((double *)field)[k] = -((double *)field)[k];
    }
}

int main(int argc, char **argv) {
  kit_t kit;
  kit_begin(&kit, argc, argv);
  signs_t s = {.sign = {0, 0, 0, 1}};
  for (int mu = 0; mu < 4; mu++) s.slice[mu] = kit.dims[mu] - 1;
  kit_numbers(&kit, "sign", 4, s.sign);
  kit_numbers(&kit, "slice", 4, s.slice);
  const QudaInitArgs_t init = {.verbosity = QUDA_SILENT,
                               .layout = {.latsize = kit.dims, .machsize = kit.grid}};
  qudaInit(init);
  void *links[4], *term = kit_clover(&kit);
  kit_links(&kit, factor, &s, links);
  void *all = kit_milc_links(&kit, links);
  const int precision = kit.single ? 1 : 2;
  for (int n = 0; n < kit.columns; n++) {
    QudaInvertArgs_t args = {.max_iter = 5000, .solver_type = QUDA_BICGSTAB_INVERTER};
    for (int mu = 0; mu < 4; mu++) args.boundary_phase[mu] = s.sign[mu];
    void *b = kit_source(&kit, n), *x = kit_room(&kit);
    double residual, fermilab;
    int iterations;
    gamma_5(&kit, b);
    qudaCloverInvert(precision, precision, kit.kappa, kit.kappa * kit.csw, args, kit.tol,
                     kit_number(&kit, "hq", 0), all, term, term, b, x, &residual, &fermilab,
                     &iterations);
    gamma_5(&kit, x);
    kit_write(&kit, n, x);
    if (kit.rank == 0) printf("residual %.3e %.3e iterations %d\n", residual, fermilab, iterations);
    free(x);
    free(b);
  }
  qudaFreePinned(qudaAllocatePinned(1000));
  qudaFinalize();
  for (int mu = 0; mu < 4; mu++) free(links[mu]);
  free(all);
  free(term);
  kit_end(&kit);
  return 0;
}
