/*
 * links.h: what SU(3) links are, site by site: how far they are from SU(3), and their digest. Pure
 * functions: of a part of a lattice, in any order, by any thread; parts are joined.
 *
 * A site is 72 doubles, [mu = x,y,z,t][row][column][re, im]. The digest of a configuration is the
 * sum modulo 2^64 over all sites n of XXH3_64bits_withSeed(the 576 bytes of the site, seed = global
 * index of n, x fastest), little endian. Links in single precision are widened before, a third row
 * that is left out is computed.
 */
#ifndef QK_BASE_LINKS_H
#define QK_BASE_LINKS_H

#include <stdbool.h>
#include <stdint.h>

enum { QK_LINKS_SITE = 72 }; /* doubles */

typedef struct qk_links_sum {
  /* Largest element of |U^+ U - 1|, largest |det U - 1|; infinite for NaN and Inf. Zeros among the
   * links from the last time slice to the first are left out: they may be an open boundary. */
  double unitarity, determinant;
  double trace;          /* sum of Re tr U */
  double zeros, closing; /* links from the last time slice to the first that are zero, and not */
  uint64_t digest;
  uint64_t site; /* global index and direction of the link with the worst deviation of the two */
  int mu;
  double worst;
} qk_links_sum_t;

/* last: the site is on the last time slice. sum begins as zeros. */
void qk_links_add(const double site[QK_LINKS_SITE], uint64_t global, bool last,
                  qk_links_sum_t *sum);
void qk_links_join(qk_links_sum_t *sum, const qk_links_sum_t *other);
/* Whether the sum of a whole lattice has an open boundary: all links that would close it are 0. */
bool qk_links_are_open(const qk_links_sum_t *sum);
/* Whether some of those links are zero, and others are not. */
bool qk_links_are_torn(const qk_links_sum_t *sum);
/* Largest deviation that is taken: 1e-5 for links of 32 bits, 1e-9 for those of 64. */
double qk_links_limit(int bits);

/* A site from memory: bits 32 or 64; reals 18 a link, or 12, the first two rows. */
void qk_links_widen(const void *raw, int bits, int reals, double site[QK_LINKS_SITE]);

#endif
