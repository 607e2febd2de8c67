/*
 * composed.h: what operators have in common that are made of passes over the links of another one,
 * their base: right-hand sides of several vectors (action.h: compose).
 *
 * M = T - 1/2 hop and Mhat = 1 - 1/4 T_ee^-1 hop T_oo^-1 hop, as in eo.h; who composes one says how
 * they are applied, and has the calls of operator.h for it.
 */
#ifndef QK_ENGINE_COMPOSED_H
#define QK_ENGINE_COMPOSED_H

#include "daemon/engine/action/eo.h"

typedef struct qk_composed qk_composed_t;

/* Calls of an iteration (device.h). */
typedef struct qk_composed_ops {
  /* out = x + c M in, or with M^+; full fields. x may be out; NULL: 0. */
  void (*whole)(qk_composed_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                const qk_field_t *x, double c);
  /* out = c T^-1 hop T^-1 hop in + c_x in, of the system; out may be in. block NULL: hops are not
   * cut. */
  void (*twice)(qk_composed_t *op, qk_field_t *out, const qk_field_t *in, const int *block,
                double c, double c_x);
  /* r = T_ee^-1 (b_e + 1/2 hop x_o) - xe with x_o = T_oo^-1 (b_o + 1/2 hop xe) */
  void (*residual)(qk_composed_t *op, qk_field_t *r, const qk_field_t *xe, const qk_field_t *b);
  /* out = Mhat^+ in */
  void (*adjoint)(qk_composed_t *op, qk_field_t *out, const qk_field_t *in);
} qk_composed_ops_t;

struct qk_composed {
  qk_operator_t op; /* first: a qk_operator_t * is a qk_composed_t * */
  const qk_composed_ops_t *parts;
  qk_geom_t geom; /* that of the base, with several vectors or slices */
  qk_device_t dev;
  qk_flavours_t flavours; /* right-hand sides have none: nobody looks at them */
  bool want[QK_PRECS];
};

/* On the device of the base, with its geometry, into which the caller writes what it has more;
 * op->ops, action, adjoint, chirality and flops are the caller's. */
void qk_composed_init(qk_composed_t *c, const qk_composed_ops_t *parts, qk_operator_t *base);

/* Fields that fit each other, of right-hand sides of this operator; fits: and differ. */
bool qk_composed_alike(const qk_composed_t *c, const qk_field_t *out, const qk_field_t *in,
                       qk_subset_t subset);
bool qk_composed_fits(const qk_composed_t *c, const qk_field_t *out, const qk_field_t *in,
                      qk_subset_t subset);

/* Entries of qk_operator_ops_t. */
qk_status_t qk_composed_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                              const qk_field_t *x, double c);
qk_status_t qk_composed_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                     bool dagger, const qk_field_t *x);
qk_status_t qk_composed_residual_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *xs,
                                        const qk_field_t *b);
qk_status_t qk_composed_relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c);
qk_status_t qk_composed_apply_blocks(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                     const int block[4]);

#endif
