/*
 * clover.h: a clover term that the caller made.
 */
#ifndef QUARK_QUDA_CLOVER_H
#define QUARK_QUDA_CLOVER_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

#include "links.h"

/* Some sites of the lattice: the links around them and the term on them. */
typedef struct qk_quda_samples qk_quda_samples_t;

/* term: the part of this rank, [site][2 blocks][36]: 6 real diagonal elements, then 15 complex of
 * the lower triangle by columns. By all ranks, which get the same. The caller frees them. */
qk_quda_samples_t *qk_quda_clover_samples(const qk_quda_links_t *links, const double *term);
/* A = a + c C on every site, C = -1/2 sum gamma_mu gamma_nu F_mu nu of the links: least squares on
 * the samples. split: c[0] of the planes in space, c[1] of those with t. Returns the largest
 * deviation on them, over the largest element. */
double qk_quda_clover_fit(const qk_quda_samples_t *samples, bool split, double *a, double c[2]);
/* y = A x on each site of a field of doubles. */
void qk_quda_clover_apply(const double *term, size_t sites, const double complex *x,
                          double complex *y);

#endif
