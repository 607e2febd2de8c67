/*
 * sign.h: the sign function of H = gamma_5 D, D the Wilson operator of negative mass, in the form
 *
 *   V = gamma_5 sgn(H) = D (D^+ D)^(-1/2),  V^+ = gamma_5 V gamma_5,  V^+ V = sgn(H)^2 = 1
 *
 *   V in = gamma_5 sum_i sgn(h_i) v_i (v_i, in) + D p(D^+ D) (in - sum_i v_i (v_i, in))
 *
 * with the lowest eigenvectors H v_i = h_i v_i and a Chebyshev series p of x^(-1/2) (series.h) from
 * the first |h| that is not among them to the norm of D, by Clenshaw's recursion; or Zolotarev's
 * partial fractions in its place (fractions.h). So |V in - exact| is at most tol |in|, but for
 * rounding: in single about 1e-5.
 *
 * Where less will do, V of a right-hand side takes fewer terms of the series, the same ones
 * whatever else is in the block.
 *
 * The bound below is what Lanczos has found, less a margin. If it is wrong, V is not unitary: its
 * maker tries sgn(H)^2 on noise, and each application in double compares |V in| with |in|. Either
 * fails with QK_BREAKDOWN, and the log says why.
 *
 * Shapes: full fields, blocks of up to QK_MAX_RHS right-hand sides, double and single as far as D
 * is held. Memory: qk_sign_bytes; work fields: QK_SIGN_FIELDS like `in`. Cost of an application:
 * 2 order + 1 applications of D (of partial fractions about as many), and two passes over the
 * vectors. Collective but for bytes.
 */
#ifndef QK_ENGINE_OVERLAP_SIGN_H
#define QK_ENGINE_OVERLAP_SIGN_H

#include "daemon/base/progress.h"
#include "daemon/engine/eigen/stored.h"
#include "daemon/engine/operator/operator.h"

/* Work fields of an application, beside those of D. */
enum { QK_SIGN_FIELDS = 5, QK_SIGN_SINGLE = 2 }; /* SINGLE: of one right-hand side, in double */

typedef struct qk_sign_params {
  qk_operator_t *d; /* borrowed: D, which holds double; M^+ = gamma_5 M gamma_5 */
  double norm;      /* |D| is at most that */
  int modes;        /* eigenvectors that are projected */
  double tol;
  bool zolotarev;            /* partial fractions, not the series */
  bool want[QK_PRECS];       /* double and, where D holds it, single */
  const qk_stored_t *stored; /* eigenvectors of H; NULL: they are made */
  qk_progress_fn *progress;  /* phase "eigenvectors"; NULL: nobody listens */
  void *arg;
} qk_sign_params_t;

typedef struct qk_sign qk_sign_t;

/* Work fields are taken from those of D. QK_BAD_ARGUMENT (modes, and their limit on this lattice),
 * QK_NOT_CONVERGED, QK_BREAKDOWN (sgn(H)^2 is not 1, or an eigenvalue is too near 0 to have a
 * sign), QK_TOO_LARGE (an eigenvalue that is not projected is so low that the order of the series
 * would be out of range), and those of Lanczos, or of reading stored vectors. */
qk_status_t qk_sign_create(const qk_sign_params_t *params, qk_sign_t **sign, qk_err_t *err);
void qk_sign_destroy(qk_sign_t *sign); /* NULL-safe */

/* out = V in, or V^+ in; out is not in. accuracy: |error| / |in| of each right-hand side that will
 * do, where that is more than the least one can have; NULL: the least. A call of an iteration
 * (device.h). */
void qk_sign_apply(qk_sign_t *sign, qk_field_t *out, const qk_field_t *in, bool dagger,
                   const double *accuracy);

/* Applications of D in one of V, about. */
int64_t qk_sign_cost(const qk_sign_t *sign, qk_prec_t prec);
/* What its maker has found. */
const qk_sign_health_t *qk_sign_health(const qk_sign_t *sign);

/* Device bytes on this rank, of partial fractions at most; making: the most beside them while it is
 * created, work fields too. */
int64_t qk_sign_bytes(const qk_lattice_t *lat, const qk_sign_params_t *params, bool making);

#endif
