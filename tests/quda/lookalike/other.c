/* Another libquda, to which functions are forwarded: it prints what it gets. */
#include <quda.h>
#include <string.h>

QudaGaugeParam newQudaGaugeParam(void) {
  QudaGaugeParam p;
  memset(&p, 0, sizeof p);
  p.gauge_order = QUDA_INVALID_GAUGE_ORDER;
  p.t_boundary = QUDA_INVALID_T_BOUNDARY;
  p.cpu_prec = QUDA_INVALID_PRECISION;
  return p;
}

QudaInvertParam newQudaInvertParam(void) {
  QudaInvertParam p;
  memset(&p, 0, sizeof p);
  p.dslash_type = QUDA_INVALID_DSLASH;
  p.solution_type = QUDA_INVALID_SOLUTION;
  p.dagger = QUDA_DAG_INVALID;
  p.mass_normalization = QUDA_INVALID_NORMALIZATION;
  p.cpu_prec = QUDA_INVALID_PRECISION;
  p.residual_type = QUDA_L2_RELATIVE_RESIDUAL;
  return p;
}

QudaMultigridParam newQudaMultigridParam(void) {
  QudaMultigridParam p;
  memset(&p, 0, sizeof p);
  return p;
}

QudaGaugeSmearParam newQudaGaugeSmearParam(void) {
  QudaGaugeSmearParam p = {0};
  return p;
}

void initQuda(int device) {
  printf("other initQuda %d\n", device);
}
void endQuda(void) {
  printf("other endQuda\n");
}

void performWFlowQuda(QudaGaugeSmearParam *smear, QudaGaugeObservableParam *obs) {
  printf("other performWFlowQuda %u %g %d\n", smear->n_steps, smear->epsilon, obs == NULL);
}

int computeGaugeForceQuda(void *mom, void *sitelink, int ***paths, int *length, double *coefficient,
                          int num, int max, double dt, QudaGaugeParam *param) {
  printf("other computeGaugeForceQuda %d %g %d %d %g %d\n",
         mom == NULL && sitelink == NULL && paths == NULL && length == NULL, *coefficient, num, max,
         dt, param->X[3]);
  return 42;
}

double momActionQuda(void *momentum, QudaGaugeParam *param) {
  return momentum == NULL ? param->X[0] + 0.5 : 0;
}
