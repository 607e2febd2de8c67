/*
 * lanczos_basis.h: a growing orthonormal basis of vectors in blocks of eight, and the
 * operations that Lanczos needs on it. Private to lanczos.c and deflation.c.
 *
 * Calls with inner products are collective. All calls wait for the device.
 */
#ifndef QK_ENGINE_LANCZOS_BASIS_H
#define QK_ENGINE_LANCZOS_BASIS_H

#include <complex.h>

#include "daemon/engine/eigen/lanczos.h"

typedef struct qk_lanczos_basis {
  qk_operator_t *op;
  qk_work_t *work;
  const qk_device_t *dev; /* of the operator */
  qk_flat_t *flat;        /* of the blocks */
  qk_prec_t prec;
  qk_lanczos_kind_t kind; /* A = Mhat^+ Mhat, H^2 with H = g5 M, or the operator ... */
  qk_subset_t system;     /* ... on these sites */
  void (*restrict_noise)(const qk_operator_t *op, const qk_field_t *field); /* or NULL */
  const qk_coherent_t *within; /* blocks are coefficients of it, or NULL ... */
  qk_field_t *wide[2];         /* ... and between V and V^+ there are vectors; */
  qk_field_t *coefficients;    /* a block that is nobody's */
  int nblock;                  /* room for nblock blocks and the one that is being made */
  qk_field_t *v[QK_LANCZOS_SPACE / QK_EIGEN_BLOCK + 1];
  qk_field_t *spare; /* a block that is nobody's, with a fifth dimension */
  double complex *c; /* device: coefficients, [8 nblock][8 nblock], or one block of columns */
  void *pieces; /* device: of as many blocks, where they are more than a kernel rotates in place */
  double *scalar;     /* device: four scalars of a block */
  uint8_t *mask;      /* device: of a block */
  int64_t randomised; /* columns that were drawn */
  uint64_t seed;
} qk_lanczos_basis_t;

/* Allocates. To be given to fini whatever comes out. */
qk_status_t qk_lanczos_basis_init(qk_lanczos_basis_t *k, qk_operator_t *op, qk_work_t *work,
                                  const qk_lanczos_params_t *params);
void qk_lanczos_basis_fini(qk_lanczos_basis_t *k);

/* c[i][j] = (v_i, y_j), i over the first nblock blocks, on the host; summed over the ranks. */
qk_status_t qk_lanczos_basis_dots(qk_lanczos_basis_t *k, int nblock, const qk_field_t *y,
                                  double complex *c);
/* Projects the first nblock blocks out of w, twice. h: the coefficients, [8 nblock][8] (added
 * to; may be NULL). */
qk_status_t qk_lanczos_basis_project(qk_lanczos_basis_t *k, int nblock, qk_field_t *w,
                                     double complex *h);
/* Orthonormalises the columns of w: w = w' r, with r 8 x 8 upper triangular (row by row).
 * Columns that depend on others are replaced by random ones orthogonal to the first nblock
 * blocks; their rows of r are zero. QK_BREAKDOWN: NaN. */
qk_status_t qk_lanczos_basis_normalise(qk_lanczos_basis_t *k, int nblock, qk_field_t *w,
                                       double complex r[64]);
/* Random numbers in the columns of w that mask has (NULL: all). */
qk_status_t qk_lanczos_basis_random(qk_lanczos_basis_t *k, qk_field_t *w, const uint8_t mask[8]);

/* out = A in. */
qk_status_t qk_lanczos_basis_apply(qk_lanczos_basis_t *k, qk_field_t *out, const qk_field_t *in);
/* out = T_order((2 A - top - window) / (top - window)) in. */
qk_status_t qk_lanczos_basis_filter(qk_lanczos_basis_t *k, double window, double top, int order,
                                    qk_field_t *out, const qk_field_t *in);
/* out = A in, or of GAMMA5 H in. */
qk_status_t qk_lanczos_basis_image(qk_lanczos_basis_t *k, qk_field_t *out, const qk_field_t *in);
/* (v, A v) of normalised columns. */
qk_status_t qk_lanczos_basis_rayleigh(qk_lanczos_basis_t *k, const qk_field_t *v, double value[8]);
/* |A v - value v| of the columns, or |H v - value v|; w is work. */
qk_status_t qk_lanczos_basis_residual(qk_lanczos_basis_t *k, const qk_field_t *v, qk_field_t *w,
                                      const double value[8], double residual[8]);

#endif
