/*
 * operator.h: the operator of a call, and what it is among the actions of quarkd; pure.
 */
#ifndef QUARK_QUDA_OPERATOR_H
#define QUARK_QUDA_OPERATOR_H

#include <stdint.h>

#include "client/quark.h"
#include "links.h"

/* M = m + sum h + csw C + i mu gamma_5 - H/2 with the links of the caller undone. */
typedef struct qk_quda_operator {
  const qk_quda_links_t *links; /* rank 0 alone looks at them */
  double mass, csw, plane[6];   /* plane: factors of csw */
  double mu;                    /* its sign is the flavour of requests; 0: no twist */
  double kappa;                 /* 1 / (2 (m + sum h)), as the caller gives it */
  /* In place of m + sum h + csw C: a clover term of the caller, packed, and its digest; NULL: none.
   * mass is 0 then. */
  const double *term;
  uint64_t term_digest;
} qk_quda_operator_t;

/* What of the operator of a setup is another; "": nothing. Numbers are the same to
 * QUARK_QUDA_MATCH. */
void qk_quda_operator_compare(const qk_quda_operator_t *op, const quark_report_t *report,
                              char why[256]);

/* An action and its parameters, as text. */
typedef struct qk_quda_wording {
  const char *action;
  char boundary[160], mass[32], mu[32], csw[32], hop[128], plane[192], term[48];
  quark_parameter_t p[5];
  uint32_t n;
} qk_quda_wording_t;

/* term: the request that its clover term was sent with. */
void qk_quda_operator_write(const qk_quda_operator_t *op, uint64_t term, qk_quda_wording_t *w);

#endif
