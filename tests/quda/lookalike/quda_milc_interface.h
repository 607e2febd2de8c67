/* Looks like quda_milc_interface.h to those who call the solver of clover fermions. */
#ifndef LOOKALIKE_QUDA_MILC_INTERFACE_H
#define LOOKALIKE_QUDA_MILC_INTERFACE_H

#include <quda.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  double boundary_phase[4];
  int max_iter;
  QudaParity evenodd;
  int mixed_precision;
  QudaInverterType solver_type;
  double tadpole;
} QudaInvertArgs_t;

typedef struct {
  const int *latsize;
  const int *machsize;
  int device;
} QudaLayout_t;

typedef struct {
  QudaLayout_t layout;
  QudaVerbosity verbosity;
} QudaInitArgs_t;

void qudaSetMPICommHandle(void *mycomm);
void qudaInit(QudaInitArgs_t input);
void qudaSetLayout(QudaLayout_t layout);
void qudaFinalize();
void *qudaAllocatePinned(size_t bytes);
void qudaFreePinned(void *ptr);
void qudaCloverInvert(int external_precision, int quda_precision, double kappa, double clover_coeff,
                      QudaInvertArgs_t inv_args, double target_residual,
                      double target_fermilab_residual, const void *milc_link, void *milc_clover,
                      void *milc_clover_inv, void *source, void *solution,
                      double *const final_residual, double *const final_fermilab_residual,
                      int *num_iters);
void qudaInvert(int external_precision, int quda_precision, double mass, QudaInvertArgs_t inv_args,
                double target_residual, double target_relative_residual,
                const void *const milc_fatlink, const void *const milc_longlink, void *source,
                void *solution, double *const final_resid, double *const final_rel_resid,
                int *num_iters);

#ifdef __cplusplus
}
#endif

#endif
