/*
 * operator.h: Dirac operators behind one table: Wilson and Wilson-clover, and the coarse operators
 * of multigrid (galerkin.h), where diag, A and hops are matrices.
 *
 *   M = diag - 1/2 hop,  diag = 4 + m + csw * clover  (docs/physics.md; cuda/ops.h has hop)
 *   even-odd (symmetric):  Mhat = 1 - A_ee^-1 M_eo A_oo^-1 M_oe  on even sites, A = diag
 *   M x = b  <=>  Mhat x_e = A_ee^-1 (b_e - M_eo A_oo^-1 b_o),  x_o = A_oo^-1 (b_o - M_oe x_e)
 *
 * An operator holds its links and diagonal terms in the precisions that were requested at creation.
 * The precision of a call's fields selects one of them (others: QK_BAD_ARGUMENT). All calls are
 * collective over the ranks of the geometry (halo exchange). in and out must differ.
 */
#ifndef QK_ENGINE_OPERATOR_H
#define QK_ENGINE_OPERATOR_H

#include "daemon/engine/lattice/field.h"

typedef struct qk_operator qk_operator_t;

typedef struct qk_operator_ops {
  const char *name; /* "wilson-clover" */
  /* out = M in, or M^+ in; full fields. With x: out = x + c M in (fused; c = -1 makes a
   * residual). */
  qk_status_t (*apply)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                       const qk_field_t *x, double c);
  /* out = Mhat in or Mhat^+ in; even fields. x given: out = x - Mhat in. */
  qk_status_t (*apply_eo)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                          const qk_field_t *x);
  /* Even part of the preconditioned right-hand side: out_e = A_ee^-1 (b_e - M_eo A_oo^-1 b_o); b
   * full. */
  qk_status_t (*prepare_eo)(qk_operator_t *op, qk_field_t *out, const qk_field_t *b);
  /* x = (x_e, A_oo^-1 (b_o - M_oe x_e)); x full, xe even, b full. xe may be the even half of x. */
  qk_status_t (*reconstruct_eo)(qk_operator_t *op, qk_field_t *x, const qk_field_t *xe,
                                const qk_field_t *b);
  /* out = in - c Mhat in, at the cost of Mhat: polynomials in Mhat. */
  qk_status_t (*relax_eo)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c);
  /* out = Mhat in without hops between blocks of these extents (local coordinates): Schwarz
   * smoothers. */
  qk_status_t (*apply_eo_blocks)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                 const int block[4]);
  /* out(n) = what M takes from in(n+mu); full fields. Galerkin products are made of it. */
  qk_status_t (*hop_ahead)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu);
  /* out = A in or A^-1 in; fields of the same subset, even, odd or full. */
  qk_status_t (*diag)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool inverse);
  void (*destroy)(qk_operator_t *op);
} qk_operator_ops_t;

struct qk_operator {
  const qk_operator_ops_t *ops;
  const qk_device_t *dev;
  qk_work_t *work;              /* borrowed: intermediate fields */
  int64_t applications[3];      /* M or Mhat applied so far, by precision */
  int64_t flops_full, flops_eo; /* per site of the full lattice and RHS */
  double diag_scale; /* typical |A v| / |v|: what the residual of Mhat is worth in that of M */
};

typedef struct qk_wilson_params {
  double mass;        /* m; kappa = 1 / (2 (4 + m)) */
  double csw;         /* 0: plain Wilson */
  double phase[4][2]; /* boundary phases, complex, modulus 1 */
  int link_reals[3];  /* by precision: 18, 12 or 8 */
  bool want[3];       /* which precisions to hold */
} qk_wilson_params_t;

/* links: as in gauge.h, host memory, read only during the call. Collective. Errors:
 * QK_DEVICE_MEMORY, QK_BAD_ARGUMENT (also if the clover term is singular on some site: csw and
 * mass are named). */
qk_status_t qk_wilson_create(const qk_device_t *dev, qk_work_t *work, const double *links,
                             const qk_wilson_params_t *params, qk_operator_t **op, qk_err_t *err);

#endif
