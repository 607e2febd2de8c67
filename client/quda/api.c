/* The served functions of quda.h: members of the caller's structs to what core.c takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/say.h"
#include "base/threads.h"
#include "connection.h"
#include "core.h"
#include "served.h"
#include "setups.h"

/* ---- ranks, begin and end ---- */

void qk_served_setMPICommHandleQuda(void *comm) {
  qk_quda_grid_comm(comm);
}
void qk_served_qudaSetCommHandle(void *comm) {
  qk_quda_grid_comm(comm);
}

void qk_served_initCommsGridQuda(int n, const int *dims, QudaCommsMap map, void *arg) {
  if (n != 4) qk_quda_refuse_member("initCommsGridQuda: nDim", n, "4");
  qk_quda_grid_init(dims, (qk_quda_map_t)map, arg);
}

/* Chroma leaves the grid to QMP, which is linked statically. Weak references make the linker export
 * these from the program; dlsym would find them only with -rdynamic. */
extern const int *QMP_get_logical_dimensions(void) __attribute__((weak));
extern int QMP_get_node_number_from(const int *coord) __attribute__((weak));
extern int QMP_logical_topology_is_declared(void) __attribute__((weak));

static bool has_qmp(void) {
  return QMP_get_logical_dimensions && QMP_get_node_number_from && QMP_logical_topology_is_declared;
}

static int qmp_map(const int coord[4], void *arg) {
  (void)arg;
  return QMP_get_node_number_from(coord);
}

/* Unless initCommsGridQuda has made it. */
static void default_grid(void) {
  static const int one[4] = {1, 1, 1, 1};
  if (has_qmp() && QMP_logical_topology_is_declared())
    qk_quda_grid_init(QMP_get_logical_dimensions(), qmp_map, NULL);
  else
    qk_quda_grid_init(one, NULL, NULL);
}

/* Without -geom Chroma declares the topology after this, before it loads links. */
void qk_served_initQuda(int device) {
  (void)device;
  if (!has_qmp() || QMP_logical_topology_is_declared()) default_grid();
  if (qk_quda_grid_ready() && qk_quda_rank() == 0) qk_quda_daemon();
}

void qk_served_initQudaDevice(int device) {
  qk_served_initQuda(device);
}

void qk_served_endQuda(void) {
  qk_quda_free_links();
  qk_quda_free_clover();
  qk_quda_setups_forget();
  qk_quda_disconnect();
  qk_quda_threads_end();
}

/* ---- members ---- */

/* Callers leave what they do not use as 0, as the least double, or INVALID. */
static bool is_trivial(double v) {
  return !(fabs(v) > 1e-300) || v == (double)QUDA_INVALID_ENUM;
}

static bool is_single(const char *member, QudaPrecision prec) {
  if (prec != QUDA_SINGLE_PRECISION && prec != QUDA_DOUBLE_PRECISION)
    qk_quda_refuse_member(member, prec, "single and double precision");
  return prec == QUDA_SINGLE_PRECISION;
}

static bool is_device(int location) {
  return location == (int)QUDA_CUDA_FIELD_LOCATION;
}

static bool is_twisted(const QudaInvertParam *p) {
#ifdef QK_HAS_QUDA_TWIST_SINGLET
  return p->dslash_type == QUDA_TWISTED_MASS_DSLASH || p->dslash_type == QUDA_TWISTED_CLOVER_DSLASH;
#else
  (void)p;
  return false;
#endif
}

static void read_twist(const QudaInvertParam *p, qk_quda_call_t *call) {
#ifdef QK_HAS_QUDA_TWIST_SINGLET
  if (p->twist_flavor != QUDA_TWIST_SINGLET)
    qk_quda_refuse_member("twist_flavor", p->twist_flavor, "QUDA_TWIST_SINGLET");
  if (!isfinite(p->mu)) qk_quda_refuse("mu = %g: must be finite", p->mu);
  call->mu = fabs(p->mu) > 1e-300 ? p->mu : 0;
  call->clover = p->dslash_type == QUDA_TWISTED_CLOVER_DSLASH;
#else
  (void)p, (void)call;
#endif
}

static void read_dslash(const QudaInvertParam *p, qk_quda_call_t *call) {
  const bool twisted = is_twisted(p);
  call->clover = p->dslash_type == QUDA_CLOVER_WILSON_DSLASH;
  call->kappa = p->kappa;
  if (twisted)
    read_twist(p, call);
  else if (!call->clover && p->dslash_type != QUDA_WILSON_DSLASH)
    qk_quda_refuse_member("dslash_type", p->dslash_type,
                          "QUDA_WILSON_DSLASH, QUDA_CLOVER_WILSON_DSLASH, QUDA_TWISTED_MASS_DSLASH "
                          "and QUDA_TWISTED_CLOVER_DSLASH");
#ifdef QK_HAS_QudaInvertParam_clover_rho
  if (!is_trivial(p->clover_rho)) qk_quda_refuse_member("clover_rho", p->clover_rho, "0");
#endif
#ifdef QK_HAS_QudaInvertParam_tm_rho
  if (!is_trivial(p->tm_rho)) qk_quda_refuse_member("tm_rho", p->tm_rho, "0");
#endif
#ifdef QK_HAS_QudaInvertParam_mu
  if (!twisted && !is_trivial(p->mu))
    qk_quda_refuse_member("mu", p->mu, "0 without a twisted dslash_type");
#endif
#ifdef QK_HAS_QudaInvertParam_epsilon
  if (!is_trivial(p->epsilon)) qk_quda_refuse_member("epsilon", p->epsilon, "0");
#endif
#ifdef QK_HAS_QudaInvertParam_Ls
  if (!is_trivial(p->Ls) && p->Ls != 1) qk_quda_refuse_member("Ls", p->Ls, "1");
#endif
#ifdef QK_HAS_QudaInvertParam_distance_pc_alpha0
  if (!is_trivial(p->distance_pc_alpha0))
    qk_quda_refuse_member("distance_pc_alpha0", p->distance_pc_alpha0, "0");
#endif
}

static quark_basis_t read_basis(const QudaInvertParam *p) {
  if (p->gamma_basis == QUDA_DEGRAND_ROSSI_GAMMA_BASIS) return QUARK_DEGRAND_ROSSI;
  if (p->gamma_basis == QUDA_UKQCD_GAMMA_BASIS) return QUARK_UKQCD;
#ifdef QK_HAS_QUDA_CHIRAL_GAMMA_BASIS
  if (p->gamma_basis == QUDA_CHIRAL_GAMMA_BASIS) return QUARK_OPENQCD;
#endif
#ifdef QK_HAS_QUDA_DIRAC_PAULI_GAMMA_BASIS
  if (p->gamma_basis == QUDA_DIRAC_PAULI_GAMMA_BASIS) return QUARK_DIRAC_PAULI;
#endif
  qk_quda_refuse_member("gamma_basis", p->gamma_basis,
                        "DEGRAND_ROSSI, UKQCD, CHIRAL and DIRAC_PAULI");
}

static void read_fields(const QudaInvertParam *p, qk_quda_call_t *call) {
  if (p->dirac_order != QUDA_DIRAC_ORDER)
    qk_quda_refuse_member("dirac_order", p->dirac_order, "QUDA_DIRAC_ORDER");
#ifdef QK_HAS_QudaInvertParam_input_location
  call->in_device = is_device(p->input_location);
  call->out_device = is_device(p->output_location);
#endif
  call->single = is_single("cpu_prec", p->cpu_prec);
  call->basis = read_basis(p);
  if (p->dagger != QUDA_DAG_NO && p->dagger != QUDA_DAG_YES)
    qk_quda_refuse_member("dagger", p->dagger, "QUDA_DAG_NO and QUDA_DAG_YES");
  call->dagger = p->dagger == QUDA_DAG_YES;
}

static void read_matpc(const QudaInvertParam *p, qk_quda_call_t *call) {
  call->odd = p->matpc_type == QUDA_MATPC_ODD_ODD || p->matpc_type == QUDA_MATPC_ODD_ODD_ASYMMETRIC;
  call->asymmetric = p->matpc_type == QUDA_MATPC_EVEN_EVEN_ASYMMETRIC ||
                     p->matpc_type == QUDA_MATPC_ODD_ODD_ASYMMETRIC;
  if (!call->odd && !call->asymmetric && p->matpc_type != QUDA_MATPC_EVEN_EVEN)
    qk_quda_refuse_member("matpc_type", p->matpc_type, "EVEN_EVEN, ODD_ODD and their ASYMMETRIC");
}

static void read_solution(const QudaInvertParam *p, qk_quda_call_t *call) {
  call->pc =
      p->solution_type == QUDA_MATPC_SOLUTION || p->solution_type == QUDA_MATPCDAG_MATPC_SOLUTION;
  call->squared = p->solution_type == QUDA_MATDAG_MAT_SOLUTION ||
                  p->solution_type == QUDA_MATPCDAG_MATPC_SOLUTION;
  if (!call->pc && !call->squared && p->solution_type != QUDA_MAT_SOLUTION)
    qk_quda_refuse_member("solution_type", p->solution_type,
                          "MAT, MATDAG_MAT, MATPC and MATPCDAG_MATPC");
  if (call->pc) read_matpc(p, call);
  if (p->mass_normalization == QUDA_KAPPA_NORMALIZATION)
    call->norm = QK_QUDA_KAPPA;
  else if (p->mass_normalization == QUDA_MASS_NORMALIZATION)
    call->norm = QK_QUDA_MASS;
  else if (p->mass_normalization == QUDA_ASYMMETRIC_MASS_NORMALIZATION)
    call->norm = QK_QUDA_ASYMMETRIC_MASS;
  else
    qk_quda_refuse_member("mass_normalization", p->mass_normalization,
                          "KAPPA, MASS and ASYMMETRIC_MASS");
}

static void read_stopping(const QudaInvertParam *p, qk_quda_call_t *call) {
  const int type = (int)p->residual_type;
  const int known =
      QUDA_L2_RELATIVE_RESIDUAL | QUDA_L2_ABSOLUTE_RESIDUAL | QUDA_HEAVY_QUARK_RESIDUAL;
  if (type & ~known)
    qk_quda_refuse_member("residual_type", type, "L2_RELATIVE, L2_ABSOLUTE and HEAVY_QUARK");
  call->relative = (type & QUDA_L2_RELATIVE_RESIDUAL) != 0;
  call->absolute = (type & QUDA_L2_ABSOLUTE_RESIDUAL) != 0;
  call->heavy = (type & QUDA_HEAVY_QUARK_RESIDUAL) != 0;
  call->tol = p->tol;
#ifdef QK_HAS_QudaInvertParam_tol_hq
  call->tol_hq = p->tol_hq;
#endif
  call->max_iter = p->maxiter;
}

static qk_quda_call_t read_call(const QudaInvertParam *p, int n) {
  qk_quda_call_t call = {.n = n};
  read_dslash(p, &call);
  read_fields(p, &call);
  return call;
}

/* ---- links and clover term ---- */

void qk_served_loadGaugeQuda(void *links, QudaGaugeParam *p) {
  if (p->type != QUDA_WILSON_LINKS) qk_quda_refuse_member("type", p->type, "QUDA_WILSON_LINKS");
  if (p->gauge_order != QUDA_QDP_GAUGE_ORDER && p->gauge_order != QUDA_MILC_GAUGE_ORDER)
    qk_quda_refuse_member("gauge_order", p->gauge_order,
                          "QUDA_QDP_GAUGE_ORDER and QUDA_MILC_GAUGE_ORDER");
  if (p->t_boundary != QUDA_ANTI_PERIODIC_T && p->t_boundary != QUDA_PERIODIC_T)
    qk_quda_refuse_member("t_boundary", p->t_boundary, "ANTI_PERIODIC and PERIODIC");
  bool device = false;
#ifdef QK_HAS_QudaGaugeParam_location
  device = is_device(p->location);
#endif
#ifdef QK_HAS_QudaGaugeParam_i_mu
  if (!is_trivial(p->i_mu)) qk_quda_refuse_member("i_mu", p->i_mu, "0");
#endif
  if (!links) qk_quda_refuse("loadGaugeQuda: the links are NULL; resident ones are not served");
  default_grid();
  qk_quda_load_links(p->X, &(qk_quda_given_t){
                               .milc = p->gauge_order == QUDA_MILC_GAUGE_ORDER,
                               .single = is_single("cpu_prec", p->cpu_prec),
                               .device = device,
                               .links = links,
                               .anisotropy = is_trivial(p->anisotropy) ? 1 : p->anisotropy,
                               .antiperiodic = p->t_boundary == QUDA_ANTI_PERIODIC_T,
                           });
}

void qk_served_freeGaugeQuda(void) {
  qk_quda_free_links();
}

void qk_served_freeUniqueGaugeQuda(QudaLinkType type) {
  if (type == QUDA_WILSON_LINKS) qk_quda_free_links();
}

static double coefficient(const QudaInvertParam *p) {
#ifdef QK_HAS_QudaInvertParam_clover_csw
  if (is_trivial(p->clover_coeff)) return is_trivial(p->clover_csw) ? 0 : p->kappa * p->clover_csw;
#endif
  return is_trivial(p->clover_coeff) ? 0 : p->clover_coeff;
}

void qk_served_loadCloverQuda(void *clover, void *inverse, QudaInvertParam *p) {
  qk_quda_call_t call = {0};
  read_dslash(p, &call);
  bool computed = !clover && !inverse;
#ifdef QK_HAS_QudaInvertParam_compute_clover
  computed = computed || p->compute_clover > 0;
#endif
#ifdef QK_HAS_QudaInvertParam_return_clover
  if (p->return_clover > 0) qk_quda_refuse_member("return_clover", p->return_clover, "0");
  if (p->return_clover_inverse > 0)
    qk_quda_refuse_member("return_clover_inverse", p->return_clover_inverse, "0");
#endif
  if (computed) {
    qk_quda_load_clover(coefficient(p), false, false, NULL);
    return;
  }
  if (!clover)
    qk_quda_refuse("loadCloverQuda: the inverse alone is not served, the term is needed");
  bool device = false;
#ifdef QK_HAS_QudaInvertParam_clover_location
  device = is_device(p->clover_location);
#endif
  if (p->clover_order != QUDA_PACKED_CLOVER_ORDER)
    qk_quda_refuse_member("clover_order", p->clover_order, "QUDA_PACKED_CLOVER_ORDER");
  qk_quda_load_clover(0, is_single("clover_cpu_prec", p->clover_cpu_prec), device, clover);
}

void qk_served_createCloverQuda(QudaInvertParam *p) {
  qk_quda_call_t call = {0};
  read_dslash(p, &call);
  qk_quda_load_clover(coefficient(p), false, false, NULL);
}

void qk_served_freeCloverQuda(void) {
  qk_quda_free_clover();
}

/* ---- solves ---- */

/* true_res is a number or an array, by release. A number is the largest. */
static void write_residuals(double *to, size_t room, const qk_quda_outcome_t *o, int n,
                            bool heavy) {
  for (size_t k = 0; k < room; k++) to[k] = 0;
  for (int k = 0; k < n; k++) {
    const double v = heavy ? o[k].hq_residual : o[k].residual;
    double *at = &to[room == 1 ? 0 : (size_t)k];
    if (room > 1 && (size_t)k >= room) break;
    if (isfinite(v) && v > *at) *at = v;
  }
}

static void invert(void **x, void **b, QudaInvertParam *p, int n) {
  qk_quda_call_t call = read_call(p, n);
  read_solution(p, &call);
  read_stopping(p, &call);
  qk_quda_outcome_t *o = qk_quda_alloc((size_t)n * sizeof *o);
  double secs, flops;
  uint64_t most = 0;
  qk_quda_solve(&call, x, b, o, &secs, &flops);
  write_residuals((double *)&p->true_res, sizeof p->true_res / sizeof(double), o, n, false);
#ifdef QK_HAS_QudaInvertParam_true_res_hq
  write_residuals((double *)&p->true_res_hq, sizeof p->true_res_hq / sizeof(double), o, n, true);
#endif
  for (int k = 0; k < n; k++) most = o[k].iterations > most ? o[k].iterations : most;
  p->iter = (int)most;
  p->secs = secs;
  p->gflops = 1e-9 * flops;
  free(o);
}

void qk_served_invertQuda(void *x, void *b, QudaInvertParam *p) {
  invert(&x, &b, p, 1);
}

static int number_of_sources(const QudaInvertParam *p) {
#ifdef QK_HAS_QudaInvertParam_num_src
  enum { MOST = 65536 };
  if (p->num_src < 1 || p->num_src > MOST)
    qk_quda_refuse("num_src = %d: must be 1 to %d", p->num_src, MOST);
  return p->num_src;
#else
  (void)p;
  return 1;
#endif
}

void qk_served_invertMultiSrcQuda(void **x, void **b, QudaInvertParam *p) {
  invert(x, b, p, number_of_sources(p));
}

/* ---- multigrid: the daemon's; an instance is no more than a name for it ---- */

static void prepare(const QudaMultigridParam *param) {
  if (!param->invert_param) qk_quda_refuse("QudaMultigridParam: invert_param is NULL");
  qk_quda_call_t call = {0};
  read_dslash(param->invert_param, &call);
  /* of a twist this may be another mu (tmLQCD's MGSetup2KappaMu), which nothing is solved with */
  if (!is_twisted(param->invert_param)) qk_quda_prepare(&call);
}

void *qk_served_newMultigridQuda(QudaMultigridParam *param) {
  prepare(param);
  return qk_quda_alloc(1);
}

void qk_served_updateMultigridQuda(void *instance, QudaMultigridParam *param) {
  if (!instance) qk_quda_refuse("updateMultigridQuda: the instance is NULL");
  prepare(param);
}

void qk_served_destroyMultigridQuda(void *instance) {
  free(instance);
} /* the setup stays */

/* ---- the operator ---- */

void qk_served_MatQuda(void *out, void *in, QudaInvertParam *p) {
  qk_quda_call_t call = read_call(p, 1);
  read_solution(p, &call);
  call.squared = false;
  qk_quda_apply(&call, QK_QUDA_M, false, &out, &in);
}

void qk_served_MatDagMatQuda(void *out, void *in, QudaInvertParam *p) {
  qk_quda_call_t call = read_call(p, 1);
  read_solution(p, &call);
  call.squared = true;
  qk_quda_apply(&call, QK_QUDA_M, false, &out, &in);
}

static bool is_odd(QudaParity parity) {
  if (parity != QUDA_EVEN_PARITY && parity != QUDA_ODD_PARITY)
    qk_quda_refuse_member("parity", parity, "QUDA_EVEN_PARITY and QUDA_ODD_PARITY");
  return parity == QUDA_ODD_PARITY;
}

static void hop(void **out, void **in, QudaInvertParam *p, QudaParity parity, int n) {
  const qk_quda_call_t call = read_call(p, n);
  if (call.dagger && call.mu != 0) /* QUDA's matpc_type says on which side the inverse stands */
    qk_quda_refuse("dslashQuda: dagger = QUDA_DAG_YES is not served with a twist");
  qk_quda_apply(&call, QK_QUDA_HOP, is_odd(parity), out, in);
}

void qk_served_dslashQuda(void *out, void *in, QudaInvertParam *p, QudaParity parity) {
  hop(&out, &in, p, parity, 1);
}

void qk_served_dslashMultiSrcQuda(void **out, void **in, QudaInvertParam *p, QudaParity parity) {
  hop(out, in, p, parity, number_of_sources(p));
}

void qk_served_cloverQuda(void *out, void *in, QudaInvertParam *p, QudaParity parity, int inverse) {
  qk_quda_call_t call = read_call(p, 1);
  if (!call.clover || is_twisted(p))
    qk_quda_refuse_member("cloverQuda: dslash_type", p->dslash_type, "QUDA_CLOVER_WILSON_DSLASH");
  qk_quda_apply(&call, inverse ? QK_QUDA_DIAG_INVERSE : QK_QUDA_DIAG, is_odd(parity), &out, &in);
}
