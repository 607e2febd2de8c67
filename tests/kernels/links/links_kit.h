/*
 * links_kit.h: links that are worked on (qk_linkfield_t) in kernel tests: to and from plain order,
 * steps on the lattice, matrices.
 */
#ifndef QK_TESTS_LINKS_KIT_H
#define QK_TESTS_LINKS_KIT_H

#include "tests/kernels/hop_kit.h"

typedef double complex matrix_t[3][3];

/* A field of a lattice that is not split, with memory for so many directions; freed by kit_free. */
qk_linkfield_t links_field(const kit_t *kit, int directions);
/* [site][direction], x fastest. */
void links_copy_in(const kit_t *kit, const qk_linkfield_t *to, int directions, const void *from);
matrix_t *links_copy_out(const kit_t *kit, const qk_linkfield_t *from, int directions);

int64_t links_step(const kit_t *kit, int64_t n, int mu, int by); /* by at most two */
int links_parity(const kit_t *kit, int64_t n);
/* Of n matrices, the largest element of the difference; NaN shows. */
double links_distance(const matrix_t *a, const matrix_t *b, int64_t n);

#endif
