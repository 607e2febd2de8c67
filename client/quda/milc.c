/* MILC's interface (quda_milc_interface.h): the solver of clover fermions. */
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/say.h"
#include "core.h"
#include "served.h"

#ifdef QK_WITH_MILC

static int local[4];

void qk_served_qudaSetMPICommHandle(void *comm) {
  qk_served_setMPICommHandleQuda(comm);
}

static int x_fastest(const int *coord, void *arg) {
  const int *grid = arg;
  return ((coord[3] * grid[2] + coord[2]) * grid[1] + coord[1]) * grid[0] + coord[0];
}

/* latsize is that of the whole lattice, whatever the header says. */
void qk_served_qudaSetLayout(QudaLayout_t layout) {
  static int grid[4];
  for (int mu = 0; mu < 4; mu++) {
    grid[mu] = layout.machsize[mu];
    if (grid[mu] < 1 || layout.latsize[mu] % grid[mu])
      qk_quda_refuse("qudaSetLayout: latsize[%d] = %d in machsize[%d] = %d parts", mu,
                     layout.latsize[mu], mu, grid[mu]);
    local[mu] = layout.latsize[mu] / grid[mu];
  }
  qk_quda_grid_init(grid, x_fastest, grid);
  qk_served_initQuda(layout.device);
}

void qk_served_qudaInit(QudaInitArgs_t args) {
  qk_served_qudaSetLayout(args.layout);
}
void qk_served_qudaFinalize(void) {
  qk_served_endQuda();
}
void *qk_served_qudaAllocatePinned(size_t bytes) {
  return qk_quda_alloc(bytes);
}
void qk_served_qudaFreePinned(void *data) {
  free(data);
}
void *qk_served_qudaAllocateManaged(size_t bytes) {
  return qk_quda_alloc(bytes);
}
void qk_served_qudaFreeManaged(void *data) {
  free(data);
}

static bool is_single(int precision) {
  if (precision != 1 && precision != 2)
    qk_quda_refuse_member("qudaCloverInvert: external_precision", precision, "1 and 2");
  return precision == 1;
}

/* source and solution: MILC has multiplied them by gamma_5. Signs of any slice are in the links. */
void qk_served_qudaCloverInvert(int external_precision, int quda_precision, double kappa,
                                double clover_coeff, QudaInvertArgs_t args, double target_residual,
                                double target_fermilab_residual, const void *links, void *clover,
                                void *inverse, void *source, void *solution, double *residual,
                                double *fermilab_residual, int *iterations) {
  const bool single = is_single(external_precision);
  (void)quda_precision;
  (void)clover_coeff; /* the term that is given says it */
  if (target_residual == 0 && target_fermilab_residual == 0)
    qk_quda_refuse("qudaCloverInvert: target_residual and target_fermilab_residual are both 0");
  if (links)
    qk_quda_load_links(
        local, &(qk_quda_given_t){.milc = true, .single = single, .links = links, .anisotropy = 1});
  if (!clover && inverse)
    qk_quda_refuse("qudaCloverInvert: the inverse alone is not served, the clover term is needed");
  if (clover) qk_quda_load_clover(0, single, false, clover);
  const qk_quda_call_t call = {.clover = true,
                               .kappa = kappa,
                               .norm = QK_QUDA_KAPPA,
                               .relative = target_residual != 0,
                               .tol = target_residual,
                               .heavy = target_fermilab_residual != 0,
                               .tol_hq = target_fermilab_residual,
                               .max_iter = args.max_iter,
                               .single = single,
                               .basis = QUARK_DEGRAND_ROSSI,
                               .n = 1};
  qk_quda_outcome_t o;
  double secs, flops;
  qk_quda_solve(&call, &solution, &source, &o, &secs, &flops);
  *residual = o.residual;
  *fermilab_residual = target_fermilab_residual != 0 ? o.hq_residual : 0;
  *iterations = (int)o.iterations;
  if (clover) qk_quda_free_clover();
  if (links) qk_quda_free_links();
}

#endif
