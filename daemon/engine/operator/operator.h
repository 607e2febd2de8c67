/*
 * operator.h: Dirac operators behind one table: those of fermion actions (action/), and the coarse
 * operators of multigrid (galerkin.h), where T and hops are matrices.
 *
 *   M = T - 1/2 hop;  T acts on one site                         (docs/physics.md; cuda/ops.h: hop)
 *   the system that solvers iterate on: Mhat = 1 - T_ee^-1 M_eo T_oo^-1 M_oe on even sites
 *   M x = b  <=>  Mhat x_e = T_ee^-1 (b_e - M_eo T_oo^-1 b_o),  x_o = T_oo^-1 (b_o - M_oe x_e)
 *
 * Solvers, deflation and multigrid take fields of op->system and ask nothing else about the sites.
 * An operator holds its links and T in those precisions that were asked for at creation; the
 * precision of the fields of a call picks among them (others: QK_BAD_ARGUMENT). All calls are
 * collective over the ranks of the geometry (halo exchange). in and out must differ but where it is
 * said.
 *
 * Flavours: an operator with a twist, T = H + i twist G5 with the sign of the flavour, is two
 * operators on the same links. Which right-hand sides of the block of a call have the other sign
 * stands in *op->flavours, which whoever works on a block sets and takes back (qk_flavours_set).
 * All operators of a multigrid hierarchy share it.
 *
 * Accuracy: an operator that is itself made by an iteration (overlap) may be applied with less than
 * it can, and then costs less. How much is needed of the right-hand sides of the block of a call
 * stands in op->accuracy, which whoever works on a block sets and takes back (qk_accuracy_set).
 */
#ifndef QK_ENGINE_OPERATOR_H
#define QK_ENGINE_OPERATOR_H

#include "daemon/engine/lattice/field.h"

typedef struct qk_operator qk_operator_t;

/* A quotient for each right-hand side of a block: scalars on the device (lattice/scalars.h). */
typedef struct qk_ratio {
  const double *num, *den;
} qk_ratio_t;

/* What is summed of a solution of domain wall fermions (docs/physics.md). */
typedef enum qk_wall_sum {
  QK_WALL_QUARK,    /* |q|^2 */
  QK_WALL_MIDPOINT, /* |mid|^2: Ls even */
  QK_WALL_AXIAL,    /* conserved axial current A_t: b and c real, and the same on all slices */
  QK_WALL_SUMS
} qk_wall_sum_t;

/* A call of the table for several right-hand sides at a time, each in fields of its own. */
typedef enum qk_each_call {
  QK_EACH_PREPARE,         /* out = prepare(b) */
  QK_EACH_RECONSTRUCT,     /* out = reconstruct(x, b) */
  QK_EACH_RESIDUAL_SYSTEM, /* out = residual_system(x, b) */
  QK_EACH_RESIDUAL         /* out = b - M x */
} qk_each_call_t;

typedef struct qk_each {
  int n; /* 1 to QK_RHS_TOGETHER */
  qk_field_t *out[QK_RHS_TOGETHER];
  const qk_field_t *x[QK_RHS_TOGETHER], *b[QK_RHS_TOGETHER];
} qk_each_t;

typedef struct qk_operator_ops {
  /* out = M in, or M^+ in; full fields. x given: out = x + c M in (fused; c = -1: a residual). */
  qk_status_t (*apply)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                       const qk_field_t *x, double c);
  /* out = Mhat in or Mhat^+ in; fields of the system. x given: out = x - Mhat in. out may be in,
   * without dagger and x. */
  qk_status_t (*apply_system)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                              const qk_field_t *x);
  /* Of an operator with Mhat = 1 + A^+ A, A leading from the sites of the system to the others: an
   * iteration of conjugate gradients without a field for Mhat p. `ap` is of those other sites; red:
   * [nrhs][2], of this rank, for right-hand sides of the mask (device.h). NULL: not of this
   * operator.
   *   half_system  ap = A p, red = pp + |ap|^2: (p, Mhat p) if pp is |p|^2 of this rank
   *   step_system  r -= ratio(num, den) (p + A^+ ap), red = |r|^2; of others r stays
   * (cuda/ops.h: ratio). */
  qk_status_t (*half_system)(qk_operator_t *op, qk_field_t *ap, const qk_field_t *p,
                             const double *pp, const uint8_t *mask, double *red);
  qk_status_t (*step_system)(qk_operator_t *op, qk_field_t *r, const qk_field_t *p,
                             const qk_field_t *ap, const qk_ratio_t *ratio, const uint8_t *mask,
                             double *red);
  /* Right-hand side of the system: out = T_ee^-1 (b_e - M_eo T_oo^-1 b_o); b full. */
  qk_status_t (*prepare)(qk_operator_t *op, qk_field_t *out, const qk_field_t *b);
  /* x = (xs, T_oo^-1 (b_o - M_oe xs)), xs the solution of the system; x, b full. xs may be that
   * part of x. */
  qk_status_t (*reconstruct)(qk_operator_t *op, qk_field_t *x, const qk_field_t *xs,
                             const qk_field_t *b);
  /* Residual of the system from the source itself: r = prepare(b) - Mhat xs, which is
   * T_ee^-1 (b_e - M_eo x_o) - xs with x_o of reconstruct, at the cost of Mhat; r is not xs. */
  qk_status_t (*residual_system)(qk_operator_t *op, qk_field_t *r, const qk_field_t *xs,
                                 const qk_field_t *b);
  /* Such a call for n right-hand sides, with the bits of n calls; flavour number k is that of the
   * k-th. Links and T are read once for all where the backend does so (cuda/ops.h: hop_each).
   * NULL: not of this operator. */
  qk_status_t (*each)(qk_operator_t *op, qk_each_call_t call, const qk_each_t *fields);
  /* out = in - c Mhat in, at the cost of Mhat: polynomials in Mhat. */
  qk_status_t (*relax)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c);
  /* out = c (1 - Mhat) in + c_x x + y, at the cost of Mhat: polynomials in 1 - Mhat. x, y: NULL for
   * none; out may be x or y, not in. An operator that `widens` writes single where all else is in
   * half, x and y not rounded. NULL: not of this operator. */
  qk_status_t (*neumann)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c,
                         const qk_field_t *x, double c_x, const qk_field_t *y);
  /* out = Mhat in with hops between blocks of these extents left out (local coordinates): Schwarz
   * smoothers. */
  qk_status_t (*apply_blocks)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                              const int block[4]);
  /* out(n) = what M takes from in(n+mu), or from in(n-mu); full fields. Galerkin products are made
   * of the first. */
  qk_status_t (*hop_forward)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu);
  qk_status_t (*hop_backward)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu);
  /* out = hop in or hop^+ in, with the weights of directions: full fields, or from one parity to
   * the other. NULL: coarse operators. */
  qk_status_t (*hop)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger);
  /* out = T in or T^-1 in, or with T^+; fields of the same subset, even, odd or full. dagger: not
   * of coarse operators (QK_BAD_ARGUMENT). */
  qk_status_t (*diag)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool inverse,
                      bool dagger);
  /* T gives back its memory in precisions that are not to be kept, and is made again of T in double
   * in those that are. T in double and T^-1 stay. Without T what needs it (apply, diag) returns
   * QK_BAD_ARGUMENT. NULL: T takes no memory of its own. Not collective. QK_DEVICE_MEMORY. */
  qk_status_t (*keep_local)(qk_operator_t *op, const bool keep[QK_PRECS]);
  /* T^-1 in double gives back its memory (rest), or is made again of T, with the same bits.
   * Meanwhile calls in double return QK_BAD_ARGUMENT. NULL: it takes no memory of its own. Not
   * collective. QK_DEVICE_MEMORY. */
  qk_status_t (*rest_double)(qk_operator_t *op, bool rest);
  /* Of an operator with a base (below), for a sweep of Gauss and Seidel over the vectors of right-
   * hand sides of the system: out = right-hand side of the system of the base, of vector k and its
   * flavour, that has for its solution vector k of x, Mhat x = r, if z holds those before k. r, x
   * and z are fields of the system; out has one vector, and may not be a part of z. r and out have
   * one precision, which z need not have. NULL without a base. */
  qk_status_t (*vector_system)(qk_operator_t *op, qk_field_t *out, int k, const qk_field_t *r,
                               const qk_field_t *z);
  /* Of an operator with `outer`: b = right-hand side of M for a source of the user's problem, and
   * what the user asks for of the solution x; full fields, of `outer` and of the operator. leave
   * into a field of the operator: the solution of M, which x need not be. NULL without. `leave`
   * alone, of an operator without `outer`: what the user asks for is made of x and the source,
   * which stands in `solution` (overlap/overlap.c). */
  qk_status_t (*enter)(qk_operator_t *op, qk_field_t *b, const qk_field_t *source);
  qk_status_t (*leave)(qk_operator_t *op, qk_field_t *solution, const qk_field_t *x);
  /* Of an operator with `outer`, of domain wall fermions: sums over the sites of each time slice
   * t = 0 .. T-1, out[qk_wall_sum_t][T], the same on all ranks; source and x in double, of one
   * right-hand side. NaN where a sum is not defined. Waits. NULL without. */
  qk_status_t (*wall_sums)(qk_operator_t *op, const qk_field_t *source, const qk_field_t *x,
                           double *out);
  void (*destroy)(qk_operator_t *op);
} qk_operator_ops_t;

/* What M^+ is, of an operator that has it in a simple form. */
typedef enum qk_adjoint {
  QK_ADJOINT_GAMMA5,    /* G5 M G5, Mhat^+ = G5 T_ee Mhat T_ee^-1 G5 */
  QK_ADJOINT_TWISTED,   /* the same with M, Mhat and T of the other flavour */
  QK_ADJOINT_EXCHANGED, /* the same as GAMMA5 with tau_1 G5, tau_1 exchanging two vectors */
  QK_ADJOINT_ANTI,      /* Mhat is hermitian and positive: hop^+ = -hop and T = T^+, a number; or
                           it is `squared` of another operator */
  QK_ADJOINT_PARTS      /* only hop^+ and T^+ are known */
} qk_adjoint_t;

/* What aggregates of multigrid keep apart; G5 is +1 on one part and -1 on the other. */
typedef enum qk_chirality {
  QK_CHIRALITY_SPIN, /* halves of the components of a site */
  QK_CHIRALITY_NONE  /* nothing: no multigrid */
} qk_chirality_t;

/* Several masses from one Krylov space (masses/masses.h), of an operator of which M(m)^+ M(m) is,
 * but for a number, A + shift(m) with one hermitian A >= 0 for all masses m:
 *   M(m) x = b  <=>  x = c(m) M(m)^+ y,  (A + shift(m)) y = b
 * Masses are those of the action's parameter `mass`, and those that the operator was made with play
 * no part. As others of the table; fields that are not said to be full are those of A. */
typedef struct qk_masses_ops {
  bool by_parity; /* A keeps parities apart: fields of A are even or odd; else they are full */
  double (*shift)(const qk_operator_t *op, double mass); /* positive */
  /* out = (A + shift) in */
  qk_status_t (*apply)(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double shift);
  /* x += c(m) M(m)^+ y; x full; both in double. */
  qk_status_t (*lift)(qk_operator_t *op, qk_field_t *x, const qk_field_t *y, double mass);
  /* r = b - M(m) x; full, in double */
  qk_status_t (*residual)(qk_operator_t *op, qk_field_t *r, const qk_field_t *x,
                          const qk_field_t *b, double mass);
  /* What of a residual r is corrected, in place: the rest has a part in |r|^2 that does not count.
   * Fields of A, in double. NULL: all of it. */
  qk_status_t (*keep)(qk_operator_t *op, qk_field_t *r, const qk_field_t *b);
  /* What the user asks for is made of x, which it may overwrite, and the source b; full, in double,
   * of any number of columns. NULL: x is that. */
  qk_status_t (*leave)(qk_operator_t *op, qk_field_t *x, const qk_field_t *b, double mass);
} qk_masses_ops_t;

/* On coarse levels flavour -1 may stand for another operator than it has on the finest one, the
 * Schur complement of a doublet (action/twisted/doublet.c): its twist is that of flavour +1 times
 * -twist, and corrections of the finest level are divided by scale. */
typedef struct qk_schur {
  bool is;
  double twist, scale; /* 1, 1: the flavour -1 of the finest level */
} qk_schur_t;

/* The flavours of the right-hand sides of a block: device bytes [nrhs], not 0 for those with the
 * other sign of the twist; NULL: none has. */
typedef struct qk_flavours {
  const uint8_t *minus;
} qk_flavours_t;

/* The sign function of overlap fermions as it was found to be when it was made (overlap/sign.h). */
typedef struct qk_sign_health {
  double tol;    /* |error| / |in| in double is at most that */
  int vectors;   /* eigenvectors of H that are projected */
  double lowest; /* |h| of the lowest, or what stands for it without any ... */
  double bound;  /* ... and of the first that is not projected */
  bool fractions;
  int order;     /* of the polynomial in double; partial fractions */
  double square; /* |sgn(H)^2 f - f| / |f| of noise; half of it is that of the relation of Ginsparg
                    and Wilson: |(gamma_5 D + D gamma_5 - 2 D gamma_5 D) f| / |f| at mass 0 */
} qk_sign_health_t;

/* Work fields that an application of an `inexact` operator takes from its own work at most, like
 * `in`. */
enum { QK_INEXACT_FIELDS = 8 };

struct qk_operator {
  const qk_operator_ops_t *ops;
  const qk_device_t *dev;
  qk_work_t *work; /* borrowed: intermediate fields */
  /* Where fields of the user's problem are others than those of M: of four dimensions, where M has
   * five. NULL: they are the same. */
  const qk_device_t *outer;
  const char *action; /* "wilson-clover"; "coarse" */
  qk_subset_t system; /* the sites that Mhat acts on */
  qk_adjoint_t adjoint;
  qk_chirality_t chirality;
  double twist;            /* of flavour +1; 0: both flavours are the same operator */
  qk_flavours_t *flavours; /* of the finest level's operator */
  /* Largest |error| / |in| that Mhat in may have, of each right-hand side of a block, INFINITY:
   * nobody looks at it. NULL: the least that there is. A right-hand side's result depends on its
   * own alone. Only operators that are `inexact` look at it. */
  const double *accuracy;
  /* Applications may be by rounder matrices or sums, if there are any: those of a smoother. */
  bool rough;
  bool widens;  /* neumann may read half and write single */
  bool inexact; /* made by an iteration of its own: an application costs hundreds of others */
  /* M M^+ as the Mhat of an operator of its own, hermitian and positive, which belongs to this one:
   * its solution y gives x = M^+ y. For plain CG, where an application of it costs less than those
   * of M^+ and M. NULL: there is none. */
  qk_operator_t *squared;
  qk_schur_t schur; /* of coarse levels; there are no adjoints where it is */
  /* What a hierarchy of multigrid is made of, if fields of this operator have several vectors a
   * right-hand side (geom.h: inner): an operator on one of them; NULL: the operator itself. */
  qk_operator_t *base;
  const qk_masses_ops_t *masses; /* NULL: it is solved for its own mass alone */
  const qk_sign_health_t *sign;  /* of overlap fermions; NULL: there is none */
  bool open; /* an open boundary in t: fields that are 0 on t = 0 and T-1 stay so, others have no
                meaning (action/open.h) */
  int64_t applications[QK_PRECS];   /* M or Mhat applied so far, by precision */
  int64_t flops_full, flops_system; /* per site of the full lattice and RHS */
  double diag_scale; /* typical |T v| / |v|: what the residual of Mhat is worth in that of M */
};

/* The calls that follow work on right-hand sides of these flavours. Recorded graphs hold the
 * address. */
static inline void qk_flavours_set(const qk_operator_t *op, const uint8_t *minus) {
  op->flavours->minus = minus;
}

/* The calls that follow may have these errors; NULL: the least. */
static inline void qk_accuracy_set(qk_operator_t *op, const double *accuracy) {
  op->accuracy = accuracy;
}

/* Mhat is hermitian and positive, so that nobody needs Mhat^+ Mhat. */
static inline bool qk_operator_is_positive(const qk_operator_t *op) {
  return op->adjoint == QK_ADJOINT_ANTI;
}

static inline qk_operator_t *qk_operator_base(qk_operator_t *op) {
  return op->base ? op->base : op;
}

/* out = M in, as a call of an iteration (device.h). */
static inline void qk_operator_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in) {
  if (qk_dev_ok(op->dev)) qk_dev_note(op->dev, op->ops->apply(op, out, in, false, NULL, 0));
}

#endif
