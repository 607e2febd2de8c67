/*
 * zolotarev.h: the best rational approximation of sgn(x) on least <= |x| <= greatest as partial
 * fractions (E. I. Zolotarev, 1877; J. van den Eshof et al., hep-lat/0202025),
 *
 *   R(x) = x sum_j r_j / (x^2 + q_j),  r_j, q_j > 0,  |R(x) - sgn(x)| <= error
 *
 * of t = x / least it is d t prod_l (t^2 + c_2l) / prod_l (t^2 + c_(2l-1)), c_l = sn^2 / cn^2 of
 * l K / 2n, l = 1 .. 2n - 1, for n poles and the modulus sqrt(1 - (least / greatest)^2); sn by the
 * arithmetic-geometric mean.
 *
 * Host memory; pure.
 */
#ifndef QK_ENGINE_OVERLAP_ZOLOTAREV_H
#define QK_ENGINE_OVERLAP_ZOLOTAREV_H

#include "daemon/base/err.h"

enum { QK_ZOLOTAREV_MAX = 32 };       /* poles */
#define QK_ZOLOTAREV_RATIO_MAX 2000.0 /* greatest / least */

typedef struct qk_zolotarev {
  int n; /* poles */
  double r[QK_ZOLOTAREV_MAX], q[QK_ZOLOTAREV_MAX];
  double error;
} qk_zolotarev_t;

/* With the fewest poles whose error is at most tol, 1e-12 or more. QK_TOO_LARGE: the interval is
 * wider than the ratio above. */
qk_status_t qk_zolotarev_init(double least, double greatest, double tol, qk_zolotarev_t *z);
/* Poles for the widest interval. */
int qk_zolotarev_most(double tol);

double qk_zolotarev_value(const qk_zolotarev_t *z, double x);

#endif
