/*
 * clover_term.h: clover terms that clients send (FIELD_CLOVER), site by site: whether their numbers
 * are finite, and their digest. Pure functions, as those of links.h: of a part of a lattice, in any
 * order, by any thread.
 *
 * A site is 72 doubles: the local term T of M = T - 1/2 hop in the basis of DeGrand and Rossi, two
 * hermitian 6x6 blocks (spins 0, 1; spins 2, 3; index 3 spin + colour), each as 6 diagonal elements
 * and then the 15 complex ones below the diagonal, column by column. The digest is made as that of
 * links.
 */
#ifndef QK_BASE_CLOVER_TERM_H
#define QK_BASE_CLOVER_TERM_H

#include <stdbool.h>
#include <stdint.h>

enum { QK_CLOVER_TERM_SITE = 72 }; /* doubles */

typedef struct qk_clover_term_sum {
  uint64_t digest;
  double squares; /* of all elements of the matrices */
  double largest; /* modulus of a number; NaN and Inf do not count */
  uint64_t bad;   /* numbers that are NaN or Inf */
  uint64_t site;  /* where the first of them is: global index, and which number of the site */
  int number;
} qk_clover_term_sum_t;

/* sum begins as zeros. */
void qk_clover_term_add(const double site[QK_CLOVER_TERM_SITE], uint64_t global,
                        qk_clover_term_sum_t *sum);
void qk_clover_term_join(qk_clover_term_sum_t *sum, const qk_clover_term_sum_t *other);
/* A site from memory: bits 32 or 64. */
void qk_clover_term_widen(const void *raw, int bits, double site[QK_CLOVER_TERM_SITE]);

/* The smallest pivot of a site's two blocks over their largest element, by elimination in double
 * with the largest pivot: 0, or about the rounding of a double, where one is singular. */
double qk_clover_term_pivot(const double site[QK_CLOVER_TERM_SITE]);

#endif
