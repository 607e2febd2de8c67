/*
 * gcr_step.h: what follows w[n] = M z[n] in a step of GCR, with the sums over the ranks.
 *
 *   w[n] is made orthogonal to w[0..n);  r -= a w[n];  x += a z[n], z[n] changed as w[n] was
 *
 * Without x no w changes: the orthogonal ones are known by their coefficients (cuda/body/gcr.h).
 *
 * Fields are blocks of one precision and shape, scalars those of as many right-hand sides. Queue 0;
 * two passes over the fields (cuda/ops.h: multi_dot, gcr_step). A call of an iteration
 * (lattice/device.h); collective.
 */
#ifndef QK_ENGINE_GCR_STEP_H
#define QK_ENGINE_GCR_STEP_H

#include "daemon/engine/lattice/scalars.h"

typedef struct qk_gcr_step {
  int n;    /* < QK_GCR_MAX: directions before this one */
  int dots; /* scalars dots .. dots+n+1 are set: (w_k,w_n), k = 0 .. n, and (r,w_n) */
  /* [n+1]: the scalars |w_k|^2; the last is set. Without x each is the first of k+1 or more. */
  const int *norm2;
  qk_field_t *const *w, *const *z; /* [n+1]; z is read where x is given */
  const qk_field_t *x, *r;         /* x NULL: none */
  const qk_field_t *next;          /* becomes r, without x perhaps in half; NULL: none */
  int rr;                          /* without x: the scalar that becomes |r|^2; 0: none does */
  bool x_zero;                     /* x need not be read: it is set */
  const uint8_t *valid; /* [n+2][nrhs]: directions of each right-hand side, and r; NULL: all */
  const uint8_t *mask;  /* [nrhs]: right-hand sides that take part; NULL: all */
} qk_gcr_step_t;

void qk_gcr_advance(qk_scalars_t *scalars, const qk_gcr_step_t *step);

#endif
