/*
 * vectors.h: vectors that clients send (FIELD_VECTORS), site by site: whether their numbers are
 * finite, their norms, and their digest. Pure functions, as those of links.h, of whole vectors in
 * any order, by any thread.
 *
 * A time slice t has `count` vectors of three complex numbers a site, and the field is
 * [t][n][z][y][x][colour]. A site is 6 doubles; its global index counts the sites of all vectors,
 * (t count + n) sites of a slice + site. The digest is made as that of links.
 */
#ifndef QK_BASE_VECTORS_H
#define QK_BASE_VECTORS_H

#include <stdbool.h>
#include <stdint.h>

enum { QK_VECTORS_SITE = 6 }; /* doubles */

/* How far from 1 the norm squared of a vector may be. */
#define QK_VECTORS_NORM_LIMIT 1e-4

typedef struct qk_vectors_sum {
  uint64_t digest;
  double squares;     /* of the vector that is not complete yet */
  double deviation;   /* largest |v^+ v - 1| of those that are */
  uint64_t worst;     /* the first vector that has it: t count + n */
  uint64_t bad, site; /* numbers that are NaN or Inf; global index of the first of them, */
  int number;         /* and which number of the site */
} qk_vectors_sum_t;

/* The next site of a vector. sum begins as zeros. */
void qk_vectors_add(const double site[QK_VECTORS_SITE], uint64_t global, qk_vectors_sum_t *sum);
/* It was the last one of this vector. */
void qk_vectors_end(uint64_t vector, qk_vectors_sum_t *sum);
/* Both of whole vectors. */
void qk_vectors_join(qk_vectors_sum_t *sum, const qk_vectors_sum_t *other);
/* A site from memory: bits 32 or 64. */
void qk_vectors_widen(const void *raw, int bits, double site[QK_VECTORS_SITE]);

#endif
