/*
 * clover.h: a clover term that the caller made; pure.
 */
#ifndef QUARK_QUDA_CLOVER_H
#define QUARK_QUDA_CLOVER_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

#include "links.h"

/* A = a + c C on every site, C = -1/2 sum gamma_mu gamma_nu F_mu nu of the links: least squares on
 * some sites. term: [site][2 blocks][36], a whole lattice in its order: 6 real diagonal elements,
 * then 15 complex of the lower triangle by columns. split: c[0] of the planes in space, c[1] of
 * those with t. Returns the largest deviation on these sites, over the largest element. */
double qk_quda_clover_fit(const qk_quda_links_t *links, const double *term, bool split, double *a,
                          double c[2]);
/* y = A x on each site of a whole field of doubles. */
void qk_quda_clover_apply(const double *term, size_t sites, const double complex *x,
                          double complex *y);

#endif
