/*
 * Looks like quda.h to those who call the functions that libquda.so serves: their names, members
 * and enumerators, with numbers and an order of our own. Variants, as releases differ, by
 *   LOOKALIKE: 1  true_res is a number; invertMultiSrcQuda takes links, too; no twisted singlets
 *   2  true_res is an array, invertMultiSrcQuda has three arguments (the default)
 *   3  as 2, with members and enumerators in another order among ones that nobody knows
 *   4  as 2, with functions that nobody knows, without members that came late
 */
#ifndef LOOKALIKE_QUDA_H
#define LOOKALIKE_QUDA_H

#include <complex.h>
#include <limits.h>
#include <stdio.h>

#ifndef LOOKALIKE
#define LOOKALIKE 2
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define QUDA_INVALID_ENUM INT_MIN
#define QUDA_MAX_MULTI_SRC 64

#if LOOKALIKE == 3
#define SHIFTED(name) name##_nobody_knows,
#else
#define SHIFTED(name)
#endif

typedef enum { QUDA_SILENT = 3, QUDA_SUMMARIZE, QUDA_VERBOSE } QudaVerbosity;
typedef enum {
  SHIFTED(QUDA_LINKS) QUDA_WILSON_LINKS,
  QUDA_SU3_LINKS = QUDA_WILSON_LINKS,
  QUDA_ASQTAD_FAT_LINKS
} QudaLinkType;
typedef enum {
  SHIFTED(QUDA_GAUGE_ORDER) QUDA_MILC_GAUGE_ORDER = 21,
  SHIFTED(QUDA_GAUGE_ORDER_2) QUDA_QDP_GAUGE_ORDER,
  QUDA_CPS_WILSON_GAUGE_ORDER,
  QUDA_INVALID_GAUGE_ORDER = QUDA_INVALID_ENUM
} QudaGaugeFieldOrder;
typedef enum {
  QUDA_PERIODIC_T = 7,
  QUDA_ANTI_PERIODIC_T,
  QUDA_INVALID_T_BOUNDARY = QUDA_INVALID_ENUM
} QudaTboundary;
typedef enum {
  QUDA_HALF_PRECISION = 1,
  SHIFTED(QUDA_PRECISION) QUDA_DOUBLE_PRECISION,
  QUDA_SINGLE_PRECISION,
  QUDA_INVALID_PRECISION = QUDA_INVALID_ENUM
} QudaPrecision;
typedef enum { QUDA_RECONSTRUCT_NO, QUDA_RECONSTRUCT_12 } QudaReconstructType;
typedef enum {
  QUDA_TWISTED_MASS_DSLASH = 2,
  SHIFTED(QUDA_DSLASH) QUDA_CLOVER_WILSON_DSLASH,
  QUDA_TWISTED_CLOVER_DSLASH,
  QUDA_WILSON_DSLASH,
  QUDA_ASQTAD_DSLASH,
  QUDA_INVALID_DSLASH = QUDA_INVALID_ENUM
} QudaDslashType;
typedef enum {
  QUDA_TWIST_DEG_DOUBLET = 2,
#if LOOKALIKE != 1
  SHIFTED(QUDA_TWIST) QUDA_TWIST_SINGLET,
#endif
  QUDA_TWIST_NONDEG_DOUBLET,
  QUDA_TWIST_NO,
  QUDA_TWIST_INVALID = QUDA_INVALID_ENUM
} QudaTwistFlavorType;
typedef enum { QUDA_GCR_INVERTER = 5, QUDA_BICGSTAB_INVERTER, QUDA_CG_INVERTER } QudaInverterType;
typedef enum {
  QUDA_MATPC_SOLUTION = 4,
  SHIFTED(QUDA_SOLUTION) QUDA_MAT_SOLUTION,
  QUDA_MATPCDAG_MATPC_SOLUTION,
  QUDA_MATDAG_MAT_SOLUTION,
  QUDA_MATPC_DAG_SOLUTION,
  QUDA_INVALID_SOLUTION = QUDA_INVALID_ENUM
} QudaSolutionType;
typedef enum { QUDA_DIRECT_SOLVE, QUDA_DIRECT_PC_SOLVE, QUDA_NORMOP_PC_SOLVE } QudaSolveType;
typedef enum {
  QUDA_MATPC_ODD_ODD_ASYMMETRIC = 1,
  SHIFTED(QUDA_MATPC) QUDA_MATPC_EVEN_EVEN_ASYMMETRIC,
  QUDA_MATPC_ODD_ODD,
  QUDA_MATPC_EVEN_EVEN,
  QUDA_MATPC_INVALID = QUDA_INVALID_ENUM
} QudaMatPCType;
typedef enum { QUDA_DAG_YES = 6, QUDA_DAG_NO, QUDA_DAG_INVALID = QUDA_INVALID_ENUM } QudaDagType;
typedef enum {
  QUDA_MASS_NORMALIZATION = 11,
  SHIFTED(QUDA_NORMALIZATION) QUDA_ASYMMETRIC_MASS_NORMALIZATION,
  QUDA_KAPPA_NORMALIZATION,
  QUDA_INVALID_NORMALIZATION = QUDA_INVALID_ENUM
} QudaMassNormalization;
typedef enum {
  QUDA_HEAVY_QUARK_RESIDUAL = 1,
  QUDA_L2_RELATIVE_RESIDUAL = 2,
  QUDA_L2_ABSOLUTE_RESIDUAL = 8,
  QUDA_INVALID_RESIDUAL = QUDA_INVALID_ENUM
} QudaResidualType;
typedef enum {
  QUDA_LEX_DIRAC_ORDER = 3,
  SHIFTED(QUDA_DIRAC_ORDER) QUDA_DIRAC_ORDER,
  QUDA_INVALID_DIRAC_ORDER = QUDA_INVALID_ENUM
} QudaDiracFieldOrder;
typedef enum {
  QUDA_BQCD_CLOVER_ORDER = 2,
  QUDA_PACKED_CLOVER_ORDER,
  QUDA_INVALID_CLOVER_ORDER = QUDA_INVALID_ENUM
} QudaCloverFieldOrder;
typedef enum {
  QUDA_UKQCD_GAMMA_BASIS = 8,
  SHIFTED(QUDA_GAMMA) QUDA_DEGRAND_ROSSI_GAMMA_BASIS,
#if LOOKALIKE != 1
  QUDA_DIRAC_PAULI_GAMMA_BASIS,
#endif
  QUDA_CHIRAL_GAMMA_BASIS,
  QUDA_INVALID_GAMMA_BASIS = QUDA_INVALID_ENUM
} QudaGammaBasis;
typedef enum { QUDA_CUDA_FIELD_LOCATION = 4, QUDA_CPU_FIELD_LOCATION } QudaFieldLocation;
typedef enum {
  QUDA_ODD_PARITY = 5,
  QUDA_EVEN_PARITY,
  QUDA_INVALID_PARITY = QUDA_INVALID_ENUM
} QudaParity;
typedef enum { QUDA_BOOLEAN_FALSE, QUDA_BOOLEAN_TRUE } QudaBoolean;

typedef struct QudaGaugeParam_s {
#if LOOKALIKE == 3
  QudaPrecision cpu_prec;
  double nobody_knows;
  QudaTboundary t_boundary;
#endif
#if LOOKALIKE != 4
  size_t struct_size;
  QudaFieldLocation location;
#endif
  int X[4];
  double anisotropy, tadpole_coeff, scale;
  QudaLinkType type;
  QudaGaugeFieldOrder gauge_order;
#if LOOKALIKE != 3
  QudaTboundary t_boundary;
  QudaPrecision cpu_prec;
#endif
  QudaPrecision cuda_prec;
  QudaReconstructType reconstruct;
  int ga_pad;
  double i_mu;
  int use_resident_gauge, make_resident_gauge;
} QudaGaugeParam;

typedef struct QudaInvertParam_s {
  size_t struct_size;
#if LOOKALIKE == 3
  QudaGammaBasis gamma_basis;
  char nobody_knows[3];
  QudaSolutionType solution_type;
  double tol;
#endif
  QudaFieldLocation input_location, output_location;
  QudaDslashType dslash_type;
  QudaInverterType inv_type;
  double mass, kappa;
  int Ls;
  double mu, epsilon;
  QudaTwistFlavorType twist_flavor;
#if LOOKALIKE != 4
  double tm_rho, distance_pc_alpha0;
  int distance_pc_t0;
#endif
#if LOOKALIKE != 3
  double tol;
#endif
  double tol_restart, tol_hq;
#if LOOKALIKE == 1
  double true_res, true_res_hq;
#else
  double true_res[QUDA_MAX_MULTI_SRC], true_res_hq[QUDA_MAX_MULTI_SRC];
#endif
  int maxiter;
  int num_src;
#if LOOKALIKE != 3
  QudaSolutionType solution_type;
  QudaGammaBasis gamma_basis;
#endif
  QudaSolveType solve_type;
  QudaMatPCType matpc_type;
  QudaDagType dagger;
  QudaMassNormalization mass_normalization;
  QudaPrecision cpu_prec, cuda_prec;
  QudaDiracFieldOrder dirac_order;
  QudaFieldLocation clover_location;
  QudaPrecision clover_cpu_prec;
  QudaCloverFieldOrder clover_order;
  double clover_csw, clover_coeff, clover_rho;
  int compute_clover, compute_clover_inverse, return_clover, return_clover_inverse;
  QudaVerbosity verbosity;
  int iter;
  double gflops, secs;
  void *preconditioner;
  QudaResidualType residual_type;
} QudaInvertParam;

typedef struct QudaMultigridParam_s {
  size_t struct_size;
  QudaInvertParam *invert_param;
  int n_level, geo_block_size[4][4], n_vec[4];
} QudaMultigridParam;

typedef struct QudaEigParam_s {
  QudaInvertParam *invert_param;
  int n_ev;
} QudaEigParam;
typedef struct QudaGaugeSmearParam_s {
  unsigned int n_steps;
  double epsilon;
} QudaGaugeSmearParam;
typedef struct QudaGaugeObservableParam_s {
  QudaBoolean compute_plaquette;
  double plaquette[3];
} QudaGaugeObservableParam;

typedef int (*QudaCommsMap)(const int *coords, void *fdata);

void setVerbosityQuda(QudaVerbosity verbosity, const char prefix[], FILE *outfile);
void qudaSetCommHandle(void *mycomm);
void setMPICommHandleQuda(void *mycomm);
void initCommsGridQuda(int nDim, const int *dims, QudaCommsMap func, void *fdata);
void initQuda(int device);
void initQudaDevice(int device);
void initQudaMemory();
void endQuda(void);
QudaGaugeParam newQudaGaugeParam(void);
QudaInvertParam newQudaInvertParam(void);
QudaMultigridParam newQudaMultigridParam(void);
QudaEigParam newQudaEigParam(void);
QudaGaugeSmearParam newQudaGaugeSmearParam(void);
void printQudaInvertParam(QudaInvertParam *param);
void loadGaugeQuda(void *h_gauge, QudaGaugeParam *param);
void saveGaugeQuda(void *h_gauge, QudaGaugeParam *param);
void freeGaugeQuda(void);
void freeUniqueGaugeQuda(QudaLinkType link_type);
void loadCloverQuda(void *h_clover, void *h_clovinv, QudaInvertParam *inv_param);
void freeCloverQuda(void);
void createCloverQuda(QudaInvertParam *param);
void invertQuda(void *h_x, void *h_b, QudaInvertParam *param);
#if LOOKALIKE == 1
void invertMultiSrcQuda(void **_hp_x, void **_hp_b, QudaInvertParam *param, void *h_gauge,
                        QudaGaugeParam *gauge_param);
void invertMultiSrcCloverQuda(void **_hp_x, void **_hp_b, QudaInvertParam *param, void *h_gauge,
                              QudaGaugeParam *gauge_param, void *h_clover, void *h_clovinv);
#else
void invertMultiSrcQuda(void **_hp_x, void **_hp_b, QudaInvertParam *param);
void dslashMultiSrcQuda(void **_hp_x, void **_hp_b, QudaInvertParam *param, QudaParity parity);
#endif
void invertMultiShiftQuda(void **_hp_x, void *_hp_b, QudaInvertParam *param);
void *newMultigridQuda(QudaMultigridParam *param);
void updateMultigridQuda(void *mg_instance, QudaMultigridParam *param);
void destroyMultigridQuda(void *mg_instance);
void dslashQuda(void *h_out, void *h_in, QudaInvertParam *inv_param, QudaParity parity);
void cloverQuda(void *h_out, void *h_in, QudaInvertParam *inv_param, QudaParity parity,
                int inverse);
void MatQuda(void *h_out, void *h_in, QudaInvertParam *inv_param);
void MatDagMatQuda(void *h_out, void *h_in, QudaInvertParam *inv_param);
void flushChronoQuda(int index);
void plaqQuda(double plaq[3]);
void performWFlowQuda(QudaGaugeSmearParam *smear_param, QudaGaugeObservableParam *obs_param);
int computeGaugeForceQuda(void *mom, void *sitelink, int ***input_path_buf, int *path_length,
                          double *loop_coeff, int num_paths, int max_length, double dt,
                          QudaGaugeParam *qudaGaugeParam);
double momActionQuda(void *momentum, QudaGaugeParam *param);
void eigensolveQuda(void **h_evecs, double _Complex *h_evals, QudaEigParam *param);
void computeHISQForceQuda(void *momentum, double dt, const double level2_coeff[6],
                          const void *const w_link, double **coeff, QudaGaugeParam *param);
void set_dim(int *);

#if LOOKALIKE == 4
long nobodyKnowsQuda(const unsigned int n, int (*each)(void *, const char *),
                     const void *const *list);
void *nobodyKnowsThisQuda();
#endif

#ifdef __cplusplus
}
#endif

#endif
