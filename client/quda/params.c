/* The parameters as newQuda*Param makes them. Members that decide what is computed and have no
 * default are INVALID, so that one that is forgotten is refused; all others are 0. */
#include <string.h>

#include "served.h"

QudaGaugeParam qk_served_newQudaGaugeParam(void) {
  QudaGaugeParam p;
  memset(&p, 0, sizeof p);
#ifdef QK_HAS_QudaGaugeParam_struct_size
  p.struct_size = sizeof p;
#endif
#ifdef QK_HAS_QudaGaugeParam_location
  p.location = QUDA_CPU_FIELD_LOCATION;
#endif
#ifdef QK_HAS_QudaGaugeParam_tadpole_coeff
  p.tadpole_coeff = 1;
#endif
#ifdef QK_HAS_QudaGaugeParam_scale
  p.scale = 1;
#endif
  p.anisotropy = 1;
  p.type = QUDA_WILSON_LINKS;
  p.gauge_order = QUDA_INVALID_GAUGE_ORDER;
  p.t_boundary = QUDA_INVALID_T_BOUNDARY;
  p.cpu_prec = QUDA_INVALID_PRECISION;
  return p;
}

QudaInvertParam qk_served_newQudaInvertParam(void) {
  QudaInvertParam p;
  memset(&p, 0, sizeof p);
#ifdef QK_HAS_QudaInvertParam_struct_size
  p.struct_size = sizeof p;
#endif
#ifdef QK_HAS_QudaInvertParam_input_location
  p.input_location = p.output_location = QUDA_CPU_FIELD_LOCATION;
#endif
#ifdef QK_HAS_QudaInvertParam_clover_location
  p.clover_location = QUDA_CPU_FIELD_LOCATION;
#endif
#ifdef QK_HAS_QudaInvertParam_num_src
  p.num_src = 1;
#endif
#ifdef QK_HAS_QudaInvertParam_split_grid
  for (size_t k = 0; k < sizeof p.split_grid / sizeof p.split_grid[0]; k++) p.split_grid[k] = 1;
#endif
#ifdef QK_HAS_QudaInvertParam_Ls
  p.Ls = 1;
#endif
#ifdef QK_HAS_QudaInvertParam_compute_true_res
  p.compute_true_res = 1;
#endif
  p.dslash_type = QUDA_INVALID_DSLASH;
#ifdef QK_HAS_QUDA_TWIST_SINGLET
  p.twist_flavor = QUDA_TWIST_INVALID;
#endif
  p.solution_type = QUDA_INVALID_SOLUTION;
  p.matpc_type = QUDA_MATPC_INVALID;
  p.dagger = QUDA_DAG_INVALID;
  p.mass_normalization = QUDA_INVALID_NORMALIZATION;
  p.residual_type = QUDA_L2_RELATIVE_RESIDUAL;
  p.cpu_prec = QUDA_INVALID_PRECISION;
  p.dirac_order = QUDA_INVALID_DIRAC_ORDER;
  p.gamma_basis = QUDA_INVALID_GAMMA_BASIS;
  p.clover_cpu_prec = QUDA_INVALID_PRECISION;
  p.clover_order = QUDA_INVALID_CLOVER_ORDER;
  return p;
}

QudaMultigridParam qk_served_newQudaMultigridParam(void) {
  QudaMultigridParam p;
  memset(&p, 0, sizeof p);
#ifdef QK_HAS_QudaMultigridParam_struct_size
  p.struct_size = sizeof p;
#endif
  return p;
}
