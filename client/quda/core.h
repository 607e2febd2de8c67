/*
 * core.h: what the caller has loaded, and the operator of a call. Called by all ranks together,
 * with the same arguments but for pointers. The state is one for the process, as QUDA has it;
 * not for several threads at once.
 */
#ifndef QUARK_QUDA_CORE_H
#define QUARK_QUDA_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/quark.h"
#include "links.h"
#include "work.h"

void qk_quda_load_links(const int local[4], const qk_quda_given_t *given);
void qk_quda_free_links(void);
/* term NULL: of the loaded links, with that coefficient (clover_coeff). Else A of the kappa
 * normalisation as a brick, packed as in clover.c. */
void qk_quda_load_clover(double coefficient, bool single, bool device, const void *term);
void qk_quda_free_clover(void);

typedef enum qk_quda_norm { QK_QUDA_KAPPA, QK_QUDA_MASS, QK_QUDA_ASYMMETRIC_MASS } qk_quda_norm_t;

/* What the structs of a call say. */
typedef struct qk_quda_call {
  bool clover;
  double kappa, coefficient;
  double mu;       /* + i mu gamma_5 in the normalisation MASS; 0: no twist */
  bool pc;         /* on one parity */
  bool squared;    /* M^+ M */
  bool asymmetric; /* pc: of A Mhat */
  bool odd;        /* pc: which parity */
  bool dagger;
  qk_quda_norm_t norm;
  bool relative, absolute, heavy; /* residual types */
  double tol, tol_hq;
  int max_iter;
  bool single;
  bool in_device, out_device; /* fields are in the memory of a GPU */
  quark_basis_t basis;
  int n;
} qk_quda_call_t;

/* secs: of the whole call; flops: rough. outcome has call->n entries. */
void qk_quda_solve(const qk_quda_call_t *call, void **x, void **b, qk_quda_outcome_t *outcome,
                   double *secs, double *flops);
typedef enum qk_quda_part {
  QK_QUDA_M,
  QK_QUDA_HOP,
  QK_QUDA_DIAG,
  QK_QUDA_DIAG_INVERSE
} qk_quda_part_t;
/* odd: the parity of the results of all but M. */
void qk_quda_apply(const qk_quda_call_t *call, qk_quda_part_t part, bool odd, void **out,
                   void **in);
/* Makes sure that a setup of the operator is ready. */
void qk_quda_prepare(const qk_quda_call_t *call);

#endif
