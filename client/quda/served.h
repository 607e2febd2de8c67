/*
 * served.h: what libquda.so does itself. The exported functions are generated (quark-quda): each
 * has the prototype of the user's quda.h and calls one of these, or refuses.
 */
#ifndef QUARK_QUDA_SERVED_H
#define QUARK_QUDA_SERVED_H

#include <stdio.h>

#include <quda.h>
#ifdef QK_WITH_MILC
#include <quda_milc_interface.h>
#endif

#include "probe.h" /* generated: which members, enumerators and functions the header has */

/* api.c */
void qk_served_setMPICommHandleQuda(void *comm);
void qk_served_qudaSetCommHandle(void *comm);
void qk_served_initCommsGridQuda(int n, const int *dims, QudaCommsMap map, void *arg);
void qk_served_initQuda(int device);
void qk_served_initQudaDevice(int device);
void qk_served_endQuda(void);
void qk_served_loadGaugeQuda(void *links, QudaGaugeParam *param);
void qk_served_freeGaugeQuda(void);
void qk_served_freeUniqueGaugeQuda(QudaLinkType type);
void qk_served_loadCloverQuda(void *clover, void *inverse, QudaInvertParam *param);
void qk_served_createCloverQuda(QudaInvertParam *param);
void qk_served_freeCloverQuda(void);
void qk_served_invertQuda(void *x, void *b, QudaInvertParam *param);
void qk_served_invertMultiSrcQuda(void **x, void **b, QudaInvertParam *param);
void *qk_served_newMultigridQuda(QudaMultigridParam *param);
void qk_served_updateMultigridQuda(void *instance, QudaMultigridParam *param);
void qk_served_destroyMultigridQuda(void *instance);
void qk_served_MatQuda(void *out, void *in, QudaInvertParam *param);
void qk_served_MatDagMatQuda(void *out, void *in, QudaInvertParam *param);
void qk_served_dslashQuda(void *out, void *in, QudaInvertParam *param, QudaParity parity);
void qk_served_dslashMultiSrcQuda(void **out, void **in, QudaInvertParam *param, QudaParity parity);
void qk_served_cloverQuda(void *out, void *in, QudaInvertParam *param, QudaParity parity,
                          int inverse);

/* params.c: with the defaults that QUDA documents; members that must be given are INVALID */
QudaGaugeParam qk_served_newQudaGaugeParam(void);
QudaInvertParam qk_served_newQudaInvertParam(void);
QudaMultigridParam qk_served_newQudaMultigridParam(void);

#ifdef QK_WITH_MILC
/* milc.c */
void qk_served_qudaSetMPICommHandle(void *comm);
void qk_served_qudaInit(QudaInitArgs_t args);
void qk_served_qudaSetLayout(QudaLayout_t layout);
void qk_served_qudaFinalize(void);
void *qk_served_qudaAllocatePinned(size_t bytes);
void qk_served_qudaFreePinned(void *data);
void *qk_served_qudaAllocateManaged(size_t bytes);
void qk_served_qudaFreeManaged(void *data);
void qk_served_qudaCloverInvert(int external_precision, int quda_precision, double kappa,
                                double clover_coeff, QudaInvertArgs_t args, double target_residual,
                                double target_fermilab_residual, const void *links, void *clover,
                                void *inverse, void *source, void *solution, double *residual,
                                double *fermilab_residual, int *iterations);
#endif

#endif
